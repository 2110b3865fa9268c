/*
 * fuzz_session.c - whole frames of several connections into a node with a memory log.
 *
 * The input is a list of commands. Byte 0 of each: bits 0-1 the connection, bits 2-4 what happens:
 *   0-3   a frame: u16 length, then that many bytes (those that are left, if fewer)
 *   4     the client closes its half
 *   5     the connection is reset
 *   6-7   time passes: u8, in units of 100 ms
 * A connection that is gone is opened anew by the next frame on it. At the end the server stops, and all that was opened must be closed, and
 * nothing be parked.
 */
#include <stdlib.h>

#include "muster/check.h"

#include "coordinator/node.h"

#define CONNECTIONS 4
#define HELD_MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct world {
	struct stats stats;
	struct node *node;
	struct now now;
	struct conn {
		struct channel ch;
		struct world *world;
		void *session; /* NULL: closed */
		size_t sent;
		struct bytes frames[HELD_MAX]; /* held back */
		unsigned int first, last;
		bool held, fin, drained, closing, aborting;
	} conns[CONNECTIONS];
};

/* Every send must be whole answers: a length, then that many bytes. */
static void world_send(struct channel *ch, const void *p, size_t len)
{
	struct conn *c = CONTAINER_OF(ch, struct conn, ch);
	CHECK(c->session != NULL && !c->closing && !c->aborting);
	struct reader r = reader_of(p, len);
	while (reader_left(&r) > 0)
		reader_take(&r, reader_u32(&r));
	CHECK(!r.bad);
	c->sent += len;
}

static void world_resume(struct channel *ch)
{
	CONTAINER_OF(ch, struct conn, ch)->held = false;
}

static void world_close(struct channel *ch)
{
	CONTAINER_OF(ch, struct conn, ch)->closing = true;
}

static void world_abort(struct channel *ch)
{
	CONTAINER_OF(ch, struct conn, ch)->aborting = true;
}

static const struct channel_ops world_channel_ops = {world_send, world_resume, world_close, world_abort};

static void conn_closed(struct conn *c)
{
	node_service_ops.closed(c->session, c->world->now);
	c->session = NULL;
}

/* Delivers held frames and does the closes that were asked for, as the dataplane's loop does. */
static void conn_pump(struct conn *c)
{
	while (c->session != NULL && !c->held && !c->closing && !c->aborting && c->first != c->last) {
		struct bytes f = c->frames[c->first++];
		enum service_verdict verdict = node_service_ops.frame(c->session, f.p, (size_t)f.len, c->world->now);
		c->held = verdict == SERVICE_HOLD;
		c->aborting |= verdict == SERVICE_ABORT;
	}
	if (c->session != NULL && c->fin && !c->drained && c->first == c->last) {
		c->drained = true;
		node_service_ops.drained(c->session, c->world->now);
	}
	if (c->session != NULL && (c->closing || c->aborting))
		conn_closed(c);
}

static void world_tick(struct world *w)
{
	node_service_ops.tick(w->node, w->now);
	for (unsigned int i = 0; i < CONNECTIONS; i++)
		conn_pump(&w->conns[i]);
}

static void conn_frame(struct conn *c, struct reader *r)
{
	size_t len = reader_u16(r);
	if (len > reader_left(r))
		len = reader_left(r);
	if (r->bad || len == 0)
		return;
	if (c->session == NULL) {
		struct channel_peer peer = {.addr = 0x0a000001, .port = 1};
		*c = (struct conn){.ch = {&world_channel_ops}, .world = c->world};
		c->session = node_service_ops.opened(c->world->node, &c->ch, &peer, c->world->now);
		CHECK(c->session != NULL);
	}
	if (c->fin)
		return;
	if (c->first == c->last)
		c->first = c->last = 0;
	if (c->last < HELD_MAX)
		c->frames[c->last++] = bytes_of(reader_take(r, len), len);
	conn_pump(c);
}

static void world_command(struct world *w, struct reader *r)
{
	uint8_t command = reader_u8(r);
	struct conn *c = &w->conns[command & 3];
	switch (command >> 2 & 7) {
	case 4:
		if (c->session != NULL && !c->fin) {
			c->fin = true;
			node_service_ops.eof(c->session, w->now);
			conn_pump(c);
		}
		break;
	case 5:
		if (c->session != NULL)
			conn_closed(c);
		break;
	case 6:
	case 7:
		w->now.us += reader_u8(r) * 100000ull;
		w->now.wall_ms = (int64_t)(w->now.us / US_PER_MS);
		break;
	default:
		conn_frame(c, r);
	}
	world_tick(w);
}

static struct image *make_image(void)
{
	struct image *img = image_new(BYTES_LITERAL("fuzz"));
	CHECK(image_add_node(img, 1000, BYTES_LITERAL("host"), 19092));
	CHECK(image_add_topic(img, BYTES_LITERAL("alpha"), 3));
	image_seal(img, 2);
	return img;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct group_settings settings = {
		.group_min_session_timeout_ms = 1000,
		.group_max_session_timeout_ms = 1800000,
		.group_initial_rebalance_delay_ms = 100,
		.group_max_size = 100,
		.offset_metadata_max_bytes = 4096,
		.journal_events = 4,
		.journal_removed_members = 20,
		.journal_removed_minutes = 1,
		.offsets_retention_minutes = 1,
		.offsets_retention_check_interval_ms = 1000,
	};
	struct node_config cfg = {.node_id = 1000, .groups = &settings, .max_sessions = CONNECTIONS, .max_fetch_wait_ms = 5000, .random = {1, 2}};
	struct world w = {.now = {1000000, 1000}};
	struct image *image = make_image();
	struct log *log = log_memory_new();
	w.node = node_new(&cfg, image, log, &w.stats, w.now);
	CHECK(w.node != NULL);
	for (unsigned int i = 0; i < CONNECTIONS; i++)
		w.conns[i].world = &w;
	struct reader r = reader_of(data, size);
	while (reader_left(&r) > 0 && !r.bad)
		world_command(&w, &r);
	for (unsigned int i = 0; i < 4 && !node_service_ops.stop(w.node, w.now); i++)
		world_tick(&w);
	CHECK(w.stats.requests_parked_now == 0);
	for (unsigned int i = 0; i < CONNECTIONS; i++)
		if (w.conns[i].session != NULL)
			conn_closed(&w.conns[i]);
	CHECK(w.stats.session_opened == w.stats.session_closed);
	node_free(w.node);
	log_free(log);
	image_free(image);
	return 0;
}
