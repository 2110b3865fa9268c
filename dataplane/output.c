/*
 * output.c - from TCP, ICMP and ARP down to frames.
 *
 *   | Ethernet 14 | IPv4 20 | TCP segment |   one mbuf; TCP writes its segment in place, the headers in front follow in tx_send
 *
 * Invariant: `segment` is the one mbuf that TCP has got and not sent yet.
 */
#include <rte_ip.h>
#include <rte_tcp.h>

#include "dataplane/ether.h"
#include "dataplane/worker.h"
#include "muster/check.h"

#define FRONT_LEN (ETHER_HEADER_LEN + IPV4_HEADER_LEN)

/* ---- frames ---- */

static void send_to(struct worker *w, struct rte_mbuf *m, const uint8_t dst[6], uint16_t type)
{
	ether_header(rte_pktmbuf_mtod(m, uint8_t *), dst, w->mac, type);
	tx_push(&w->tx, m);
}

/* Consumes an IPv4 packet whose Ethernet header is still empty. */
static void send_ipv4(struct worker *w, struct rte_mbuf *m, uint32_t dst)
{
	uint32_t hop = ipv4_next_hop(&w->self, dst);
	if (unlikely(hop == 0)) {
		w->stats.ipv4_no_route++;
		rte_pktmbuf_free(m);
		return;
	}
	const uint8_t *mac = arp_lookup(w->arp, hop, w->now);
	if (likely(mac != NULL))
		send_to(w, m, mac, RTE_ETHER_TYPE_IPV4);
	else
		arp_hold(w->arp, hop, m, w->now);
}

/* ---- ARP ---- */

static void op_arp_send(void *ctx, const uint8_t packet[ARP_PACKET_LEN], const uint8_t dst[6])
{
	struct worker *w = ctx;
	struct rte_mbuf *m = tx_alloc(&w->tx, ETHER_HEADER_LEN + ARP_PACKET_LEN);
	if (m == NULL)
		return;
	memcpy(rte_pktmbuf_mtod_offset(m, uint8_t *, ETHER_HEADER_LEN), packet, ARP_PACKET_LEN);
	send_to(w, m, dst, RTE_ETHER_TYPE_ARP);
}

static void op_arp_forward(void *ctx, void *packet, const uint8_t dst[6])
{
	send_to(ctx, packet, dst, RTE_ETHER_TYPE_IPV4);
}

static void op_arp_drop(void *ctx, void *packet)
{
	rte_pktmbuf_free(packet);
}

const struct arp_ops worker_arp_ops = {.send = op_arp_send, .forward = op_arp_forward, .drop = op_arp_drop};

/* ---- ICMP ---- */

void worker_send_echo(struct worker *w, const struct ipv4_packet *request)
{
	if (IPV4_HEADER_LEN + request->len > w->cfg->mtu)
		return;
	struct rte_mbuf *m = tx_alloc(&w->tx, FRONT_LEN + request->len);
	if (m == NULL)
		return;
	uint8_t *ip = rte_pktmbuf_mtod_offset(m, uint8_t *, ETHER_HEADER_LEN);
	ipv4_header(ip, w->self.addr, request->src, IPPROTO_ICMP, request->len, false);
	icmp_reply(ip + IPV4_HEADER_LEN, request->payload, request->len);
	send_ipv4(w, m, request->src);
}

/* ---- TCP ---- */

static uint8_t *op_tx_get(void *ctx, const struct tcp_tuple *tuple, size_t len)
{
	struct worker *w = ctx;
	CHECK(w->segment == NULL && IPV4_HEADER_LEN + len <= w->cfg->mtu);
	if (unlikely(!tx_has_room(&w->tx) && tx_burst(&w->tx) == 0))
		return NULL;
	w->segment = tx_alloc(&w->tx, FRONT_LEN + len);
	return w->segment == NULL ? NULL : rte_pktmbuf_mtod_offset(w->segment, uint8_t *, FRONT_LEN);
}

static void op_tx_send(void *ctx, const struct tcp_tuple *tuple, uint8_t *segment, size_t len)
{
	struct worker *w = ctx;
	struct rte_mbuf *m = w->segment;
	CHECK(m != NULL && segment == rte_pktmbuf_mtod_offset(m, uint8_t *, FRONT_LEN));
	CHECK(rte_pktmbuf_pkt_len(m) == FRONT_LEN + len);
	w->segment = NULL;
	struct rte_ipv4_hdr *ip = rte_pktmbuf_mtod_offset(m, struct rte_ipv4_hdr *, ETHER_HEADER_LEN);
	struct rte_tcp_hdr *tcp = (struct rte_tcp_hdr *)segment;
	ipv4_header((uint8_t *)ip, tuple->local_addr, tuple->remote_addr, IPPROTO_TCP, len, w->tx.ip_offload);
	if (w->tx.ip_offload || w->tx.tcp_offload) {
		m->l2_len = ETHER_HEADER_LEN;
		m->l3_len = IPV4_HEADER_LEN;
		m->l4_len = (uint64_t)(tcp->data_off >> 4) * 4;
		m->ol_flags |= RTE_MBUF_F_TX_IPV4 | (w->tx.ip_offload ? RTE_MBUF_F_TX_IP_CKSUM : 0) |
			       (w->tx.tcp_offload ? RTE_MBUF_F_TX_TCP_CKSUM : 0);
	}
	tcp->cksum = 0;
	tcp->cksum = w->tx.tcp_offload ? rte_ipv4_phdr_cksum(ip, m->ol_flags) : rte_ipv4_udptcp_cksum(ip, tcp);
	send_ipv4(w, m, tuple->remote_addr);
}

static bool op_flow_add(void *ctx, struct tcp_conn *conn)
{
	return flow_add(((struct worker *)ctx)->flow, conn);
}

static void op_flow_remove(void *ctx, struct tcp_conn *conn)
{
	flow_remove(((struct worker *)ctx)->flow, conn);
}

static bool op_established(void *ctx, struct tcp_conn *conn, struct now now)
{
	struct worker *w = ctx;
	return w->phase == WORKER_RUNNING && frames_established(w->frames, conn, now);
}

static void op_data(void *ctx, struct tcp_conn *conn, const uint8_t *p, size_t len, struct now now)
{
	frames_data(((struct worker *)ctx)->frames, conn, p, len, now);
}

static void op_fin(void *ctx, struct tcp_conn *conn, struct now now)
{
	frames_fin(((struct worker *)ctx)->frames, conn, now);
}

static void op_sendable(void *ctx, struct tcp_conn *conn, struct now now)
{
	frames_sendable(((struct worker *)ctx)->frames, conn, now);
}

static void op_closed(void *ctx, struct tcp_conn *conn, enum tcp_end how, struct now now)
{
	frames_closed(((struct worker *)ctx)->frames, conn, how, now);
}

const struct tcp_ops worker_tcp_ops = {
	.tx_get = op_tx_get,
	.tx_send = op_tx_send,
	.flow_add = op_flow_add,
	.flow_remove = op_flow_remove,
	.established = op_established,
	.data = op_data,
	.fin = op_fin,
	.sendable = op_sendable,
	.closed = op_closed,
};
