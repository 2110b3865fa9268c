/* test_replay_cases.c - public bug reports replayed as sequences, by their number: joining, syncing, heartbeats (B01 to B24). */
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

Test(cases, b01_ghosts_of_retried_joins)
{
	struct call *m1 = rig_join_twice(r, 10000, 1800000, "range");
	rig_pass(r, 3000);
	rig_sync_all(r, &m1, 1, 1);
	for (int i = 0; i < 20; i++) { /* no version below 4 leaves a member behind when its connection closes */
		struct call *ghost = rig_join(r, 3, "", NULL, 10000, 60000, "range");
		for (int s = 0; s < 4; s++) {
			rig_pass(r, 7500);
			cr_assert_eq(rig_heartbeat(r, m1->id, NULL, 1)->error, 27);
		}
		rig_drop(ghost);
		cr_assert_eq(rig_group(r)->members_len, 1);
	}
	for (int i = 0; i < 20; i++) /* and from version 4 on there is none to begin with */
		cr_expect_eq(rig_join(r, 4, "", NULL, 10000, 60000, "range")->error, 79);
	cr_expect_eq(rig_group(r)->members_len, 1);
	cr_expect_eq(r->stats.group_members_now, 1);
}

Test(cases, b04_pending_member_blocks_only_until_its_session_ends)
{
	struct call *c[1];
	rig_stable(r, c, 1);
	struct call *p = rig_join(r, 4, "", NULL, 6000, 60000, "range");
	struct call *again = rig_join(r, 9, c[0]->id, NULL, 10000, 60000, "range");
	cr_expect(!again->answered);
	rig_pass(r, 5999);
	cr_expect(!again->answered);
	rig_pass(r, 1);
	cr_expect_eq(again->error, 0);
	cr_expect_eq(again->len, 1);
	/* it leaves: at once */
	rig_sync_all(r, c, 1, 2);
	p = rig_join(r, 4, "", NULL, 6000, 60000, "range");
	again = rig_join(r, 9, c[0]->id, NULL, 10000, 60000, "range");
	cr_expect(!again->answered);
	cr_expect_eq(rig_leave(r, 1, p->id)->error, 0);
	cr_expect_eq(again->error, 0);
	/* it comes: accepted */
	rig_sync_all(r, c, 1, 3);
	p = rig_join(r, 4, "", NULL, 6000, 60000, "range");
	again = rig_join(r, 9, c[0]->id, NULL, 10000, 60000, "range");
	struct call *in = rig_join(r, 4, p->id, NULL, 6000, 60000, "range");
	cr_expect_eq(in->error, 0);
	cr_expect_eq(again->len, 2);
}

Test(cases, b05_heartbeats_without_sync)
{
	struct call *m1 = rig_join_twice(r, 10000, 20000, "range");
	struct call *m2 = rig_join_twice(r, 10000, 20000, "range");
	rig_pass(r, 6000);
	struct call *sync = rig_sync(r, 3, m2->id, NULL, 1, "");
	uint64_t start = m1->answered_us;
	for (int i = 0; i < 9; i++) {
		rig_pass(r, 2000);
		cr_assert_eq(rig_heartbeat(r, m1->id, NULL, 1)->error, 0);
	}
	cr_expect(!sync->answered);
	rig_pass(r, 2000);
	cr_expect_eq(sync->error, 27);
	cr_expect_geq(sync->answered_us, start + 20000000);
	cr_expect_leq(sync->answered_us, start + 20001000);
	cr_expect_eq(rig_heartbeat(r, m1->id, NULL, 1)->error, 25);
	cr_expect_eq(rig_heartbeat(r, m2->id, NULL, 1)->error, 27);
	cr_expect_eq(r->stats.group_sync_expired, 1);
	cr_expect_eq(rig_join(r, 9, m2->id, NULL, 10000, 20000, "range")->generation, 2);
}

Test(cases, b05_stable_but_one_never_syncs)
{
	struct call *m1 = rig_join_twice(r, 10000, 20000, "range");
	struct call *m2 = rig_join_twice(r, 10000, 20000, "range");
	rig_pass(r, 6000);
	rig_sync(r, 3, m1->id, NULL, 1, "");
	rig_settle(r);
	cr_assert_str_eq(rig_state(r), "Stable");
	for (int i = 0; i < 10; i++) {
		rig_pass(r, 2000);
		rig_heartbeat(r, m1->id, NULL, 1);
		rig_heartbeat(r, m2->id, NULL, 1);
	}
	cr_expect_str_eq(rig_state(r), "PreparingRebalance");
	cr_expect_eq(rig_heartbeat(r, m2->id, NULL, 1)->error, 25);
}

