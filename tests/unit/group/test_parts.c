/* test_parts.c - groups larger than one record: what is written, what comes back, and that nothing unfinished is ever seen. */
#include <criterion/criterion.h>

#include "rig.h"

static struct rig *r;
static char lines[4][1200];
static unsigned int lines_len;

static void setup(void)
{
	r = rig_new();
	r->settings.group_record_max_bytes = 200;
	lines_len = 0;
}

static void teardown(void)
{
	rig_free(r);
}

TestSuite(parts, .init = setup, .fini = teardown);

static struct record_group header_at(unsigned int i)
{
	struct record_group g = {.members_len = -1};
	struct record_key key;
	struct log_entry e = rig_log_entry(r, i);
	cr_assert(record_key_decode(&key, e.key) && key.kind == RECORD_GROUP && record_group_decode(&g, e.value));
	return g;
}

static enum record_kind kind_at(unsigned int i)
{
	struct record_key key;
	cr_assert(record_key_decode(&key, rig_log_entry(r, i).key));
	return key.kind;
}

/* How many keys of this kind a compacted log would still hold. */
static unsigned int left_of(enum record_kind kind)
{
	unsigned int n = 0, len = rig_log_records(r);
	for (unsigned int i = 0; i < len; i++) {
		bool last = true;
		for (unsigned int k = i + 1; k < len; k++)
			last &= !bytes_equal(rig_log_entry(r, k).key, rig_log_entry(r, i).key);
		n += last && kind_at(i) == kind && !bytes_is_null(rig_log_entry(r, i).value);
	}
	return n;
}

static struct call *again(const struct call *c)
{
	return rig_join(r, 9, c->id, NULL, 10000, 60000, "range");
}

Test(parts, a_large_group_is_a_header_and_a_record_per_member)
{
	struct call *c[3];
	rig_stable(r, c, 3);
	unsigned int len = rig_log_records(r);
	struct record_group header = header_at(len - 1);
	cr_expect_eq(header.members_len, 0);
	cr_expect_neq(header.parts.edition, 0);
	cr_expect_eq(header.parts.members, 3);
	for (unsigned int i = len - 4; i < len - 1; i++)
		cr_expect_eq(kind_at(i), RECORD_PART);
	rig_reload(r);
	cr_expect_str_eq(rig_state(r), "Stable");
	for (int i = 0; i < 3; i++)
		cr_expect_eq(atoi(rig_sync(r, 5, c[i]->id, NULL, 1, "")->assignment), i);
}

Test(parts, export_is_one_record)
{
	struct call *c[3];
	uint8_t key_buf[64], value_buf[1024];
	struct record_group g;
	rig_stable(r, c, 3);
	struct writer key = writer_of(key_buf, sizeof(key_buf)), value = writer_of(value_buf, sizeof(value_buf));
	cr_assert(shard_group_export(r->shard, BYTES_LITERAL("g"), &key, &value));
	cr_assert(record_group_decode(&g, bytes_of(value_buf, writer_len(&value))));
	cr_expect_eq(g.version, 3);
	cr_expect_eq(g.members_len, 3);
	cr_expect_eq(g.parts.edition, 0);
}

Test(parts, editions_take_turns_with_the_slots)
{
	struct call *c[3];
	rig_stable(r, c, 3);
	struct record_group first = header_at(rig_log_records(r) - 1);
	struct call *joins[3];
	for (int i = 0; i < 3; i++)
		joins[i] = again(c[i]);
	rig_sync_all(r, joins, 3, 2);
	struct record_group second = header_at(rig_log_records(r) - 1);
	cr_expect_gt(second.parts.edition, first.parts.edition);
	cr_expect_eq(second.parts.slot, 1 - first.parts.slot);
}

