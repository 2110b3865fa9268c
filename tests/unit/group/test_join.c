/* test_join.c - JoinGroup: validation in order, new and known members, answers (group-protocol 1.4). */
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

TestSuite(join, .init = setup, .fini = teardown);

static void expect_error(const struct call *c, int error, const char *id)
{
	cr_expect(c->answered);
	cr_expect_eq(c->error, error, "got %d", c->error);
	cr_expect_str_eq(c->id, id);
	cr_expect_eq(c->generation, -1);
	cr_expect_str_eq(c->leader, "");
	cr_expect(c->type_null);
	cr_expect_eq(c->len, 0);
	cr_expect_eq(c->protocol_null, c->rq.version >= 7);
}

Test(join, group_id_then_session_then_existence)
{
	expect_error(rig_join_to(r, "", 5, "me", NULL, 1, 60000, "consumer", "range"), 24, "me");
	expect_error(rig_join_to(r, NULL, 5, "me", NULL, 10000, 60000, "consumer", "range"), 24, "me");
	expect_error(rig_join(r, 5, "me", NULL, 5999, 60000, "range"), 26, "me");
	expect_error(rig_join(r, 9, "me", NULL, 1800001, 60000, "range"), 26, "me");
	cr_expect_str_eq(rig_state(r), "none"); /* refusals make no group */
	expect_error(rig_join(r, 5, "me", NULL, 6000, 60000, "range"), 25, "me");
	cr_expect_str_eq(rig_state(r), "none");
	cr_expect_eq(rig_log_records(r), 0);
}

Test(join, unknown_group_is_made_and_recorded)
{
	struct call *c = rig_join(r, 4, "", NULL, 10000, 60000, "range");
	cr_expect_eq(c->error, 79);
	cr_expect_eq(strncmp(c->id, "client-", 7), 0);
	cr_expect_eq(strlen(c->id), 7 + 36);
	cr_expect_eq(c->id[7 + 14], '4');
	cr_expect_str_eq(rig_state(r), "Empty");
	cr_expect_eq(rig_log_records(r), 1);
	struct log_entry e = rig_log_entry(r, 0);
	struct record_group g;
	cr_assert(record_group_decode(&g, e.value));
	cr_expect_eq(g.generation, 0);
	cr_expect_eq(g.protocol_type.len, 0);
	cr_expect(bytes_is_null(g.protocol) && bytes_is_null(g.leader));
	cr_expect_eq(g.members_len, 0);
	cr_expect_eq(g.state_ms, r->now.wall_ms);
	cr_expect_eq(rig_group(r)->members_len, 0);
	cr_expect_eq(rig_group(r)->pending_len, 1);
}

Test(join, missing_client_id_counts_as_empty)
{
	r->client = NULL;
	cr_expect_eq(rig_join(r, 4, "", NULL, 10000, 60000, "range")->id[0], '-');
}

Test(join, long_client_id_gives_a_storable_member_id)
{
	static char name[32767 + 1];
	memset(name, 'c', 32767);
	r->client = name;
	struct call *c = rig_join(r, 3, "", NULL, 10000, 60000, "range");
	cr_expect(!c->answered);
	cr_expect_eq(rig_group(r)->members[0]->id.len, 32767);
	r->unchecked = true;
}

Test(join, protocol_check_of_an_empty_group)
{
	expect_error(rig_join_to(r, "g", 5, "", NULL, 10000, 60000, "", "range"), 23, "");
	expect_error(rig_join_to(r, "g", 5, "", NULL, 10000, 60000, "consumer", ""), 23, "");
	cr_expect_str_eq(rig_state(r), "Empty"); /* as a real broker has it: the group exists afterwards */
	expect_error(rig_join_to(r, "g", 2, "", NULL, 10000, 60000, "", ""), 23, "");
}

Test(join, protocol_check_against_members)
{
	struct call *c[2];
	rig_stable(r, c, 2);
	expect_error(rig_join_to(r, "g", 5, "", NULL, 10000, 60000, "connect", "range"), 23, "");
	expect_error(rig_join(r, 5, "", NULL, 10000, 60000, "roundrobin"), 23, "");
	expect_error(rig_join(r, 5, c[1]->id, NULL, 10000, 60000, "roundrobin"), 23, c[1]->id);
	expect_error(rig_join(r, 9, "stranger", NULL, 10000, 60000, "roundrobin"), 23, "stranger");
	cr_expect_str_eq(rig_state(r), "Stable");
	cr_expect_eq(rig_join(r, 5, "", NULL, 10000, 60000, "roundrobin,range")->error, 79);
}

