/* test_delete.c - DeleteGroups and OffsetDelete (group-protocol 1.14): who may delete what, the tombstones, and what is on its way meanwhile. */
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

TestSuite(delete, .init = setup, .fini = teardown);

#define G BYTES_LITERAL("g")

static int delete_group(void)
{
	return shard_delete_group(r->shard, G, r->now);
}

static int16_t code; /* of the partition */

/* One partition of "g". */
static int delete_offset(const char *topic, int32_t partition)
{
	struct offset_delete_request_partition p = {partition};
	struct offset_delete_request_topic t = {bytes_str(topic), &p, 1};
	struct offset_delete_request in = {G, &t, 1};
	code = 0;
	return shard_offset_delete(r->shard, &in, &code, r->now);
}

static bool is_tombstone(unsigned int i, enum record_kind kind)
{
	struct record_key key;
	struct log_entry e = rig_log_entry(r, i);
	return record_key_decode(&key, e.key) && key.kind == kind && bytes_equal(key.group, G) && bytes_is_null(e.value);
}

/* A Stable group whose members subscribe to "alpha" and "beta". */
static struct call *subscribed(void)
{
	struct call *joins[] = {rig_join_twice(r, 10000, 60000, "range=@alpha"), rig_join_twice(r, 10000, 60000, "range=@alpha+beta")};
	rig_pass(r, 9000);
	rig_sync_all(r, joins, 2, 1);
	rig_commit(r, 9, joins[0]->id, NULL, joins[0]->generation, "alpha:0=1,beta:0=1,gamma:0=1,gamma:1=2");
	rig_settle(r);
	return joins[0];
}

/* ---- DeleteGroups ---- */

Test(delete, group_that_does_not_exist)
{
	cr_expect_eq(shard_delete_group(r->shard, BYTES_NULL, r->now), 24);
	cr_expect_eq(delete_group(), 69);
	cr_expect_eq(shard_delete_group(r->shard, BYTES_EMPTY, r->now), 69, "the empty id is one like any other");
	cr_expect_eq(rig_log_records(r), 0);
}

Test(delete, group_with_members_stays_in_every_state)
{
	struct call *first = rig_join_twice(r, 10000, 60000, "range");
	cr_expect_eq(delete_group(), 68);
	rig_pass(r, 6000);
	cr_expect_str_eq(rig_state(r), "CompletingRebalance");
	cr_expect_eq(delete_group(), 68);
	rig_sync_all(r, &first, 1, first->generation);
	cr_expect_eq(delete_group(), 68);
	shard_stop(r->shard, r->now);
	cr_expect_eq(delete_group(), 15);
}

Test(delete, empty_group_goes_with_its_offsets_in_one_batch)
{
	struct call *join[1];
	rig_stable(r, join, 1);
	rig_commit(r, 9, join[0]->id, NULL, join[0]->generation, "t:0=1,t:1=2,u:0=3");
	rig_leave(r, 1, join[0]->id);
	rig_settle(r);
	cr_assert_str_eq(rig_state(r), "Empty");
	unsigned int before = rig_log_records(r);
	cr_expect_eq(delete_group(), 0);
	cr_expect_str_eq(rig_state(r), "Empty", "not before it is durable");
	cr_expect_eq(r->shard->writes.first, r->shard->writes.last, "one write");
	rig_settle(r);
	cr_expect_str_eq(rig_state(r), "none");
	cr_expect_eq(rig_offset(r, "t", 1), -999);
	cr_assert_eq(rig_log_records(r), before + 4);
	for (unsigned int i = 0; i < 3; i++)
		cr_expect(is_tombstone(before + i, RECORD_OFFSET));
	cr_expect(is_tombstone(before + 3, RECORD_GROUP));
	cr_expect_eq(r->stats.group_deleted, 1);
	cr_expect_eq(delete_group(), 69);
	rig_reload(r);
	cr_expect_str_eq(rig_state(r), "none");
}

Test(delete, group_that_never_committed)
{
	cr_assert_eq(rig_join(r, 9, "", NULL, 10000, 60000, "range")->error, 79);
	rig_settle(r);
	cr_expect_eq(delete_group(), 0);
	rig_settle(r);
	cr_expect_str_eq(rig_state(r), "none");
}

Test(delete, of_a_commit_that_is_still_on_its_way)
{
	rig_log_hold(r, true);
	rig_commit(r, 8, "", NULL, -1, "t:0=1,t:1=1");
	cr_expect_str_eq(rig_state(r), "none");
	cr_expect_eq(delete_group(), 0);
	cr_expect_eq(delete_group(), 69, "deleted already");
	rig_log_hold(r, false);
	rig_settle(r);
	cr_expect_eq(rig_offset(r, "t", 0), -999);
	cr_expect_eq(rig_offset(r, "t", 1), -999);
	cr_expect_str_eq(rig_state(r), "none");
}

Test(delete, commit_behind_it_makes_a_new_group)
{
	rig_commit(r, 8, "", NULL, -1, "t:0=1,t:1=1");
	rig_settle(r);
	rig_log_hold(r, true);
	cr_expect_eq(delete_group(), 0);
	rig_commit(r, 8, "", NULL, -1, "t:1=7");
	rig_log_hold(r, false);
	rig_settle(r);
	cr_expect_str_eq(rig_state(r), "Empty");
	cr_expect_eq(rig_offset(r, "t", 0), -999);
	cr_expect_eq(rig_offset(r, "t", 1), 7);
}

