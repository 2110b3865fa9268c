/*
 * test_sack.c - the sender's scoreboard against one flag per sequence number.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "dataplane/tcp/sack.h"

#define SPACE 4000

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static uint32_t missing(const bool *have, uint32_t from, uint32_t to)
{
	uint32_t n = 0;
	for (uint32_t i = from; i < to; i++)
		n += !have[i];
	return n;
}

Test(sack, like_the_naive_model)
{
	static bool have[SPACE];
	struct pool pool;
	struct sack s = {NULL, 0, 0};
	uint64_t random = 7;
	uint32_t base = 0xfffff800, una = 0;
	cr_assert(pool_init(&pool, 1));
	for (int round = 0; round < 50; round++) {
		memset(have, 0, sizeof(have));
		una = 0;
		for (int i = 0; i < 60; i++) {
			uint32_t start = una + 1 + next_random(&random) % (SPACE - una - 1);
			uint32_t end = start + next_random(&random) % 100;
			end = end > SPACE ? SPACE : end;
			uint32_t news = missing(have, start, end);
			for (uint32_t k = start; k < end; k++)
				have[k] = true;
			cr_assert_eq(sack_add(&s, &pool, base + start, base + end), news);
			if (i % 10 == 9) {
				una += next_random(&random) % 200;
				sack_drop(&s, &pool, base + una);
			}
			cr_assert_eq(s.bytes, SPACE - una - missing(have, una, SPACE));
			uint32_t from = una + next_random(&random) % (SPACE - una), to = from + next_random(&random) % (SPACE - from);
			cr_assert_eq(sack_missing(&s, base + from, base + to), missing(have, from, to));
			uint32_t hole = from, end_of_hole;
			while (hole < SPACE && have[hole])
				hole++;
			uint32_t got = sack_hole(&s, base + from, base + SPACE, &end_of_hole) - base;
			cr_assert_eq(got, hole);
			if (hole < SPACE) {
				cr_assert_eq(missing(have, hole, end_of_hole - base), end_of_hole - base - hole);
				cr_assert(end_of_hole == base + SPACE || have[end_of_hole - base]);
			}
		}
		sack_clear(&s, &pool);
		cr_assert_eq(pool_used(&pool), 0);
	}
	pool_fini(&pool);
}

/* RFC 6675, IsLost: three discontiguous ranges above, or more than two segments. */
Test(sack, lost_end)
{
	struct pool pool;
	struct sack s = {NULL, 0, 0};
	cr_assert(pool_init(&pool, 1));
	cr_expect_eq(sack_lost_end(&s, 1000, 100), 1000);
	sack_add(&s, &pool, 2000, 2200);
	cr_expect_eq(sack_lost_end(&s, 1000, 100), 1000, "two segments are not enough");
	sack_add(&s, &pool, 2200, 2201);
	cr_expect_eq(sack_lost_end(&s, 1000, 100), 2000);
	sack_clear(&s, &pool);
	sack_add(&s, &pool, 2000, 2010);
	sack_add(&s, &pool, 2020, 2030);
	cr_expect_eq(sack_lost_end(&s, 1000, 100), 1000);
	sack_add(&s, &pool, 2040, 2050);
	cr_expect_eq(sack_lost_end(&s, 1000, 100), 2000);
	sack_clear(&s, &pool);
	pool_fini(&pool);
}

Test(sack, bounded)
{
	struct pool pool;
	struct sack s = {NULL, 0, 0};
	cr_assert(pool_init(&pool, 1));
	for (uint32_t i = 0; i < SACK_MAX_RANGES + 10; i++)
		cr_assert_eq(sack_add(&s, &pool, 10 * i, 10 * i + 5), i < SACK_MAX_RANGES ? 5 : 0);
	cr_expect_eq(s.ranges, SACK_MAX_RANGES);
	cr_expect_eq(sack_add(&s, &pool, 5, 10), 5, "merging still works");
	cr_expect_eq(s.ranges, SACK_MAX_RANGES - 1);
	sack_clear(&s, &pool);
	pool_fini(&pool);
}