Test(join, too_many_protocols)
{
	struct join_group_request in;
	static struct join_group_request_protocol list[257];
	join_group_request_init(&in);
	for (int i = 0; i < 257; i++)
		list[i] = (struct join_group_request_protocol){BYTES_LITERAL("p"), BYTES_EMPTY};
	in.protocols = list;
	in.protocols_len = 256;
	cr_expect(join_offers_fit(&in));
	in.protocols_len = 257;
	cr_expect(!join_offers_fit(&in));
}

Test(join, old_versions_are_added_at_once)
{
	struct call *c = rig_join(r, 3, "", NULL, 10000, 60000, "range");
	cr_expect(!c->answered);
	cr_expect_str_eq(rig_state(r), "PreparingRebalance");
	cr_expect_eq(rig_group(r)->members_len, 1);
	rig_pass(r, 2999);
	cr_expect(!c->answered);
	rig_pass(r, 1);
	cr_expect(c->answered);
	cr_expect_eq(c->error, 0);
	cr_expect_eq(c->generation, 1);
	cr_expect_str_eq(c->leader, c->id);
	cr_expect_str_eq(c->protocol, "range");
	cr_expect_str_eq(c->type, "consumer");
	cr_expect_eq(c->len, 1);
	cr_expect_str_eq(c->list[0].id, c->id);
	cr_expect_str_eq(c->list[0].metadata, "sub");
	cr_expect_not(c->skip);
	cr_expect_str_eq(rig_state(r), "CompletingRebalance");
}

Test(join, member_data)
{
	rig_join_twice(r, 10000, 60000, "range=a,roundrobin=b");
	const struct member *m = rig_group(r)->members[0];
	cr_expect_eq(m->id.len, 43);
	cr_expect(bytes_equal(m->host, BYTES_LITERAL("/10.1.2.3")));
	cr_expect(bytes_equal(m->client_id, BYTES_LITERAL("client")));
	cr_expect_eq(m->session_timeout_ms, 10000);
	cr_expect_eq(m->rebalance_timeout_ms, 60000);
	cr_expect_eq(m->offers->len, 2);
	cr_expect(m->is_new && !m->unnamed);
}

Test(join, only_the_leader_gets_the_list)
{
	struct call *c[3];
	rig_stable(r, c, 3);
	cr_expect_eq(c[0]->len, 3);
	cr_expect_eq(c[1]->len, 0);
	cr_expect_eq(c[2]->len, 0);
	cr_expect_str_eq(c[2]->leader, c[0]->id);
	cr_expect_eq(c[2]->generation, 1);
	cr_expect_str_eq(c[0]->list[2].id, c[2]->id);
}

Test(join, pending_id_with_instance_id_is_an_error)
{
	struct call *c = rig_join(r, 5, "", NULL, 10000, 60000, "range");
	expect_error(rig_join(r, 5, c->id, "inst", 10000, 60000, "range"), -1, "");
}

Test(join, identity_of_existing_members)
{
	struct call *c[2];
	rig_stable(r, c, 2);
	struct call *s = rig_join(r, 5, "", "inst", 10000, 60000, "range");
	expect_error(rig_join(r, 5, c[0]->id, "nobody", 10000, 60000, "range"), 25, c[0]->id);
	expect_error(rig_join(r, 5, c[0]->id, "inst", 10000, 60000, "range"), 82, c[0]->id);
	expect_error(rig_join(r, 5, "stranger", NULL, 10000, 60000, "range"), 25, "stranger");
	cr_expect(!s->answered);
}

