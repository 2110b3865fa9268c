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

static void ran(struct shard_barrier *barrier, struct now now)
{
	barrier->position = UINT64_MAX;
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
	struct shard_barrier barrier;
	barrier.then = ran;
	shard_barrier(r->shard, &barrier, r->now);
	rig_settle(r);
	cr_assert(!waits->answered);
	rig_log_break(r, 56);
	rig_settle(r);
	cr_assert(waits->answered);
	cr_expect_eq(waits->codes[0], 16);
	cr_expect_eq(waits->codes[1], 3);
	cr_expect_eq(waits->codes[2], 16);
	cr_expect_neq(barrier.position, UINT64_MAX, "what waits for the writes is not told that they are durable");
	shard_barrier_cancel(r->shard, &barrier);
	cr_expect_eq(rig_offset(r, "t", 0), 5, "the old value is served");
	cr_expect_eq(rig_heartbeat(r, c[0]->id, NULL, 1)->error, 0);
	cr_expect_eq(rig_commit(r, 8, c[0]->id, NULL, 1, "t:0=9")->codes[0], 16, "at once");
	rig_settle(r);
	cr_expect_eq(rig_offset(r, "t", 0), 5);
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
}
