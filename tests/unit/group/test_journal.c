/* test_journal.c - the rebalance journal: events, their ring, their lines. */
#include <criterion/criterion.h>

#include "rig.h"

static struct rig *r;
static char lines[64][1100];
static int lines_len;

static void hear(void *arg, const char *line)
{
	if (lines_len < 64)
		snprintf(lines[lines_len++], sizeof(lines[0]), "%s", line);
}

static void setup(void)
{
	r = rig_new();
	shard_set_journal(r->shard, hear, NULL);
}

static void teardown(void)
{
	rig_free(r);
}

TestSuite(journal, .init = setup, .fini = teardown);

static const char *line_of(const char *event)
{
	char want[64];
	snprintf(want, sizeof(want), " event=%s ", event);
	for (int i = lines_len; i-- > 0;)
		if (strstr(lines[i], want) != NULL)
			return lines[i];
	return "";
}

static struct journal_event events[64];
static char waited[64][600];
static int events_len;

static void collect(void *arg, const struct journal_event *e)
{
	snprintf(waited[events_len], sizeof(waited[0]), "%.*s", e->waited_for.len, (const char *)e->waited_for.p);
	events[events_len++] = *e;
}

Test(journal, events)
{
	struct call *c[2];
	rig_stable(r, c, 2);
	rig_leave(r, 1, c[1]->id);
	rig_pass(r, 4000);
	rig_join(r, 9, c[0]->id, NULL, 10000, 60000, "range");
	cr_assert(shard_journal_each(r->shard, bytes_str("g"), collect, NULL));
	cr_assert_eq(events_len, 2);
	cr_expect_eq(events[0].cause, JOURNAL_MEMBER_JOINED);
	cr_expect(bytes_equal(events[0].member_id, bytes_str(c[0]->id)));
	cr_expect(bytes_equal(events[0].host, BYTES_LITERAL("/10.1.2.3")));
	cr_expect_eq(events[0].generation, 1);
	cr_expect_eq(events[0].members, 2);
	cr_expect_eq(events[0].duration_us, 6000000);
	cr_expect_str_eq(waited[0], c[1]->id); /* the last one to join */
	cr_expect_eq(events[1].cause, JOURNAL_MEMBER_LEFT);
	cr_expect(bytes_equal(events[1].member_id, bytes_str(c[1]->id)));
	cr_expect_eq(events[1].duration_us, 4000000);
	cr_expect_eq(events[1].generation, 2);
	cr_expect(!shard_journal_each(r->shard, bytes_str("unknown"), collect, NULL));
	char text[1024];
	cr_expect_eq(journal_format(BYTES_LITERAL("g"), &events[1], text, sizeof(text)), strlen(text));
	cr_expect_str_eq(text, line_of("rebalance-done"));
	cr_expect_eq(journal_format(BYTES_LITERAL("g"), &events[1], text, 10), 9);
	cr_expect_str_eq(text, "group=g g");
}

Test(journal, late_members_are_named)
{
	struct call *c[2];
	rig_stable(r, c, 2);
	rig_join(r, 9, c[0]->id, NULL, 10000, 60000, "range");
	for (int i = 0; i < 10; i++) {
		rig_pass(r, 6000);
		rig_heartbeat(r, c[1]->id, NULL, 1);
	}
	shard_journal_each(r->shard, bytes_str("g"), collect, NULL);
	cr_assert_eq(events_len, 2);
	cr_expect_eq(events[1].cause, JOURNAL_LEADER_REJOINED);
	cr_expect_eq(events[1].late, 1);
	cr_expect_str_eq(waited[1], c[1]->id);
	cr_expect_eq(events[1].members, 1);
	cr_expect_neq(strstr(line_of("rebalance-done"), " late=1 "), NULL);
}

Test(journal, ring_is_bounded)
{
	struct call *c[2];
	rig_stable(r, c, 2);
	for (int i = 2; i <= 21; i++) {
		rig_join(r, 9, c[0]->id, NULL, 10000, 60000, "range");
		rig_join(r, 9, c[1]->id, NULL, 10000, 60000, "range");
		cr_assert_eq(rig_group(r)->generation, i);
		rig_sync_all(r, c, 2, i);
	}
	shard_journal_each(r->shard, bytes_str("g"), collect, NULL);
	cr_assert_eq(events_len, 8);
	for (int i = 0; i < 8; i++)
		cr_expect_eq(events[i].generation, 14 + i);
}

Test(journal, lines_as_it_happens)
{
	struct call *c[2];
	r->client = "a b\n\"";
	rig_stable(r, c, 2);
	cr_expect_eq(strncmp(line_of("member-joined"), "group=g generation=0 event=member-joined member=a\\x20b\\x0a\\x22-", 62), 0);
	cr_expect_neq(strstr(line_of("member-joined"), " client=a\\x20b\\x0a\\x22 host=/10.1.2.3"), NULL);
	cr_expect_neq(strstr(line_of("rebalance-start"), " cause=member-joined "), NULL);
	cr_expect_neq(strstr(line_of("rebalance-done"), " members=2 took_ms=6000 protocol=range leader="), NULL);
	cr_expect_neq(strstr(line_of("assignment-stored"), " members=2 "), NULL);
	rig_pass(r, 10001);
	cr_expect_neq(strstr(line_of("member-expired"), "member="), NULL);
}

Test(journal, whoever_is_gone_is_not_counted)
{
	struct call *c[4];
	rig_stable(r, c, 4);
	rig_leave(r, 1, c[3]->id);
	cr_expect_neq(strstr(line_of("rebalance-start"), " cause=member-left "), NULL);
	cr_expect_neq(strstr(line_of("rebalance-start"), " members=3"), NULL, "%s", line_of("rebalance-start"));
	cr_expect_neq(strstr(line_of("rebalance-start"), c[3]->id), NULL);
}

Test(journal, a_batch_that_leaves_is_not_counted)
{
	struct call *c[4];
	char list[2 * RIG_TEXT + 4];
	rig_stable(r, c, 4);
	snprintf(list, sizeof(list), "%s,%s", c[2]->id, c[3]->id);
	rig_leave_many(r, "g", list);
	cr_expect_neq(strstr(line_of("rebalance-start"), " members=2"), NULL, "%s", line_of("rebalance-start"));
	rig_pass(r, 10001);
	cr_expect_neq(strstr(line_of("member-expired"), " silent_ms=10000"), NULL, "%s", line_of("member-expired"));
}
