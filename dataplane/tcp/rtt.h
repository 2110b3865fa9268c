/*
 * rtt.h - round-trip time and retransmission time-out (RFC 6298), in microseconds.
 *
 * The floor applies to the variation term, not to the sum: rto = srtt + max(4 rttvar, floor). So a peer that delays its
 * acknowledgements steadily does not come to stand exactly at the time-out.
 */
#ifndef MUSTER_TCP_RTT_H
#define MUSTER_TCP_RTT_H

#include "muster/time.h"

#define RTT_INITIAL_RTO_US US_PER_S /* RFC 6298, 2.1 */
#define RTT_MAX_SAMPLE_US (60u * US_PER_S)

struct rtt {
	uint32_t srtt; /* 0: nothing measured yet */
	uint32_t rttvar;
	uint32_t rto; /* without backoff */
};

static inline uint32_t rtt_clamp(uint64_t rto, uint64_t min, uint64_t max)
{
	return (uint32_t)(rto < min ? min : rto > max ? max : rto);
}

static inline void rtt_init(struct rtt *rtt, uint64_t rto_min, uint64_t rto_max)
{
	*rtt = (struct rtt){0, 0, rtt_clamp(RTT_INITIAL_RTO_US, rto_min, rto_max)};
}

static inline void rtt_sample(struct rtt *rtt, uint64_t sample_us, uint64_t rto_min, uint64_t rto_max)
{
	uint32_t r = rtt_clamp(sample_us, 1, RTT_MAX_SAMPLE_US);
	if (rtt->srtt == 0) {
		rtt->srtt = r;
		rtt->rttvar = r / 2;
	} else {
		uint32_t off = rtt->srtt > r ? rtt->srtt - r : r - rtt->srtt;
		rtt->rttvar = (uint32_t)((3 * (uint64_t)rtt->rttvar + off) / 4);
		rtt->srtt = (uint32_t)((7 * (uint64_t)rtt->srtt + r) / 8);
		if (rtt->srtt == 0)
			rtt->srtt = 1;
	}
	uint64_t spread = 4 * (uint64_t)rtt->rttvar;
	rtt->rto = rtt_clamp(rtt->srtt + (spread < rto_min ? rto_min : spread), rto_min, rto_max);
}

/* The time-out after `backoff` doublings (RFC 6298, 5.5). */
static inline uint64_t rtt_backed_off(const struct rtt *rtt, unsigned int backoff, uint64_t rto_max)
{
	uint64_t rto = (uint64_t)rtt->rto << (backoff < 16 ? backoff : 16);
	return rto > rto_max ? rto_max : rto;
}

#endif
