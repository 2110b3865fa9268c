/*
 * tx.h - the frames of one worker on their way to its transmit queue, or, where it has none, to the worker whose queue it shares.
 */
#ifndef DATAPLANE_TX_H
#define DATAPLANE_TX_H

#include <rte_mbuf.h>

#include "dataplane/exchange.h"
#include "dataplane/inject.h"
#include "muster/stats.h"
#include "muster/time.h"

#define TX_QUEUE 256u /* frames that may wait here when the device takes none */
#define TX_BURST 32u
#define TX_STUCK_US (100u * US_PER_MS)
#define TX_RETRY_US 100u /* after this the worker tries again what was not taken */

struct tx {
	struct rte_mempool *pool;
	struct stats *stats;
	struct inject *inject; /* NULL: no faults */
	struct exchange *exchange; /* NULL: we send ourselves; else through worker `via` */
	unsigned int self, via;
	uint16_t port, queue;
	bool ip_offload, tcp_offload; /* the device computes these checksums */
	uint64_t stuck_us; /* since when nothing was taken; 0: not so */
	unsigned int n;
	struct rte_mbuf *frames[TX_QUEUE + INJECT_TX_ROOM];
};

/* An mbuf whose data area is `len` bytes of one piece, not initialised; NULL (counted) when none is free. */
struct rte_mbuf *tx_alloc(struct tx *tx, size_t len);

/* Queues a frame and consumes it; a full queue that the device does not drain drops it, counted. */
void tx_push(struct tx *tx, struct rte_mbuf *frame);

/* Gives what is queued to the device; returns the number of frames that left. */
unsigned int tx_burst(struct tx *tx);

/* The worker's turn: tx_burst, and drops (counted) what a device that takes nothing has left here for TX_STUCK_US. */
void tx_poll(struct tx *tx, struct now now);

static inline bool tx_has_room(const struct tx *tx)
{
	return tx->n < TX_QUEUE;
}

/* Drops what is queued. */
void tx_clear(struct tx *tx);

#endif
