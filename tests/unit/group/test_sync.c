/* test_sync.c - SyncGroup: validation in order, parking, the leader's record, failures (group-protocol 1.6). */
#include <criterion/criterion.h>

#include "rig.h"

static struct rig *r;
static struct call *a, *b;

/* Two members, generation 1, CompletingRebalance; a leads. */
static void setup(void)
{
	r = rig_new();
	a = rig_join_twice(r, 10000, 60000, "range=sa");
	b = rig_join_twice(r, 10000, 60000, "range=sb");
	rig_pass(r, 6000);
	cr_assert_str_eq(rig_state(r), "CompletingRebalance");
	cr_assert_str_eq(a->leader, a->id);
}

static void teardown(void)
{
	rig_free(r);
}

TestSuite(sync, .init = setup, .fini = teardown);

static void expect_error(const struct call *c, int error)
{
	cr_expect(c->answered);
	cr_expect_eq(c->error, error, "got %d", c->error);
	cr_expect_str_eq(c->assignment, "");
}

static struct call *leader_sync(const char *for_a, const char *for_b)
{
	char list[512];
	snprintf(list, sizeof(list), "%s=%s,%s=%s", a->id, for_a, b->id, for_b);
	return rig_sync(r, 5, a->id, NULL, 1, list);
}

Test(sync, validation_order)
{
	expect_error(rig_sync_as(r, "", 5, "x", NULL, 9, NULL, "range", ""), 23);
	expect_error(rig_sync_as(r, "g", 5, a->id, NULL, 1, "consumer", NULL, ""), 23);
	expect_error(rig_sync_as(r, "", 5, "x", NULL, 9, "consumer", "range", ""), 24);
	expect_error(rig_sync_as(r, "unknown", 5, "x", NULL, 9, "consumer", "range", ""), 25);
	expect_error(rig_sync(r, 3, "stranger", NULL, 1, ""), 25);
	expect_error(rig_sync(r, 3, a->id, "nobody", 1, ""), 25);
	expect_error(rig_sync(r, 3, a->id, NULL, 2, ""), 22);
	expect_error(rig_sync(r, 3, a->id, NULL, 0, ""), 22);
	expect_error(rig_sync_as(r, "g", 5, a->id, NULL, 1, "connect", "range", ""), 23);
	expect_error(rig_sync_as(r, "g", 5, a->id, NULL, 1, "consumer", "other", ""), 23);
	cr_expect_str_eq(rig_state(r), "CompletingRebalance");
	rig_join(r, 9, a->id, NULL, 10000, 60000, "range=changed");
	expect_error(rig_sync(r, 3, b->id, NULL, 1, ""), 27);
	expect_error(rig_sync(r, 3, b->id, NULL, 7, ""), 22); /* before 27 */
}

Test(sync, empty_and_dead_group)
{
	rig_leave_many(r, "g", a->id);
	rig_leave_many(r, "g", b->id);
	cr_expect_str_eq(rig_state(r), "Empty");
	expect_error(rig_sync(r, 3, a->id, NULL, 1, ""), 25);
	shard_stop(r->shard, r->now);
	expect_error(rig_sync(r, 3, a->id, NULL, 1, ""), 15);
}

Test(sync, followers_wait_for_the_record_not_for_the_request)
{
	struct call *fb = rig_sync(r, 5, b->id, NULL, 1, "");
	rig_pass(r, 5000);
	cr_expect(!fb->answered);
	rig_log_hold(r, true);
	unsigned int before = rig_log_records(r);
	struct call *fa = leader_sync("A", "B");
	rig_settle(r);
	cr_expect_eq(rig_log_records(r), before + 1);
	cr_expect(!fa->answered && !fb->answered);
	cr_expect_str_eq(rig_state(r), "CompletingRebalance");
	cr_expect_eq(rig_heartbeat(r, b->id, NULL, 1)->error, 0); /* others are served meanwhile */
	rig_log_hold(r, false);
	rig_settle(r);
	cr_expect_str_eq(rig_state(r), "Stable");
	cr_expect_str_eq(fa->assignment, "A");
	cr_expect_str_eq(fb->assignment, "B");
	cr_expect_str_eq(fb->protocol, "range");
	cr_expect_str_eq(fb->type, "consumer");
	/* Stable answers at once, whatever the leader says now */
	struct call *again = leader_sync("X", "Y");
	cr_expect_str_eq(again->assignment, "A");
	cr_expect_eq(rig_log_records(r), before + 1);
}

