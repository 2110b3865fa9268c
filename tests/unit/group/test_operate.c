/* test_operate.c - what an administrator can do to a group with members: release an instance id, reset offsets. */
#include <criterion/criterion.h>

#include "coordinator/admin.h"
#include "rig.h"

static struct rig *r;
static struct admin asked;
static int answers, items;

static void setup(void)
{
	r = rig_new();
	answers = items = 0;
}

static void teardown(void)
{
	rig_free(r);
}

TestSuite(operate, .init = setup, .fini = teardown);

static void hear(struct admin *a, const struct admin_item *item)
{
	items++;
}

static void done(struct admin *a, struct now now)
{
	answers++;
}

static void release(const char *group, const char *instance)
{
	asked = (struct admin){.op = ADMIN_RELEASE, .group_id = bytes_str(group), .member_id = BYTES_NULL, .instance_id = bytes_str(instance),
			       .item = hear, .done = done};
	shard_admin(r->shard, &asked, r->now);
}

static void reset(const char *group, int64_t offset)
{
	struct admin_offset list[] = {
		{BYTES_LITERAL("t"), 0, offset, -1, BYTES_NULL},
		{BYTES_LITERAL("t"), 1, offset + 1, -1, BYTES_LITERAL("why")},
	};
	asked = (struct admin){.op = ADMIN_RESET_OFFSETS, .group_id = bytes_str(group), .member_id = BYTES_NULL, .instance_id = BYTES_NULL,
			       .offsets = list, .offsets_len = ARRAY_LEN(list), .item = hear, .done = done};
	shard_admin(r->shard, &asked, r->now);
}

/* A static and a dynamic member, Stable in generation 1; the dynamic one leads. */
static void two(struct call **dynamic, struct call **fixed)
{
	struct call *c[2];
	c[0] = rig_join_twice(r, 30000, 60000, "range");
	c[1] = rig_join(r, 5, "", "i1", 30000, 60000, "range");
	rig_pass(r, 6000);
	rig_sync_all(r, c, 2, 1);
	cr_assert_str_eq(rig_state(r), "Stable");
	*dynamic = c[0];
	*fixed = c[1];
}

/* ---- release ---- */

Test(operate, a_released_member_is_gone_and_its_client_fenced)
{
	struct call *a, *b;
	two(&a, &b);
	release("g", "i1");
	cr_expect_eq(answers, 0, "not before it is durable");
	cr_expect_eq(rig_group(r)->members_len, 1);
	cr_expect_eq(rig_heartbeat(r, b->id, "i1", 1)->error, 82);
	cr_expect_eq(rig_sync(r, 3, b->id, "i1", 1, "")->error, 82);
	cr_expect_eq(rig_commit(r, 8, b->id, "i1", 1, "t:0=5")->codes[0], 82);
	cr_expect_eq(rig_join(r, 5, b->id, "i1", 30000, 60000, "range")->error, 82);
	cr_expect_eq(rig_heartbeat(r, "another", "i1", 1)->error, 25);
	rig_settle(r);
	cr_assert_eq(answers, 1);
	cr_expect_eq(asked.error, 0);
	cr_expect_eq(rig_heartbeat(r, a->id, NULL, 1)->error, 27);
	struct call *n = rig_join(r, 5, "", "i1", 30000, 60000, "range");
	struct call *again = rig_join(r, 9, a->id, NULL, 30000, 60000, "range");
	cr_expect_eq(n->error, 0, "somebody else may take the instance id");
	cr_expect_eq(again->error, 0);
	cr_expect_eq(rig_heartbeat(r, b->id, "i1", 2)->error, 82);
	cr_expect_eq(rig_heartbeat(r, n->id, "i1", 2)->error, 0);
}

Test(operate, a_released_member_does_not_come_back_with_a_restart)
{
	struct call *a, *b;
	two(&a, &b);
	release("g", "i1");
	rig_settle(r);
	cr_assert_eq(answers, 1);
	rig_reload(r);
	cr_expect_str_eq(rig_state(r), "Stable");
	cr_expect_eq(rig_group(r)->members_len, 1);
	cr_expect_eq(rig_heartbeat(r, a->id, NULL, 1)->error, 0);
	cr_expect_eq(rig_heartbeat(r, b->id, "i1", 1)->error, 25);
}

Test(operate, the_last_member_is_released)
{
	struct call *a = rig_join(r, 5, "", "i1", 30000, 60000, "range");
	rig_pass(r, 3000);
	rig_sync_all(r, &a, 1, 1);
	release("g", "i1");
	rig_settle(r);
	cr_expect_eq(answers, 1);
	cr_expect_str_eq(rig_state(r), "Empty");
	cr_expect_eq(rig_heartbeat(r, a->id, "i1", 1)->error, 82);
}

