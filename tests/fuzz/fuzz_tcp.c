/*
 * fuzz_tcp.c - TCP under a hostile peer, an absent-minded user and passing time. State-aware: numbers in the input are relative to what the
 * connection expects, so that mutations stay close to segments that matter.
 *
 * The input is a list of steps: one byte (low nibble: what; high nibble: which of four tuples), then its arguments.
 *
 *     0 wait         u16 ms                     5 close
 *     1 flush                                   6 abort
 *     2 raw segment  u8 len, bytes              7 hold, release    u8 n
 *     3 segment      u8 flags, i16 seq, i16 ack, u16 window, u16 len, u8 options
 *     4 send         u16 len                    8 connect          9 full/not full below      10 user's mood    u8
 *
 * After each step the invariants of tcp_priv.h are checked; at the end everything is aborted, and nothing may be left.
 */
#include "dataplane/tcp/tcp_priv.h"
#include "tests/unit/tcp/segment.h"
#include "muster/bytes.h"

#define TUPLES 4
#define CONNECTIONS 6
#define MAX_STEPS 2000
#define MAX_TX 65600

/* Bits of the user's mood: what it does inside upcalls. */
enum {
	MOOD_ECHO = 1 << 0,
	MOOD_HOLD = 1 << 1,
	MOOD_CLOSE_ON_FIN = 1 << 2,
	MOOD_ABORT_ON_DATA = 1 << 3,
	MOOD_REFUSE = 1 << 4,
	MOOD_CLOSE_ON_DATA = 1 << 5,
};

struct world {
	struct now now;
	struct tcp *tcp;
	struct stats stats;
	struct tcp_conn *flow[TUPLES];
	bool known[CONNECTIONS]; /* the user has seen it and not yet `closed` */
	uint32_t held[CONNECTIONS];
	uint8_t mood;
	bool tx_full;
	uint8_t *tx; /* got and not yet sent */
	size_t tx_len;
};

static struct tcp_tuple tuple_of(unsigned int i)
{
	return (struct tcp_tuple){0x0a000001, 0x0a000002, (uint16_t)(i == 3 ? 7 : 9092), (uint16_t)(1000 + i)};
}

static uint8_t *on_tx_get(void *ctx, const struct tcp_tuple *tuple, size_t len)
{
	struct world *w = ctx;
	CHECK(w->tx == NULL && len >= 20 && len <= 1480);
	if (w->tx_full)
		return NULL;
	w->tx_len = len;
	w->tx = malloc(len);
	return w->tx;
}

static void on_tx_send(void *ctx, const struct tcp_tuple *tuple, uint8_t *p, size_t len)
{
	struct world *w = ctx;
	CHECK(p == w->tx && len == w->tx_len && (p[12] >> 4) * 4u <= len && (p[12] >> 4) >= 5);
	free(p);
	w->tx = NULL;
}

static unsigned int index_of(const struct tcp_conn *conn)
{
	return tcp_conn_tuple(conn)->remote_port - 1000u;
}

static bool on_flow_add(void *ctx, struct tcp_conn *conn)
{
	struct world *w = ctx;
	struct tcp_conn **flow = &w->flow[index_of(conn)];
	if (*flow != NULL)
		return false;
	*flow = conn;
	return true;
}

static void on_flow_remove(void *ctx, struct tcp_conn *conn)
{
	struct world *w = ctx;
	CHECK(w->flow[index_of(conn)] == conn);
	w->flow[index_of(conn)] = NULL;
}

static bool on_established(void *ctx, struct tcp_conn *conn, struct now now)
{
	struct world *w = ctx;
	if (w->mood & MOOD_REFUSE) {
		w->known[tcp_conn_index(conn)] = false;
		return false;
	}
	w->known[tcp_conn_index(conn)] = true;
	w->held[tcp_conn_index(conn)] = 0;
	return true;
}

static void on_data(void *ctx, struct tcp_conn *conn, const uint8_t *p, size_t len, struct now now)
{
	struct world *w = ctx;
	unsigned int i = tcp_conn_index(conn);
	CHECK(w->known[i] && len > 0 && !(conn->flags & CONN_ABORT));
	if (w->mood & MOOD_HOLD) {
		tcp_hold(conn, len);
		w->held[i] += (uint32_t)len;
	}
	if (w->mood & MOOD_ECHO)
		tcp_send(conn, p, len);
	if (w->mood & MOOD_CLOSE_ON_DATA)
		tcp_close(conn, now);
	if (w->mood & MOOD_ABORT_ON_DATA)
		tcp_abort(conn);
}

