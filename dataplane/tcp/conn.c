/*
 * conn.c - life of a connection: slots, states, the end, and the calls that the user makes.
 *
 * Slots are allocated once, in an array. Some are kept spare for the next round: for that the oldest connections in TIME_WAIT
 * give way. Half-open ones may hold a quarter of the slots, and the oldest of them give way.
 *
 * The user's calls only mark a connection; what follows from them, upcalls too, happens in tcp_flush (invariant 3 of tcp_priv.h).
 */
#include <stdlib.h>
#include <string.h>

#include "dataplane/tcp/isn.h"
#include "dataplane/tcp/tcp_priv.h"

#define MIN_HALF_OPEN 8
#define MAX_SPARE 64

/* Bit `to` of row `from`: the state may change so (RFC 9293, figure 5; every state may end). */
static const uint16_t legal[TCP_STATES] = {
	[TCP_CLOSED] = 1 << TCP_SYN_SENT | 1 << TCP_SYN_RCVD,
	[TCP_SYN_SENT] = 1 << TCP_SYN_RCVD | 1 << TCP_ESTABLISHED | 1 << TCP_CLOSED,
	[TCP_SYN_RCVD] = 1 << TCP_ESTABLISHED | 1 << TCP_CLOSED,
	[TCP_ESTABLISHED] = 1 << TCP_FIN_WAIT_1 | 1 << TCP_CLOSE_WAIT | 1 << TCP_CLOSED,
	[TCP_FIN_WAIT_1] = 1 << TCP_FIN_WAIT_2 | 1 << TCP_CLOSING | 1 << TCP_TIME_WAIT | 1 << TCP_CLOSED,
	[TCP_FIN_WAIT_2] = 1 << TCP_TIME_WAIT | 1 << TCP_CLOSED,
	[TCP_CLOSE_WAIT] = 1 << TCP_LAST_ACK | 1 << TCP_CLOSED,
	[TCP_CLOSING] = 1 << TCP_TIME_WAIT | 1 << TCP_CLOSED,
	[TCP_LAST_ACK] = 1 << TCP_CLOSED,
	[TCP_TIME_WAIT] = 1 << TCP_CLOSED,
};

bool tcp_state_may_follow(enum tcp_state from, enum tcp_state to)
{
	return (legal[from] >> to & 1) != 0;
}

void tcp_conn_set_state(struct tcp_conn *conn, enum tcp_state state)
{
	CHECK(tcp_state_may_follow(conn->state, state));
	conn->state = (uint8_t)state;
}

/* ---- the stack ---- */

size_t tcp_memory_needed(const struct tcp_config *cfg)
{
	return sizeof(struct tcp) + cfg->max_connections * sizeof(struct tcp_conn) + pool_first_bytes();
}

struct tcp *tcp_new(const struct tcp_config *cfg, const struct tcp_ops *ops, void *ctx, struct stats *stats, struct now now)
{
	CHECK(cfg->max_connections > 0 && cfg->mtu > TCP_IP_HEADER_BYTES + TCP_HEADER_BYTES + TCP_MIN_MSS);
	CHECK(cfg->rto_min_us > 0 && cfg->rto_min_us <= cfg->rto_max_us && cfg->receive_buffer_bytes > 0);
	struct tcp *tcp = calloc(1, sizeof(*tcp));
	if (tcp == NULL)
		return NULL;
	tcp->cfg = *cfg;
	tcp->ops = ops;
	tcp->ctx = ctx;
	tcp->stats = stats;
	tcp->cc = &cc_newreno;
	tcp->dirty_end = &tcp->dirty;
	TAILQ_INIT(&tcp->half_open);
	TAILQ_INIT(&tcp->time_wait);
	LIST_INIT(&tcp->free);
	wheel_init(&tcp->wheel, now_ms(now));
	unsigned int mss = cfg->mtu - TCP_IP_HEADER_BYTES - TCP_HEADER_BYTES;
	tcp->mss = (uint16_t)(mss > UINT16_MAX ? UINT16_MAX : mss);
	if (tcp->cfg.receive_buffer_bytes > (size_t)UINT16_MAX << OPT_MAX_SCALE)
		tcp->cfg.receive_buffer_bytes = (size_t)UINT16_MAX << OPT_MAX_SCALE;
	while (tcp->cfg.receive_buffer_bytes > (size_t)UINT16_MAX << tcp->rcv_scale)
		tcp->rcv_scale++;
	tcp->half_open_max = cfg->max_connections / 4 > MIN_HALF_OPEN ? cfg->max_connections / 4 : MIN_HALF_OPEN;
	tcp->spare_min = cfg->max_connections / 16 < MAX_SPARE ? cfg->max_connections / 16 : MAX_SPARE;
	if (tcp->spare_min == 0)
		tcp->spare_min = 1;
	size_t conn_bytes = cfg->max_connections * sizeof(struct tcp_conn);
	tcp->conns = aligned_alloc(MUSTER_CACHE_LINE, conn_bytes);
	if (tcp->conns == NULL || !pool_init(&tcp->pool, cfg->buffer_memory_bytes)) {
		free(tcp->conns);
		free(tcp);
		return NULL;
	}
	memset(tcp->conns, 0, conn_bytes);
	/* Segments may be small: allow twice the blocks that a window of full ones needs. Senders' queues keep most of the pool. */
	tcp->reass_max_blocks = (uint32_t)(tcp->cfg.receive_buffer_bytes / POOL_DATA_BYTES * 2 + 8);
	tcp->reass_blocks_max = tcp->pool.max_blocks / 4;
	for (unsigned int i = cfg->max_connections; i-- > 0;)
		LIST_INSERT_HEAD(&tcp->free, &tcp->conns[i], free);
	return tcp;
}

