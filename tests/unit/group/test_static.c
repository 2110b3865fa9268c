/* test_static.c - static membership (group-protocol 1.9). */
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

TestSuite(static_member, .init = setup, .fini = teardown);

/* a (instance ia) leads, b (instance ib) follows, Stable in generation 1. */
static void stable(struct call **a, struct call **b)
{
	char list[512];
	*a = rig_join(r, 9, "", "ia", 10000, 60000, "range");
	*b = rig_join(r, 9, "", "ib", 10000, 60000, "range");
	rig_pass(r, 6000);
	cr_assert_str_eq((*a)->leader, (*a)->id);
	snprintf(list, sizeof(list), "%s=A,%s=B", (*a)->id, (*b)->id);
	rig_sync(r, 5, (*b)->id, "ib", 1, "");
	rig_sync(r, 5, (*a)->id, "ia", 1, list);
	rig_settle(r);
	cr_assert_str_eq(rig_state(r), "Stable");
}

Test(static_member, joins_without_asking_back)
{
	struct call *c = rig_join(r, 9, "", "inst", 10000, 60000, "range");
	cr_expect(!c->answered);
	rig_pass(r, 3000);
	cr_expect_eq(c->error, 0);
	cr_expect_eq(strncmp(c->id, "inst-", 5), 0);
	cr_expect_eq(strlen(c->id), 5 + 36);
	cr_expect_str_eq(c->list[0].instance, "inst");
}

/* Found by the differential test: the vote is tied between what is in use and what the leader now likes better. */
Test(static_member, a_tied_vote_keeps_the_protocol_in_use)
{
	char list[512];
	struct call *a = rig_join(r, 9, "", "ia", 10000, 60000, "range,sticky");
	struct call *b = rig_join(r, 9, "", "ib", 10000, 60000, "range,sticky");
	rig_pass(r, 6000);
	snprintf(list, sizeof(list), "%s=A,%s=B", a->id, b->id);
	rig_sync(r, 5, b->id, "ib", 1, "");
	rig_sync_as(r, "g", 5, a->id, "ia", 1, "consumer", "range", list);
	rig_settle(r);
	struct call *back = rig_join(r, 9, "", "ia", 10000, 60000, "sticky,range");
	rig_settle(r);
	cr_assert(back->answered);
	cr_expect_eq(back->error, 0);
	cr_expect_eq(back->generation, 1);
	cr_expect_str_eq(back->protocol, "range");
	cr_expect_str_eq(rig_state(r), "Stable");
}

Test(static_member, identity)
{
	struct call *a, *b;
	stable(&a, &b);
	cr_expect_eq(rig_heartbeat(r, a->id, "ia", 1)->error, 0);
	cr_expect_eq(rig_heartbeat(r, a->id, NULL, 1)->error, 0); /* the member id alone will do */
	cr_expect_eq(rig_heartbeat(r, a->id, "ib", 1)->error, 82);
	cr_expect_eq(rig_heartbeat(r, a->id, "ic", 1)->error, 25);
	cr_expect_eq(rig_sync(r, 5, "other", "ia", 1, "")->error, 82);
	cr_expect_eq(rig_commit(r, 8, "other", "ia", 1, "t:0=1")->error, 82);
}

Test(static_member, restart_of_a_follower_in_stable)
{
	struct call *a, *b;
	stable(&a, &b);
	unsigned int records = rig_log_records(r);
	rig_log_hold(r, true);
	struct call *n = rig_join(r, 9, "", "ib", 12000, 60000, "range");
	rig_settle(r);
	cr_expect(!n->answered); /* not before the new id is durable */
	cr_expect_eq(rig_log_records(r), records + 1);
	cr_expect_str_eq(rig_state(r), "Stable");
	rig_log_hold(r, false);
	rig_settle(r);
	cr_expect_eq(n->error, 0);
	cr_expect_str_neq(n->id, b->id);
	cr_expect_eq(n->generation, 1);
	cr_expect_str_eq(n->leader, a->id);
	cr_expect_not(n->skip);
	cr_expect_eq(n->len, 0);
	cr_expect_eq(rig_heartbeat(r, b->id, "ib", 1)->error, 82);
	cr_expect_eq(rig_heartbeat(r, b->id, NULL, 1)->error, 25);
	cr_expect_eq(rig_heartbeat(r, n->id, "ib", 1)->error, 0);
	cr_expect_str_eq(rig_sync(r, 5, n->id, "ib", 1, "")->assignment, "B");
	cr_expect_eq(member_find(rig_group(r), bytes_str(n->id))->session_timeout_ms, 12000);
	cr_expect_eq(r->stats.group_rebalances, 1);
}

