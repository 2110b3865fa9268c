/*
 * out.c - segments that leave.
 *
 * tcp_flush walks the dirty list. Per connection: first what is lost, then new data as far as the congestion window and the peer's window
 * allow, each segment carrying the acknowledgement; only when none went out and an ACK must go now, a bare one. No Nagle: replies leave
 * at once; but no segment is cut small because the window is (RFC 9293, 3.8.6.2.1).
 */
#include "dataplane/tcp/tcp_priv.h"

static void put_header(uint8_t *p, const struct tcp_tuple *tuple, uint32_t seq, uint32_t ack, size_t header_len, uint8_t flags,
		       uint16_t window)
{
	wire_put16(p, tuple->local_port);
	wire_put16(p + 2, tuple->remote_port);
	wire_put32(p + 4, seq);
	wire_put32(p + 8, ack);
	p[12] = (uint8_t)(header_len / 4 << 4);
	p[13] = flags;
	wire_put16(p + 14, window);
	wire_put32(p + 16, 0); /* checksum: the lower layer; urgent pointer: never */
}

uint32_t tcp_out_window(const struct tcp_conn *conn)
{
	uint32_t max = (uint32_t)conn->tcp->cfg.receive_buffer_bytes;
	uint32_t limit = (uint32_t)UINT16_MAX << conn->rcv_scale;
	uint32_t window = conn->held < max ? max - conn->held : 0;
	return window < limit ? window : limit;
}

/* Moves the right edge and returns the window field for it. */
static uint16_t offer_window(struct tcp_conn *conn)
{
	uint32_t edge = conn->rcv_nxt + tcp_out_window(conn);
	uint32_t gain = seq_ahead(edge, conn->rcv_adv);
	uint32_t half = (uint32_t)conn->tcp->cfg.receive_buffer_bytes / 2;
	/* Silly-window avoidance: a closed window opens by a full segment at least. */
	if (gain >= conn->tcp->mss || gain >= half)
		conn->rcv_adv = edge;
	uint32_t field = seq_ahead(conn->rcv_adv, conn->rcv_nxt) >> conn->rcv_scale;
	return (uint16_t)(field < UINT16_MAX ? field : UINT16_MAX);
}

/* Timestamps and, where `room` bytes allow, SACK ranges. */
static size_t put_options(struct tcp_conn *conn, uint8_t *p, unsigned int sacks, const struct opt_sack *sack, struct now now)
{
	size_t n = 0;
	if (conn->flags & CONN_TIMESTAMPS)
		n = opt_write_timestamp(p, tcp_conn_timestamp(conn, now), conn->ts_recent);
	return n + opt_write_sack(p + n, sack, sacks);
}

/* One segment of an established connection: `len` bytes at `seq` from the send queue. False: no room below. */
static bool send_segment(struct tcp_conn *conn, uint32_t seq, uint32_t len, uint8_t flags, struct now now)
{
	struct tcp *tcp = conn->tcp;
	struct opt_sack sack[OPT_MAX_SACK];
	unsigned int sacks = 0;
	size_t header_len = TCP_HEADER_BYTES + (conn->flags & CONN_TIMESTAMPS ? OPT_TIMESTAMP_BYTES : 0);
	if (unlikely((conn->flags & (CONN_REASS | CONN_SACK)) == (CONN_REASS | CONN_SACK))) {
		unsigned int max = conn->flags & CONN_TIMESTAMPS ? OPT_MAX_SACK - 1 : OPT_MAX_SACK;
		while (max > 0 && len + opt_sack_bytes(max) > conn->mss)
			max--;
		sacks = max > 0 ? reass_sack(&conn->reass, sack, max) : 0;
		header_len += opt_sack_bytes(sacks);
	}
	uint8_t *p = tcp->ops->tx_get(tcp->ctx, &conn->tuple, header_len + len);
	if (unlikely(p == NULL))
		return false;
	put_header(p, &conn->tuple, seq, conn->rcv_nxt, header_len, flags | TCP_ACK, offer_window(conn));
	put_options(conn, p + TCP_HEADER_BYTES, sacks, sack, now);
	if (len > 0)
		sendq_copy(&conn->sendq, seq - conn->snd_una, len, p + header_len);
	tcp->ops->tx_send(tcp->ctx, &conn->tuple, p, header_len + len);
	tcp->stats->tcp_segments_out++;
	conn->last_ack = conn->rcv_nxt;
	conn->flags &= ~(uint32_t)(CONN_ACK_NOW | CONN_ACK_SOON);
	conn->delack_at = TIME_NEVER;
	return true;
}

