/*
 * base.h - words that every file of both halves uses: fixed-width types, branch hints, sizes.
 */
#ifndef MUSTER_BASE_H
#define MUSTER_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MUSTER_CACHE_LINE 64
#define CACHE_ALIGNED __attribute__((aligned(MUSTER_CACHE_LINE)))

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* For small functions of a hot path that the compiler, left alone, would call. */
#define ALWAYS_INLINE inline __attribute__((always_inline))

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* The struct that embeds `ptr` as its member `member`. */
#define CONTAINER_OF(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))

#endif
