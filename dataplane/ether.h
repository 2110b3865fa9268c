/*
 * ether.h - Ethernet II frames: which layer a received frame goes to, and the header of one to send.
 *
 * Invariant: a frame is handed on only when it is addressed to us, or is an ARP broadcast; everything else is counted
 * and dropped.
 */
#ifndef DATAPLANE_ETHER_H
#define DATAPLANE_ETHER_H

#include <string.h>

#include <rte_ether.h>

#include "muster/stats.h"

#define ETHER_HEADER_LEN 14u

enum ether_kind {
	ETHER_DROP,
	ETHER_ARP,
	ETHER_IPV4,
};

/* Decides by the header of the `len` bytes at `frame`; a frame that is dropped is counted in `stats`. */
enum ether_kind ether_classify(const uint8_t self[6], const uint8_t *frame, size_t len, struct stats *stats);

static inline void ether_header(uint8_t *frame, const uint8_t dst[6], const uint8_t src[6], uint16_t type)
{
	memcpy(frame, dst, 6);
	memcpy(frame + 6, src, 6);
	frame[12] = (uint8_t)(type >> 8);
	frame[13] = (uint8_t)type;
}

#endif