void tcp_free(struct tcp *tcp)
{
	pool_fini(&tcp->pool);
	free(tcp->conns);
	free(tcp);
}

/* ---- the dirty list and the lists by age ---- */

void tcp_conn_dirty(struct tcp_conn *conn)
{
	if (conn->flags & CONN_DIRTY)
		return;
	conn->flags |= CONN_DIRTY;
	conn->dirty_next = NULL;
	*conn->tcp->dirty_end = conn;
	conn->tcp->dirty_end = &conn->dirty_next;
}

void tcp_conn_age(struct tcp_conn *conn, struct tcp_age_list *list)
{
	CHECK(!(conn->flags & CONN_AGED));
	conn->flags |= CONN_AGED;
	TAILQ_INSERT_TAIL(list, conn, age);
	if (list == &conn->tcp->half_open)
		conn->tcp->half_open_now++;
}

void tcp_conn_unage(struct tcp_conn *conn)
{
	if (!(conn->flags & CONN_AGED))
		return;
	conn->flags &= ~(uint32_t)CONN_AGED;
	bool waits = conn->state == TCP_TIME_WAIT;
	TAILQ_REMOVE(waits ? &conn->tcp->time_wait : &conn->tcp->half_open, conn, age);
	if (!waits)
		conn->tcp->half_open_now--;
}

/* ---- birth and end ---- */

void tcp_conn_make_room(struct tcp *tcp, struct now now)
{
	while (tcp->half_open_now > tcp->half_open_max)
		tcp_conn_end(TAILQ_FIRST(&tcp->half_open), TCP_END_ABORTED, now);
	unsigned int spare = tcp->cfg.max_connections - tcp->in_use;
	for (; spare < tcp->spare_min && !TAILQ_EMPTY(&tcp->time_wait); spare++)
		tcp_conn_end(TAILQ_FIRST(&tcp->time_wait), TCP_END_NORMAL, now);
}

struct tcp_conn *tcp_conn_new(struct tcp *tcp, const struct tcp_tuple *tuple, struct now now)
{
	struct tcp_conn *conn = LIST_FIRST(&tcp->free);
	if (conn == NULL)
		return NULL;
	LIST_REMOVE(conn, free);
	memset(conn, 0, sizeof(*conn));
	conn->tcp = tcp;
	conn->tuple = *tuple;
	conn->rexmit_at = conn->delack_at = conn->life_at = TIME_NEVER;
	conn->last_rx_us = conn->last_data_us = conn->last_tx_us = now.us;
	conn->ts_offset = tcp_timestamp_offset(tcp->cfg.secret, tuple);
	rtt_init(&conn->rtt, tcp->cfg.rto_min_us, tcp->cfg.rto_max_us);
	if (!tcp->ops->flow_add(tcp->ctx, conn)) {
		LIST_INSERT_HEAD(&tcp->free, conn, free);
		return NULL;
	}
	tcp->in_use++;
	tcp->stats->tcp_connections_now++;
	return conn;
}

static void free_buffers(struct tcp_conn *conn)
{
	struct tcp *tcp = conn->tcp;
	sendq_clear(&conn->sendq, &tcp->pool);
	tcp->reass_blocks -= conn->reass.blocks;
	reass_clear(&conn->reass, &tcp->pool);
	sack_clear(&conn->sack, &tcp->pool);
	conn->flags &= ~(uint32_t)(CONN_REASS | CONN_SACKED);
}

static void tell_closed(struct tcp_conn *conn, enum tcp_end how, struct now now)
{
	struct tcp *tcp = conn->tcp;
	tcp->stats->tcp_closed++;
	tcp->stats->tcp_connections_now--;
	if (!(conn->flags & CONN_OWED))
		return;
	conn->flags &= ~(uint32_t)CONN_OWED;
	tcp->ops->closed(tcp->ctx, conn, how, now);
}

void tcp_conn_end(struct tcp_conn *conn, enum tcp_end how, struct now now)
{
	struct tcp *tcp = conn->tcp;
	bool waited = conn->state == TCP_TIME_WAIT;
	tcp_conn_unage(conn);
	free_buffers(conn);
	wheel_remove(&conn->timer);
	tcp->ops->flow_remove(tcp->ctx, conn);
	tcp_conn_set_state(conn, TCP_CLOSED);
	if (how == TCP_END_TIMEOUT)
		tcp->stats->tcp_timed_out++;
	if (how == TCP_END_NO_MEMORY)
		tcp->stats->tcp_no_memory++;
	if (!waited)
		tell_closed(conn, how, now);
	tcp_conn_dirty(conn);
}

