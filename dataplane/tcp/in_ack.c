/*
 * in_ack.c - the acknowledgement of a segment that arrived (RFC 9293, 3.10.7.4, fifth; RFC 5961, 5.2).
 */
#include "dataplane/tcp/tcp_priv.h"

/*
 * After a time-out the acknowledgement of what was sent twice measures nothing, unless its timestamp echoes the later one: the first answer may have
 * been lost, and the time would contain our own waiting. Karn's rule keeps the doubled time-out until the next sample. But when the
 * answer follows the retransmission in just the time that answers take here, the path has not changed, and doubling ends.
 */
static void ambiguous(struct tcp_conn *conn, struct now now)
{
	uint64_t since = now.us - conn->loss_us;
	const struct rtt *rtt = &conn->rtt;
	if (since >= rtt->srtt / 2 && since <= rtt->srtt + 4 * (uint64_t)rtt->rttvar + US_PER_MS)
		conn->backoff = 0;
}

static void measure(struct tcp_conn *conn, uint32_t ack, bool has_tsecr, uint32_t tsecr, struct now now)
{
	const struct tcp_config *cfg = &conn->tcp->cfg;
	uint64_t sample;
	if ((conn->flags & CONN_TIMING) && seq_geq(ack, conn->rtt_seq)) {
		conn->flags &= ~(uint32_t)CONN_TIMING;
		sample = now.us - conn->rtt_sent_us;
	} else if (likely(!(conn->flags & (CONN_RECOVERY | CONN_LOSS)) && conn->backoff == 0)) {
		return;
	} else {
		uint32_t loss_ts = tcp_conn_timestamp(conn, (struct now){.us = conn->loss_us});
		bool timed_out = (conn->flags & CONN_LOSS) || conn->backoff > 0;
		uint32_t ms = tcp_conn_timestamp(conn, now) - tsecr;
		if (!has_tsecr || tsecr == 0 || ms > RTT_MAX_SAMPLE_US / US_PER_MS || (timed_out && seq_lt(tsecr, loss_ts))) {
			if (timed_out)
				ambiguous(conn, now);
			return;
		}
		sample = (uint64_t)ms * US_PER_MS;
	}
	rtt_sample(&conn->rtt, sample, cfg->rto_min_us, cfg->rto_max_us);
	conn->backoff = 0;
}

static void grow_window(struct tcp_conn *conn, uint32_t acked, uint32_t flight, struct now now)
{
	if (conn->flags & CONN_RECOVERY)
		return;
	if (conn->flags & CONN_LOSS)
		acked = acked < conn->mss ? acked : conn->mss; /* RFC 3465, 2.3 */
	else if (conn->cc.cwnd < conn->cc.ssthresh ? flight < conn->cc.cwnd / 2 : flight + conn->mss < conn->cc.cwnd)
		return; /* the window was not what limited us */
	conn->tcp->cc->acked(&conn->cc, conn->mss, acked, now);
}

void tcp_in_acked(struct tcp_conn *conn, uint32_t ack, bool has_tsecr, uint32_t tsecr, struct now now)
{
	uint32_t acked = ack - conn->snd_una;
	uint32_t flight = conn->snd_nxt - conn->snd_una;
	uint32_t data = acked < conn->sendq.len ? acked : conn->sendq.len;
	sendq_drop(&conn->sendq, &conn->tcp->pool, data);
	if (unlikely(acked > data)) {
		CHECK(acked == data + 1 && (conn->flags & CONN_FIN_QUEUED));
		conn->flags &= ~(uint32_t)CONN_FIN_QUEUED;
	}
	measure(conn, ack, has_tsecr, tsecr, now);
	conn->snd_una = ack;
	conn->retries = 0;
	grow_window(conn, acked, flight, now);
	if (unlikely(conn->flags & (CONN_RECOVERY | CONN_LOSS | CONN_SACKED | CONN_DUP_ACKS)))
		tcp_loss_advance(conn, acked, now);
	if (ack == conn->snd_nxt)
		conn->rexmit_at = TIME_NEVER;
	else
		tcp_timer_rexmit(conn, now);
	if (conn->flags & CONN_USER_CLOSED)
		conn->life_at = now.us + TCP_ORPHAN_US;
	if (conn->sendq.len > 0 || (conn->flags & CONN_FIN_QUEUED))
		tcp_conn_dirty(conn);
}

static bool update_window(struct tcp_conn *conn, const struct segment *seg)
{
	if (!seq_lt(conn->snd_wl1, seg->seq) && !(conn->snd_wl1 == seg->seq && seq_leq(conn->snd_wl2, seg->ack)))
		return false;
	uint32_t window = (uint32_t)seg->window << conn->snd_scale;
	bool changed = window != conn->snd_wnd;
	conn->snd_wl1 = seg->seq;
	conn->snd_wl2 = seg->ack;
	conn->snd_wnd = window;
	if (window > conn->snd_wnd_max)
		conn->snd_wnd_max = window;
	if (changed && (conn->sendq.len > 0 || (conn->flags & CONN_FIN_QUEUED)))
		tcp_conn_dirty(conn);
	return changed;
}

/* Our FIN has just been acknowledged. False: the connection is finished. */
static bool fin_acked(struct tcp_conn *conn, struct now now)
{
	switch (conn->state) {
	case TCP_FIN_WAIT_1:
		tcp_conn_set_state(conn, TCP_FIN_WAIT_2);
		return true;
	case TCP_CLOSING:
		tcp_conn_time_wait(conn, now);
		return false;
	default:
		tcp_conn_end(conn, TCP_END_NORMAL, now);
		return false;
	}
}

bool tcp_in_ack(struct tcp_conn *conn, const struct segment *seg, struct now now)
{
	if (seq_gt(seg->ack, conn->snd_nxt) || seq_lt(seg->ack, conn->snd_una - conn->snd_wnd_max)) {
		if (tcp_out_limited_ack(conn, now))
			conn->tcp->stats->tcp_challenge_acks++;
		return false;
	}
	if (seq_lt(seg->ack, conn->snd_una))
		return true; /* old, but its data may be new */
	bool window_changed = update_window(conn, seg);
	if (unlikely(conn->snd_wnd == 0))
		conn->retries = 0; /* it has no room for what is in flight, but it lives (RFC 9293, 3.8.6.1) */
	bool news = seg->opt.sacks > 0 && tcp_loss_sack(conn, seg);
	if (seg->ack != conn->snd_una) {
		bool fin_queued = conn->flags & CONN_FIN_QUEUED;
		tcp_in_acked(conn, seg->ack, seg->opt.has_timestamp, seg->opt.tsecr, now);
		if (news)
			tcp_loss_duplicate(conn, now);
		return !fin_queued || (conn->flags & CONN_FIN_QUEUED) || fin_acked(conn, now);
	}
	/* A duplicate (RFC 5681, 2): it says nothing new but that something else has arrived; with SACK, it says what. */
	bool bare = seg->len == 0 && !(seg->flags & TCP_FIN) && !window_changed;
	if (conn->snd_una != conn->snd_nxt && (conn->flags & CONN_SACK ? news : bare))
		tcp_loss_duplicate(conn, now);
	return true;
}
