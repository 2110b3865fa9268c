/* test_slice.c - what a request meets while a large group is served in slices; here a slice is one member. */
#include <criterion/criterion.h>

#include "rig.h"

#define MEMBERS 4

static struct rig *r;
static struct call *c[MEMBERS], *joins[MEMBERS];

/* All but the last member have joined again. */
static void setup(void)
{
	r = rig_new();
	rig_stable(r, c, MEMBERS);
	r->settings.group_slice = 1;
	shard_tick(r->shard, 1000, r->now);
	for (int i = 0; i < MEMBERS - 1; i++)
		joins[i] = rig_join(r, 9, c[i]->id, NULL, 10000, 60000, "range");
}

static void teardown(void)
{
	rig_free(r);
}

TestSuite(slice, .init = setup, .fini = teardown);

static void step(void)
{
	log_poll(&r->log->log, r->now);
	shard_tick(r->shard, 1000, r->now);
	rig_check(r);
}

static unsigned int answered(struct call *const *list)
{
	unsigned int n = 0;
	for (int i = 0; i < MEMBERS; i++)
		n += list[i]->answered;
	return n;
}

static void form(void)
{
	joins[MEMBERS - 1] = rig_join(r, 9, c[MEMBERS - 1]->id, NULL, 10000, 60000, "range");
	rig_check(r);
	while (rig_group(r)->state != GROUP_COMPLETING)
		step();
}

/* A follower whose join is not answered yet. */
static int unanswered(void)
{
	for (int i = 1; i < MEMBERS; i++)
		if (!joins[i]->answered)
			return i;
	cr_assert_fail("all are answered");
	return 0;
}

Test(slice, the_generation_is_new_for_all_and_the_leader_is_answered_last)
{
	form();
	cr_expect_lt(answered(joins), MEMBERS);
	int i = unanswered();
	cr_expect_eq(rig_heartbeat(r, c[i]->id, NULL, 1)->error, 22);
	cr_expect_eq(rig_heartbeat(r, c[i]->id, NULL, 2)->error, 0);
	cr_expect(!joins[i]->answered);
	while (answered(joins) < MEMBERS) {
		cr_expect(!joins[0]->answered);
		unsigned int before = answered(joins);
		step();
		cr_expect_leq(answered(joins), before + 2);
	}
	for (i = 0; i < MEMBERS; i++) {
		cr_expect_eq(joins[i]->error, 0);
		cr_expect_eq(joins[i]->generation, 2);
		cr_expect_eq(joins[i]->len, i == 0 ? MEMBERS : 0);
	}
}

Test(slice, a_sync_or_a_second_join_lets_the_answer_out_first)
{
	form();
	int i = unanswered();
	struct call *sync = rig_sync(r, 5, c[i]->id, NULL, 2, "");
	cr_expect_eq(joins[i]->error, 0);
	cr_expect(joins[i]->answered && !sync->answered);
	i = unanswered();
	struct call *again = rig_join(r, 9, c[i]->id, NULL, 10000, 60000, "range");
	cr_expect(joins[i]->answered && again->answered);
	cr_expect_eq(joins[i]->generation, 2);
	cr_expect_eq(again->generation, 2);
	struct call *lead = rig_join(r, 9, c[0]->id, NULL, 10000, 60000, "range");
	cr_expect_eq(joins[0]->len, MEMBERS);
	cr_expect_eq(lead->len, MEMBERS);
}

/* Whoever was not told its generation yet is in the next one already. */
Test(slice, joins_that_were_not_answered_count_for_the_next_rebalance)
{
	form();
	int i = unanswered();
	rig_leave(r, 1, c[i]->id);
	cr_expect_eq(joins[i]->error, 25);
	cr_expect_str_eq(rig_state(r), "PreparingRebalance");
	cr_expect(!joins[0]->answered);
	for (int k = 1; k < MEMBERS; k++)
		if (k != i && joins[k]->answered && joins[k]->error == 0)
			joins[k] = rig_join(r, 9, c[k]->id, NULL, 10000, 60000, "range");
	for (int n = 0; n < 12; n++)
		step();
	cr_expect_eq(answered(joins), MEMBERS);
	cr_expect_eq(joins[0]->generation, 3);
	cr_expect_eq(joins[0]->len, MEMBERS - 1);
}

Test(slice, a_connection_that_closes_takes_its_answer_along)
{
	form();
	int i = unanswered();
	rig_drop(joins[i]);
	for (int n = 0; n < 12; n++)
		step();
	cr_expect_eq(joins[0]->generation, 2);
	cr_expect_eq(rig_heartbeat(r, c[i]->id, NULL, 2)->error, 0);
	rig_pass(r, 9999);
	cr_expect_eq(rig_group(r)->members_len, MEMBERS);
}

