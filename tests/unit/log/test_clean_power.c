/*
 * test_clean_power.c - cleaning while the power goes or the program is killed, at every operation: nothing acknowledged is lost, nothing deleted comes back.
 */
#include <criterion/criterion.h>

#include "churn.h"

enum cut { CUT_POWER, CUT_KILL, CUT_EITHER };

static void cut(struct churn *c, enum cut how)
{
	churn_cut(c, how == CUT_KILL || (how == CUT_EITHER && sim_random(&c->random) % 2 == 0));
}

static void work(struct churn *c, unsigned int steps, size_t bytes)
{
	for (unsigned int i = 0; i < steps && !c->disk->cut; i++) {
		uint64_t dice = sim_random(&c->random);
		if (dice % 3 == 0 && c->queue_len < CHURN_QUEUE - 16)
			churn_append(c, (unsigned int)(dice >> 8) % CHURN_SHARDS, 1 + (unsigned int)(dice >> 16) % 5, 20, bytes);
		else
			churn_poll(c);
	}
}

static void start_again(struct churn *c, uint64_t cut_after, enum cut how)
{
	for (int tries = 0; tries < 200; tries++) {
		c->disk->cut_at = cut_after > 0 && tries < 60 ? cut_after + (uint64_t)tries % 5 : 0;
		bool ok = churn_start(c);
		if (ok && !c->disk->cut) {
			c->disk->cut_at = 0;
			cr_assert(churn_check(c), "%s%s", c->err, c->said);
			cr_assert_eq(c->lost_blocks + c->set_aside, 0, "%s", c->said);
			return;
		}
		cr_assert(c->disk->cut, "refused without a cut: %s", c->err);
		cut(c, how);
	}
	cr_assert_fail("no start goes through");
}

/* A short history in which a pass with several runs happens, cut at every operation; then the recovery is cut, and then the next pass. */
Test(clean_power, every_operation)
{
	uint64_t passes = 0;
	for (uint64_t at = 1; at < 260; at++) {
		for (uint64_t coin = 0; coin < 3; coin++) {
			struct churn *c = churn_new(1000 * at + coin);
			c->segment_bytes = 16 * 1024;
			c->disk->cut_at = at;
			enum cut how = coin == 2 ? CUT_KILL : CUT_POWER;
			if (churn_start(c) && !c->disk->cut)
				work(c, 700, 900);
			passes += c->running > 0 && churn_status(c).cleaned.runs > 0;
			cut(c, how);
			start_again(c, coin * 3, how);
			c->disk->cut_at = c->disk->ops + 1 + at % 90;
			work(c, 300, 900);
			cut(c, how);
			start_again(c, 0, how);
			churn_free(c);
		}
	}
	cr_assert_gt(passes, 300, "%lu", (unsigned long)passes);
}

static void lives(uint64_t seed, enum log_flush flush, enum cut how, unsigned int n)
{
	struct churn *c = churn_new(seed);
	c->flush = flush;
	c->segment_bytes = 16 * 1024;
	c->retention_ms = seed % 2 == 0 ? 0 : 1000;
	for (unsigned int i = 0; i < n; i++) {
		uint64_t dice = sim_random(&c->random);
		start_again(c, dice % 4 == 0 ? 1 + (dice >> 8) % 40 : 0, how);
		c->now.wall_ms += (int64_t)(dice >> 40) % 2000;
		c->disk->cut_at = c->disk->ops + 1 + (dice >> 20) % 200;
		work(c, 200 + (unsigned int)(dice >> 30) % 900, dice % 5 == 0 ? 3000 : 300);
		if (dice % 11 == 0 && !c->disk->cut) {
			c->disk->cut_at = 0;
			churn_stop(c);
		} else {
			cut(c, how);
		}
	}
	start_again(c, 0, how);
	churn_free(c);
}

Test(clean_power, random_lives_durable)
{
	for (uint64_t seed = 1; seed <= 30; seed++)
		lives(seed, LOG_FLUSH_DURABLE, CUT_POWER, 12);
}

Test(clean_power, random_lives_written)
{
	for (uint64_t seed = 1; seed <= 30; seed++)
		lives(seed, LOG_FLUSH_WRITTEN, CUT_KILL, 12);
}

Test(clean_power, either_durable)
{
	for (uint64_t seed = 101; seed <= 130; seed++)
		lives(seed, LOG_FLUSH_DURABLE, CUT_EITHER, 12);
}

/* Each start has another number of workers; each cleans its own shards of what all the others left. */
Test(clean_power, workers_come_and_go)
{
	uint64_t runs = 0;
	for (uint64_t seed = 201; seed <= 240; seed++) {
		struct churn *c = churn_new(seed);
		c->segment_bytes = 16 * 1024;
		for (unsigned int i = 0; i < 14; i++) {
			uint64_t dice = sim_random(&c->random);
			c->workers = 1 + (unsigned int)(dice >> 3) % CHURN_SHARDS;
			start_again(c, 0, CUT_EITHER);
			if (dice % 3 > 0)
				c->disk->cut_at = c->disk->ops + 1 + (dice >> 20) % 600;
			work(c, 200 + (unsigned int)(dice >> 30) % 1200, 500);
			runs += churn_status(c).cleaned.runs;
			if (dice % 3 == 0)
				churn_stop(c);
			else
				cut(c, CUT_EITHER);
		}
		c->workers = 1;
		start_again(c, 0, CUT_EITHER);
		work(c, 3000, 500);
		churn_stop(c);
		start_again(c, 0, CUT_EITHER);
		churn_free(c);
	}
	cr_assert_gt(runs, 1000, "%lu", (unsigned long)runs);
}
