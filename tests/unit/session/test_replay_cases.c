/* test_replay_cases.c - public bug reports replayed as sequences, by their number: offsets, discovery, versions, admin, through sessions (B21 to B86). */
#include <criterion/criterion.h>
#include <stdio.h>

#include "requests.h"

static struct rig *rig;
static struct conn *c;

static void setup(void)
{
	rig = rig_new(50, 2, 16);
	c = rig_open(rig);
}

static void teardown(void)
{
	conn_free(c);
	rig_free(rig);
}

TestSuite(cases, .init = setup, .fini = teardown);

static void settle(void)
{
	rig_advance(rig, 3);
}

/* ---- one connection ---- */

Test(cases, b21_answers_of_a_connection_keep_its_order)
{
	struct conn *other = rig_open(rig);
	rig->settings.group_initial_rebalance_delay_ms = 3000;
	send_join(c, 1);
	conn_read(c, api_key_join_group, 5, 1, &(struct join_group_response){0});
	send_join_as(c, 3, 2, BYTES_EMPTY); /* parks */
	send_metadata(c, 3);
	send_heartbeat(c, 4, 4, 1);
	cr_expect_eq(conn_answers(c), 0, "nothing overtakes the join");
	send_metadata(other, 5);
	cr_expect_eq(read_metadata(other, 5), 2, "nobody else waits for it");
	rig_advance(rig, 3010);
	struct join_group_response joined;
	conn_read(c, api_key_join_group, 3, 2, &joined);
	cr_expect_eq(joined.error_code, 0);
	send_heartbeat(c, 4, 6, 1); /* the rig delivers what was held with the next frame */
	cr_expect_eq(read_metadata(c, 3), 2);
	cr_expect_eq(read_heartbeat(c, 4, 4), ERROR_UNKNOWN_MEMBER_ID);
	conn_free(other);
}

Test(cases, b21_commits_in_flight_are_not_serialised)
{
	rig->log.limit = 0;
	for (int32_t i = 1; i <= 5; i++)
		send_commit(c, i);
	settle();
	cr_expect_eq(rig->log.appended, 5, "all are on their way before one is durable");
	rig->log.limit = UINT64_MAX;
	settle();
	for (int32_t i = 1; i <= 5; i++)
		cr_expect_eq(read_commit(c, i), 0);
}

/* ---- offsets ---- */

static struct offset_fetch_response fetch(int16_t version, const int32_t *partitions, int32_t n, bool require_stable)
{
	struct offset_fetch_request_topic old = {BYTES_LITERAL("alpha"), partitions, n};
	struct offset_fetch_request_topics topic = {BYTES_LITERAL("alpha"), image_topic(rig->image, BYTES_LITERAL("alpha"))->id, partitions, n};
	struct offset_fetch_request_group group;
	struct offset_fetch_request in;
	struct offset_fetch_response out;
	offset_fetch_request_group_init(&group);
	offset_fetch_request_init(&in);
	in.group_id = group.group_id = BYTES_LITERAL("g");
	in.topics = &old;
	group.topics = &topic;
	in.topics_len = group.topics_len = 1;
	in.groups = &group;
	in.groups_len = 1;
	in.require_stable = require_stable;
	conn_send(c, api_key_offset_fetch, version, 900 + version, &in);
	conn_read(c, api_key_offset_fetch, version, 900 + version, &out);
	return out;
}

Test(cases, b41_no_partition_is_left_out)
{
	static const int32_t both[] = {0, 1};
	send_commit(c, 7);
	settle();
	cr_assert_eq(read_commit(c, 7), 0);
	for (int16_t v = 0; v <= 10; v++) {
		struct offset_fetch_response out = fetch(v, both, 2, false);
		int64_t offset[2];
		int32_t epoch;
		struct bytes metadata;
		int16_t error;
		if (v < 8) {
			cr_assert_eq(out.topics_len, 1);
			const struct offset_fetch_response_topic *t = &out.topics[0];
			cr_assert_eq(t->partitions_len, 2, "version %d", v);
			offset[0] = t->partitions[0].committed_offset;
			offset[1] = t->partitions[1].committed_offset;
			epoch = t->partitions[1].committed_leader_epoch;
			metadata = t->partitions[1].metadata;
			error = t->partitions[1].error_code;
		} else {
			cr_assert_eq(out.groups_len, 1);
			cr_assert_eq(out.groups[0].topics_len, 1);
			const struct offset_fetch_response_topics *t = &out.groups[0].topics[0];
			cr_assert_eq(t->partitions_len, 2, "version %d", v);
			offset[0] = t->partitions[0].committed_offset;
			offset[1] = t->partitions[1].committed_offset;
			epoch = t->partitions[1].committed_leader_epoch;
			metadata = t->partitions[1].metadata;
			error = t->partitions[1].error_code;
		}
		cr_expect(offset[0] == 7 && offset[1] == -1 && epoch == -1 && metadata.len == 0 && error == 0, "version %d", v);
	}
}

