/*
 * answer.c - answers out: encoded once, sent in the order of the requests, kept until their turn; and the ways in which a request waits in
 * the session itself: for a time (api_answer_at) and for durability, to go on (api_durable) or to be answered (api_answer_durable). What waits for
 * other workers stands in forward.c.
 *
 * All ways end in the timer of the request, so that a handler never runs inside of another one's call: what a barrier reports in the middle of
 * a shard's work only hangs the timer, due at once.
 */
#include <stdlib.h>

#include "coordinator/forward.h"
#include "coordinator/session.h"
#include "coordinator/wire/header.h"

#define LENGTH_FIELD 4
#define ANSWER_MAX ((size_t)INT32_MAX)

/* ---- the bytes that a request keeps ---- */

/* Room for `len` bytes to keep; NULL: no memory. */
static uint8_t *answer_room(struct session_request *sr, size_t len)
{
	CHECK(sr->bytes == NULL);
	uint8_t *bytes = len <= sizeof(sr->small) ? sr->small : malloc(len);
	if (bytes == NULL)
		return NULL;
	sr->bytes = bytes;
	sr->bytes_len = (uint32_t)len;
	sr->session->kept_bytes += sr->bytes_len;
	return bytes;
}

static bool answer_keep(struct session_request *sr, const uint8_t *p, size_t len)
{
	uint8_t *bytes = answer_room(sr, len);
	if (bytes != NULL)
		memcpy(bytes, p, len);
	return bytes != NULL;
}

static void answer_encode_request(const struct api_call *call, struct writer *w)
{
	const struct request *rq = call->rq;
	struct request_header h = {rq->api_key, rq->version, rq->correlation_id, rq->client_id, true};
	request_header_encode(w, &h);
	writer_raw(w, call->body.p, (size_t)call->body.len);
}

bool answer_keep_request(const struct api_call *call)
{
	struct session_request *sr = CONTAINER_OF(call->rq, struct session_request, rq);
	struct writer w = writer_of(NULL, 0);
	if (sr->bytes != NULL)
		return true;
	answer_encode_request(call, &w);
	uint8_t *bytes = answer_room(sr, w.need);
	if (bytes == NULL) {
		sr->all->stats->session_no_memory++;
		return false;
	}
	w = writer_of(bytes, w.need);
	answer_encode_request(call, &w);
	CHECK(!w.full);
	return true;
}

void answer_forget(struct session_request *sr)
{
	if (likely(sr->bytes == NULL))
		return;
	if (sr->session != NULL)
		sr->session->kept_bytes -= sr->bytes_len;
	if (sr->bytes != sr->small)
		free(sr->bytes);
	sr->bytes = NULL;
	sr->bytes_len = 0;
}

void answer_release(struct session_request *sr)
{
	struct sessions *all = sr->all;
	answer_forget(sr);
	if (unlikely(sr->parts != NULL))
		forward_drop_parts(sr);
	sr->state = REQUEST_FREE;
	sr->session = NULL;
	sr->next = all->requests_free;
	all->requests_free = sr;
	all->requests_taken--;
}

void answer_unpark(struct session_request *sr)
{
	if (!sr->parked)
		return;
	sr->parked = false;
	sr->all->stats->requests_parked_now--;
	if (sr->session != NULL) {
		sr->session->waiting_group -= sr->waits_group;
		sr->session->holding -= sr->holds;
	}
	sr->waits_group = sr->holds = false;
	sr->rq.wait = REQUEST_WAIT_NOTHING;
}

/* ---- sending in order ---- */

static void answer_send(struct session *s, const uint8_t *p, size_t len)
{
	s->all->stats->responses++;
	channel_send(s->ch, p, len);
}

void answer_abort(struct session *s)
{
	if (s->closing)
		return;
	s->closing = true;
	channel_abort(s->ch);
}

void answer_flush(struct session *s)
{
	while (s->oldest != NULL && s->oldest->state == REQUEST_ANSWERED) {
		struct session_request *sr = s->oldest;
		s->oldest = sr->next;
		if (s->oldest == NULL)
			s->youngest = NULL;
		s->unanswered--;
		if (!s->closing && sr->bytes_len > 0)
			answer_send(s, sr->bytes, sr->bytes_len);
		if (!s->closing && sr->last) {
			s->closing = true;
			channel_close(s->ch);
		}
		answer_release(sr);
	}
	session_settle(s);
}

