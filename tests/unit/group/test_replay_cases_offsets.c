/* test_replay_cases_offsets.c - public bug reports replayed as sequences, by their number: commits, their expiry, a log that refuses, failover (B20 to B87). */
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

Test(cases, b20_commit_during_a_rebalance)
{
	struct call *c[3];
	rig_stable(r, c, 3);
	rig_leave(r, 1, c[2]->id);
	cr_assert_str_eq(rig_state(r), "PreparingRebalance");
	struct call *k = rig_commit(r, 8, c[0]->id, NULL, 1, "t:0=1,t:1=2");
	rig_settle(r);
	cr_expect(k->len == 2 && k->codes[0] == 0 && k->codes[1] == 0, "what was consumed until now is stored");
	cr_expect_eq(rig_offset(r, "t", 1), 2);
	cr_expect_eq(rig_commit(r, 8, c[2]->id, NULL, 1, "t:0=9")->error, 25);
	for (int m = 0; m < 2; m++)
		rig_join(r, 9, c[m]->id, NULL, 10000, 60000, "range");
	cr_assert_str_eq(rig_state(r), "CompletingRebalance");
	k = rig_commit(r, 8, c[0]->id, NULL, 2, "t:0=9,t:1=9");
	cr_expect(k->len == 2 && k->codes[0] == 27 && k->codes[1] == 27);
	cr_expect_eq(rig_commit(r, 8, c[0]->id, NULL, 1, "t:0=9")->error, 22);
	cr_expect_eq(rig_commit(r, 8, c[2]->id, NULL, 2, "t:0=9")->error, 25);
	rig_sync_all(r, c, 2, 2);
	cr_expect_eq(rig_commit(r, 8, c[0]->id, NULL, 1, "t:0=9")->error, 22);
	shard_stop(r->shard, r->now);
	cr_expect_eq(rig_commit(r, 8, c[0]->id, NULL, 2, "t:0=9")->error, 15);
	rig_settle(r);
	cr_expect_eq(rig_offset(r, "t", 0), 1);
}

Test(cases, b21_commits_in_flight_are_not_serialised)
{
	struct call *k[5];
	rig_log_hold(r, true);
	for (int i = 0; i < 5; i++)
		k[i] = rig_commit(r, 8, "", NULL, -1, "t:0=1");
	rig_settle(r);
	cr_expect_eq(rig_log_records(r), 5, "all are on their way before one is durable");
	rig_log_hold(r, false);
	rig_settle(r);
	for (int i = 0; i < 5; i++)
		cr_expect_eq(k[i]->error, 0);
}

Test(cases, b37_commit_of_an_instance_without_membership)
{
	struct call *k = rig_commit(r, 7, "", "i1", -1, "t:0=11");
	rig_settle(r);
	cr_expect_eq(k->error, 0);
	k = rig_commit(r, 7, "", "i1", -1, "t:0=12");
	rig_settle(r);
	cr_expect_eq(k->error, 0);
	cr_expect_eq(rig_offset(r, "t", 0), 12);
}

Test(cases, b44_metadata_too_long_spoils_only_its_partition)
{
	static char list[6000];
	strcpy(list, "t:0=1/ok,t:1=2/");
	memset(list + strlen(list), 'x', 5000);
	struct call *k = rig_commit(r, 8, "", NULL, -1, list);
	rig_settle(r);
	cr_expect_eq(k->codes[0], 0);
	cr_expect_eq(k->codes[1], 12);
	cr_expect_eq(rig_offset(r, "t", 1), -999);
	k = rig_commit(r, 8, "", NULL, -1, "t:1=3/short");
	rig_settle(r);
	cr_expect_eq(rig_offset(r, "t", 1), 3);
}

Test(cases, b45_expiry_by_version)
{
	static const struct {
		const char *group;
		int version;
		int64_t timestamp, retention;
		int minutes; /* that it lives */
	} rows[] = {
		{"v1-now", 1, -1, -1, 10}, {"v1-1970", 1, 0, -1, 0},	{"v2-server", 2, -1, -1, 10}, {"v3-zero", 3, -1, 0, 0},
		{"v4-own", 4, -1, 180000, 3}, {"v5", 5, 0, 180000, 10}, {"v9", 9, 0, 0, 10},
	};
	r->settings.offsets_retention_minutes = 10;
	r->settings.offsets_retention_check_interval_ms = 1000;
	for (unsigned int i = 0; i < ARRAY_LEN(rows); i++)
		rig_commit_full(r, rows[i].group, rows[i].version, "", NULL, -1, "t:0=1", rows[i].timestamp, rows[i].retention);
	for (int minute = 0; minute <= 11; minute++) {
		rig_pass(r, 2500); /* a walk in between */
		for (unsigned int i = 0; i < ARRAY_LEN(rows); i++)
			cr_expect_eq(group_find(r->shard, bytes_str(rows[i].group)) != NULL, minute < rows[i].minutes, "%s in minute %d", rows[i].group,
				     minute);
		rig_pass(r, 57500);
	}
}

