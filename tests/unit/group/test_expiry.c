/* test_expiry.c - retention of offsets and removal of empty groups (group-protocol 1.18; KIP-211; replay case B45). */
#include <criterion/criterion.h>
#include <stdio.h>

#include "rig.h"

#define MINUTE 60000
#define RETENTION 10 /* minutes; looked at every minute */

static struct rig *r;

static void setup(void)
{
	r = rig_new();
	r->settings.offsets_retention_minutes = RETENTION;
	r->settings.offsets_retention_check_interval_ms = MINUTE;
}

static void teardown(void)
{
	rig_free(r);
}

TestSuite(expiry, .init = setup, .fini = teardown);

/* Lets minutes pass in which the member of "g" stays alive. */
static void live(struct call *join, int minutes)
{
	for (int i = 0; i < minutes * 10; i++) {
		rig_pass(r, MINUTE / 10);
		cr_assert_eq(rig_heartbeat(r, join->id, NULL, join->generation)->error, 0);
	}
}

static void subscribe(struct member *m, const char *topic)
{
	char buf[64];
	r->unchecked = true; /* the log does not know of it */
	member_set_offers(m, offers_one(m->group, m->group->protocol, rig_subscription(buf, sizeof(buf), topic)));
	group_subscribe(m->group);
}

static struct call *stable(void)
{
	struct call *join[1];
	rig_stable(r, join, 1);
	return join[0];
}

static struct call *connect_group(void)
{
	struct call *join = rig_join_to(r, "g", 3, "", NULL, 10000, 60000, "connect", "range");
	rig_pass(r, 6000);
	cr_assert(join->answered);
	rig_sync_as(r, "g", 2, join->id, NULL, join->generation, NULL, NULL, "");
	rig_settle(r);
	cr_assert_str_eq(rig_state(r), "Stable");
	return join;
}

Test(expiry, simple_group_counts_from_the_commit)
{
	rig_commit(r, 8, "", NULL, -1, "t:0=1");
	rig_pass(r, 5 * MINUTE);
	rig_commit(r, 8, "", NULL, -1, "t:1=2");
	rig_pass(r, 4 * MINUTE + MINUTE / 2);
	cr_expect_eq(rig_offset(r, "t", 0), 1);
	rig_pass(r, MINUTE);
	cr_expect_eq(rig_offset(r, "t", 0), -999);
	cr_expect_eq(rig_offset(r, "t", 1), 2);
	cr_expect_str_eq(rig_state(r), "Empty");
	rig_pass(r, 5 * MINUTE);
	cr_expect_eq(rig_offset(r, "t", 1), -999);
	cr_expect_str_eq(rig_state(r), "none");
	cr_expect_eq(r->stats.offset_expired, 2);
	cr_expect_eq(r->stats.group_deleted, 1);
	rig_reload(r);
	cr_expect_str_eq(rig_state(r), "none");
}

Test(expiry, empty_group_counts_from_its_last_member)
{
	struct call *join = stable();
	rig_commit(r, 9, join->id, NULL, join->generation, "t:0=1");
	live(join, 30);
	rig_leave(r, 1, join->id);
	rig_pass(r, 9 * MINUTE);
	cr_expect_str_eq(rig_state(r), "Empty");
	cr_expect_eq(rig_offset(r, "t", 0), 1, "committed long ago, but the group was alive");
	rig_pass(r, 2 * MINUTE);
	cr_expect_eq(rig_offset(r, "t", 0), -999);
	cr_expect_str_eq(rig_state(r), "none");
}

Test(expiry, recovered_group_keeps_counting)
{
	struct call *join = stable();
	rig_commit(r, 9, join->id, NULL, join->generation, "t:0=1");
	rig_leave(r, 1, join->id);
	rig_pass(r, 6 * MINUTE);
	rig_reload(r);
	rig_pass(r, 3 * MINUTE);
	cr_expect_eq(rig_offset(r, "t", 0), 1);
	rig_pass(r, 2 * MINUTE);
	cr_expect_str_eq(rig_state(r), "none");
}

Test(expiry, empty_group_of_unknown_age_counts_from_the_commit)
{
	struct call *join = stable();
	rig_commit(r, 9, join->id, NULL, join->generation, "t:0=1");
	rig_leave(r, 1, join->id);
	rig_settle(r);
	r->unchecked = true;
	rig_group(r)->state_ms = -1;
	rig_pass(r, 9 * MINUTE);
	cr_expect_eq(rig_offset(r, "t", 0), 1);
	rig_pass(r, 2 * MINUTE);
	cr_expect_str_eq(rig_state(r), "none");
}

