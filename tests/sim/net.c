/*
 * net.c - connections as the service sees them through the dataplane (muster/service.h), and as the client sees them through the network.
 *
 * Two lines of whole frames per connection, each in order; different connections overtake each other freely. The server's side keeps the rules of
 * the seam: no frame while held, one frame per step, eof as soon as the FIN arrives, drained after the last frame, closed exactly once and
 * never from inside a call; send, resume, close and abort only queue or mark.
 */
#include "sim.h"

static void line_push(struct line *l, uint64_t at, enum wire_kind kind, const void *p, size_t len)
{
	if (l->first == l->last)
		l->first = l->last = 0;
	if (l->last == l->cap) {
		l->cap = l->cap == 0 ? 8 : l->cap * 2;
		l->items = realloc(l->items, l->cap * sizeof(*l->items));
	}
	if (at < l->last_at)
		at = l->last_at;
	l->last_at = at;
	struct wire_item item = {at, kind, NULL, len};
	if (len > 0) {
		item.p = malloc(len);
		memcpy(item.p, p, len);
	}
	l->items[l->last++] = item;
}

static bool line_empty(const struct line *l)
{
	return l->first == l->last;
}

static uint64_t line_due(const struct line *l)
{
	return line_empty(l) ? TIME_NEVER : l->items[l->first].at;
}

static struct wire_item line_pop(struct line *l)
{
	return l->items[l->first++];
}

static void line_clear(struct line *l)
{
	while (!line_empty(l))
		free(line_pop(l).p);
}

static void line_fini(struct line *l)
{
	line_clear(l);
	free(l->items);
}

static uint64_t conn_arrival(struct conn *c)
{
	if (c->w->rush)
		return c->w->now.us + 1;
	uint64_t delay = rng_one_in(&c->rng, 3) ? rng_between(&c->rng, 20, 200) : rng_between(&c->rng, 200, 15000);
	if (c->w->now.us < c->w->net_slow_until)
		delay += rng_below(&c->rng, c->w->net_slow_ms * US_PER_MS);
	return c->w->now.us + delay;
}

/* ---- the dataplane's end ---- */

static struct conn *conn_of(struct channel *ch)
{
	return CONTAINER_OF(ch, struct conn, ch);
}

static void conn_look(struct conn *c, uint64_t at)
{
	if (at < c->server_at)
		c->server_at = at;
}

static void channel_op_send(struct channel *ch, const void *p, size_t len)
{
	struct conn *c = conn_of(ch);
	REQUIRE(c->w, "send-after-end", c->session != NULL && !c->want_close && !c->want_abort, "connection %u: bytes sent after its end", c->number);
	watch_answer(c, p, len);
	if (c->client_open)
		line_push(&c->down, conn_arrival(c), WIRE_DATA, p, len);
}

static void channel_op_resume(struct channel *ch)
{
	struct conn *c = conn_of(ch);
	REQUIRE(c->w, "resume-not-held", c->session != NULL && c->held, "connection %u: resumed although not held", c->number);
	c->held = false;
	conn_look(c, c->w->now.us + 1);
}

static void channel_op_close(struct channel *ch)
{
	struct conn *c = conn_of(ch);
	REQUIRE(c->w, "close-twice", c->session != NULL && !c->want_close && !c->want_abort, "connection %u: closed twice", c->number);
	c->want_close = true;
	line_push(&c->down, conn_arrival(c), WIRE_FIN, NULL, 0);
	conn_look(c, c->w->now.us + 1 + rng_below(&c->rng, 20000));
}

static void channel_op_abort(struct channel *ch)
{
	struct conn *c = conn_of(ch);
	REQUIRE(c->w, "abort-twice", c->session != NULL && !c->want_abort, "connection %u: aborted twice", c->number);
	c->want_abort = true;
	conn_look(c, c->w->now.us + 1);
}

static const struct channel_ops channel_ops_of_sim = {channel_op_send, channel_op_resume, channel_op_close, channel_op_abort};

static void conn_server_closed(struct conn *c, bool tell)
{
	CHECK(!c->server_closed);
	c->server_closed = true;
	trace(c->w, "conn %u closed", c->number);
	c->server_at = c->dead_at = TIME_NEVER;
	line_clear(&c->rx);
	if (c->session != NULL) {
		c->w->step.closes = true;
		node_service_ops.closed(c->session, served(c->w));
		c->session = NULL;
	}
	watch_closed(c);
	if (tell && c->client_open)
		line_push(&c->down, conn_arrival(c), WIRE_RST, NULL, 0);
	c->w->tick_at = c->w->now.us;
}

