/*
 * time.h - time as a value.
 *
 * Only the worker loop reads clocks, once per round, and passes a `struct now` down. Everything below it
 * is a function of its arguments, so tests and the simulator can run any instant.
 *
 * Worker time: `us` is the monotonic clock less the time in which the worker stood still (a stopped process, a paused virtual machine, a core
 * taken away) for longer than its limit. So no deadline of any layer passes while nobody could have met it. What came in meanwhile is
 * counted from the first round after it, the one that receives it.
 */
#ifndef MUSTER_TIME_H
#define MUSTER_TIME_H

#include "muster/base.h"

#define US_PER_MS 1000u
#define US_PER_S 1000000 /* token for token as in DPDK, which has the same name */
#define TIME_NEVER UINT64_MAX

struct now {
	uint64_t us;	 /* worker time, monotonic microseconds; for deadlines and durations */
	int64_t wall_ms; /* milliseconds since 1970-01-01 UTC; only for timestamps that leave the program */
};

/* How one worker keeps its time. All zero but `limit_us`: it begins at the first step. */
struct pace {
	uint64_t limit_us; /* standing still for longer is lost time; 0: none ever is */
	uint64_t raw_us;   /* the monotonic clock at the last step */
	uint64_t lost_us;  /* what worker time is behind it */
	uint64_t late_us;  /* how late the last step was, lost or not */
};

/*
 * The next round: the clock says `raw_us`, and the worker meant to rest for `rest_us` at most since the last one. Returns how much time was lost
 * since then, mostly 0; worker time is raw_us - lost_us.
 */
static inline uint64_t pace_step(struct pace *p, uint64_t raw_us, uint64_t rest_us)
{
	uint64_t gap = p->raw_us == 0 ? 0 : raw_us - p->raw_us;
	p->raw_us = raw_us;
	p->late_us = gap > rest_us ? gap - rest_us : 0;
	if (likely(p->limit_us == 0 || p->late_us <= p->limit_us))
		return 0;
	p->lost_us += p->late_us;
	return p->late_us;
}

/* The wheel tick (1 ms) that `now` lies in. */
static inline uint64_t now_ms(struct now now)
{
	return now.us / US_PER_MS;
}

#endif
