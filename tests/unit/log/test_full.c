/*
 * test_full.c - a full disk: commits are refused with an error that clients come back from, deletions go on, cleaning makes room, and everything
 * resumes without a restart.
 */
#include <criterion/criterion.h>

#include "churn.h"

static void settle(struct churn *c)
{
	churn_settle(c);
	c->now.us += 2 * US_PER_S; /* whatever waits to be tried again */
	churn_settle(c);
	c->now.us += 12 * US_PER_S;
	churn_settle(c);
}

/* Ever new keys, until no more are taken. Returns how many were. */
static unsigned int fill(struct churn *c)
{
	for (unsigned int i = 0; i < CHURN_SHARDS * CHURN_KEYS; i++) {
		int16_t error = churn_put(c, i % CHURN_SHARDS, i / CHURN_SHARDS, false, 3500);
		for (int tries = 0; error != 0 && tries < 5; tries++) {
			cr_assert_eq(error, 19);
			settle(c);
			error = churn_put(c, i % CHURN_SHARDS, i / CHURN_SHARDS, false, 3500);
		}
		if (error != 0)
			return i;
		churn_poll(c);
	}
	return CHURN_SHARDS * CHURN_KEYS;
}

static void full_and_back(struct churn *c)
{
	unsigned int keys = fill(c);
	cr_assert(keys > 10 && keys < CHURN_SHARDS * CHURN_KEYS, "%u", keys);
	cr_assert(churn_status(c).full && !churn_status(c).failed);
	cr_assert(strstr(c->said, "log: FULL") != NULL, "%s", c->said);
	settle(c);
	cr_assert_eq(c->queue_len, 0, "what was taken is acknowledged");
	for (unsigned int i = 0; i < keys; i++) { /* deleting goes on, from the reserve */
		int16_t error = churn_put(c, i % CHURN_SHARDS, i / CHURN_SHARDS, true, 0);
		cr_assert_eq(error, 0, "deletion %u of %u: %d", i, keys, error);
		if (i % 40 == 39) /* many in a block, as those of many groups are */
			settle(c);
	}
	settle(c);
	cr_assert_eq(churn_put(c, 0, 1, false, 3500), 0, "room again");
	cr_assert(strstr(c->said, "room again") != NULL, "%s", c->said);
	cr_assert_gt(fill(c), 10);
	settle(c);
	churn_cut(c, false);
	cr_assert(churn_start(c), "%s", c->err);
	cr_assert(churn_check(c));
	cr_assert_eq(c->lost_blocks + c->set_aside, 0);
}

static struct churn *started(uint64_t seed)
{
	struct churn *c = churn_new(seed);
	c->segment_bytes = 64 * 1024;
	c->reserve_bytes = 16 * 1024;
	c->total_bytes = 12 * 64 * 1024;
	return c;
}

Test(full, log_total_bytes)
{
	struct churn *c = started(1);
	cr_assert(churn_start(c));
	full_and_back(c);
	churn_free(c);
}

Test(full, no_space_on_the_disk)
{
	struct churn *c = started(2);
	c->disk->capacity = c->total_bytes;
	c->total_bytes = 1ull << 40;
	cr_assert(churn_start(c));
	full_and_back(c);
	churn_free(c);
}

/* The same keys over and over fit however small the disk is, as long as what counts does. */
Test(full, churn_in_little_room)
{
	struct churn *c = started(3);
	cr_assert(churn_start(c));
	for (unsigned int i = 0; i < 1200; i++) {
		while (churn_put(c, i % CHURN_SHARDS, i % 30 / CHURN_SHARDS, false, 3500) != 0)
			settle(c);
		for (int k = 0; k < 30; k++)
			churn_poll(c);
		cr_assert_leq(c->disk->used, c->total_bytes + 4 * FORMAT_ALIGN);
	}
	cr_assert_lt(churn_status(c).refused, 20, "%lu", (unsigned long)churn_status(c).refused);
	churn_free(c);
}

/* A write that finds no space is not final: the same block is written again, nothing is taken meanwhile, what was taken is acknowledged in the end. */
Test(full, a_write_that_finds_no_space)
{
	struct churn *c = started(4);
	cr_assert(churn_start(c));
	for (int i = 0; i < 100; i++)
		churn_poll(c);
	cr_assert_eq(churn_put(c, 0, 1, false, 100), 0);
	c->disk->no_space = true;
	for (int i = 0; i < 60; i++)
		churn_poll(c);
	cr_assert(!churn_status(c).failed && churn_status(c).full);
	cr_assert_eq(c->queue_len, 1);
	cr_assert_eq(churn_put(c, 0, 2, false, 100), 19);
	for (int i = 0; i < 5; i++) {
		c->now.us += 2 * US_PER_S;
		churn_poll(c);
	}
	cr_assert_eq(c->queue_len, 1);
	c->disk->no_space = false;
	c->now.us += 2 * US_PER_S;
	churn_settle(c);
	cr_assert_eq(c->queue_len, 0);
	cr_assert_eq(churn_put(c, 0, 2, false, 100), 0);
	churn_settle(c);
	churn_cut(c, false);
	cr_assert(churn_start(c) && churn_check(c), "%s", c->err);
	churn_free(c);
}
