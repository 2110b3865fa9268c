/*
 * idle.h - what a worker does when a round found no work: spin, pause, or sleep (enum idle_policy).
 */
#ifndef DATAPLANE_IDLE_H
#define DATAPLANE_IDLE_H

#include "dataplane/rx_fd.h"

struct idle {
	enum idle_policy policy;
	struct rx_fd rx;
	uint16_t port, queue;
	bool has_queue;	      /* a worker without a receive queue waits for its neighbours only */
	int wake_fd;	      /* eventfd: readable when somebody wants the worker awake */
	bool resting;	      /* no work since since_us */
	uint64_t since_us;
	uint64_t gap_us;      /* how long recent rests lasted, smoothed */
	unsigned int false_alarms; /* sleeps in a row that the port's descriptor ended although there was no work */
};

/* `queue` may be beyond the queues of the port: then there is none to wait for. False: no descriptors are left. */
bool idle_init(struct idle *idle, enum idle_policy policy, const struct port *port, uint16_t queue, const char *device);
void idle_fini(struct idle *idle);

/* After each round. True: the worker should sleep now, if no deadline is due. */
bool idle_after_round(struct idle *idle, bool worked, struct now now);

/*
 * Sleeps until the monotonic microsecond `until`, frames wait, or idle_wake; at most a bounded time. Wakes early now
 * and then.
 */
uint64_t idle_sleep(struct idle *idle, uint64_t until_us, struct now now);

/* Ends a sleep of the worker. Async-signal-safe, from any thread. */
void idle_wake(const struct idle *idle);

#endif
