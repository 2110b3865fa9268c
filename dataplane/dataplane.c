/*
 * dataplane.c - what the program calls: starts EAL, port and workers in that order, and takes them down in the opposite
 * one.
 *
 * Worker n runs on lcore n (place.h says on which CPU); worker 0 is the thread that calls dataplane_run.
 */
#include <rte_launch.h>
#include <rte_lcore.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "dataplane/eal.h"
#include "dataplane/memory.h"
#include "dataplane/mbufs.h"
#include "dataplane/place.h"
#include "dataplane/port.h"
#include "dataplane/worker.h"
#include "muster/check.h"

struct dataplane {
	struct dataplane_config cfg;
	struct eal eal;
	struct port port;
	struct rte_mempool *pools[PORT_WORKERS_MAX];
	struct exchange *exchange; /* between the workers; NULL: there is only one */
	struct worker *workers; /* array of cfg.workers */
	unsigned int started;	/* of them, to be finished */
	uint32_t stopping;
	int desk_bell; /* eventfd of the housekeeping thread */
};

size_t dataplane_memory_needed(const struct dataplane_config *cfg)
{
	struct eal_memory need = memory_needed(cfg);
	return need.dpdk + need.heap;
}

/* Where the mbufs of a worker lie. EAL knows nodes only with huge pages. */
static int pool_socket(const struct dataplane *dp, unsigned int w)
{
	struct dataplane_worker place = place_of(&dp->cfg, w, 0);
	if (dp->cfg.per_worker == NULL || !dp->eal.huge)
		return SOCKET_ID_ANY;
	if (place.numa >= 0)
		return place.numa;
	return place.cpu >= 0 ? (int)rte_lcore_to_socket_id(w) : SOCKET_ID_ANY;
}

static bool make_pools(struct dataplane *dp, char *err, size_t err_len)
{
	char name[32];
	unsigned int n = port_mbufs(&dp->cfg);
	for (unsigned int w = 0; w < dp->cfg.workers; w++) {
		snprintf(name, sizeof(name), "mbufs%u", w);
		int socket = pool_socket(dp, w);
		dp->pools[w] = mbufs_new(name, n, port_mbuf_bytes(dp->cfg.mtu), socket);
		if (dp->pools[w] == NULL && socket != SOCKET_ID_ANY) {
			snprintf(err, err_len, "no memory for %u mbufs of worker %u on NUMA node %d; reserve huge pages on that node, or name another one",
				 n, w, socket);
			return false;
		}
		if (dp->pools[w] == NULL) {
			snprintf(err, err_len, "no memory for %u mbufs of worker %u; lower rx.descriptors or tx.descriptors", n, w);
			return false;
		}
	}
	return true;
}

/* The driver's own complaint is the better half of the message. */
static bool start_port(struct dataplane *dp, char *err, size_t err_len)
{
	eal_forget(&dp->eal);
	if (port_start(&dp->port, &dp->cfg, dp->pools, err, err_len))
		return true;
	size_t used = strlen(err);
	eal_complaint(&dp->eal, err + used, err_len - used);
	return false;
}

static bool make_workers(struct dataplane *dp, char *err, size_t err_len)
{
	dp->workers = aligned_alloc(MUSTER_CACHE_LINE, dp->cfg.workers * sizeof(struct worker));
	dp->desk_bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	dp->exchange = dp->cfg.workers > 1 ? exchange_new(dp->cfg.workers) : NULL;
	if (dp->workers == NULL || (dp->exchange == NULL && dp->cfg.workers > 1)) {
		snprintf(err, err_len, "out of memory");
		return false;
	}
	for (unsigned int w = 0; w < dp->cfg.workers; w++) {
		dp->started = w + 1;
		if (!worker_init(&dp->workers[w], w, &dp->cfg, &dp->port, dp->exchange, dp->pools[w], &dp->stopping, dp->desk_bell, err, err_len))
			return false;
	}
	return true;
}

struct dataplane *dataplane_start(const struct dataplane_config *cfg, char *err, size_t err_len)
{
	CHECK(cfg->workers > 0 && cfg->workers <= PORT_WORKERS_MAX && cfg->prefix_len <= 32);
	struct dataplane *dp = calloc(1, sizeof(*dp));
	if (dp == NULL) {
		snprintf(err, err_len, "out of memory");
		return NULL;
	}
	dp->cfg = *cfg;
	dp->desk_bell = -1;
	struct eal_memory need = memory_needed(cfg);
	if (!eal_start(&dp->eal, &dp->cfg, &need, err, err_len) || !make_pools(dp, err, err_len) || !start_port(dp, err, err_len) ||
	    !make_workers(dp, err, err_len)) {
		dataplane_free(dp);
		return NULL;
	}
	eal_running(&dp->eal);
	return dp;
}

