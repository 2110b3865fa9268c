/* test_timers.c - every timer of group-protocol 1.10, to the millisecond. */
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

TestSuite(timers, .init = setup, .fini = teardown);

Test(timers, session)
{
	struct call *c[2];
	rig_stable(r, c, 2);
	for (int i = 0; i < 3; i++) {
		rig_pass(r, 9999);
		rig_heartbeat(r, c[0]->id, NULL, 1);
	}
	cr_expect_eq(rig_group(r)->members_len, 1); /* c[1] said nothing */
	cr_expect_str_eq(rig_state(r), "PreparingRebalance");
	cr_expect_eq(r->stats.group_expired, 1);
	rig_pass(r, 10001);
	cr_expect_str_eq(rig_state(r), "Empty");
	cr_expect_eq(r->stats.group_members_now, 0);
}

Test(timers, session_to_the_millisecond)
{
	struct call *c[1];
	rig_stable(r, c, 1);
	rig_heartbeat(r, c[0]->id, NULL, 1);
	rig_pass(r, 9999);
	cr_expect_str_eq(rig_state(r), "Stable");
	rig_pass(r, 1);
	cr_expect_str_eq(rig_state(r), "Empty");
}

Test(timers, new_member_while_parked)
{
	struct call *c[1];
	rig_stable(r, c, 1);
	member_find(rig_group(r), bytes_str(c[0]->id))->rebalance_timeout_ms = 2000000;
	struct call *n = rig_join(r, 3, "", NULL, 10000, 2000000, "range");
	for (int i = 0; i < 299; i++) { /* the old member stays alive but does not rejoin */
		rig_pass(r, 1000);
		cr_assert_eq(rig_heartbeat(r, c[0]->id, NULL, 1)->error, 27);
	}
	rig_pass(r, 999);
	cr_expect(!n->answered);
	rig_pass(r, 1);
	cr_expect_eq(n->error, 25);
	cr_expect_str_eq(n->id, "");
	cr_expect_eq(rig_group(r)->members_len, 1);
}

Test(timers, session_after_the_first_answer)
{
	struct call *n = rig_join(r, 3, "", NULL, 10000, 60000, "range");
	rig_pass(r, 3000);
	cr_assert_eq(n->error, 0);
	rig_pass(r, 9999);
	cr_expect_eq(rig_group(r)->members_len, 1);
	rig_pass(r, 1);
	cr_expect_eq(rig_group(r)->members_len, 0);
}

Test(timers, a_session_that_ends_with_the_sync_timer_ends_first)
{
	rig_join(r, 0, "", NULL, 10000, 0, "range"); /* version 0: its rebalance timeout is its session timeout */
	struct call *other = rig_join(r, 3, "", NULL, 60000, 5000, "range");
	rig_pass(r, 6000);
	cr_assert_eq(other->generation, 1);
	rig_pass(r, 10010);
	cr_expect_str_eq(rig_state(r), "PreparingRebalance");
	cr_expect_eq(rig_group(r)->members_len, 1, "the other one may still rejoin");
	cr_expect_eq(rig_heartbeat(r, other->id, NULL, 1)->error, 27);
}

Test(timers, pending_id)
{
	struct call *p = rig_join(r, 4, "", NULL, 8000, 60000, "range");
	rig_pass(r, 7999);
	cr_expect_eq(rig_group(r)->pending_len, 1);
	rig_pass(r, 1);
	cr_expect_eq(rig_group(r)->pending_len, 0);
	cr_expect_eq(rig_join(r, 4, p->id, NULL, 8000, 60000, "range")->error, 25);
}

Test(timers, initial_delay_is_bounded_by_the_rebalance_timeout)
{
	/* delay 3 s, rebalance timeout 8 s: 3 + 3 + 2, whoever joins meanwhile */
	struct call *first = rig_join(r, 3, "", NULL, 10000, 8000, "range");
	for (int i = 0; i < 7; i++) {
		rig_pass(r, 1000);
		rig_join(r, 3, "", NULL, 10000, 8000, "range");
	}
	rig_pass(r, 999);
	cr_expect(!first->answered);
	rig_pass(r, 1);
	cr_expect_eq(first->error, 0);
	cr_expect_eq(first->len, 8);
}