Test(join, completing_unchanged_repeats_the_answer)
{
	struct call *a = rig_join_twice(r, 10000, 60000, "range=x");
	struct call *b = rig_join_twice(r, 10000, 60000, "range=y");
	rig_pass(r, 6000);
	cr_assert_str_eq(rig_state(r), "CompletingRebalance");
	struct call *again = rig_join(r, 9, a->id, NULL, 10000, 60000, "range=x");
	cr_expect(again->answered);
	cr_expect_eq(again->error, 0);
	cr_expect_eq(again->generation, 1);
	cr_expect_eq(again->len, 2);
	again = rig_join(r, 9, b->id, NULL, 10000, 60000, "range=y");
	cr_expect_eq(again->error, 0);
	cr_expect_eq(again->len, 0);
	cr_expect_str_eq(again->leader, a->id);
	cr_expect_str_eq(rig_state(r), "CompletingRebalance");
	/* changed: a new rebalance, in which the syncs of the old one fail */
	struct call *sync = rig_sync(r, 3, a->id, NULL, 1, "");
	again = rig_join(r, 9, b->id, NULL, 10000, 60000, "range=z");
	cr_expect(!again->answered);
	cr_expect_eq(sync->error, 27);
	cr_expect_str_eq(rig_state(r), "PreparingRebalance");
}

Test(join, stable_leader_always_rebalances)
{
	struct call *c[2];
	rig_stable(r, c, 2);
	struct call *again = rig_join(r, 9, c[0]->id, NULL, 10000, 60000, "range");
	cr_expect(!again->answered);
	cr_expect_str_eq(rig_state(r), "PreparingRebalance");
	struct call *other = rig_join(r, 9, c[1]->id, NULL, 10000, 60000, "range");
	cr_expect_eq(other->error, 0);
	cr_expect_eq(again->error, 0);
	cr_expect_eq(again->generation, 2);
}

Test(join, stable_follower_unchanged_and_changed)
{
	struct call *c[2];
	rig_stable(r, c, 2);
	unsigned int records = rig_log_records(r);
	struct call *again = rig_join(r, 9, c[1]->id, NULL, 12345, 60000, "range");
	cr_expect_eq(again->error, 0);
	cr_expect_eq(again->generation, 1);
	cr_expect_eq(again->len, 0);
	cr_expect_str_eq(again->leader, c[0]->id);
	cr_expect_eq(member_find(rig_group(r), bytes_str(c[1]->id))->session_timeout_ms, 10000);
	cr_expect_str_eq(rig_state(r), "Stable");
	cr_expect_eq(rig_log_records(r), records);
	again = rig_join(r, 9, c[1]->id, NULL, 12345, 61000, "range=other");
	cr_expect(!again->answered);
	cr_expect_eq(member_find(rig_group(r), bytes_str(c[1]->id))->session_timeout_ms, 12345);
	cr_expect_eq(member_find(rig_group(r), bytes_str(c[1]->id))->rebalance_timeout_ms, 61000);
	cr_expect_str_eq(rig_state(r), "PreparingRebalance");
}

Test(join, rejoining_from_elsewhere_updates_host_and_client)
{
	struct call *c[1];
	rig_stable(r, c, 1);
	r->peer++;
	r->client = "renamed";
	cr_assert_eq(rig_join(r, 9, c[0]->id, NULL, 10000, 60000, "range")->error, 0);
	const struct member *m = member_find(rig_group(r), bytes_str(c[0]->id));
	cr_expect(bytes_equal(m->host, BYTES_LITERAL("/10.1.2.4")));
	cr_expect(bytes_equal(m->client_id, BYTES_LITERAL("renamed")));
}

Test(join, member_of_an_emptied_group)
{
	struct call *c[1];
	rig_stable(r, c, 1);
	rig_leave(r, 2, c[0]->id);
	cr_expect_str_eq(rig_state(r), "Empty");
	expect_error(rig_join(r, 9, c[0]->id, NULL, 10000, 60000, "range"), 25, c[0]->id);
	cr_expect(bytes_equal(rig_group(r)->protocol_type, BYTES_LITERAL("consumer"))); /* kept */
	cr_expect(bytes_is_null(rig_group(r)->protocol));
	struct call *n = rig_join_to(r, "g", 3, "", NULL, 10000, 60000, "connect", "x");
	cr_expect(!n->answered);
	cr_expect(bytes_equal(rig_group(r)->protocol_type, BYTES_LITERAL("connect")));
}

