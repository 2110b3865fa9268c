/*
 * tx.c - batches frames for rte_eth_tx_burst; keeps those that the device did not take for the next round.
 *
 * Invariant: n <= TX_QUEUE, except inside tx_burst, where injected duplicates may use the room behind.
 */
#include <rte_ethdev.h>

#include "dataplane/tx.h"
#include "muster/check.h"

struct rte_mbuf *tx_alloc(struct tx *tx, size_t len)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(tx->pool);
	if (unlikely(m == NULL || rte_pktmbuf_append(m, (uint16_t)len) == NULL)) {
		rte_pktmbuf_free(m);
		tx->stats->port_no_mbuf++;
		return NULL;
	}
	return m;
}

static void drop_beyond_queue(struct tx *tx)
{
	while (tx->n > TX_QUEUE) {
		rte_pktmbuf_free(tx->frames[--tx->n]);
		tx->stats->port_tx_full++;
	}
}

static unsigned int send_via(struct tx *tx)
{
	unsigned int given = exchange_give(tx->exchange, EXCHANGE_TO_SEND, tx->self, tx->via, (void *const *)tx->frames, tx->n);
	tx->n -= given;
	memmove(tx->frames, tx->frames + given, tx->n * sizeof(tx->frames[0]));
	return given;
}

unsigned int tx_burst(struct tx *tx)
{
	uint64_t bytes = 0;
	unsigned int sizes[TX_QUEUE + INJECT_TX_ROOM];
	if (tx->n == 0 && (tx->inject == NULL || !inject_pending(tx->inject)))
		return 0;
	if (tx->exchange != NULL)
		return send_via(tx);
	for (unsigned int i = 0; i < tx->n; i++)
		sizes[i] = rte_pktmbuf_pkt_len(tx->frames[i]);
	unsigned int sent = rte_eth_tx_burst(tx->port, tx->queue, tx->frames, (uint16_t)tx->n);
	for (unsigned int i = 0; i < sent && i < tx->n; i++)
		bytes += sizes[i];
	if (unlikely(tx->inject != NULL))
		tx->n = inject_tx_count(tx->inject);
	tx->stats->port_tx_frames += sent;
	tx->stats->port_tx_bytes += bytes;
	tx->n -= sent;
	memmove(tx->frames, tx->frames + sent, tx->n * sizeof(tx->frames[0]));
	drop_beyond_queue(tx);
	return sent;
}

void tx_poll(struct tx *tx, struct now now)
{
	unsigned int sent = tx_burst(tx);
	if (likely(tx->n == 0 || sent > 0)) {
		tx->stuck_us = 0;
	} else if (tx->stuck_us == 0) {
		tx->stuck_us = now.us;
	} else if (now.us - tx->stuck_us >= TX_STUCK_US) {
		tx->stats->port_tx_full += tx->n;
		tx_clear(tx);
		tx->stuck_us = 0;
	}
}

void tx_push(struct tx *tx, struct rte_mbuf *frame)
{
	CHECK(tx->n <= TX_QUEUE);
	if (unlikely(tx->n == TX_QUEUE && tx_burst(tx) == 0)) {
		tx->stats->port_tx_full++;
		rte_pktmbuf_free(frame);
		return;
	}
	tx->frames[tx->n++] = frame;
	if (tx->n % TX_BURST == 0) /* early, so that the device works while TCP fills more */
		tx_burst(tx);
}

void tx_clear(struct tx *tx)
{
	rte_pktmbuf_free_bulk(tx->frames, tx->n);
	tx->n = 0;
}
