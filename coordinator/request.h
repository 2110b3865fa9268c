/*
 * request.h - one request of a client, from its decoding to its answer.
 *
 * A request lives in the session that received it until it is answered or its connection closes. Handlers either answer at once or
 * park it: they keep the pointer and answer later. Answers of one connection leave in the order of its requests; the session sees to that.
 *
 * Invariants:
 *  1. A request is answered at most once; request_answer consumes it.
 *  2. A parked request whose connection closes (RST or FIN) is *dropped*: `on_drop` is called once, in which the holder forgets the
 *     pointer. It must not answer it any more. (Architecture rule 7.)
 *  3. Decoded request structs and their byte slices are valid only during the handler. Who parks copies what it needs.
 */
#ifndef MUSTER_REQUEST_H
#define MUSTER_REQUEST_H

#include "muster/bytes.h"
#include "muster/time.h"

struct request;
struct group;
struct member;

/* Where a connection's last heartbeat found its member, so that the next one needs no lookup. Owned by the session, read and written by the group
 * engine, which checks it before use: the slot is only trusted while its `tag` still is the member's. */
struct member_memo {
	struct member *member; /* NULL: none */
	uint64_t tag;
};

enum request_wait {
	REQUEST_WAIT_NOTHING,
	REQUEST_WAIT_GROUP,   /* join, sync, fetch: an event or a timer; later requests of the connection wait with it, dropped on FIN */
	REQUEST_WAIT_DURABLE, /* a record on its way to the log: later requests go on, still answered after FIN */
};

struct request_ops {
	/* Encodes `response`, the response struct of this request's api, in the request's version, and sends it when its turn has come. */
	void (*answer)(struct request *rq, const void *response, struct now now);
	/* As answer, but the connection is closed after it. */
	void (*refuse)(struct request *rq, struct now now);
};

struct request {
	const struct request_ops *ops;
	void (*on_drop)(struct request *rq, struct now now); /* set by whoever parks it */
	void *holder;			     /* the parker's */
	struct member_memo *memo;	     /* the connection's */
	struct bytes client_id;		     /* null: the header had none; valid during the handler */
	uint32_t peer_addr;		     /* host byte order */
	int32_t correlation_id;
	int16_t api_key;
	int16_t version;
	uint8_t wait;			     /* enum request_wait; set by request_park */
	bool eof;			     /* the peer has already sent FIN: do not park for an event */
};

/* Parks: the handler keeps `rq` and answers later. `on_drop` may be NULL only for REQUEST_WAIT_DURABLE. */
static inline void request_park(struct request *rq, enum request_wait wait, void (*on_drop)(struct request *, struct now),
				void *holder)
{
	rq->wait = (uint8_t)wait;
	rq->on_drop = on_drop;
	rq->holder = holder;
}

static inline void request_answer(struct request *rq, const void *response, struct now now)
{
	rq->ops->answer(rq, response, now);
}

#endif
