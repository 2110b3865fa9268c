/* test_shard.c - what a shard shows to others, its wishes, and its end. */
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

TestSuite(shard, .init = setup, .fini = teardown);

static char seen[512];

static void visit_group(void *arg, const struct shard_group *g)
{
	snprintf(seen + strlen(seen), sizeof(seen) - strlen(seen), "%.*s %s gen %d members %u pending %u protocol %d leader %d;", g->id.len,
		 (const char *)g->id.p, g->state, g->generation, g->members, g->pending, g->protocol.len, g->leader.len);
}

static void visit_offset(void *arg, struct bytes topic, int32_t partition, const struct offset_value *v)
{
	snprintf(seen + strlen(seen), sizeof(seen) - strlen(seen), "%.*s:%d=%lld/%.*s;", topic.len, (const char *)topic.p, partition,
		 (long long)v->offset, v->metadata.len, (const char *)v->metadata.p);
}

Test(shard, shows_groups_and_offsets)
{
	struct call *c[2];
	rig_stable(r, c, 2);
	rig_join(r, 4, "", NULL, 10000, 60000, "range");
	shard_group_each(r->shard, visit_group, NULL);
	cr_expect_str_eq(seen, "g Stable gen 1 members 2 pending 1 protocol 5 leader 43;");
	rig_commit(r, 8, c[0]->id, NULL, 1, "t:3=5/m,u:0=6,t:1=7");
	rig_settle(r);
	seen[0] = '\0';
	shard_offset_each(r->shard, bytes_str("g"), visit_offset, NULL);
	cr_expect_str_eq(seen, "t:3=5/m;t:1=7/;u:0=6/;");
	shard_offset_each(r->shard, bytes_str("unknown"), visit_offset, NULL);
	cr_expect_eq(shard_number(r->shard), 7);
	cr_expect_eq(r->stats.group_groups_now, 1);
	cr_expect_eq(r->stats.group_members_now, 2);
}

Test(shard, wishes)
{
	cr_expect_eq(shard_tick(r->shard, 100, r->now), TIME_NEVER);
	rig_log_hold(r, true);
	rig_join(r, 3, "", NULL, 10000, 60000, "range");
	shard_tick(r->shard, 100, r->now);
	cr_expect(shard_writes(r->shard), "a record is on its way");
	rig_log_hold(r, false);
	rig_settle(r);
	uint64_t wish = shard_tick(r->shard, 100, r->now);
	cr_expect_gt(wish, r->now.us);
	cr_expect_leq(wish, r->now.us + 3001000);
}

Test(shard, stop_answers_everything_parked)
{
	struct call *c[2];
	rig_stable(r, c, 2);
	struct call *join = rig_join(r, 9, c[0]->id, NULL, 10000, 60000, "range");
	rig_log_hold(r, true);
	rig_join_to(r, "h", 4, "", NULL, 10000, 60000, "consumer", "range");
	struct call *commit = rig_commit(r, 8, c[1]->id, NULL, 1, "t:0=1");
	shard_stop(r->shard, r->now);
	shard_stop(r->shard, r->now);
	cr_expect_eq(join->error, 16);
	cr_expect_str_eq(join->id, c[0]->id);
	rig_log_hold(r, false);
	rig_settle(r);
	cr_expect_eq(commit->error, 0); /* what was on its way still becomes durable and is answered */
	cr_expect_eq(rig_leave(r, 1, c[0]->id)->error, 15);
	cr_expect_eq(rig_join_to(r, "new", 3, "", NULL, 10000, 60000, "consumer", "range")->error, 15, "no new group is begun");
	cr_expect_eq(rig_join_to(r, "new", 4, "", NULL, 10000, 60000, "consumer", "range")->error, 15);
	cr_expect_eq(rig_commit_full(r, "new", 8, "", NULL, -1, "t:0=1", -1, -1)->error, 15);
	cr_expect_null(group_find(r->shard, BYTES_LITERAL("new")));
	rig_pass(r, 1000000);
}

Test(shard, freed_with_everything_parked_and_in_flight)
{
	struct call *c[2];
	rig_stable(r, c, 2);
	rig_log_hold(r, true);
	rig_join(r, 9, c[0]->id, NULL, 10000, 60000, "range");
	rig_join(r, 9, "", "inst", 10000, 60000, "range");
	rig_join(r, 9, "", NULL, 10000, 60000, "range");
	rig_commit(r, 8, c[1]->id, NULL, 1, "t:0=1");
}
