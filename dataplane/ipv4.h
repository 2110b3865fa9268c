/*
 * ipv4.h - IPv4 (RFC 791) for a host: one address, one local network, perhaps a gateway.
 *
 * Narrow on purpose: no options and no fragments are taken, and what is sent is never fragmented (DF set,
 * identification 0, an atomic datagram of RFC 6864). All addresses are in host byte order.
 */
#ifndef DATAPLANE_IPV4_H
#define DATAPLANE_IPV4_H

#include "muster/stats.h"

#define IPV4_HEADER_LEN 20u

struct ipv4_self {
	uint32_t addr;
	uint32_t mask;	  /* of the local network */
	uint32_t gateway; /* 0: none */
};

struct ipv4_packet {
	uint32_t src, dst;
	uint8_t protocol;
	const uint8_t *payload;
	size_t len; /* of the payload; padding of the frame is cut off */
};

/*
 * Checks the packet in the `len` bytes at `p`. False: dropped, and counted in `stats` under its reason.
 * `checksum_done`: the device has verified the header's checksum.
 */
bool ipv4_input(const struct ipv4_self *self, const uint8_t *p, size_t len, bool checksum_done, struct stats *stats,
		struct ipv4_packet *out);

/* Writes the header of a packet with `payload_len` bytes behind it. `checksum_later`: the device fills it in. */
void ipv4_header(uint8_t *p, uint32_t src, uint32_t dst, uint8_t protocol, size_t payload_len, bool checksum_later);

/* The address whose MAC a packet to `dst` must go to; 0: no route. */
uint32_t ipv4_next_hop(const struct ipv4_self *self, uint32_t dst);

/*
 * True when `addr` can be a single host's: not 0/8, loopback, multicast or reserved, not the network's own or broadcast
 * address.
 */
bool ipv4_is_host(const struct ipv4_self *self, uint32_t addr);

#endif
