/*
 * in.c - a segment that arrived.
 *
 * Header prediction first: the next expected segment of an established connection, with the options in the usual layout and nothing unusual
 * going on, needs a few comparisons. Everything else is checked in the order of RFC 9293, 3.10.7, with the tighter rules of RFC 5961 for RST
 * and SYN, and RFC 7323 for timestamps.
 */
#include "dataplane/tcp/tcp_priv.h"

static void call_sendable(struct tcp_conn *conn, struct now now)
{
	struct tcp *tcp = conn->tcp;
	if (likely(!(conn->flags & CONN_OVER_LIMIT)) || tcp_conn_gone(conn) || conn->sendq.len >= tcp->cfg.send_buffer_bytes / 2)
		return;
	conn->flags &= ~(uint32_t)CONN_OVER_LIMIT;
	if (!(conn->flags & CONN_USER_CLOSED))
		tcp->ops->sendable(tcp->ctx, conn, now);
}

/* Returns false when the segment needs the long way; nothing has been changed then. */
static bool predicted(struct tcp_conn *conn, const struct segment *seg, const uint8_t *options, size_t options_len, struct now now)
{
	if (conn->state != TCP_ESTABLISHED || (seg->flags & ~TCP_PSH) != TCP_ACK || seg->seq != conn->rcv_nxt || (conn->flags & CONN_SLOW))
		return false;
	uint32_t acked = seg->ack - conn->snd_una;
	if (acked > conn->snd_nxt - conn->snd_una || (acked == 0 && seg->len == 0) || seg->len > conn->rcv_adv - conn->rcv_nxt)
		return false;
	uint32_t tsecr = 0;
	bool timestamps = conn->flags & CONN_TIMESTAMPS;
	if (timestamps) {
		if (options_len != OPT_TIMESTAMP_BYTES || wire_get32(options) != OPT_TIMESTAMP_HEAD)
			return false;
		uint32_t tsval = wire_get32(options + 4);
		if (seq_lt(tsval, conn->ts_recent))
			return false;
		tsecr = wire_get32(options + 8);
		if (seq_leq(seg->seq, conn->last_ack))
			conn->ts_recent = tsval;
	} else if (options_len != 0) {
		return false;
	}
	conn->tcp->stats->tcp_predicted++;
	conn->last_rx_us = now.us;
	conn->snd_wl1 = seg->seq;
	conn->snd_wl2 = seg->ack;
	conn->snd_wnd = (uint32_t)seg->window << conn->snd_scale;
	if (conn->snd_wnd > conn->snd_wnd_max)
		conn->snd_wnd_max = conn->snd_wnd;
	if (acked > 0)
		tcp_in_acked(conn, seg->ack, timestamps, tsecr, now);
	if (conn->sendq.len > 0)
		tcp_conn_dirty(conn);
	if (seg->len > 0) {
		if (seg->len > conn->rcv_mss)
			conn->rcv_mss = (uint16_t)(seg->len < conn->tcp->mss ? seg->len : conn->tcp->mss);
		tcp_in_deliver(conn, seg->payload, seg->len, now);
	}
	call_sendable(conn, now);
	return true;
}

/* ---- the long way ---- */

/* Some part of it lies in [rcv_nxt, rcv_adv]; an empty one may stand at the right edge, where a peer that used the window up is. */
static bool acceptable(const struct tcp_conn *conn, const struct segment *seg)
{
	uint32_t len = seg->len + (seg->flags & TCP_SYN ? 1 : 0) + (seg->flags & TCP_FIN ? 1 : 0);
	if (seq_gt(seg->seq, conn->rcv_adv))
		return false;
	return len == 0 ? seq_geq(seg->seq, conn->rcv_nxt) : seq_gt(seg->seq + len, conn->rcv_nxt);
}

/* RST of a synchronized state: exact number, or a challenge (RFC 5961, 3.2). */
static void on_reset(struct tcp_conn *conn, const struct segment *seg, struct now now)
{
	struct tcp *tcp = conn->tcp;
	if (seg->seq == conn->rcv_nxt) {
		tcp->stats->tcp_resets_in++;
		bool opening = conn->state == TCP_SYN_RCVD && (conn->flags & CONN_ACTIVE);
		tcp_conn_end(conn, opening ? TCP_END_REFUSED : TCP_END_RESET, now);
	} else if (seq_gt(seg->seq, conn->rcv_nxt) && seq_lt(seg->seq, conn->rcv_adv)) {
		if (tcp_out_limited_ack(conn, now))
			tcp->stats->tcp_challenge_acks++;
	} else {
		tcp->stats->tcp_out_of_window++;
	}
}