Test(operate, what_a_released_member_has_parked_is_answered)
{
	struct call *a, *b;
	two(&a, &b);
	struct call *parked = rig_join(r, 5, b->id, "i1", 30000, 60000, "range,x");
	cr_assert(!parked->answered);
	release("g", "i1");
	cr_expect_eq(parked->error, 82);
	cr_expect_str_eq(parked->id, "");
	rig_settle(r);
	cr_expect_eq(answers, 1);
}

Test(operate, a_parked_sync_of_a_released_member_is_answered)
{
	struct call *a = rig_join_twice(r, 30000, 60000, "range");
	struct call *b = rig_join(r, 5, "", "i1", 30000, 60000, "range");
	rig_pass(r, 6000);
	cr_assert_eq(b->error, 0);
	struct call *sync = rig_sync(r, 3, b->id, "i1", 1, "");
	release("g", "i1");
	cr_expect_eq(sync->error, 82);
	cr_expect_str_eq(rig_state(r), "PreparingRebalance");
	cr_expect_eq(rig_heartbeat(r, a->id, NULL, 1)->error, 27);
}

Test(operate, nothing_to_release)
{
	struct call *a, *b;
	release("g", "i1");
	cr_expect_eq(asked.error, 69);
	two(&a, &b);
	release("g", "i2");
	cr_expect_eq(asked.error, 25);
	cr_expect_eq(answers, 2);
	cr_expect_eq(rig_heartbeat(r, b->id, "i1", 1)->error, 0);
}

Test(operate, a_release_that_is_not_stored_says_so)
{
	struct call *a, *b;
	two(&a, &b);
	rig_log_fail(r, 56);
	release("g", "i1");
	rig_log_fail(r, 0);
	cr_expect_eq(answers, 1);
	cr_expect_eq(asked.error, 16);
	cr_expect_not_null(strstr(asked.text, "brings the member back"));
	cr_expect_eq(rig_heartbeat(r, b->id, "i1", 1)->error, 82);
}

Test(operate, fences_are_bounded)
{
	char first[RIG_TEXT] = "", last[RIG_TEXT] = "";
	char instance[8];
	struct call *keep = rig_join(r, 5, "", "keep", 30000, 60000, "range");
	for (int i = 0; i < 20; i++) {
		snprintf(instance, sizeof(instance), "i%d", i);
		rig_join(r, 5, "", instance, 30000, 60000, "range");
		const struct member *m = member_find_instance(rig_group(r), bytes_str(instance));
		snprintf(i == 0 ? first : last, RIG_TEXT, "%.*s", m->id.len, (const char *)m->id.p);
		release("g", instance);
	}
	cr_expect_eq(rig_group(r)->released_len, 16);
	cr_expect_eq(rig_heartbeat(r, first, "i0", 0)->error, 25);
	cr_expect_eq(rig_heartbeat(r, last, "i19", 0)->error, 82);
	cr_expect(!keep->answered);
}

/* ---- reset ---- */

Test(operate, offsets_are_reset_under_members_that_can_not_commit_any_more)
{
	struct call *a, *b;
	two(&a, &b);
	rig_commit(r, 8, a->id, NULL, 1, "t:0=500");
	rig_settle(r);
	rig_log_hold(r, true);
	struct call *before = rig_commit(r, 8, a->id, NULL, 1, "t:1=600"); /* on its way when the reset comes */
	reset("g", 10);
	cr_expect_eq(items, 2);
	cr_expect_eq(answers, 0);
	cr_expect_eq(rig_commit(r, 8, a->id, NULL, 1, "t:0=501")->codes[0], 22);
	cr_expect_eq(rig_commit(r, 8, b->id, "i1", 1, "t:0=502")->codes[0], 22);
	cr_expect_eq(rig_commit(r, 8, "", NULL, -1, "t:0=503")->codes[0], 25);
	cr_expect_eq(rig_heartbeat(r, a->id, NULL, 1)->error, 22);
	struct call *ja = rig_join(r, 9, a->id, NULL, 30000, 60000, "range");
	struct call *jb = rig_join(r, 9, b->id, "i1", 30000, 60000, "range");
	cr_expect_eq(ja->error, 0);
	cr_expect_eq(jb->generation, 3);
	cr_expect_eq(rig_commit(r, 8, a->id, NULL, 1, "t:0=504")->codes[0], 22);
	cr_expect_eq(rig_commit(r, 8, a->id, NULL, 2, "t:0=505")->codes[0], 22, "the fence's own generation is nobody's");
	cr_expect_eq(answers, 0);
	rig_log_hold(r, false);
	rig_settle(r);
	cr_expect_eq(answers, 1);
	cr_expect_eq(asked.error, 0);
	cr_expect_eq(before->codes[0], 0);
	cr_expect_eq(rig_offset(r, "t", 0), 10);
	cr_expect_eq(rig_offset(r, "t", 1), 11);
	rig_sync_all(r, (struct call *[]){ja, jb}, 2, 3);
	cr_expect_eq(rig_commit(r, 8, ja->id, NULL, 3, "t:0=12")->codes[0], 0);
}

