/* test_commit.c - OffsetCommit: identity, state, values, durability (group-protocol 1.11). */
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

TestSuite(commit, .init = setup, .fini = teardown);

static struct record_offset last_value(void)
{
	struct record_offset v;
	cr_assert(record_offset_decode(&v, rig_log_entry(r, rig_log_records(r) - 1).value));
	return v;
}

Test(commit, unknown_group)
{
	cr_expect_eq(rig_commit_full(r, NULL, 8, "", NULL, -1, "t:0=1", -1, -1)->error, 24);
	cr_expect_eq(rig_commit(r, 9, "m", NULL, 0, "t:0=1")->error, 69);
	cr_expect_eq(rig_commit(r, 8, "m", NULL, 0, "t:0=1")->error, 22);
	cr_expect_str_eq(rig_state(r), "none");
	struct call *c = rig_commit(r, 8, "", NULL, -1, "t:0=1,u:5=7");
	cr_expect(!c->answered); /* not before it is durable */
	cr_expect_eq(rig_offset(r, "t", 0), -999);
	rig_settle(r);
	cr_expect_eq(c->len, 2);
	cr_expect_eq(c->codes[0], 0);
	cr_expect_eq(c->codes[1], 0);
	cr_expect_eq(rig_offset(r, "t", 0), 1);
	cr_expect_eq(rig_offset(r, "u", 5), 7);
	cr_expect_str_eq(rig_state(r), "Empty");
	cr_expect(bytes_is_null(rig_group(r)->protocol_type));
	cr_expect_eq(r->stats.offset_commits, 2);
	struct call *e = rig_commit_full(r, "", 8, "", NULL, -1, "t:0=1", -1, -1); /* the empty group id is fine here */
	rig_settle(r);
	cr_expect_eq(e->error, 0);
}

Test(commit, identity_and_state)
{
	struct call *c[2];
	rig_stable(r, c, 2);
	cr_expect_eq(rig_commit(r, 8, "", NULL, -1, "t:0=1")->error, 25);
	cr_expect_eq(rig_commit(r, 8, "", NULL, 1, "t:0=1")->error, 25);
	cr_expect_eq(rig_commit(r, 8, "stranger", NULL, 1, "t:0=1")->error, 25);
	cr_expect_eq(rig_commit(r, 8, c[0]->id, "nobody", 1, "t:0=1")->error, 25);
	cr_expect_eq(rig_commit(r, 8, c[0]->id, NULL, 0, "t:0=1")->error, 22);
	cr_expect_eq(rig_commit(r, 8, c[0]->id, NULL, -1, "t:0=1")->error, 22);
	struct call *ok = rig_commit(r, 8, c[0]->id, NULL, 1, "t:0=1");
	rig_settle(r);
	cr_expect_eq(ok->error, 0);
	rig_join(r, 9, c[0]->id, NULL, 10000, 60000, "range");
	ok = rig_commit(r, 8, c[1]->id, NULL, 1, "t:0=2"); /* PreparingRebalance takes the current generation */
	rig_settle(r);
	cr_expect_eq(ok->error, 0);
	rig_join(r, 9, c[1]->id, NULL, 10000, 60000, "range");
	cr_expect_eq(rig_commit(r, 8, c[1]->id, NULL, 1, "t:0=3")->error, 22);
	cr_expect_eq(rig_commit(r, 8, c[1]->id, NULL, 2, "t:0=3,t:1=4")->codes[1], 27);
	cr_expect_eq(rig_offset(r, "t", 0), 2);
	rig_leave(r, 2, c[0]->id);
	rig_leave(r, 2, c[1]->id);
	rig_settle(r);
	cr_expect_eq(rig_commit(r, 8, c[1]->id, NULL, 3, "t:0=3")->error, 25);
	ok = rig_commit(r, 8, "whoever", "inst", -1, "t:0=9"); /* an Empty group does not ask who it is */
	rig_settle(r);
	cr_expect_eq(ok->error, 0);
	cr_expect_eq(rig_offset(r, "t", 0), 9);
	shard_stop(r->shard, r->now);
	cr_expect_eq(rig_commit(r, 8, "", NULL, -1, "t:0=3")->error, 15);
}

Test(commit, screened_partitions)
{
	struct call *c[1];
	rig_stable(r, c, 1);
	unsigned int records = rig_log_records(r);
	struct call *k = rig_commit(r, 8, "stranger", NULL, 1, "!x:0=1");
	cr_expect_eq(k->error, 3); /* nothing left: the group is not asked */
	k = rig_commit(r, 8, "stranger", NULL, 1, "!x:0=1,t:0=1");
	cr_expect_eq(k->codes[0], 3);
	cr_expect_eq(k->codes[1], 25);
	cr_expect_eq(rig_log_records(r), records);
	k = rig_commit(r, 8, c[0]->id, NULL, 1, "!x:0=1,t:0=1");
	rig_settle(r);
	cr_expect_eq(k->codes[0], 3);
	cr_expect_eq(k->codes[1], 0);
	cr_expect_eq(rig_log_records(r), records + 1);
}