Test(expiry, stable_group_keeps_what_it_subscribes_to)
{
	struct call *join = stable();
	subscribe(rig_group(r)->members[0], "kept");
	rig_commit(r, 9, join->id, NULL, join->generation, "kept:0=1,gone:0=2,gone:1=3,kept:1=4");
	live(join, 9);
	cr_expect_eq(rig_offset(r, "gone", 0), 2);
	live(join, 3);
	cr_expect_eq(rig_offset(r, "gone", 0), -999);
	cr_expect_eq(rig_offset(r, "gone", 1), -999);
	cr_expect_eq(rig_offset(r, "kept", 0), 1);
	cr_expect_eq(rig_offset(r, "kept", 1), 4);
	cr_expect_str_eq(rig_state(r), "Stable");
	cr_expect_eq(r->stats.offset_expired, 2);
}

Test(expiry, stable_group_of_which_nothing_is_left_stays)
{
	struct call *join = stable();
	subscribe(rig_group(r)->members[0], "other");
	rig_commit(r, 9, join->id, NULL, join->generation, "gone:0=1");
	live(join, 12);
	cr_expect_eq(rig_offset(r, "gone", 0), -999);
	cr_expect_str_eq(rig_state(r), "Stable");
	cr_expect_eq(r->stats.group_deleted, 0);
}

Test(expiry, unreadable_subscription_keeps_everything)
{
	struct call *join = stable();
	rig_commit(r, 9, join->id, NULL, join->generation, "t:0=1");
	live(join, 25);
	cr_expect_eq(rig_offset(r, "t", 0), 1);
}

Test(expiry, members_of_another_type_keep_everything)
{
	struct call *join = connect_group();
	rig_commit(r, 8, join->id, NULL, join->generation, "t:0=1");
	live(join, 25);
	cr_expect_eq(rig_offset(r, "t", 0), 1);
}

Test(expiry, nothing_goes_while_the_group_rebalances)
{
	rig_commit_full(r, "g", 1, "", NULL, -1, "t:0=1", 0, -1); /* of 1970 */
	struct call *a = rig_join(r, 3, "", NULL, 1800000, 1800000, "range");
	rig_pass(r, 6000);
	cr_assert(a->answered);
	cr_expect_str_eq(rig_state(r), "CompletingRebalance");
	rig_pass(r, 3 * MINUTE);
	cr_expect_eq(rig_offset(r, "t", 0), 1);
	rig_join(r, 3, "", NULL, 1800000, 1800000, "range");
	cr_expect_str_eq(rig_state(r), "PreparingRebalance");
	rig_pass(r, 3 * MINUTE);
	cr_expect_eq(rig_offset(r, "t", 0), 1);
}

/* B45 */
Test(expiry, by_version_of_the_commit)
{
	rig_commit_full(r, "v1-now", 1, "", NULL, -1, "t:0=1", -1, -1);
	rig_commit_full(r, "v1-1970", 1, "", NULL, -1, "t:0=1", 0, -1);
	rig_commit_full(r, "v2-server", 2, "", NULL, -1, "t:0=1", -1, -1);
	rig_commit_full(r, "v3-zero", 3, "", NULL, -1, "t:0=1", -1, 0);
	rig_commit_full(r, "v4-three", 4, "", NULL, -1, "t:0=1", -1, 3 * MINUTE);
	rig_commit_full(r, "v4-thirty", 4, "", NULL, -1, "t:0=1", -1, 30 * MINUTE);
	static const struct {
		int minute; /* the last one in which the group is there */
		const char *group;
	} cases[] = {{0, "v1-1970"}, {0, "v3-zero"}, {2, "v4-three"}, {9, "v1-now"}, {9, "v2-server"}, {29, "v4-thirty"}};
	for (int minute = 0; minute < 32; minute++) {
		for (unsigned int i = 0; i < ARRAY_LEN(cases); i++) {
			bool there = group_find(r->shard, bytes_str(cases[i].group)) != NULL;
			/* a half minute of grace around the end, for where in the minute the walk happens to come */
			if (minute != cases[i].minute + 1 && minute > 0)
				cr_expect_eq(there, minute <= cases[i].minute, "%s in minute %d", cases[i].group, minute);
		}
		rig_pass(r, MINUTE);
	}
	cr_expect_eq(r->shard->groups.count, 0);
}

Test(expiry, explicit_time_counts_whatever_the_group_does)
{
	struct call *join = stable();
	subscribe(rig_group(r)->members[0], "other");
	rig_commit_full(r, "g", 4, join->id, NULL, join->generation, "t:0=1", -1, 2 * MINUTE);
	rig_commit_full(r, "g", 4, join->id, NULL, join->generation, "t:1=1", -1, 20 * MINUTE);
	live(join, 4);
	cr_expect_eq(rig_offset(r, "t", 0), -999);
	live(join, 10);
	cr_expect_eq(rig_offset(r, "t", 1), 1, "longer than the server's retention");
}

Test(expiry, group_that_never_committed_goes_with_the_first_walk)
{
	struct call *join = stable();
	rig_leave(r, 1, join->id);
	rig_settle(r);
	cr_expect_str_eq(rig_state(r), "Empty");
	rig_pass(r, MINUTE + 1000);
	cr_expect_str_eq(rig_state(r), "none");
}

