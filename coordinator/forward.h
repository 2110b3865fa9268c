/*
 * forward.h - requests between the workers of one host: from the worker whose connection they came by (the asker) to the one that owns their group.
 *
 *   asker                                                       owner
 *   session_frame -> handler -> api_shard or api_gather
 *      | struct forward: a whole request frame
 *      +------------------- FORWARD_REQUEST ----------------->  guest: a session like that of a connection, with one request
 *      |                                                           | the same handler, the same parking
 *   session's queue, in its turn <---- FORWARD_ANSWER --------- whole answer frame
 *
 * So a forwarded request is treated as any other by everything behind the session, and what the asker sends to the client are the owner's bytes.
 * A connection that goes while its request is parked elsewhere sends FORWARD_CANCEL, and the owner ends the guest as it ends a connection. A client
 * that has sent FIN may still read: its answer counts if it was made before the owner saw the cancel, as it would on one worker.
 *
 * What the asker hears of the end of a connection it also writes into the forward, so that an owner that gets to a request only then does not run it:
 * otherwise the join of a client that has gone could still take the place of its successor's, which came by another worker.
 *
 * A struct forward belongs to the asker and is used again only when nothing about it is under way any more: for each request exactly one answer, for
 * each cancel exactly one FORWARD_CANCELLED. At most FORWARD_MAX of them are out from one worker to another; who finds none free waits in the
 * asker, its connection is not read meanwhile, and the rings never fill: of each forward at most an old FORWARD_RELEASE, a request and a cancel lie
 * unread in one direction, an answer and a cancelled in the other.
 */
#ifndef MUSTER_FORWARD_H
#define MUSTER_FORWARD_H

#include "coordinator/session.h"

#define FORWARD_MAX 256u
#define FORWARD_MAIL_EACH 5u
#define FORWARD_SMALL_REQUEST 192u
#define FORWARD_SMALL_ANSWER 96u

enum forward_kind {
	FORWARD_REQUEST,   /* asker to owner, a struct forward */
	FORWARD_ANSWER,	   /* owner to asker, the same */
	FORWARD_CANCEL,	   /* asker to owner, the same: nobody waits any more */
	FORWARD_CANCELLED, /* owner to asker, the same; arg 1: its answer has not been sent and never will be */
	FORWARD_RELEASE,   /* asker to owner, a struct guest_answer: it has been read */
};

struct guest;
struct guest_answer;

struct forward {
	/* the asker's */
	struct session_request *sr; /* NULL: nobody waits any more */
	struct forward *next;	    /* of the same request; or free */
	uint16_t to;
	bool answer_due, cancel_due; /* a message from the owner is still to come */
	/* written by the asker, read by the owner */
	uint8_t *frame CACHE_ALIGNED; /* `small_frame`, or allocated by the asker */
	uint32_t frame_len;
	uint32_t peer_addr;
	bool eof;  /* the client has sent FIN; also set while the request is under way */
	bool gone; /* the connection has ended; the cancel follows */
	uint8_t small_frame[FORWARD_SMALL_REQUEST];
	/* the owner's, until the asker has its answer */
	struct guest *guest CACHE_ALIGNED; /* NULL: answered */
	struct guest_answer *large;	   /* the answer, if it does not fit */
	uint32_t answer_len;		   /* 0: refused, the connection cannot go on */
	uint8_t small_answer[FORWARD_SMALL_ANSWER];
} CACHE_ALIGNED;

_Static_assert(offsetof(struct forward, frame) % MUSTER_CACHE_LINE == 0 && offsetof(struct forward, guest) % MUSTER_CACHE_LINE == 0,
	       "what one side writes shares no line with what the other writes");

/* An answer that does not fit into the forward. From the owner's malloc, and freed by the owner. */
struct guest_answer {
	LIST_ENTRY(guest_answer) link; /* of all that are out */
	uint8_t bytes[];
};

/* ---- forward.c: the asker ---- */

/* Without a mailbox, nothing is made. False: no memory. */
bool forwards_init(struct sessions *all, struct mailbox *mailbox);
void forwards_fini(struct sessions *all);

/* A message of another worker. Returns true when parked work was dropped, so that every shard must be looked at. */
bool forward_mail(struct sessions *all, unsigned int from, const struct mail *mail, struct now now);

/* Whether this request may go to a worker now. */
bool forward_has_room(const struct session_request *sr, unsigned int to);
/* Parks until there may be room; the handler runs again. */
void forward_wait_for_room(const struct api_call *call, unsigned int to);
/*
 * Sends a request there (forward_has_room): `message` in the version of the call, or, if NULL, the call's own body. False: no memory, counted; what was
 * sent for this request before is taken back.
 */
bool forward_send(const struct api_call *call, unsigned int to, const void *message);
/* Parks until all that was sent is answered: `hold` is HOLD_FORWARD or HOLD_GATHER. */
void forward_park(const struct api_call *call, enum session_request_hold hold);
/* The client has sent FIN: the one part of a request that waits for its group is taken back, unless it was answered. */
void forward_hang_up(struct session_request *sr);
/* Forgets the parts of a request; those that are not answered are taken back. */
void forward_drop_parts(struct session_request *sr);

/* Lets those try again for which there may be room now; once per round. */
void forwards_tick(struct forwards *fw, struct sessions *all);
/* Whether forwards_tick has something to do. */
bool forwards_due(const struct forwards *fw);

struct mailbox *forward_mailbox(const struct sessions *all);
/* The body of an answered part. */
struct bytes forward_answer(const struct forward *f);
void forward_post(struct mailbox *mailbox, unsigned int to, enum forward_kind kind, void *subject, uint32_t arg);

/* ---- guest.c: the owner ---- */

bool guests_init(struct sessions *all, struct mailbox *mailbox);
void guests_fini(struct sessions *all);
/* Sessions that they take at most. */
unsigned int guests_max(const struct mailbox *mailbox);

void guest_arrive(struct guests *guests, unsigned int from, struct forward *f, struct now now);
/* Returns true when parked work was dropped. */
bool guest_cancel(struct guests *guests, unsigned int from, struct forward *f, struct now now);
void guest_release(struct guest_answer *answer);
/* Lets those go that were answered; once per round. */
bool guests_due(const struct guests *guests);
void guests_tick(struct guests *guests, struct now now);

#endif
