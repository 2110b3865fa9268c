/*
 * test_api_cluster.c - ApiVersions, Metadata, DescribeCluster, FindCoordinator, at all their versions, over a fake engine.
 */
#include <criterion/criterion.h>

#include "fake_shard.h"
#include "requests.h"

static bool str_is(struct bytes b, const char *expected)
{
	return bytes_equal(b, bytes_str(expected));
}

/* ---- ApiVersions ---- */

Test(api_versions, lists_what_is_served_in_every_version)
{
	struct rig *rig = rig_new(4, 1, 8);
	struct conn *c = rig_open(rig);
	for (int16_t v = 0; v <= 4; v++) {
		struct api_versions_request in = {BYTES_LITERAL("lib-x.1"), BYTES_LITERAL("1.2.3-rc4")};
		struct api_versions_response out;
		conn_send(c, api_key_api_versions, v, 100 + v, &in);
		conn_read(c, api_key_api_versions, v, 100 + v, &out);
		cr_assert_eq(out.error_code, 0);
		cr_assert_eq(out.api_keys_len, API_COUNT);
		for (int32_t i = 0; i < API_COUNT; i++) {
			const struct message_type *type = message_request(out.api_keys[i].api_key);
			cr_assert_eq(out.api_keys[i].min_version, 0);
			cr_assert_eq(out.api_keys[i].max_version, type->highest);
			cr_assert(i == 0 || out.api_keys[i].api_key > out.api_keys[i - 1].api_key, "sorted");
		}
		cr_assert_eq(out.api_keys[0].api_key, 0, "old Java clients do not start without Produce");
	}
	conn_free(c);
	rig_free(rig);
}

/* The header of the answer is always version 0: the error code follows the correlation id directly, also where the body is flexible. */
Test(api_versions, the_header_of_the_answer_has_no_tagged_fields)
{
	struct rig *rig = rig_new(4, 1, 8);
	struct conn *c = rig_open(rig);
	const uint8_t frame[] = {0, 18, 0, 3, 0, 0, 0, 9, 0, 1, 'x', 0, 2, 'a', 2, '1', 0};
	conn_raw(c, frame, sizeof(frame));
	struct bytes b = conn_read_raw(c);
	const uint8_t start[] = {0, 0, 0, 9, 0, 0, API_COUNT + 1, 0, 0, 0, 0};
	cr_assert(memcmp(b.p, start, sizeof(start)) == 0);
	conn_free(c);
	rig_free(rig);
}

static void unknown_version(struct conn *c, const void *frame, size_t len)
{
	conn_raw(c, frame, len);
	struct bytes b = conn_read_raw(c);
	const uint8_t expected[] = {0, 0, 0, 77, 0, 35, 0, 0, 0, 1, 0, 18, 0, 0, 0, 4};
	cr_assert_eq(b.len, (int32_t)sizeof(expected));
	cr_assert(memcmp(b.p, expected, sizeof(expected)) == 0);
	cr_assert_not(c->closed);
}

#define UNKNOWN_VERSION(c, ...)                            \
	do {                                               \
		const uint8_t frame[] = {__VA_ARGS__};     \
		unknown_version(c, frame, sizeof(frame));  \
	} while (0)

Test(api_versions, an_unknown_version_is_answered_as_version_0_and_the_connection_kept)
{
	struct rig *rig = rig_new(4, 1, 8);
	struct conn *c = rig_open(rig);
	/* version 5 as the newest clients send it: name, version, cluster id, node id */
	UNKNOWN_VERSION(c, 0, 18, 0, 5, 0, 0, 0, 77, 0, 1, 'c', 0, 5, 'j', 'a', 'v', 'a', 2, '4', 0, 0, 0, 0, 0, 0);
	UNKNOWN_VERSION(c, 0, 18, 0x7f, 0xff, 0, 0, 0, 77);		      /* nothing behind the correlation id */
	UNKNOWN_VERSION(c, 0, 18, 0x7f, 0xff, 0, 0, 0, 77, 0x7f, 0xff, 1);    /* nothing that could be understood */
	UNKNOWN_VERSION(c, 0, 18, 0xff, 0xff, 0, 0, 0, 77, 0xff, 0xff);
	struct api_versions_request in = {BYTES_LITERAL("a"), BYTES_LITERAL("1")};
	struct api_versions_response out;
	conn_send(c, api_key_api_versions, 4, 78, &in);
	conn_read(c, api_key_api_versions, 4, 78, &out);
	cr_assert_eq(out.api_keys_len, API_COUNT);
	conn_free(c);
	rig_free(rig);
}