/* Encodes into the scratch buffer, the frame's length in front. Returns the number of bytes; 0: no memory, which is counted. */
static size_t answer_encode(struct sessions *all, const struct request *rq, const void *response)
{
	const struct message_type *type = message_response(rq->api_key);
	for (;;) {
		struct writer w = writer_of(all->scratch.base, all->scratch.cap);
		writer_u32(&w, 0);
		response_header_put(&w, type, rq->version, rq->correlation_id);
		type->encode(response, &w, rq->version);
		if (likely(!w.full)) {
			size_t len = writer_len(&w);
			w = writer_of(all->scratch.base, LENGTH_FIELD);
			writer_u32(&w, (uint32_t)(len - LENGTH_FIELD));
			return len;
		}
		if (w.need > ANSWER_MAX || !session_buffer_grow(&all->scratch, w.need)) {
			all->stats->session_no_memory++;
			return 0;
		}
	}
}

/* Without any bytes, the connection cannot go on. */
static void answer_leave(struct session_request *sr, const uint8_t *p, size_t len)
{
	struct session *s = sr->session;
	answer_forget(sr);
	if (len == 0)
		answer_abort(s);
	else if (s->oldest == sr)
		answer_send(s, p, len);
	else if (!answer_keep(sr, p, len))
		answer_abort(s);
	answer_flush(s);
}

static void answer_answer(struct request *rq, const void *response, struct now now)
{
	struct session_request *sr = CONTAINER_OF(rq, struct session_request, rq);
	struct session *s = sr->session;
	CHECK(sr->state == REQUEST_OPEN);
	answer_unpark(sr);
	sr->state = REQUEST_ANSWERED;
	if (s == NULL) {
		answer_release(sr);
		return;
	}
	size_t len = s->closing ? 0 : answer_encode(sr->all, rq, response);
	answer_leave(sr, sr->all->scratch.base, len);
}

void answer_bytes(struct session_request *sr, const uint8_t *p, size_t len)
{
	CHECK(sr->state == REQUEST_OPEN && sr->session != NULL);
	answer_unpark(sr);
	sr->state = REQUEST_ANSWERED;
	answer_leave(sr, p, sr->session->closing ? 0 : len);
}

void answer_nothing(struct session_request *sr)
{
	CHECK(sr->state == REQUEST_OPEN && sr->parked && sr->session != NULL);
	sr->all->stats->session_dropped++;
	answer_unpark(sr);
	answer_forget(sr);
	sr->state = REQUEST_ANSWERED;
	answer_flush(sr->session);
}

void answer_refuse(struct request *rq, struct now now)
{
	struct session_request *sr = CONTAINER_OF(rq, struct session_request, rq);
	CHECK(sr->state == REQUEST_OPEN);
	answer_unpark(sr);
	answer_forget(sr);
	sr->state = REQUEST_ANSWERED;
	sr->last = true;
	if (sr->session == NULL)
		answer_release(sr);
	else
		answer_flush(sr->session);
}

const struct request_ops answer_ops = {.answer = answer_answer, .refuse = answer_refuse};

/* ---- waiting in the session ---- */

static bool answer_settled(struct session_request *sr, struct now now);

/* The log broke before the kept answer became true: decoded, spoilt and sent. Without memory for that the connection is closed. */
static void answer_spoil(struct session_request *sr, struct now now)
{
	struct sessions *all = sr->all;
	const struct message_type *type = message_response(sr->rq.api_key);
	struct reader r = reader_of(sr->bytes + LENGTH_FIELD, sr->bytes_len - LENGTH_FIELD);
	int32_t correlation_id;
	all->arena = arena_of(all->block.base, all->block.cap);
	void *response = arena_alloc(&all->arena, 1, type->size);
	CHECK(response != NULL && response_header_decode(&correlation_id, &r, sr->rq.api_key, sr->rq.version));
	if (!type->decode(response, &r, sr->rq.version, &all->arena)) {
		all->stats->session_no_memory++;
		answer_refuse(&sr->rq, now);
		return;
	}
	sr->spoil(response, sr->log_error);
	request_answer(&sr->rq, response, now);
}

static void answer_drop(struct request *rq, struct now now)
{
	struct session_request *sr = CONTAINER_OF(rq, struct session_request, rq);
	wheel_remove(&sr->timer);
	if (sr->barred)
		shard_barrier_cancel(sr->shard, &sr->barrier);
	sr->barred = false;
}

void answer_timer(struct wheel_timer *timer, void *arg)
{
	struct session_request *sr = CONTAINER_OF(timer, struct session_request, timer);
	struct session *s = sr->session;
	struct now now = *(const struct now *)arg;
	if (sr->hold == HOLD_DURABLE && !answer_settled(sr, now))
		return;
	if (sr->hold == HOLD_DURABLE && sr->log_error != 0) {
		answer_spoil(sr, now);
		return;
	}
	if (sr->hold == HOLD_AGAIN || sr->hold == HOLD_ROOM) {
		answer_again(sr, now);
		return;
	}
	answer_unpark(sr);
	sr->state = REQUEST_ANSWERED;
	answer_flush(s);
}

