/*
 * arena.h - a bump allocator over one fixed block: the decoded arrays of one request, gone with the next reset.
 */
#ifndef MUSTER_WIRE_ARENA_H
#define MUSTER_WIRE_ARENA_H

#include "muster/base.h"

struct arena {
	uint8_t *base;
	size_t cap;
	size_t used;
};

static inline struct arena arena_of(void *base, size_t cap)
{
	return (struct arena){base, cap, 0};
}

static inline void arena_reset(struct arena *a)
{
	a->used = 0;
}

/* `n` elements of `size` bytes, 16-byte aligned, not cleared; NULL when they do not fit. */
static inline void *arena_alloc(struct arena *a, size_t n, size_t size)
{
	size_t at = (a->used + 15) & ~(size_t)15;
	if (at > a->cap || (size != 0 && n > (a->cap - at) / size))
		return NULL;
	a->used = at + n * size;
	return a->base + at;
}

#endif
