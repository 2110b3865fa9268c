/*
 * session.c - connections and frames: from the bytes of a request to its handler, and the end of a connection.
 *
 * The arena of a worker serves one handler at a time. It starts at ARENA_KEEP bytes, which is enough for all usual requests; one that needs more
 * is decoded again with a larger one, up to ARENA_MAX. Decoding is therefore repeated, handlers too, but only before they had any effect (api.h).
 *
 * Arena and scratch are touched at the start: the first answer about a group of 10,000 (2 to 3 MB) would otherwise hold up everybody for the page
 * faults alone by another millisecond.
 */
#include <stdlib.h>

#include "coordinator/forward.h"
#include "coordinator/session.h"
#include "coordinator/wire/header.h"

#define ARENA_KEEP ((size_t)1 << 20)
#define ARENA_MAX ((size_t)64 << 20)
#define SCRATCH_KEEP ((size_t)4 << 20)
/* Decoded, a request is never larger than this: the widest element is some 20 times as large as its shortest form on the wire. */
#define DECODED_MAX(len) ((size_t)(len) * 32 + ((size_t)64 << 10))
/* Requests beyond one per session: for those that wait for durability, pipelined or with their connection gone. */
#define REQUESTS_EXTRA(sessions) ((sessions) + 256)
#define TIMER_BUDGET 256

/* ---- buffers ---- */

bool session_buffer_grow(struct session_buffer *b, size_t need)
{
	uint8_t *base = malloc(need);
	if (base == NULL)
		return false;
	free(b->base);
	*b = (struct session_buffer){base, need};
	return true;
}

/* The buffer that is kept, its pages there. */
static bool session_buffer_start(struct session_buffer *b, size_t keep)
{
	if (!session_buffer_grow(b, keep))
		return false;
	memset(b->base, 0, keep);
	return true;
}

/* Gives back what one large message took. */
static void session_buffer_trim(struct session_buffer *b, size_t keep)
{
	if (unlikely(b->cap > keep))
		session_buffer_grow(b, keep);
}

/* ---- all sessions ---- */

bool sessions_init(struct sessions *all, struct node *node, const struct image *image, unsigned int max_sessions, struct mailbox *mailbox,
		   struct stats *stats, struct now now)
{
	*all = (struct sessions){.node = node, .image = image, .stats = stats};
	all->slab_len = max_sessions + guests_max(mailbox);
	all->requests_len = all->slab_len + REQUESTS_EXTRA(all->slab_len);
	all->slab = calloc(all->slab_len, sizeof(*all->slab));
	all->requests = calloc(all->requests_len, sizeof(*all->requests));
	wheel_init(&all->wheel, now_ms(now));
	if (all->slab == NULL || all->requests == NULL || !session_buffer_start(&all->scratch, SCRATCH_KEEP) ||
	    !session_buffer_start(&all->block, ARENA_KEEP) || !forwards_init(all, mailbox) || !guests_init(all, mailbox)) {
		sessions_fini(all);
		return false;
	}
	return true;
}

void sessions_fini(struct sessions *all)
{
	for (unsigned int i = 0; i < all->requests_used; i++)
		if (all->requests[i].bytes != all->requests[i].small)
			free(all->requests[i].bytes);
	forwards_fini(all);
	guests_fini(all);
	free(all->requests);
	free(all->slab);
	free(all->scratch.base);
	free(all->block.base);
	*all = (struct sessions){0};
}

uint64_t sessions_tick(struct sessions *all, struct now now)
{
	session_buffer_trim(&all->scratch, SCRATCH_KEEP);
	session_buffer_trim(&all->block, ARENA_KEEP);
	wheel_advance(&all->wheel, now_ms(now), TIMER_BUDGET, answer_timer, &now);
	uint64_t next = wheel_next(&all->wheel);
	return next == UINT64_MAX ? TIME_NEVER : next * US_PER_MS;
}

/* ---- requests: reservation and the queue ---- */

static void session_reserve(struct session *s)
{
	struct sessions *all = s->all;
	if (!s->reserved && all->requests_taken + all->requests_reserved < all->requests_len) {
		s->reserved = true;
		all->requests_reserved++;
	}
}

static void session_unreserve(struct session *s)
{
	s->all->requests_reserved -= s->reserved;
	s->reserved = false;
}

