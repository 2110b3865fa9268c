/*
 * arp.h - ARP (RFC 826, RFC 1122 2.3.2, RFC 5227): which MAC address a neighbour has.
 *
 * No device, no mbuf, no clock: packets go out through `struct arp_ops`, and what waits for an answer is an opaque
 * pointer of the owner.
 */
#ifndef DATAPLANE_ARP_H
#define DATAPLANE_ARP_H

#include "dataplane/ipv4.h"
#include "muster/time.h"

#define ARP_PACKET_LEN 28u
#define ARP_ENTRIES 4096u	  /* neighbours remembered */
#define ARP_ASKING 256u		  /* neighbours being asked at the same time; each keeps at most one packet waiting */
#define ARP_TRIES 3u		  /* questions before giving up */
#define ARP_RETRY_US US_PER_S	  /* between two questions (RFC 1122: at most one per second) */
#define ARP_FRESH_US (60u * US_PER_S)  /* a confirmation younger than this is believed */
#define ARP_STALE_US (600u * US_PER_S) /* an older one is used while the neighbour is asked again, up to this age */

struct arp;

struct arp_ops {
	/* Sends an ARP packet to `dst`; copies it. */
	void (*send)(void *ctx, const uint8_t packet[ARP_PACKET_LEN], const uint8_t dst[6]);
	/* The neighbour answered: sends what waited; consumes `packet`. */
	void (*forward)(void *ctx, void *packet, const uint8_t dst[6]);
	/* It did not, or a newer packet took the place; consumes `packet`. */
	void (*drop)(void *ctx, void *packet);
};

/*
 * NULL when memory is missing. `self`, `ops`, `ctx` and `stats` belong to the caller and outlive it. `secret` keys the
 * table.
 */
struct arp *arp_new(const struct ipv4_self *self, const uint8_t mac[6], uint64_t secret, const struct arp_ops *ops, void *ctx,
		    struct stats *stats);
/* Drops what waits. */
void arp_free(struct arp *arp);
size_t arp_memory_needed(void);

/* An ARP packet arrived. Any bytes are safe. */
void arp_input(struct arp *arp, const uint8_t *p, size_t len, struct now now);

/* The same for a packet that another worker of the host received and answers: it is only learned from. */
void arp_overhear(struct arp *arp, const uint8_t *p, size_t len, struct now now);

/* The neighbour's MAC, valid until the next call of this module; NULL: not known, see arp_hold. */
const uint8_t *arp_lookup(struct arp *arp, uint32_t addr, struct now now);

/* Asks for `addr`, and keeps `packet` (consumed) for it in place of the one that may already wait. */
void arp_hold(struct arp *arp, uint32_t addr, void *packet, struct now now);

/* Says who has our address, twice (RFC 5227 2.3): now and in two seconds. */
void arp_announce(struct arp *arp, struct now now);

/* Asks again, gives up, announces: whatever is due. */
void arp_poll(struct arp *arp, struct now now);
/* Monotonic microsecond at which arp_poll must be called at the latest; TIME_NEVER when nothing is under way. */
uint64_t arp_deadline(const struct arp *arp);

#endif
