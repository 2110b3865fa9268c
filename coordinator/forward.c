/*
 * forward.c - the asker's side of forward.h: its forwards, one slab per other worker (a lane), and what becomes of their answers.
 *
 * Invariants:
 *  1. A forward is free, or one of the `parts` of a request, or its request is gone (`sr` NULL) and something about it is still to come.
 *  2. A message is sent only for a forward of the slab, so that the ring to its worker has room (forward.h); CHECK says so.
 *  3. A request that waits for room is in the list of one lane, or out of it with its timer hung, due at once.
 */
#include <stdlib.h>

#include "coordinator/forward.h"
#include "coordinator/wire/header.h"

struct lane {
	struct forward *slab;
	struct forward *free;
	TAILQ_HEAD(, session_request) waiting;
};

struct forwards {
	struct mailbox *mailbox;
	unsigned int waiting; /* requests in the lists of all lanes */
	struct lane lanes[]; /* by worker; our own is empty */
};

/* ---- making ---- */

static bool lane_init(struct lane *lane, unsigned int to)
{
	lane->slab = aligned_alloc(MUSTER_CACHE_LINE, FORWARD_MAX * sizeof(struct forward));
	if (lane->slab == NULL)
		return false;
	memset(lane->slab, 0, FORWARD_MAX * sizeof(struct forward));
	for (unsigned int i = FORWARD_MAX; i-- > 0;) {
		lane->slab[i].to = (uint16_t)to;
		lane->slab[i].next = lane->free;
		lane->free = &lane->slab[i];
	}
	return true;
}

bool forwards_init(struct sessions *all, struct mailbox *mailbox)
{
	if (mailbox == NULL)
		return true;
	CHECK(FORWARD_MAX * FORWARD_MAIL_EACH <= mailbox->capacity);
	struct forwards *fw = calloc(1, sizeof(*fw) + mailbox->workers * sizeof(struct lane));
	all->forwards = fw;
	if (fw == NULL)
		return false;
	fw->mailbox = mailbox;
	for (unsigned int w = 0; w < mailbox->workers; w++) {
		TAILQ_INIT(&fw->lanes[w].waiting);
		if (w != mailbox->self && !lane_init(&fw->lanes[w], w))
			return false;
	}
	return true;
}

static void forward_forget_frame(struct forward *f)
{
	if (f->frame != f->small_frame)
		free(f->frame);
	f->frame = NULL;
}

void forwards_fini(struct sessions *all)
{
	struct forwards *fw = all->forwards;
	for (unsigned int w = 0; fw != NULL && w < fw->mailbox->workers; w++) {
		struct lane *lane = &fw->lanes[w];
		for (unsigned int i = 0; lane->slab != NULL && i < FORWARD_MAX; i++)
			forward_forget_frame(&lane->slab[i]);
		free(lane->slab);
	}
	free(fw);
	all->forwards = NULL;
}

struct mailbox *forward_mailbox(const struct sessions *all)
{
	return all->forwards == NULL ? NULL : all->forwards->mailbox;
}

void forward_post(struct mailbox *mailbox, unsigned int to, enum forward_kind kind, void *subject, uint32_t arg)
{
	struct mail mail = {subject, kind, arg};
	CHECK(mailbox_send(mailbox, to, &mail));
}

/* ---- one forward ---- */

static struct session_request *request_of(const struct api_call *call)
{
	return CONTAINER_OF(call->rq, struct session_request, rq);
}

/* Free again, if nothing is to come about it; its memory at the owner goes back there. */
static void forward_settle(struct sessions *all, struct forward *f)
{
	struct lane *lane = &all->forwards->lanes[f->to];
	if (f->sr != NULL || f->answer_due || f->cancel_due)
		return;
	forward_forget_frame(f);
	if (f->large != NULL)
		forward_post(all->forwards->mailbox, f->to, FORWARD_RELEASE, f->large, 0);
	f->large = NULL;
	f->next = lane->free;
	lane->free = f;
}

static void forward_cancel(struct sessions *all, struct forward *f)
{
	if (!f->answer_due || f->cancel_due)
		return;
	f->cancel_due = true;
	forward_post(all->forwards->mailbox, f->to, FORWARD_CANCEL, f, 0);
}

