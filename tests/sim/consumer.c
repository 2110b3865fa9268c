/*
 * consumer.c - a client that behaves: find the coordinator, join, (come back with the id that was handed out,) if it leads run the assignor, sync,
 * fetch offsets, then heartbeat and commit by interval, and react to error codes as real clients do (group-protocol 3.4). A failed join never sends
 * a sync. Static members come back without their member id.
 *
 * What it checks: no code that would kill a real client, unless somebody misbehaves or the log refuses; its own partitions are nobody else's.
 */
#include "consumer.h"

/* ---- connection ---- */

uint64_t consumer_soon(struct consumer *c, uint32_t lo_ms, uint32_t hi_ms)
{
	return c->w->now.us + (uint64_t)rng_between(&c->rng, lo_ms * 1000, hi_ms * 1000);
}

struct bytes consumer_instance(const struct consumer *c)
{
	return c->is_static ? bytes_str(c->instance) : BYTES_NULL;
}

void consumer_disconnect(struct consumer *c, bool reset)
{
	struct conn *conn = c->conn;
	c->conn = NULL;
	c->open_len = 0;
	if (conn != NULL && reset)
		conn_rst(conn);
	else if (conn != NULL)
		conn_fin(conn);
}

void consumer_back_off(struct consumer *c, uint32_t lo_ms, uint32_t hi_ms)
{
	c->state = BACKOFF;
	c->wake = consumer_soon(c, lo_ms, hi_ms);
}

/* The connection is of no use any more: find the coordinator again. */
void consumer_rediscover(struct consumer *c)
{
	consumer_disconnect(c, rng_one_in(&c->rng, 2));
	consumer_back_off(c, 20, 400);
}

void consumer_send(struct consumer *c, int16_t api, int16_t version, const void *request, uint64_t timeout_us)
{
	int32_t id = -1;
	if (c->conn != NULL && c->open_len < ARRAY_LEN(c->open))
		id = conn_request(c->conn, api, version, bytes_str(c->client_id), request);
	if (id < 0) {
		consumer_rediscover(c);
		return;
	}
	c->open[c->open_len].correlation_id = id;
	c->open[c->open_len].api = api;
	c->open[c->open_len].version = version;
	c->open[c->open_len].generation = c->generation;
	c->open[c->open_len++].until = c->w->now.us + timeout_us;
}

bool consumer_waits(const struct consumer *c, int16_t api)
{
	for (unsigned int i = 0; i < c->open_len; i++)
		if (c->open[i].api == api)
			return true;
	return false;
}

static void consumer_connect(struct consumer *c)
{
	c->conn = conn_open(c->w, c->index, ++c->conns);
	c->open_len = 0;
	if (c->conn == NULL) {
		consumer_back_off(c, 100, 500);
		return;
	}
	if (rng_one_in(&c->rng, 2)) {
		struct api_versions_request in;
		api_versions_request_init(&in);
		in.client_software_name = BYTES_LITERAL("sim");
		in.client_software_version = BYTES_LITERAL("1.0");
		consumer_send(c, api_key_api_versions, (int16_t)rng_below(&c->rng, 5), &in, REQUEST_TIMEOUT_US);
	}
	struct find_coordinator_request in;
	struct bytes key = c->w->group_id[c->group];
	find_coordinator_request_init(&in);
	in.key = key;
	in.coordinator_keys = &key;
	in.coordinator_keys_len = 1;
	c->state = FINDING;
	c->wake = TIME_NEVER;
	consumer_send(c, api_key_find_coordinator, c->v_find, &in, REQUEST_TIMEOUT_US);
}

/* ---- answers ---- */

void consumer_answer(struct consumer *c, struct conn *conn, int32_t correlation_id, int16_t api, int16_t version, struct bytes body)
{
	static _Alignas(16) uint8_t block[1 << 18];
	struct arena arena = arena_of(block, sizeof(block));
	struct reader r = reader_of(body.p, (size_t)body.len);
	if (conn != c->conn)
		return;
	unsigned int i = 0;
	while (i < c->open_len && c->open[i].correlation_id != correlation_id)
		i++;
	REQUIRE(c->w, "answer-unasked", i < c->open_len, "consumer %d", c->index);
	int32_t generation = c->open[i].generation;
	memmove(&c->open[i], &c->open[i + 1], (--c->open_len - i) * sizeof(c->open[0]));
	const struct message_type *type = message_response(api);
	void *out = arena_alloc(&arena, 1, type->size);
	CHECK(type->decode(out, &r, version, &arena));
	switch (api) {
	case api_key_find_coordinator:
		if (c->state == FINDING)
			consumer_join(c);
		break;
	case api_key_join_group:
		consumer_joined(c, out, version);
		break;
	case api_key_sync_group:
		consumer_synced(c, out);
		break;
	case api_key_heartbeat:
		consumer_beaten(c, ((const struct heartbeat_response *)out)->error_code, generation);
		break;
	case api_key_offset_commit:
		consumer_committed(c, out, generation);
		break;
	default:
		break;
	}
}

