/* test_topics_gone.c - offsets of deleted topics go from every group, also those that were on their way (group-protocol 1.17). */
#include <criterion/criterion.h>
#include <stdio.h>

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

TestSuite(topics_gone, .init = setup, .fini = teardown);

static void gone(const char *first, const char *second)
{
	struct bytes names[] = {bytes_str(first), bytes_str(second)};
	cr_assert(shard_topics_changed(r->shard, names, second == NULL ? 1 : 2, NULL, 0, r->now));
}

static void made(const char *name)
{
	struct bytes names[] = {bytes_str(name)};
	cr_assert(shard_topics_changed(r->shard, NULL, 0, names, 1, r->now));
}

Test(topics_gone, of_every_group_whatever_its_state)
{
	struct call *join[1];
	rig_stable(r, join, 1);
	rig_commit(r, 9, join[0]->id, NULL, join[0]->generation, "old:0=1,old:1=2,new:0=3,older:7=4");
	rig_commit_full(r, "simple", 8, "", NULL, -1, "old:0=5", -1, -1);
	rig_settle(r);
	gone("old", "older");
	cr_expect_eq(rig_offset(r, "old", 0), 1);
	rig_pass(r, 2);
	cr_expect_eq(rig_offset(r, "old", 0), -999);
	cr_expect_eq(rig_offset(r, "old", 1), -999);
	cr_expect_eq(rig_offset(r, "older", 7), -999);
	cr_expect_eq(rig_offset(r, "new", 0), 3);
	struct offset_value v;
	cr_expect(!shard_offset_get(r->shard, BYTES_LITERAL("simple"), BYTES_LITERAL("old"), 0, &v));
	cr_expect_eq(r->stats.offset_topic_gone, 4);
	cr_expect_str_eq(rig_state(r), "Stable");
	rig_reload(r);
	cr_expect_eq(rig_offset(r, "old", 0), -999);
}

Test(topics_gone, commit_on_its_way)
{
	rig_commit(r, 8, "", NULL, -1, "new:0=1");
	rig_settle(r);
	rig_log_hold(r, true);
	rig_commit(r, 8, "", NULL, -1, "old:0=1");
	gone("old", NULL);
	rig_pass(r, 2);
	rig_log_hold(r, false);
	rig_pass(r, 2);
	cr_expect_eq(rig_offset(r, "old", 0), -999);
	cr_expect_eq(rig_offset(r, "new", 0), 1);
}

/* The group itself is on its way: it is made by the commit's record. */
Test(topics_gone, first_commit_of_a_group_on_its_way)
{
	rig_log_hold(r, true);
	rig_commit(r, 8, "", NULL, -1, "old:0=1");
	gone("old", NULL);
	rig_pass(r, 20);
	rig_log_hold(r, false);
	rig_pass(r, 2);
	cr_expect_eq(rig_offset(r, "old", 0), -999);
	cr_expect_eq(r->stats.offset_topic_gone, 1);
}

Test(topics_gone, log_that_refuses_is_asked_again)
{
	rig_commit(r, 8, "", NULL, -1, "old:0=1");
	rig_settle(r);
	rig_log_fail(r, 56);
	gone("old", NULL);
	rig_pass(r, 2500);
	cr_expect_eq(rig_offset(r, "old", 0), 1);
	cr_expect_leq(r->stats.log_append_failed, 3, "not too often");
	rig_log_fail(r, 0);
	rig_pass(r, 1000);
	cr_expect_eq(rig_offset(r, "old", 0), -999);
	rig_commit(r, 8, "", NULL, -1, "older:0=1");
	rig_settle(r);
	rig_log_fail(r, 10); /* too large now and for ever */
	gone("older", NULL);
	rig_pass(r, 5000);
	cr_expect_eq(r->shard->gone.len, 0);
}

Test(topics_gone, name_that_comes_back_in_time)
{
	rig_commit(r, 8, "", NULL, -1, "a:0=1,b:0=2");
	rig_settle(r);
	gone("a", "b");
	made("a");
	rig_pass(r, 2);
	cr_expect_eq(rig_offset(r, "a", 0), 1);
	cr_expect_eq(rig_offset(r, "b", 0), -999);
}

Test(topics_gone, nothing_changed)
{
	rig_commit(r, 8, "", NULL, -1, "a:0=1");
	rig_settle(r);
	uint64_t wish = shard_tick(r->shard, 100, r->now);
	made("b");
	cr_expect_eq(shard_tick(r->shard, 100, r->now), wish, "no walk");
	gone("c", NULL);
	rig_pass(r, 2);
	cr_expect_eq(rig_offset(r, "a", 0), 1);
	cr_expect_eq(r->stats.offset_topic_gone, 0);
}

Test(topics_gone, many_groups_in_slices_and_a_second_deletion_meanwhile)
{
	r->unchecked = true;
	for (int i = 0; i < 2000; i++) {
		char name[16];
		snprintf(name, sizeof(name), "g%d", i);
		rig_commit_full(r, name, 8, "", NULL, -1, "a:0=1,b:0=2,c:0=3", -1, -1);
	}
	rig_settle(r);
	gone("a", NULL);
	rig_pass(r, 2);
	cr_expect_gt(r->stats.offset_topic_gone, 0);
	cr_expect_lt(r->stats.offset_topic_gone, 1000);
	gone("b", NULL);
	rig_pass(r, 100);
	cr_expect_eq(r->stats.offset_topic_gone, 4000);
	cr_expect_eq(r->shard->offsets.count, 2000);
}
