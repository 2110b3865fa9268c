/*
 * sendq.h - the bytes of one connection from the first unacknowledged one to the last one queued, in a list of pool blocks.
 *
 * Invariants:
 *  1. No block is empty; a queue of length 0 holds no block.
 *  2. `cursor` is NULL or a block of the list whose first byte lies `cursor_at` bytes behind the start of the queue. It is only
 *     a short cut: sending moves forward, so the next copy starts where the last one ended.
 */
#ifndef MUSTER_TCP_SENDQ_H
#define MUSTER_TCP_SENDQ_H

#include "dataplane/tcp/pool.h"

struct sendq {
	struct pool_block *head, *tail, *cursor;
	uint32_t len;
	uint32_t cursor_at;
};

/* Copies `len` bytes to the end: all of them, or none and false when the pool is at its bound. */
bool sendq_append(struct sendq *q, struct pool *pool, const void *p, size_t len);
/* Copies `len` bytes from `offset` on to `dst`; they must be in the queue. */
void sendq_copy(struct sendq *q, uint32_t offset, uint32_t len, uint8_t *dst);
/* Forgets the first `len` bytes. */
void sendq_drop(struct sendq *q, struct pool *pool, uint32_t len);
void sendq_clear(struct sendq *q, struct pool *pool);

#endif