static void commit_with_metadata(int32_t partition, int64_t offset, struct bytes metadata, int16_t expected)
{
	struct offset_commit_request_partition part;
	offset_commit_request_partition_init(&part);
	part.partition_index = partition;
	part.committed_offset = offset;
	part.committed_metadata = metadata;
	struct offset_commit_request_topic topic = {BYTES_LITERAL("alpha"), UUID_ZERO, &part, 1};
	struct offset_commit_request in;
	struct offset_commit_response out;
	offset_commit_request_init(&in);
	in.group_id = BYTES_LITERAL("g");
	in.topics = &topic;
	in.topics_len = 1;
	conn_send(c, api_key_offset_commit, 8, 44, &in);
	settle();
	conn_read(c, api_key_offset_commit, 8, 44, &out);
	cr_expect_eq(out.topics[0].partitions[0].error_code, expected);
}

Test(cases, b44_long_metadata_does_not_poison_the_partition)
{
	static uint8_t text[5000];
	static const int32_t one[] = {1};
	memset(text, 'x', sizeof(text));
	commit_with_metadata(1, 5, bytes_of(text, sizeof(text)), ERROR_OFFSET_METADATA_TOO_LARGE);
	struct offset_fetch_response out = fetch(7, one, 1, true);
	cr_expect(out.topics[0].partitions[0].committed_offset == -1 && out.topics[0].partitions[0].error_code == 0);
	commit_with_metadata(1, 6, bytes_of(text, 10), 0);
	commit_with_metadata(1, 7, bytes_of(text, sizeof(text)), ERROR_OFFSET_METADATA_TOO_LARGE);
	out = fetch(7, one, 1, true);
	cr_expect(out.topics[0].partitions[0].committed_offset == 6 && out.topics[0].partitions[0].error_code == 0, "the last good one");
}

/* We serve no transactions: nothing is ever unstable, whoever asks. */
Test(cases, b49_fetch_that_requires_stable_offsets)
{
	static const int32_t both[] = {0, 1};
	cr_expect_lt(api_index(28), 0, "TxnOffsetCommit is not offered");
	send_commit(c, 9);
	settle();
	read_commit(c, 9);
	for (int stable = 0; stable < 2; stable++) {
		struct offset_fetch_response out = fetch(7, both, 2, stable);
		cr_expect(out.topics[0].partitions[0].committed_offset == 9 && out.topics[0].partitions[0].error_code == 0);
		cr_expect(out.topics[0].partitions[1].committed_offset == -1 && out.topics[0].partitions[1].error_code == 0);
	}
}

Test(cases, b50_commit_without_a_known_topic_id)
{
	struct offset_commit_request_partition parts[2];
	offset_commit_request_partition_init(&parts[0]);
	offset_commit_request_partition_init(&parts[1]);
	parts[1].partition_index = 1;
	struct offset_commit_request_topic topics[] = {{BYTES_LITERAL("alpha"), UUID_ZERO, parts, 2}, {BYTES_LITERAL("alpha"), {{7}}, parts, 2}};
	struct offset_commit_request in;
	struct offset_commit_response out;
	offset_commit_request_init(&in);
	in.group_id = BYTES_LITERAL("g");
	in.topics = topics;
	in.topics_len = 2;
	conn_send(c, api_key_offset_commit, 10, 1, &in);
	settle();
	conn_read(c, api_key_offset_commit, 10, 1, &out);
	cr_assert_eq(out.topics_len, 2);
	for (int32_t t = 0; t < 2; t++)
		for (int32_t p = 0; p < 2; p++)
			cr_expect_eq(out.topics[t].partitions[p].error_code, ERROR_UNKNOWN_TOPIC_ID);
	/* ids are asked for only where they can be learnt */
	int16_t ids = api_ranges[api_index(api_key_metadata)].highest;
	cr_expect_geq(ids, 10);
}

static bool all_ready(void *arg, unsigned int shard)
{
	return *(const bool *)arg;
}