Test(sync, the_record)
{
	leader_sync("A", "B");
	rig_settle(r);
	struct record_group g;
	struct record_member m;
	cr_assert(record_group_decode(&g, rig_log_entry(r, rig_log_records(r) - 1).value));
	cr_expect_eq(g.version, 3);
	cr_expect_eq(g.generation, 1);
	cr_expect(bytes_equal(g.leader, bytes_str(a->id)));
	cr_expect(bytes_equal(g.protocol, BYTES_LITERAL("range")));
	cr_expect_eq(g.members_len, 2);
	cr_assert(record_group_next(&g, &m));
	cr_expect(bytes_equal(m.id, bytes_str(a->id)));
	cr_expect(bytes_equal(m.subscription, BYTES_LITERAL("sa")));
	cr_expect(bytes_equal(m.assignment, BYTES_LITERAL("A")));
	cr_expect(bytes_equal(m.host, BYTES_LITERAL("/10.1.2.3")));
}

Test(sync, forgotten_and_invented_members)
{
	char list[512];
	snprintf(list, sizeof(list), "nobody=N,%s=A", a->id);
	struct call *fb = rig_sync(r, 5, b->id, NULL, 1, "");
	struct call *fa = rig_sync(r, 5, a->id, NULL, 1, list);
	rig_settle(r);
	cr_expect_str_eq(fa->assignment, "A");
	cr_expect_eq(fb->error, 0);
	cr_expect_str_eq(fb->assignment, "");
}

Test(sync, a_follower_between_request_and_record)
{
	rig_log_hold(r, true);
	struct call *fa = leader_sync("A", "B");
	struct call *fb = rig_sync(r, 5, b->id, NULL, 1, "");
	struct call *second = leader_sync("C", "D"); /* the leader asks again: no second record, the older request is superseded */
	unsigned int records = rig_log_records(r);
	cr_expect_eq(records, 2);
	expect_error(fa, 27);
	rig_log_hold(r, false);
	rig_settle(r);
	cr_expect_str_eq(fb->assignment, "B");
	cr_expect_str_eq(second->assignment, "A");
}

Test(sync, a_record_that_comes_too_late_changes_nothing)
{
	rig_log_hold(r, true);
	struct call *fa = leader_sync("A", "B");
	struct call *fb = rig_sync(r, 5, b->id, NULL, 1, "");
	struct call *n = rig_join(r, 3, "", NULL, 10000, 60000, "range"); /* a new member: rebalance */
	expect_error(fa, 27);
	expect_error(fb, 27);
	rig_log_hold(r, false);
	rig_settle(r);
	cr_expect_str_eq(rig_state(r), "PreparingRebalance");
	rig_join(r, 9, a->id, NULL, 10000, 60000, "range=sa");
	rig_join(r, 9, b->id, NULL, 10000, 60000, "range=sb");
	cr_expect_eq(n->error, 0);
	cr_expect_eq(n->generation, 2);
	cr_expect_str_eq(rig_state(r), "CompletingRebalance");
}

Test(sync, failed_append)
{
	static const struct {
		int log, client;
	} errors[] = {{3, 15}, {7, 15}, {19, 15}, {6, 16}, {56, 16}, {10, -1}, {18, -1}, {4, -1}};
	for (unsigned int i = 0; i < ARRAY_LEN(errors); i++) {
		int generation = rig_group(r)->generation;
		struct call *fb = rig_sync(r, 5, b->id, NULL, generation, "");
		rig_log_fail(r, errors[i].log);
		struct call *fa = rig_sync(r, 5, a->id, NULL, generation, "");
		rig_log_fail(r, 0);
		expect_error(fa, errors[i].client);
		expect_error(fb, errors[i].client);
		cr_expect_str_eq(rig_state(r), "PreparingRebalance");
		rig_join(r, 9, a->id, NULL, 10000, 60000, "range=sa");
		rig_join(r, 9, b->id, NULL, 10000, 60000, "range=sb");
		cr_expect_eq(rig_group(r)->generation, generation + 1);
	}
}

