/*
 * time.h - time as a value.
 *
 * Only the worker loop reads clocks, once per round, and passes a `struct now` down. Everything below it
 * is a function of its arguments, so tests and the simulator can run any instant.
 */
#ifndef MUSTER_TIME_H
#define MUSTER_TIME_H

#include "muster/base.h"

#define US_PER_MS 1000u
#define US_PER_S 1000000 /* token for token as in DPDK, which has the same name */
#define TIME_NEVER UINT64_MAX

struct now {
	uint64_t us;	 /* monotonic microseconds; for deadlines and durations */
	int64_t wall_ms; /* milliseconds since 1970-01-01 UTC; only for timestamps that leave the program */
};

/* The wheel tick (1 ms) that `now` lies in. */
static inline uint64_t now_ms(struct now now)
{
	return now.us / US_PER_MS;
}

#endif