Test(api_versions, software_names)
{
	static const struct {
		const char *name, *version;
		int16_t error;
	} cases[] = {
		{"a", "1", 0},	   {"Ab-9.x", "2.0.0", 0}, {"", "1", 42},	{"a", "", 42},	 {"-a", "1", 42},   {"a-", "1", 42},
		{"a", ".1", 42},   {"a b", "1", 42},	   {"a_b", "1", 42},	{"a", "1\n", 42}, {"\xc3\xa9", "1", 42}, {"a--..b", "1", 0},
	};
	struct rig *rig = rig_new(4, 1, 8);
	struct conn *c = rig_open(rig);
	for (unsigned int i = 0; i < ARRAY_LEN(cases); i++) {
		struct api_versions_request in = {bytes_str(cases[i].name), bytes_str(cases[i].version)};
		struct api_versions_response out;
		conn_send(c, api_key_api_versions, 3, (int32_t)i, &in);
		conn_read(c, api_key_api_versions, 3, (int32_t)i, &out);
		cr_assert_eq(out.error_code, cases[i].error, "case %u", i);
		cr_assert_eq(out.api_keys_len, cases[i].error == 0 ? API_COUNT : 0);
		cr_assert_not(c->closed);
	}
	conn_free(c);
	rig_free(rig);
}

/* ---- Metadata ---- */

static void ask_metadata(struct conn *c, int16_t version, const struct metadata_request_topic *topics, int32_t n, struct metadata_response *out)
{
	struct metadata_request in;
	metadata_request_init(&in);
	in.topics = topics;
	in.topics_len = n;
	conn_send(c, api_key_metadata, version, version, &in);
	conn_read(c, api_key_metadata, version, version, out);
	/* whatever was asked: the nodes */
	cr_assert_eq(out->brokers_len, 2);
	cr_assert_eq(out->brokers[1].node_id, 1001);
	cr_assert(str_is(out->brokers[1].host, "muster.test"));
	cr_assert_eq(out->brokers[1].port, 19093);
	cr_assert(bytes_is_null(out->brokers[0].rack));
	cr_assert_eq(out->controller_id, version >= 1 ? 1000 : -1);
	cr_assert(version >= 2 ? str_is(out->cluster_id, "rig-cluster") : bytes_is_null(out->cluster_id));
	cr_assert_eq(out->cluster_authorized_operations, INT32_MIN);
}

static void check_topic(const struct metadata_response_topic *t, int16_t version, const char *name, int32_t partitions)
{
	cr_assert_eq(t->error_code, 0);
	cr_assert(str_is(t->name, name));
	cr_assert_eq(uuid_is_zero(&t->topic_id), version < 10);
	cr_assert_not(t->is_internal);
	cr_assert_eq(t->topic_authorized_operations, INT32_MIN);
	cr_assert_eq(t->partitions_len, partitions);
	for (int32_t p = 0; p < partitions; p++) {
		const struct metadata_response_partition *part = &t->partitions[p];
		cr_assert_eq(part->error_code, 0);
		cr_assert_eq(part->partition_index, p);
		cr_assert_eq(part->leader_id, 1000 + p % 2);
		cr_assert_eq(part->leader_epoch, version >= 7 ? 0 : -1);
		cr_assert_eq(part->replica_nodes_len, 1);
		cr_assert_eq(part->replica_nodes[0], part->leader_id);
		cr_assert_eq(part->isr_nodes_len, 1);
		cr_assert_eq(part->isr_nodes[0], part->leader_id);
		cr_assert_eq(part->offline_replicas_len, 0);
	}
}

