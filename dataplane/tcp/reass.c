/*
 * reass.c - the reassembly queue; invariants in reass.h.
 *
 * Most segments extend the last range, so the search starts at the tail and walks from the head only when that fails. The
 * walk is bounded by the number of blocks that a connection may hold.
 */
#include <string.h>

#include "dataplane/tcp/reass.h"
#include "dataplane/tcp/seq.h"
#include "muster/check.h"

static uint32_t block_end(const struct pool_block *b)
{
	return b->seq + (uint32_t)(b->end - b->first);
}

/* The last block that starts at or before `seq`, or NULL. */
static struct pool_block *block_before(const struct reass *r, uint32_t seq)
{
	if (r->tail != NULL && seq_leq(r->tail->seq, seq))
		return r->tail;
	struct pool_block *prev = NULL;
	for (struct pool_block *b = r->head; b != NULL && seq_leq(b->seq, seq); b = b->next)
		prev = b;
	return prev;
}

static struct pool_block *block_after(struct reass *r, struct pool *pool, struct pool_block *prev, uint32_t seq)
{
	struct pool_block *b = pool_get(pool);
	if (b == NULL)
		return NULL;
	b->seq = seq;
	b->next = prev == NULL ? r->head : prev->next;
	if (prev == NULL)
		r->head = b;
	else
		prev->next = b;
	if (b->next == NULL)
		r->tail = b;
	r->blocks++;
	return b;
}

static void recent_push(struct reass *r, uint32_t seq)
{
	memmove(r->recent + 1, r->recent, sizeof(r->recent) - sizeof(r->recent[0]));
	r->recent[0] = seq;
	if (r->recents < REASS_RECENT)
		r->recents++;
}

bool reass_insert(struct reass *r, struct pool *pool, uint32_t seq, const uint8_t *p, uint32_t len, uint32_t max_blocks)
{
	bool kept = false;
	uint32_t start = seq;
	while (len > 0) {
		struct pool_block *prev = block_before(r, seq);
		uint32_t n = len;
		if (prev != NULL && seq_lt(seq, block_end(prev))) {
			uint32_t there = block_end(prev) - seq;
			n = there < len ? there : len;
			goto next;
		}
		struct pool_block *following = prev == NULL ? r->head : prev->next;
		if (following != NULL && following->seq - seq < n)
			n = following->seq - seq;
		struct pool_block *b = prev;
		if (b == NULL || block_end(b) != seq || b->end == POOL_DATA_BYTES) {
			b = r->blocks < max_blocks ? block_after(r, pool, prev, seq) : NULL;
			if (b == NULL)
				break;
		}
		if (n > (uint32_t)POOL_DATA_BYTES - b->end)
			n = (uint32_t)POOL_DATA_BYTES - b->end;
		memcpy(b->data + b->end, p, n);
		b->end = (uint16_t)(b->end + n);
		kept = true;
next:
		seq += n;
		p += n;
		len -= n;
	}
	if (kept || len == 0)
		recent_push(r, start);
	return len == 0;
}

static void pop(struct reass *r, struct pool *pool)
{
	struct pool_block *b = r->head;
	r->head = b->next;
	if (r->head == NULL)
		r->tail = NULL;
	CHECK(r->blocks > 0);
	r->blocks--;
	pool_put(pool, b);
}

uint32_t reass_front(struct reass *r, struct pool *pool, uint32_t seq, const uint8_t **p)
{
	while (r->head != NULL && seq_leq(block_end(r->head), seq))
		pop(r, pool);
	struct pool_block *b = r->head;
	if (b == NULL)
		r->recents = 0;
	if (b == NULL || seq_gt(b->seq, seq))
		return 0;
	uint32_t skip = seq - b->seq;
	*p = b->data + b->first + skip;
	return block_end(b) - seq;
}

/* Index of the first mention of the range in `recent`, or `recents` when there is none. */
static unsigned int mention_of(const struct reass *r, const struct opt_sack *range)
{
	unsigned int i = 0;
	while (i < r->recents && (seq_lt(r->recent[i], range->start) || seq_geq(r->recent[i], range->end)))
		i++;
	return i;
}

unsigned int reass_sack(struct reass *r, struct opt_sack *sack, unsigned int max)
{
	struct opt_sack found[REASS_RECENT + 1]; /* by mention; the last place: the first range that is not mentioned */
	bool have[REASS_RECENT + 1] = {false};
	for (const struct pool_block *b = r->head; b != NULL;) {
		struct opt_sack range = {b->seq, block_end(b)};
		for (b = b->next; b != NULL && b->seq == range.end; b = b->next)
			range.end = block_end(b);
		unsigned int i = mention_of(r, &range);
		if (i == r->recents)
			i = REASS_RECENT;
		if (!have[i])
			found[i] = range;
		have[i] = true;
	}
	unsigned int n = 0, kept = 0;
	for (unsigned int i = 0; i <= REASS_RECENT; i++) {
		if (!have[i])
			continue;
		if (n < max)
			sack[n++] = found[i];
		if (kept < REASS_RECENT)
			r->recent[kept++] = found[i].start;
	}
	r->recents = kept;
	return n;
}

void reass_clear(struct reass *r, struct pool *pool)
{
	while (r->head != NULL)
		pop(r, pool);
	r->recents = 0;
}
