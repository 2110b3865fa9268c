/* test_heartbeat.c - Heartbeat by state (group-protocol 1.7) and the memo of the connection. */
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

TestSuite(heartbeat, .init = setup, .fini = teardown);

Test(heartbeat, answers_by_state)
{
	struct call *c[2];
	cr_expect_eq(rig_heartbeat_to(r, "", "x", NULL, 1)->error, 24);
	cr_expect_eq(rig_heartbeat_to(r, "unknown", "x", NULL, 1)->error, 25);
	rig_stable(r, c, 2);
	cr_expect_eq(rig_heartbeat(r, c[0]->id, NULL, 1)->error, 0);
	cr_expect_eq(rig_heartbeat(r, "stranger", NULL, 1)->error, 25);
	cr_expect_eq(rig_heartbeat(r, "stranger", NULL, 99)->error, 25); /* before 22 */
	cr_expect_eq(rig_heartbeat(r, c[0]->id, NULL, 0)->error, 22);
	cr_expect_eq(rig_heartbeat(r, c[0]->id, "nobody", 1)->error, 25);
	rig_join(r, 9, c[0]->id, NULL, 10000, 60000, "range");
	cr_expect_eq(rig_heartbeat(r, c[1]->id, NULL, 1)->error, 27);
	cr_expect_eq(rig_heartbeat(r, c[1]->id, NULL, 0)->error, 22); /* before 27 */
	rig_join(r, 9, c[1]->id, NULL, 10000, 60000, "range");
	cr_expect_str_eq(rig_state(r), "CompletingRebalance");
	cr_expect_eq(rig_heartbeat(r, c[1]->id, NULL, 2)->error, 0);
	rig_leave(r, 1, c[0]->id);
	rig_leave(r, 1, c[1]->id);
	cr_expect_str_eq(rig_state(r), "Empty");
	cr_expect_eq(rig_heartbeat(r, c[1]->id, NULL, 3)->error, 25);
	shard_stop(r->shard, r->now);
	cr_expect_eq(rig_heartbeat(r, c[1]->id, NULL, 3)->error, 15);
}

Test(heartbeat, preparing_restarts_the_session)
{
	struct call *c[2];
	rig_stable(r, c, 2);
	rig_join(r, 9, c[0]->id, NULL, 10000, 60000, "range");
	for (int i = 0; i < 5; i++) {
		rig_pass(r, 9000);
		cr_expect_eq(rig_heartbeat(r, c[1]->id, NULL, 1)->error, 27);
	}
	cr_expect_eq(rig_group(r)->members_len, 2);
}

static int beat(struct member_memo *memo, const char *group, const char *id, const char *instance, int generation)
{
	struct call *c = calloc(1, sizeof(*c));
	struct heartbeat_request in = {bytes_str(group), generation, bytes_str(id), bytes_str(instance)};
	*c = *rig_heartbeat_to(r, "unknown", "", NULL, 0); /* borrows the answer function */
	c->answered = false;
	c->rq.memo = memo;
	shard_heartbeat(r->shard, &c->rq, &in, r->now);
	int error = c->error;
	free(c);
	return error;
}

Test(heartbeat, memo_is_used_and_never_trusted_blindly)
{
	struct call *c[2];
	struct member_memo memo = {0};
	rig_stable(r, c, 2);
	struct call *s = rig_join(r, 5, "", "inst", 10000, 60000, "range");
	for (int i = 0; i < 2; i++)
		rig_join(r, 9, c[i]->id, NULL, 10000, 60000, "range");
	cr_assert_eq(s->generation, 2);
	uint64_t before = r->stats.group_heartbeats_memo;
	cr_expect_eq(beat(&memo, "g", c[0]->id, NULL, 2), 0);
	cr_expect_eq(r->stats.group_heartbeats_memo, before);
	cr_expect_eq(beat(&memo, "g", c[0]->id, NULL, 2), 0);
	cr_expect_eq(r->stats.group_heartbeats_memo, before + 1);
	/* another member, another group, a wrong generation, an instance id that is not the member's */
	cr_expect_eq(beat(&memo, "g", c[1]->id, NULL, 2), 0);
	cr_expect_eq(r->stats.group_heartbeats_memo, before + 1);
	cr_expect_eq(beat(&memo, "h", c[1]->id, NULL, 2), 25);
	cr_expect_eq(beat(&memo, "g", c[1]->id, NULL, 1), 22);
	cr_expect_eq(r->stats.group_heartbeats_memo, before + 2);
	cr_expect_eq(beat(&memo, "g", c[1]->id, "inst", 2), 82);
	cr_expect_eq(beat(&memo, "g", s->id, "inst", 2), 0);
	cr_expect_eq(beat(&memo, "g", s->id, "inst", 2), 0);
	cr_expect_eq(beat(&memo, "g", s->id, NULL, 2), 0);
	cr_expect_eq(beat(&memo, "g", s->id, "nobody", 2), 25);
	/* the member leaves, its slot is used again by the next member: the memo is stale */
	cr_expect_eq(beat(&memo, "g", s->id, NULL, 2), 0);
	const struct member *slot = memo.member;
	rig_leave_many(r, "g", "|inst");
	cr_expect_eq(beat(&memo, "g", s->id, NULL, 2), 25); /* and before that it is free, its texts are gone */
	rig_join(r, 3, "", NULL, 10000, 60000, "range");
	cr_assert(slot->tag != 0 && slot->tag != memo.tag); /* the slab gave the same slot */
	cr_expect_eq(beat(&memo, "g", s->id, NULL, 2), 25);
}

Test(heartbeat, memo_is_stale_after_a_static_replacement)
{
	struct member_memo memo = {0};
	struct call *s = rig_join(r, 5, "", "inst", 10000, 60000, "range");
	rig_pass(r, 3000);
	rig_sync(r, 3, s->id, "inst", 1, "");
	rig_settle(r);
	cr_expect_eq(beat(&memo, "g", s->id, "inst", 1), 0);
	struct call *n = rig_join(r, 5, "", "inst", 10000, 60000, "range");
	rig_settle(r);
	cr_assert_eq(n->error, 0);
	cr_expect_eq(beat(&memo, "g", s->id, "inst", 1), 82);
	cr_expect_eq(beat(&memo, "g", s->id, NULL, 1), 25);
	cr_expect_eq(beat(&memo, "g", n->id, "inst", 1), 0);
}

Test(heartbeat, allocates_and_logs_nothing)
{
	struct call *c[1];
	rig_stable(r, c, 1);
	unsigned int records = rig_log_records(r);
	struct member *m = rig_group(r)->members[0];
	uint64_t hung = m->session.timer.when;
	rig_pass(r, 1000);
	rig_heartbeat(r, c[0]->id, NULL, 1);
	cr_expect_eq(m->session.deadline, r->now.us + 10000000);
	cr_expect_eq(m->session.timer.when, hung); /* lazily: the timer has not moved */
	cr_expect_eq(rig_log_records(r), records);
}