/* No generation could be stored any more, so none begins: the members hear that the coordinator is not here, and do not come back at once. */
Test(sync, broken_log_begins_no_generation)
{
	struct call *fa = leader_sync("x", "y");
	rig_log_break(r, 56);
	rig_settle(r);
	expect_error(fa, 16);
	int generation = rig_group(r)->generation;
	for (unsigned int i = 0; i < 5; i++) {
		struct call *ja = rig_join(r, 9, a->id, NULL, 10000, 60000, "range=sa"), *jb = rig_join(r, 9, b->id, NULL, 10000, 60000, "range=sb");
		rig_pass(r, 100);
		cr_expect(ja->answered && ja->error == 16, "got %d", ja->error);
		cr_expect(jb->answered && jb->error == 16, "got %d", jb->error);
		struct call *beat = rig_heartbeat(r, a->id, NULL, generation);
		cr_expect(beat->answered && beat->error == 27, "got %d", beat->error);
	}
	cr_expect_eq(rig_group(r)->generation, generation);
}

Test(sync, dropped_connection_of_a_parked_sync)
{
	struct call *fb = rig_sync(r, 5, b->id, NULL, 1, "");
	rig_drop(fb);
	leader_sync("A", "B");
	rig_settle(r);
	cr_expect_str_eq(rig_state(r), "Stable");
	cr_expect_str_eq(rig_sync(r, 5, b->id, NULL, 1, "")->assignment, "B");
}

Test(sync, dropped_leader_after_its_record_was_appended)
{
	rig_log_hold(r, true);
	struct call *fb = rig_sync(r, 5, b->id, NULL, 1, "");
	rig_drop(leader_sync("A", "B"));
	rig_log_hold(r, false);
	rig_settle(r);
	cr_expect_str_eq(fb->assignment, "B");
	cr_expect_str_eq(rig_state(r), "Stable");
}

Test(sync, half_closed_leader)
{
	r->eof = true;
	expect_error(leader_sync("A", "B"), 27);
	cr_expect_str_eq(rig_state(r), "CompletingRebalance");
}

Test(sync, parked_sync_of_a_member_that_is_removed)
{
	struct call *fb = rig_sync(r, 5, b->id, NULL, 1, "");
	rig_leave(r, 2, b->id);
	expect_error(fb, 25);
	cr_expect_str_eq(rig_state(r), "PreparingRebalance");
}

Test(sync, stop_answers_parked)
{
	struct call *fb = rig_sync(r, 5, b->id, NULL, 1, "");
	shard_stop(r->shard, r->now);
	expect_error(fb, 16);
}

Test(sync, records_of_two_generations_in_flight)
{
	rig_log_hold(r, true);
	struct call *old = leader_sync("A", "B");
	rig_join(r, 9, a->id, NULL, 10000, 60000, "range=changed");
	rig_join(r, 9, b->id, NULL, 10000, 60000, "range=sb");
	expect_error(old, 27);
	cr_assert_eq(rig_group(r)->generation, 2);
	char list[512];
	snprintf(list, sizeof(list), "%s=A2,%s=B2", a->id, b->id);
	struct call *fb = rig_sync(r, 5, b->id, NULL, 2, "");
	struct call *fa = rig_sync(r, 5, a->id, NULL, 2, list);
	rig_log_hold(r, false);
	rig_settle(r);
	cr_expect_str_eq(fa->assignment, "A2");
	cr_expect_str_eq(fb->assignment, "B2");
	cr_expect_str_eq(rig_state(r), "Stable");
}

Test(sync, a_record_of_an_older_generation_in_completing)
{
	rig_log_hold(r, true);
	struct call *old = leader_sync("A", "B");
	rig_join(r, 9, a->id, NULL, 10000, 60000, "range=changed");
	rig_join(r, 9, b->id, NULL, 10000, 60000, "range=sb");
	struct call *fb = rig_sync(r, 5, b->id, NULL, 2, "");
	rig_log_hold(r, false);
	rig_settle(r);
	expect_error(old, 27);
	cr_expect(!fb->answered);
	cr_expect_str_eq(rig_state(r), "CompletingRebalance");
}
