/*
 * stats.h - the counters of one worker, listed in stats.def.
 *
 * One struct per worker, written only by it with plain stores; others read with plain loads.
 */
#ifndef MUSTER_STATS_H
#define MUSTER_STATS_H

#include "muster/base.h"

struct stats {
#define STAT(name, help) uint64_t name;
#include "muster/stats.def"
#undef STAT
} CACHE_ALIGNED;

struct stats_row {
	const char *name;
	const char *help;
	size_t offset; /* of the counter in struct stats */
};

/* All counters in the order of stats.def. */
static const struct stats_row stats_rows[] __attribute__((unused)) = {
#define STAT(name, help) {#name, help, offsetof(struct stats, name)},
#include "muster/stats.def"
#undef STAT
};

/* Adds every counter of `more`; maxima too, so both must have counted different things. */
static inline void stats_add(struct stats *s, const struct stats *more)
{
#define STAT(name, help) s->name += more->name;
#include "muster/stats.def"
#undef STAT
}

static inline uint64_t stats_value(const struct stats *s, const struct stats_row *row)
{
	return *(const uint64_t *)((const char *)s + row->offset);
}

#endif