Test(cases, b45_members_keep_their_offsets)
{
	struct call *c[1];
	r->settings.offsets_retention_minutes = 10;
	r->settings.offsets_retention_check_interval_ms = 1000;
	rig_stable(r, c, 1);
	rig_commit_full(r, "g", 9, c[0]->id, NULL, 1, "t:0=1", -1, -1);
	for (int minute = 0; minute < 30; minute++)
		for (int i = 0; i < 10; i++) {
			rig_pass(r, 6000);
			cr_assert_eq(rig_heartbeat(r, c[0]->id, NULL, 1)->error, 0);
		}
	cr_expect_eq(rig_offset(r, "t", 0), 1, "its age counts from when the group became Empty");
	rig_leave(r, 1, c[0]->id);
	rig_pass(r, 595000);
	cr_expect_eq(rig_offset(r, "t", 0), 1);
	rig_pass(r, 10000);
	cr_expect_eq(rig_offset(r, "t", 0), -999);
}

/* As Kafka 4 maps them; a timeout is 15 there, 7 or 27 in older brokers. */
Test(cases, b52_log_failures_by_request)
{
	static const struct {
		int log, client;
	} rows[] = {{6, 16}, {56, 16}, {3, 15}, {19, 15}, {20, 15}, {7, 15}, {10, -1}, {18, -1}};
	struct call *a = rig_join(r, 5, "", "a", 10000, 60000, "range");
	rig_pass(r, 3000);
	rig_sync(r, 3, a->id, "a", 1, "");
	rig_settle(r);
	cr_assert_str_eq(rig_state(r), "Stable");
	rig_commit_full(r, "simple", 8, "", NULL, -1, "t:0=1", -1, -1);
	rig_settle(r);
	for (unsigned int i = 0; i < ARRAY_LEN(rows); i++) {
		rig_log_fail(r, rows[i].log);
		cr_expect_eq(rig_commit(r, 8, a->id, "a", 1, "t:0=1")->error, rows[i].client, "commit, %d", rows[i].log);
		cr_expect_eq(rig_join(r, 5, "", "a", 10000, 60000, "range")->error, rows[i].client, "join of a static member, %d", rows[i].log);
		cr_expect_eq(shard_delete_group(r->shard, BYTES_LITERAL("simple"), r->now), rows[i].client, "deletion, %d", rows[i].log);
		cr_expect_eq(rig_heartbeat(r, a->id, "a", 1)->error, 0);
	}
	for (unsigned int i = 0; i < ARRAY_LEN(rows); i++) {
		struct call *again = rig_join(r, 5, a->id, "a", 10000, 60000, "range"); /* the leader: a generation of its own */
		cr_assert_eq(again->error, 0);
		rig_log_fail(r, rows[i].log);
		cr_expect_eq(rig_sync(r, 3, a->id, "a", again->generation, "")->error, rows[i].client, "sync, %d", rows[i].log);
		cr_expect_str_eq(rig_state(r), "PreparingRebalance");
		rig_log_fail(r, 0);
	}
}

Test(cases, b87_after_a_failover_nothing_is_missing)
{
	struct call *c[1];
	rig_stable(r, c, 1);
	rig_commit(r, 8, c[0]->id, NULL, 1, "t:0=5");
	rig_pass(r, 9000);
	rig_reload(r);
	struct stats *own = aligned_alloc(MUSTER_CACHE_LINE, sizeof(*own));
	memset(own, 0, sizeof(*own));
	shard_load_begin(r->shard, own); /* the shard is not handed over yet */
	cr_expect_eq(rig_join(r, 9, c[0]->id, NULL, 10000, 60000, "range")->error, 14);
	cr_expect_eq(rig_commit(r, 8, c[0]->id, NULL, 1, "t:0=6")->error, 14);
	cr_expect_eq(rig_heartbeat(r, c[0]->id, NULL, 1)->error, 0, "blindly");
	cr_expect_eq(rig_heartbeat(r, "stranger", NULL, 1)->error, 0);
	cr_expect_eq(rig_sync(r, 3, c[0]->id, NULL, 1, "")->error, 27);
	shard_load_end(r->shard);
	free(own);
	cr_expect_eq(rig_offset(r, "t", 0), 5, "never -1 from an empty cache");
	rig_pass(r, 9000);
	cr_expect_eq(rig_heartbeat(r, c[0]->id, NULL, 1)->error, 0, "a full new session");
	struct call *k = rig_commit(r, 8, c[0]->id, NULL, 1, "t:0=6");
	rig_settle(r);
	cr_expect_eq(k->error, 0);
	struct call *again = rig_join(r, 9, c[0]->id, NULL, 10000, 60000, "range");
	cr_expect_eq(again->error, 0);
	cr_expect_eq(again->generation, 2);
}
