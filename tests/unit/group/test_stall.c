/*
 * test_stall.c - the worker stood still: nobody is declared dead before he could be heard. Worker time stands still meanwhile (test_time.c), so a
 * test only tells the shard how long that was.
 */
#include <criterion/criterion.h>

#include "rig.h"

#define STOOD_MS 20000
#define HELD_MS (STOOD_MS + 1000) /* as long again, and a SYN's first pause */

static struct rig *r;

static void setup(void)
{
	r = rig_new();
}

static void teardown(void)
{
	rig_free(r);
}

TestSuite(stall, .init = setup, .fini = teardown);

static void stand_still(int64_t ms)
{
	r->now.wall_ms += ms;
	shard_stalled(r->shard, (uint64_t)ms * US_PER_MS, r->now);
}

Test(stall, sessions_are_held_until_everybody_can_have_been_heard)
{
	struct call *c[3];
	rig_stable(r, c, 3); /* sessions of 10 s */
	rig_pass(r, 3000);
	stand_still(STOOD_MS);
	rig_heartbeat(r, c[0]->id, NULL, 1); /* was in the receive queue */
	for (int i = 0; i < 6; i++) {
		rig_pass(r, 3300);
		cr_assert_eq(rig_heartbeat(r, c[0]->id, NULL, 1)->error, 0);
	}
	cr_expect_eq(rig_heartbeat(r, c[1]->id, NULL, 1)->error, 0, "its segment was sent again only now");
	cr_expect_eq(r->stats.group_expired, 0);
	cr_expect_geq(r->stats.group_expiries_held, 1);
	rig_pass(r, HELD_MS - 6 * 3300 - 1);
	cr_expect_eq(rig_group(r)->members_len, 3);
	rig_pass(r, 1); /* c[2] never said anything */
	cr_expect_eq(rig_group(r)->members_len, 2);
	cr_expect_eq(r->stats.group_expired, 1);
}

Test(stall, after_the_hold_sessions_are_as_long_as_ever)
{
	struct call *c[1];
	rig_stable(r, c, 1);
	stand_still(STOOD_MS);
	rig_pass(r, 15000);
	rig_heartbeat(r, c[0]->id, NULL, 1);
	rig_pass(r, 9999);
	cr_expect_str_eq(rig_state(r), "Stable");
	rig_pass(r, 1);
	cr_expect_str_eq(rig_state(r), "Empty");
}

Test(stall, a_longer_session_is_not_lengthened)
{
	struct call *n = rig_join(r, 3, "", NULL, 60000, 60000, "range");
	rig_pass(r, 3000);
	rig_sync_all(r, &n, 1, 1);
	stand_still(STOOD_MS);
	rig_pass(r, 59999);
	cr_expect_eq(rig_group(r)->members_len, 1);
	rig_pass(r, 1);
	cr_expect_eq(rig_group(r)->members_len, 0);
}

Test(stall, commits_are_signs_of_life_too)
{
	struct call *c[1];
	rig_stable(r, c, 1);
	for (int i = 0; i < 4; i++) {
		rig_pass(r, 6000);
		cr_assert_eq(rig_commit(r, 8, c[0]->id, NULL, 1, "t:0=5")->codes[0], 0);
	}
	cr_expect_eq(rig_group(r)->members_len, 1);
	stand_still(STOOD_MS);
	rig_pass(r, HELD_MS - 5000);
	rig_commit(r, 8, c[0]->id, NULL, 1, "t:0=6");
	rig_pass(r, 9999);
	cr_expect_eq(rig_group(r)->members_len, 1);
	rig_pass(r, 1);
	cr_expect_eq(rig_group(r)->members_len, 0);
}

Test(stall, a_join_phase_waits_for_those_who_could_not_be_heard)
{
	struct call *c[2];
	rig_stable(r, c, 2);
	for (int i = 0; i < 2; i++)
		member_find(rig_group(r), bytes_str(c[i]->id))->rebalance_timeout_ms = 5000;
	struct call *again = rig_join(r, 9, c[0]->id, NULL, 10000, 5000, "range"); /* the leader: a rebalance of 5 s */
	rig_pass(r, 4000);
	stand_still(STOOD_MS);
	rig_pass(r, 15000);
	cr_expect(!again->answered);
	struct call *late = rig_join(r, 9, c[1]->id, NULL, 10000, 5000, "range");
	cr_expect_eq(late->error, 0);
	cr_expect_eq(again->error, 0);
	cr_expect_eq(late->generation, 2);
}

Test(stall, a_sync_phase_waits_too)
{
	struct call *a = rig_join_twice(r, 10000, 5000, "range");
	struct call *b = rig_join_twice(r, 10000, 5000, "range");
	rig_pass(r, 6000);
	cr_assert_eq(b->error, 0);
	rig_sync(r, 3, a->id, NULL, 1, "");
	stand_still(STOOD_MS);
	rig_pass(r, HELD_MS - 1);
	cr_expect_eq(rig_group(r)->members_len, 2);
	cr_expect_eq(rig_sync(r, 3, b->id, NULL, 1, "")->error, 0);
	cr_expect_eq(r->stats.group_sync_expired, 0);
}

Test(stall, handed_out_ids_wait_too)
{
	struct call *p = rig_join(r, 4, "", NULL, 8000, 60000, "range");
	stand_still(STOOD_MS);
	rig_pass(r, HELD_MS - 1);
	struct call *n = rig_join(r, 4, p->id, NULL, 8000, 60000, "range");
	rig_pass(r, 3000);
	cr_expect_eq(n->error, 0);
}

Test(stall, a_new_group_does_not_wait)
{
	stand_still(STOOD_MS);
	struct call *n = rig_join(r, 3, "", NULL, 10000, 60000, "range");
	rig_pass(r, 3000);
	cr_expect_eq(n->error, 0);
}

Test(stall, no_hold_is_longer_than_the_longest_pause_of_a_peer)
{
	struct call *c[1];
	rig_stable(r, c, 1);
	stand_still(3600000);
	rig_pass(r, 120999);
	cr_expect_eq(rig_group(r)->members_len, 1);
	rig_pass(r, 1);
	cr_expect_eq(rig_group(r)->members_len, 0);
}