bool tcp_out_bare(struct tcp_conn *conn, uint32_t seq, uint8_t flags, struct now now)
{
	return send_segment(conn, seq, 0, flags, now);
}

bool tcp_out_syn(struct tcp_conn *conn, struct now now)
{
	struct tcp *tcp = conn->tcp;
	bool reply = conn->state == TCP_SYN_RCVD;
	struct opt opt = {
		.mss = tcp->mss,
		.has_scale = true,
		.scale = conn->rcv_scale,
		.has_timestamp = !reply || (conn->flags & CONN_TIMESTAMPS),
		.sack_permitted = !reply || (conn->flags & CONN_SACK),
		.tsval = tcp_conn_timestamp(conn, now),
		.tsecr = conn->ts_recent,
	};
	if (reply)
		opt.has_scale = conn->flags & CONN_SCALE;
	uint8_t bytes[OPT_MAX_BYTES];
	size_t options = opt_write_syn(bytes, &opt);
	uint8_t *p = tcp->ops->tx_get(tcp->ctx, &conn->tuple, TCP_HEADER_BYTES + options);
	if (p == NULL)
		return false;
	uint32_t window = tcp_out_window(conn);
	if (window > UINT16_MAX)
		window = UINT16_MAX;
	conn->rcv_adv = conn->rcv_nxt + window;
	conn->last_ack = conn->rcv_nxt;
	put_header(p, &conn->tuple, conn->iss, conn->rcv_nxt, TCP_HEADER_BYTES + options, reply ? TCP_SYN | TCP_ACK : TCP_SYN,
		   (uint16_t)window);
	memcpy(p + TCP_HEADER_BYTES, bytes, options);
	tcp->ops->tx_send(tcp->ctx, &conn->tuple, p, TCP_HEADER_BYTES + options);
	tcp->stats->tcp_segments_out++;
	return true;
}

static void send_reset(struct tcp *tcp, const struct tcp_tuple *tuple, uint32_t seq, uint32_t ack, uint8_t flags)
{
	uint8_t *p = tcp->ops->tx_get(tcp->ctx, tuple, TCP_HEADER_BYTES);
	if (p == NULL)
		return;
	put_header(p, tuple, seq, ack, TCP_HEADER_BYTES, flags, 0);
	tcp->ops->tx_send(tcp->ctx, tuple, p, TCP_HEADER_BYTES);
	tcp->stats->tcp_segments_out++;
	tcp->stats->tcp_resets_out++;
}

void tcp_out_reset(struct tcp_conn *conn, struct now now)
{
	if (conn->state != TCP_SYN_SENT)
		send_reset(conn->tcp, &conn->tuple, conn->snd_nxt, conn->rcv_nxt, TCP_RST | TCP_ACK);
}

void tcp_out_reset_stray(struct tcp *tcp, const struct tcp_tuple *tuple, const struct segment *seg)
{
	if (seg->flags & TCP_RST)
		return;
	if (seg->flags & TCP_ACK) {
		send_reset(tcp, tuple, seg->ack, 0, TCP_RST);
		return;
	}
	uint32_t len = seg->len + (seg->flags & TCP_SYN ? 1 : 0) + (seg->flags & TCP_FIN ? 1 : 0);
	send_reset(tcp, tuple, 0, seg->seq + len, TCP_RST | TCP_ACK);
}

