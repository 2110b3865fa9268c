/*
 * pulse.h - the sign of life of a worker: written by it with plain stores in every round, read by anybody with plain loads.
 */
#ifndef MUSTER_PULSE_H
#define MUSTER_PULSE_H

#include "muster/base.h"

struct pulse {
	uint64_t raw_us;  /* the monotonic clock at its last round; 0: it has not begun */
	uint64_t lost_us; /* how long it has stood still in all (time.h); stored before raw_us of the round that saw it */
	uint32_t stage;	  /* of its loop: what it does now, or stands still in */
	uint32_t ended;	  /* it has left its loop */
	int32_t thread;	  /* the kernel's number of it */
} CACHE_ALIGNED;

static inline void pulse_read(const struct pulse *from, struct pulse *out)
{
	out->raw_us = __atomic_load_n(&from->raw_us, __ATOMIC_ACQUIRE);
	out->lost_us = __atomic_load_n(&from->lost_us, __ATOMIC_RELAXED);
	out->stage = __atomic_load_n(&from->stage, __ATOMIC_RELAXED);
	out->ended = __atomic_load_n(&from->ended, __ATOMIC_RELAXED);
	out->thread = __atomic_load_n(&from->thread, __ATOMIC_RELAXED);
}

#endif