static void conn_frame(struct conn *c)
{
	struct wire_item item = line_pop(&c->rx);
	watch_delivered(c, item.p, item.len);
	enum service_verdict verdict = node_service_ops.frame(c->session, item.p, item.len, served(c->w));
	memset(item.p, 0xdd, item.len);
	free(item.p);
	/* as in the dataplane: a resume during the call would be lost, so the service must not rely on one */
	if (verdict == SERVICE_HOLD)
		c->held = true;
	if (verdict == SERVICE_ABORT)
		c->want_abort = true;
	watch_returned(c, verdict);
	c->w->tick_at = c->w->now.us + rng_below(&c->rng, 3) * 40;
}

/* One thing that the worker's loop does for this connection. */
static void conn_loop(struct conn *c)
{
	c->server_at = TIME_NEVER;
	if (c->server_closed || c->session == NULL)
		return;
	if (c->want_abort) {
		conn_server_closed(c, true);
		return;
	}
	if (!c->held && !line_empty(&c->rx) && !c->want_close) {
		conn_frame(c);
		conn_look(c, c->w->now.us + 1);
		return;
	}
	if (c->eof && !c->drained && line_empty(&c->rx) && !c->want_close) {
		c->drained = true;
		node_service_ops.drained(c->session, served(c->w));
		c->w->tick_at = c->w->now.us;
		conn_look(c, c->w->now.us + 1);
		return;
	}
	if (c->want_close)
		conn_server_closed(c, false);
}

static void conn_syn(struct conn *c)
{
	struct channel_peer peer = {.addr = c->addr, .local_addr = 0x0a0000fe, .port = (uint16_t)(30000 + c->number % 30000), .local_port = 19092};
	if (c->w->stopping) {
		c->server_closed = true;
		line_push(&c->down, conn_arrival(c), WIRE_RST, NULL, 0);
		return;
	}
	c->session = node_service_ops.opened(c->w->node, &c->ch, &peer, served(c->w));
	if (c->session == NULL) {
		c->server_closed = true;
		line_push(&c->down, conn_arrival(c), WIRE_RST, NULL, 0);
	}
}

static void conn_arrived(struct conn *c)
{
	struct wire_item item = line_pop(&c->up);
	if (c->server_closed) {
		if (item.kind == WIRE_DATA && c->client_open)
			line_push(&c->down, conn_arrival(c), WIRE_RST, NULL, 0);
		free(item.p);
		return;
	}
	switch (item.kind) {
	case WIRE_SYN:
		conn_syn(c);
		break;
	case WIRE_DATA:
		line_push(&c->rx, 0, WIRE_DATA, item.p, item.len);
		free(item.p);
		conn_look(c, c->w->now.us);
		break;
	case WIRE_FIN:
		c->eof = true;
		c->w->step.closes = true;
		trace(c->w, "conn %u half-closed", c->number);
		if (!c->want_abort && !c->want_close) {
			node_service_ops.eof(c->session, served(c->w));
			c->w->tick_at = c->w->now.us;
		}
		conn_look(c, c->w->now.us);
		break;
	case WIRE_RST:
		conn_server_closed(c, false);
	}
}

/* ---- the client's end ---- */

static void conn_client_ended(struct conn *c)
{
	c->client_open = false;
	line_clear(&c->down);
	c->sent_first = c->sent_len = 0;
}

static void conn_to_client(struct conn *c)
{
	struct wire_item item = line_pop(&c->down);
	if (!c->client_open) {
		free(item.p);
		return;
	}
	if (item.kind != WIRE_DATA) {
		conn_client_ended(c);
		if (!c->server_closed)
			line_push(&c->up, conn_arrival(c), WIRE_RST, NULL, 0);
		if (c->owner >= 0)
			consumer_lost(&c->w->consumers[c->owner], c);
		return;
	}
	struct reader all = reader_of(item.p, item.len);
	while (reader_left(&all) > 0 && c->client_open) {
		uint32_t len = reader_u32(&all);
		const uint8_t *p = reader_take(&all, len);
		CHECK(!all.bad);
		if (c->owner < 0) {
			c->sent_len = 0;
			continue;
		}
		CHECK(c->sent_len > 0);
		unsigned int i = c->sent_first++ % ASKED;
		c->sent_len--;
		struct reader r = reader_of(p, len);
		int32_t correlation_id;
		CHECK(response_header_decode(&correlation_id, &r, c->sent[i].api, c->sent[i].version));
		consumer_answer(&c->w->consumers[c->owner], c, correlation_id, c->sent[i].api, c->sent[i].version, bytes_of(r.p, reader_left(&r)));
	}
	free(item.p);
}