/* While a shard is loading nobody is told that nothing is committed. */
Test(cases, b40_fetch_while_loading)
{
	static const int32_t both[] = {0, 1};
	bool ready = false;
	struct stats *own = aligned_alloc(MUSTER_CACHE_LINE, 50 * sizeof(*own));
	memset(own, 0, 50 * sizeof(*own));
	node_load(rig->node, own, all_ready, &ready);
	settle();
	for (int16_t v = 0; v <= 10; v++) {
		struct offset_fetch_response out = fetch(v, both, 2, false);
		if (v < 2) {
			cr_assert(out.topics_len == 1 && out.topics[0].partitions_len == 2);
			for (int32_t p = 0; p < 2; p++)
				cr_expect_eq(out.topics[0].partitions[p].error_code, ERROR_COORDINATOR_LOAD_IN_PROGRESS);
		} else if (v < 8) {
			cr_expect_eq(out.error_code, ERROR_COORDINATOR_LOAD_IN_PROGRESS);
		} else {
			cr_assert_eq(out.groups_len, 1);
			cr_expect_eq(out.groups[0].error_code, ERROR_COORDINATOR_LOAD_IN_PROGRESS);
		}
	}
	ready = true;
	settle();
	cr_expect_eq(fetch(9, both, 2, false).groups[0].error_code, 0);
	free(own);
}

/* ---- discovery ---- */

/* Whatever node FindCoordinator names stands in Metadata, of every version. */
Test(cases, b80_coordinators_stand_in_metadata)
{
	for (int16_t v = 0; v <= 13; v++) {
		struct metadata_request in;
		struct metadata_response nodes;
		metadata_request_init(&in);
		conn_send(c, api_key_metadata, v, v, &in);
		conn_read(c, api_key_metadata, v, v, &nodes);
		for (unsigned int g = 0; g < 30; g++) {
			char name[16];
			snprintf(name, sizeof(name), "group-%u", g);
			struct bytes key = bytes_str(name);
			struct find_coordinator_request find;
			struct find_coordinator_response found;
			find_coordinator_request_init(&find);
			find.key = key;
			find.coordinator_keys = &key;
			find.coordinator_keys_len = 1;
			int16_t fv = (int16_t)(g % 7);
			conn_send(c, api_key_find_coordinator, fv, 1, &find);
			conn_read(c, api_key_find_coordinator, fv, 1, &found);
			int32_t id = fv >= 4 ? found.coordinators[0].node_id : found.node_id;
			int32_t port = fv >= 4 ? found.coordinators[0].port : found.port;
			bool listed = false;
			for (int32_t i = 0; i < nodes.brokers_len; i++)
				listed |= nodes.brokers[i].node_id == id && nodes.brokers[i].port == port;
			cr_assert(listed, "Metadata version %d does not list node %d", v, id);
		}
	}
}

/* ---- versions ---- */

Test(cases, b82_api_versions_beyond_what_we_know)
{
	const uint8_t newer[] = {0, 18, 0, 9, 0, 0, 0, 77, 0, 1, 'c', 0, 5, 'j', 'a', 'v', 'a', 2, '4', 0};
	conn_raw(c, newer, sizeof(newer));
	struct bytes b = conn_read_raw(c);
	const uint8_t version_0[] = {0, 0, 0, 77, 0, 35, 0, 0, 0, 1, 0, 18, 0, 0, 0, 4};
	cr_assert_eq(b.len, (int32_t)sizeof(version_0));
	cr_expect(memcmp(b.p, version_0, sizeof(version_0)) == 0, "error 35 in the form of version 0, with our range");
	static const struct {
		const char *name;
		int16_t error;
	} rows[] = {{"librdkafka", 0}, {"apache-kafka.java", 0}, {"", 42}, {"-x", 42}, {"a b", 42}};
	for (int16_t v = 3; v <= 4; v++) {
		for (unsigned int i = 0; i < ARRAY_LEN(rows); i++) {
			struct api_versions_request in = {bytes_str(rows[i].name), BYTES_LITERAL("1.0")};
			struct api_versions_response out;
			conn_send(c, api_key_api_versions, v, 5, &in); /* read with a header of version 0 */
			conn_read(c, api_key_api_versions, v, 5, &out);
			cr_expect_eq(out.error_code, rows[i].error, "%s", rows[i].name);
		}
	}
	cr_expect_not(c->closed);
}