Test(commit, metadata_length_in_utf16_units)
{
	r->settings.offset_metadata_max_bytes = 4;
	struct call *k = rig_commit(r, 8, "", NULL, -1, "t:0=1/abcd,t:1=1/abcde,t:2=1/\u00e4\u00e4\u00e4\u00e4,t:3=1/\U0001F600\U0001F600,t:4=1/\U0001F600\U0001F600x,t:5=2");
	rig_settle(r);
	static const int expected[] = {0, 12, 0, 0, 12, 0};
	cr_assert_eq(k->len, 6);
	cr_expect_arr_eq(k->codes, expected, sizeof(expected));
	cr_expect_eq(rig_offset(r, "t", 1), -999);
	struct offset_value v;
	cr_assert(shard_offset_get(r->shard, bytes_str("g"), bytes_str("t"), 5, &v));
	cr_expect_eq(v.metadata.len, 0); /* null is stored as empty */
	cr_expect_eq(v.leader_epoch, 3);
	cr_assert(shard_offset_get(r->shard, bytes_str("g"), bytes_str("t"), 3, &v));
	cr_expect_eq(v.metadata.len, 8);
	/* nothing valid: nothing is written, and the answer is there at once */
	unsigned int records = rig_log_records(r);
	k = rig_commit(r, 8, "", NULL, -1, "t:0=5/abcde");
	cr_expect_eq(k->error, 12);
	cr_expect_eq(rig_log_records(r), records);
	cr_expect_eq(rig_offset(r, "t", 0), 1);
}

Test(commit, times_by_version)
{
	rig_commit_full(r, "g", 1, "", NULL, -1, "t:0=1", -1, -1);
	cr_expect_eq(last_value().commit_ms, r->now.wall_ms);
	rig_commit_full(r, "g", 1, "", NULL, -1, "t:0=1", 0, -1);
	cr_expect_eq(last_value().commit_ms, 0);
	rig_commit_full(r, "g", 1, "", NULL, -1, "t:0=1", 777, -1);
	cr_expect_eq(last_value().commit_ms, 777);
	rig_commit_full(r, "g", 2, "", NULL, -1, "t:0=1", 777, -1);
	cr_expect_eq(last_value().commit_ms, r->now.wall_ms);
	cr_expect_eq(last_value().expire_ms, RECORD_NO_EXPIRY);
	rig_commit_full(r, "g", 4, "", NULL, -1, "t:0=1", -1, 5000);
	cr_expect_eq(last_value().expire_ms, r->now.wall_ms + 5000);
	rig_commit_full(r, "g", 3, "", NULL, -1, "t:0=1", -1, 0);
	cr_expect_eq(last_value().expire_ms, r->now.wall_ms);
	rig_commit_full(r, "g", 3, "", NULL, -1, "t:0=1", -1, -5); /* no expiry in the past */
	cr_expect_eq(last_value().expire_ms, RECORD_NO_EXPIRY);
	rig_commit_full(r, "g", 3, "", NULL, -1, "t:0=1", -1, INT64_MAX);
	cr_expect_eq(last_value().expire_ms, INT64_MAX);
	rig_commit_full(r, "g", 5, "", NULL, -1, "t:0=1", -1, 5000);
	cr_expect_eq(last_value().expire_ms, RECORD_NO_EXPIRY);
	rig_settle(r);
}

Test(commit, failed_append)
{
	rig_log_fail(r, 10);
	struct call *k = rig_commit(r, 8, "", NULL, -1, "t:0=1,!x:0=2");
	cr_expect_eq(k->codes[0], -1);
	cr_expect_eq(k->codes[1], 3);
	rig_log_fail(r, 6);
	cr_expect_eq(rig_commit(r, 8, "", NULL, -1, "t:0=1")->error, 16);
	rig_log_fail(r, 0);
	rig_settle(r);
	cr_expect_str_eq(rig_state(r), "none");
}

Test(commit, in_order_and_pipelined)
{
	rig_log_hold(r, true);
	struct call *k[5];
	for (int i = 0; i < 5; i++) {
		char list[32];
		snprintf(list, sizeof(list), "t:0=%d", i);
		k[i] = rig_commit(r, 8, "", NULL, -1, list);
	}
	rig_settle(r);
	for (int i = 0; i < 5; i++)
		cr_expect(!k[i]->answered);
	rig_drop(k[2]); /* its answer has nowhere to go; the commit stands */
	rig_log_hold(r, false);
	rig_settle(r);
	cr_expect_eq(k[0]->error, 0);
	cr_expect_eq(k[4]->error, 0);
	cr_expect_eq(rig_offset(r, "t", 0), 4);
}

Test(commit, counts_as_a_sign_of_life)
{
	struct call *c[1];
	rig_stable(r, c, 1);
	for (int i = 0; i < 4; i++) {
		rig_pass(r, 9000);
		rig_commit(r, 8, c[0]->id, NULL, 1, "t:0=1");
	}
	rig_settle(r);
	cr_expect_str_eq(rig_state(r), "Stable");
	rig_pass(r, 10001);
	cr_expect_str_eq(rig_state(r), "Empty");
}

static int barrier_runs;

static void then(struct shard_barrier *b, int16_t error, struct now now)
{
	barrier_runs++;
	cr_expect_eq(error, 0);
	cr_expect_eq(rig_offset(r, "t", 0), 1);
}

Test(commit, barrier_sees_earlier_writes)
{
	struct shard_barrier b = {.then = then}, cancelled = {.then = then};
	rig_log_hold(r, true);
	rig_commit(r, 8, "", NULL, -1, "t:0=1");
	shard_barrier(r->shard, &b, r->now);
	shard_barrier(r->shard, &cancelled, r->now);
	shard_barrier_cancel(r->shard, &cancelled);
	rig_settle(r);
	cr_expect_eq(barrier_runs, 0);
	rig_log_hold(r, false);
	rig_settle(r);
	cr_expect_eq(barrier_runs, 1);
	shard_barrier(r->shard, &b, r->now);
	cr_expect_eq(barrier_runs, 2);
}
