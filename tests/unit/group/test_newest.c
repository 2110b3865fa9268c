/*
 * test_newest.c - what the log may drop: the verdict on every record, of record types that we do not speak as well. That a shard comes back the
 * same from what is left, the rig checks after every step of all tests.
 */
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

TestSuite(newest, .init = setup, .fini = teardown);

static enum log_verdict verdict(unsigned int i)
{
	struct log_entry e = rig_log_entry(r, i);
	return shard_judge(r->shard, &e);
}

/* Appends an entry of any kind and applies it. */
static unsigned int apply(const char *key, size_t key_len, const char *value)
{
	struct log_entry e = {bytes_of(key, key_len), bytes_str(value)};
	int16_t error;
	cr_assert_neq(log_append(&r->log->log, 7, &e, 1, &error, r->now), 0);
	log_poll(&r->log->log, r->now);
	shard_replay(r->shard, &e, r->now);
	return rig_log_records(r) - 1;
}

Test(newest, commits)
{
	rig_commit(r, 8, "", NULL, -1, "t:0=5,t:1=6");
	rig_settle(r);
	rig_commit(r, 8, "", NULL, -1, "t:0=7");
	rig_settle(r);
	cr_expect_eq(verdict(0), LOG_DEAD);
	cr_expect_eq(verdict(1), LOG_LIVE);
	cr_expect_eq(verdict(2), LOG_LIVE);
}

/* Durable is not yet applied. */
Test(newest, what_is_not_applied_counts)
{
	rig_commit(r, 8, "", NULL, -1, "t:0=5");
	rig_settle(r);
	rig_log_hold(r, true);
	rig_commit(r, 8, "", NULL, -1, "t:0=6,u:0=1");
	cr_expect_eq(verdict(0), LOG_LIVE);
	cr_expect_eq(verdict(1), LOG_LIVE);
	cr_expect_eq(verdict(2), LOG_LIVE);
	rig_log_hold(r, false);
	rig_settle(r);
	cr_expect_eq(verdict(0), LOG_DEAD);
}

Test(newest, deleted_group_leaves_its_tombstones_for_a_while)
{
	rig_commit(r, 8, "", NULL, -1, "t:0=5");
	rig_settle(r);
	cr_assert_eq(shard_delete_group(r->shard, BYTES_LITERAL("g"), r->now), 0);
	rig_settle(r);
	unsigned int n = rig_log_records(r);
	cr_assert_gt(n, 1);
	cr_expect_eq(verdict(0), LOG_DEAD);
	for (unsigned int i = 1; i < n; i++)
		cr_expect_eq(verdict(i), LOG_GONE, "record %u", i);
	rig_commit(r, 8, "", NULL, -1, "t:0=6");
	rig_settle(r);
	for (unsigned int i = 1; i < n; i++)
		cr_expect_neq(verdict(i), LOG_LIVE, "record %u", i);
	cr_expect_eq(verdict(n), LOG_LIVE);
}

/* Types that we do not speak are kept, the newest of each key. */
Test(newest, foreign_types)
{
	static const char a[] = "\0\003\0\001a", b[] = "\0\003\0\001b";
	unsigned int first = apply(a, 5, "1"), second = apply(a, 5, "2"), other = apply(b, 5, "1");
	cr_expect_eq(verdict(first), LOG_DEAD);
	cr_expect_eq(verdict(second), LOG_LIVE);
	cr_expect_eq(verdict(other), LOG_LIVE);
	unsigned int gone = apply(b, 5, NULL);
	cr_expect_eq(verdict(other), LOG_DEAD);
	cr_expect_eq(verdict(gone), LOG_GONE);
	unsigned int back = apply(b, 5, "3");
	cr_expect_eq(verdict(gone), LOG_DEAD);
	cr_expect_eq(verdict(back), LOG_LIVE);
}

/* A record that cannot be read is nobody's: it stays, and so does the one that is in force. */
Test(newest, unreadable_records_stay)
{
	static const char offset[] = "\0\001\0\001g\0\001t\0\0\0\0";
	r->unchecked = true;
	rig_commit(r, 8, "", NULL, -1, "t:0=5");
	rig_settle(r);
	unsigned int value = apply(offset, sizeof(offset) - 1, "rubbish"), key = apply("x", 1, "y"), alone = apply("\0\002\0\001z", 5, "rubbish");
	cr_expect_eq(verdict(0), LOG_LIVE);
	cr_expect_eq(verdict(value), LOG_LIVE);
	cr_expect_eq(verdict(key), LOG_LIVE);
	cr_expect_eq(verdict(alone), LOG_LIVE);
	rig_commit(r, 8, "", NULL, -1, "t:0=6");
	rig_settle(r);
	cr_expect_eq(verdict(0), LOG_DEAD);
	cr_expect_eq(verdict(value), LOG_DEAD);
}

/* Both forms of an offset's key are one key. */
Test(newest, old_offset_keys)
{
	static const char old[] = "\0\0\0\001g\0\001t\0\0\0\0";
	rig_commit(r, 8, "", NULL, -1, "t:0=5");
	rig_settle(r);
	struct bytes value = rig_log_entry(r, 0).value;
	struct log_entry e = {bytes_of(old, sizeof(old) - 1), value};
	int16_t error;
	log_append(&r->log->log, 7, &e, 1, &error, r->now);
	log_poll(&r->log->log, r->now);
	cr_assert(shard_replay(r->shard, &e, r->now));
	cr_expect_eq(verdict(0), LOG_DEAD);
	cr_expect_eq(verdict(1), LOG_LIVE);
}
