/*
 * timer.c - what happens because of time: retransmission, zero-window probes, delayed ACKs, keepalive, the ends of TIME_WAIT and of orphans.
 *
 * A connection has four deadlines and one wheel timer. Setting a deadline hangs the timer only when it would fire too late; moving or
 * clearing one leaves the timer alone. When it fires, it serves what is due and hangs itself at the earliest deadline left. Only a worker that is about to
 * sleep moves timers whose deadline has moved: with sparse requests each answer would cost a second waking, for a retransmission that is not due.
 */
#include "dataplane/tcp/tcp_priv.h"

#define MAX_BACKOFF 16
#define SETTLE_BUDGET 16u /* timers that one question for the deadline may move */

struct firing {
	struct tcp *tcp;
	struct now now;
};

static uint64_t timer_tick(uint64_t us)
{
	return (us + US_PER_MS - 1) / US_PER_MS;
}

void tcp_timer_arm(struct tcp_conn *conn, uint64_t at)
{
	if (at == TIME_NEVER)
		return;
	uint64_t tick = timer_tick(at);
	if (wheel_timer_hung(&conn->timer) && conn->timer.when <= tick)
		return;
	wheel_set(&conn->tcp->wheel, &conn->timer, tick);
}

void tcp_timer_rexmit(struct tcp_conn *conn, struct now now)
{
	conn->rexmit_at = now.us + rtt_backed_off(&conn->rtt, conn->backoff, conn->tcp->cfg.rto_max_us);
	tcp_timer_arm(conn, conn->rexmit_at);
}

uint64_t tcp_timer_keepalive_at(const struct tcp_conn *conn)
{
	uint64_t idle = conn->tcp->cfg.keepalive_us;
	if (idle == 0 || conn->state < TCP_ESTABLISHED || conn->state == TCP_TIME_WAIT)
		return TIME_NEVER;
	return conn->last_rx_us + idle + conn->probes * (idle / TCP_KEEPALIVE_PROBES);
}

static void give_up(struct tcp_conn *conn, struct now now)
{
	tcp_out_reset(conn, now);
	tcp_conn_end(conn, TCP_END_TIMEOUT, now);
}

static void back_off(struct tcp_conn *conn, struct now now)
{
	if (conn->backoff < MAX_BACKOFF)
		conn->backoff++;
	tcp_timer_rexmit(conn, now);
}

/* Counts a probe. False: the peer has not said anything for too many of them, and the connection has ended. */
static bool probe_allowed(struct tcp_conn *conn, unsigned int max, struct now now)
{
	if (conn->probes == max) {
		give_up(conn, now);
		return false;
	}
	conn->probes++;
	conn->flags |= CONN_PROBED;
	return true;
}

static bool persist_due(struct tcp_conn *conn, struct now now)
{
	if (!probe_allowed(conn, TCP_RETRIES, now))
		return false;
	conn->tcp->stats->tcp_zero_window_probes++;
	tcp_out_probe(conn, now);
	if (conn->flags & CONN_PERSIST)
		back_off(conn, now);
	return true;
}

static bool syn_due(struct tcp_conn *conn, struct now now)
{
	unsigned int max = conn->flags & CONN_ACTIVE ? TCP_SYN_RETRIES : TCP_SYN_RCVD_RETRIES;
	if (conn->retries == max) {
		tcp_conn_end(conn, TCP_END_TIMEOUT, now);
		return false;
	}
	conn->retries++;
	conn->tcp->stats->tcp_rto++;
	if (tcp_out_syn(conn, now))
		conn->tcp->stats->tcp_retransmits++;
	back_off(conn, now);
	return true;
}

static bool rexmit_due(struct tcp_conn *conn, struct now now)
{
	conn->rexmit_at = TIME_NEVER;
	if (conn->flags & CONN_PERSIST)
		return persist_due(conn, now);
	if (conn->state == TCP_SYN_SENT || conn->state == TCP_SYN_RCVD)
		return syn_due(conn, now);
	if (conn->snd_una == conn->snd_nxt)
		return true;
	if (conn->retries == TCP_RETRIES) {
		give_up(conn, now);
		return false;
	}
	conn->retries++;
	conn->tcp->stats->tcp_rto++;
	tcp_loss_timeout(conn, now);
	back_off(conn, now);
	return true;
}

/* Asks a silent peer whether it is still there (RFC 9293, 3.8.4); unanswered data asks already. Returns when to look again. */
static uint64_t keepalive_due(struct tcp_conn *conn, struct now now)
{
	if (conn->snd_una != conn->snd_nxt || (conn->flags & CONN_PERSIST))
		return now.us + conn->tcp->cfg.keepalive_us;
	if (!probe_allowed(conn, TCP_KEEPALIVE_PROBES, now))
		return TIME_NEVER;
	conn->tcp->stats->tcp_keepalives++;
	tcp_out_bare(conn, conn->snd_una - 1, 0, now);
	/* Not by the idle time alone: after a gap in our own time, the peer must still get its chance to answer each probe. */
	return now.us + conn->tcp->cfg.keepalive_us / TCP_KEEPALIVE_PROBES;
}

static void fire(struct wheel_timer *timer, void *arg)
{
	struct tcp_conn *conn = CONTAINER_OF(timer, struct tcp_conn, timer);
	struct now now = ((struct firing *)arg)->now;
	if (conn->life_at <= now.us) {
		if (conn->state == TCP_TIME_WAIT)
			tcp_conn_end(conn, TCP_END_NORMAL, now);
		else
			give_up(conn, now);
		return;
	}
	if (conn->rexmit_at <= now.us && !rexmit_due(conn, now))
		return;
	if (conn->delack_at <= now.us) {
		conn->delack_at = TIME_NEVER;
		if (conn->flags & CONN_ACK_SOON)
			tcp_conn_ack_now(conn);
	}
	uint64_t keepalive_at = tcp_timer_keepalive_at(conn);
	if (keepalive_at <= now.us)
		keepalive_at = keepalive_due(conn, now);
	if (conn->state == TCP_CLOSED)
		return;
	tcp_timer_arm(conn, conn->life_at);
	tcp_timer_arm(conn, conn->rexmit_at);
	tcp_timer_arm(conn, conn->delack_at);
	tcp_timer_arm(conn, keepalive_at);
}

void tcp_timers(struct tcp *tcp, unsigned int budget, struct now now)
{
	struct firing firing = {tcp, now};
	wheel_advance(&tcp->wheel, now_ms(now), budget, fire, &firing);
}

/* The tick of the earliest deadline. */
static uint64_t meant(struct wheel_timer *timer)
{
	const struct tcp_conn *conn = CONTAINER_OF(timer, struct tcp_conn, timer);
	uint64_t at = tcp_timer_keepalive_at(conn);
	at = conn->life_at < at ? conn->life_at : at;
	at = conn->rexmit_at < at ? conn->rexmit_at : at;
	at = conn->delack_at < at ? conn->delack_at : at;
	return at == TIME_NEVER ? UINT64_MAX : timer_tick(at);
}

uint64_t tcp_deadline(struct tcp *tcp)
{
	if (tcp->dirty != NULL)
		return 0;
	uint64_t tick = wheel_next_meant(&tcp->wheel, SETTLE_BUDGET, meant);
	return tick == UINT64_MAX ? TIME_NEVER : tick * US_PER_MS;
}
