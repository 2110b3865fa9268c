/*
 * two.c - two stacks and a bad link between them, see two.h.
 *
 * Segments in flight stand in a binary heap by arrival time. A segment that is reordered is held back by up to three times the
 * delay.
 */
#include "two.h"

#include <stdlib.h>
#include <string.h>

#include "muster/check.h"

#define PATTERN_PRIME 251 /* no power of two divides it, so shifted data is noticed */
#define SEND_STEP 16384

uint64_t two_random(struct two *two)
{
	two->random ^= two->random << 13;
	two->random ^= two->random >> 7;
	two->random ^= two->random << 17;
	return two->random;
}

static bool chance(struct two *two, unsigned int per_mille)
{
	return two_random(two) % 1000 < per_mille;
}

static uint8_t pattern(unsigned int end, uint64_t offset)
{
	return (uint8_t)((offset % PATTERN_PRIME) + (offset >> 16) + end * 7);
}

/* ---- segments in flight ---- */

static bool earlier(const struct two_segment *a, const struct two_segment *b)
{
	return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void push(struct two *two, unsigned int to, const uint8_t *bytes, size_t len, uint64_t at)
{
	if (two->heap_len == two->heap_cap) {
		two->heap_cap = two->heap_cap * 2 + 64;
		two->heap = realloc(two->heap, two->heap_cap * sizeof(two->heap[0]));
		CHECK(two->heap != NULL);
	}
	struct two_segment s = {at, two->order++, to, len, malloc(len)};
	CHECK(s.bytes != NULL);
	memcpy(s.bytes, bytes, len);
	size_t i = two->heap_len++;
	for (; i > 0 && earlier(&s, &two->heap[(i - 1) / 2]); i = (i - 1) / 2)
		two->heap[i] = two->heap[(i - 1) / 2];
	two->heap[i] = s;
}

static struct two_segment pop(struct two *two)
{
	struct two_segment top = two->heap[0], last = two->heap[--two->heap_len];
	size_t i = 0;
	for (;;) {
		size_t child = 2 * i + 1;
		if (child >= two->heap_len)
			break;
		if (child + 1 < two->heap_len && earlier(&two->heap[child + 1], &two->heap[child]))
			child++;
		if (!earlier(&two->heap[child], &last))
			break;
		two->heap[i] = two->heap[child];
		i = child;
	}
	two->heap[i] = last;
	return top;
}

/* ---- what TCP calls ---- */

static uint8_t *on_tx_get(void *ctx, const struct tcp_tuple *tuple, size_t len)
{
	struct two_end *end = ctx;
	if (chance(end->two, end->two->link.tx_fail_pm))
		return NULL;
	end->tx_tuple = *tuple;
	return malloc(len);
}

static void on_tx_send(void *ctx, const struct tcp_tuple *tuple, uint8_t *segment, size_t len)
{
	struct two_end *end = ctx;
	struct two *two = end->two;
	struct two_link *link = &two->link;
	CHECK(memcmp(tuple, &end->tx_tuple, sizeof(*tuple)) == 0);
	uint64_t start = end->wire_free_us > two->now.us ? end->wire_free_us : two->now.us;
	end->wire_free_us = start + link->segment_us;
	uint64_t at = end->wire_free_us + link->delay_us;
	bool dropped = two->drop != NULL && two->drop(two, end->id, segment, len);
	if (dropped || link->cut || chance(two, link->loss_pm)) {
		two->lost++;
	} else {
		if (chance(two, link->reorder_pm))
			at += two_random(two) % (3 * link->delay_us + 1);
		push(two, 1 - end->id, segment, len, at);
		if (chance(two, link->duplicate_pm))
			push(two, 1 - end->id, segment, len, at + two_random(two) % (link->delay_us + 1));
	}
	free(segment);
}

static bool same_tuple(const struct tcp_tuple *a, const struct tcp_tuple *b)
{
	return a->local_addr == b->local_addr && a->remote_addr == b->remote_addr && a->local_port == b->local_port &&
	       a->remote_port == b->remote_port;
}

static struct tcp_conn *lookup(struct two_end *end, const struct tcp_tuple *tuple)
{
	for (unsigned int i = 0; i < end->flows; i++) {
		if (same_tuple(&end->flow[i].tuple, tuple))
			return end->flow[i].conn;
	}
	return NULL;
}

static bool on_flow_add(void *ctx, struct tcp_conn *conn)
{
	struct two_end *end = ctx;
	if (end->flows == TWO_MAX_FLOWS || lookup(end, tcp_conn_tuple(conn)) != NULL)
		return false;
	end->flow[end->flows].tuple = *tcp_conn_tuple(conn);
	end->flow[end->flows++].conn = conn;
	return true;
}

static void on_flow_remove(void *ctx, struct tcp_conn *conn)
{
	struct two_end *end = ctx;
	for (unsigned int i = 0; i < end->flows; i++) {
		if (end->flow[i].conn == conn) {
			end->flow[i] = end->flow[--end->flows];
			return;
		}
	}
	CHECK(false);
}

static struct two_app *new_app(struct two_end *end)
{
	CHECK(end->apps < TWO_MAX_FLOWS);
	struct two_app *app = &end->app[end->apps++];
	*app = end->accept;
	app->end = end;
	return app;
}

static void produce(struct two_app *app)
{
	uint8_t bytes[SEND_STEP];
	while (app->conn != NULL && app->sent < app->to_send && !tcp_over_limit(app->conn)) {
		uint64_t left = app->to_send - app->sent;
		size_t n = left < SEND_STEP ? (size_t)left : SEND_STEP;
		for (size_t i = 0; i < n; i++)
			bytes[i] = pattern(app->end->id, app->sent + i);
		if (!tcp_send(app->conn, bytes, n))
			return;
		app->sent += n;
	}
	if (app->conn != NULL && app->sent == app->to_send && app->close_when_sent) {
		app->close_when_sent = false;
		tcp_close(app->conn, app->end->two->now);
	}
}

static bool on_established(void *ctx, struct tcp_conn *conn, struct now now)
{
	struct two_end *end = ctx;
	struct two_app *app = tcp_conn_user(conn);
	if (app == NULL) {
		app = new_app(end);
		app->conn = conn;
		tcp_conn_set_user(conn, app);
	}
	app->established = true;
	if (app->refuse) {
		app->conn = NULL;
		return false;
	}
	produce(app);
	return true;
}

static void on_data(void *ctx, struct tcp_conn *conn, const uint8_t *p, size_t len, struct now now)
{
	struct two_app *app = tcp_conn_user(conn);
	if (app->fin || app->closed || !app->established || len == 0)
		app->out_of_order_upcall = true;
	for (size_t i = 0; i < len; i++) {
		if (p[i] != pattern(1 - app->end->id, app->received + i))
			app->wrong_byte = true;
	}
	app->received += len;
	if (app->stalled) {
		app->held += len;
		tcp_hold(conn, len);
	}
}

static void on_fin(void *ctx, struct tcp_conn *conn, struct now now)
{
	struct two_app *app = tcp_conn_user(conn);
	if (app->fin || app->closed || !app->established)
		app->out_of_order_upcall = true;
	app->fin = true;
	if (app->close_on_fin)
		app->close_when_sent = true;
	produce(app);
}

static void on_sendable(void *ctx, struct tcp_conn *conn, struct now now)
{
	struct two_app *app = tcp_conn_user(conn);
	app->sendables++;
	produce(app);
}

static void on_closed(void *ctx, struct tcp_conn *conn, enum tcp_end how, struct now now)
{
	struct two_app *app = tcp_conn_user(conn);
	CHECK(app != NULL && !app->closed);
	app->closed = true;
	app->how = how;
	app->conn = NULL;
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

/* ---- the world ---- */

struct tcp_config two_default_config(void)
{
	return (struct tcp_config){
		.max_connections = 16,
		.mtu = 1500,
		.receive_buffer_bytes = 256 * 1024,
		.send_buffer_bytes = 256 * 1024,
		.buffer_memory_bytes = 16 * 1024 * 1024,
		.rto_min_us = 50 * US_PER_MS,
		.rto_max_us = 60 * US_PER_S,
		.delayed_ack_us = 20 * US_PER_MS,
		.keepalive_us = 60 * US_PER_S,
		.time_wait_us = 30 * US_PER_S,
		.secret = {0x0123456789abcdef, 0xfedcba9876543210},
	};
}

void two_init(struct two *two, const struct tcp_config *client, const struct tcp_config *server, uint64_t seed)
{
	*two = (struct two){
		.now = {.us = 5 * US_PER_S, .wall_ms = 1700000000000},
		.link = {.delay_us = 1000, .segment_us = 10},
		.random = seed * 0x9e3779b97f4a7c15 + 1,
	};
	for (unsigned int i = 0; i < 2; i++) {
		struct two_end *end = &two->end[i];
		end->two = two;
		end->id = i;
		end->tcp = tcp_new(i == 0 ? client : server, &ops, end, &end->stats, two->now);
		CHECK(end->tcp != NULL);
	}
	CHECK(tcp_listen(two->end[1].tcp, TWO_PORT));
}

void two_fini(struct two *two)
{
	while (two->heap_len > 0)
		free(pop(two).bytes);
	free(two->heap);
	tcp_free(two->end[0].tcp);
	tcp_free(two->end[1].tcp);
}

struct two_app *two_connect(struct two *two, uint16_t port)
{
	struct two_end *end = &two->end[0];
	struct tcp_tuple tuple = {0x0a000001, 0x0a000002, port, TWO_PORT};
	struct two_app *app = new_app(end);
	app->conn = tcp_connect(end->tcp, &tuple, two->now);
	if (app->conn == NULL) {
		end->apps--;
		return NULL;
	}
	tcp_conn_set_user(app->conn, app);
	return app;
}

static void flush_all(struct two *two)
{
	for (unsigned int i = 0; i < 2; i++) {
		struct two_end *end = &two->end[i];
		for (unsigned int a = 0; a < end->apps; a++) {
			if (end->app[a].established)
				produce(&end->app[a]);
		}
		tcp_flush(end->tcp, two->now);
	}
}

/* Leaves the MSS option (the first) of a SYN and turns the others into no-ops. */
static void strip(uint8_t *segment, size_t len)
{
	if (segment[13] & 0x02)
		memset(segment + 24, 1, len - 24);
}

static void arrive(struct two *two)
{
	struct two_segment s = pop(two);
	struct two_end *end = &two->end[s.to];
	struct tcp_tuple tuple = {
		.local_addr = s.to == 0 ? 0x0a000001 : 0x0a000002,
		.remote_addr = s.to == 0 ? 0x0a000002 : 0x0a000001,
		.local_port = (uint16_t)(s.bytes[2] << 8 | s.bytes[3]),
		.remote_port = (uint16_t)(s.bytes[0] << 8 | s.bytes[1]),
	};
	if (two->strip_options)
		strip(s.bytes, s.len);
	tcp_input(end->tcp, lookup(end, &tuple), &tuple, s.bytes, s.len, two->now);
	free(s.bytes);
}

bool two_step(struct two *two, uint64_t until_us)
{
	flush_all(two);
	uint64_t next = two->heap_len > 0 ? two->heap[0].at : TIME_NEVER;
	for (unsigned int i = 0; i < 2; i++) {
		uint64_t deadline = tcp_deadline(two->end[i].tcp);
		if (deadline <= two->now.us)
			deadline = two->now.us + 100; /* the next poll round */
		if (deadline < next)
			next = deadline;
	}
	if (next > until_us)
		return false;
	if (next > two->now.us)
		two->now.us = next;
	for (unsigned int n = 0; n < 32 && two->heap_len > 0 && two->heap[0].at <= two->now.us; n++)
		arrive(two);
	tcp_timers(two->end[0].tcp, 1000, two->now);
	tcp_timers(two->end[1].tcp, 1000, two->now);
	return true;
}

void two_run(struct two *two, uint64_t until_us)
{
	while (two_step(two, until_us))
		;
	if (two->now.us < until_us)
		two->now.us = until_us;
	flush_all(two);
}

bool two_run_until(struct two *two, bool (*done)(struct two *two), uint64_t until_us)
{
	while (!done(two)) {
		if (!two_step(two, until_us))
			return false;
	}
	return true;
}

struct two_app *two_peer(struct two *two, struct two_app *client)
{
	size_t i = (size_t)(client - two->end[0].app);
	return i < two->end[1].apps ? &two->end[1].app[i] : NULL;
}

void two_resume(struct two_app *app)
{
	app->stalled = false;
	if (app->conn != NULL)
		tcp_release(app->conn, app->held);
	app->held = 0;
}
