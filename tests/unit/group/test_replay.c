/* test_replay.c - recovery: what comes back, sessions after a load, tombstones, and records in any order or shape. */
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

TestSuite(replay, .init = setup, .fini = teardown);

Test(replay, members_of_a_stable_group_just_go_on)
{
	struct call *c[3];
	rig_stable(r, c, 3);
	rig_commit(r, 8, c[0]->id, NULL, 1, "t:0=5/meta");
	rig_settle(r);
	rig_reload(r);
	cr_expect_str_eq(rig_state(r), "Stable");
	for (int i = 0; i < 3; i++)
		cr_expect_eq(rig_heartbeat(r, c[i]->id, NULL, 1)->error, 0);
	cr_expect_str_eq(rig_sync(r, 5, c[2]->id, NULL, 1, "")->assignment, "2");
	cr_expect_eq(rig_offset(r, "t", 0), 5);
	struct call *n = rig_join(r, 4, "", NULL, 10000, 60000, "other");
	cr_expect_eq(n->error, 23);
	rig_pass(r, 9999); /* sessions started in full */
	cr_expect_eq(rig_group(r)->members_len, 3);
	rig_pass(r, 1);
	cr_expect_str_eq(rig_state(r), "Empty");
}

/* The rig compares after every step; the log's last word about a member counts, also about where it is. */
Test(replay, a_member_that_moved_to_another_host)
{
	struct call *c[1];
	rig_stable(r, c, 1);
	r->client = "moved";
	r->peer++;
	struct call *again = rig_join(r, 9, c[0]->id, NULL, 10000, 60000, "range");
	cr_assert_eq(again->generation, 2);
	rig_sync(r, 5, c[0]->id, NULL, 2, "");
	rig_settle(r);
	rig_reload(r);
	const struct member *m = member_find(rig_group(r), bytes_str(c[0]->id));
	cr_expect(bytes_equal(m->client_id, BYTES_LITERAL("moved")));
	cr_expect(bytes_equal(m->host, BYTES_LITERAL("/10.1.2.4")));
}

Test(replay, a_group_caught_in_a_rebalance_falls_back_to_its_last_record)
{
	struct call *c[2];
	rig_stable(r, c, 2);
	rig_join(r, 9, c[0]->id, NULL, 10000, 60000, "range");
	rig_join(r, 9, c[1]->id, NULL, 10000, 60000, "range");
	cr_assert_eq(rig_group(r)->generation, 2);
	rig_reload(r);
	cr_expect_str_eq(rig_state(r), "Stable");
	cr_expect_eq(rig_heartbeat(r, c[0]->id, NULL, 2)->error, 22);
	cr_expect_eq(rig_heartbeat(r, c[0]->id, NULL, 1)->error, 0);
	struct call *again = rig_join(r, 9, c[0]->id, NULL, 10000, 60000, "range");
	rig_join(r, 9, c[1]->id, NULL, 10000, 60000, "range");
	cr_expect_eq(again->generation, 2);
}

Test(replay, an_older_record_does_not_undo_what_the_log_refused)
{
	struct call *c[1];
	rig_stable(r, c, 1);
	rig_join(r, 9, c[0]->id, NULL, 10000, 60000, "range");
	rig_log_hold(r, true);
	struct call *sync = rig_sync(r, 3, c[0]->id, NULL, 2, "");
	rig_log_fail(r, 7);
	rig_leave(r, 1, c[0]->id); /* the group becomes empty, and the log does not take it */
	rig_log_fail(r, 0);
	rig_log_hold(r, false);
	rig_settle(r);
	cr_expect_eq(sync->error, 25);
	cr_expect_str_eq(rig_state(r), "Empty");
	cr_expect_eq(rig_group(r)->generation, 3);
	cr_expect_eq(r->stats.group_members_now, 0);
	cr_expect_eq(r->stats.log_append_failed, 1);
}

static struct log_entry group_tombstone(uint8_t *buf, size_t cap)
{
	struct writer w = writer_of(buf, cap);
	record_group_key(&w, BYTES_LITERAL("g"));
	return (struct log_entry){bytes_of(buf, writer_len(&w)), BYTES_NULL};
}

Test(replay, tombstones)
{
	uint8_t buf[64];
	struct call *c[2];
	struct log_entry gone = group_tombstone(buf, sizeof(buf));
	cr_expect(shard_replay(r->shard, &gone, r->now)); /* of an unknown group: nothing */
	rig_stable(r, c, 2);
	rig_commit(r, 8, c[0]->id, NULL, 1, "t:0=5,t:1=6");
	rig_settle(r);
	r->unchecked = true;
	cr_expect(shard_replay(r->shard, &gone, r->now));
	cr_expect_str_eq(rig_state(r), "none");
	cr_expect_eq(r->stats.group_members_now, 0);
	cr_expect_eq(rig_offset(r, "t", 0), 5); /* offsets have tombstones of their own */
	struct log_entry offset = {rig_log_entry(r, rig_log_records(r) - 1).key, BYTES_NULL};
	cr_expect(shard_replay(r->shard, &offset, r->now));
	cr_expect(shard_replay(r->shard, &offset, r->now));
	cr_expect_eq(rig_offset(r, "t", 1), -999);
	cr_expect_eq(rig_offset(r, "t", 0), 5);
	cr_expect_eq(rig_heartbeat(r, c[0]->id, NULL, 1)->error, 25);
}

