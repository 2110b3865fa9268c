/*
 * pool.h - the blocks that hold queued bytes: send queues, out-of-order data, SACK scoreboards. One pool per worker.
 *
 * Blocks of 2 KiB come from chunks that are taken from malloc one at a time, up to a bound, and kept until the pool ends; so
 * a steady load allocates nothing, and an idle connection holds no block.
 */
#ifndef MUSTER_TCP_POOL_H
#define MUSTER_TCP_POOL_H

#include "muster/base.h"

#define POOL_BLOCK_BYTES 2048
#define POOL_DATA_BYTES (POOL_BLOCK_BYTES - 16)
#define POOL_CHUNK_BLOCKS 64

struct pool_block {
	struct pool_block *next;
	uint32_t seq;	     /* of data[first]; only in a reassembly queue */
	uint16_t first, end; /* data[first] up to data[end - 1] is in use */
	uint8_t data[POOL_DATA_BYTES];
};
_Static_assert(sizeof(struct pool_block) == POOL_BLOCK_BYTES, "size of a block");

struct pool {
	struct pool_block *free;
	void *chunks; /* list through their first bytes */
	uint32_t free_blocks;
	uint32_t blocks; /* taken from malloc so far */
	uint32_t max_blocks;
};

/* Takes the first chunk; false when there is no memory. At least one chunk is allowed whatever `max_bytes` says. */
bool pool_init(struct pool *pool, size_t max_bytes);
void pool_fini(struct pool *pool);
/* Makes sure that the next `n` gets succeed. */
bool pool_reserve(struct pool *pool, uint32_t n);
/* An empty block, or NULL at the bound. */
struct pool_block *pool_get(struct pool *pool);
void pool_put(struct pool *pool, struct pool_block *block);

static inline uint32_t pool_used(const struct pool *pool)
{
	return pool->blocks - pool->free_blocks;
}

/* Bytes that pool_init allocates. */
size_t pool_first_bytes(void);

#endif