/* A crash between the parts and their header: the last committed generation stands, also when the log was compacted in between. */
Test(parts, an_unfinished_write_is_not_seen)
{
	struct call *c[3], *joins[3];
	rig_stable(r, c, 3);
	for (int i = 0; i < 3; i++)
		joins[i] = again(c[i]);
	rig_log_hold(r, true);
	char list[512];
	snprintf(list, sizeof(list), "%s=x,%s=y,%s=z", joins[0]->id, joins[1]->id, joins[2]->id);
	rig_sync(r, 5, joins[0]->id, NULL, 2, list);
	cr_assert_eq(header_at(rig_log_records(r) - 1).generation, 2);
	r->log->durable = rig_log_records(r) - 1;
	rig_reload(r);
	cr_expect_str_eq(rig_state(r), "Stable");
	cr_expect_eq(rig_group(r)->generation, 1);
	cr_expect_eq(rig_group(r)->members_len, 3);
	cr_expect_str_eq(rig_sync(r, 5, c[2]->id, NULL, 1, "")->assignment, "2");

	struct rig *other = rig_new();
	for (unsigned int i = 0; i < r->log->durable; i++) {
		bool last = true;
		for (unsigned int k = i + 1; k < r->log->durable; k++)
			last &= !bytes_equal(rig_log_entry(r, k).key, rig_log_entry(r, i).key);
		struct log_entry e = rig_log_entry(r, i);
		if (last)
			cr_assert(shard_replay(other->shard, &e, other->now));
	}
	cr_expect_str_eq(rig_state(other), "Stable");
	cr_expect_eq(rig_group(other)->generation, 1);
	cr_expect_eq(rig_group(other)->members_len, 3);
	other->unchecked = true;
	rig_free(other);
}

Test(parts, a_header_may_come_before_its_parts)
{
	struct call *c[3];
	rig_stable(r, c, 3);
	struct rig *other = rig_new();
	unsigned int len = rig_log_records(r);
	for (unsigned int i = len; i-- > len - 4;) {
		struct log_entry e = rig_log_entry(r, i);
		cr_assert(shard_replay(other->shard, &e, other->now));
		cr_expect_str_eq(rig_state(other), i == len - 4 ? "Stable" : "none");
	}
	cr_expect_eq(rig_group(other)->members_len, 3);
	other->unchecked = true;
	rig_free(other);
}

Test(parts, a_replaced_static_member_is_written_alone)
{
	struct call *a = rig_join(r, 9, "", "ia", 10000, 60000, "range"), *b = rig_join(r, 9, "", "ib", 10000, 60000, "range");
	rig_pass(r, 6000);
	char list[300];
	snprintf(list, sizeof(list), "%s=A,%s=B", a->id, b->id);
	rig_sync(r, 5, b->id, "ib", 1, "");
	rig_sync(r, 5, a->id, "ia", 1, list);
	rig_settle(r);
	cr_assert_str_eq(rig_state(r), "Stable");
	unsigned int before = rig_log_records(r);
	struct call *n = rig_join(r, 9, "", "ib", 10000, 60000, "range");
	rig_settle(r);
	cr_expect_eq(n->error, 0);
	cr_expect_eq(n->generation, 1);
	cr_expect_eq(rig_log_records(r), before + 3); /* the old id's tombstone, the new part, the header */
	cr_expect(bytes_is_null(rig_log_entry(r, before).value));
	cr_expect_eq(kind_at(before + 1), RECORD_PART);
	cr_expect_eq(header_at(before + 2).parts.members, 2);
	rig_reload(r);
	cr_expect_str_eq(rig_sync(r, 5, n->id, "ib", 1, "")->assignment, "B");
	cr_expect_eq(left_of(RECORD_PART), 2);
}