Test(static_member, restart_of_the_leader_in_stable)
{
	struct call *a, *b;
	stable(&a, &b);
	struct call *n = rig_join(r, 9, "", "ia", 10000, 60000, "range");
	rig_settle(r);
	cr_expect_eq(n->error, 0);
	cr_expect(n->skip);
	cr_expect_str_eq(n->leader, n->id);
	cr_expect_eq(n->len, 2);
	/* an older version must take itself for a follower */
	struct call *o = rig_join(r, 8, "", "ia", 10000, 60000, "range");
	rig_settle(r);
	cr_expect_eq(o->error, 0);
	cr_expect_not(o->skip);
	cr_expect_str_eq(o->leader, n->id);
	cr_expect_str_neq(o->id, n->id);
	cr_expect_eq(o->len, 0);
	cr_expect_str_eq(rig_sync(r, 5, o->id, "ia", 1, "")->assignment, "A");
	cr_expect_eq(r->stats.group_rebalances, 1);
}

Test(static_member, two_restarts_in_flight)
{
	struct call *a, *b;
	stable(&a, &b);
	rig_log_hold(r, true);
	struct call *x = rig_join(r, 9, "", "ia", 10000, 60000, "range");
	struct call *y = rig_join(r, 9, "", "ib", 10000, 60000, "range");
	struct call *z = rig_join(r, 9, "", "ib", 10000, 60000, "range");
	rig_log_hold(r, false);
	rig_settle(r);
	cr_expect_eq(x->error, 0);
	cr_expect_eq(y->error, 82); /* replaced before it was told its id */
	cr_expect_eq(z->error, 0);
	cr_expect_eq(rig_heartbeat(r, x->id, "ia", 1)->error, 0);
	cr_expect_eq(rig_heartbeat(r, z->id, "ib", 1)->error, 0);
}

Test(static_member, failed_write_of_a_replacement)
{
	struct call *a, *b;
	stable(&a, &b);
	rig_log_fail(r, 3);
	struct call *n = rig_join(r, 9, "", "ia", 12000, 70000, "range=new,extra");
	rig_log_fail(r, 0);
	cr_expect_eq(n->error, 15);
	cr_expect_str_eq(n->id, "");
	cr_expect_eq(rig_heartbeat(r, a->id, "ia", 1)->error, 0); /* as if nothing had happened */
	const struct member *m = member_find(rig_group(r), bytes_str(a->id));
	cr_expect_eq(m->session_timeout_ms, 10000);
	cr_expect_eq(m->rebalance_timeout_ms, 60000);
	cr_expect_eq(m->offers->len, 1);
	cr_expect(bytes_equal(member_metadata(m), BYTES_LITERAL("sub")));
	cr_expect_eq(r->shard->protocols.count, 1);
}

Test(static_member, replacement_that_changes_the_winner)
{
	struct call *a = rig_join(r, 9, "", "ia", 10000, 60000, "range,sticky");
	char list[512];
	rig_pass(r, 6000);
	cr_assert_str_eq(a->protocol, "range");
	snprintf(list, sizeof(list), "%s=A", a->id);
	rig_sync(r, 5, a->id, "ia", 1, list);
	rig_settle(r);
	struct call *n = rig_join(r, 9, "", "ia", 10000, 60000, "sticky,range");
	rig_settle(r);
	cr_expect_eq(n->error, 0);
	cr_expect_eq(n->generation, 2);
	cr_expect_str_eq(n->protocol, "sticky");
	cr_expect_str_eq(rig_state(r), "CompletingRebalance");
}

Test(static_member, dropped_while_its_replacement_is_written)
{
	struct call *a, *b;
	stable(&a, &b);
	rig_log_hold(r, true);
	struct call *n = rig_join(r, 9, "", "ib", 10000, 60000, "range");
	rig_drop(n);
	rig_log_hold(r, false);
	rig_settle(r);
	cr_expect_eq(rig_group(r)->members_len, 2);
	struct call *o = rig_join(r, 9, "", "ib", 10000, 60000, "range");
	rig_settle(r);
	cr_expect_eq(o->error, 0);
}

