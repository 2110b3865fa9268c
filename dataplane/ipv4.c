/*
 * ipv4.c - header checks on the way in, header and next hop on the way out.
 *
 * Invariants:
 *  1. What ipv4_input lets through has a payload wholly inside the bytes given, whatever the length fields say.
 *  2. A source that cannot be a host (RFC 1122 3.2.1.3) never reaches a protocol: nothing would ever be answered to a
 *     group.
 */
#include <rte_ip.h>

#include "dataplane/ipv4.h"

#define TTL 64

static uint16_t be16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static uint32_t be32(const uint8_t *p)
{
	return (uint32_t)be16(p) << 16 | be16(p + 2);
}

bool ipv4_is_host(const struct ipv4_self *self, uint32_t addr)
{
	uint32_t top = addr >> 24;
	if (top == 0 || top == 127 || top >= 224)
		return false;
	uint32_t host_bits = addr & ~self->mask;
	if ((addr & self->mask) != (self->addr & self->mask) || ~self->mask <= 1) /* /31 and /32 have no broadcast address */
		return true;
	return host_bits != 0 && host_bits != ~self->mask;
}

bool ipv4_input(const struct ipv4_self *self, const uint8_t *p, size_t len, bool checksum_done, struct stats *stats,
		struct ipv4_packet *out)
{
	if (unlikely(len < IPV4_HEADER_LEN || p[0] >> 4 != 4)) {
		stats->ipv4_bad_header++;
		return false;
	}
	size_t header = (size_t)(p[0] & 15) * 4;
	size_t total = be16(p + 2);
	if (unlikely(header < IPV4_HEADER_LEN || total < header || total > len)) {
		stats->ipv4_bad_header++;
		return false;
	}
	if (unlikely(!checksum_done && rte_raw_cksum(p, header) != 0xffff)) {
		stats->ipv4_bad_checksum++;
		return false;
	}
	if (unlikely(header != IPV4_HEADER_LEN)) {
		stats->ipv4_options++;
		return false;
	}
	if (unlikely((be16(p + 6) & 0x3fff) != 0)) { /* more fragments, or an offset */
		stats->ipv4_fragments++;
		return false;
	}
	uint32_t src = be32(p + 12), dst = be32(p + 16);
	if (unlikely(dst != self->addr)) {
		stats->ipv4_not_for_us++;
		return false;
	}
	if (unlikely(src == self->addr || !ipv4_is_host(self, src))) {
		stats->ipv4_bad_header++;
		return false;
	}
	*out = (struct ipv4_packet){.src = src, .dst = dst, .protocol = p[9], .payload = p + header, .len = total - header};
	return true;
}

void ipv4_header(uint8_t *p, uint32_t src, uint32_t dst, uint8_t protocol, size_t payload_len, bool checksum_later)
{
	struct rte_ipv4_hdr h = {
		.version_ihl = RTE_IPV4_VHL_DEF,
		.total_length = rte_cpu_to_be_16((uint16_t)(IPV4_HEADER_LEN + payload_len)),
		.fragment_offset = rte_cpu_to_be_16(RTE_IPV4_HDR_DF_FLAG),
		.time_to_live = TTL,
		.next_proto_id = protocol,
		.src_addr = rte_cpu_to_be_32(src),
		.dst_addr = rte_cpu_to_be_32(dst),
	};
	if (!checksum_later)
		h.hdr_checksum = rte_ipv4_cksum(&h);
	memcpy(p, &h, sizeof(h));
}

uint32_t ipv4_next_hop(const struct ipv4_self *self, uint32_t dst)
{
	return ((dst ^ self->addr) & self->mask) == 0 ? dst : self->gateway;
}
