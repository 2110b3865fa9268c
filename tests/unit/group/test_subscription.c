/* test_subscription.c - which topics a group subscribes to, and since when (ClassicGroup.computeSubscribedTopics of Kafka 4.3). */
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

TestSuite(subscription, .init = setup, .fini = teardown);

static bool wants(const char *topic)
{
	return group_is_subscribed(rig_group(r), bytes_str(topic));
}

/* Members without a first round of asking for an id; session 10 s, rebalance 60 s. */
static struct call *join(const char *id, const char *protocols)
{
	return rig_join(r, 3, id, NULL, 10000, 60000, protocols);
}

/* Two Stable members, the first of which leads and wants "t", the second "u+v". */
static void two(struct call **joins)
{
	joins[0] = join("", "range=@t");
	joins[1] = join("", "range=@u+v");
	rig_pass(r, 9000);
	cr_assert_eq(joins[1]->generation, 1);
	rig_sync_all(r, joins, 2, 1);
	cr_assert_str_eq(rig_state(r), "Stable");
}

Test(subscription, of_all_members)
{
	struct call *joins[2];
	two(joins);
	cr_expect(wants("t") && wants("u") && wants("v"));
	cr_expect(!wants("w") && !wants("") && !wants("tt"));
	cr_expect_eq(rig_group(r)->subscription.len, 3);
}

Test(subscription, unknown_until_the_first_join_phase_ends)
{
	join("", "range=@t");
	cr_expect(!rig_group(r)->subscription.known);
	cr_expect(wants("t") && wants("anything"));
	rig_pass(r, 6000);
	cr_expect(wants("t") && !wants("anything"));
}

Test(subscription, who_joins_or_changes_its_mind_counts_when_the_join_phase_ends)
{
	struct call *joins[2];
	two(joins);
	struct call *third = join("", "range=@w");
	struct call *first = join(joins[0]->id, "range=@x");
	cr_assert_str_eq(rig_state(r), "PreparingRebalance");
	cr_expect(wants("t") && wants("u") && !wants("w") && !wants("x"));
	struct call *second = join(joins[1]->id, "range=@u+v");
	cr_assert(third->answered && first->answered && second->answered);
	cr_expect(!wants("t") && wants("u") && wants("w") && wants("x"));
}

Test(subscription, who_leaves_counts_until_then)
{
	struct call *joins[2];
	two(joins);
	rig_leave(r, 1, joins[1]->id);
	cr_assert_str_eq(rig_state(r), "PreparingRebalance");
	cr_expect(wants("t") && wants("u"));
	join(joins[0]->id, "range=@t");
	cr_expect(wants("t") && !wants("u"));
}

Test(subscription, a_replaced_static_member_counts_from_the_next_join_phase_or_load_on)
{
	struct call *a = rig_join(r, 5, "", "i", 10000, 60000, "range=@t");
	rig_pass(r, 6000);
	rig_sync_all(r, &a, 1, 1);
	struct call *b = rig_join(r, 5, "", "i", 10000, 60000, "range=@u");
	rig_settle(r);
	cr_assert_eq(b->generation, 1, "no rebalance");
	cr_expect(wants("t") && !wants("u"));
	rig_reload(r);
	cr_expect(!wants("t") && wants("u"));
}

Test(subscription, nobody_wants_anything)
{
	struct call *a = join("", "range=@t");
	rig_pass(r, 6000);
	rig_leave(r, 1, a->id);
	cr_assert_str_eq(rig_state(r), "Empty");
	cr_expect(rig_group(r)->subscription.known && !wants("t"));
	join("", "range=@u");
	cr_expect(!wants("t") && !wants("u"), "the phase before ended with nobody");
}

Test(subscription, another_type_says_nothing)
{
	struct call *a = rig_join_to(r, "g", 3, "", NULL, 10000, 60000, "connect", "range=@t");
	rig_pass(r, 6000);
	cr_assert(a->answered);
	cr_expect(!wants("t"));
	rig_leave(r, 1, a->id);
	join("", "range=@t");
	cr_expect(wants("t") && wants("u"), "nothing was known of the group when it had another type");
}

Test(subscription, many_names_many_times)
{
	char topics[64];
	for (int i = 0; i < 40; i++) {
		snprintf(topics, sizeof(topics), "range=@t%d+all+t%d", i / 2, i);
		join("", topics);
	}
	rig_pass(r, 7000);
	cr_assert_eq(rig_group(r)->generation, 1);
	cr_expect_eq(rig_group(r)->subscription.len, 41);
	cr_expect(wants("t0") && wants("t39") && wants("all") && !wants("t40"));
}

Test(subscription, what_cannot_be_read_is_not_known)
{
	static const struct {
		const char *p;
		size_t len;
		bool known;
	} cases[] = {
		{"\0\0\0\0\0\0\377\377\377\377", 10, true},	  /* no topic */
		{"\0\0\0\0\0\1\0\1t\377\377\377\377", 13, true},  /* "t" */
		{"\0\0\0\0\0\1\0\1t\0\0\0\2xx", 15, true},	  /* user data */
		{"\0\0\0\0\0\1\0\1t\0\0\0\0", 13, true},	  /* none of them */
		{"\0\0\0\0\0\1\0\1t\0\0\0\3xx", 15, false},	  /* cut */
		{"\0\0\0\0\0\1\0\1t\377\377\377\376", 13, true},  /* length -2: none either */
		{"\0\0\0\0\0\1\0\1t", 9, false},		  /* their length is missing */
		{"\0\0\0\0\0\2\0\1t\377\377\377\377", 13, false}, /* a topic is missing */
		{"\0\0\0\0\0\1\0\11t\377\377\377\377", 13, false}, /* its name is cut */
		{"\377\377\0\0\0\0\377\377\377\377", 10, true},	  /* version -1: not looked at */
		{"\0\0\377\377\377\377\377\377\377\377", 10, false}, /* -1 topics */
		{"\0\0\0\0\0\1\377\377\377\377\377\377", 12, false}, /* null topic */
		{"\0\0", 2, false},
		{"\0", 1, false},
		{"", 0, false},
		{"\177\377\0\0\0\1\0\1t\377\377\377\377 what later versions have", 38, true},
	};
	join("", "range=@t");
	join("", "range=@t");
	rig_pass(r, 9000);
	cr_assert_eq(rig_group(r)->generation, 1);
	r->unchecked = true;
	for (unsigned int i = 0; i < ARRAY_LEN(cases); i++) {
		struct member *m = rig_group(r)->members[i % 2];
		member_set_offers(m, offers_one(m->group, m->group->protocol, bytes_of(cases[i].p, cases[i].len)));
		group_subscribe(m->group);
		cr_expect_eq(rig_group(r)->subscription.known, cases[i].known, "case %u", i);
		cr_expect_eq(wants("u"), !cases[i].known, "case %u", i);
		char buf[32];
		member_set_offers(m, offers_one(m->group, m->group->protocol, rig_subscription(buf, sizeof(buf), "t")));
	}
}
