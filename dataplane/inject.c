/*
 * inject.c - decides frame by frame, with its own generator for each direction, so that a seed repeats a run of the
 * same frames.
 *
 * A frame to reorder is taken out and put back behind a later one, at the latest after HOLD_BURSTS further bursts (also
 * empty ones).
 *
 * Invariant: every mbuf that comes in is passed on, held, or freed; exactly one of them.
 */
#include <rte_ethdev.h>
#include <stdlib.h>

#include "dataplane/inject.h"
#include "muster/check.h"

#define HOLD_BURSTS 64u
#define ETHER_LEN 14u
#define OUT_MAX 512u

struct inject_side {
	struct inject_rates rates;
	struct rte_mempool *pool;
	uint64_t random;
	struct rte_mbuf *held;
	unsigned int held_bursts;
};

struct inject {
	uint16_t port, queue;
	const struct rte_eth_rxtx_callback *rx_hook, *tx_hook;
	struct inject_side *rx, *tx;
	uint16_t tx_count; /* frames left after the last on_tx */
};

static uint64_t next_random(struct inject_side *s)
{
	s->random ^= s->random << 13;
	s->random ^= s->random >> 7;
	s->random ^= s->random << 17;
	return s->random * 0x2545f4914f6cdd1dull;
}

static bool happens(struct inject_side *s, unsigned int ppm)
{
	return ppm != 0 && (next_random(s) >> 32) % 1000000u < ppm;
}

static void damage(struct inject_side *s, struct rte_mbuf *m)
{
	uint8_t *p = rte_pktmbuf_mtod(m, uint8_t *);
	if (m->data_len <= ETHER_LEN || p[12] != 0x08 || p[13] != 0x00)
		return;
	uint64_t r = next_random(s) >> 16;
	p[ETHER_LEN + r / 8 % (m->data_len - ETHER_LEN)] ^= (uint8_t)(1u << r % 8);
	m->ol_flags &= ~(RTE_MBUF_F_RX_IP_CKSUM_MASK | RTE_MBUF_F_RX_L4_CKSUM_MASK);
}

static void put(struct rte_mbuf **out, uint16_t *n, struct rte_mbuf *m)
{
	CHECK(*n < OUT_MAX);
	out[(*n)++] = m;
}

/*
 * One frame through all the faults into `out`, which may have at most `max` in the end while `rest` frames are still to
 * come.
 */
static void pass(struct inject_side *s, struct rte_mbuf *m, struct rte_mbuf **out, uint16_t *n, unsigned int max,
		 unsigned int rest)
{
	if (happens(s, s->rates.loss)) {
		rte_pktmbuf_free(m);
		return;
	}
	if (happens(s, s->rates.corrupt))
		damage(s, m);
	unsigned int room = max - *n - rest - (s->held != NULL);
	struct rte_mbuf *twin = NULL;
	if (room >= 2 && happens(s, s->rates.duplicate))
		twin = rte_pktmbuf_copy(m, s->pool, 0, UINT32_MAX);
	if (s->held == NULL && happens(s, s->rates.reorder)) {
		s->held = m;
		s->held_bursts = 0;
		if (twin != NULL)
			put(out, n, twin);
		return;
	}
	put(out, n, m);
	if (twin != NULL)
		put(out, n, twin);
	if (s->held != NULL && *n + rest < max && (next_random(s) & 1) != 0) {
		put(out, n, s->held);
		s->held = NULL;
	}
}

uint16_t inject_burst(struct inject_side *s, struct rte_mbuf **frames, uint16_t n, uint16_t max)
{
	struct rte_mbuf *out[OUT_MAX];
	uint16_t m = 0;
	CHECK(n <= max && max <= OUT_MAX);
	for (uint16_t i = 0; i < n; i++)
		pass(s, frames[i], out, &m, max, n - i - 1u);
	if (s->held != NULL && ++s->held_bursts >= HOLD_BURSTS && m < max) {
		put(out, &m, s->held);
		s->held = NULL;
	}
	memcpy(frames, out, m * sizeof(out[0]));
	return m;
}

static uint16_t on_rx(uint16_t port, uint16_t queue, struct rte_mbuf **frames, uint16_t n, uint16_t max, void *arg)
{
	return inject_burst(arg, frames, n, max);
}

/* The transmitter (tx.c) has INJECT_TX_ROOM entries behind its frames, and asks afterwards how many became of them. */
static uint16_t on_tx(uint16_t port, uint16_t queue, struct rte_mbuf **frames, uint16_t n, void *arg)
{
	struct inject *inject = arg;
	inject->tx_count = inject_burst(inject->tx, frames, n, (uint16_t)(n + INJECT_TX_ROOM));
	return inject->tx_count;
}

struct inject_side *inject_side_new(const struct inject_rates *rates, uint64_t seed, struct rte_mempool *pool)
{
	struct inject_side *s = calloc(1, sizeof(*s));
	if (s == NULL)
		return NULL;
	s->rates = *rates;
	s->pool = pool;
	s->random = seed * 0x9e3779b97f4a7c15ull | 1;
	for (int i = 0; i < 8; i++)
		next_random(s);
	return s;
}

void inject_side_free(struct inject_side *s)
{
	if (s == NULL)
		return;
	rte_pktmbuf_free(s->held);
	free(s);
}

struct inject *inject_new(uint16_t port, uint16_t queue, const struct inject_rates *rates, uint64_t seed,
			  struct rte_mempool *pool)
{
	struct inject *inject = calloc(1, sizeof(*inject));
	if (inject == NULL)
		return NULL;
	inject->port = port;
	inject->queue = queue;
	inject->rx = inject_side_new(rates, seed, pool);
	inject->tx = inject_side_new(rates, seed + 1, pool);
	if (inject->rx != NULL && inject->tx != NULL) {
		inject->rx_hook = rte_eth_add_rx_callback(port, queue, on_rx, inject->rx);
		inject->tx_hook = rte_eth_add_tx_callback(port, queue, on_tx, inject);
	}
	if (inject->rx_hook == NULL || inject->tx_hook == NULL) {
		inject_free(inject);
		return NULL;
	}
	return inject;
}

void inject_free(struct inject *inject)
{
	if (inject == NULL)
		return;
	if (inject->rx_hook != NULL)
		rte_eth_remove_rx_callback(inject->port, inject->queue, inject->rx_hook);
	if (inject->tx_hook != NULL)
		rte_eth_remove_tx_callback(inject->port, inject->queue, inject->tx_hook);
	inject_side_free(inject->rx);
	inject_side_free(inject->tx);
	free(inject);
}

uint16_t inject_tx_count(const struct inject *inject)
{
	return inject->tx_count;
}

bool inject_pending(const struct inject *inject)
{
	return inject->rx->held != NULL || inject->tx->held != NULL;
}