static void on_syn(struct tcp_conn *conn, const struct segment *seg, struct now now)
{
	if (conn->state == TCP_SYN_RCVD && seg->seq == conn->irs && !(seg->flags & TCP_ACK)) {
		/* Our answer got lost; at most once per time-out, the timer does the same. */
		if (conn->challenge_us == 0 || now.us - conn->challenge_us >= TCP_CHALLENGE_GAP_US) {
			conn->challenge_us = now.us;
			conn->retries += conn->retries == 0; /* sent twice: not timed */
			tcp_out_syn(conn, now);
		}
		return;
	}
	if (tcp_out_limited_ack(conn, now))
		conn->tcp->stats->tcp_challenge_acks++;
}

/* PAWS (RFC 7323, 5.3). False: drop. */
static bool timestamp_acceptable(struct tcp_conn *conn, const struct segment *seg, struct now now)
{
	if (!(conn->flags & CONN_TIMESTAMPS) || (seg->flags & TCP_RST))
		return true;
	if (!seg->opt.has_timestamp) {
		conn->tcp->stats->tcp_paws++;
		return false;
	}
	if (seq_lt(seg->opt.tsval, conn->ts_recent) && now.us - conn->last_rx_us < TCP_PAWS_IDLE_US) {
		conn->tcp->stats->tcp_paws++;
		if (seg->len > 0 || (seg->flags & TCP_FIN))
			tcp_conn_ack_now(conn);
		else
			tcp_out_limited_ack(conn, now);
		return false;
	}
	return true;
}

static void on_syn_sent(struct tcp_conn *conn, const struct tcp_tuple *tuple, const struct segment *seg, struct now now)
{
	struct tcp *tcp = conn->tcp;
	if ((seg->flags & TCP_ACK) && seg->ack != conn->snd_nxt) {
		tcp_out_reset_stray(tcp, tuple, seg);
		return;
	}
	if (seg->flags & TCP_RST) {
		if (seg->flags & TCP_ACK) {
			tcp->stats->tcp_resets_in++;
			tcp_conn_end(conn, TCP_END_REFUSED, now);
		}
		return;
	}
	if (!(seg->flags & TCP_SYN))
		return;
	conn->last_rx_us = now.us;
	tcp_listen_learn_syn(conn, seg, now);
	if (seg->flags & TCP_ACK) {
		/* What the SYN-ACK may carry besides is left to be sent again. */
		conn->rcv_adv = conn->rcv_nxt + tcp_out_window(conn);
		if (tcp_listen_established(conn, seg, now))
			tcp_conn_ack_now(conn);
	} else {
		tcp_conn_set_state(conn, TCP_SYN_RCVD);
		tcp_out_syn(conn, now);
		tcp_timer_rexmit(conn, now);
	}
}

static void on_time_wait(struct tcp_conn *conn, const struct tcp_tuple *tuple, const struct segment *seg, struct now now)
{
	struct tcp *tcp = conn->tcp;
	if (seg->flags & TCP_RST) {
		if (seg->seq == conn->rcv_nxt)
			tcp_conn_end(conn, TCP_END_NORMAL, now);
		return;
	}
	if ((seg->flags & (TCP_SYN | TCP_ACK | TCP_FIN)) == TCP_SYN && tcp_listening(tcp, tuple->local_port)) {
		/* A new connection of the same tuple: certainly newer by timestamp (RFC 6191) or by sequence number (RFC 9293, 3.6.1). */
		bool both = (conn->flags & CONN_TIMESTAMPS) && seg->opt.has_timestamp;
		bool newer = both && seg->opt.tsval != conn->ts_recent ? seq_gt(seg->opt.tsval, conn->ts_recent)
								       : seq_gt(seg->seq, conn->rcv_nxt);
		if (newer) {
			uint32_t floor = conn->snd_nxt + UINT16_MAX + 2;
			tcp_conn_end(conn, TCP_END_NORMAL, now);
			tcp_listen_accept(tcp, tuple, seg, &floor, now);
			return;
		}
	}
	if (seg->flags & TCP_FIN) {
		conn->life_at = now.us + tcp->cfg.time_wait_us;
		TAILQ_REMOVE(&tcp->time_wait, conn, age);
		TAILQ_INSERT_TAIL(&tcp->time_wait, conn, age);
	}
	if (seg->len > 0 || (seg->flags & (TCP_SYN | TCP_FIN)))
		tcp_out_limited_ack(conn, now);
}