/* Everybody has joined, but the round has no units left to form the generation. */
Test(slice, a_connection_that_closes_at_the_end_of_the_join_phase_costs_no_membership)
{
	r->shard->slice_left = 0;
	joins[MEMBERS - 1] = rig_join(r, 9, c[MEMBERS - 1]->id, NULL, 10000, 60000, "range");
	cr_assert(rig_group(r)->closing);
	rig_drop(joins[1]);
	for (int n = 0; n < 12; n++)
		step();
	cr_expect_eq(joins[0]->generation, 2);
	cr_expect_eq(joins[0]->len, MEMBERS);
	cr_expect_eq(rig_heartbeat(r, c[1]->id, NULL, 2)->error, 0);
}

Test(slice, whoever_joins_before_its_turn_to_be_removed_is_in)
{
	rig_drop(joins[0]);
	for (unsigned int n = 0; !rig_group(r)->closing; n++) {
		cr_assert_lt(n, 10000);
		if (n % 500 == 0) {
			rig_heartbeat(r, c[0]->id, NULL, 1);
			rig_heartbeat(r, c[MEMBERS - 1]->id, NULL, 1);
		}
		r->now.us += 10000;
		shard_tick(r->shard, 1000, r->now);
	}
	cr_expect_eq(rig_heartbeat(r, c[MEMBERS - 1]->id, NULL, 1)->error, 25); /* the last one is the first to go */
	cr_expect_eq(rig_heartbeat(r, c[0]->id, NULL, 1)->error, 27);
	joins[0] = rig_join(r, 9, c[0]->id, NULL, 10000, 60000, "range");
	for (int n = 0; n < 20; n++)
		step();
	cr_expect_eq(joins[0]->error, 0);
	cr_expect_eq(joins[0]->generation, 2);
	cr_expect_eq(joins[0]->len, MEMBERS - 1);
}

/* Forms generation 2 and hands in its assignment; the answers are not out yet. */
static struct call *syncs[MEMBERS];

static void store(void)
{
	char list[512] = "";
	form();
	while (answered(joins) < MEMBERS)
		step();
	for (int i = 0; i < MEMBERS; i++)
		snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s=%d,", c[i]->id, i);
	for (int i = MEMBERS; i-- > 0;)
		syncs[i] = rig_sync(r, 5, c[i]->id, NULL, 2, i == 0 ? list : "");
	cr_expect_eq(answered(syncs), 0);
}

Test(slice, an_assignment_is_written_and_told_piece_by_piece)
{
	store();
	cr_expect_str_eq(rig_state(r), "CompletingRebalance");
	unsigned int rounds = 0;
	while (answered(syncs) < MEMBERS) {
		unsigned int before = answered(syncs);
		step();
		cr_expect_leq(answered(syncs), before + 1);
		cr_assert_lt(++rounds, 100);
	}
	cr_expect_gt(rounds, 3 * MEMBERS);
	for (int i = 0; i < MEMBERS; i++)
		cr_expect_eq(atoi(syncs[i]->assignment), i);
}

Test(slice, a_member_that_leaves_ends_the_write)
{
	store();
	step();
	cr_assert(rig_group(r)->draft != NULL);
	rig_leave(r, 1, c[1]->id);
	cr_expect_str_eq(rig_state(r), "PreparingRebalance");
	cr_expect_eq(syncs[1]->error, 25);
	for (int n = 0; n < 20; n++)
		step();
	for (int i = 0; i < MEMBERS; i++)
		cr_expect_eq(syncs[i]->error, i == 1 ? 25 : 27);
}

Test(slice, no_old_assignment_comes_back_after_an_abandoned_one)
{
	store();
	while (r->shard->merge.group == NULL)
		step();
	step();
	rig_leave(r, 1, c[1]->id);
	for (int n = 0; n < 20; n++)
		step();
	for (uint32_t i = 0; i < rig_group(r)->members_len; i++)
		cr_expect(bytes_is_empty(member_assignment(rig_group(r)->members[i])));
}

Test(slice, whoever_syncs_while_others_are_expelled_stays)
{
	form();
	while (answered(joins) < MEMBERS)
		step();
	r->settings.group_slice = 1;
	for (int i = 0; i < MEMBERS; i++)
		member_find(rig_group(r), bytes_str(c[i]->id))->session_timeout_ms = 1800000;
	for (int i = 0; i < MEMBERS; i++)
		rig_heartbeat(r, c[i]->id, NULL, 2);
	while (!rig_group(r)->expelling) {
		r->now.us += 10000;
		shard_tick(r->shard, 1000, r->now);
	}
	uint32_t left = rig_group(r)->members_len;
	cr_assert(left > 1 && left <= MEMBERS);
	struct member *m = rig_group(r)->members[0];
	char id[RIG_TEXT];
	snprintf(id, sizeof(id), "%.*s", m->id.len, m->id.p);
	struct call *sync = rig_sync(r, 5, id, NULL, 2, "");
	for (int n = 0; n < 20; n++)
		step();
	cr_expect_eq(sync->error, 27);
	cr_expect_str_eq(rig_state(r), "PreparingRebalance");
	cr_expect_eq(rig_group(r)->members_len, 1);
}
