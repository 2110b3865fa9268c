/*
 * frame_priv.h - what the files of framing share: one connection, all connections, and the buffer of what is not
 * delivered yet.
 */
#ifndef DATAPLANE_FRAME_PRIV_H
#define DATAPLANE_FRAME_PRIV_H

#include <sys/queue.h>

#include "dataplane/frame.h"
#include "muster/bytes.h"
#include "muster/check.h"

#define LENGTH_BYTES 4u

enum {
	HELD = 1,	  /* the service holds frames back */
	OVER = 2,	  /* the peer does not read: send queue over its limit */
	CLOSING = 4,	  /* the service, or we, close it: nothing is delivered any more */
	ABORTING = 8,	  /* the same with RST */
	EOF_SEEN = 16,	  /* FIN in order, service told */
	DRAINED = 32,	  /* service told that no frame follows */
	READY = 64,	  /* in the ready list */
	FIN_ASKED = 128,  /* tcp_close has been called */
	RST_ASKED = 256,  /* tcp_abort has been called */
	IN_FRAME = 512,	  /* inside the service's frame() */
	RESUMED = 1024,	  /* channel_resume was called inside it */
};
#define STOPPED (HELD | OVER | CLOSING | ABORTING)

struct frame_conn {
	struct channel channel; /* first: a channel is its connection */
	struct frames *frames;
	struct tcp_conn *conn; /* NULL: not in use */
	void *session;
	unsigned int flags;
	uint8_t *buf;
	size_t cap, start, end;
	size_t held;	      /* bytes reported with tcp_hold and not released */
	uint64_t sent_us;     /* last answer */
	uint64_t over_us;     /* since when OVER is set */
	TAILQ_ENTRY(frame_conn) ready;
	struct wheel_timer timer; /* idle and slow peers; lazy */
};

struct frames {
	struct frames_config cfg;
	const struct service_ops *ops;
	void *service;
	struct stats *stats;
	struct now now; /* of the current call from the worker */
	unsigned int open;
	size_t memory_used;
	uint64_t sends;
	TAILQ_HEAD(, frame_conn) ready;
	struct wheel wheel;
	struct frame_conn conns[];
};

static inline void make_ready(struct frame_conn *fc)
{
	if ((fc->flags & READY) != 0)
		return;
	fc->flags |= READY;
	TAILQ_INSERT_TAIL(&fc->frames->ready, fc, ready);
}

static inline void end_with(struct frame_conn *fc, unsigned int flag)
{
	fc->flags |= flag;
	make_ready(fc);
}

static inline int32_t frame_length_at(const uint8_t *p)
{
	struct reader r = reader_of(p, LENGTH_BYTES);
	return (int32_t)reader_u32(&r);
}

/* frame_buffer.c: the kept bytes [start, end) of `buf` */

static inline size_t kept(const struct frame_conn *fc)
{
	return fc->end - fc->start;
}

/*
 * Appends to the kept bytes; while delivery is stopped they count against the window. Marks the connection for an abort
 * when there is no memory.
 */
void frame_buffer_keep(struct frame_conn *fc, const uint8_t *p, size_t len);
/* Takes the first `n` kept bytes as delivered; the buffer is freed when none are left. */
void frame_buffer_advance(struct frame_conn *fc, size_t n);
/* Gives up to `n` held bytes back to the window. */
void frame_buffer_release(struct frame_conn *fc, size_t n);
void frame_buffer_drop(struct frame_conn *fc);

#endif
