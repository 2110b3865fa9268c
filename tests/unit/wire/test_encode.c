/*
 * test_encode.c - what the encoders write where version, null and tags have a say, and what a writer that is too
 * small reports.
 */
#include <criterion/criterion.h>

#include "coordinator/wire/messages.h"

#define KEY_FETCH 1
#define KEY_JOIN_GROUP 11
#define KEY_HEARTBEAT 12
#define KEY_API_VERSIONS 18

static uint8_t out[512];

static size_t encode_response(int16_t key, const void *m, int16_t version)
{
	struct writer w = writer_of(out, sizeof(out));
	message_response(key)->encode(m, &w, version);
	cr_assert(!w.full);
	cr_assert_eq(w.need, writer_len(&w));
	return writer_len(&w);
}

#define ASSERT_WROTE(len, literal) \
	cr_assert((len) == sizeof(literal) - 1 && memcmp(out, literal, sizeof(literal) - 1) == 0, "%zu bytes, not the same", (size_t)(len))

Test(encode, fields_come_and_go_with_the_version)
{
	struct heartbeat_response m;
	heartbeat_response_init(&m);
	m.throttle_time_ms = 258;
	m.error_code = 27;
	ASSERT_WROTE(encode_response(KEY_HEARTBEAT, &m, 0), "\0\x1b");
	ASSERT_WROTE(encode_response(KEY_HEARTBEAT, &m, 1), "\0\0\1\2\0\x1b");
	ASSERT_WROTE(encode_response(KEY_HEARTBEAT, &m, 4), "\0\0\1\2\0\x1b\0");
}

Test(encode, null_is_empty_where_the_version_has_no_null)
{
	struct join_group_response m;
	join_group_response_init(&m);
	m.generation_id = 1;
	m.protocol_name = BYTES_NULL;
	m.leader = BYTES_NULL;
	m.members_len = -1;
	ASSERT_WROTE(encode_response(KEY_JOIN_GROUP, &m, 0), "\0\0\0\0\0\1\0\0\0\0\0\0\0\0\0\0");
	/* from 7 on the name may be null, compact; the type in front of it as well */
	ASSERT_WROTE(encode_response(KEY_JOIN_GROUP, &m, 7), "\0\0\0\0\0\0\0\0\0\1\0\0\1\1\1\0");
}

Test(encode, tagged_fields_that_hold_their_default_are_left_out)
{
	struct api_versions_response m;
	struct api_versions_response_finalized_feature_key feature;
	api_versions_response_init(&m);
	ASSERT_WROTE(encode_response(KEY_API_VERSIONS, &m, 3), "\0\0\1\0\0\0\0\0");
	m.zk_migration_ready = true;
	m.finalized_features_epoch = 0;
	ASSERT_WROTE(encode_response(KEY_API_VERSIONS, &m, 3), "\0\0\1\0\0\0\0\2\1\10\0\0\0\0\0\0\0\0\3\1\1");
	m.finalized_features_epoch = -1;
	api_versions_response_finalized_feature_key_init(&feature);
	feature.name = BYTES_LITERAL("f");
	feature.max_version_level = 2;
	m.finalized_features = &feature, m.finalized_features_len = 1;
	ASSERT_WROTE(encode_response(KEY_API_VERSIONS, &m, 3), "\0\0\1\0\0\0\0\2\2\10\2\2f\0\2\0\0\0\3\1\1");
	/* versions before the flexible ones have no place for any of it */
	ASSERT_WROTE(encode_response(KEY_API_VERSIONS, &m, 2), "\0\0\0\0\0\0\0\0\0\0");
}

Test(encode, a_nested_tagged_struct_is_left_out_as_a_whole)
{
	struct fetch_response_partition partition;
	struct fetch_response_topic topic;
	struct fetch_response m;
	fetch_response_init(&m);
	fetch_response_topic_init(&topic);
	fetch_response_partition_init(&partition);
	topic.partitions = &partition, topic.partitions_len = 1;
	m.responses = &topic, m.responses_len = 1;
	size_t without = encode_response(KEY_FETCH, &m, 12);
	cr_assert_eq(out[without - 3], 0, "the partition has no tagged field");
	partition.current_leader.leader_id = 5;
	cr_assert_eq(encode_response(KEY_FETCH, &m, 12), without + 2 + 9, "tag, size, two int32 and its own tagged section");
	static const char expected[] = "\1\1\11\0\0\0\5\xff\xff\xff\xff\0";
	cr_assert(memcmp(out + without - 3, expected, sizeof(expected) - 1) == 0);
}

/* However small the writer is, it asks for the same size, and writes nothing behind its end. */
Test(encode, a_writer_that_is_too_small_tells_how_much_was_needed)
{
	struct join_group_response_member member[2];
	struct join_group_response m;
	join_group_response_init(&m);
	for (unsigned int i = 0; i < 2; i++) {
		join_group_response_member_init(&member[i]);
		member[i].member_id = BYTES_LITERAL("member");
		member[i].metadata = BYTES_LITERAL("subscription");
	}
	m.members = member, m.members_len = 2;
	for (int16_t version = 0; version <= 9; version++) {
		size_t whole = encode_response(KEY_JOIN_GROUP, &m, version);
		for (size_t cap = 0; cap < whole; cap++) {
			uint8_t *exact = malloc(cap > 0 ? cap : 1);
			struct writer w = writer_of(exact, cap);
			message_response(KEY_JOIN_GROUP)->encode(&m, &w, version);
			cr_assert(w.full);
			cr_assert_eq(w.need, whole);
			free(exact);
		}
	}
}