bool tcp_out_limited_ack(struct tcp_conn *conn, struct now now)
{
	if (conn->challenge_us != 0 && now.us - conn->challenge_us < TCP_CHALLENGE_GAP_US)
		return false;
	conn->challenge_us = now.us;
	tcp_conn_ack_now(conn);
	return true;
}

/* ---- flush ---- */

static void timer_on_send(struct tcp_conn *conn, struct now now)
{
	conn->last_tx_us = now.us;
	if (conn->flags & CONN_PERSIST) {
		conn->flags &= ~(uint32_t)CONN_PERSIST;
		conn->backoff = 0;
		conn->rexmit_at = TIME_NEVER;
	}
	if (conn->rexmit_at == TIME_NEVER)
		tcp_timer_rexmit(conn, now);
}

/* Payload and FIN of the sequence range [seq, end), at most one full segment. */
static bool send_range(struct tcp_conn *conn, uint32_t seq, uint32_t end, uint32_t *sent, struct now now)
{
	uint32_t queue_end = tcp_conn_queue_end(conn);
	uint32_t len = seq_ahead(seq_min(end, queue_end), seq);
	if (len > conn->mss)
		len = conn->mss;
	bool last = seq + len == queue_end;
	bool fin = last && (conn->flags & CONN_FIN_QUEUED) && seq_gt(end, queue_end);
	uint8_t flags = (uint8_t)((fin ? TCP_FIN : 0) | (last && len > 0 ? TCP_PSH : 0));
	if (!send_segment(conn, seq, len, flags, now))
		return false;
	*sent = len + fin;
	CHECK(*sent > 0);
	return true;
}

static bool retransmit(struct tcp_conn *conn, uint32_t *pipe, unsigned int *budget, struct now now)
{
	uint32_t seq, end, sent;
	while (*budget > 0 && tcp_loss_next(conn, &seq, &end)) {
		bool forced = conn->flags & CONN_LOSS_FIRST;
		if (!forced && *pipe + conn->mss > conn->cc.cwnd)
			break;
		if (!send_range(conn, seq, end, &sent, now))
			return false;
		conn->flags &= ~(uint32_t)(CONN_LOSS_FIRST | CONN_TIMING); /* Karn: what is sent twice is not timed */
		conn->high_rxt = seq + sent;
		conn->tcp->stats->tcp_retransmits++;
		timer_on_send(conn, now);
		*pipe += sent;
		--*budget;
	}
	return true;
}

/* End of what may be sent next beyond snd_nxt; snd_nxt itself when the windows forbid. */
static uint32_t new_data_end(struct tcp_conn *conn, uint32_t pipe)
{
	uint32_t queue_end = tcp_conn_queue_end(conn);
	uint32_t goal = queue_end + (conn->flags & CONN_FIN_QUEUED ? 1 : 0);
	uint32_t want = seq_ahead(goal, conn->snd_nxt);
	uint32_t usable = seq_ahead(conn->snd_una + conn->snd_wnd, conn->snd_nxt);
	uint32_t data = seq_ahead(queue_end, conn->snd_nxt);
	uint32_t n = want < conn->mss ? want : conn->mss;
	if (n == 0 || (pipe > 0 && pipe + n > conn->cc.cwnd))
		return conn->snd_nxt;
	if (n > usable) {
		/* Cut by the window: worth it only when the piece is large for this peer, or only the FIN finds no room. */
		if (usable == 0 || (usable < conn->mss && usable < conn->snd_wnd_max / 2 && usable < data))
			return conn->snd_nxt;
		n = usable;
	}
	return conn->snd_nxt + n;
}