static void on_fin(void *ctx, struct tcp_conn *conn, struct now now)
{
	struct world *w = ctx;
	CHECK(w->known[tcp_conn_index(conn)]);
	if (w->mood & MOOD_CLOSE_ON_FIN)
		tcp_close(conn, now);
}

static void on_sendable(void *ctx, struct tcp_conn *conn, struct now now)
{
	struct world *w = ctx;
	CHECK(w->known[tcp_conn_index(conn)] && !tcp_over_limit(conn));
}

static void on_closed(void *ctx, struct tcp_conn *conn, enum tcp_end how, struct now now)
{
	struct world *w = ctx;
	unsigned int i = tcp_conn_index(conn);
	CHECK(w->known[i]);
	w->known[i] = false;
}

static const struct tcp_ops ops = {
	.tx_get = on_tx_get,
	.tx_send = on_tx_send,
	.flow_add = on_flow_add,
	.flow_remove = on_flow_remove,
	.established = on_established,
	.data = on_data,
	.fin = on_fin,
	.sendable = on_sendable,
	.closed = on_closed,
};

static void check_world(struct world *w)
{
	uint32_t blocks = 0, reass_blocks = 0;
	for (unsigned int i = 0; i < CONNECTIONS; i++) {
		const struct tcp_conn *c = tcp_conn_at(w->tcp, i);
		if (c->tcp == NULL || c->state == TCP_CLOSED)
			continue;
		CHECK(seq_leq(c->snd_una, c->snd_nxt));
		CHECK(seq_leq(c->rcv_nxt, c->rcv_adv + 1)); /* a FIN takes no room */
		CHECK(c->state == TCP_SYN_SENT || (c->mss > 0 && c->cc.cwnd >= c->mss));
		CHECK(!(c->flags & CONN_SACKED) == (c->sack.ranges == 0) && !(c->flags & CONN_REASS) == (c->reass.blocks == 0));
		CHECK(c->sack.bytes <= c->snd_nxt - c->snd_una);
		CHECK(c->rexmit_at == TIME_NEVER || wheel_timer_hung(&c->timer) || (c->flags & CONN_DIRTY));
		for (const struct pool_block *b = c->sendq.head; b != NULL; b = b->next)
			blocks++;
		blocks += c->reass.blocks + (c->sack.block != NULL);
		reass_blocks += c->reass.blocks;
	}
	CHECK(blocks == pool_used(&w->tcp->pool));
	CHECK(reass_blocks == w->tcp->reass_blocks && reass_blocks <= w->tcp->reass_blocks_max);
}

static void input(struct world *w, unsigned int which, const uint8_t *p, size_t len)
{
	struct tcp_tuple tuple = tuple_of(which);
	segment_input(w->tcp, w->flow[which], &tuple, p, len, w->now);
}

static size_t shape_options(uint8_t *p, uint8_t choice, uint8_t flags, const struct tcp_conn *conn)
{
	size_t n = 0;
	if (choice & 1) {
		uint32_t tsval = conn != NULL ? conn->ts_recent + (choice >> 6) - 1 : 1000;
		n += opt_write_timestamp(p, tsval, conn != NULL ? tcp_conn_timestamp(conn, (struct now){.us = conn->last_tx_us}) : 0);
	}
	if (choice & 2 && conn != NULL) {
		uint32_t una = conn->snd_una;
		struct opt_sack sack[2] = {{una + (choice >> 4) * 300u, una + (choice >> 4) * 300u + 1000}, {una + 9000, una + 9100}};
		n += opt_write_sack(p + n, sack, 1 + (choice >> 3) % 2);
	}
	if (choice & 4 && flags & TCP_SYN) {
		wire_put32(p + n, 2u << 24 | 4 << 16 | (choice & 8 ? 1460 : 100));
		wire_put32(p + n + 4, 1u << 24 | 3 << 16 | 3 << 8 | (choice >> 4));
		n += 8;
		if (n + 4 <= OPT_MAX_BYTES) {
			wire_put32(p + n, 1u << 24 | 1 << 16 | 4 << 8 | 2);
			n += 4;
		}
	}
	return n;
}

