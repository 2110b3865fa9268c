/* test_late_log.c - the log takes longer than offsets.commit.timeout.ms: who waits is told, and what becomes durable after all counts. */
#include <criterion/criterion.h>

#include "rig.h"

static struct rig *r;

static void setup(void)
{
	r = rig_new();
}

static void teardown(void)
{
	rig_free(r);
}

TestSuite(late_log, .init = setup, .fini = teardown);

static int barrier_error;

static void ran(struct shard_barrier *barrier, int16_t error, struct now now)
{
	cr_expect_eq(barrier_error, -999, "once");
	barrier_error = error;
}

Test(late_log, commits)
{
	struct call *c[1];
	rig_stable(r, c, 1);
	rig_log_hold(r, true);
	struct call *first = rig_commit(r, 8, c[0]->id, NULL, 1, "t:0=6,!u:0=1");
	rig_pass(r, 2000);
	struct call *second = rig_commit(r, 8, c[0]->id, NULL, 1, "t:1=7");
	struct shard_barrier barrier = {.then = ran};
	barrier_error = -999;
	shard_barrier(r->shard, &barrier, r->now);
	rig_pass(r, 2900);
	cr_assert(!first->answered);
	rig_pass(r, 200);
	cr_assert(first->answered);
	cr_expect_eq(first->codes[0], 15);
	cr_expect_eq(first->codes[1], 3, "decided before the log was asked");
	cr_expect(!second->answered && barrier_error == -999, "each has its own time");
	cr_expect_eq(rig_offset(r, "t", 0), -999, "not durable, not served");
	rig_pass(r, 2000);
	cr_assert(second->answered);
	cr_expect_eq(second->codes[0], 15);
	cr_expect_eq(barrier_error, 15);
	rig_log_hold(r, false);
	rig_settle(r);
	cr_expect_eq(rig_offset(r, "t", 0), 6, "durable after all");
	cr_expect_eq(rig_offset(r, "t", 1), 7);
	struct call *third = rig_commit(r, 8, c[0]->id, NULL, 1, "t:0=8");
	rig_settle(r);
	cr_assert(third->answered);
	cr_expect_eq(third->codes[0], 0);
}

Test(late_log, syncs)
{
	struct call *a = rig_join(r, 3, "", NULL, 10000, 60000, "range=sa");
	struct call *b = rig_join(r, 3, "", NULL, 10000, 60000, "range=sb");
	rig_pass(r, 6500);
	cr_assert(a->answered && b->answered);
	rig_log_hold(r, true);
	const char *leader = a->len > 0 ? a->id : b->id;
	const char *follower = a->len > 0 ? b->id : a->id;
	struct call *fb = rig_sync(r, 3, follower, NULL, 1, "");
	struct call *fa = rig_sync(r, 3, leader, NULL, 1, "");
	rig_pass(r, 5100);
	cr_assert(fa->answered && fb->answered);
	cr_expect_eq(fa->error, 15);
	cr_expect_eq(fb->error, 15);
	cr_expect_str_eq(rig_state(r), "PreparingRebalance");
	rig_log_hold(r, false);
	rig_settle(r);
	cr_expect_str_eq(rig_state(r), "PreparingRebalance", "the record is of a generation that nobody got");
}

Test(late_log, static_replacement)
{
	struct call *a = rig_join(r, 5, "", "ia", 10000, 60000, "range");
	rig_pass(r, 3500);
	cr_assert_eq(a->error, 0);
	rig_sync(r, 5, a->id, "ia", 1, "");
	rig_settle(r);
	cr_assert_str_eq(rig_state(r), "Stable");
	rig_log_hold(r, true);
	struct call *again = rig_join(r, 5, "", "ia", 10000, 60000, "range");
	rig_pass(r, 5100);
	cr_assert(again->answered);
	cr_expect_eq(again->error, 15);
	rig_log_hold(r, false);
	rig_settle(r);
	struct call *retry = rig_join(r, 5, "", "ia", 10000, 60000, "range");
	rig_settle(r);
	cr_assert(retry->answered);
	cr_expect_eq(retry->error, 0);
	cr_expect_str_eq(rig_state(r), "Stable", "no rebalance");
	cr_expect_eq(rig_heartbeat(r, retry->id, "ia", 1)->error, 0);
	cr_expect_eq(rig_heartbeat(r, a->id, "ia", 1)->error, 82, "replaced");
}