Test(metadata, all_none_and_some_in_every_version)
{
	struct rig *rig = rig_new(4, 2, 8);
	struct conn *c = rig_open(rig);
	for (int16_t v = 0; v <= 13; v++) {
		struct metadata_response out;
		/* null, or for version 0 an empty list: all, sorted */
		ask_metadata(c, v, NULL, v == 0 ? 0 : -1, &out);
		cr_assert_eq(out.topics_len, 3);
		check_topic(&out.topics[0], v, "alpha", 6);
		check_topic(&out.topics[1], v, "beta", 1);
		check_topic(&out.topics[2], v, "gamma", 3);
		if (v > 0) {
			ask_metadata(c, v, NULL, 0, &out);
			cr_assert_eq(out.topics_len, 0, "v%d: an empty list is none", v);
		}
		struct metadata_request_topic some[] = {{UUID_ZERO, BYTES_LITERAL("gamma")},
							{UUID_ZERO, BYTES_LITERAL("not-there")},
							{UUID_ZERO, BYTES_LITERAL("not/legal")},
							{UUID_ZERO, BYTES_LITERAL("beta")},
							{UUID_ZERO, BYTES_EMPTY}};
		ask_metadata(c, v, some, 5, &out);
		cr_assert_eq(out.topics_len, 5);
		check_topic(&out.topics[0], v, "gamma", 3);
		cr_assert_eq(out.topics[1].error_code, ERROR_UNKNOWN_TOPIC_OR_PARTITION);
		cr_assert(str_is(out.topics[1].name, "not-there"));
		cr_assert_eq(out.topics[1].partitions_len, 0);
		cr_assert_eq(out.topics[2].error_code, ERROR_INVALID_TOPIC_EXCEPTION);
		check_topic(&out.topics[3], v, "beta", 1);
		cr_assert_eq(out.topics[4].error_code, ERROR_INVALID_TOPIC_EXCEPTION);
	}
	conn_free(c);
	rig_free(rig);
}

Test(metadata, by_id)
{
	struct rig *rig = rig_new(4, 2, 8);
	struct conn *c = rig_open(rig);
	for (int16_t v = 10; v <= 13; v++) {
		struct metadata_response out;
		struct metadata_request_topic some[] = {{image_topic(rig->image, BYTES_LITERAL("alpha"))->id, BYTES_NULL},
							{{{1, 2, 3}}, BYTES_NULL},
							{UUID_ZERO, BYTES_NULL}};
		ask_metadata(c, v, some, 3, &out);
		check_topic(&out.topics[0], v, "alpha", 6);
		cr_assert(uuid_equal(&out.topics[0].topic_id, &some[0].topic_id));
		cr_assert_eq(out.topics[1].error_code, ERROR_UNKNOWN_TOPIC_ID);
		cr_assert(uuid_equal(&out.topics[1].topic_id, &some[1].topic_id));
		cr_assert_eq(bytes_is_null(out.topics[1].name), v >= 12);
		cr_assert_eq(out.topics[2].error_code, ERROR_UNKNOWN_TOPIC_ID);
	}
	conn_free(c);
	rig_free(rig);
}

/* ---- DescribeCluster ---- */

Test(describe_cluster, every_version)
{
	struct rig *rig = rig_new(4, 2, 8);
	struct conn *c = rig_open(rig);
	for (int16_t v = 0; v <= 2; v++) {
		struct describe_cluster_request in;
		struct describe_cluster_response out;
		describe_cluster_request_init(&in);
		conn_send(c, api_key_describe_cluster, v, v, &in);
		conn_read(c, api_key_describe_cluster, v, v, &out);
		cr_assert_eq(out.error_code, 0);
		cr_assert(str_is(out.cluster_id, "rig-cluster"));
		cr_assert_eq(out.controller_id, 1000);
		cr_assert_eq(out.brokers_len, 2);
		cr_assert_eq(out.brokers[0].broker_id, 1000);
		cr_assert(str_is(out.brokers[0].host, "muster.test"));
		cr_assert_eq(out.brokers[0].port, 19092);
		cr_assert_not(out.brokers[0].is_fenced);
		cr_assert_eq(out.cluster_authorized_operations, INT32_MIN);
	}
	for (int8_t kind = 2; kind <= 3; kind++) {
		struct describe_cluster_request in;
		struct describe_cluster_response out;
		describe_cluster_request_init(&in);
		in.endpoint_type = kind;
		conn_send(c, api_key_describe_cluster, 2, kind, &in);
		conn_read(c, api_key_describe_cluster, 2, kind, &out);
		cr_assert_eq(out.error_code, kind == 2 ? ERROR_MISMATCHED_ENDPOINT_TYPE : ERROR_UNSUPPORTED_ENDPOINT_TYPE);
		cr_assert_gt(out.error_message.len, 0);
		cr_assert_eq(out.brokers_len, 0);
	}
	conn_free(c);
	rig_free(rig);
}

