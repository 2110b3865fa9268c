/* test_window.c - the join window: a rolling deploy is few rebalances, and nobody waits longer than he may. */
#include <criterion/criterion.h>

#include "rig.h"

static struct rig *r;

static void setup(void)
{
	r = rig_new();
	r->settings.group_join_window_ms = 2000;
	r->settings.group_join_window_max_ms = 5000;
}

static void teardown(void)
{
	rig_free(r);
}

TestSuite(window, .init = setup, .fini = teardown);

static struct call *again(struct call *c)
{
	return rig_join(r, 9, c->id, NULL, 10000, 60000, "range");
}

Test(window, without_it_each_restart_is_two_rebalances)
{
	struct call *c[2];
	r->settings.group_join_window_ms = 0;
	rig_stable(r, c, 2);
	rig_leave(r, 1, c[1]->id);
	struct call *a = again(c[0]);
	cr_expect_eq(a->error, 0, "at once");
	rig_sync_all(r, &a, 1, 2);
	struct call *n = rig_join_twice(r, 10000, 60000, "range");
	cr_expect_eq(again(c[0])->error, 0);
	cr_expect_eq(n->error, 0);
	cr_expect_eq(r->stats.group_rebalances, 3);
	cr_expect_eq(r->stats.group_rebalances_avoided, 1, "the initial delay took the second member in");
}

Test(window, a_restart_within_it_is_one)
{
	struct call *c[2];
	rig_stable(r, c, 2);
	uint64_t before = r->stats.group_rebalances_avoided;
	rig_leave(r, 1, c[1]->id);
	struct call *a = again(c[0]);
	cr_expect(!a->answered);
	rig_pass(r, 1500);
	struct call *n = rig_join_twice(r, 10000, 60000, "range");
	rig_pass(r, 1999);
	cr_expect(!a->answered && !n->answered);
	rig_pass(r, 1);
	cr_expect_eq(a->error, 0);
	cr_expect_eq(n->error, 0);
	cr_expect_eq(a->generation, 2);
	cr_expect_eq(r->stats.group_rebalances, 2);
	cr_expect_eq(r->stats.group_rebalances_avoided - before, 1);
}

Test(window, it_is_bounded)
{
	struct call *c[1];
	rig_stable(r, c, 1);
	struct call *first = rig_join_twice(r, 10000, 60000, "range");
	struct call *a = again(c[0]);
	for (int i = 0; i < 4; i++) {
		rig_pass(r, 1000);
		rig_join_twice(r, 10000, 60000, "range");
	}
	rig_pass(r, 999);
	cr_expect(!a->answered && !first->answered);
	rig_pass(r, 1);
	cr_expect_eq(a->error, 0);
	cr_expect_eq(a->len, 6);
}

Test(window, the_join_phase_bounds_it_too)
{
	struct call *c[1];
	rig_stable(r, c, 1);
	r->unchecked = true; /* what comes next is not in the log */
	member_set_timeouts(member_find(rig_group(r), bytes_str(c[0]->id)), 10000, 1000);
	struct call *n = rig_join_twice(r, 10000, 1000, "range");
	struct call *a = rig_join(r, 9, c[0]->id, NULL, 10000, 1000, "range");
	rig_pass(r, 999);
	cr_expect(!a->answered);
	rig_pass(r, 1);
	cr_expect_eq(a->error, 0);
	cr_expect_eq(n->error, 0);
}

Test(window, nobody_waits_where_nobody_came_or_went)
{
	struct call *c[2];
	rig_stable(r, c, 2);
	struct call *a = again(c[0]), *b = again(c[1]);
	cr_expect_eq(a->error, 0);
	cr_expect_eq(b->error, 0);
}

Test(window, the_late_are_not_waited_for_again)
{
	struct call *c[2];
	rig_stable(r, c, 2);
	struct call *n = rig_join_twice(r, 10000, 60000, "range");
	struct call *a = again(c[0]);
	for (int i = 0; i < 10; i++) {
		rig_pass(r, 6000);
		rig_heartbeat(r, c[1]->id, NULL, 1);
	}
	cr_expect_eq(a->error, 0, "the rebalance timeout is over");
	cr_expect_eq(n->error, 0);
}

Test(window, a_lost_connection_within_it_is_waited_for)
{
	struct call *c[2];
	rig_stable(r, c, 2);
	struct call *n = rig_join_twice(r, 10000, 60000, "range");
	struct call *a = again(c[0]), *b = again(c[1]);
	rig_drop(b);
	rig_pass(r, 3000);
	cr_expect(!a->answered && !n->answered);
	b = again(c[1]);
	cr_expect_eq(b->error, 0);
	cr_expect_eq(a->error, 0);
	cr_expect_eq(a->len, 3);
}

Test(window, who_expires_within_it_does_not_end_it)
{
	struct call *c[2];
	r->settings.group_join_window_ms = r->settings.group_join_window_max_ms = 30000;
	rig_stable(r, c, 2);
	struct call *n = rig_join_twice(r, 10000, 60000, "range");
	struct call *a = again(c[0]), *b = again(c[1]);
	rig_drop(b);
	rig_pass(r, 10000);
	cr_expect_eq(rig_group(r)->members_len, 2);
	cr_expect(!a->answered);
	rig_pass(r, 20000);
	cr_expect_eq(a->error, 0);
	cr_expect_eq(n->error, 0);
	cr_expect_eq(r->stats.group_rebalances, 2);
}

Test(window, everybody_leaves_within_it)
{
	struct call *c[2];
	rig_stable(r, c, 2);
	rig_leave(r, 1, c[1]->id);
	struct call *a = again(c[0]);
	rig_leave(r, 1, c[0]->id);
	cr_expect_eq(a->error, 25);
	rig_pass(r, 2000);
	cr_expect_str_eq(rig_state(r), "Empty");
}