Test(parts, a_group_that_becomes_small_leaves_no_parts)
{
	struct call *c[3], *joins[3];
	rig_stable(r, c, 3);
	cr_expect_eq(left_of(RECORD_PART), 3);
	r->settings.group_record_max_bytes = 0;
	for (int i = 0; i < 3; i++)
		joins[i] = again(c[i]);
	rig_sync_all(r, joins, 3, 2);
	rig_settle(r);
	cr_expect_eq(left_of(RECORD_PART), 0);
	cr_expect_eq(left_of(RECORD_GROUP), 1);
	r->settings.group_record_max_bytes = 200;
	for (int i = 0; i < 3; i++)
		joins[i] = again(joins[i]);
	rig_sync_all(r, joins, 3, 3);
	cr_expect_eq(left_of(RECORD_PART), 3);
}

Test(parts, a_member_that_is_gone_leaves_no_part)
{
	struct call *c[3];
	rig_stable(r, c, 3);
	rig_leave(r, 1, c[2]->id);
	rig_settle(r);
	cr_expect_eq(left_of(RECORD_PART), 3); /* the log's last word about the group still counts it */
	struct call *joins[2] = {again(c[0]), again(c[1])};
	rig_sync_all(r, joins, 2, 2);
	rig_settle(r);
	for (unsigned int i = 0; i < rig_log_records(r); i++) {
		struct record_key key;
		struct log_entry e = rig_log_entry(r, i);
		cr_assert(record_key_decode(&key, e.key));
		if (key.kind == RECORD_PART && bytes_is_null(e.value))
			cr_expect(bytes_equal(key.member, bytes_str(c[2]->id)));
	}
	rig_reload(r);
	cr_expect_eq(rig_group(r)->members_len, 2);
}

Test(parts, a_deleted_group_leaves_nothing)
{
	struct call *c[3];
	rig_stable(r, c, 3);
	for (int i = 0; i < 3; i++)
		rig_leave(r, 1, c[i]->id);
	rig_settle(r);
	cr_assert_str_eq(rig_state(r), "Empty");
	cr_assert_eq(shard_delete_group(r->shard, BYTES_LITERAL("g"), r->now), 0);
	rig_settle(r);
	cr_expect_str_eq(rig_state(r), "none");
	cr_expect_eq(left_of(RECORD_PART), 0);
	cr_expect_eq(left_of(RECORD_GROUP), 0);
}

static void take_line(void *arg, const char *line)
{
	if (strstr(line, "record-too-large") != NULL && lines_len < ARRAY_LEN(lines))
		snprintf(lines[lines_len++], sizeof(lines[0]), "%s", line);
}

/* What no batch can hold: one stable error, and a line that says how large is too large, not more often than once a second. */
Test(parts, a_member_that_no_batch_can_hold)
{
	struct call *c[3];
	rig_stable(r, c, 3);
	shard_set_journal(r->shard, take_line, NULL);
	r->log->log.largest = 4321;
	for (int i = 0; i < 3; i++)
		c[i] = again(c[i]);
	rig_log_fail(r, 10);
	for (int round = 0; round < 2; round++) {
		int generation = 2 + round;
		struct call *follower = rig_sync(r, 5, c[1]->id, NULL, generation, "");
		struct call *leader = rig_sync(r, 5, c[0]->id, NULL, generation, "");
		cr_expect_eq(follower->error, -1);
		cr_expect_eq(leader->error, -1);
		cr_expect_eq(lines_len, 1);
		for (int i = 0; i < 3; i++)
			c[i] = again(c[i]);
	}
	cr_expect(strstr(lines[0], "group=g event=record-too-large member=") != NULL, "%s", lines[0]);
	cr_expect(strstr(lines[0], " limit=4321") != NULL, "%s", lines[0]);
	cr_expect_eq(r->stats.log_too_large, 2);
	rig_pass(r, 1000);
	rig_sync(r, 5, c[0]->id, NULL, 4, "");
	cr_expect_eq(lines_len, 2);
	cr_expect(strstr(lines[1], " unsaid_before=1") != NULL, "%s", lines[1]);
	rig_log_fail(r, 0);
	shard_set_journal(r->shard, NULL, NULL);
}