Test(delete, group_that_comes_to_life_meanwhile_stays)
{
	rig_commit(r, 8, "", NULL, -1, "t:0=1");
	rig_settle(r);
	rig_log_hold(r, true);
	cr_expect_eq(delete_group(), 0);
	struct call *join = rig_join(r, 3, "", NULL, 10000, 60000, "range");
	rig_log_hold(r, false);
	rig_settle(r);
	cr_expect_str_eq(rig_state(r), "PreparingRebalance");
	cr_expect_eq(rig_offset(r, "t", 0), -999);
	rig_pass(r, 6000);
	cr_assert(join->answered);
	rig_sync_as(r, "g", 2, join->id, NULL, join->generation, NULL, NULL, "");
	rig_settle(r);
	cr_expect_str_eq(rig_state(r), "Stable");
}

Test(delete, log_that_refuses)
{
	rig_commit(r, 8, "", NULL, -1, "t:0=1");
	rig_settle(r);
	rig_log_fail(r, 3);
	cr_expect_eq(delete_group(), 15);
	cr_expect_eq(delete_offset("t", 0), 15);
	rig_log_fail(r, 0);
	rig_settle(r);
	cr_expect_eq(rig_offset(r, "t", 0), 1);
	cr_expect_eq(r->stats.group_deleted, 0);
}

/* ---- OffsetDelete ---- */

Test(delete, offsets_of_no_group)
{
	struct offset_delete_request nameless = {BYTES_EMPTY, NULL, 0};
	cr_expect_eq(shard_offset_delete(r->shard, &nameless, NULL, r->now), 24);
	nameless.group_id = BYTES_NULL;
	cr_expect_eq(shard_offset_delete(r->shard, &nameless, NULL, r->now), 24);
	cr_expect_eq(delete_offset("t", 0), 69);
}

Test(delete, offsets_of_an_empty_or_simple_group)
{
	rig_commit(r, 8, "", NULL, -1, "t:0=1,t:1=2");
	rig_settle(r);
	unsigned int before = rig_log_records(r);
	cr_expect_eq(delete_offset("t", 5), 0);
	cr_expect_eq(code, 0, "also where there is nothing");
	cr_expect_eq(rig_log_records(r), before, "which writes nothing");
	cr_expect_eq(delete_offset("t", 1), 0);
	cr_expect_eq(code, 0);
	cr_expect_eq(rig_offset(r, "t", 1), 2, "not before it is durable");
	rig_settle(r);
	cr_assert_eq(rig_log_records(r), before + 1);
	cr_expect(is_tombstone(before, RECORD_OFFSET));
	cr_expect_eq(rig_offset(r, "t", 1), -999);
	cr_expect_eq(rig_offset(r, "t", 0), 1);
	cr_expect_str_eq(rig_state(r), "Empty");
}

Test(delete, offset_on_its_way)
{
	rig_log_hold(r, true);
	rig_commit(r, 8, "", NULL, -1, "t:0=1");
	cr_expect_eq(delete_offset("t", 0), 0);
	rig_log_hold(r, false);
	rig_settle(r);
	cr_expect_eq(rig_offset(r, "t", 0), -999);
}

Test(delete, offsets_of_members_that_are_no_consumers)
{
	struct call *join = rig_join_to(r, "g", 3, "", NULL, 10000, 60000, "connect", "range");
	cr_expect_eq(delete_offset("t", 0), 68);
	rig_pass(r, 6000);
	cr_assert(join->answered);
	cr_expect_eq(delete_offset("t", 0), 68);
}

Test(delete, offsets_of_topics_that_a_member_subscribes_to)
{
	subscribed();
	cr_expect_eq(delete_offset("alpha", 0), 0);
	cr_expect_eq(code, 86);
	cr_expect_eq(delete_offset("beta", 9), 0);
	cr_expect_eq(code, 86);
	cr_expect_eq(delete_offset("gamma", 0), 0);
	cr_expect_eq(code, 0);
	rig_settle(r);
	cr_expect_eq(rig_offset(r, "alpha", 0), 1);
	cr_expect_eq(rig_offset(r, "gamma", 0), -999);
	cr_expect_eq(rig_offset(r, "gamma", 1), 2);
}

Test(delete, several_at_once_and_what_was_screened)
{
	subscribed();
	struct offset_delete_request_partition two[] = {{0}, {1}};
	struct offset_delete_request_topic t[] = {{BYTES_LITERAL("gamma"), two, 2}, {BYTES_LITERAL("alpha"), two, 1}, {BYTES_LITERAL("gamma"), two, 1}};
	struct offset_delete_request in = {G, t, 3};
	int16_t codes[] = {3, 0, 0, 3};
	cr_expect_eq(shard_offset_delete(r->shard, &in, codes, r->now), 0);
	cr_expect(codes[0] == 3 && codes[1] == 0 && codes[2] == 86 && codes[3] == 3);
	rig_settle(r);
	cr_expect_eq(rig_offset(r, "gamma", 0), 1);
	cr_expect_eq(rig_offset(r, "gamma", 1), -999);
}
