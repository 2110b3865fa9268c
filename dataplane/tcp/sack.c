/*
 * sack.c - the sender's scoreboard; invariants in sack.h.
 */
#include <string.h>

#include "dataplane/tcp/sack.h"
#include "dataplane/tcp/seq.h"
#include "muster/check.h"

#define DUP_THRESHOLD 3

static struct opt_sack *ranges_of(const struct sack *s)
{
	return (void *)s->block->data;
}

static void release_if_empty(struct sack *s, struct pool *pool)
{
	if (s->ranges > 0 || s->block == NULL)
		return;
	CHECK(s->bytes == 0);
	pool_put(pool, s->block);
	s->block = NULL;
}

uint32_t sack_add(struct sack *s, struct pool *pool, uint32_t start, uint32_t end)
{
	if (!seq_lt(start, end))
		return 0;
	if (s->block == NULL) {
		s->block = pool_get(pool);
		if (s->block == NULL)
			return 0;
	}
	struct opt_sack *range = ranges_of(s);
	uint32_t first = 0;
	while (first < s->ranges && seq_lt(range[first].end, start))
		first++;
	/* ranges [first, last) overlap or touch the new one and merge with it */
	uint32_t last = first, old_bytes = 0;
	struct opt_sack merged = {start, end};
	for (; last < s->ranges && seq_leq(range[last].start, end); last++) {
		merged.start = seq_min(merged.start, range[last].start);
		merged.end = seq_max(merged.end, range[last].end);
		old_bytes += range[last].end - range[last].start;
	}
	if (last == first && s->ranges == SACK_MAX_RANGES)
		return 0;
	memmove(range + first + 1, range + last, (s->ranges - last) * sizeof(range[0]));
	range[first] = merged;
	s->ranges = s->ranges - (last - first) + 1;
	uint32_t added = merged.end - merged.start - old_bytes;
	s->bytes += added;
	return added;
}

void sack_drop(struct sack *s, struct pool *pool, uint32_t una)
{
	if (s->block == NULL)
		return;
	struct opt_sack *range = ranges_of(s);
	uint32_t n = 0;
	while (n < s->ranges && seq_leq(range[n].end, una)) {
		s->bytes -= range[n].end - range[n].start;
		n++;
	}
	memmove(range, range + n, (s->ranges - n) * sizeof(range[0]));
	s->ranges -= n;
	if (s->ranges > 0 && seq_lt(range[0].start, una)) {
		s->bytes -= una - range[0].start;
		range[0].start = una;
	}
	release_if_empty(s, pool);
}

void sack_clear(struct sack *s, struct pool *pool)
{
	s->ranges = s->bytes = 0;
	release_if_empty(s, pool);
}

uint32_t sack_missing(const struct sack *s, uint32_t from, uint32_t to)
{
	if (!seq_lt(from, to))
		return 0;
	uint32_t missing = to - from;
	for (uint32_t i = 0; i < s->ranges; i++) {
		const struct opt_sack *r = &ranges_of(s)[i];
		missing -= seq_ahead(seq_min(r->end, to), seq_max(r->start, from));
	}
	return missing;
}

uint32_t sack_hole(const struct sack *s, uint32_t seq, uint32_t limit, uint32_t *end)
{
	*end = limit;
	for (uint32_t i = 0; i < s->ranges; i++) {
		const struct opt_sack *r = &ranges_of(s)[i];
		if (seq_lt(seq, r->start)) {
			*end = seq_min(r->start, limit);
			break;
		}
		if (seq_lt(seq, r->end))
			seq = r->end;
	}
	return seq;
}

uint32_t sack_lost_end(const struct sack *s, uint32_t una, uint32_t mss)
{
	uint32_t bytes = 0, n = 0;
	for (uint32_t i = s->ranges; i-- > 0;) {
		const struct opt_sack *r = &ranges_of(s)[i];
		bytes += r->end - r->start;
		if (++n >= DUP_THRESHOLD || bytes > (DUP_THRESHOLD - 1) * mss)
			return r->start;
	}
	return una;
}