Test(cases, b07_parked_members_outlive_their_session)
{
	struct call *m1 = rig_join_twice(r, 6000, 60000, "range");
	struct call *m2 = rig_join_twice(r, 60000, 60000, "range");
	rig_pass(r, 6000);
	rig_sync_all(r, (struct call *[]){m1, m2}, 2, 1);
	struct call *m3 = rig_join_twice(r, 6000, 60000, "range");
	struct call *again = rig_join(r, 9, m1->id, NULL, 6000, 60000, "range");
	rig_pass(r, 30000);
	cr_expect(!again->answered);
	cr_expect_eq(rig_group(r)->members_len, 3);
	struct call *late = rig_join(r, 9, m2->id, NULL, 60000, 60000, "range");
	cr_expect_eq(late->error, 0);
	cr_expect_eq(again->error, 0);
	cr_expect_eq(m3->error, 0);
	cr_expect_eq(again->len, 3);
	/* and a parked sync: the leader takes 20 s, with heartbeats */
	struct call *sync = rig_sync(r, 3, m3->id, NULL, 2, "");
	for (int i = 0; i < 4; i++) {
		rig_pass(r, 5000);
		cr_assert_eq(rig_heartbeat(r, m1->id, NULL, 2)->error, 0);
	}
	rig_sync(r, 3, m1->id, NULL, 2, "");
	rig_settle(r);
	cr_expect_eq(sync->error, 0);
	cr_expect_eq(rig_group(r)->members_len, 3);
}

Test(cases, b08_leaving_completes_the_join)
{
	struct call *c[2];
	rig_stable(r, c, 2);
	struct call *m3 = rig_join_twice(r, 10000, 60000, "range");
	struct call *again = rig_join(r, 9, c[0]->id, NULL, 10000, 60000, "range");
	cr_expect(!m3->answered);
	rig_leave(r, 1, c[1]->id);
	cr_expect_eq(m3->error, 0);
	cr_expect_eq(again->error, 0);
	cr_expect_eq(again->len, 2);
}

Test(cases, b09_initial_delay)
{
	struct call *m1 = rig_join_twice(r, 10000, 60000, "range");
	rig_pass(r, 1000);
	struct call *m2 = rig_join_twice(r, 10000, 60000, "range");
	rig_pass(r, 2500);
	cr_expect(!m1->answered);
	struct call *m3 = rig_join_twice(r, 10000, 60000, "range");
	rig_pass(r, 2500);
	cr_expect(!m1->answered); /* at 6 s: m3 came in the second period */
	rig_pass(r, 3000);
	cr_expect_eq(m1->generation, 1);
	cr_expect_eq(m2->generation, 1);
	cr_expect_eq(m3->generation, 1);
	cr_expect_eq(m1->len, 3);
}

Test(cases, b10_version_0_has_no_rebalance_timeout)
{
	struct call *m1 = rig_join(r, 0, "", NULL, 30000, -1, "range");
	rig_pass(r, 3000);
	cr_assert_eq(m1->error, 0);
	rig_sync(r, 0, m1->id, NULL, 1, "");
	rig_settle(r);
	struct call *m2 = rig_join(r, 0, "", NULL, 30000, -1, "range");
	rig_pass(r, 20000);
	cr_expect_eq(rig_heartbeat(r, m1->id, NULL, 1)->error, 27);
	struct call *again = rig_join(r, 0, m1->id, NULL, 30000, -1, "range");
	cr_expect_eq(again->error, 0);
	cr_expect_eq(m2->error, 0);
	cr_expect_eq(rig_group(r)->members_len, 2);
}

Test(cases, b11_empty_protocol_list)
{
	struct call *c = rig_join_to(r, "g", 2, "", NULL, 10000, 60000, "", "");
	cr_expect_eq(c->error, 23);
	rig_settle(r);
	cr_expect_eq(rig_group(r)->members_len, 0);
	cr_expect_eq(rig_commit(r, 8, "m", NULL, 1, "t:0=1")->error, 25); /* as measured on a real broker */
}

Test(cases, b12_protocol_vote)
{
	struct call *m1 = rig_join_twice(r, 10000, 60000, "a,b");
	struct call *m2 = rig_join_twice(r, 10000, 60000, "b,c");
	rig_pass(r, 6000);
	cr_expect_str_eq(m1->protocol, "b");
	rig_sync_as(r, "g", 5, m1->id, NULL, 1, "consumer", "b", "");
	rig_settle(r);
	cr_expect_eq(rig_join(r, 4, "", NULL, 10000, 60000, "a")->error, 23);
	struct call *m3 = rig_join_twice(r, 10000, 60000, "c,b");
	rig_join(r, 9, m1->id, NULL, 10000, 60000, "a,b");
	rig_join(r, 9, m2->id, NULL, 10000, 60000, "b,c");
	cr_expect_str_eq(m3->protocol, "b");
	rig_leave(r, 1, m1->id); /* now c is a candidate as well: one vote each, what is in use stays */
	struct call *again2 = rig_join(r, 9, m2->id, NULL, 10000, 60000, "b,c");
	struct call *again3 = rig_join(r, 9, m3->id, NULL, 10000, 60000, "c,b");
	cr_expect_eq(again2->error, 0);
	cr_expect_str_eq(again3->protocol, "b");
	struct call *m4 = rig_join_twice(r, 10000, 60000, "c,b"); /* two votes for c */
	rig_join(r, 9, m2->id, NULL, 10000, 60000, "b,c");
	rig_join(r, 9, m3->id, NULL, 10000, 60000, "c,b");
	cr_expect_str_eq(m4->protocol, "c");
}

