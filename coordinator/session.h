/*
 * session.h - one connection's Kafka session: its requests in, their answers out in the same order.
 *
 *   frame -> header -> api -> body -> handler --- answers at once ------------------------> channel
 *                                        |                                                    ^
 *                                        +-- parks; answered later --> kept until its turn ---+
 *
 * A session has a queue of its requests that are not answered yet, oldest first. Only the oldest may leave; an answer that is ready before
 * its turn is kept, encoded. session.c takes connections and frames, answer.c lets answers out and parks; forward.c, gather.c and guest.c bring
 * requests to the workers that own their groups.
 *
 * Frames of a connection are held back while
 *   - a request waits for its group (join, sync, fetch): Kafka handles one request of a connection at a time, and a heartbeat behind a
 *     join must see the group after the join,
 *   - a request waits for several workers, or for one that has too much to do for us,
 *   - SESSION_PIPELINE of its requests are unanswered, or SESSION_KEPT_BYTES of its answers are kept,
 *   - no request is reserved for its next frame.
 *
 * Invariants:
 *  1. A session that does not hold back frames has a request of the slab reserved, so a frame that arrives always finds one.
 *  2. At most one request of a session waits for its group, and it is the youngest.
 *  3. A request whose connection is gone either was dropped or, waiting for durability, stays until it is answered to nobody.
 *  4. Nothing is allocated for a request that is answered at once in its turn, unless scratch or arena must grow for it.
 */
#ifndef MUSTER_SESSION_H
#define MUSTER_SESSION_H

#include <sys/queue.h>

#include "muster/service.h"
#include "muster/stats.h"
#include "muster/wheel.h"

#include "coordinator/api/api.h"

#define SESSION_PIPELINE 64
#define SESSION_KEPT_BYTES (256u << 10)

enum session_request_state {
	REQUEST_FREE,
	REQUEST_OPEN,	  /* its handler runs, or it is parked */
	REQUEST_DROPPING, /* its connection is gone; the parker is being told */
	REQUEST_ANSWERED, /* its answer, possibly none, is kept until its turn */
};

/* How a request waits that the session itself parked. */
enum session_request_hold {
	HOLD_NONE,
	HOLD_ANSWER, /* api_answer_at: `bytes` is the answer, the timer lets it out */
	HOLD_DURABLE, /* api_answer_durable: `bytes` is the answer; one barrier after the other, then the timer; spoilt if the log broke */
	HOLD_AGAIN,  /* api_durable: `bytes` is the request; barrier, then timer, then the handler runs again */
	HOLD_FORWARD, /* on its way to the worker that owns its group; the answer comes back whole */
	HOLD_GATHER,  /* the same with several workers; `bytes` is the request, the handler runs again when all have answered */
	HOLD_ROOM,    /* `bytes` is the request; too many are under way to worker `lane`: a place, then timer, then the handler runs again */
};

struct forward;

struct session_request {
	struct request rq;
	struct sessions *all;
	struct session *session;      /* NULL: its connection is gone */
	struct session_request *next; /* younger, in the session's queue; or in the free list */
	uint8_t *bytes;		      /* `small`, or allocated */
	uint32_t bytes_len;
	uint8_t state;	/* enum session_request_state */
	uint8_t hold;	/* enum session_request_hold */
	bool parked;	/* counted as parked */
	bool waits_group; /* counted in the session's waiting_group, whatever it waits for by now */
	bool last;	/* the connection is closed in its turn */
	bool holds;	/* frames are held back while it is parked; counted in the session's `holding` */
	bool gathered;	/* all of `parts` are answered */
	bool listed;	/* HOLD_ROOM: in the lane's list */
	uint16_t lane;
	uint16_t missing; /* HOLD_GATHER: parts not answered yet */
	struct forward *parts; /* what other workers were asked */
	TAILQ_ENTRY(session_request) waiting; /* HOLD_ROOM */
	bool barred;	/* the barrier is pending */
	bool in_call;	/* api_durable is asking for the barrier right now */
	uint32_t passed; /* waits that are over (api_durable) */
	int16_t log_error; /* a wait ended because the log broke: what the client is told; 0: none */
	struct shard *shard; /* that the barrier is in */
	uint64_t position;   /* HOLD_DURABLE: all shards from `next_shard` on must be durable up to here */
	unsigned int next_shard;
	void (*spoil)(void *response, int16_t error); /* HOLD_DURABLE */
	struct shard_barrier barrier;
	struct wheel_timer timer;
	uint8_t small[40]; /* the answer to a heartbeat or commit fits */
};

struct session {
	struct channel *ch; /* NULL: free, or the connection is being closed */
	struct sessions *all;
	struct session *next_free;
	struct session_request *oldest, *youngest;
	struct member_memo memo;
	uint32_t peer_addr;
	uint32_t kept_bytes;
	uint16_t unanswered;
	uint16_t waiting_group; /* requests parked with REQUEST_WAIT_GROUP */
	uint16_t holding;	/* parked requests behind which nothing is read */
	bool reserved;		/* a request of the slab is set aside for the next frame */
	bool held;		/* we answered SERVICE_HOLD */
	bool eof, drained;
	bool guest; /* no connection, but a request of another worker's (guest.c) */
	bool closing; /* we asked for the close or reset; nothing is read or sent any more */
};

