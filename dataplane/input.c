/*
 * input.c - a receive burst, in passes over all its frames, each pass touching the memory that the next one needs:
 *
 *   0. what is for another worker goes to it by a ring; of ARP that others may wait for, they get a copy, and only the receiver answers
 *   1. prefetch the headers   2. Ethernet, IPv4 and checksums; ARP and ICMP are done here   3. connections, all looked up at once
 *   4. prefetch the connections   5. TCP, which calls the framing and the service
 *
 * Invariants:
 *  1. An mbuf lives until the end of the burst: everything above works in place on its bytes.
 *  2. TCP changes the flow table while it works through a burst (a SYN, a RST); a result of pass 3 that is older than
 *     such a change is looked up again.
 */
#include <rte_ip.h>
#include <rte_prefetch.h>
#include <rte_tcp.h>

#include "dataplane/ether.h"
#include "dataplane/worker.h"
#include "muster/check.h"

struct arrived {
	struct tcp_tuple tuple;
	const uint8_t *segment;
	size_t len;
};

static bool ip_checksum_done(const struct worker *w, const struct rte_mbuf *m)
{
	return w->rx_ip_checksum && (m->ol_flags & RTE_MBUF_F_RX_IP_CKSUM_MASK) == RTE_MBUF_F_RX_IP_CKSUM_GOOD;
}

/*
 * What the device says counts: GOOD, and NONE (the field is wrong or only begun, the data is intact: virtio) are taken;
 * BAD is dropped; only where it says nothing we compute.
 */
static bool tcp_checksum_ok(const struct worker *w, const struct rte_mbuf *m, const uint8_t *ip, const uint8_t *segment)
{
	uint64_t flags = w->rx_tcp_checksum ? m->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK : RTE_MBUF_F_RX_L4_CKSUM_UNKNOWN;
	if (flags == RTE_MBUF_F_RX_L4_CKSUM_GOOD || flags == RTE_MBUF_F_RX_L4_CKSUM_NONE)
		return true;
	if (flags == RTE_MBUF_F_RX_L4_CKSUM_BAD)
		return false;
	return rte_ipv4_udptcp_cksum((const struct rte_ipv4_hdr *)ip, segment) == 0; /* summed up with the field itself */
}

static bool input_tcp(struct worker *w, const struct rte_mbuf *m, const uint8_t *ip, const struct ipv4_packet *packet,
		      struct arrived *out)
{
	const uint8_t *p = packet->payload;
	if (unlikely(packet->len < sizeof(struct rte_tcp_hdr))) {
		w->stats.tcp_bad_header++;
		return false;
	}
	if (unlikely(!tcp_checksum_ok(w, m, ip, p))) {
		w->stats.tcp_bad_checksum++;
		return false;
	}
	out->tuple = (struct tcp_tuple){
		.local_addr = packet->dst,
		.remote_addr = packet->src,
		.local_port = (uint16_t)(p[2] << 8 | p[3]),
		.remote_port = (uint16_t)(p[0] << 8 | p[1]),
	};
	out->segment = p;
	out->len = packet->len;
	return true;
}

/* Takes one frame as far as TCP's input, or does what it asks for. True: `out` is a segment for TCP. `heard`: another worker received and answers it. */
static bool input_frame(struct worker *w, struct rte_mbuf *m, bool heard, struct arrived *out)
{
	struct ipv4_packet packet;
	if (unlikely(m->nb_segs > 1 && rte_pktmbuf_linearize(m) != 0)) {
		w->stats.ether_short++;
		return false;
	}
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *), *payload = frame + ETHER_HEADER_LEN;
	size_t len = m->data_len;
	switch (ether_classify(w->mac, frame, len, &w->stats)) {
	case ETHER_IPV4:
		if (!ipv4_input(&w->self, payload, len - ETHER_HEADER_LEN, ip_checksum_done(w, m), &w->stats, &packet))
			return false;
		if (likely(packet.protocol == IPPROTO_TCP))
			return input_tcp(w, m, payload, &packet, out);
		if (packet.protocol != IPPROTO_ICMP)
			w->stats.ipv4_other_protocol++;
		else if (icmp_input(&w->icmp, packet.payload, packet.len, &w->stats, w->now))
			worker_send_echo(w, &packet);
		return false;
	case ETHER_ARP:
		(heard ? arp_overhear : arp_input)(w->arp, payload, len - ETHER_HEADER_LEN, w->now);
		return false;
	case ETHER_DROP:
		return false;
	}
	return false;
}

