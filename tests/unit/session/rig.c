/*
 * rig.c - see rig.h.
 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "rig.h"

/* ---- channel ---- */

static void rig_send(struct channel *ch, const void *p, size_t len)
{
	struct conn *c = CONTAINER_OF(ch, struct conn, ch);
	cr_assert(!c->closed && !c->want_close && !c->want_abort, "bytes sent on a connection that is being closed");
	if (c->out_len + len > c->out_cap) {
		c->out_cap = (c->out_len + len) * 2;
		c->out = realloc(c->out, c->out_cap);
	}
	memcpy(c->out + c->out_len, p, len);
	c->out_len += len;
}

static void rig_resume(struct channel *ch)
{
	struct conn *c = CONTAINER_OF(ch, struct conn, ch);
	cr_assert(c->held, "a connection resumed that was not held");
	c->held = false;
}

static void rig_close(struct channel *ch)
{
	struct conn *c = CONTAINER_OF(ch, struct conn, ch);
	cr_assert(!c->want_close && !c->want_abort);
	c->want_close = true;
}

static void rig_abort(struct channel *ch)
{
	struct conn *c = CONTAINER_OF(ch, struct conn, ch);
	c->want_abort = true;
}

static const struct channel_ops rig_channel_ops = {rig_send, rig_resume, rig_close, rig_abort};

/* ---- connections ---- */

/* Does what the dataplane's loop would: delivers frames, then closes. */
void conn_pump(struct conn *c)
{
	while (!c->closed && !c->held && !c->want_abort && c->first != c->last) {
		uint8_t *p = c->frames[c->first].p;
		enum service_verdict verdict = node_service_ops.frame(c->session, p, c->frames[c->first].len, c->rig->now);
		memset(p, 0xdd, c->frames[c->first].len);
		free(p);
		c->first++;
		c->held = verdict == SERVICE_HOLD;
		c->want_abort |= verdict == SERVICE_ABORT;
	}
	if (!c->closed && c->fin && c->first == c->last && !c->want_close && !c->want_abort) {
		node_service_ops.drained(c->session, c->rig->now);
		c->fin = false;
	}
	if (!c->closed && (c->want_abort || c->want_close)) {
		c->closed = true;
		c->aborted = c->want_abort;
		node_service_ops.closed(c->session, c->rig->now);
	}
}

struct conn *rig_open(struct rig *rig)
{
	struct conn *c = calloc(1, sizeof(*c));
	struct channel_peer peer = {.addr = 0x0a000001, .port = 40000};
	c->ch.ops = &rig_channel_ops;
	c->rig = rig;
	c->session = node_service_ops.opened(rig->node, &c->ch, &peer, rig->now);
	if (c->session == NULL) {
		free(c);
		return NULL;
	}
	c->next = rig->conns;
	rig->conns = c;
	return c;
}

void conn_raw(struct conn *c, const void *frame, size_t len)
{
	cr_assert(c->last < RIG_FRAMES);
	uint8_t *copy = malloc(len);
	memcpy(copy, frame, len);
	c->frames[c->last].p = copy;
	c->frames[c->last++].len = len;
	conn_pump(c);
}

static void conn_encode(struct writer *w, int16_t key, int16_t version, int32_t correlation_id, const void *request)
{
	struct request_header h = {key, version, correlation_id, BYTES_LITERAL("test-client"), true};
	request_header_encode(w, &h);
	message_request(key)->encode(request, w, version);
}

void conn_send(struct conn *c, int16_t key, int16_t version, int32_t correlation_id, const void *request)
{
	struct writer w = writer_of(NULL, 0);
	conn_encode(&w, key, version, correlation_id, request);
	uint8_t *buffer = malloc(w.need);
	w = writer_of(buffer, w.need);
	conn_encode(&w, key, version, correlation_id, request);
	cr_assert(!w.full);
	conn_raw(c, buffer, writer_len(&w));
	free(buffer);
}

void conn_fin(struct conn *c)
{
	c->fin = true;
	node_service_ops.eof(c->session, c->rig->now);
	conn_pump(c);
}

void conn_reset(struct conn *c)
{
	if (!c->closed)
		node_service_ops.closed(c->session, c->rig->now);
	c->closed = true;
}

void conn_free(struct conn *c)
{
	struct conn **at = &c->rig->conns;
	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	conn_reset(c);
	for (; c->first < c->last; c->first++)
		free(c->frames[c->first].p);
	free(c->out);
	free(c);
}

/* ---- answers ---- */

static size_t answer_len(const struct conn *c, size_t at)
{
	struct reader r = reader_of(c->out + at, c->out_len - at);
	size_t len = reader_u32(&r);
	cr_assert(!r.bad && len <= reader_left(&r), "an answer is cut off");
	return len;
}

unsigned int conn_answers(const struct conn *c)
{
	unsigned int n = 0;
	for (size_t at = c->out_read; at < c->out_len; n++)
		at += 4 + answer_len(c, at);
	return n;
}

struct bytes conn_read_raw(struct conn *c)
{
	cr_assert(c->out_read < c->out_len, "no answer");
	struct bytes b = bytes_of(c->out + c->out_read + 4, answer_len(c, c->out_read));
	c->out_read += 4 + (size_t)b.len;
	return b;
}

