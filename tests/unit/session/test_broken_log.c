/*
 * test_broken_log.c - the log breaks while requests wait in their session for durability: each is answered with an error, none is acknowledged, and what
 * comes later is served from what is durable. Over the real engine.
 */
#include <criterion/criterion.h>
#include <stdio.h>

#include "requests.h"

#define STORAGE_ERROR 56

static struct rig *rig;
static struct conn *c, *d;

static void setup(void)
{
	rig = rig_new(50, 1, 16);
	c = rig_open(rig);
	d = rig_open(rig);
}

static void teardown(void)
{
	cr_assert_eq(rig->stats.requests_parked_now, 0, "somebody waits for ever");
	conn_free(c);
	conn_free(d);
	rig_free(rig);
}

TestSuite(broken_log, .init = setup, .fini = teardown);

static void settle(void)
{
	rig_advance(rig, 3);
}

static void log_hold(void)
{
	rig->log.limit = rig->log.durable;
}

/* Offset of partition 0 of "alpha", for a simple group. */
static void send_offset(struct conn *on, const char *group, int64_t offset)
{
	struct offset_commit_request_partition partition;
	offset_commit_request_partition_init(&partition);
	partition.committed_offset = offset;
	struct offset_commit_request_topic topic = {BYTES_LITERAL("alpha"), UUID_ZERO, &partition, 1};
	struct offset_commit_request in;
	offset_commit_request_init(&in);
	in.group_id = bytes_str(group);
	in.topics = &topic;
	in.topics_len = 1;
	conn_send(on, api_key_offset_commit, 7, 50, &in);
}

static void commit(const char *group, int64_t offset)
{
	send_offset(d, group, offset);
	settle();
	cr_assert_eq(read_commit(d, 50), 0);
}

/* A group whose shard comes before, or behind, that of another one. */
static const char *group_at(char *name, bool before, const char *other)
{
	unsigned int limit = image_shard_of(rig->image, bytes_str(other));
	for (unsigned int i = 0; i < 1000; i++) {
		snprintf(name, 16, "n%u", i);
		unsigned int shard = image_shard_of(rig->image, bytes_str(name));
		if (before ? shard < limit : shard > limit)
			return name;
	}
	cr_assert(false);
	return NULL;
}

/* ---- OffsetFetch behind a commit ---- */

static void send_fetch_at(int16_t version)
{
	static const int32_t indexes[] = {0, 1};
	struct uuid id = image_topic(rig->image, BYTES_LITERAL("alpha"))->id;
	struct offset_fetch_request_topic old = {BYTES_LITERAL("alpha"), indexes, 2};
	struct offset_fetch_request_topics topic = {BYTES_LITERAL("alpha"), id, indexes, 2};
	struct offset_fetch_request_group group;
	struct offset_fetch_request in;
	offset_fetch_request_group_init(&group);
	offset_fetch_request_init(&in);
	in.group_id = group.group_id = BYTES_LITERAL("g");
	in.topics = &old;
	group.topics = &topic;
	in.topics_len = group.topics_len = 1;
	in.groups = &group;
	in.groups_len = 1;
	conn_send(c, api_key_offset_fetch, version, version, &in);
}

/* Versions 0 and 1 have no place for an error of the group but the partitions (KAFKA-19246). */
static void check_fetch_error(int16_t version)
{
	struct offset_fetch_response out;
	conn_read(c, api_key_offset_fetch, version, version, &out);
	if (version < 2) {
		cr_assert_eq(out.topics_len, 1);
		cr_assert_eq(out.topics[0].partitions_len, 2);
		for (int32_t p = 0; p < 2; p++) {
			cr_expect_eq(out.topics[0].partitions[p].error_code, ERROR_NOT_COORDINATOR);
			cr_expect_eq(out.topics[0].partitions[p].committed_offset, -1);
			cr_expect_eq(out.topics[0].partitions[p].partition_index, p);
		}
	} else if (version < 8) {
		cr_expect_eq(out.error_code, ERROR_NOT_COORDINATOR);
		cr_expect_eq(out.topics_len, 0);
	} else {
		cr_assert_eq(out.groups_len, 1);
		cr_expect_eq(out.groups[0].error_code, ERROR_NOT_COORDINATOR);
		cr_expect(bytes_equal(out.groups[0].group_id, BYTES_LITERAL("g")));
		cr_expect_eq(out.groups[0].topics_len, 0);
	}
}

