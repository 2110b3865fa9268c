/*
 * seq.h - arithmetic of 32-bit sequence numbers (and timestamps), which wrap around.
 *
 * "Less" is meaningful for numbers less than 2^31 apart (RFC 9293, 3.4; RFC 7323, 4.2).
 */
#ifndef MUSTER_TCP_SEQ_H
#define MUSTER_TCP_SEQ_H

#include "muster/base.h"

static inline bool seq_lt(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}

static inline bool seq_leq(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) <= 0;
}

static inline bool seq_gt(uint32_t a, uint32_t b)
{
	return seq_lt(b, a);
}

static inline bool seq_geq(uint32_t a, uint32_t b)
{
	return seq_leq(b, a);
}

static inline uint32_t seq_max(uint32_t a, uint32_t b)
{
	return seq_lt(a, b) ? b : a;
}

static inline uint32_t seq_min(uint32_t a, uint32_t b)
{
	return seq_lt(a, b) ? a : b;
}

/* a - b, or 0 when a lies before b. */
static inline uint32_t seq_ahead(uint32_t a, uint32_t b)
{
	return seq_lt(a, b) ? 0 : a - b;
}

#endif