void conn_read(struct conn *c, int16_t key, int16_t version, int32_t correlation_id, void *response)
{
	struct bytes b = conn_read_raw(c);
	struct reader r = reader_of(b.p, (size_t)b.len);
	int32_t got;
	cr_assert(response_header_decode(&got, &r, key, version));
	cr_assert_eq(got, correlation_id, "answer %d came where %d was due", got, correlation_id);
	/* the slices of the decoded answer must outlive later reallocations of the output */
	uint8_t *copy = arena_alloc(&c->rig->arena, reader_left(&r), 1);
	cr_assert_not_null(copy);
	memcpy(copy, r.p, reader_left(&r));
	struct reader body = reader_of(copy, reader_left(&r));
	cr_assert(message_response(key)->decode(response, &body, version, &c->rig->arena), "%s v%d does not decode",
		  message_response(key)->name, version);
	cr_assert_eq(reader_left(&body), 0);
}

/* ---- log ---- */

static struct rig_log *rig_log_of(struct log *log)
{
	return CONTAINER_OF(log, struct rig_log, log);
}

static uint64_t rig_log_append(struct log *log, unsigned int shard, struct log_entry *entries, unsigned int n, int16_t *error, struct now now)
{
	struct rig_log *l = rig_log_of(log);
	*error = l->broken;
	return l->broken != 0 ? 0 : (l->appended += n);
}

static uint64_t rig_log_durable(struct log *log)
{
	return rig_log_of(log)->durable;
}

static uint64_t rig_log_poll(struct log *log, struct now now)
{
	struct rig_log *l = rig_log_of(log);
	uint64_t reach = l->limit < l->appended ? l->limit : l->appended;
	if (reach > l->durable)
		l->durable = reach;
	return TIME_NEVER;
}

static void rig_log_free(struct log *log)
{
}

static int16_t rig_log_failed(struct log *log)
{
	return rig_log_of(log)->broken;
}

static const struct log_ops rig_log_ops = {rig_log_append, rig_log_durable, rig_log_poll, rig_log_free, rig_log_failed};

/* ---- node ---- */

static const struct setting rig_settings[] = {
	{{(const uint8_t *)"group.max.size", 14}, {(const uint8_t *)"7", 1}, {(const uint8_t *)"2147483647", 10}, {(const uint8_t *)"help", 4},
	 SETTING_INT, SETTING_FROM_FILE},
	{{(const uint8_t *)"offset.metadata.max.bytes", 25}, {(const uint8_t *)"4096", 4}, {(const uint8_t *)"4096", 4},
	 {(const uint8_t *)"help", 4}, SETTING_INT, SETTING_FROM_DEFAULT},
};

static struct rig *rig_make(struct log *log, unsigned int shards, unsigned int nodes, unsigned int max_sessions, struct mailbox *mailbox)
{
	struct rig *rig = aligned_alloc(MUSTER_CACHE_LINE, (sizeof(*rig) + 63) / 64 * 64);
	memset(rig, 0, sizeof(*rig));
	rig->now = (struct now){.us = 1000000, .wall_ms = 1700000000000};
	rig->settings.group_min_session_timeout_ms = 6000;
	rig->settings.group_max_session_timeout_ms = 1800000;
	rig->settings.group_initial_rebalance_delay_ms = 0;
	rig->settings.group_max_size = INT32_MAX;
	rig->settings.offset_metadata_max_bytes = 4096;
	rig->settings.journal_events = 16;
	rig->image = image_new(BYTES_LITERAL("rig-cluster"));
	for (unsigned int i = 0; i < nodes; i++)
		cr_assert(image_add_node(rig->image, 1000 + (int32_t)i, BYTES_LITERAL("muster.test"), 19092 + (int32_t)i));
	cr_assert(image_add_topic(rig->image, BYTES_LITERAL("gamma"), 3));
	cr_assert(image_add_topic(rig->image, BYTES_LITERAL("alpha"), 6));
	cr_assert(image_add_topic(rig->image, BYTES_LITERAL("beta"), 1));
	cr_assert(log == NULL || image_add_topic(rig->image, BYTES_LITERAL(IMAGE_LOG_TOPIC), (int32_t)shards));
	image_seal(rig->image, shards);
	rig->log = (struct rig_log){.log.ops = &rig_log_ops, .limit = UINT64_MAX};
	struct node_config cfg = {.node_id = 1000 + (mailbox == NULL ? 0 : (int32_t)mailbox->self), .mailbox = mailbox,
				  .groups = &rig->settings, .max_sessions = max_sessions, .max_fetch_wait_ms = 5000,
				  .random = {1, 2}, .settings = rig_settings, .settings_len = ARRAY_LEN(rig_settings)};
	rig->node = node_new(&cfg, rig->image, log != NULL ? log : &rig->log.log, &rig->stats, rig->now);
	cr_assert_not_null(rig->node);
	size_t arena = mailbox == NULL ? 64 << 20 : 4 << 20;
	rig->arena = arena_of(calloc(1, arena), arena);
	return rig;
}

struct rig *rig_new(unsigned int shards, unsigned int nodes, unsigned int max_sessions)
{
	return rig_make(NULL, shards, nodes, max_sessions, NULL);
}

struct rig *rig_new_over(struct log *log, unsigned int shards, unsigned int nodes, unsigned int max_sessions)
{
	return rig_make(log, shards, nodes, max_sessions, NULL);
}

struct rig *rig_new_worker(unsigned int shards, unsigned int nodes, unsigned int max_sessions, struct mailbox *mailbox)
{
	return rig_make(NULL, shards, nodes, max_sessions, mailbox);
}

void rig_free(struct rig *rig)
{
	node_free(rig->node);
	image_free(rig->image);
	free(rig->arena.base);
	free(rig);
}

uint64_t rig_round(struct rig *rig)
{
	return node_service_ops.tick(rig->node, rig->now);
}

void rig_advance(struct rig *rig, uint64_t ms)
{
	for (uint64_t i = 0; i < ms; i++) {
		rig->now.us += US_PER_MS;
		rig->now.wall_ms++;
		rig_round(rig);
	}
}
