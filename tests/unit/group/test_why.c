/* test_why.c - every way in which a member can be gone is remembered with its reason, within bounds, and told to an administrator. */
#include <criterion/criterion.h>

#include "coordinator/admin.h"
#include "rig.h"

static struct rig *r;
static char items[400][ADMIN_ITEM_TEXT];
static int items_len;
static struct admin asked;

static void setup(void)
{
	r = rig_new();
	items_len = 0;
}

static void teardown(void)
{
	rig_free(r);
}

TestSuite(why, .init = setup, .fini = teardown);

static void hear(struct admin *a, const struct admin_item *item)
{
	char twice[ADMIN_ITEM_TEXT];
	cr_assert_lt(items_len, (int)ARRAY_LEN(items));
	size_t n = admin_item_text(item, items[items_len], sizeof(items[0]));
	cr_expect_eq(n, strlen(items[items_len]));
	cr_expect_eq(admin_item_text(item, twice, 6), 5);
	cr_expect_str_eq(twice, "item=");
	items_len++;
}

static void done(struct admin *a, struct now now)
{
	(*(int *)a->arg)++;
}

static int ask_op(enum admin_op op, const char *group, const char *member, const char *instance)
{
	int answers = 0;
	asked = (struct admin){.op = op, .group_id = bytes_str(group), .member_id = bytes_str(member), .instance_id = bytes_str(instance),
			       .item = hear, .done = done, .arg = &answers};
	items_len = 0;
	shard_admin(r->shard, &asked, r->now);
	cr_assert_eq(answers, 1);
	return asked.error;
}

static int ask(const char *group, const char *member, const char *instance)
{
	return ask_op(ADMIN_WHY, group, member, instance);
}

/* The first item that holds both texts; "": none. */
static const char *item(const char *kind, const char *text)
{
	char want[64];
	snprintf(want, sizeof(want), "item=%s ", kind);
	for (int i = 0; i < items_len; i++)
		if (strncmp(items[i], want, strlen(want)) == 0 && strstr(items[i], text) != NULL)
			return items[i];
	return "";
}

static int count(const char *kind)
{
	char want[64];
	int n = 0;
	snprintf(want, sizeof(want), "item=%s ", kind);
	for (int i = 0; i < items_len; i++)
		n += strncmp(items[i], want, strlen(want)) == 0;
	return n;
}

#define EXPECT_REMOVED(id, reason)                                                                                        \
	do {                                                                                                              \
		cr_expect_eq(ask("g", id, NULL), 0);                                                                      \
		cr_expect_neq(strstr(item("removed", id), " reason=" reason " "), NULL, "%s: %s", reason, item("removed", id)); \
	} while (0)

Test(why, expired_with_its_last_sign_of_life)
{
	struct call *c[2];
	rig_stable(r, c, 2);
	rig_pass(r, 2000);
	rig_heartbeat(r, c[1]->id, NULL, 1);
	int64_t seen = r->now.wall_ms;
	for (int i = 0; i < 4; i++) {
		rig_pass(r, 3000);
		rig_heartbeat(r, c[0]->id, NULL, 1);
	}
	EXPECT_REMOVED(c[1]->id, "member-expired");
	char want[64];
	snprintf(want, sizeof(want), " seen_ms=%lld ", (long long)seen);
	cr_expect_neq(strstr(item("removed", c[1]->id), want), NULL, "%s", item("removed", c[1]->id));
	snprintf(want, sizeof(want), " at_ms=%lld ", (long long)seen + 10000);
	cr_expect_neq(strstr(item("removed", c[1]->id), want), NULL, "%s", item("removed", c[1]->id));
	cr_expect_neq(strstr(item("removed", c[1]->id), " answered=25"), NULL);
	cr_expect_neq(strstr(item("rebalance-open", ""), " cause=member-expired "), NULL);
	cr_expect_neq(strstr(item("waiting", c[0]->id), " for=join "), NULL);
}

Test(why, left_with_what_the_client_said)
{
	struct call *c[2];
	rig_stable(r, c, 2);
	rig_leave(r, 1, c[1]->id);
	EXPECT_REMOVED(c[1]->id, "member-left");
}