/* Nobody waits for it any more. */
static void forward_abandon(struct sessions *all, struct forward *f)
{
	f->sr = NULL;
	__atomic_store_n(&f->gone, true, __ATOMIC_RELAXED);
	forward_cancel(all, f);
	forward_settle(all, f);
}

void forward_drop_parts(struct session_request *sr)
{
	while (sr->parts != NULL) {
		struct forward *f = sr->parts;
		sr->parts = f->next;
		forward_abandon(sr->all, f);
	}
	sr->gathered = false;
}

static void forward_encode(const struct api_call *call, const void *message, struct writer *w)
{
	const struct request *rq = call->rq;
	struct request_header h = {rq->api_key, rq->version, rq->correlation_id, rq->client_id, true};
	request_header_encode(w, &h);
	if (message != NULL)
		message_request(rq->api_key)->encode(message, w, rq->version);
	else
		writer_raw(w, call->body.p, (size_t)call->body.len);
}

static bool forward_fill(const struct api_call *call, const void *message, struct forward *f)
{
	struct writer w = writer_of(f->small_frame, sizeof(f->small_frame));
	forward_encode(call, message, &w);
	f->frame = f->small_frame;
	if (unlikely(w.full)) {
		f->frame = malloc(w.need);
		if (f->frame == NULL)
			return false;
		w = writer_of(f->frame, w.need);
		forward_encode(call, message, &w);
		CHECK(!w.full);
	}
	f->frame_len = (uint32_t)writer_len(&w);
	return true;
}

/* ---- asking ---- */

bool forward_has_room(const struct session_request *sr, unsigned int to)
{
	const struct lane *lane = &sr->all->forwards->lanes[to];
	return lane->free != NULL && (TAILQ_EMPTY(&lane->waiting) || sr->hold == HOLD_ROOM);
}

bool forward_send(const struct api_call *call, unsigned int to, const void *message)
{
	struct session_request *sr = request_of(call);
	struct lane *lane = &sr->all->forwards->lanes[to];
	struct forward *f = lane->free;
	CHECK(f != NULL);
	if (!forward_fill(call, message, f)) {
		sr->all->stats->session_no_memory++;
		forward_drop_parts(sr);
		return false;
	}
	lane->free = f->next;
	f->sr = sr;
	f->peer_addr = sr->session->peer_addr;
	f->eof = sr->rq.eof;
	f->gone = false;
	f->answer_due = true;
	f->answer_len = 0;
	f->next = sr->parts;
	sr->parts = f;
	sr->all->stats->forward_requests++;
	forward_post(sr->all->forwards->mailbox, to, FORWARD_REQUEST, f, 0);
	return true;
}

static void forward_unlist(struct forwards *fw, struct session_request *sr)
{
	TAILQ_REMOVE(&fw->lanes[sr->lane].waiting, sr, waiting);
	sr->listed = false;
	fw->waiting--;
}

bool forwards_due(const struct forwards *fw)
{
	for (unsigned int w = 0; fw->waiting > 0 && w < fw->mailbox->workers; w++)
		if (!TAILQ_EMPTY(&fw->lanes[w].waiting) && fw->lanes[w].free != NULL)
			return true;
	return false;
}

void forwards_tick(struct forwards *fw, struct sessions *all)
{
	for (unsigned int w = 0; fw->waiting > 0 && w < fw->mailbox->workers; w++) {
		struct session_request *sr;
		for (const struct forward *f = fw->lanes[w].free; f != NULL && (sr = TAILQ_FIRST(&fw->lanes[w].waiting)) != NULL; f = f->next) {
			forward_unlist(fw, sr);
			wheel_add(&all->wheel, &sr->timer, 0);
		}
	}
}

static void forward_dropped(struct request *rq, struct now now)
{
	struct session_request *sr = CONTAINER_OF(rq, struct session_request, rq);
	wheel_remove(&sr->timer);
	if (sr->listed)
		forward_unlist(sr->all->forwards, sr);
	forward_drop_parts(sr);
}

