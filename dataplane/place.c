/*
 * place.c - see place.h.
 */
#include "dataplane/place.h"
#include "muster/check.h"

struct dataplane_worker place_of(const struct dataplane_config *cfg, unsigned int worker, unsigned int queues)
{
	CHECK(worker < cfg->workers);
	if (cfg->per_worker != NULL)
		return cfg->per_worker[worker];
	return (struct dataplane_worker){
		.place = "",
		.cpu = cfg->cpu < 0 ? -1 : cfg->cpu + (int)worker,
		.queue = worker < queues ? (int)worker : -1,
		.numa = -1,
		.port = (uint16_t)(cfg->port + worker),
		.idle = cfg->idle,
	};
}

unsigned int place_queues(const struct dataplane_config *cfg)
{
	unsigned int n = 0;
	for (unsigned int w = 0; cfg->per_worker != NULL && w < cfg->workers; w++)
		n += cfg->per_worker[w].queue >= 0;
	return n;
}

unsigned int place_poller(const struct dataplane_config *cfg, unsigned int queue, unsigned int queues)
{
	CHECK(queue < queues);
	for (unsigned int w = 0; w < cfg->workers; w++)
		if (place_of(cfg, w, queues).queue == (int)queue)
			return w;
	CHECK(false); /* every queue has its worker */
	return 0;
}

unsigned int place_via(const struct dataplane_config *cfg, unsigned int worker, unsigned int queues)
{
	unsigned int without = 0;
	if (place_of(cfg, worker, queues).queue >= 0)
		return worker;
	for (unsigned int w = 0; w < worker; w++)
		without += place_of(cfg, w, queues).queue < 0;
	return place_poller(cfg, without % queues, queues);
}

bool place_is_shared(const struct dataplane_config *cfg, unsigned int worker, unsigned int queues)
{
	for (unsigned int w = 0; w < cfg->workers; w++)
		if (w != worker && place_via(cfg, w, queues) == worker)
			return true;
	return false;
}

bool place_ports_in_a_row(const struct dataplane_config *cfg)
{
	for (unsigned int w = 0; cfg->per_worker != NULL && w < cfg->workers; w++)
		if (cfg->per_worker[w].port != cfg->port + w)
			return false;
	return true;
}

bool place_any_sleeps(const struct dataplane_config *cfg)
{
	for (unsigned int w = 0; w < cfg->workers; w++)
		if (place_of(cfg, w, 0).idle == IDLE_ADAPTIVE)
			return true;
	return false;
}
