/* test_describe.c - what the admin APIs are shown of groups and members (group-protocol 1.15). */
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

TestSuite(describe, .init = setup, .fini = teardown);

#define G BYTES_LITERAL("g")

struct seen {
	unsigned int len, with_metadata, with_assignment;
	struct shard_member last;
};

static void see(void *arg, const struct shard_member *m)
{
	struct seen *s = arg;
	s->len++;
	s->with_metadata += m->metadata.len > 0;
	s->with_assignment += m->assignment.len > 0;
	s->last = *m;
}

static struct seen members(void)
{
	struct seen s = {0};
	shard_member_each(r->shard, G, see, &s);
	return s;
}

Test(describe, unknown_group)
{
	struct shard_group g;
	cr_expect_eq(shard_group_get(r->shard, G, &g), 69);
	cr_expect_eq(members().len, 0);
}

Test(describe, every_state)
{
	struct shard_group g;
	struct call *first = rig_join_twice(r, 10000, 60000, "range=sub");
	cr_assert_eq(shard_group_get(r->shard, G, &g), 0);
	cr_expect_str_eq(g.state, "PreparingRebalance");
	cr_expect(!g.stable);
	cr_expect(bytes_equal(g.protocol_type, BYTES_LITERAL("consumer")));
	cr_expect_eq(members().len, 1);
	cr_expect_eq(members().with_metadata, 0);

	rig_pass(r, 6000);
	cr_assert_eq(shard_group_get(r->shard, G, &g), 0);
	cr_expect_str_eq(g.state, "CompletingRebalance");
	cr_expect_eq(members().with_metadata, 0, "about to change");

	rig_sync_all(r, &first, 1, first->generation);
	cr_assert_eq(shard_group_get(r->shard, G, &g), 0);
	cr_expect_str_eq(g.state, "Stable");
	cr_expect(g.stable && bytes_equal(g.protocol, BYTES_LITERAL("range")));
	struct seen s = members();
	cr_expect(s.len == 1 && s.with_metadata == 1 && s.with_assignment == 1);
	cr_expect(bytes_equal(s.last.id, bytes_str(first->id)) && bytes_is_null(s.last.instance_id));
	cr_expect(bytes_equal(s.last.client_id, BYTES_LITERAL("client")) && bytes_equal(s.last.host, BYTES_LITERAL("/10.1.2.3")));
	cr_expect(bytes_equal(s.last.metadata, BYTES_LITERAL("sub")) && bytes_equal(s.last.assignment, BYTES_LITERAL("0")));

	rig_leave(r, 1, first->id);
	rig_settle(r);
	cr_assert_eq(shard_group_get(r->shard, G, &g), 0);
	cr_expect_str_eq(g.state, "Empty");
	cr_expect(bytes_equal(g.protocol_type, BYTES_LITERAL("consumer")) && g.members == 0);

	shard_stop(r->shard, r->now);
	cr_expect_eq(shard_group_get(r->shard, G, &g), 15);
}

Test(describe, an_id_that_was_only_handed_out_is_no_member)
{
	struct shard_group g;
	cr_assert_eq(rig_join(r, 9, "", NULL, 10000, 60000, "range")->error, 79);
	cr_assert_eq(shard_group_get(r->shard, G, &g), 0);
	cr_expect_eq(g.pending, 1);
	cr_expect_eq(g.members, 0);
	cr_expect_eq(members().len, 0);
	rig_pass(r, 11000);
}

Test(describe, a_simple_group_has_no_type)
{
	struct shard_group g;
	rig_commit(r, 8, "", NULL, -1, "t:0=1");
	cr_expect_eq(shard_group_get(r->shard, G, &g), 69, "not before it is durable");
	rig_settle(r);
	cr_assert_eq(shard_group_get(r->shard, G, &g), 0);
	cr_expect_str_eq(g.state, "Empty");
	cr_expect(bytes_is_null(g.protocol_type));
}