static void input_segments(struct worker *w, const struct arrived *in, unsigned int n)
{
	const struct tcp_tuple *tuples[WORKER_RX_BURST];
	struct tcp_conn *conns[WORKER_RX_BURST];
	for (unsigned int i = 0; i < n; i++)
		tuples[i] = &in[i].tuple;
	flow_find_bulk(w->flow, tuples, n, conns);
	for (unsigned int i = 0; i < n; i++)
		rte_prefetch0(conns[i]);
	uint64_t generation = flow_generation(w->flow);
	for (unsigned int i = 0; i < n; i++) {
		struct tcp_conn *conn = conns[i];
		if (unlikely(generation != flow_generation(w->flow)))
			conn = flow_find(w->flow, tuples[i]);
		tcp_input(w->tcp, conn, tuples[i], in[i].segment, in[i].len, w->now);
	}
}

static void input_burst(struct worker *w, struct rte_mbuf *frames[], unsigned int n, bool heard)
{
	struct arrived segments[WORKER_RX_BURST];
	unsigned int count = 0;
	for (unsigned int i = 0; i < n; i++)
		if (input_frame(w, frames[i], heard, &segments[count]))
			count++;
	if (count > 0)
		input_segments(w, segments, count);
	rte_pktmbuf_free_bulk(frames, n);
}

/* ---- between workers ---- */

static void hand_over(struct worker *w, unsigned int to, struct rte_mbuf *m)
{
	void *frame = m;
	if (exchange_give(w->exchange, EXCHANGE_RECEIVED, w->index, to, &frame, 1) == 1)
		return;
	w->stats.steer_full++;
	rte_pktmbuf_free(m);
}

static void copy_to_all(struct worker *w, struct rte_mbuf *m)
{
	for (unsigned int to = 0; to < exchange_workers(w->exchange); to++) {
		if (to == w->index || !exchange_has_much_room(w->exchange, EXCHANGE_RECEIVED, w->index, to))
			continue; /* a flood of ARP leaves room for the rest */
		struct rte_mbuf *copy = rte_pktmbuf_copy(m, w->pool, 0, UINT32_MAX);
		if (copy != NULL)
			hand_over(w, to, copy);
		else
			w->stats.port_no_mbuf++;
	}
}

/* Takes out of `frames` what is for others; returns how many are left. */
static unsigned int sort_out(struct worker *w, struct rte_mbuf *frames[], unsigned int n)
{
	unsigned int left = 0;
	for (unsigned int i = 0; i < n; i++) {
		struct rte_mbuf *m = frames[i];
		const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
		unsigned int owner = steer_frame(&w->steer, w->index, frame, m->data_len);
		if (owner != w->index) {
			w->stats.steer_handed_over++;
			hand_over(w, owner, m);
			continue;
		}
		if (unlikely(steer_is_arp_news(frame, m->data_len)))
			copy_to_all(w, m);
		frames[left++] = m;
	}
	return left;
}

unsigned int worker_take_over(struct worker *w)
{
	struct rte_mbuf *frames[WORKER_RX_BURST];
	unsigned int work = 0;
	if (w->exchange == NULL)
		return 0;
	for (unsigned int from = 0; from < exchange_workers(w->exchange); from++) {
		if (from == w->index)
			continue;
		unsigned int n = exchange_take(w->exchange, EXCHANGE_RECEIVED, from, w->index, (void **)frames, WORKER_RX_BURST);
		w->stats.steer_taken_over += n;
		work += n;
		if (n > 0)
			input_burst(w, frames, n, true);
		unsigned int room = w->shares_queue ? RTE_MIN(TX_QUEUE - w->tx.n, WORKER_RX_BURST) : 0;
		n = room == 0 ? 0 : exchange_take(w->exchange, EXCHANGE_TO_SEND, from, w->index, (void **)frames, room);
		w->stats.steer_sent_for_others += n;
		work += n;
		for (unsigned int i = 0; i < n; i++)
			tx_push(&w->tx, frames[i]);
	}
	return work;
}

unsigned int worker_receive(struct worker *w)
{
	struct rte_mbuf *frames[WORKER_RX_BURST];
	rx_fd_nudge(&w->idle.rx);
	unsigned int n = w->has_queue ? rte_eth_rx_burst(w->port_id, w->queue, frames, WORKER_RX_BURST) : 0, mine = n;
	if (n == 0)
		return 0;
	for (unsigned int i = 0; i < n; i++)
		rte_prefetch0(rte_pktmbuf_mtod(frames[i], const void *));
	for (unsigned int i = 0; i < n; i++)
		w->stats.port_rx_bytes += frames[i]->pkt_len;
	w->stats.port_rx_frames += n;
	if (w->exchange != NULL)
		mine = sort_out(w, frames, n);
	input_burst(w, frames, mine, false);
	return n;
}
