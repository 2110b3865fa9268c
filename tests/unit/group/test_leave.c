/* test_leave.c - LeaveGroup (group-protocol 1.8). */
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

TestSuite(leave, .init = setup, .fini = teardown);

Test(leave, top_level)
{
	struct call *c[1];
	cr_expect_eq(rig_leave_many(r, "", "x")->error, 24);
	struct call *l = rig_leave_many(r, "unknown", "x,y|i");
	cr_expect_eq(l->error, 0);
	cr_expect_eq(l->len, 2);
	cr_expect_eq(l->codes[0], 25);
	cr_expect_eq(l->codes[1], 25);
	cr_expect_str_eq(l->list[1].id, "y");
	cr_expect_str_eq(l->list[1].instance, "i");
	cr_expect_eq(rig_leave(r, 2, "x")->error, 25); /* the old form has one code only */
	rig_stable(r, c, 1);
	shard_stop(r->shard, r->now);
	cr_expect_eq(rig_leave_many(r, "g", c[0]->id)->error, 15);
}

Test(leave, versions_0_to_2)
{
	struct call *c[2];
	rig_stable(r, c, 2);
	cr_expect_eq(rig_leave(r, 0, "stranger")->error, 25);
	cr_expect_str_eq(rig_state(r), "Stable");
	cr_expect_eq(rig_leave(r, 1, c[1]->id)->error, 0);
	cr_expect_str_eq(rig_state(r), "PreparingRebalance");
	cr_expect_eq(rig_heartbeat(r, c[1]->id, NULL, 1)->error, 25);
	cr_expect_eq(r->stats.group_leaves, 1);
}

Test(leave, many_at_once)
{
	struct call *c[3];
	char list[512];
	rig_stable(r, c, 3);
	struct call *s = rig_join(r, 5, "", "inst", 10000, 60000, "range");
	for (int i = 0; i < 3; i++)
		rig_join(r, 9, c[i]->id, NULL, 10000, 60000, "range");
	cr_assert_eq(s->generation, 2);
	snprintf(list, sizeof(list), "%s,%s,|inst,|nobody,%s|inst,stranger", c[1]->id, c[1]->id, c[2]->id);
	struct call *l = rig_leave_many(r, "g", list);
	cr_expect_eq(l->error, 0);
	cr_expect_eq(l->codes[0], 0);
	cr_expect_eq(l->codes[1], 25); /* named twice */
	cr_expect_eq(l->codes[2], 0);  /* by instance id alone */
	cr_expect_eq(l->codes[3], 25);
	cr_expect_eq(l->codes[4], 25); /* the instance id is not mapped any more */
	cr_expect_eq(l->codes[5], 25);
	cr_expect_str_eq(l->list[2].instance, "inst");
	cr_expect_eq(rig_group(r)->members_len, 2);
	cr_expect_str_eq(rig_state(r), "PreparingRebalance");
}

Test(leave, fenced)
{
	struct call *s = rig_join(r, 5, "", "inst", 10000, 60000, "range");
	struct call *d = rig_join(r, 3, "", NULL, 10000, 60000, "range");
	char list[512];
	rig_pass(r, 6000);
	cr_assert_eq(d->error, 0);
	snprintf(list, sizeof(list), "%s|inst", d->id);
	cr_expect_eq(rig_leave_many(r, "g", list)->codes[0], 82);
	cr_expect_eq(rig_group(r)->members_len, 2);
	cr_expect_eq(s->error, 0);
}

Test(leave, nobody_is_left_but_an_id_that_was_handed_out)
{
	struct call *joins[1];
	rig_stable(r, joins, 1);
	struct call *asked = rig_join(r, 4, "", NULL, 10000, 60000, "range");
	cr_assert_eq(asked->error, 79);
	rig_leave(r, 1, joins[0]->id);
	cr_expect_str_eq(rig_state(r), "Empty", "before any time passes");
	cr_expect_eq(rig_group(r)->generation, 2);
	struct call *back = rig_join(r, 4, asked->id, NULL, 10000, 60000, "range");
	rig_pass(r, 2900);
	cr_expect(!back->answered, "the initial delay runs");
	rig_pass(r, 200);
	cr_expect_eq(back->generation, 3);
}

Test(leave, pending_id)
{
	struct call *c[1];
	rig_stable(r, c, 1);
	struct call *p = rig_join(r, 4, "", NULL, 10000, 60000, "range");
	cr_expect_eq(rig_leave(r, 1, p->id)->error, 0);
	cr_expect_eq(rig_group(r)->pending_len, 0);
	cr_expect_str_eq(rig_state(r), "Stable"); /* it never was a member */
	cr_expect_eq(rig_leave(r, 1, p->id)->error, 25);
	cr_expect_eq(rig_join(r, 4, p->id, NULL, 10000, 60000, "range")->error, 25);
}

Test(leave, leader_and_last_member)
{
	struct call *c[2];
	rig_stable(r, c, 2);
	rig_leave(r, 2, c[0]->id);
	struct call *again = rig_join(r, 9, c[1]->id, NULL, 10000, 60000, "range");
	cr_expect_eq(again->generation, 2);
	cr_expect_str_eq(again->leader, c[1]->id);
	cr_expect_eq(again->len, 1);
	unsigned int records = rig_log_records(r);
	rig_leave(r, 2, c[1]->id); /* in CompletingRebalance */
	cr_expect_str_eq(rig_state(r), "Empty");
	cr_expect_eq(rig_group(r)->generation, 3);
	cr_expect_eq(rig_log_records(r), records + 1);
	rig_settle(r);
	struct record_group g;
	cr_assert(record_group_decode(&g, rig_log_entry(r, records).value));
	cr_expect_eq(g.generation, 3);
	cr_expect_eq(g.members_len, 0);
	cr_expect(bytes_equal(g.protocol_type, BYTES_LITERAL("consumer")));
	cr_expect(bytes_is_null(g.protocol));
}

Test(leave, parked_join_of_the_leaver)
{
	struct call *c[2];
	rig_stable(r, c, 2);
	struct call *again = rig_join(r, 9, c[0]->id, NULL, 10000, 60000, "range");
	rig_leave(r, 2, c[0]->id);
	cr_expect_eq(again->error, 25);
	cr_expect_str_eq(again->id, "");
}

Test(leave, within_the_initial_delay_waits_for_it)
{
	struct call *x = rig_join_twice(r, 10000, 60000, "range");
	struct call *y = rig_join(r, 3, "", NULL, 10000, 60000, "range");
	char id[RIG_TEXT];
	snprintf(id, sizeof(id), "%.*s", rig_group(r)->members[0]->id.len, (const char *)rig_group(r)->members[0]->id.p);
	rig_leave(r, 2, id);
	cr_expect_eq(x->error, 25);
	rig_pass(r, 2900);
	cr_expect(!y->answered);
	rig_pass(r, 3100);
	cr_expect_eq(y->error, 0);
	/* everybody leaves during the delay: empty when it is over */
	rig_leave(r, 2, y->id);
	struct call *z = rig_join(r, 3, "", NULL, 10000, 60000, "range");
	snprintf(id, sizeof(id), "%.*s", rig_group(r)->members[0]->id.len, (const char *)rig_group(r)->members[0]->id.p);
	rig_leave(r, 2, id);
	cr_expect_eq(z->error, 25);
	cr_expect_str_eq(rig_state(r), "PreparingRebalance");
	rig_pass(r, 3000);
	cr_expect_str_eq(rig_state(r), "Empty");
	cr_expect_eq(r->stats.group_members_now, 0);
}
