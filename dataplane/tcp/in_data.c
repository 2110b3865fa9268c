/*
 * in_data.c - the bytes and the FIN of a segment that arrived (RFC 9293, 3.10.7.4, seventh and eighth).
 *
 * In-order bytes go straight up and are acknowledged with what leaves next, or every second full segment, or after the delay (RFC
 * 5681, 4.2). Bytes ahead of a gap are kept, and each such segment is answered at once, so that the sender counts its duplicates.
 */
#include "dataplane/tcp/tcp_priv.h"

void tcp_in_deliver(struct tcp_conn *conn, const uint8_t *p, uint32_t len, struct now now)
{
	struct tcp *tcp = conn->tcp;
	conn->rcv_nxt += len;
	conn->last_data_us = now.us;
	if (conn->flags & CONN_USER_CLOSED)
		conn->life_at = now.us + TCP_ORPHAN_US;
	bool at_once = conn->rcv_nxt - conn->last_ack >= 2u * conn->rcv_mss || tcp->cfg.delayed_ack_us == 0;
	conn->flags |= at_once ? CONN_ACK_NOW : CONN_ACK_SOON;
	tcp_conn_dirty(conn);
	tcp->ops->data(tcp->ctx, conn, p, len, now);
}

static void reass_changed(struct tcp_conn *conn, uint32_t blocks_before)
{
	conn->tcp->reass_blocks += conn->reass.blocks - blocks_before;
	if (conn->reass.blocks > 0)
		conn->flags |= CONN_REASS;
	else
		conn->flags &= ~(uint32_t)CONN_REASS;
}

static void keep(struct tcp_conn *conn, uint32_t seq, const uint8_t *p, uint32_t len, struct now now)
{
	struct tcp *tcp = conn->tcp;
	uint32_t before = conn->reass.blocks;
	uint32_t total_left = tcp->reass_blocks_max > tcp->reass_blocks ? tcp->reass_blocks_max - tcp->reass_blocks : 0;
	uint32_t max = before + total_left < tcp->reass_max_blocks ? before + total_left : tcp->reass_max_blocks;
	if (reass_insert(&conn->reass, &tcp->pool, seq, p, len, max))
		tcp->stats->tcp_out_of_order++;
	else
		tcp->stats->tcp_out_of_order_dropped++;
	reass_changed(conn, before);
	if (!tcp_out_bare(conn, conn->snd_nxt, 0, now))
		tcp_conn_ack_now(conn);
}

/* Delivers what a filled gap has made in order. */
static void drain(struct tcp_conn *conn, struct now now)
{
	for (;;) {
		const uint8_t *p;
		uint32_t before = conn->reass.blocks;
		uint32_t n = reass_front(&conn->reass, &conn->tcp->pool, conn->rcv_nxt, &p);
		reass_changed(conn, before);
		tcp_conn_ack_now(conn);
		if (n == 0)
			return;
		tcp_in_deliver(conn, p, n, now);
		if (tcp_conn_gone(conn))
			return;
	}
}

static void fin_in_order(struct tcp_conn *conn, struct now now)
{
	struct tcp *tcp = conn->tcp;
	uint32_t before = conn->reass.blocks;
	reass_clear(&conn->reass, &tcp->pool);
	reass_changed(conn, before);
	conn->flags &= ~(uint32_t)CONN_FIN_AHEAD;
	conn->rcv_nxt++;
	tcp_conn_ack_now(conn);
	if (conn->state == TCP_ESTABLISHED)
		tcp_conn_set_state(conn, TCP_CLOSE_WAIT);
	else if (conn->state == TCP_FIN_WAIT_1)
		tcp_conn_set_state(conn, TCP_CLOSING);
	tcp->ops->fin(tcp->ctx, conn, now);
	if (conn->state == TCP_FIN_WAIT_2 && !tcp_conn_gone(conn))
		tcp_conn_time_wait(conn, now);
}

/* Cuts [*seq, *seq + *len) and the FIN behind it to what is new and inside the window. */
static void trim(struct tcp_conn *conn, uint32_t *seq, const uint8_t **p, uint32_t *len, bool *fin)
{
	uint32_t old = seq_ahead(conn->rcv_nxt, *seq);
	uint32_t cut = old < *len ? old : *len;
	*seq += cut;
	*p += cut;
	*len -= cut;
	uint32_t edge = conn->rcv_adv;
	if (conn->flags & CONN_FIN_AHEAD)
		edge = seq_min(edge, conn->fin_seq);
	uint32_t over = seq_ahead(*seq + *len, edge);
	if (over > 0 || (*fin && *seq + *len == conn->rcv_adv)) {
		*len -= over < *len ? over : *len;
		*fin = false;
		conn->tcp->stats->tcp_out_of_window++;
		tcp_conn_ack_now(conn);
	}
}

void tcp_in_data(struct tcp_conn *conn, const struct segment *seg, struct now now)
{
	if (conn->state != TCP_ESTABLISHED && conn->state != TCP_FIN_WAIT_1 && conn->state != TCP_FIN_WAIT_2)
		return;
	uint32_t seq = seg->seq, len = seg->len;
	const uint8_t *p = seg->payload;
	bool fin = seg->flags & TCP_FIN;
	if (len == 0 && !fin)
		return;
	if (len > conn->rcv_mss)
		conn->rcv_mss = (uint16_t)(len < conn->tcp->mss ? len : conn->tcp->mss);
	trim(conn, &seq, &p, &len, &fin);
	if (fin && !(conn->flags & CONN_FIN_AHEAD)) {
		conn->flags |= CONN_FIN_AHEAD;
		conn->fin_seq = seq + len;
	}
	if (len > 0 && seq == conn->rcv_nxt) {
		tcp_in_deliver(conn, p, len, now);
		if (!tcp_conn_gone(conn) && (conn->flags & CONN_REASS))
			drain(conn, now);
	} else if (len > 0) {
		keep(conn, seq, p, len, now);
	} else if (fin) {
		tcp_conn_ack_now(conn);
	}
	if (!tcp_conn_gone(conn) && (conn->flags & CONN_FIN_AHEAD) && conn->rcv_nxt == conn->fin_seq)
		fin_in_order(conn, now);
}
