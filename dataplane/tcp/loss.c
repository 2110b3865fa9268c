/*
 * loss.c - what is lost, and when to send it again.
 *
 * One description serves all ways of noticing a loss. Of the bytes in [snd_una, snd_nxt):
 *
 *     snd_una        high_rxt        lost_end            snd_nxt
 *        |  sent again  |  lost, due    |  not known to be lost |
 *
 * and in each part those that the scoreboard has are not missing. Fast recovery with SACK (RFC 6675) moves lost_end by the
 * scoreboard; without SACK (RFC 6582) it covers one segment at a time; a time-out (RFC 6298) declares all lost. In flight is what
 * is neither reported, nor lost and not yet sent again. snd_nxt never goes back.
 */
#include "dataplane/tcp/tcp_priv.h"

static uint32_t lost_end_of(const struct tcp_conn *conn)
{
	return seq_min(conn->lost_end, conn->snd_nxt);
}

uint32_t tcp_loss_pipe(const struct tcp_conn *conn)
{
	uint32_t flight = conn->snd_nxt - conn->snd_una;
	if (likely(!(conn->flags & (CONN_RECOVERY | CONN_LOSS | CONN_SACKED | CONN_DUP_ACKS))))
		return flight;
	int64_t pipe = (int64_t)flight - (conn->flags & CONN_SACK ? conn->sack.bytes : conn->dup_bytes);
	if (conn->flags & (CONN_RECOVERY | CONN_LOSS)) {
		uint32_t lost_end = lost_end_of(conn);
		pipe -= sack_missing(&conn->sack, conn->snd_una, lost_end);
		pipe += sack_missing(&conn->sack, conn->snd_una, seq_min(conn->high_rxt, lost_end));
	}
	return pipe > 0 ? (uint32_t)pipe : 0;
}

bool tcp_loss_next(const struct tcp_conn *conn, uint32_t *seq, uint32_t *end)
{
	if (likely(!(conn->flags & (CONN_RECOVERY | CONN_LOSS))))
		return false;
	uint32_t limit = lost_end_of(conn);
	*seq = sack_hole(&conn->sack, seq_max(conn->high_rxt, conn->snd_una), limit, end);
	return seq_lt(*seq, limit);
}

bool tcp_loss_sack(struct tcp_conn *conn, const struct segment *seg)
{
	if (!(conn->flags & CONN_SACK))
		return false;
	uint32_t added = 0;
	for (unsigned int i = 0; i < seg->opt.sacks; i++) {
		const struct opt_sack *s = &seg->opt.sack[i];
		/* At or below snd_una it is a D-SACK (RFC 2883), or old, or a lie. */
		if (seq_leq(s->start, conn->snd_una) || seq_gt(s->end, conn->snd_nxt) || !seq_lt(s->start, s->end))
			continue;
		added += sack_add(&conn->sack, &conn->tcp->pool, s->start, s->end);
	}
	if (conn->sack.ranges > 0)
		conn->flags |= CONN_SACKED;
	return added > 0;
}

static void clear_duplicates(struct tcp_conn *conn)
{
	conn->dup_acks = 0;
	conn->dup_bytes = 0;
	conn->flags &= ~(uint32_t)CONN_DUP_ACKS;
}

/* Where the lost part ends by the scoreboard, at least behind the first segment. */
static uint32_t lost_by_report(const struct tcp_conn *conn)
{
	uint32_t first = seq_min(conn->snd_una + conn->mss, conn->snd_nxt);
	return seq_max(first, sack_lost_end(&conn->sack, conn->snd_una, conn->mss));
}

static void enter_recovery(struct tcp_conn *conn, struct now now)
{
	struct tcp *tcp = conn->tcp;
	tcp->stats->tcp_fast_retransmits++;
	conn->flags |= CONN_RECOVERY | CONN_LOSS_FIRST;
	conn->recover = conn->snd_nxt;
	conn->high_rxt = conn->snd_una;
	conn->lost_end = lost_by_report(conn);
	tcp->cc->loss(&conn->cc, conn->mss, conn->snd_nxt - conn->snd_una, now);
	tcp_timer_rexmit(conn, now);
}

