/*
 * sack.h - the sender's scoreboard: which bytes beyond the cumulative acknowledgement the peer has reported (RFC 2018, RFC 6675).
 *
 * Invariants:
 *  1. Ranges are sorted, not empty, and neither overlap nor touch; `bytes` is the sum of their lengths.
 *  2. The ranges stand in one pool block, held only while there are any. A report that finds no room is forgotten: SACK is
 *     advice, and the bytes are then sent once more.
 */
#ifndef MUSTER_TCP_SACK_H
#define MUSTER_TCP_SACK_H

#include "dataplane/tcp/opt.h"
#include "dataplane/tcp/pool.h"

#define SACK_MAX_RANGES 128
_Static_assert(SACK_MAX_RANGES * sizeof(struct opt_sack) <= POOL_DATA_BYTES, "ranges fit in a block");

struct sack {
	struct pool_block *block;
	uint32_t ranges;
	uint32_t bytes;
};

/* Adds [start, end). Returns the number of bytes that were not there before. */
uint32_t sack_add(struct sack *s, struct pool *pool, uint32_t start, uint32_t end);
/* Forgets everything before `una`. */
void sack_drop(struct sack *s, struct pool *pool, uint32_t una);
void sack_clear(struct sack *s, struct pool *pool);
/* Bytes of [from, to) that are in no range. */
uint32_t sack_missing(const struct sack *s, uint32_t from, uint32_t to);
/* The first missing byte at or behind `seq`, and where the range behind it starts (`limit` when there is none). */
uint32_t sack_hole(const struct sack *s, uint32_t seq, uint32_t limit, uint32_t *end);
/*
 * All missing bytes before this number are lost: three ranges, or more than two full segments, have arrived behind them (RFC 6675, IsLost).
 * `una` when none are.
 */
uint32_t sack_lost_end(const struct sack *s, uint32_t una, uint32_t mss);

#endif