Test(broken_log, b40_error_of_the_group_in_every_version)
{
	commit("g", 41);
	log_hold();
	send_offset(d, "g", 42);
	struct conn *each[11];
	for (int16_t v = 0; v <= 10; v++) {
		each[v] = c;
		send_fetch_at(v);
		cr_assert_eq(conn_answers(c), 0);
		c = rig_open(rig);
	}
	settle();
	cr_assert_eq(rig->stats.requests_parked_now, 12);
	rig->log.broken = STORAGE_ERROR;
	settle();
	cr_expect_eq(read_commit(d, 50), ERROR_NOT_COORDINATOR);
	for (int16_t v = 0; v <= 10; v++) {
		conn_free(v == 0 ? c : each[v - 1]);
		c = each[v];
		check_fetch_error(v);
	}
	send_offset_fetch(c, 60, "g");
	cr_expect_eq(read_offset_fetch(c, 60), 41, "what is durable is served");
}

/* ---- deletions on their way ---- */

Test(broken_log, delete_groups)
{
	commit("g", 1);
	commit("h", 1);
	log_hold();
	struct bytes names[] = {BYTES_LITERAL("g"), BYTES_LITERAL("nowhere"), BYTES_LITERAL("h")};
	struct delete_groups_request in = {names, 3};
	conn_send(c, api_key_delete_groups, 2, 42, &in);
	settle();
	cr_assert_eq(conn_answers(c), 0);
	rig->log.broken = STORAGE_ERROR;
	settle();
	struct delete_groups_response out;
	conn_read(c, api_key_delete_groups, 2, 42, &out);
	cr_assert_eq(out.results_len, 3);
	cr_expect_eq(out.results[0].error_code, ERROR_NOT_COORDINATOR);
	cr_expect_eq(out.results[1].error_code, ERROR_GROUP_ID_NOT_FOUND);
	cr_expect_eq(out.results[2].error_code, ERROR_NOT_COORDINATOR);
	cr_expect(bytes_equal(out.results[2].group_id, BYTES_LITERAL("h")));
	cr_expect_eq(rig->stats.group_groups_now, 2, "they are still there");
}

Test(broken_log, offset_delete)
{
	commit("g", 1);
	log_hold();
	struct offset_delete_request_partition partition = {0};
	struct offset_delete_request_topic topic = {BYTES_LITERAL("alpha"), &partition, 1};
	struct offset_delete_request in = {BYTES_LITERAL("g"), &topic, 1};
	struct offset_delete_response out;
	conn_send(c, api_key_offset_delete, 0, 42, &in);
	settle();
	cr_assert_eq(conn_answers(c), 0);
	rig->log.broken = STORAGE_ERROR;
	settle();
	conn_read(c, api_key_offset_delete, 0, 42, &out);
	cr_expect_eq(out.error_code, ERROR_NOT_COORDINATOR);
	cr_expect_eq(out.topics_len, 0);
	send_offset_fetch(c, 60, "g");
	cr_expect_eq(read_offset_fetch(c, 60), 1);
}

/* The deletion waits in an earlier shard for an unrelated commit; when that is durable, the deletion's own records are lost already. */
Test(broken_log, deletion_lost_while_it_waits_in_another_shard)
{
	char earlier[16];
	commit("g", 1);
	log_hold();
	send_offset(d, group_at(earlier, true, "g"), 7);
	uint64_t position = rig->log.appended;
	struct bytes name = BYTES_LITERAL("g");
	struct delete_groups_request in = {&name, 1};
	struct delete_groups_response out;
	conn_send(c, api_key_delete_groups, 2, 42, &in);
	settle();
	cr_assert_eq(conn_answers(c), 0);
	rig->log.limit = position;
	rig->log.durable = position;
	rig->log.broken = STORAGE_ERROR;
	settle();
	cr_expect_eq(read_commit(d, 50), 0, "this one is durable");
	conn_read(c, api_key_delete_groups, 2, 42, &out);
	cr_expect_eq(out.results[0].error_code, ERROR_NOT_COORDINATOR);
}

/* ---- ends ---- */

Test(broken_log, connections_that_are_gone)
{
	commit("g", 1);
	log_hold();
	send_offset(d, "g", 2);
	send_offset_fetch(c, 60, "g");
	struct bytes name = BYTES_LITERAL("g");
	struct delete_groups_request in = {&name, 1};
	conn_send(c, api_key_delete_groups, 2, 42, &in);
	settle();
	conn_reset(c);
	rig->log.broken = STORAGE_ERROR;
	settle();
	cr_expect_eq(read_commit(d, 50), ERROR_NOT_COORDINATOR);
}

Test(broken_log, stopping_waits_for_nobody)
{
	commit("g", 1);
	log_hold();
	send_offset(d, "g", 2);
	send_offset_fetch(c, 60, "g");
	cr_expect_not(node_service_ops.stop(rig->node, rig->now));
	rig->log.broken = STORAGE_ERROR;
	settle();
	cr_expect(node_service_ops.stop(rig->node, rig->now));
	cr_expect_eq(read_commit(d, 50), ERROR_NOT_COORDINATOR);
}