void consumer_lost(struct consumer *c, struct conn *conn)
{
	if (conn != c->conn)
		return;
	c->conn = NULL;
	c->open_len = 0;
	if (c->state != OFF && c->state != FATAL)
		consumer_back_off(c, 10, 300);
}

/* ---- time ---- */

uint64_t consumer_due(const struct consumer *c)
{
	if (c->state == OFF)
		return TIME_NEVER;
	uint64_t due = c->wake;
	if (c->state == STABLE || (c->state == JOINING && c->beats_while_joining))
		due = c->beat_at < due ? c->beat_at : due;
	if (c->state == STABLE)
		due = c->commit_at < due ? c->commit_at : due;
	for (unsigned int i = 0; i < c->open_len; i++)
		due = c->open[i].until < due ? c->open[i].until : due;
	return due < c->paused_until ? c->paused_until : due;
}

void consumer_wake(struct consumer *c)
{
	uint64_t now = c->w->now.us;
	for (unsigned int i = 0; i < c->open_len; i++) {
		if (c->open[i].until <= now) { /* too long: a new connection */
			if (c->is_static && c->impatient) { /* or a new process on a new host */
				conn_vanish(c->conn);
				c->conn = NULL;
				consumer_forget(c);
			}
			consumer_rediscover(c);
			return;
		}
	}
	if (c->wake <= now) {
		c->wake = TIME_NEVER;
		if (c->state == BACKOFF || c->state == FATAL) {
			if (c->conn == NULL)
				consumer_connect(c);
			else
				consumer_join(c);
		} else if (c->state == COMPUTING) {
			consumer_sync(c);
		}
		return;
	}
	if (c->beat_at <= now) {
		consumer_beat(c);
		return;
	}
	if (c->commit_at <= now)
		consumer_commit(c);
}

/* ---- actions of the plan ---- */

static void consumer_off(struct consumer *c)
{
	consumer_forget(c);
	c->conn = NULL;
	c->open_len = 0;
	c->state = OFF;
	c->wake = TIME_NEVER;
}

static void consumer_lose(struct consumer *c, const struct action *a)
{
	if (c->conn == NULL)
		return;
	struct conn *conn = c->conn;
	switch (a->random % 4) {
	case 0: /* both ends know */
		c->conn = NULL;
		c->open_len = 0;
		conn_rst(conn);
		consumer_back_off(c, 10, 500);
		break;
	case 1:
		c->conn = NULL;
		c->open_len = 0;
		conn_fin(conn);
		consumer_back_off(c, 10, 500);
		break;
	case 2: /* only the client knows */
		c->conn = NULL;
		c->open_len = 0;
		conn_vanish(conn);
		consumer_back_off(c, 10, 500);
		break;
	default: /* only the server knows */
		conn_half_open(conn);
	}
}

void consumer_act(struct consumer *c, const struct action *a)
{
	switch (a->kind) {
	case ACT_START:
		if (c->state != OFF)
			break;
		c->rng = rng_of(a->random, (uint64_t)c->index);
		c->paused_until = 0;
		consumer_forget(c);
		consumer_connect(c);
		break;
	case ACT_STOP:
		consumer_leave(c);
		if (c->conn != NULL)
			conn_fin(c->conn);
		consumer_off(c);
		break;
	case ACT_KILL:
		if (c->conn != NULL)
			conn_fin(c->conn);
		consumer_off(c);
		break;
	case ACT_RESET:
		if (c->conn != NULL)
			conn_rst(c->conn);
		consumer_off(c);
		break;
	case ACT_VANISH:
		if (c->conn != NULL)
			conn_vanish(c->conn);
		consumer_off(c);
		break;
	case ACT_PAUSE:
		c->paused_until = c->w->now.us + (1 + a->random % 20) * 1000000;
		break;
	case ACT_LOSE:
		consumer_lose(c, a);
		break;
	case ACT_RESUBSCRIBE:
		c->topics = 1 + (uint32_t)(a->random % 7);
		if (c->state == STABLE)
			consumer_join(c);
		break;
	case ACT_REJOIN:
		if (c->state == STABLE)
			consumer_join(c);
		break;
	default:
		break;
	}
}