void answer_again(struct session_request *sr, struct now now)
{
	struct session *s = sr->session;
	struct reader r = reader_of(sr->bytes, sr->bytes_len);
	struct request_header h;
	CHECK(request_header_decode(&h, &r) && h.served);
	answer_unpark(sr);
	sr->rq.client_id = h.client_id;
	if (session_run(sr, bytes_of(r.p, reader_left(&r)), true, now))
		session_parked(sr, now);
	else
		answer_abort(s);
}

void api_answer_at(const struct api_call *call, const void *response, uint64_t when)
{
	struct session_request *sr = CONTAINER_OF(call->rq, struct session_request, rq);
	size_t len = answer_encode(sr->all, call->rq, response);
	answer_forget(sr); /* the request, if it was kept */
	if (len == 0 || !answer_keep(sr, sr->all->scratch.base, len)) {
		answer_refuse(call->rq, call->now);
		return;
	}
	sr->hold = HOLD_ANSWER;
	request_park(call->rq, REQUEST_WAIT_GROUP, answer_drop, NULL);
	wheel_add(&sr->all->wheel, &sr->timer, (when + US_PER_MS - 1) / US_PER_MS);
}

static void answer_durable(struct shard_barrier *barrier, int16_t error, struct now now)
{
	struct session_request *sr = CONTAINER_OF(barrier, struct session_request, barrier);
	sr->barred = false;
	sr->log_error = error;
	sr->passed++;
	if (!sr->in_call)
		wheel_add(&sr->all->wheel, &sr->timer, 0);
}

bool api_durable(const struct api_call *call, unsigned int n, struct shard *shard)
{
	struct session_request *sr = CONTAINER_OF(call->rq, struct session_request, rq);
	if (n < sr->passed || sr->log_error != 0)
		return true;
	CHECK(n == sr->passed && !sr->barred);
	sr->shard = shard;
	sr->barrier.then = answer_durable;
	sr->barred = sr->in_call = true;
	shard_barrier(shard, &sr->barrier, call->now);
	sr->in_call = false;
	if (!sr->barred)
		return true;
	if (!answer_keep_request(call)) {
		answer_drop(call->rq, call->now);
		answer_refuse(call->rq, call->now);
		return false;
	}
	sr->hold = HOLD_AGAIN;
	request_park(call->rq, REQUEST_WAIT_DURABLE, answer_drop, NULL);
	return false;
}

int16_t api_log_error(const struct api_call *call)
{
	return CONTAINER_OF(call->rq, struct session_request, rq)->log_error;
}

/* Goes from shard to shard; false: the barrier waits in one of them. */
static bool answer_settled(struct session_request *sr, struct now now)
{
	struct shard *shard;
	while (sr->log_error == 0 && (shard = node_shard_at(sr->all->node, sr->next_shard)) != NULL) {
		sr->shard = shard;
		sr->barrier.then = answer_durable;
		sr->barred = sr->in_call = true;
		shard_barrier_at(shard, &sr->barrier, sr->position, now);
		sr->in_call = false;
		if (sr->barred)
			return false;
		sr->next_shard++;
	}
	return true;
}

void api_answer_durable(const struct api_call *call, const void *response, void (*spoil)(void *response, int16_t error))
{
	struct session_request *sr = CONTAINER_OF(call->rq, struct session_request, rq);
	struct shard *shard;
	size_t len = answer_encode(sr->all, call->rq, response);
	answer_forget(sr); /* the request, if it was kept */
	if (len == 0 || !answer_keep(sr, sr->all->scratch.base, len)) {
		answer_refuse(call->rq, call->now);
		return;
	}
	sr->position = 0;
	sr->next_shard = 0;
	for (unsigned int i = 0; (shard = node_shard_at(call->node, i)) != NULL; i++)
		if (shard_appended(shard) > sr->position)
			sr->position = shard_appended(shard);
	sr->hold = HOLD_DURABLE;
	sr->spoil = spoil;
	if (answer_settled(sr, call->now)) {
		if (sr->log_error != 0) {
			answer_spoil(sr, call->now);
			return;
		}
		sr->state = REQUEST_ANSWERED;
		answer_flush(sr->session);
		return;
	}
	request_park(call->rq, REQUEST_WAIT_DURABLE, answer_drop, NULL);
}
