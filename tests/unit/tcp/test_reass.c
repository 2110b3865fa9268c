/*
 * test_reass.c - the reassembly queue against a naive model: one flag and one byte for each sequence number of a window.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/tcp/reass.h"

#define WINDOW 20000
#define NO_LIMIT 1000

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

struct model {
	uint32_t base; /* sequence number of have[0]; never has a byte there: that would be in order */
	bool have[WINDOW];
	uint8_t byte[WINDOW];
};

/* The ranges that the model has, in order; returns how many. */
static unsigned int model_ranges(const struct model *m, struct opt_sack *range, unsigned int max)
{
	unsigned int n = 0;
	for (uint32_t i = 0; i < WINDOW && n < max; i++) {
		if (!m->have[i])
			continue;
		range[n].start = m->base + i;
		while (i < WINDOW && m->have[i])
			i++;
		range[n++].end = m->base + i;
	}
	return n;
}

static void check_sack(struct reass *r, const struct model *m, uint32_t last, bool last_known)
{
	struct opt_sack sack[OPT_MAX_SACK], range[64];
	unsigned int n = reass_sack(r, sack, OPT_MAX_SACK), ranges = model_ranges(m, range, 64);
	cr_assert_leq(n, ranges);
	cr_assert_geq(n, ranges == 0 ? 0 : 1);
	for (unsigned int i = 0; i < n; i++) {
		bool found = false;
		for (unsigned int k = 0; k < ranges; k++)
			found |= sack[i].start == range[k].start && sack[i].end == range[k].end;
		cr_assert(found, "[%u, %u) is no range", sack[i].start, sack[i].end);
		for (unsigned int k = 0; k < i; k++)
			cr_assert_neq(sack[i].start, sack[k].start);
	}
	if (last_known)
		cr_assert(n > 0 && last - sack[0].start < sack[0].end - sack[0].start, "the latest range comes first");
}

/* Delivers what starts at `seq` to the model's comparison; returns the new in-order number. */
static uint32_t drain(struct reass *r, struct pool *pool, struct model *m, uint32_t seq)
{
	const uint8_t *p;
	for (uint32_t n; (n = reass_front(r, pool, seq, &p)) > 0; seq += n) {
		for (uint32_t i = 0; i < n; i++) {
			cr_assert(m->have[seq + i - m->base]);
			cr_assert_eq(p[i], m->byte[seq + i - m->base]);
		}
	}
	cr_assert(!m->have[seq - m->base], "stopped at a byte that is there");
	return seq;
}

static void shift(struct model *m, uint32_t to)
{
	uint32_t n = to - m->base;
	memmove(m->have, m->have + n, (WINDOW - n) * sizeof(m->have[0]));
	memmove(m->byte, m->byte + n, WINDOW - n);
	memset(m->have + WINDOW - n, 0, n * sizeof(m->have[0]));
	m->base = to;
}

Test(reass, like_the_naive_model)
{
	struct pool pool;
	struct reass r = {.head = NULL};
	struct model *m = calloc(1, sizeof(*m));
	uint64_t random = 99;
	uint8_t bytes[3000];
	cr_assert(pool_init(&pool, 8 << 20));
	m->base = 0xffff0000; /* wraps around during the test */
	for (int i = 0; i < 20000; i++) {
		if (next_random(&random) % 8 == 0) {
			/* the gap is filled up to the first byte that is there, or to a random place */
			uint32_t to = 1 + next_random(&random) % 3000;
			while (to < WINDOW && m->have[to])
				to++; /* what fills the gap ends inside what is there: reass_front skips */
			memset(m->have, 0, to * sizeof(m->have[0]));
			uint32_t next = drain(&r, &pool, m, m->base + to);
			shift(m, next);
			check_sack(&r, m, 0, false);
			continue;
		}
		uint32_t at = 1 + next_random(&random) % (WINDOW - sizeof(bytes) - 1);
		uint32_t len = 1 + next_random(&random) % (next_random(&random) % 4 == 0 ? sizeof(bytes) : 20);
		for (uint32_t k = 0; k < len; k++) {
			bytes[k] = (uint8_t)next_random(&random);
			if (!m->have[at + k]) {
				m->have[at + k] = true;
				m->byte[at + k] = bytes[k];
			}
		}
		cr_assert(reass_insert(&r, &pool, m->base + at, bytes, len, NO_LIMIT));
		check_sack(&r, m, m->base + at, true);
		cr_assert_eq(pool_used(&pool), r.blocks);
	}
	reass_clear(&r, &pool);
	cr_expect_eq(pool_used(&pool), 0);
	pool_fini(&pool);
	free(m);
}

Test(reass, tiny_neighbours_share_a_block)
{
	struct pool pool;
	struct reass r = {.head = NULL};
	cr_assert(pool_init(&pool, 1));
	for (uint32_t i = 0; i < 2000; i++)
		cr_assert(reass_insert(&r, &pool, 100 + i, (const uint8_t *)"x", 1, 1));
	cr_expect_eq(r.blocks, 1);
	reass_clear(&r, &pool);
	pool_fini(&pool);
}

Test(reass, bounded)
{
	struct pool pool;
	struct reass r = {.head = NULL};
	cr_assert(pool_init(&pool, 1));
	for (uint32_t i = 0; i < 5; i++)
		cr_assert(reass_insert(&r, &pool, 100 + 10 * i, (const uint8_t *)"x", 1, 5));
	cr_expect(!reass_insert(&r, &pool, 200, (const uint8_t *)"x", 1, 5));
	cr_expect(reass_insert(&r, &pool, 101, (const uint8_t *)"y", 1, 5), "the last block of the range has room");
	cr_expect_eq(r.blocks, 5);
	const uint8_t *p;
	cr_expect_eq(reass_front(&r, &pool, 99, &p), 0);
	cr_expect_eq(reass_front(&r, &pool, 100, &p), 2);
	cr_expect_eq(memcmp(p, "xy", 2), 0);
	reass_clear(&r, &pool);
	cr_expect_eq(pool_used(&pool), 0);
	pool_fini(&pool);
}