void tcp_conn_time_wait(struct tcp_conn *conn, struct now now)
{
	struct tcp *tcp = conn->tcp;
	tcp_conn_set_state(conn, TCP_TIME_WAIT);
	free_buffers(conn);
	conn->flags &= ~(uint32_t)(CONN_RECOVERY | CONN_LOSS | CONN_PERSIST | CONN_DUP_ACKS | CONN_FIN_QUEUED);
	conn->rexmit_at = TIME_NEVER;
	conn->life_at = now.us + tcp->cfg.time_wait_us;
	tcp_conn_age(conn, &tcp->time_wait);
	tcp_timer_arm(conn, conn->life_at);
	tell_closed(conn, TCP_END_NORMAL, now);
	conn->user = NULL;
}

void tcp_conn_reclaim(struct tcp_conn *conn)
{
	struct tcp *tcp = conn->tcp;
	CHECK(conn->state == TCP_CLOSED && !(conn->flags & (CONN_DIRTY | CONN_OWED | CONN_AGED)) && tcp->in_use > 0);
	CHECK(conn->sendq.len == 0 && conn->reass.blocks == 0 && !wheel_timer_hung(&conn->timer));
	tcp->in_use--;
	LIST_INSERT_HEAD(&tcp->free, conn, free);
}

/* ---- calls of the user ---- */

bool tcp_send(struct tcp_conn *conn, const void *p, size_t len)
{
	if ((conn->flags & (CONN_ABORT | CONN_USER_CLOSED)) || conn->state == TCP_CLOSED || conn->state == TCP_TIME_WAIT)
		return false;
	if (unlikely(!sendq_append(&conn->sendq, &conn->tcp->pool, p, len))) {
		conn->flags |= CONN_ABORT | CONN_NO_MEMORY;
		tcp_conn_dirty(conn);
		return false;
	}
	if (tcp_over_limit(conn))
		conn->flags |= CONN_OVER_LIMIT;
	tcp_conn_dirty(conn);
	return true;
}

bool tcp_over_limit(const struct tcp_conn *conn)
{
	return conn->sendq.len > conn->tcp->cfg.send_buffer_bytes;
}

void tcp_hold(struct tcp_conn *conn, size_t n)
{
	CHECK(n <= UINT32_MAX - conn->held);
	conn->held += (uint32_t)n;
}

void tcp_release(struct tcp_conn *conn, size_t n)
{
	CHECK(n <= conn->held);
	conn->held -= (uint32_t)n;
	if (tcp_conn_gone(conn) || conn->state < TCP_ESTABLISHED || conn->state > TCP_FIN_WAIT_2)
		return;
	/* Silly-window avoidance (RFC 9293, 3.8.6.2.2): say so only when it lets the peer send something of a size. */
	uint32_t edge = conn->rcv_nxt + tcp_out_window(conn);
	uint32_t worth = 2u * conn->tcp->mss, half = (uint32_t)conn->tcp->cfg.receive_buffer_bytes / 2;
	if (seq_ahead(edge, conn->rcv_adv) >= (worth < half ? worth : half))
		tcp_conn_ack_now(conn);
}

void tcp_close(struct tcp_conn *conn, struct now now)
{
	if (tcp_conn_gone(conn) || (conn->flags & CONN_USER_CLOSED) || conn->state == TCP_TIME_WAIT)
		return;
	if (conn->state == TCP_SYN_SENT) {
		tcp_abort(conn);
		return;
	}
	conn->flags |= CONN_USER_CLOSED | CONN_FIN_QUEUED;
	conn->life_at = now.us + TCP_ORPHAN_US;
	tcp_timer_arm(conn, conn->life_at);
	if (conn->state == TCP_ESTABLISHED)
		tcp_conn_set_state(conn, TCP_FIN_WAIT_1);
	else if (conn->state == TCP_CLOSE_WAIT)
		tcp_conn_set_state(conn, TCP_LAST_ACK);
	tcp_conn_dirty(conn);
}

void tcp_abort(struct tcp_conn *conn)
{
	if (conn->state == TCP_CLOSED || conn->state == TCP_TIME_WAIT)
		return;
	conn->flags |= CONN_ABORT;
	tcp_conn_dirty(conn);
}

const struct tcp_tuple *tcp_conn_tuple(const struct tcp_conn *conn)
{
	return &conn->tuple;
}

void *tcp_conn_user(const struct tcp_conn *conn)
{
	return conn->user;
}

void tcp_conn_set_user(struct tcp_conn *conn, void *user)
{
	conn->user = user;
}

unsigned int tcp_conn_index(const struct tcp_conn *conn)
{
	return (unsigned int)(conn - conn->tcp->conns);
}

struct tcp_conn *tcp_conn_at(struct tcp *tcp, unsigned int index)
{
	CHECK(index < tcp->cfg.max_connections);
	return &tcp->conns[index];
}

uint64_t tcp_conn_last_data(const struct tcp_conn *conn)
{
	return conn->last_data_us;
}
