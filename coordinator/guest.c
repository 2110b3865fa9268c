/*
 * guest.c - the owner's side of forward.h: a guest is a session without a connection, for one request of another worker's.
 *
 * Its channel has nobody behind it: the answer that the session sends is put into the forward, and its end, by close or reset, is a refusal. So the
 * request is decoded, handled, parked and dropped by what does so for connections.
 *
 *   arrive --> open: session_begin, session_frame --answer, close or reset--> ended: answer sent back --at once, or in the next round--> session_end
 *                 \----cancelled: session_end drops what is parked ----------------------------------------------------------> free
 *
 * Invariants:
 *  1. forward->guest is set exactly while the guest is open.
 *  2. A session is never ended from inside a call that it makes: who answers later is put into `ended`.
 */
#include <stdlib.h>

#include "coordinator/forward.h"

struct guest {
	struct channel channel; /* first */
	struct guests *all;
	struct session *session;
	struct forward *forward; /* NULL: ended */
	struct guest *next;	 /* in `free` or `ended` */
	uint16_t from;
	bool arriving; /* inside guest_arrive */
};

struct guests {
	struct sessions *sessions;
	struct mailbox *mailbox;
	struct guest *slab;
	struct guest *free;
	struct guest *ended;
	LIST_HEAD(, guest_answer) answers; /* large ones that are out */
};

unsigned int guests_max(const struct mailbox *mailbox)
{
	return mailbox == NULL ? 0 : (mailbox->workers - 1) * FORWARD_MAX;
}

bool guests_init(struct sessions *all, struct mailbox *mailbox)
{
	if (mailbox == NULL)
		return true;
	unsigned int n = guests_max(mailbox);
	struct guests *guests = calloc(1, sizeof(*guests));
	all->guests = guests;
	if (guests == NULL)
		return false;
	guests->sessions = all;
	guests->mailbox = mailbox;
	LIST_INIT(&guests->answers);
	guests->slab = calloc(n, sizeof(struct guest));
	if (guests->slab == NULL)
		return false;
	for (unsigned int i = n; i-- > 0;) {
		guests->slab[i].next = guests->free;
		guests->free = &guests->slab[i];
	}
	return true;
}

void guests_fini(struct sessions *all)
{
	struct guests *guests = all->guests;
	if (guests == NULL)
		return;
	while (!LIST_EMPTY(&guests->answers))
		guest_release(LIST_FIRST(&guests->answers));
	free(guests->slab);
	free(guests);
	all->guests = NULL;
}

/* ---- the answer ---- */

void guest_release(struct guest_answer *answer)
{
	LIST_REMOVE(answer, link);
	free(answer);
}

/* Without memory, the forward stays refused. */
static void guest_write(struct guests *guests, struct forward *f, const void *p, size_t len)
{
	uint8_t *to = f->small_answer;
	if (len > sizeof(f->small_answer)) {
		f->large = malloc(sizeof(*f->large) + len);
		if (f->large == NULL) {
			guests->sessions->stats->session_no_memory++;
			return;
		}
		LIST_INSERT_HEAD(&guests->answers, f->large, link);
		to = f->large->bytes;
	}
	memcpy(to, p, len);
	f->answer_len = (uint32_t)len;
}

/* `len` 0: refused. */
static void guest_answer(struct guest *guest, const void *p, size_t len)
{
	struct guests *guests = guest->all;
	struct forward *f = guest->forward;
	if (f == NULL) /* a close behind the answer */
		return;
	if (len > 0)
		guest_write(guests, f, p, len);
	f->guest = NULL;
	guest->forward = NULL;
	forward_post(guests->mailbox, guest->from, FORWARD_ANSWER, f, 0);
	if (guest->arriving)
		return;
	guest->next = guests->ended;
	guests->ended = guest;
}

static void guest_send(struct channel *ch, const void *p, size_t len)
{
	guest_answer((struct guest *)ch, p, len);
}

static void guest_resume(struct channel *ch)
{
}

static void guest_refuse(struct channel *ch)
{
	guest_answer((struct guest *)ch, NULL, 0);
}

static const struct channel_ops guest_channel_ops = {.send = guest_send, .resume = guest_resume, .close = guest_refuse, .abort = guest_refuse};

/* ---- the life of a guest ---- */

static void guest_end(struct guest *guest, struct now now)
{
	struct guests *guests = guest->all;
	if (guest->session != NULL)
		session_end(guest->session, now);
	guest->session = NULL;
	guest->next = guests->free;
	guests->free = guest;
}

void guest_arrive(struct guests *guests, unsigned int from, struct forward *f, struct now now)
{
	if (guests->free == NULL) /* the asker knows of the end of one that we have not let go yet */
		guests_tick(guests, now);
	struct guest *guest = guests->free;
	CHECK(guest != NULL);
	guests->free = guest->next;
	*guest = (struct guest){.channel = {&guest_channel_ops}, .all = guests, .forward = f, .from = (uint16_t)from, .arriving = true};
	f->guest = guest;
	guests->sessions->stats->forward_served++;
	if (!__atomic_load_n(&f->gone, __ATOMIC_RELAXED))
		guest->session = session_begin(guests->sessions, &guest->channel, f->peer_addr, true);
	if (guest->session != NULL && __atomic_load_n(&f->eof, __ATOMIC_RELAXED))
		session_eof(guest->session, now);
	if (guest->session == NULL || session_frame(guest->session, f->frame, f->frame_len, now) == SERVICE_ABORT)
		guest_answer(guest, NULL, 0);
	guest->arriving = false;
	if (guest->forward == NULL)
		guest_end(guest, now);
}

bool guest_cancel(struct guests *guests, unsigned int from, struct forward *f, struct now now)
{
	struct guest *guest = f->guest;
	f->guest = NULL;
	if (guest != NULL) {
		CHECK(guest->forward == f && guest->from == from);
		guest->forward = NULL;
		guests->sessions->stats->forward_cancelled++;
		guest_end(guest, now);
	}
	forward_post(guests->mailbox, from, FORWARD_CANCELLED, f, guest != NULL);
	return guest != NULL;
}

bool guests_due(const struct guests *guests)
{
	return guests->ended != NULL;
}

void guests_tick(struct guests *guests, struct now now)
{
	while (guests->ended != NULL) {
		struct guest *guest = guests->ended;
		guests->ended = guest->next;
		guest_end(guest, now);
	}
}
