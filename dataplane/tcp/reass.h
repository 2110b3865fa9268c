/*
 * reass.h - bytes that arrived ahead of a gap, kept in pool blocks until the gap is filled.
 *
 * Invariants:
 *  1. Blocks are sorted by sequence number, not empty, and do not overlap; what arrived first stays.
 *  2. Neighbouring blocks that touch form one range; ranges are what SACK options report (RFC 2018).
 *  3. `recent` lists the ranges in the order in which they last grew: reass_sack puts the latest first, as the RFC asks.
 */
#ifndef MUSTER_TCP_REASS_H
#define MUSTER_TCP_REASS_H

#include "dataplane/tcp/opt.h"
#include "dataplane/tcp/pool.h"

#define REASS_RECENT (OPT_MAX_SACK + 1)

struct reass {
	struct pool_block *head, *tail;
	uint32_t blocks;
	uint32_t recents;
	uint32_t recent[REASS_RECENT]; /* a sequence number inside the range */
};

/*
 * Keeps the bytes [seq, seq + len) that are not there yet, while fewer than `max_blocks` blocks are in use and the pool gives some.
 * Returns false when some bytes found no room.
 */
bool reass_insert(struct reass *r, struct pool *pool, uint32_t seq, const uint8_t *p, uint32_t len, uint32_t max_blocks);
/* The bytes that start at `seq`, as many as lie together: pointer and length. Length 0: there are none. Frees blocks wholly before. */
uint32_t reass_front(struct reass *r, struct pool *pool, uint32_t seq, const uint8_t **p);
/* Ranges for a SACK option, at most `max`. Returns how many. */
unsigned int reass_sack(struct reass *r, struct opt_sack *sack, unsigned int max);
void reass_clear(struct reass *r, struct pool *pool);

#endif