static void not_acceptable(struct tcp_conn *conn, const struct segment *seg, struct now now)
{
	conn->tcp->stats->tcp_out_of_window++;
	/* Data that came before is acknowledged at once. An empty segment may be an answer to ours: two such peers must not talk for ever. */
	if (seg->len > 0 || (seg->flags & TCP_FIN))
		tcp_conn_ack_now(conn);
	else
		tcp_out_limited_ack(conn, now);
}

/* SYN_RCVD and later. */
static void on_segment(struct tcp_conn *conn, const struct tcp_tuple *tuple, const struct segment *seg, struct now now)
{
	if (!timestamp_acceptable(conn, seg, now))
		return;
	if (seg->flags & TCP_RST) {
		on_reset(conn, seg, now);
		return;
	}
	if (seg->flags & TCP_SYN) {
		on_syn(conn, seg, now);
		return;
	}
	conn->last_rx_us = now.us;
	conn->probes = 0;
	conn->flags &= ~(uint32_t)CONN_PROBED;
	if (!acceptable(conn, seg)) {
		not_acceptable(conn, seg, now);
		return;
	}
	if (!(seg->flags & TCP_ACK))
		return;
	if ((conn->flags & CONN_TIMESTAMPS) && seq_leq(seg->seq, conn->last_ack) && seq_geq(seg->opt.tsval, conn->ts_recent))
		conn->ts_recent = seg->opt.tsval;
	if (conn->state == TCP_SYN_RCVD) {
		if (seg->ack != conn->snd_nxt) {
			tcp_out_reset_stray(conn->tcp, tuple, seg);
			return;
		}
		if (!tcp_listen_established(conn, seg, now))
			return;
	}
	if (!tcp_in_ack(conn, seg, now))
		return;
	tcp_in_data(conn, seg, now);
	call_sendable(conn, now);
}

static bool parse_header(struct segment *seg, const uint8_t *p, size_t len, const uint8_t **options, size_t *options_len)
{
	struct reader r = reader_of(p, len);
	const uint8_t *h = reader_take(&r, TCP_HEADER_BYTES);
	if (h == NULL)
		return false;
	unsigned int header_len = (h[12] >> 4) * 4u;
	if (header_len < TCP_HEADER_BYTES)
		return false;
	*options_len = header_len - TCP_HEADER_BYTES;
	*options = reader_take(&r, *options_len);
	if (*options == NULL)
		return false;
	seg->seq = wire_get32(h + 4);
	seg->ack = wire_get32(h + 8);
	seg->flags = h[13] & 0x3f;
	seg->window = wire_get16(h + 14);
	seg->payload = r.p;
	seg->len = (uint32_t)reader_left(&r);
	return true;
}

void tcp_input(struct tcp *tcp, struct tcp_conn *conn, const struct tcp_tuple *tuple, const uint8_t *segment, size_t len,
	       struct now now)
{
	struct segment seg;
	const uint8_t *options;
	size_t options_len;
	tcp->stats->tcp_segments_in++;
	if (unlikely(len > UINT16_MAX || !parse_header(&seg, segment, len, &options, &options_len))) {
		tcp->stats->tcp_bad_header++;
		return;
	}
	if (likely(conn != NULL) && predicted(conn, &seg, options, options_len, now))
		return;
	if (!opt_parse(&seg.opt, options, options_len))
		tcp->stats->tcp_bad_option++;
	if (conn == NULL || conn->state == TCP_CLOSED)
		tcp_listen_input(tcp, tuple, &seg, now);
	else if (conn->flags & CONN_ABORT)
		return;
	else if (conn->state == TCP_SYN_SENT)
		on_syn_sent(conn, tuple, &seg, now);
	else if (conn->state == TCP_TIME_WAIT)
		on_time_wait(conn, tuple, &seg, now);
	else
		on_segment(conn, tuple, &seg, now);
}