Test(why, late_and_unsynced)
{
	struct call *c[3];
	rig_stable(r, c, 3);
	rig_join(r, 9, c[0]->id, NULL, 10000, 60000, "range");
	rig_join(r, 9, c[1]->id, NULL, 10000, 60000, "range");
	cr_expect_eq(ask_op(ADMIN_WAITING, "g", NULL, NULL), 0);
	cr_expect_eq(items_len, 1);
	cr_expect_neq(strstr(item("waiting", c[2]->id), " for=join "), NULL);
	for (int i = 0; i < 10; i++) {
		rig_pass(r, 6000);
		rig_heartbeat(r, c[2]->id, NULL, 1);
	}
	EXPECT_REMOVED(c[2]->id, "member-late");
	cr_expect_eq(ask_op(ADMIN_WAITING, "g", NULL, NULL), 0);
	cr_expect_eq(items_len, 2);
	cr_expect_neq(strstr(item("waiting", c[0]->id), " for=assignment "), NULL);
	cr_expect_neq(strstr(item("waiting", c[1]->id), " for=sync "), NULL);
	rig_sync(r, 3, c[0]->id, NULL, 2, "");
	for (int i = 0; i < 10; i++) {
		rig_pass(r, 6000);
		rig_heartbeat(r, c[0]->id, NULL, 2);
		rig_heartbeat(r, c[1]->id, NULL, 2);
	}
	EXPECT_REMOVED(c[1]->id, "member-did-not-sync");
}

Test(why, kicked_by_size)
{
	struct call *c[3];
	rig_stable(r, c, 3);
	r->settings.group_max_size = 1;
	rig_join(r, 9, c[0]->id, NULL, 10000, 60000, "range");
	cr_expect_eq(rig_join(r, 9, c[1]->id, NULL, 10000, 60000, "range")->error, 81);
	EXPECT_REMOVED(c[1]->id, "member-refused-group-full");
}

Test(why, a_closed_connection_and_handed_out_ids)
{
	struct call *c[1];
	rig_stable(r, c, 1);
	struct call *n = rig_join(r, 3, "", NULL, 10000, 60000, "range");
	char id[RIG_TEXT];
	struct group *g = rig_group(r);
	snprintf(id, sizeof(id), "%.*s", g->members[1]->id.len, (const char *)g->members[1]->id.p);
	rig_drop(n);
	EXPECT_REMOVED(id, "member-connection-closed");
	struct call *asked_back = rig_join(r, 4, "", NULL, 8000, 60000, "range");
	cr_expect_eq(ask("g", asked_back->id, NULL), 0);
	cr_expect_neq(strstr(item("member", asked_back->id), " handed_out_ms="), NULL);
	cr_expect_neq(strstr(item("waiting", asked_back->id), " for=handed-out-id "), NULL);
	rig_pass(r, 8000);
	EXPECT_REMOVED(asked_back->id, "id-expired");
	asked_back = rig_join(r, 4, "", NULL, 8000, 60000, "range");
	rig_leave(r, 1, asked_back->id);
	EXPECT_REMOVED(asked_back->id, "id-left");
}

Test(why, replaced_names_its_successor)
{
	struct call *a = rig_join(r, 5, "", "i1", 10000, 60000, "range");
	rig_pass(r, 3000);
	rig_sync_all(r, &a, 1, 1);
	struct call *b = rig_join(r, 5, "", "i1", 10000, 60000, "range");
	rig_settle(r);
	cr_assert_eq(b->error, 0);
	EXPECT_REMOVED(a->id, "member-replaced");
	cr_expect_neq(strstr(item("removed", a->id), " answered=82 "), NULL);
	cr_expect_neq(strstr(item("removed", a->id), b->id), NULL);
	cr_expect_eq(ask("g", NULL, "i1"), 0);
	cr_expect_str_neq(item("member", b->id), "");
	cr_expect_str_neq(item("removed", a->id), "");
}

Test(why, a_replacement_that_was_not_stored_is_none)
{
	struct call *a = rig_join(r, 5, "", "i1", 10000, 60000, "range");
	rig_pass(r, 3000);
	rig_sync_all(r, &a, 1, 1);
	rig_log_fail(r, 56);
	cr_expect_eq(rig_join(r, 5, "", "i1", 10000, 60000, "range")->error, 16);
	rig_log_fail(r, 0);
	cr_expect_eq(ask("g", a->id, NULL), 0);
	cr_expect_str_neq(item("member", a->id), "");
	cr_expect_eq(count("removed"), 0);
}

