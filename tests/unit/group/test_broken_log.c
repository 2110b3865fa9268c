/* test_broken_log.c - the log fails for good while writes are on their way: everybody who waits is answered, nothing is acknowledged, reads go on. */
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

TestSuite(broken_log, .init = setup, .fini = teardown);

static int barrier_error;

static void ran(struct shard_barrier *barrier, int16_t error, struct now now)
{
	cr_expect_eq(barrier_error, -999, "once");
	barrier_error = error;
}

Test(broken_log, commits)
{
	struct call *c[2];
	rig_stable(r, c, 2);
	rig_commit(r, 8, c[0]->id, NULL, 1, "t:0=5");
	rig_settle(r);
	rig_log_hold(r, true);
	struct call *waits = rig_commit(r, 8, c[0]->id, NULL, 1, "t:0=6,!u:0=1,t:1=7");
	struct call *gone = rig_commit(r, 8, c[1]->id, NULL, 1, "t:2=8");
	rig_drop(gone);
	struct shard_barrier barrier = {.then = ran};
	barrier_error = -999;
	shard_barrier(r->shard, &barrier, r->now);
	rig_settle(r);
	cr_assert(!waits->answered);
	rig_log_break(r, 56);
	rig_settle(r);
	cr_assert(waits->answered);
	cr_expect_eq(waits->codes[0], 16);
	cr_expect_eq(waits->codes[1], 3);
	cr_expect_eq(waits->codes[2], 16);
	cr_expect_eq(barrier_error, 16, "who waits for the writes is told");
	barrier_error = -999;
	shard_barrier(r->shard, &barrier, r->now);
	cr_expect_eq(barrier_error, 0, "who asks later need not wait for what is lost");
	cr_expect_eq(rig_offset(r, "t", 0), 5, "the old value is served");
	cr_expect_eq(rig_heartbeat(r, c[0]->id, NULL, 1)->error, 0);
	cr_expect_eq(rig_commit(r, 8, c[0]->id, NULL, 1, "t:0=9")->codes[0], 16, "at once");
	rig_settle(r);
	cr_expect_eq(rig_offset(r, "t", 0), 5);
}

/* A position that was appended to another shard of the same log: whoever waits for it here must not take its loss for durability. */
Test(broken_log, position_of_another_shard)
{
	struct shard_barrier barrier = {.then = ran};
	rig_commit(r, 8, "", NULL, -1, "t:0=5");
	rig_settle(r);
	rig_log_hold(r, true);
	rig_commit(r, 8, "", NULL, -1, "t:0=6");
	uint64_t lost = shard_appended(r->shard);
	rig_log_break(r, 56);
	barrier_error = -999;
	shard_barrier_at(r->shard, &barrier, lost - 1, r->now);
	cr_expect_eq(barrier_error, 0, "durable before the log broke");
	rig_settle(r);
	barrier_error = -999;
	shard_barrier_at(r->shard, &barrier, lost, r->now);
	cr_expect_eq(barrier_error, 16);
	cr_expect_lt(shard_appended(r->shard), lost);
}

Test(broken_log, syncs)
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
	rig_settle(r);
	cr_assert(!fa->answered && !fb->answered);
	rig_log_break(r, 56);
	rig_settle(r);
	cr_expect(fa->answered && fb->answered);
	cr_expect_eq(fa->error, 16);
	cr_expect_eq(fb->error, 16);
	cr_expect_str_eq(rig_state(r), "PreparingRebalance");
}

Test(broken_log, static_replacement)
{
	struct call *a = rig_join(r, 5, "", "ia", 10000, 60000, "range");
	rig_pass(r, 3500);
	cr_assert_eq(a->error, 0);
	rig_sync(r, 5, a->id, "ia", 1, "");
	rig_settle(r);
	cr_assert_str_eq(rig_state(r), "Stable");
	rig_log_hold(r, true);
	struct call *again = rig_join(r, 5, "", "ia", 10000, 60000, "range");
	rig_settle(r);
	cr_assert(!again->answered);
	rig_log_break(r, 56);
	rig_settle(r);
	cr_assert(again->answered);
	cr_expect_eq(again->error, 16);
	cr_expect_eq(rig_heartbeat(r, a->id, "ia", 1)->error, 0, "the id before stays valid");
}
