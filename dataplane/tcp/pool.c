/*
 * pool.c - fixed-size blocks in lazily allocated chunks.
 *
 * A chunk is one cache line (its first word links the chunks) followed by POOL_CHUNK_BLOCKS blocks.
 */
#include <stdlib.h>

#include "dataplane/tcp/pool.h"
#include "muster/check.h"

#define CHUNK_BYTES (MUSTER_CACHE_LINE + (size_t)POOL_CHUNK_BLOCKS * POOL_BLOCK_BYTES)

static bool pool_grow(struct pool *pool)
{
	if (pool->blocks + POOL_CHUNK_BLOCKS > pool->max_blocks)
		return false;
	uint8_t *chunk = aligned_alloc(MUSTER_CACHE_LINE, CHUNK_BYTES);
	if (chunk == NULL)
		return false;
	*(void **)(void *)chunk = pool->chunks;
	pool->chunks = chunk;
	for (unsigned int i = POOL_CHUNK_BLOCKS; i-- > 0;) {
		struct pool_block *b = (void *)(chunk + MUSTER_CACHE_LINE + (size_t)i * POOL_BLOCK_BYTES);
		b->next = pool->free;
		pool->free = b;
	}
	pool->blocks += POOL_CHUNK_BLOCKS;
	pool->free_blocks += POOL_CHUNK_BLOCKS;
	return true;
}

bool pool_init(struct pool *pool, size_t max_bytes)
{
	size_t max = max_bytes / POOL_BLOCK_BYTES / POOL_CHUNK_BLOCKS * POOL_CHUNK_BLOCKS;
	if (max < POOL_CHUNK_BLOCKS)
		max = POOL_CHUNK_BLOCKS;
	*pool = (struct pool){.max_blocks = max > UINT32_MAX / 2 ? UINT32_MAX / 2 : (uint32_t)max};
	return pool_grow(pool);
}

void pool_fini(struct pool *pool)
{
	for (void *chunk = pool->chunks, *next; chunk != NULL; chunk = next) {
		next = *(void **)chunk;
		free(chunk);
	}
	*pool = (struct pool){.free = NULL};
}

bool pool_reserve(struct pool *pool, uint32_t n)
{
	while (pool->free_blocks < n) {
		if (!pool_grow(pool))
			return false;
	}
	return true;
}

struct pool_block *pool_get(struct pool *pool)
{
	if (unlikely(!pool_reserve(pool, 1)))
		return NULL;
	struct pool_block *b = pool->free;
	pool->free = b->next;
	pool->free_blocks--;
	b->next = NULL;
	b->seq = 0;
	b->first = b->end = 0;
	return b;
}

void pool_put(struct pool *pool, struct pool_block *block)
{
	CHECK(pool->free_blocks < pool->blocks);
	block->next = pool->free;
	pool->free = block;
	pool->free_blocks++;
}

size_t pool_first_bytes(void)
{
	return CHUNK_BYTES;
}
