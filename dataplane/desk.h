/*
 * desk.h - mail between one worker and the housekeeping thread: a ring in each direction.
 *
 * The thread rings the worker's bell whenever it puts something in: it may pay for a system call, and a worker that polls never looks at the bell.
 * The worker does so only when it has answered something. Nobody waits for anybody.
 */
#ifndef DATAPLANE_DESK_H
#define DATAPLANE_DESK_H

#include "muster/mailbox.h"

#define DESK_MAIL 64u /* messages that may lie unread in each direction */

struct rte_ring;

struct desk {
	struct rte_ring *in, *out; /* as the worker sees them */
	int bell;		   /* eventfd of the thread */
};

/* False: no memory; desk_fini cleans up in any case. */
bool desk_init(struct desk *desk, int bell);
void desk_fini(struct desk *desk);

/* The thread's side; its messages are written before, and seen by the worker after. False: the ring is full. */
bool desk_tell(struct desk *desk, const struct mail *mail);
unsigned int desk_told(struct desk *desk, struct mail out[], unsigned int max);

/* The worker's side. */
bool desk_waits(const struct desk *desk);
unsigned int desk_read(struct desk *desk, struct mail out[], unsigned int max);
bool desk_answer(struct desk *desk, const struct mail *mail);

#endif