Test(static_member, absent_is_spared_by_the_join_timer_and_not_by_the_sync_timer)
{
	struct call *a = rig_join(r, 9, "", "ia", 10000, 60000, "range");
	struct call *b = rig_join(r, 9, "", "ib", 1000000, 60000, "range");
	char list[512];
	rig_pass(r, 6000);
	snprintf(list, sizeof(list), "%s=A,%s=B", a->id, b->id);
	rig_sync(r, 5, b->id, "ib", 1, "");
	rig_sync(r, 5, a->id, "ia", 1, list);
	rig_settle(r);
	struct call *again = rig_join(r, 9, a->id, "ia", 10000, 60000, "range"); /* the leader rejoins, b does not */
	rig_pass(r, 59999);
	cr_expect(!again->answered);
	rig_pass(r, 1);
	cr_expect_eq(again->error, 0);
	cr_expect_eq(again->generation, 2);
	cr_expect_eq(again->len, 2);
	rig_sync(r, 5, a->id, "ia", 2, list);
	rig_settle(r);
	cr_expect_str_eq(rig_state(r), "Stable");
	for (int i = 0; i < 11; i++) {
		rig_pass(r, 5000);
		cr_expect_eq(rig_heartbeat(r, a->id, "ia", 2)->error, 0);
	}
	rig_pass(r, 5000);
	cr_expect_eq(rig_heartbeat(r, a->id, "ia", 2)->error, 27);
	cr_expect_eq(rig_group(r)->members_len, 1);
	cr_expect_eq(rig_heartbeat(r, b->id, "ib", 2)->error, 25);
}

Test(static_member, only_absent_ones_make_no_generation)
{
	struct call *s = rig_join(r, 9, "", "is", 100000, 20000, "range");
	struct call *d = rig_join_twice(r, 100000, 20000, "range");
	rig_pass(r, 6000);
	cr_assert_eq(s->error, 0);
	cr_assert_eq(d->error, 0);
	rig_leave(r, 2, d->id);
	cr_assert_str_eq(rig_state(r), "PreparingRebalance");
	rig_pass(r, 50000); /* two join time-outs and a half */
	cr_expect_str_eq(rig_state(r), "PreparingRebalance");
	cr_expect_eq(rig_group(r)->generation, 1);
	cr_expect_eq(rig_group(r)->members_len, 1);
	rig_pass(r, 60000); /* its session ends: an empty generation */
	cr_expect_str_eq(rig_state(r), "Empty");
	cr_expect_eq(rig_group(r)->generation, 2);
}

Test(static_member, full_group_lets_a_known_instance_back_in)
{
	struct call *a, *b;
	r->settings.group_max_size = 2;
	stable(&a, &b);
	cr_expect_eq(rig_join(r, 9, "", "ic", 10000, 60000, "range")->error, 81);
	struct call *n = rig_join(r, 9, "", "ib", 10000, 60000, "range");
	rig_settle(r);
	cr_expect_eq(n->error, 0);
}

Test(static_member, an_absent_leader_hands_over)
{
	struct call *s = rig_join(r, 9, "", "is", 1000000, 20000, "range");
	struct call *d = rig_join_twice(r, 60000, 20000, "range");
	rig_pass(r, 6000);
	cr_assert_str_eq(d->leader, s->id);
	struct call *again = rig_join(r, 9, d->id, NULL, 60000, 20000, "range=new");
	rig_pass(r, 20000);
	cr_expect_eq(again->error, 0);
	cr_expect_str_eq(again->leader, d->id); /* the one that is there */
	cr_expect_eq(again->len, 2);
}

Test(static_member, a_replaced_new_member_is_no_ghost)
{
	struct call *x = rig_join(r, 9, "", "ia", 10000, 60000, "range");
	struct call *y = rig_join(r, 9, "", "ia", 10000, 60000, "range");
	cr_expect_eq(x->error, 82);
	rig_drop(y); /* its instance id is known: it may come back until its session ends */
	cr_expect_eq(rig_group(r)->members_len, 1);
	struct call *z = rig_join(r, 9, "", "ia", 10000, 60000, "range");
	rig_pass(r, 6000);
	cr_expect_eq(z->error, 0);
}

Test(static_member, a_rebalance_begins_while_a_replacement_is_written)
{
	struct call *a, *b;
	stable(&a, &b);
	rig_log_hold(r, true);
	struct call *n = rig_join(r, 5, "", "ib", 10000, 60000, "range");
	rig_leave_many(r, "g", a->id); /* the leader: its generation is over */
	cr_expect_str_eq(rig_state(r), "PreparingRebalance");
	rig_log_hold(r, false);
	rig_settle(r);
	cr_expect_eq(n->error, 27);
	cr_expect_eq(n->generation, -1);
	struct call *again = rig_join(r, 5, "", "ib", 10000, 60000, "range");
	rig_settle(r);
	cr_expect_eq(again->error, 0);
	cr_expect_eq(again->generation, 2);
	cr_expect_str_eq(again->leader, again->id);
}