/* A buffer that grows for a large message and shrinks again in the next tick. */
struct session_buffer {
	uint8_t *base;
	size_t cap;
};

/* All sessions of one worker and what they share. */
struct sessions {
	struct node *node;
	const struct image *image;
	struct stats *stats;
	bool stopping;

	struct session *slab;
	struct session *free;
	unsigned int slab_len, slab_used; /* slab_used: those that were ever used */

	struct session_request *requests;
	struct session_request *requests_free;
	unsigned int requests_len, requests_used, requests_taken, requests_reserved;

	struct session_buffer scratch; /* the answer that is being encoded, with its length in front */
	struct session_buffer block;   /* of the arena */
	struct arena arena;
	struct wheel wheel;	   /* ticks are milliseconds */
	struct member_memo nobody; /* the memo of requests whose connection is gone */

	struct forwards *forwards; /* our requests to other workers; NULL: there are none */
	struct guests *guests;	   /* theirs to us */
	const void **told; /* in the arena, by worker: the decoded answers to the request that is handled now; NULL: none */
};

/* `mailbox`: to the other workers; NULL: there are none. False: no memory; *all is then empty. */
bool sessions_init(struct sessions *all, struct node *node, const struct image *image, unsigned int max_sessions, struct mailbox *mailbox,
		   struct stats *stats, struct now now);
/* After the shards are freed: parked requests are forgotten, not answered. */
void sessions_fini(struct sessions *all);

/* The service's calls for one connection (muster/service.h). */
struct session *session_open(struct sessions *all, struct channel *ch, const struct channel_peer *peer);
/* The same, not counted, and not refused because we stop: also for a guest, a request of another worker's connection (guest.c). */
struct session *session_begin(struct sessions *all, struct channel *ch, uint32_t peer_addr, bool guest);
enum service_verdict session_frame(struct session *s, const uint8_t *p, size_t len, struct now now);
void session_eof(struct session *s, struct now now);
void session_drained(struct session *s, struct now now);
void session_closed(struct session *s, struct now now);
/* The same for what session_begin began. */
void session_end(struct session *s, struct now now);

/* Lets due answers out and runs again what became durable. Returns the microsecond of the next wish. */
uint64_t sessions_tick(struct sessions *all, struct now now);
/* Lets all answers out that wait for their time, from now on at once. Returns true when nothing is parked any more. */
bool sessions_stop(struct sessions *all, struct now now);

/* ---- between session.c, steady.c and answer.c ---- */

extern const struct request_ops answer_ops;

/* Answers the frame if it is a heartbeat that can go the short way (steady.c). False: nothing was done. */
bool session_steady(struct session *s, const uint8_t *p, size_t len, struct now now);
/* Whether frames of the session must be held back. */
bool session_must_hold(const struct session *s);
/* After something left the queue: ends a hold that has no reason any more, closes a half-closed connection that has nothing left to say. */
void session_settle(struct session *s);
/* Runs the request's handler over `body`. False: counted in the statistics, and the connection cannot go on. */
bool session_run(struct session_request *sr, struct bytes body, bool decodable, struct now now);
/* After a handler: counts the request if it was parked; drops or answers it where nobody can or shall wait for a group. */
void session_parked(struct session_request *sr, struct now now);

/* Lets answers out whose turn has come. */
void answer_flush(struct session *s);
/* Resets the connection; nothing is sent any more. */
void answer_abort(struct session *s);
/* Lets go of the bytes that a request keeps. */
void answer_forget(struct session_request *sr);
/* Gives a request back. */
void answer_release(struct session_request *sr);
/* Marks a parked request as not parked. */
void answer_unpark(struct session_request *sr);
/* The timer of HOLD_ANSWER and HOLD_AGAIN. */
void answer_timer(struct wheel_timer *timer, void *now);
/* Sends an answer that is encoded already, its length in front, when its turn has come. For a parked request whose connection is there. */
void answer_bytes(struct session_request *sr, const uint8_t *p, size_t len);
/* Ends a parked request without an answer. */
void answer_nothing(struct session_request *sr);
/* Keeps the request of this call in `bytes`, unless it is there already. False: no memory, counted. */
bool answer_keep_request(const struct api_call *call);
/* Runs the handler again over the request in `bytes`. */
void answer_again(struct session_request *sr, struct now now);
/* The connection is closed in the request's turn. */
void answer_refuse(struct request *rq, struct now now);
/* Makes room for `need` bytes, losing the content. False: no memory, nothing changed. */
bool session_buffer_grow(struct session_buffer *b, size_t need);

#endif