/* Turns the session's reservation into a request at the end of its queue. */
static struct session_request *session_take(struct session *s)
{
	struct sessions *all = s->all;
	CHECK(s->reserved);
	session_unreserve(s);
	struct session_request *sr = all->requests_free;
	if (sr != NULL)
		all->requests_free = sr->next;
	else
		sr = &all->requests[all->requests_used++];
	all->requests_taken++;
	sr->all = all;
	sr->session = s;
	sr->next = NULL;
	sr->bytes = NULL;
	sr->bytes_len = 0;
	sr->state = REQUEST_OPEN;
	sr->hold = HOLD_NONE;
	sr->parked = sr->waits_group = sr->last = sr->barred = sr->in_call = sr->holds = sr->gathered = sr->listed = false;
	sr->parts = NULL;
	sr->passed = 0;
	sr->log_error = 0;
	if (s->youngest == NULL)
		s->oldest = sr;
	else
		s->youngest->next = sr;
	s->youngest = sr;
	s->unanswered++;
	return sr;
}

bool session_must_hold(const struct session *s)
{
	return s->waiting_group + s->holding > 0 || !s->reserved || s->unanswered >= SESSION_PIPELINE || s->kept_bytes > SESSION_KEPT_BYTES;
}

void session_settle(struct session *s)
{
	session_reserve(s);
	if (s->closing)
		return;
	if (s->held && !session_must_hold(s)) {
		s->held = false;
		channel_resume(s->ch);
	}
	if (s->drained && s->oldest == NULL) {
		s->closing = true;
		channel_close(s->ch);
	}
}

/* ---- one request ---- */

/* A larger arena for a request of `len` bytes that did not fit. */
static bool arena_grow(struct sessions *all, size_t len)
{
	size_t cap = all->block.cap * 4;
	if (cap < DECODED_MAX(len))
		cap = DECODED_MAX(len);
	if (cap > ARENA_MAX)
		cap = ARENA_MAX;
	return cap > all->block.cap && session_buffer_grow(&all->block, cap);
}

bool session_run(struct session_request *sr, struct bytes body, bool decodable, struct now now)
{
	struct sessions *all = sr->all;
	const struct message_type *type = message_request(sr->rq.api_key);
	struct api_call call = {.node = all->node, .image = all->image, .stats = all->stats, .rq = &sr->rq, .body = body,
				.arena = &all->arena, .now = now};
	for (;;) {
		all->arena = arena_of(all->block.base, all->block.cap);
		if (decodable) {
			void *in = arena_alloc(&all->arena, 1, type->size);
			struct reader r = reader_of(body.p, (size_t)body.len);
			CHECK(in != NULL);
			if (!type->decode(in, &r, sr->rq.version, &all->arena)) {
				if (all->block.cap < DECODED_MAX(body.len) && arena_grow(all, (size_t)body.len))
					continue;
				all->stats->session_bad_request++;
				return false;
			}
			call.in = in;
		}
		if (api_handlers[api_index(sr->rq.api_key)](&call))
			return true;
		if (!arena_grow(all, (size_t)body.len)) {
			all->stats->session_no_memory++;
			return false;
		}
	}
}

/* Drops a request that waits for its group: its holder forgets it, and it leaves no answer. Where another worker has it, that one decides. */
static void session_drop(struct session_request *sr, struct now now)
{
	if (sr->hold == HOLD_FORWARD) {
		forward_hang_up(sr);
		return;
	}
	CHECK(sr->state == REQUEST_OPEN && sr->parked && sr->rq.on_drop != NULL);
	sr->all->stats->session_dropped++;
	sr->state = REQUEST_DROPPING;
	answer_unpark(sr);
	sr->rq.on_drop(&sr->rq, now);
	answer_forget(sr);
	sr->state = REQUEST_ANSWERED;
}

/* Lets an answer out before its time, because the server stops. */
static void session_hurry(struct session_request *sr, struct now now)
{
	CHECK(sr->hold == HOLD_ANSWER);
	wheel_remove(&sr->timer);
	answer_timer(&sr->timer, &now);
}

void session_parked(struct session_request *sr, struct now now)
{
	struct session *s = sr->session;
	if (sr->state != REQUEST_OPEN || sr->parked)
		return;
	CHECK(sr->rq.wait != REQUEST_WAIT_NOTHING);
	sr->parked = true;
	s->holding += sr->holds;
	sr->all->stats->requests_parked_now++;
	if (sr->rq.wait != REQUEST_WAIT_GROUP)
		return;
	CHECK(sr->rq.on_drop != NULL);
	sr->waits_group = true;
	s->waiting_group++;
	if (s->eof) {
		session_drop(sr, now);
		answer_flush(s);
	} else if (sr->all->stopping && sr->hold == HOLD_ANSWER) {
		session_hurry(sr, now);
	}
}

/* Whether the request's header names something that we can answer; if not, counts why. */
static bool session_header(struct session *s, struct request_header *h, struct reader *r)
{
	struct stats *stats = s->all->stats;
	if (!request_header_decode(h, r)) {
		stats->session_bad_header++;
		return false;
	}
	if (h->served || h->api_key == api_key_api_versions)
		return true;
	if (api_index(h->api_key) < 0)
		stats->session_unknown_api++;
	else
		stats->session_bad_version++;
	return false;
}