Test(expiry, an_id_that_was_handed_out_spares_the_group)
{
	rig_pass(r, 1000);
	cr_assert_eq(rig_join(r, 9, "", NULL, 90000, 60000, "range")->error, 79);
	rig_pass(r, MINUTE + 10000);
	cr_expect_str_eq(rig_state(r), "Empty");
	rig_pass(r, MINUTE);
	cr_expect_str_eq(rig_state(r), "none");
}

Test(expiry, records_on_their_way_put_it_off)
{
	rig_commit_full(r, "g", 1, "", NULL, -1, "t:0=1", 0, -1);
	rig_settle(r);
	rig_log_hold(r, true);
	rig_commit(r, 8, "", NULL, -1, "t:0=2");
	unsigned int before = rig_log_records(r);
	rig_pass(r, 2 * MINUTE);
	cr_expect_eq(rig_log_records(r), before);
	rig_log_hold(r, false);
	rig_pass(r, 2 * MINUTE);
	cr_expect_eq(rig_offset(r, "t", 0), 2, "the new commit counts");
}

Test(expiry, log_that_refuses_is_asked_again)
{
	rig_commit_full(r, "g", 1, "", NULL, -1, "t:0=1", 0, -1);
	rig_settle(r);
	rig_log_fail(r, 3);
	rig_pass(r, MINUTE + 1000);
	cr_expect_eq(r->stats.log_append_failed, 1);
	cr_expect_eq(r->stats.offset_expired, 0);
	cr_expect_str_eq(rig_state(r), "Empty");
	rig_log_fail(r, 0);
	rig_pass(r, MINUTE);
	cr_expect_str_eq(rig_state(r), "none");
}

Test(expiry, interval_zero_keeps_everything)
{
	r->settings.offsets_retention_check_interval_ms = 0;
	rig_commit_full(r, "g", 1, "", NULL, -1, "t:0=1", 0, -1);
	rig_pass(r, 100 * MINUTE);
	cr_expect_eq(rig_offset(r, "t", 0), 1);
}

Test(expiry, shard_without_groups_is_left_alone)
{
	cr_expect_eq(shard_tick(r->shard, 100, r->now), TIME_NEVER);
	rig_commit_full(r, "g", 1, "", NULL, -1, "t:0=1", 0, -1);
	rig_settle(r);
	cr_expect_neq(shard_tick(r->shard, 100, r->now), TIME_NEVER);
	rig_pass(r, 2 * MINUTE);
	cr_expect_str_eq(rig_state(r), "none");
	rig_pass(r, 2 * MINUTE);
	cr_expect_eq(shard_tick(r->shard, 100, r->now), TIME_NEVER);
}

/* 3,000 groups are walked in slices, and none is missed although the table grows meanwhile. */
Test(expiry, many_groups_go_in_slices)
{
	r->unchecked = true;
	for (int i = 0; i < 3000; i++) {
		char name[16];
		snprintf(name, sizeof(name), "old-%d", i);
		rig_commit_full(r, name, 1, "", NULL, -1, "t:0=1", 0, -1);
	}
	rig_settle(r);
	cr_assert_eq(r->shard->groups.count, 3000);
	uint64_t before = 0, largest = 0;
	unsigned int slices = 0;
	for (int ms = 0; ms < MINUTE + 100; ms++) {
		r->now.us += 1000;
		r->now.wall_ms++;
		log_poll(&r->log->log, r->now);
		shard_tick(r->shard, 1000, r->now);
		uint64_t now = r->stats.group_deleted;
		slices += now > before;
		largest = now - before > largest ? now - before : largest;
		before = now;
		if (slices == 2) {
			char name[16];
			snprintf(name, sizeof(name), "new-%d", ms);
			rig_commit_full(r, name, 8, "", NULL, -1, "t:0=1", -1, -1);
		}
	}
	cr_expect_eq(before, 3000);
	cr_expect_geq(slices, 15);
	cr_expect_leq(largest, 200);
}

Test(expiry, one_group_of_many_offsets_goes_in_parts)
{
	r->unchecked = true;
	for (int i = 0; i < 300; i++) {
		char list[512] = "";
		for (int p = 0; p < 16; p++)
			snprintf(list + strlen(list), sizeof(list) - strlen(list), "t%d:%d=1,", i, p);
		rig_commit_full(r, "g", 1, "", NULL, -1, list, 0, -1);
	}
	rig_settle(r);
	rig_pass(r, MINUTE + 1000);
	cr_expect_eq(r->stats.offset_expired, 4096);
	cr_expect_str_eq(rig_state(r), "Empty");
	rig_pass(r, MINUTE);
	cr_expect_eq(r->stats.offset_expired, 4800);
	cr_expect_str_eq(rig_state(r), "none");
}
