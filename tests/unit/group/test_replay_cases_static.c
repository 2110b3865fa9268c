/* test_replay_cases_static.c - public bug reports replayed as sequences, by their number: static members (B30 to B36). */
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

TestSuite(cases, .init = setup, .fini = teardown);

Test(cases, b30_static_rejoin_while_completing)
{
	struct call *a = rig_join(r, 5, "", "a", 10000, 60000, "range");
	struct call *b = rig_join(r, 5, "", "b", 10000, 60000, "range");
	rig_pass(r, 6000);
	cr_assert_str_eq(a->leader, a->id);
	struct call *sync = rig_sync(r, 3, a->id, "a", 1, "");
	rig_settle(r);
	rig_join(r, 9, a->id, "a", 10000, 60000, "range");
	rig_join(r, 9, b->id, "b", 10000, 60000, "range");
	cr_expect_eq(sync->error, 0);
	cr_assert_str_eq(rig_state(r), "CompletingRebalance");
	struct call *old = rig_sync(r, 3, b->id, "b", 2, "");
	struct call *n = rig_join(r, 5, "", "b", 10000, 60000, "range");
	cr_expect_eq(old->error, 82);
	cr_expect(!n->answered);
	cr_expect_str_eq(rig_state(r), "PreparingRebalance");
	char list[512];
	snprintf(list, sizeof(list), "%s=A,%s=B", a->id, b->id);
	cr_expect_eq(rig_sync(r, 3, a->id, "a", 2, list)->error, 27);
	rig_join(r, 5, a->id, "a", 10000, 60000, "range");
	cr_expect_eq(n->error, 0);
	cr_expect_eq(n->generation, 3);
}

Test(cases, b31_two_unknown_joins_of_one_instance)
{
	struct call *x = rig_join(r, 5, "", "a", 10000, 60000, "range");
	struct call *y = rig_join(r, 5, "", "a", 10000, 60000, "range");
	cr_expect_eq(x->error, 82);
	cr_expect_eq(strncmp(x->id, "a-", 2), 0); /* the id that x would have had */
	cr_expect(!y->answered);
	cr_expect_eq(rig_group(r)->members_len, 1);
	rig_pass(r, 6000);
	cr_expect_eq(y->error, 0);
	cr_expect_str_neq(y->id, x->id);
	cr_expect_eq(rig_heartbeat(r, y->id, "a", 1)->error, 0);
}

Test(cases, b33_new_id_of_a_static_member_survives_a_failover)
{
	struct call *a = rig_join(r, 5, "", "a", 10000, 60000, "range");
	rig_pass(r, 3000);
	rig_sync(r, 3, a->id, "a", 1, "");
	rig_settle(r);
	struct call *n = rig_join(r, 5, "", "a", 10000, 60000, "range");
	rig_settle(r);
	cr_assert_eq(n->error, 0);
	rig_reload(r);
	cr_expect_eq(rig_heartbeat(r, n->id, "a", 1)->error, 0);
	cr_expect_eq(rig_heartbeat(r, a->id, "a", 1)->error, 82);
}

Test(cases, b36_abandoned_static_join)
{
	struct call *a = rig_join(r, 9, "", "a", 10000, 60000, "range");
	rig_pass(r, 3000);
	rig_sync(r, 3, a->id, "a", 1, "");
	rig_settle(r);
	struct call *x = rig_join(r, 9, "", "a", 10000, 60000, "other,range");
	rig_log_hold(r, true);
	struct call *dead = rig_join(r, 9, "", "a", 10000, 60000, "range");
	if (!dead->answered)
		rig_drop(dead);
	struct call *live = rig_join(r, 9, "", "a", 10000, 60000, "range");
	rig_log_hold(r, false);
	rig_pass(r, 1);
	cr_expect_eq(live->error, 0); /* never 82 for the one that is still there */
	cr_expect(x->answered);
	cr_expect_eq(rig_group(r)->members_len, 1);
}