enum service_verdict session_frame(struct session *s, const uint8_t *p, size_t len, struct now now)
{
	if (unlikely(s->closing))
		return SERVICE_NEXT;
	if (likely(s->memo.member != NULL) && session_steady(s, p, len, now))
		return SERVICE_NEXT;
	s->all->stats->requests++;
	struct reader r = reader_of(p, len);
	struct request_header h;
	if (!session_header(s, &h, &r)) {
		s->closing = true;
		return SERVICE_ABORT;
	}
	struct session_request *sr = session_take(s);
	sr->rq = (struct request){
		.ops = &answer_ops,
		.memo = &s->memo,
		.client_id = h.client_id,
		.peer_addr = s->peer_addr,
		.correlation_id = h.correlation_id,
		.api_key = h.api_key,
		.version = h.served ? h.version : 0,
		.eof = s->eof,
	};
	if (!session_run(sr, bytes_of(r.p, reader_left(&r)), h.served, now)) {
		s->closing = true;
		return SERVICE_ABORT;
	}
	session_parked(sr, now);
	session_reserve(s);
	if (!session_must_hold(s) || s->closing)
		return SERVICE_NEXT;
	s->held = true;
	return SERVICE_HOLD;
}

/* ---- the life of a connection ---- */

struct session *session_begin(struct sessions *all, struct channel *ch, uint32_t peer_addr, bool guest)
{
	struct session *s = all->free;
	bool room = s != NULL || all->slab_used < all->slab_len;
	if (!room || all->requests_taken + all->requests_reserved >= all->requests_len)
		return NULL;
	if (s != NULL)
		all->free = s->next_free;
	else
		s = &all->slab[all->slab_used++];
	*s = (struct session){.ch = ch, .all = all, .peer_addr = peer_addr, .guest = guest};
	session_reserve(s);
	return s;
}

struct session *session_open(struct sessions *all, struct channel *ch, const struct channel_peer *peer)
{
	struct session *s = all->stopping ? NULL : session_begin(all, ch, peer->addr, false);
	if (s == NULL)
		all->stats->session_refused++;
	else
		all->stats->session_opened++;
	return s;
}

/* The oldest request that waits for its group, or NULL. */
static struct session_request *session_waiting(const struct session *s)
{
	struct session_request *sr = s->oldest;
	while (sr != NULL && !(sr->parked && sr->rq.wait == REQUEST_WAIT_GROUP))
		sr = sr->next;
	return sr;
}

void session_eof(struct session *s, struct now now)
{
	s->eof = true;
	for (struct session_request *sr = s->oldest; sr != NULL; sr = sr->next)
		sr->rq.eof = true;
	struct session_request *sr;
	while ((sr = session_waiting(s)) != NULL) {
		session_drop(sr, now);
		answer_flush(s);
	}
	session_settle(s);
}

void session_drained(struct session *s, struct now now)
{
	s->drained = true;
	session_settle(s);
}

/*
 * Takes the whole queue from the session first, because dropping one request may make its group answer others. What then is answered finds
 * its session gone.
 */
void session_end(struct session *s, struct now now)
{
	struct sessions *all = s->all;
	struct session_request *drops = NULL;
	for (struct session_request *sr = s->oldest, *next; sr != NULL; sr = next) {
		next = sr->next;
		sr->session = NULL;
		sr->rq.memo = &all->nobody;
		if (sr->state == REQUEST_OPEN && sr->parked && sr->rq.on_drop == NULL)
			continue; /* waits for durability: answered to nobody later */
		if (sr->state == REQUEST_OPEN && sr->parked) {
			all->stats->session_dropped++;
			answer_unpark(sr);
			sr->state = REQUEST_DROPPING;
		} else {
			sr->state = REQUEST_ANSWERED;
		}
		sr->next = drops;
		drops = sr;
	}
	s->ch = NULL;
	session_unreserve(s);
	while (drops != NULL) {
		struct session_request *sr = drops;
		drops = sr->next;
		if (sr->state == REQUEST_DROPPING)
			sr->rq.on_drop(&sr->rq, now);
		answer_release(sr);
	}
	s->next_free = all->free;
	all->free = s;
}

void session_closed(struct session *s, struct now now)
{
	s->all->stats->session_closed++;
	session_end(s, now);
}

bool sessions_stop(struct sessions *all, struct now now)
{
	all->stopping = true;
	for (unsigned int i = 0; i < all->slab_used; i++) {
		struct session *s = &all->slab[i];
		struct session_request *sr = s->ch == NULL ? NULL : session_waiting(s);
		if (sr != NULL && sr->hold == HOLD_ANSWER)
			session_hurry(sr, now);
	}
	return all->stats->requests_parked_now == 0;
}