/* What waits for its group there waits for it here, too: nothing behind it is read, and the end of the connection drops it. */
static enum request_wait forward_wait(const struct request *rq)
{
	return rq->api_key == api_key_join_group || rq->api_key == api_key_sync_group ? REQUEST_WAIT_GROUP : REQUEST_WAIT_DURABLE;
}

void forward_hang_up(struct session_request *sr)
{
	CHECK(sr->hold == HOLD_FORWARD && sr->parts != NULL);
	sr->rq.wait = REQUEST_WAIT_DURABLE;
	__atomic_store_n(&sr->parts->eof, true, __ATOMIC_RELAXED);
	forward_cancel(sr->all, sr->parts);
}

void forward_park(const struct api_call *call, enum session_request_hold hold)
{
	struct session_request *sr = request_of(call);
	sr->hold = (uint8_t)hold;
	sr->missing = 0;
	for (const struct forward *f = sr->parts; f != NULL; f = f->next)
		sr->missing++;
	sr->holds = hold == HOLD_GATHER;
	request_park(call->rq, forward_wait(call->rq), forward_dropped, NULL);
}

void forward_wait_for_room(const struct api_call *call, unsigned int to)
{
	struct session_request *sr = request_of(call);
	sr->all->stats->forward_waits++;
	if (!answer_keep_request(call)) {
		answer_refuse(call->rq, call->now);
		return;
	}
	sr->hold = HOLD_ROOM;
	sr->lane = (uint16_t)to;
	sr->listed = sr->holds = true;
	TAILQ_INSERT_TAIL(&sr->all->forwards->lanes[to].waiting, sr, waiting);
	sr->all->forwards->waiting++;
	request_park(call->rq, REQUEST_WAIT_DURABLE, forward_dropped, NULL);
}

/* ---- answers ---- */

static const uint8_t *forward_bytes(const struct forward *f)
{
	return f->large != NULL ? f->large->bytes : f->small_answer;
}

struct bytes forward_answer(const struct forward *f)
{
	return bytes_of(forward_bytes(f), f->answer_len);
}

static void forward_refused(struct session_request *sr, struct now now)
{
	forward_drop_parts(sr);
	answer_refuse(&sr->rq, now);
}

static void forward_answered(struct sessions *all, struct forward *f, struct now now)
{
	struct session_request *sr = f->sr;
	f->answer_due = false;
	if (sr == NULL) {
		forward_settle(all, f);
	} else if (f->answer_len == 0) {
		forward_refused(sr, now);
	} else if (sr->hold == HOLD_FORWARD) {
		CHECK(sr->parts == f && f->next == NULL);
		sr->parts = NULL; /* the answer below may be the end of `sr` */
		answer_bytes(sr, forward_bytes(f), f->answer_len);
		forward_abandon(all, f);
	} else if (--sr->missing == 0) {
		sr->gathered = true;
		answer_again(sr, now);
	}
}

static void forward_cancelled(struct sessions *all, struct forward *f, bool no_answer)
{
	struct session_request *sr = f->sr;
	CHECK(f->cancel_due && (sr == NULL || no_answer));
	f->cancel_due = false;
	if (no_answer)
		f->answer_due = false;
	f->sr = NULL;
	forward_settle(all, f);
	if (sr == NULL)
		return;
	sr->parts = NULL; /* the end of a hung-up request */
	answer_nothing(sr);
}

bool forward_mail(struct sessions *all, unsigned int from, const struct mail *mail, struct now now)
{
	switch ((enum forward_kind)mail->kind) {
	case FORWARD_REQUEST:
		guest_arrive(all->guests, from, mail->subject, now);
		return false;
	case FORWARD_ANSWER:
		forward_answered(all, mail->subject, now);
		return false;
	case FORWARD_CANCEL:
		return guest_cancel(all->guests, from, mail->subject, now);
	case FORWARD_CANCELLED:
		forward_cancelled(all, mail->subject, mail->arg != 0);
		return false;
	case FORWARD_RELEASE:
		guest_release(mail->subject);
		return false;
	}
	CHECK(!"a kind of mail that there is");
	return false;
}