Test(operate, the_fence_outlives_a_restart)
{
	struct call *a, *b;
	two(&a, &b);
	reset("g", 10);
	rig_settle(r);
	cr_assert_eq(answers, 1);
	rig_reload(r);
	cr_expect_eq(rig_offset(r, "t", 0), 10);
	cr_expect_eq(rig_commit(r, 8, a->id, NULL, 1, "t:0=500")->codes[0], 22);
	cr_expect_eq(rig_heartbeat(r, a->id, NULL, 1)->error, 22);
	cr_expect_eq(rig_group(r)->generation, 2);
}

Test(operate, a_reset_during_a_rebalance)
{
	struct call *a, *b;
	two(&a, &b);
	struct call *ja = rig_join(r, 9, a->id, NULL, 30000, 60000, "range");
	reset("g", 10);
	cr_expect_eq(rig_commit(r, 8, b->id, "i1", 1, "t:0=500")->codes[0], 22, "a rebalance alone would take it");
	struct call *jb = rig_join(r, 9, b->id, "i1", 30000, 60000, "range");
	cr_expect_eq(ja->generation, 3);
	rig_sync(r, 5, ja->id, NULL, 3, "");
	reset("g", 20); /* while the assignment is awaited, or on its way */
	rig_settle(r);
	cr_expect_eq(answers, 2);
	cr_expect_eq(rig_offset(r, "t", 0), 20);
	cr_expect_str_eq(rig_state(r), "PreparingRebalance");
	cr_expect_eq(rig_commit(r, 8, jb->id, "i1", 3, "t:0=500")->codes[0], 22);
}

Test(operate, a_reset_of_a_group_without_members)
{
	rig_commit_full(r, "g", 8, "", NULL, -1, "t:0=5", -1, -1);
	rig_settle(r);
	reset("g", 10);
	rig_settle(r);
	cr_expect_eq(asked.error, 0);
	cr_expect_eq(rig_offset(r, "t", 1), 11);
	cr_expect_str_eq(rig_state(r), "Empty");
	cr_expect_eq(rig_group(r)->generation, 0);
	reset("h", 10);
	cr_expect_eq(asked.error, 69);
}

Test(operate, a_reset_that_the_log_refuses_changes_nothing)
{
	struct call *a, *b;
	two(&a, &b);
	rig_log_fail(r, 56);
	reset("g", 10);
	rig_log_fail(r, 0);
	cr_expect_eq(answers, 1);
	cr_expect_eq(asked.error, 16);
	cr_expect_not_null(strstr(asked.text, "nothing is changed"));
	cr_expect_str_eq(rig_state(r), "Stable");
	cr_expect_eq(rig_commit(r, 8, a->id, NULL, 1, "t:0=500")->codes[0], 0);
}

Test(operate, a_reset_that_makes_no_sense)
{
	struct call *a, *b;
	struct admin_offset bad = {BYTES_EMPTY, 0, 1, -1, BYTES_NULL};
	two(&a, &b);
	asked = (struct admin){.op = ADMIN_RESET_OFFSETS, .group_id = BYTES_LITERAL("g"), .item = hear, .done = done};
	shard_admin(r->shard, &asked, r->now);
	cr_expect_eq(asked.error, 42);
	asked.offsets = &bad;
	asked.offsets_len = 1;
	shard_admin(r->shard, &asked, r->now);
	cr_expect_eq(asked.error, 42);
	cr_expect_eq(rig_heartbeat(r, a->id, NULL, 1)->error, 0);
}

Test(operate, an_asker_that_is_gone_is_not_answered)
{
	struct call *a, *b;
	two(&a, &b);
	rig_log_hold(r, true);
	release("g", "i1");
	shard_admin_cancel(r->shard, &asked);
	rig_log_hold(r, false);
	rig_settle(r);
	cr_expect_eq(answers, 0);
	cr_expect_eq(rig_group(r)->members_len, 1);
}

Test(operate, a_log_that_breaks_is_told)
{
	struct call *a, *b;
	two(&a, &b);
	rig_log_hold(r, true);
	reset("g", 10);
	rig_log_break(r, 56);
	rig_settle(r);
	cr_expect_eq(answers, 1);
	cr_expect_neq(asked.error, 0);
}
