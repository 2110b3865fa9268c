/*
 * listen.c - how connections begin: listeners, passive and active open, and the answers to segments that belong to no connection
 * (RFC 9293, 3.10.7.1 and 3.10.7.2).
 *
 * Options of a connection are what both SYNs offer: ours offers all of them on active open, and what the peer offered on
 * passive open.
 */
#include "dataplane/tcp/isn.h"
#include "dataplane/tcp/tcp_priv.h"

bool tcp_listen(struct tcp *tcp, uint16_t port)
{
	if (tcp_listening(tcp, port))
		return true;
	if (tcp->listeners == TCP_MAX_LISTENERS)
		return false;
	tcp->listener[tcp->listeners++] = port;
	return true;
}

void tcp_listen_stop(struct tcp *tcp)
{
	tcp->stopped = true;
}

bool tcp_listening(const struct tcp *tcp, uint16_t port)
{
	if (tcp->stopped)
		return false;
	for (unsigned int i = 0; i < tcp->listeners; i++) {
		if (tcp->listener[i] == port)
			return true;
	}
	return false;
}

static void start(struct tcp_conn *conn, uint32_t iss)
{
	struct tcp *tcp = conn->tcp;
	conn->iss = conn->snd_una = conn->recover = iss;
	conn->snd_nxt = iss + 1;
	conn->rcv_scale = tcp->rcv_scale;
	conn->mss = TCP_DEFAULT_MSS;
	conn->rcv_mss = TCP_MIN_MSS;
}

void tcp_listen_learn_syn(struct tcp_conn *conn, const struct segment *seg, struct now now)
{
	struct tcp *tcp = conn->tcp;
	const struct opt *opt = &seg->opt;
	conn->irs = seg->seq;
	conn->rcv_nxt = conn->rcv_adv = conn->last_ack = seg->seq + 1;
	conn->flags &= ~(uint32_t)(CONN_TIMESTAMPS | CONN_SACK | CONN_SCALE);
	if (opt->has_timestamp) {
		conn->flags |= CONN_TIMESTAMPS;
		conn->ts_recent = opt->tsval;
	}
	if (opt->sack_permitted)
		conn->flags |= CONN_SACK;
	if (opt->has_scale)
		conn->flags |= CONN_SCALE;
	conn->snd_scale = opt->has_scale ? opt->scale : 0;
	conn->rcv_scale = opt->has_scale ? tcp->rcv_scale : 0;
	unsigned int mss = opt->has_mss ? opt->mss : TCP_DEFAULT_MSS;
	if (mss > tcp->mss)
		mss = tcp->mss;
	if (mss < TCP_MIN_MSS)
		mss = TCP_MIN_MSS;
	if (conn->flags & CONN_TIMESTAMPS)
		mss -= OPT_TIMESTAMP_BYTES;
	conn->mss = (uint16_t)mss;
	/* The window of a SYN is never scaled (RFC 7323, 2.2). */
	conn->snd_wnd = conn->snd_wnd_max = seg->window;
	conn->snd_wl1 = seg->seq;
	conn->snd_wl2 = seg->ack;
	tcp->cc->init(&conn->cc, conn->mss);
}

bool tcp_listen_established(struct tcp_conn *conn, const struct segment *seg, struct now now)
{
	struct tcp *tcp = conn->tcp;
	/* A SYN that was sent twice says nothing about the path's time (Karn). */
	if (conn->retries == 0)
		rtt_sample(&conn->rtt, now.us - conn->rtt_sent_us, tcp->cfg.rto_min_us, tcp->cfg.rto_max_us);
	else
		tcp->cc->timeout(&conn->cc, conn->mss, 0, false, now);
	conn->backoff = conn->retries = 0;
	conn->rexmit_at = TIME_NEVER;
	conn->snd_una = conn->iss + 1;
	tcp_conn_unage(conn);
	tcp_conn_set_state(conn, TCP_ESTABLISHED);
	tcp_timer_arm(conn, tcp_timer_keepalive_at(conn));
	if (!(conn->flags & CONN_ACTIVE))
		tcp->stats->tcp_accepted++;
	if (!tcp->ops->established(tcp->ctx, conn, now)) {
		conn->flags &= ~(uint32_t)CONN_OWED;
		tcp_out_reset(conn, now);
		tcp_conn_end(conn, TCP_END_ABORTED, now);
		return false;
	}
	conn->flags |= CONN_OWED;
	if ((conn->flags & CONN_USER_CLOSED) && conn->state == TCP_ESTABLISHED)
		tcp_conn_set_state(conn, TCP_FIN_WAIT_1);
	tcp_conn_dirty(conn);
	return !tcp_conn_gone(conn);
}

void tcp_listen_accept(struct tcp *tcp, const struct tcp_tuple *tuple, const struct segment *seg, const uint32_t *iss_floor,
		       struct now now)
{
	struct tcp_conn *conn = tcp_conn_new(tcp, tuple, now);
	if (conn == NULL) {
		tcp->stats->tcp_refused_full++;
		/* With slots left, the flow is known already (a SYN twice in one burst): the first one is being answered. */
		if (tcp->in_use == tcp->cfg.max_connections)
			tcp_out_reset_stray(tcp, tuple, seg);
		return;
	}
	uint32_t iss = tcp_isn(tcp->cfg.secret, tuple, now);
	start(conn, iss_floor != NULL ? seq_max(iss, *iss_floor) : iss);
	tcp_listen_learn_syn(conn, seg, now);
	tcp_conn_set_state(conn, TCP_SYN_RCVD);
	tcp_conn_age(conn, &tcp->half_open);
	conn->rtt_sent_us = now.us;
	tcp_out_syn(conn, now);
	tcp_timer_rexmit(conn, now);
}

struct tcp_conn *tcp_connect(struct tcp *tcp, const struct tcp_tuple *tuple, struct now now)
{
	struct tcp_conn *conn = tcp_conn_new(tcp, tuple, now);
	if (conn == NULL)
		return NULL;
	start(conn, tcp_isn(tcp->cfg.secret, tuple, now));
	conn->flags |= CONN_ACTIVE | CONN_OWED;
	tcp_conn_set_state(conn, TCP_SYN_SENT);
	conn->rtt_sent_us = now.us;
	tcp_out_syn(conn, now);
	tcp_timer_rexmit(conn, now);
	return conn;
}

void tcp_listen_input(struct tcp *tcp, const struct tcp_tuple *tuple, const struct segment *seg, struct now now)
{
	if (seg->flags & TCP_RST)
		return;
	if (seg->flags & TCP_ACK) {
		tcp_out_reset_stray(tcp, tuple, seg);
		return;
	}
	bool listening = tcp_listening(tcp, tuple->local_port);
	if (seg->flags & TCP_SYN) {
		if (!listening) {
			tcp->stats->tcp_refused_port++;
			tcp_out_reset_stray(tcp, tuple, seg);
		} else if (seg->flags & TCP_FIN) {
			tcp->stats->tcp_bad_header++;
		} else {
			tcp_listen_accept(tcp, tuple, seg, NULL, now);
		}
		return;
	}
	if (!listening)
		tcp_out_reset_stray(tcp, tuple, seg);
}