Test(timers, initial_delay_not_extended_without_a_joiner)
{
	struct call *first = rig_join(r, 3, "", NULL, 10000, 60000, "range");
	rig_pass(r, 1000);
	struct call *second = rig_join(r, 3, "", NULL, 10000, 60000, "range");
	rig_pass(r, 4999);
	cr_expect(!first->answered && !second->answered);
	rig_pass(r, 1);
	cr_expect_eq(first->error, 0);
	cr_expect_eq(second->error, 0);
	cr_expect_eq(r->stats.group_rebalances, 1);
}

Test(timers, no_initial_delay)
{
	r->settings.group_initial_rebalance_delay_ms = 0;
	struct call *first = rig_join(r, 3, "", NULL, 10000, 60000, "range");
	rig_pass(r, 1);
	cr_expect_eq(first->error, 0);
}

Test(timers, no_initial_delay_when_the_group_was_not_empty)
{
	struct call *c[1];
	rig_stable(r, c, 1);
	struct call *n = rig_join_twice(r, 10000, 60000, "range");
	struct call *again = rig_join(r, 9, c[0]->id, NULL, 10000, 60000, "range");
	cr_expect_eq(n->error, 0); /* at once: all members are there */
	cr_expect_eq(again->error, 0);
}

Test(timers, join_takes_the_largest_rebalance_timeout)
{
	struct call *a = rig_join_twice(r, 30000, 20000, "range");
	struct call *b = rig_join_twice(r, 30000, 40000, "range");
	rig_pass(r, 6000);
	rig_sync_all(r, (struct call *[]){a, b}, 2, 1);
	struct call *n = rig_join_twice(r, 30000, 90000, "range");
	for (int i = 0; i < 3; i++) {
		rig_pass(r, 10000);
		rig_heartbeat(r, a->id, NULL, 1);
		rig_heartbeat(r, b->id, NULL, 1);
	}
	/* n joined first, so its 90 s were counted: armed at its arrival */
	rig_pass(r, 10000);
	cr_expect(!n->answered);
	struct call *again = rig_join(r, 9, a->id, NULL, 30000, 20000, "range");
	for (int i = 0; i < 4; i++) {
		rig_pass(r, 10000);
		rig_heartbeat(r, b->id, NULL, 1);
	}
	rig_pass(r, 9999);
	cr_expect(!n->answered);
	rig_pass(r, 1);
	cr_expect_eq(n->error, 0);
	cr_expect_eq(again->error, 0);
	cr_expect_eq(rig_group(r)->members_len, 2);
	cr_expect_eq(rig_heartbeat(r, b->id, NULL, 1)->error, 25);
	cr_expect_eq(r->stats.group_join_dropped, 1);
}

Test(timers, drop_of_a_named_new_member_starts_its_session)
{
	struct call *n = rig_join_twice(r, 10000, 60000, "range");
	rig_drop(n);
	cr_expect_eq(rig_group(r)->members_len, 1);
	rig_pass(r, 2999);
	cr_expect_eq(rig_group(r)->members_len, 1);
	rig_pass(r, 1); /* the initial delay ends without it */
	cr_expect_str_eq(rig_state(r), "Empty");
}

Test(timers, drop_of_an_unnamed_joiner_removes_it)
{
	struct call *c[1];
	rig_stable(r, c, 1);
	struct call *n = rig_join(r, 3, "", NULL, 10000, 60000, "range");
	struct call *again = rig_join(r, 9, c[0]->id, NULL, 10000, 60000, "range");
	cr_assert_eq(n->error, 0);
	rig_sync_all(r, (struct call *[]){again, n}, 2, 2);
	struct call *ghost = rig_join(r, 3, "", NULL, 10000, 60000, "range");
	again = rig_join(r, 9, c[0]->id, NULL, 10000, 60000, "range");
	struct call *other = rig_join(r, 9, n->id, NULL, 10000, 60000, "range");
	cr_assert_eq(other->error, 0);
	cr_assert_eq(ghost->error, 0);
	struct call *ghost2 = rig_join(r, 3, "", NULL, 10000, 60000, "range");
	rig_drop(ghost2);
	cr_expect_eq(rig_group(r)->members_len, 3);
	cr_expect_eq(r->stats.group_join_dropped, 1);
}

