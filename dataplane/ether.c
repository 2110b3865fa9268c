/*
 * ether.c - sorts received frames by destination and type.
 *
 * Layout: destination (6), source (6), type (2), payload. VLAN tags are not spoken; a tagged frame is "of another
 * type".
 */
#include "dataplane/ether.h"

static bool is_broadcast(const uint8_t mac[6])
{
	return (mac[0] & mac[1] & mac[2] & mac[3] & mac[4] & mac[5]) == 0xff;
}

enum ether_kind ether_classify(const uint8_t self[6], const uint8_t *frame, size_t len, struct stats *stats)
{
	if (unlikely(len < ETHER_HEADER_LEN)) {
		stats->ether_short++;
		return ETHER_DROP;
	}
	uint16_t type = (uint16_t)(frame[12] << 8 | frame[13]);
	bool for_us = memcmp(frame, self, 6) == 0;
	if (likely(for_us && type == RTE_ETHER_TYPE_IPV4))
		return ETHER_IPV4;
	if (type == RTE_ETHER_TYPE_ARP && (for_us || is_broadcast(frame)))
		return ETHER_ARP;
	if (!for_us)
		stats->ether_not_for_us++;
	else
		stats->ether_other_type++;
	return ETHER_DROP;
}