Test(why, the_whole_group)
{
	struct call *c[2];
	rig_stable(r, c, 2);
	rig_leave(r, 1, c[1]->id);
	rig_pass(r, 1000);
	cr_expect_eq(ask("g", NULL, NULL), 0);
	cr_expect_eq(count("group"), 1);
	cr_expect_neq(strstr(item("group", "group=g "), " state=PreparingRebalance "), NULL);
	cr_expect_neq(strstr(item("rebalance-open", "cause=member-left"), " running_ms=1000 members=1 joined=0"), NULL, "%s", item("rebalance-open", ""));
	cr_expect_eq(count("rebalance"), 1);
	cr_expect_neq(strstr(item("rebalance", "cause=member-joined"), " took_ms=6000 generation=1 members=2 late=0 waited_for="), NULL);
	cr_expect_eq(count("removed"), 1);
	cr_expect_eq(count("waiting"), 1);
}

Test(why, unknown_says_since_when_it_would_be_known)
{
	struct call *c[1];
	char want[64];
	int64_t begin = r->now.wall_ms;
	cr_expect_eq(ask("g", "nobody", NULL), 69);
	rig_stable(r, c, 1);
	snprintf(want, sizeof(want), " known_since_ms=%lld", (long long)begin);
	cr_expect_eq(ask("g", "nobody", NULL), 0);
	cr_expect_neq(strstr(item("unknown", "nobody"), want), NULL);
	for (int i = 0; i < 20 * 12; i++) { /* 20 minutes: longer than the memory reaches back */
		rig_pass(r, 5000);
		rig_heartbeat(r, c[0]->id, NULL, 1);
	}
	snprintf(want, sizeof(want), " known_since_ms=%lld", (long long)r->now.wall_ms - 600000);
	ask("g", "nobody", NULL);
	cr_expect_neq(strstr(item("unknown", "nobody"), want), NULL, "%s", item("unknown", "nobody"));
}

Test(why, memory_is_bounded_in_number_and_time)
{
	char ids[12][RIG_TEXT];
	rig_join(r, 4, "", NULL, 1800000, 60000, "range");
	for (int i = 0; i < 12; i++) {
		struct call *n = rig_join(r, 4, "", NULL, 8000, 60000, "range");
		snprintf(ids[i], sizeof(ids[0]), "%s", n->id);
		rig_leave(r, 1, n->id);
	}
	ask("g", NULL, NULL);
	cr_expect_eq(count("removed"), 8);
	for (int i = 0; i < 12; i++)
		cr_expect_eq(item("removed", ids[i])[0] == '\0', i < 4);
	cr_expect_eq(ask(NULL, ids[11], NULL), 0); /* whatever its group is */
	cr_expect_eq(count("removed"), 1);
	rig_pass(r, 600001);
	ask("g", NULL, NULL);
	cr_expect_eq(count("removed"), 0);
}

Test(why, nothing_is_kept_where_nothing_may_be)
{
	struct call *c[1];
	r->settings.journal_removed_members = 0;
	rig_stable(r, c, 1);
	rig_leave(r, 1, c[0]->id);
	ask("g", c[0]->id, NULL);
	cr_expect_eq(count("removed"), 0);
	cr_expect_eq(count("unknown"), 1);
}

Test(why, long_ids_are_cut_and_found)
{
	static char client[2000];
	memset(client, 'c', sizeof(client) - 1);
	r->client = client;
	struct call *n = rig_join(r, 4, "", NULL, 8000, 60000, "range");
	struct pending *p = LIST_FIRST(&rig_group(r)->pending);
	static char id[2100];
	snprintf(id, sizeof(id), "%.*s", p->id.len, (const char *)p->id.p);
	cr_assert_eq(n->error, 79);
	rig_pass(r, 8000);
	cr_expect_eq(ask("g", id, NULL), 0);
	cr_expect_eq(count("removed"), 1);
}

Test(why, operations_by_name)
{
	enum admin_op op;
	for (unsigned int i = 0; i < ADMIN_OP_COUNT; i++) {
		cr_expect(admin_op_of(bytes_str(admin_op_name((enum admin_op)i)), &op));
		cr_expect_eq((unsigned int)op, i);
		cr_expect_gt(strlen(admin_op_help((enum admin_op)i)), 10);
	}
	cr_expect(!admin_op_of(BYTES_LITERAL("wh"), &op));
}
