/*
 * inject.h - faults for tests: frames lost, doubled, reordered, damaged, at the port's own RX and TX callbacks, from a
 * seed.
 *
 * Damage is one flipped bit behind the Ethernet header of an IPv4 frame, which a checksum must find; ARP has none and
 * is left alone. The port must compute and verify checksums in software while frames are damaged, or the device would
 * bless the damage.
 */
#ifndef DATAPLANE_INJECT_H
#define DATAPLANE_INJECT_H

#include <rte_mbuf.h>

#include "muster/base.h"

/* Entries that the array given to rte_eth_tx_burst must have behind its last frame. */
#define INJECT_TX_ROOM 32u

struct inject;

struct inject_rates { /* parts per million */
	unsigned int loss, duplicate, reorder, corrupt;
};

/* Hooks both directions of a queue. NULL when memory is missing or the port refuses. */
struct inject *inject_new(uint16_t port, uint16_t queue, const struct inject_rates *rates, uint64_t seed,
			  struct rte_mempool *pool);
/* Unhooks; the port must be stopped. */
void inject_free(struct inject *inject);
/* A frame is held back to be reordered: bursts of both directions must go on, also empty ones, until it is out. */
bool inject_pending(const struct inject *inject);
/*
 * How many frames the last transmit burst was turned into: those behind the number that rte_eth_tx_burst returned are
 * not sent yet.
 */
uint16_t inject_tx_count(const struct inject *inject);

/*
 * What the callbacks do to a burst of `n` in an array with room for `max`; returns how many there are then. For tests
 * without a port.
 */
struct inject_side;
struct inject_side *inject_side_new(const struct inject_rates *rates, uint64_t seed, struct rte_mempool *pool);
void inject_side_free(struct inject_side *side);
uint16_t inject_burst(struct inject_side *side, struct rte_mbuf **frames, uint16_t n, uint16_t max);

#endif