struct conn *conn_open(struct world *w, int owner, uint64_t salt)
{
	if (w->conns_len == CONNS)
		return NULL;
	struct conn *c = calloc(1, sizeof(*c));
	c->ch.ops = &channel_ops_of_sim;
	c->w = w;
	c->owner = owner;
	c->number = ++w->conns_made;
	c->rng = rng_of(w->plan.seed ^ salt, (uint64_t)(owner + 2) << 32 | 5);
	c->addr = 0x0a000001 + (uint32_t)(owner + 1);
	c->client_open = true;
	c->server_at = c->dead_at = TIME_NEVER;
	w->conns[w->conns_len++] = c;
	line_push(&c->up, conn_arrival(c), WIRE_SYN, NULL, 0);
	return c;
}

void conn_bytes(struct conn *c, const void *p, size_t len)
{
	if (c->client_open && c->up.last - c->up.first < 64)
		line_push(&c->up, conn_arrival(c), WIRE_DATA, p, len);
}

int32_t conn_request(struct conn *c, int16_t api, int16_t version, struct bytes client_id, const void *request)
{
	static uint8_t buffer[1 << 17];
	struct request_header h = {api, version, c->correlation_id + 1, client_id, true};
	struct writer w = writer_of(buffer, sizeof(buffer));
	if (!c->client_open || c->sent_len >= 48)
		return -1;
	request_header_encode(&w, &h);
	message_request(api)->encode(request, &w, version);
	CHECK(!w.full);
	c->correlation_id++;
	unsigned int i = (c->sent_first + c->sent_len++) % ASKED;
	c->sent[i].correlation_id = c->correlation_id;
	c->sent[i].api = api;
	c->sent[i].version = version;
	line_push(&c->up, conn_arrival(c), WIRE_DATA, buffer, writer_len(&w));
	return c->correlation_id;
}

void conn_fin(struct conn *c)
{
	if (!c->client_open)
		return;
	conn_client_ended(c);
	line_push(&c->up, conn_arrival(c), WIRE_FIN, NULL, 0);
}

void conn_rst(struct conn *c)
{
	if (!c->client_open)
		return;
	conn_client_ended(c);
	line_push(&c->up, conn_arrival(c), WIRE_RST, NULL, 0);
}

void conn_vanish(struct conn *c)
{
	conn_client_ended(c);
	if (!c->server_closed)
		c->dead_at = c->w->now.us + rng_between(&c->rng, 1000000, 40000000);
}

void conn_half_open(struct conn *c)
{
	if (!c->server_closed && c->session != NULL)
		conn_server_closed(c, false);
	line_clear(&c->down);
}

void conn_server_lost(struct conn *c)
{
	line_clear(&c->rx);
	c->session = NULL; /* the node is gone, and its sessions with it */
	if (!c->server_closed) {
		c->server_closed = true;
		watch_closed(c);
	}
	c->server_at = c->dead_at = TIME_NEVER;
	if (c->client_open)
		line_push(&c->down, conn_arrival(c), WIRE_RST, NULL, 0);
}

void conn_stalled(struct conn *c, uint64_t lost_us)
{
	struct line *l = &c->up;
	if (lost_us == 0 || line_due(l) > c->w->now.us || rng_one_in(&c->rng, 2))
		return;
	uint64_t again = c->w->now.us + (rng_next(&c->rng) >> 16) % lost_us;
	for (size_t i = l->first; i < l->last; i++)
		if (l->items[i].at < again)
			l->items[i].at = again;
	if (l->last_at < again)
		l->last_at = again;
}

/* When the worker has something to do for it: not while it stands still. */
static uint64_t conn_due_served(const struct conn *c)
{
	uint64_t due = line_due(&c->up);
	due = c->server_at < due ? c->server_at : due;
	due = c->dead_at < due ? c->dead_at : due;
	return c->w->stalled && due < c->w->stalled_until ? c->w->stalled_until : due;
}

uint64_t conn_due(const struct conn *c)
{
	uint64_t due = conn_due_served(c), down = line_due(&c->down);
	return down < due ? down : due;
}

void conn_step(struct conn *c)
{
	uint64_t now = c->w->now.us;
	if (conn_due_served(c) > now) {
		conn_to_client(c);
	} else if (c->dead_at <= now) {
		c->dead_at = TIME_NEVER;
		if (!c->server_closed)
			conn_server_closed(c, false);
	} else if (c->server_at <= now) {
		conn_loop(c);
	} else if (line_due(&c->up) <= now) {
		conn_arrived(c);
	} else {
		conn_to_client(c);
	}
}

bool conn_finished(const struct conn *c)
{
	return c->server_closed && !c->client_open && line_empty(&c->up);
}

void conn_free(struct conn *c)
{
	line_fini(&c->up);
	line_fini(&c->down);
	line_fini(&c->rx);
	free(c);
}