void tcp_loss_duplicate(struct tcp_conn *conn, struct now now)
{
	conn->tcp->stats->tcp_duplicate_acks++;
	tcp_conn_dirty(conn);
	if (conn->flags & CONN_LOSS)
		return;
	conn->flags |= CONN_DUP_ACKS;
	if (conn->dup_acks < UINT8_MAX)
		conn->dup_acks++;
	if (!(conn->flags & CONN_SACK)) {
		uint32_t others = seq_ahead(conn->snd_nxt, conn->snd_una + conn->mss);
		conn->dup_bytes = conn->dup_bytes + conn->mss < others ? conn->dup_bytes + conn->mss : others;
	}
	if (conn->flags & CONN_RECOVERY) {
		conn->lost_end = seq_max(conn->lost_end, sack_lost_end(&conn->sack, conn->snd_una, conn->mss));
		return;
	}
	bool lost = conn->dup_acks >= TCP_DUP_ACKS ||
		    ((conn->flags & CONN_SACKED) && sack_lost_end(&conn->sack, conn->snd_una, conn->mss) != conn->snd_una);
	/* Without SACK, duplicates of the segments that a time-out sent again look like a loss (RFC 6582, 4). */
	if (lost && ((conn->flags & CONN_SACK) || seq_gt(conn->snd_una, conn->recover)))
		enter_recovery(conn, now);
}

void tcp_loss_advance(struct tcp_conn *conn, uint32_t acked, struct now now)
{
	if (conn->flags & CONN_SACKED) {
		sack_drop(&conn->sack, &conn->tcp->pool, conn->snd_una);
		if (conn->sack.ranges == 0)
			conn->flags &= ~(uint32_t)CONN_SACKED;
	}
	if (!(conn->flags & (CONN_RECOVERY | CONN_LOSS))) {
		clear_duplicates(conn);
		return;
	}
	if (seq_geq(conn->snd_una, conn->recover)) {
		conn->flags &= ~(uint32_t)(CONN_RECOVERY | CONN_LOSS | CONN_LOSS_FIRST);
		clear_duplicates(conn);
		return;
	}
	conn->high_rxt = seq_max(conn->high_rxt, conn->snd_una);
	if (!(conn->flags & CONN_RECOVERY))
		return;
	/* A partial acknowledgement: what follows it is lost as well, unless it has been sent again already. */
	uint32_t others = acked > conn->mss ? acked - conn->mss : 0;
	conn->dup_bytes = conn->dup_bytes > others ? conn->dup_bytes - others : 0;
	if (conn->high_rxt == conn->snd_una) {
		conn->lost_end = seq_max(conn->lost_end, lost_by_report(conn));
		conn->flags |= CONN_LOSS_FIRST;
	}
}

void tcp_loss_timeout(struct tcp_conn *conn, struct now now)
{
	struct tcp *tcp = conn->tcp;
	tcp->cc->timeout(&conn->cc, conn->mss, conn->snd_nxt - conn->snd_una, conn->retries > 1, now);
	/* The peer may have dropped what it reported (RFC 2018, 8): after a second time-out believe only the acknowledgement. */
	if (conn->retries > 1) {
		sack_clear(&conn->sack, &tcp->pool);
		conn->flags &= ~(uint32_t)CONN_SACKED;
	}
	clear_duplicates(conn);
	conn->flags &= ~(uint32_t)(CONN_RECOVERY | CONN_TIMING);
	conn->flags |= CONN_LOSS | CONN_LOSS_FIRST;
	conn->recover = conn->lost_end = conn->snd_nxt;
	conn->high_rxt = conn->snd_una;
	conn->loss_us = now.us;
	tcp_conn_dirty(conn);
}