Test(cases, b13_slow_leader)
{
	struct call *m1 = rig_join_twice(r, 30000, 60000, "range");
	struct call *m2 = rig_join_twice(r, 30000, 60000, "range");
	char list[512];
	rig_pass(r, 6000);
	struct call *early = rig_sync(r, 5, m2->id, NULL, 1, "");
	rig_pass(r, 10000);
	cr_expect(!early->answered);
	snprintf(list, sizeof(list), "%s=1,%s=2", m1->id, m2->id);
	rig_sync(r, 5, m1->id, NULL, 1, list);
	rig_settle(r);
	cr_expect_str_eq(early->assignment, "2");
}

Test(cases, b16_one_generation_per_join_phase)
{
	struct call *c[2];
	rig_stable(r, c, 2);
	struct call *x = rig_join(r, 5, c[0]->id, NULL, 10000, 60000, "range");
	struct call *y = rig_join(r, 5, c[0]->id, NULL, 10000, 60000, "range");
	struct call *z = rig_join(r, 5, c[0]->id, NULL, 10000, 60000, "range");
	cr_expect_eq(x->error, 27);
	cr_expect_eq(y->error, 27);
	cr_expect(!z->answered);
	rig_join(r, 5, c[1]->id, NULL, 10000, 60000, "range");
	cr_expect_eq(z->generation, 2);
}

Test(cases, b18_heartbeat_by_state)
{
	struct call *c[2];
	cr_expect_eq(rig_heartbeat(r, "nobody", NULL, 1)->error, 25);
	rig_stable(r, c, 2);
	cr_expect_eq(rig_heartbeat(r, c[0]->id, NULL, 1)->error, 0);
	cr_expect_eq(rig_heartbeat(r, c[0]->id, NULL, 2)->error, 22);
	struct call *m3 = rig_join_twice(r, 10000, 60000, "range");
	for (int i = 0; i < 5; i++) { /* 27, and the session starts anew each time */
		rig_pass(r, 9000);
		for (int m = 0; m < 2; m++)
			cr_assert_eq(rig_heartbeat(r, c[m]->id, NULL, 1)->error, 27);
	}
	for (int m = 0; m < 2; m++)
		rig_join(r, 9, c[m]->id, NULL, 10000, 60000, "range");
	cr_assert_eq(m3->error, 0);
	for (int i = 0; i < 3; i++) { /* the assignment is awaited: 0, and the session starts anew as well */
		cr_assert_str_eq(rig_state(r), "CompletingRebalance");
		rig_pass(r, 9000);
		for (int m = 0; m < 2; m++)
			cr_assert_eq(rig_heartbeat(r, c[m]->id, NULL, 2)->error, 0);
		cr_assert_eq(rig_heartbeat(r, m3->id, NULL, 2)->error, 0);
	}
	char all[3 * RIG_TEXT];
	snprintf(all, sizeof(all), "%s,%s,%s", c[0]->id, c[1]->id, m3->id);
	rig_leave_many(r, "g", all);
	cr_assert_str_eq(rig_state(r), "Empty");
	cr_expect_eq(rig_heartbeat(r, c[0]->id, NULL, 3)->error, 25);
	shard_stop(r->shard, r->now);
	cr_expect_eq(rig_heartbeat(r, c[0]->id, NULL, 3)->error, 15);
}

Test(cases, b24_group_max_size)
{
	r->settings.group_max_size = 2;
	struct call *p[3], *j[3];
	for (int i = 0; i < 3; i++)
		p[i] = rig_join(r, 4, "", NULL, 10000, 60000, "range");
	for (int i = 0; i < 3; i++) {
		cr_expect_eq(p[i]->error, 79);
		j[i] = rig_join(r, 4, p[i]->id, NULL, 10000, 60000, "range");
	}
	cr_expect_eq(j[2]->error, 81);
	cr_expect_str_eq(j[2]->id, "");
	cr_expect_eq(rig_group(r)->pending_len, 0);
	rig_pass(r, 6000);
	cr_expect_eq(j[0]->error, 0);
	cr_expect_eq(j[1]->error, 0);
	rig_sync_all(r, j, 2, 1);
	cr_expect_eq(rig_join(r, 4, "", NULL, 10000, 60000, "range")->error, 81);
	cr_expect_eq(rig_join(r, 4, j[1]->id, NULL, 10000, 60000, "range")->error, 0);
	cr_expect_eq(rig_group(r)->members_len, 2);
}

Test(cases, b24_limit_lowered_before_a_reload)
{
	struct call *c[4];
	rig_stable(r, c, 4);
	r->settings.group_max_size = 2;
	rig_reload(r);
	cr_expect_str_eq(rig_state(r), "PreparingRebalance");
	struct call *j[4];
	for (int i = 0; i < 4; i++)
		j[i] = rig_join(r, 9, c[i]->id, NULL, 10000, 60000, "range");
	cr_expect_eq(j[2]->error, 81);
	cr_expect_eq(j[3]->error, 81);
	cr_expect_eq(j[0]->error, 0);
	cr_expect_eq(j[1]->error, 0);
	cr_expect_eq(rig_group(r)->generation, 2);
}
