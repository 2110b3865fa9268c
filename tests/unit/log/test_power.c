/*
 * test_power.c - what was acknowledged is there after every cut: power or program, at every operation, whatever the disk made of what was not
 * flushed; and nothing else is there. In recovery, too.
 */
#include <criterion/criterion.h>

#include "life.h"

enum cut { CUT_POWER, CUT_KILL, CUT_EITHER };

static void cut(struct life *l, enum cut how)
{
	life_cut(l, how == CUT_KILL || (how == CUT_EITHER && sim_random(&l->random) % 2 == 0));
}

static void work(struct life *l, unsigned int steps, size_t bytes_max)
{
	for (unsigned int i = 0; i < steps && !l->disk->cut; i++) {
		uint64_t dice = sim_random(&l->random);
		if (dice % 3 != 0)
			life_append(l, (unsigned int)(dice >> 8) % LIFE_SHARDS, 1 + (unsigned int)(dice >> 16) % 5, (size_t)(dice >> 24) % bytes_max);
		else
			life_poll(l);
	}
}

/* Starts until one goes through; each may be cut as well. */
static void start_again(struct life *l, uint64_t cut_after, enum cut how)
{
	for (int tries = 0; tries < 200; tries++) {
		l->disk->cut_at = cut_after > 0 && tries < 100 ? cut_after + (uint64_t)tries % 7 : 0;
		bool ok = life_start(l);
		if (ok && !l->disk->cut) {
			l->disk->cut_at = 0;
			cr_assert(life_check(l), "found %u of %u, %u acknowledged, bad %d: %s%s", l->found_len, l->len, l->acked, l->bad, l->err,
				  l->said);
			cr_assert_eq(l->lost_blocks + l->set_aside, 0);
			return;
		}
		cr_assert(l->disk->cut, "refused without a cut: %s", l->err);
		cut(l, how);
	}
	cr_assert_fail("no start goes through");
}

static void lives(uint64_t seed, enum log_flush flush, enum cut how, unsigned int n)
{
	struct life *l = life_new(seed);
	l->flush = flush;
	for (unsigned int i = 0; i < n; i++) {
		uint64_t dice = sim_random(&l->random);
		start_again(l, dice % 4 == 0 ? 1 + (dice >> 8) % 40 : 0, how);
		size_t bytes_max = dice % 5 == 0 ? 9000 : 300;
		l->disk->lazy = dice % 7 == 0;
		l->disk->cut_at = l->disk->ops + 1 + (dice >> 20) % 60;
		work(l, 40 + (unsigned int)(dice >> 30) % 300, bytes_max);
		if (dice % 11 == 0 && !l->disk->cut) {
			l->disk->lazy = false;
			l->disk->cut_at = 0;
			life_stop(l);
		} else {
			cut(l, how);
		}
	}
	start_again(l, 0, how);
	life_free(l);
}

Test(power, random_lives_durable)
{
	for (uint64_t seed = 1; seed <= 40; seed++)
		lives(seed, LOG_FLUSH_DURABLE, CUT_POWER, 12);
}

/* Acknowledged when written: a killed program loses nothing. */
Test(power, random_lives_written)
{
	for (uint64_t seed = 1; seed <= 40; seed++)
		lives(seed, LOG_FLUSH_WRITTEN, CUT_KILL, 12);
}

Test(power, either_durable)
{
	for (uint64_t seed = 101; seed <= 130; seed++)
		lives(seed, LOG_FLUSH_DURABLE, CUT_EITHER, 12);
}

/* What a restart found after a kill stays, whatever happens next: it was only in the kernel's memory, and it has been served. */
Test(power, killed_then_power_cut)
{
	for (uint64_t seed = 1; seed <= 60; seed++) {
		struct life *l = life_new(seed);
		l->flush = seed % 2 == 0 ? LOG_FLUSH_WRITTEN : LOG_FLUSH_DURABLE;
		cr_assert(life_start(l));
		l->disk->cut_at = l->disk->ops + 5 + seed % 40;
		work(l, 200, 300);
		life_cut(l, true);
		start_again(l, 0, CUT_KILL);
		life_cut(l, false);
		start_again(l, 0, CUT_POWER);
		life_free(l);
	}
}

/* A short history, cut at every single operation, several times each, for the coins fall differently; then recovery is cut at every one. */
Test(power, every_operation)
{
	for (uint64_t at = 1; at < 90; at++) {
		for (uint64_t coin = 0; coin < 6; coin++) {
			struct life *l = life_new(1000 * at + coin);
			l->segment_bytes = 16 * 1024;
			l->disk->cut_at = at;
			if (life_start(l) && !l->disk->cut)
				work(l, 120, 1500);
			life_cut(l, false);
			start_again(l, 1 + coin, CUT_POWER);
			life_free(l);
		}
	}
}

/* The ledger would notice: with blocks that are only written, a power cut does lose what was acknowledged. */
Test(power, the_test_can_fail)
{
	unsigned int lost = 0;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct life *l = life_new(seed);
		l->flush = LOG_FLUSH_WRITTEN;
		cr_assert(life_start(l));
		work(l, 100, 300);
		life_settle(l);
		life_cut(l, false);
		cr_assert(life_start(l), "%s", l->err);
		cr_assert(!l->bad);
		lost += l->found_len < l->acked;
		life_free(l);
	}
	cr_assert_gt(lost, 10);
}