Test(cases, b83_lowest_versions_are_zero)
{
	struct api_versions_request in = {BYTES_EMPTY, BYTES_EMPTY};
	struct api_versions_response out;
	conn_send(c, api_key_api_versions, 0, 1, &in);
	conn_read(c, api_key_api_versions, 0, 1, &out);
	for (int32_t i = 0; i < out.api_keys_len; i++)
		cr_expect_eq(out.api_keys[i].min_version, 0, "api %d", out.api_keys[i].api_key);
	/* and they work: a member by JoinGroup and SyncGroup of version 0 */
	struct join_group_response joined;
	send_join_as(c, 0, 2, BYTES_EMPTY);
	settle();
	conn_read(c, api_key_join_group, 0, 2, &joined);
	cr_assert_eq(joined.error_code, 0);
	struct sync_group_request_assignment mine = {joined.member_id, BYTES_LITERAL("all")};
	struct sync_group_request sync;
	struct sync_group_response synced;
	sync_group_request_init(&sync);
	sync.group_id = BYTES_LITERAL("g");
	sync.member_id = joined.member_id;
	sync.generation_id = joined.generation_id;
	sync.assignments = &mine;
	sync.assignments_len = 1;
	conn_send(c, api_key_sync_group, 0, 3, &sync);
	settle();
	conn_read(c, api_key_sync_group, 0, 3, &synced);
	cr_expect(synced.error_code == 0 && bytes_equal(synced.assignment, BYTES_LITERAL("all")));
}

/* ---- admin ---- */

static struct describe_groups_response describe(int16_t version, struct bytes name)
{
	struct describe_groups_request in = {.groups = &name, .groups_len = 1};
	struct describe_groups_response out;
	conn_send(c, api_key_describe_groups, version, 1, &in);
	conn_read(c, api_key_describe_groups, version, 1, &out);
	cr_assert_eq(out.groups_len, 1);
	return out;
}

static struct list_groups_response list(int16_t version, struct bytes state)
{
	struct list_groups_request in = {&state, bytes_is_null(state) ? 0 : 1, NULL, 0};
	struct list_groups_response out;
	conn_send(c, api_key_list_groups, version, 1, &in);
	conn_read(c, api_key_list_groups, version, 1, &out);
	return out;
}

Test(cases, b84_unknown_groups_and_those_of_other_types)
{
	for (int16_t v = 0; v <= 6; v++) {
		struct describe_groups_response out = describe(v, BYTES_LITERAL("nowhere"));
		cr_expect_eq(out.groups[0].error_code, v >= 6 ? ERROR_GROUP_ID_NOT_FOUND : 0);
		cr_expect(bytes_equal(out.groups[0].group_state, BYTES_LITERAL("Dead")));
		cr_expect_eq(out.groups[0].members_len, 0);
	}
	cr_expect_lt(api_index(69), 0, "no ConsumerGroupDescribe: tools ask with DescribeGroups");
	send_commit(c, 2);
	settle();
	read_commit(c, 2);
	cr_expect(bytes_equal(list(5, BYTES_NULL).groups[0].group_type, BYTES_LITERAL("classic")));
	cr_expect_eq(list(4, BYTES_LITERAL("Empty")).groups_len, 1);
	cr_expect_eq(list(4, BYTES_LITERAL("Stable")).groups_len, 0);
}

/* 14 only while it loads, each group once, and a record that cannot be read stops nothing. */
Test(cases, b86_list_of_groups_while_loading)
{
	static const uint8_t key[] = {0, 2, 0, 1, 'x'}, value[] = {0, 3, 0, 50, 'c'};
	struct log_entry bad = {bytes_of(key, sizeof(key)), bytes_of(value, sizeof(value))};
	bool ready = false;
	struct stats *own = aligned_alloc(MUSTER_CACHE_LINE, 50 * sizeof(*own));
	memset(own, 0, 50 * sizeof(*own));
	node_load(rig->node, own, all_ready, &ready);
	for (unsigned int shard = 0; shard < 50; shard++) {
		cr_assert_not(shard_replay(node_loading_shard(rig->node, shard), &bad, rig->now));
		shard_loaded(node_loading_shard(rig->node, shard), rig->now);
	}
	settle();
	for (int16_t v = 0; v <= 5; v++)
		cr_expect_eq(list(v, BYTES_NULL).error_code, ERROR_COORDINATOR_LOAD_IN_PROGRESS);
	ready = true;
	settle();
	send_commit(c, 2);
	settle();
	cr_expect_eq(read_commit(c, 2), 0);
	for (int16_t v = 0; v <= 5; v++) {
		struct list_groups_response out = list(v, BYTES_NULL);
		cr_expect_eq(out.error_code, 0);
		cr_assert_eq(out.groups_len, 1);
		cr_expect(bytes_equal(out.groups[0].group_id, BYTES_LITERAL("g")));
	}
	free(own);
}
