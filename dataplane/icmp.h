/*
 * icmp.h - ICMP (RFC 792) echo: answers pings, at a bounded rate.
 */
#ifndef DATAPLANE_ICMP_H
#define DATAPLANE_ICMP_H

#include "muster/stats.h"
#include "muster/time.h"

#define ICMP_RATE 1000u	 /* answers per second in the long run */
#define ICMP_BURST 200u	 /* answers at once after a quiet time */

/* A token bucket; a zeroed one is full at its first use. */
struct icmp {
	uint64_t filled_us; /* instant up to which tokens were handed out */
	unsigned int tokens;
	bool started;
};

/*
 * Whether the `len` bytes at `p` (ICMP header on) are an echo request to answer now; otherwise the reason is counted.
 */
bool icmp_input(struct icmp *icmp, const uint8_t *p, size_t len, struct stats *stats, struct now now);

/* Writes the reply of `len` bytes to the request that icmp_input accepted. */
void icmp_reply(uint8_t *out, const uint8_t *request, size_t len);

#endif
