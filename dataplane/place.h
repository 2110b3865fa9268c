/*
 * place.h - where each worker runs and what it polls: as the configuration names it worker by worker, or by the rule that worker n has cpu + n, port + n
 * and, while there are enough, queue n.
 */
#ifndef DATAPLANE_PLACE_H
#define DATAPLANE_PLACE_H

#include "muster/dataplane.h"

/* `queues` of the port. `place` is "" when the rule says it. */
struct dataplane_worker place_of(const struct dataplane_config *cfg, unsigned int worker, unsigned int queues);

/* How many queues the configuration names; 0: it leaves that open. */
unsigned int place_queues(const struct dataplane_config *cfg);
/* The worker that polls a queue. */
unsigned int place_poller(const struct dataplane_config *cfg, unsigned int queue, unsigned int queues);
/* The worker through whose queue this one sends: itself when it has one, else those with a queue take turns. */
unsigned int place_via(const struct dataplane_config *cfg, unsigned int worker, unsigned int queues);
/* Whether another one sends through this one's queue. */
bool place_is_shared(const struct dataplane_config *cfg, unsigned int worker, unsigned int queues);

/* Worker n listens on port + n. */
bool place_ports_in_a_row(const struct dataplane_config *cfg);
/* Some worker sleeps when it has nothing to do. */
bool place_any_sleeps(const struct dataplane_config *cfg);

#endif