/* ---- FindCoordinator ---- */

Test(find_coordinator, one_key)
{
	struct rig *rig = rig_new(50, 2, 8);
	struct conn *c = rig_open(rig);
	for (int16_t v = 0; v <= 3; v++) {
		static const struct {
			const char *key;
			int32_t node;
		} cases[] = {{"hello", 1000}, {"", 1000}, {"caf\xc3\xa9-group", 1001}}; /* shards 22, 0, 41 */
		for (unsigned int i = 0; i < ARRAY_LEN(cases); i++) {
			struct find_coordinator_request in;
			struct find_coordinator_response out;
			find_coordinator_request_init(&in);
			in.key = bytes_str(cases[i].key);
			conn_send(c, api_key_find_coordinator, v, v, &in);
			conn_read(c, api_key_find_coordinator, v, v, &out);
			cr_assert_eq(out.error_code, 0);
			cr_assert_eq(out.node_id, cases[i].node, "%s", cases[i].key);
			cr_assert_eq(out.port, 18092 + out.node_id);
			cr_assert(str_is(out.host, "muster.test"));
		}
	}
	for (int8_t kind = 1; kind <= 2; kind++) {
		struct find_coordinator_request in;
		struct find_coordinator_response out;
		find_coordinator_request_init(&in);
		in.key = BYTES_LITERAL("k");
		in.key_type = kind;
		conn_send(c, api_key_find_coordinator, 2, kind, &in);
		conn_read(c, api_key_find_coordinator, 2, kind, &out);
		cr_assert_eq(out.error_code, kind == 1 ? ERROR_COORDINATOR_NOT_AVAILABLE : ERROR_INVALID_REQUEST);
		cr_assert_eq(out.node_id, -1);
		cr_assert_eq(out.port, -1);
		cr_assert(str_is(out.host, ""));
	}
	conn_free(c);
	rig_free(rig);
}

Test(find_coordinator, many_keys)
{
	struct rig *rig = rig_new(50, 2, 8);
	struct conn *c = rig_open(rig);
	const struct bytes keys[] = {BYTES_LITERAL("caf\xc3\xa9-group"), BYTES_EMPTY, BYTES_LITERAL("hello")};
	for (int16_t v = 4; v <= 6; v++) {
		for (int8_t kind = 0; kind <= 2; kind++) {
			struct find_coordinator_request in;
			struct find_coordinator_response out;
			find_coordinator_request_init(&in);
			in.key_type = kind;
			in.coordinator_keys = keys;
			in.coordinator_keys_len = 3;
			conn_send(c, api_key_find_coordinator, v, v, &in);
			conn_read(c, api_key_find_coordinator, v, v, &out);
			cr_assert_eq(out.coordinators_len, 3);
			for (int32_t i = 0; i < 3; i++) {
				const struct find_coordinator_response_coordinator *found = &out.coordinators[i];
				cr_assert(bytes_equal(found->key, keys[i]));
				cr_assert_eq(found->error_code, kind == 0 ? 0 : kind == 1 ? 15 : 42);
				cr_assert_eq(found->node_id, kind != 0 ? -1 : i == 0 ? 1001 : 1000);
				cr_assert_eq(found->port, kind != 0 ? -1 : i == 0 ? 19093 : 19092);
				cr_assert(str_is(found->host, kind == 0 ? "muster.test" : ""));
			}
		}
		struct find_coordinator_request none;
		struct find_coordinator_response out;
		find_coordinator_request_init(&none);
		conn_send(c, api_key_find_coordinator, v, v, &none);
		conn_read(c, api_key_find_coordinator, v, v, &out);
		cr_assert_eq(out.coordinators_len, 0);
	}
	conn_free(c);
	rig_free(rig);
}