void dataplane_set_service(struct dataplane *dp, unsigned int w, const struct service_ops *ops, void *service)
{
	CHECK(w < dp->cfg.workers);
	dp->workers[w].ops = ops;
	dp->workers[w].service = service;
	frames_set_service(dp->workers[w].frames, ops, service);
}

bool dataplane_connect(struct dataplane *dp, unsigned int w, uint32_t addr, uint16_t port, struct now now)
{
	CHECK(w < dp->cfg.workers);
	dp->workers[w].now = now;
	return worker_connect(&dp->workers[w], addr, port);
}

struct stats *dataplane_stats(struct dataplane *dp, unsigned int w)
{
	CHECK(w < dp->cfg.workers);
	return &dp->workers[w].stats;
}

struct mailbox *dataplane_mailbox(struct dataplane *dp, unsigned int w)
{
	CHECK(w < dp->cfg.workers);
	return dp->exchange == NULL ? NULL : &dp->workers[w].mailbox.mailbox;
}

bool dataplane_tell(struct dataplane *dp, unsigned int w, const struct mail *mail)
{
	CHECK(w < dp->cfg.workers);
	if (!desk_tell(&dp->workers[w].desk.desk, mail))
		return false;
	idle_wake(&dp->workers[w].idle);
	return true;
}

unsigned int dataplane_told(struct dataplane *dp, unsigned int w, struct mail out[], unsigned int max)
{
	CHECK(w < dp->cfg.workers);
	return desk_told(&dp->workers[w].desk.desk, out, max);
}

int dataplane_desk_fd(const struct dataplane *dp)
{
	return dp->desk_bell;
}

struct mailbox *dataplane_desk(struct dataplane *dp, unsigned int w)
{
	CHECK(w < dp->cfg.workers);
	return &dp->workers[w].desk.mailbox;
}

void dataplane_pulse(const struct dataplane *dp, unsigned int w, struct pulse *out)
{
	CHECK(w < dp->cfg.workers);
	pulse_read(&dp->workers[w].pulse, out);
}

const char *dataplane_stage(unsigned int stage)
{
	return worker_stage(stage);
}

unsigned int dataplane_depth(const struct dataplane *dp, unsigned int w)
{
	CHECK(w < dp->cfg.workers);
	return dp->exchange == NULL ? 0 : exchange_depth(dp->exchange, w);
}

int dataplane_wake_fd(const struct dataplane *dp, unsigned int w)
{
	CHECK(w < dp->cfg.workers);
	return dp->workers[w].idle.wake_fd;
}

void dataplane_describe(const struct dataplane *dp, char *out, size_t out_len)
{
	port_describe(&dp->port, out, out_len);
}

static int run_worker(void *arg)
{
	struct worker *w = arg;
	if (w->cfg->on_worker_start != NULL)
		w->cfg->on_worker_start(w->cfg->on_worker_start_arg, w->index);
	eal_take_signals(true);
	worker_run(w);
	eal_take_signals(false);
	return 0;
}

int dataplane_run(struct dataplane *dp, uint64_t grace_us)
{
	for (unsigned int w = 0; w < dp->cfg.workers; w++) {
		CHECK(dp->workers[w].ops != NULL);
		dp->workers[w].grace_us = grace_us;
	}
	for (unsigned int w = 1; w < dp->cfg.workers; w++)
		CHECK(rte_eal_remote_launch(run_worker, &dp->workers[w], w) == 0);
	run_worker(&dp->workers[0]);
	rte_eal_mp_wait_lcore();
	return 0;
}

void dataplane_stop(struct dataplane *dp)
{
	__atomic_store_n(&dp->stopping, 1, __ATOMIC_RELAXED);
	for (unsigned int w = 0; w < dp->started; w++)
		idle_wake(&dp->workers[w].idle);
}

static void drop_frame(void *frame)
{
	rte_pktmbuf_free(frame);
}

void dataplane_free(struct dataplane *dp)
{
	if (dp == NULL)
		return;
	dp->eal.quiet = true;
	port_stop(&dp->port);
	for (unsigned int w = 0; w < dp->started; w++)
		worker_fini(&dp->workers[w]);
	exchange_free(dp->exchange, drop_frame);
	free(dp->workers);
	if (dp->desk_bell >= 0)
		close(dp->desk_bell);
	for (unsigned int w = 0; w < dp->cfg.workers; w++)
		mbufs_free(dp->pools[w]);
	eal_stop(&dp->eal);
	free(dp);
}