Test(join, superseded_request_is_answered)
{
	struct call *c[2];
	rig_stable(r, c, 2);
	struct call *first = rig_join(r, 9, c[0]->id, NULL, 10000, 60000, "range");
	struct call *second = rig_join(r, 9, c[0]->id, NULL, 10000, 60000, "range");
	expect_error(first, 27, c[0]->id);
	cr_expect(!second->answered);
	cr_expect_eq(rig_group(r)->waiting, 1);
}

Test(join, dead_group)
{
	struct call *c[2];
	rig_stable(r, c, 2);
	struct call *again = rig_join(r, 9, c[0]->id, NULL, 10000, 60000, "range");
	shard_stop(r->shard, r->now);
	expect_error(again, 16, c[0]->id);
	expect_error(rig_join(r, 9, "", NULL, 10000, 60000, "range"), 15, "");
	expect_error(rig_join(r, 9, c[1]->id, NULL, 10000, 60000, "range"), 15, c[1]->id);
}

Test(join, half_closed_connections_are_not_parked)
{
	struct call *c[2];
	rig_stable(r, c, 2);
	r->eof = true;
	expect_error(rig_join(r, 3, "", NULL, 10000, 60000, "range"), 27, "");
	expect_error(rig_join(r, 9, c[0]->id, NULL, 10000, 60000, "range"), 27, c[0]->id);
	expect_error(rig_join(r, 9, "", "inst", 10000, 60000, "range"), 27, "");
	cr_expect_eq(rig_join(r, 9, "", NULL, 10000, 60000, "range")->error, 79);
	cr_expect_str_eq(rig_state(r), "Stable");
	cr_expect_eq(rig_group(r)->members_len, 2);
}

Test(join, a_retry_of_a_waiting_member_is_no_surplus)
{
	r->settings.group_max_size = 2;
	struct call *ask = rig_join(r, 9, "", NULL, 10000, 60000, "range");
	struct call *x = rig_join(r, 9, ask->id, NULL, 10000, 60000, "range");
	struct call *y = rig_join_twice(r, 10000, 60000, "range");
	struct call *again = rig_join(r, 9, ask->id, NULL, 10000, 60000, "range");
	cr_expect_eq(x->error, 27);
	cr_expect(!again->answered);
	rig_pass(r, 6000);
	cr_expect_eq(again->error, 0);
	cr_expect_eq(y->error, 0);
}

Test(join, more_votes_win_against_the_leaders_wish)
{
	struct call *leader = rig_join_twice(r, 10000, 60000, "b,c");
	rig_join_twice(r, 10000, 60000, "c,b");
	rig_join_twice(r, 10000, 60000, "c,b");
	rig_pass(r, 6000);
	cr_expect_str_eq(leader->leader, leader->id);
	cr_expect_str_eq(leader->protocol, "c");
}

/* The third member's first wish is nobody else's: it counts for its second one. */
Test(join, a_vote_goes_to_the_first_protocol_that_all_have)
{
	struct call *leader = rig_join_twice(r, 10000, 60000, "b,c");
	rig_join_twice(r, 10000, 60000, "c,b");
	rig_join_twice(r, 10000, 60000, "x,c,b");
	rig_pass(r, 6000);
	cr_expect_str_eq(leader->leader, leader->id);
	cr_expect_str_eq(leader->protocol, "c");
}

Test(join, votes_of_members_that_left_or_changed_their_mind_do_not_count)
{
	struct call *leader = rig_join_twice(r, 10000, 60000, "b,c");
	struct call *gone = rig_join_twice(r, 10000, 60000, "c,b");
	struct call *other = rig_join_twice(r, 10000, 60000, "c,b,b");
	rig_pass(r, 6000);
	cr_expect_str_eq(leader->protocol, "c");
	rig_leave(r, 1, gone->id);
	struct call *changed = rig_join(r, 9, other->id, NULL, 10000, 60000, "b,c");
	struct call *last = rig_join_twice(r, 10000, 60000, "c,b");
	struct call *again = rig_join(r, 9, leader->id, NULL, 10000, 60000, "b,c");
	rig_pass(r, 10);
	cr_expect_eq(changed->generation, 2);
	cr_expect_eq(last->generation, 2);
	cr_expect_str_eq(again->protocol, "b");
}