static bool send_new(struct tcp_conn *conn, uint32_t *pipe, unsigned int *budget, struct now now)
{
	while (*budget > 0) {
		uint32_t end = new_data_end(conn, *pipe), sent;
		if (end == conn->snd_nxt)
			break;
		if (conn->snd_una == conn->snd_nxt && now.us - conn->last_tx_us > conn->rtt.rto)
			conn->tcp->cc->idle(&conn->cc, conn->mss);
		if (!send_range(conn, conn->snd_nxt, end, &sent, now))
			return false;
		conn->snd_nxt += sent;
		if (!(conn->flags & CONN_TIMING)) {
			conn->flags |= CONN_TIMING;
			conn->rtt_seq = conn->snd_nxt;
			conn->rtt_sent_us = now.us;
		}
		timer_on_send(conn, now);
		*pipe += sent;
		--*budget;
	}
	return true;
}

/* Something waits, nothing is in flight and the window forbids: only a probe can find out that it has opened. */
static void persist_if_stuck(struct tcp_conn *conn, struct now now)
{
	bool waits = conn->sendq.len > 0 || (conn->flags & CONN_FIN_QUEUED);
	if (!waits || conn->snd_una != conn->snd_nxt || (conn->flags & CONN_PERSIST) || conn->rexmit_at != TIME_NEVER)
		return;
	conn->flags |= CONN_PERSIST;
	tcp_timer_rexmit(conn, now);
}

void tcp_out_probe(struct tcp_conn *conn, struct now now)
{
	uint32_t usable = seq_ahead(conn->snd_una + conn->snd_wnd, conn->snd_nxt), sent;
	if (usable == 0) {
		tcp_out_bare(conn, conn->snd_una - 1, 0, now);
		return;
	}
	uint32_t end = conn->snd_nxt + (usable < conn->mss ? usable : conn->mss);
	if (send_range(conn, conn->snd_nxt, end, &sent, now)) {
		conn->snd_nxt += sent;
		timer_on_send(conn, now);
	}
}

bool tcp_out_flush(struct tcp_conn *conn, struct now now)
{
	bool may_send = conn->state == TCP_ESTABLISHED || conn->state == TCP_CLOSE_WAIT || conn->state == TCP_FIN_WAIT_1 ||
			conn->state == TCP_CLOSING || conn->state == TCP_LAST_ACK;
	unsigned int budget = TCP_FLUSH_SEGMENTS;
	if (may_send && (conn->sendq.len > 0 || (conn->flags & CONN_FIN_QUEUED))) {
		uint32_t pipe = tcp_loss_pipe(conn);
		if (!retransmit(conn, &pipe, &budget, now) || !send_new(conn, &pipe, &budget, now))
			return false;
		persist_if_stuck(conn, now);
	}
	if ((conn->flags & CONN_ACK_NOW) && !tcp_out_bare(conn, conn->snd_nxt, 0, now))
		return false;
	if (conn->flags & CONN_ACK_SOON && conn->delack_at == TIME_NEVER) {
		conn->delack_at = now.us + conn->tcp->cfg.delayed_ack_us;
		tcp_timer_arm(conn, conn->delack_at);
	}
	return budget > 0;
}

static void flush_one(struct tcp_conn *conn, struct now now)
{
	if (conn->flags & CONN_ABORT && conn->state != TCP_CLOSED) {
		tcp_out_reset(conn, now);
		tcp_conn_end(conn, conn->flags & CONN_NO_MEMORY ? TCP_END_NO_MEMORY : TCP_END_ABORTED, now);
	}
	if (conn->state == TCP_CLOSED) {
		conn->flags &= ~(uint32_t)CONN_DIRTY;
		tcp_conn_reclaim(conn);
		return;
	}
	conn->flags &= ~(uint32_t)CONN_DIRTY;
	if (conn->state >= TCP_ESTABLISHED && !tcp_out_flush(conn, now))
		tcp_conn_dirty(conn);
}

void tcp_flush(struct tcp *tcp, struct now now)
{
	tcp_conn_make_room(tcp, now);
	struct tcp_conn *conn = tcp->dirty;
	/* What is marked from here on, by an upcall or for a second try, is for the next call. */
	tcp->dirty = NULL;
	tcp->dirty_end = &tcp->dirty;
	for (struct tcp_conn *next; conn != NULL; conn = next) {
		next = conn->dirty_next;
		flush_one(conn, now);
	}
}