Test(timers, drop_of_an_existing_member_falls_back_to_its_session)
{
	struct call *c[2];
	rig_stable(r, c, 2);
	struct call *again = rig_join(r, 9, c[0]->id, NULL, 10000, 60000, "range");
	for (int i = 0; i < 4; i++) {
		rig_pass(r, 5000); /* parked: its session would be over, but it lives */
		rig_heartbeat(r, c[1]->id, NULL, 1);
	}
	cr_expect_eq(rig_group(r)->members_len, 2);
	rig_drop(again);
	rig_pass(r, 5000);
	rig_heartbeat(r, c[1]->id, NULL, 1);
	rig_pass(r, 4999);
	cr_expect_eq(rig_group(r)->members_len, 2);
	rig_pass(r, 1);
	cr_expect_eq(rig_group(r)->members_len, 1);
	cr_expect_eq(rig_heartbeat(r, c[0]->id, NULL, 1)->error, 25);
}

Test(timers, nothing_is_left_when_all_are_gone)
{
	struct call *c[5];
	rig_stable(r, c, 5);
	rig_join(r, 4, "", NULL, 10000, 60000, "range");
	rig_join(r, 4, "", NULL, 10000, 60000, "range");
	rig_pass(r, 20000000); /* far enough that the wheel has looked into every slot that was ever used */
	cr_expect_str_eq(rig_state(r), "Empty");
	cr_expect_eq(r->stats.group_members_now, 0);
	cr_expect_eq(r->stats.group_groups_now, 1);
	cr_expect_eq(r->shard->members.count, 0);
	cr_expect_eq(r->shard->instances.count, 0);
	cr_expect_eq(r->shard->pendings.count, 0);
	cr_expect_eq(r->shard->protocols.count, 0);
	cr_expect_null(r->shard->writes.first);
	cr_expect_eq(purgatory_next(&r->shard->purgatory), TIME_NEVER);
	cr_expect_eq(rig_group(r)->generation, 2);
}

Test(timers, drop_of_a_parked_sync_falls_back_to_the_session)
{
	struct call *a = rig_join_twice(r, 60000, 60000, "range");
	struct call *b = rig_join_twice(r, 10000, 60000, "range");
	rig_pass(r, 6000);
	cr_assert_eq(b->error, 0);
	struct call *sync = rig_sync(r, 3, b->id, NULL, 1, "");
	rig_pass(r, 15000); /* parked: alive */
	cr_expect_eq(rig_group(r)->members_len, 2);
	rig_drop(sync);
	rig_pass(r, 9999);
	cr_expect_eq(rig_group(r)->members_len, 2);
	rig_pass(r, 1);
	cr_expect_eq(rig_group(r)->members_len, 1);
	cr_expect_eq(rig_heartbeat(r, a->id, NULL, 1)->error, 27);
}

Test(timers, heartbeats_do_not_shorten_the_time_of_a_new_member)
{
	struct call *c[1];
	rig_stable(r, c, 1);
	struct call *ask = rig_join(r, 9, "", NULL, 6000, 60000, "range");
	struct call *n = rig_join(r, 9, ask->id, NULL, 6000, 60000, "range");
	cr_expect_eq(rig_heartbeat(r, ask->id, NULL, 1)->error, 27);
	for (int i = 0; i < 3; i++) {
		rig_pass(r, 5000);
		rig_heartbeat(r, c[0]->id, NULL, 1);
	}
	cr_expect(!n->answered);
	cr_expect_eq(rig_group(r)->members_len, 2);
}

Test(timers, no_sync_timer_once_all_have_synced)
{
	struct call *c[2];
	rig_stable(r, c, 2);
	for (int i = 0; i < 40; i++) { /* 200 s: more than three rebalance time-outs */
		rig_pass(r, 5000);
		cr_assert_eq(rig_heartbeat(r, c[0]->id, NULL, 1)->error, 0);
		cr_assert_eq(rig_heartbeat(r, c[1]->id, NULL, 1)->error, 0);
	}
	cr_expect_eq(r->stats.group_rebalances, 1);
	cr_expect(!purgatory_waiting(&rig_group(r)->sync));
}

Test(timers, a_new_member_that_comes_back_after_a_drop_waits_as_long_as_any)
{
	struct call *c[1];
	rig_stable(r, c, 1);
	struct call *ask = rig_join(r, 9, "", NULL, 6000, 60000, "range");
	rig_drop(rig_join(r, 9, ask->id, NULL, 6000, 60000, "range"));
	struct call *again = rig_join(r, 9, ask->id, NULL, 6000, 60000, "range");
	for (int i = 0; i < 4; i++) {
		rig_pass(r, 5000);
		rig_heartbeat(r, c[0]->id, NULL, 1);
	}
	cr_expect(!again->answered);
	cr_expect_eq(rig_group(r)->members_len, 2);
}