static void shaped(struct world *w, unsigned int which, struct reader *r)
{
	static const uint8_t zero[2048];
	const struct tcp_conn *conn = w->flow[which];
	uint8_t p[TCP_HEADER_BYTES + OPT_MAX_BYTES + sizeof(zero)];
	struct segment_head head = {.flags = reader_u8(r)};
	head.seq = (uint32_t)(int16_t)reader_u16(r) + (conn != NULL ? conn->rcv_nxt : 0x7ffffff0);
	head.ack = (uint32_t)(int16_t)reader_u16(r) + (conn != NULL ? conn->snd_nxt : 0);
	head.window = reader_u16(r);
	size_t len = reader_u16(r) % sizeof(zero);
	head.options = shape_options(p + TCP_HEADER_BYTES, reader_u8(r), head.flags, conn);
	if (r->bad)
		return;
	struct tcp_tuple tuple = tuple_of(which);
	memcpy(segment_put_head(p, &tuple, &head) + head.options, zero, len);
	input(w, which, p, TCP_HEADER_BYTES + head.options + len);
}

static void user_call(struct world *w, uint8_t what, struct tcp_conn *conn, struct reader *r)
{
	static const uint8_t zero[65536];
	uint32_t n = what == 4 ? reader_u16(r) : what == 7 ? reader_u8(r) * 64u : 0;
	if (conn == NULL || !w->known[tcp_conn_index(conn)])
		return;
	uint32_t *held = &w->held[tcp_conn_index(conn)];
	switch (what) {
	case 4:
		tcp_send(conn, zero, n);
		break;
	case 5:
		tcp_close(conn, w->now);
		break;
	case 6:
		tcp_abort(conn);
		break;
	default:
		n = n < *held ? n : *held;
		*held -= n;
		tcp_release(conn, n);
	}
}

static void wait(struct world *w, uint64_t ms)
{
	w->now.us += ms * US_PER_MS;
	tcp_timers(w->tcp, 100, w->now);
	tcp_flush(w->tcp, w->now);
	tcp_deadline(w->tcp);
}

static void step(struct world *w, struct reader *r)
{
	uint8_t b = reader_u8(r);
	unsigned int which = (b >> 4) % TUPLES;
	switch (b & 15) {
	case 0:
		wait(w, reader_u16(r));
		break;
	case 1:
		tcp_flush(w->tcp, w->now);
		break;
	case 2: {
		uint8_t len = reader_u8(r);
		const uint8_t *p = reader_take(r, len);
		if (p != NULL)
			input(w, which, p, len);
		break;
	}
	case 3:
		shaped(w, which, r);
		break;
	case 4:
	case 5:
	case 6:
	case 7:
		user_call(w, b & 15, w->flow[which], r);
		break;
	case 8: {
		struct tcp_tuple tuple = tuple_of(which);
		struct tcp_conn *conn = tcp_connect(w->tcp, &tuple, w->now);
		if (conn != NULL) {
			w->known[tcp_conn_index(conn)] = true;
			w->held[tcp_conn_index(conn)] = 0;
		}
		break;
	}
	case 9:
		w->tx_full = !w->tx_full;
		break;
	case 10:
		w->mood = reader_u8(r);
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct world w = {.now = {.us = 1000000}};
	struct tcp_config cfg = {
		.max_connections = CONNECTIONS,
		.mtu = 1500,
		.receive_buffer_bytes = 20000,
		.send_buffer_bytes = 50000,
		.buffer_memory_bytes = 1,
		.rto_min_us = 50000,
		.rto_max_us = 10 * US_PER_S,
		.delayed_ack_us = 20000,
		.keepalive_us = 30 * US_PER_S,
		.time_wait_us = 10 * US_PER_S,
		.secret = {1, 2},
	};
	w.tcp = tcp_new(&cfg, &ops, &w, &w.stats, w.now);
	CHECK(w.tcp != NULL && tcp_listen(w.tcp, 9092));
	struct reader r = reader_of(data, size);
	for (unsigned int i = 0; i < MAX_STEPS && reader_left(&r) > 0; i++) {
		step(&w, &r);
		check_world(&w);
	}
	w.tx_full = false;
	for (unsigned int i = 0; i < TUPLES; i++) {
		if (w.flow[i] != NULL)
			tcp_abort(w.flow[i]);
	}
	wait(&w, 0);
	for (unsigned int i = 0; i < 60; i++)
		wait(&w, 1000); /* TIME_WAIT passes */
	check_world(&w);
	for (unsigned int i = 0; i < CONNECTIONS; i++)
		CHECK(!w.known[i]);
	CHECK(w.tcp->in_use == 0 && pool_used(&w.tcp->pool) == 0 && w.stats.tcp_connections_now == 0);
	tcp_free(w.tcp);
	return 0;
}