Test(replay, offset_before_its_group)
{
	struct call *c[1];
	rig_stable(r, c, 1);
	rig_commit(r, 8, c[0]->id, NULL, 1, "t:0=5");
	rig_settle(r);
	struct rig *other = rig_new();
	for (unsigned int i = rig_log_records(r); i-- > 0;) {
		struct log_entry e = rig_log_entry(r, i);
		cr_expect(shard_replay(other->shard, &e, other->now));
		if (i == rig_log_records(r) - 1)
			cr_expect_str_eq(rig_state(other), "Empty"); /* a simple group for now */
		if (i == rig_log_records(r) - 2)
			cr_expect_str_eq(rig_state(other), "Stable");
	}
	cr_expect_str_eq(rig_state(other), "Empty"); /* the oldest record came last */
	other->unchecked = true;
	rig_free(other);
}

static uint64_t seed;

static uint32_t dice(uint32_t n)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(seed >> 33) % n;
}

/* Records of a few groups, members and instances, often damaged, in any order, between live requests. */
Test(replay, total)
{
	static uint8_t buf[4096];
	static const char *const ids[] = {"m0", "m1", "m2", "m3", ""};
	r->unchecked = true;
	for (int round = 1; round < 300; round++) {
		seed = (uint64_t)round;
		for (int step = 0; step < 60; step++) {
			struct writer w = writer_of(buf, sizeof(buf));
			struct log_entry e;
			record_group_key(&w, dice(4) ? BYTES_LITERAL("g") : BYTES_LITERAL("h"));
			e.key = bytes_of(buf, writer_len(&w));
			uint8_t *value = w.p;
			struct record_group g = {.protocol_type = dice(3) ? BYTES_LITERAL("consumer") : BYTES_EMPTY, .generation = (int32_t)dice(5) - 1,
						 .protocol = dice(3) ? BYTES_LITERAL("range") : BYTES_NULL, .leader = dice(3) ? bytes_str(ids[dice(5)]) : BYTES_NULL,
						 .state_ms = dice(100), .members_len = (int32_t)dice(4)};
			if (dice(8) == 0)
				g.generation = INT32_MAX;
			record_group_value(&w, &g);
			for (int32_t i = 0; i < g.members_len; i++) {
				struct record_member m = {bytes_str(ids[dice(5)]), dice(2) ? BYTES_NULL : bytes_str(ids[dice(3)]), BYTES_LITERAL("c"),
							  BYTES_LITERAL("h"), (int32_t)dice(100000) - 10, (int32_t)dice(100000) - 10,
							  BYTES_LITERAL("s"), BYTES_LITERAL("a")};
				record_group_member(&w, &m);
			}
			e.value = bytes_of(value, (size_t)(w.p - value));
			if (dice(4) == 0)
				value[dice((uint32_t)e.value.len)] ^= (uint8_t)(1u << dice(8));
			if (dice(6) == 0)
				e.value.len = (int32_t)dice((uint32_t)e.value.len + 1);
			if (dice(10) == 0)
				e.value = BYTES_NULL;
			if (dice(20) == 0)
				e.key.len = (int32_t)dice((uint32_t)e.key.len + 1);
			shard_replay(r->shard, &e, r->now);
			shard_loaded(r->shard, r->now); /* the rig asks for running sessions */
			rig_check(r);
			if (dice(10) == 0)
				rig_join(r, 3, "", dice(2) ? NULL : ids[dice(3)], 10000, 20000, "range");
			if (dice(10) == 0)
				rig_join(r, 9, ids[dice(5)], NULL, 10000, 20000, "range");
			if (dice(10) == 0)
				rig_sync(r, 3, ids[dice(4)], NULL, (int)dice(3), "");
			if (dice(10) == 0)
				rig_pass(r, dice(30000));
			if (dice(30) == 0)
				rig_leave(r, 1, ids[dice(5)]);
		}
	}
	cr_expect_gt(r->stats.log_replay_bad, 100);
	cr_expect_gt(r->stats.group_rebalances, 100);
}

/* What the tools take out is what Kafka would have written. */
Test(replay, export_of_a_group)
{
	struct call *c[3];
	uint8_t key_buf[64], value_buf[1024];
	rig_stable(r, c, 3);
	struct writer key = writer_of(key_buf, sizeof(key_buf)), value = writer_of(value_buf, sizeof(value_buf));
	cr_assert(shard_group_export(r->shard, BYTES_LITERAL("g"), &key, &value));
	struct log_entry last = rig_log_entry(r, rig_log_records(r) - 1);
	cr_expect(bytes_equal(bytes_of(key_buf, writer_len(&key)), last.key));
	cr_expect(bytes_equal(bytes_of(value_buf, writer_len(&value)), last.value));
	cr_expect(!shard_group_export(r->shard, BYTES_LITERAL("other"), &key, &value));
}
