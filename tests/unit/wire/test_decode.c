/*
 * test_decode.c - what the decoders do with bytes that no good client sends.
 */
#include <criterion/criterion.h>

#include "coordinator/wire/arena.h"
#include "coordinator/wire/messages.h"

#define KEY_METADATA 3
#define KEY_FIND_COORDINATOR 10
#define KEY_JOIN_GROUP 11
#define KEY_HEARTBEAT 12

static uint8_t arena_block[4096];

/* Decodes a request from the bytes of a literal, which must be used up whole when it is good. */
static bool decode_request(int16_t key, int16_t version, void *m, const char *body, size_t len)
{
	struct arena arena = arena_of(arena_block, sizeof(arena_block));
	struct reader r = reader_of(body, len);
	bool good = message_request(key)->decode(m, &r, version, &arena);
	cr_assert(!good || reader_left(&r) == 0, "%zu bytes left", reader_left(&r));
	return good;
}

#define DECODE(key, version, m, literal) decode_request(key, version, m, literal, sizeof(literal) - 1)

Test(decode, heartbeat_of_an_old_version_gets_the_defaults_of_the_new)
{
	struct heartbeat_request m;
	memset(&m, 0xa5, sizeof(m));
	cr_assert(DECODE(KEY_HEARTBEAT, 0, &m, "\0\2g1\0\0\0\7\0\3m-1"));
	cr_assert(bytes_equal(m.group_id, BYTES_LITERAL("g1")));
	cr_assert_eq(m.generation_id, 7);
	cr_assert(bytes_equal(m.member_id, BYTES_LITERAL("m-1")));
	cr_assert(bytes_is_null(m.group_instance_id));
}

Test(decode, null_and_empty_are_told_apart)
{
	struct heartbeat_request m;
	cr_assert(DECODE(KEY_HEARTBEAT, 3, &m, "\0\1g\0\0\0\1\0\1m\xff\xff"));
	cr_assert(bytes_is_null(m.group_instance_id));
	cr_assert(DECODE(KEY_HEARTBEAT, 3, &m, "\0\1g\0\0\0\1\0\1m\0\0"));
	cr_assert_eq(m.group_instance_id.len, 0);
	cr_assert(DECODE(KEY_HEARTBEAT, 4, &m, "\2g\0\0\0\1\2m\0\0"));
	cr_assert(bytes_is_null(m.group_instance_id));
	cr_assert(DECODE(KEY_HEARTBEAT, 4, &m, "\2g\0\0\0\1\2m\1\0"));
	cr_assert_eq(m.group_instance_id.len, 0);
}

/* Kafka reads every negative length as null. */
Test(decode, negative_lengths_are_null_and_null_needs_a_nullable_field)
{
	struct heartbeat_request m;
	cr_assert(DECODE(KEY_HEARTBEAT, 3, &m, "\0\1g\0\0\0\1\0\1m\x80\0"));
	cr_assert(bytes_is_null(m.group_instance_id));
	cr_assert(!DECODE(KEY_HEARTBEAT, 0, &m, "\xff\xff\0\0\0\7\0\3m-1"), "null group id");
	cr_assert(!DECODE(KEY_HEARTBEAT, 0, &m, "\x80\0\0\0\0\7\0\3m-1"), "negative length");
	cr_assert(!DECODE(KEY_HEARTBEAT, 4, &m, "\0\0\0\0\1\2m\0\0"), "compact null group id");
}

/* The topics of a Metadata request may be null from version 1 on: "all", where empty says "none". */
Test(decode, null_arrays_go_by_the_version)
{
	struct metadata_request m;
	cr_assert(!DECODE(KEY_METADATA, 0, &m, "\xff\xff\xff\xff"));
	cr_assert(DECODE(KEY_METADATA, 1, &m, "\xff\xff\xff\xff"));
	cr_assert_eq(m.topics_len, -1);
	cr_assert(m.allow_auto_topic_creation, "the default of versions without the field");
	cr_assert(DECODE(KEY_METADATA, 1, &m, "\0\0\0\0"));
	cr_assert_eq(m.topics_len, 0);
	cr_assert(DECODE(KEY_METADATA, 9, &m, "\0\0\0\0\0"));
	cr_assert_eq(m.topics_len, -1);
}

Test(decode, counts_beyond_the_bytes_are_refused_before_anything_is_allocated)
{
	struct metadata_request m;
	struct arena arena = arena_of(arena_block, sizeof(arena_block));
	struct reader r = reader_of("\x7f\xff\xff\xff\0\1t", 7);
	cr_assert(!message_request(KEY_METADATA)->decode(&m, &r, 0, &arena));
	cr_assert_eq(arena.used, 0);
	r = reader_of("\0\0\0\4\0\1t", 7); /* 4 elements in 3 bytes */
	cr_assert(!message_request(KEY_METADATA)->decode(&m, &r, 0, &arena));
	cr_assert_eq(arena.used, 0);
	r = reader_of("\xff\xff\xff\xff\x07\0\0\0", 8); /* compact, INT32_MAX - 1 */
	cr_assert(!message_request(KEY_METADATA)->decode(&m, &r, 12, &arena));
	cr_assert_eq(arena.used, 0);
}

Test(decode, a_full_arena_is_an_error_and_one_that_just_suffices_is_not)
{
	static const char body[] = "\0\0\0\2\0\1a\0\1b";
	size_t enough = 2 * sizeof(struct metadata_request_topic);
	struct metadata_request m;
	struct arena arena = arena_of(arena_block, enough);
	struct reader r = reader_of(body, sizeof(body) - 1);
	cr_assert(message_request(KEY_METADATA)->decode(&m, &r, 0, &arena));
	cr_assert_eq(m.topics_len, 2);
	cr_assert(bytes_equal(m.topics[1].name, BYTES_LITERAL("b")));
	arena = arena_of(arena_block, enough - 1);
	r = reader_of(body, sizeof(body) - 1);
	cr_assert(!message_request(KEY_METADATA)->decode(&m, &r, 0, &arena));
}

Test(decode, strings_longer_than_the_protocol_allows_are_refused)
{
	static uint8_t body[40000];
	struct find_coordinator_request m;
	struct arena arena = arena_of(arena_block, sizeof(arena_block));
	for (uint32_t len = INT16_MAX - 1; len <= INT16_MAX + 1u; len++) {
		struct writer w = writer_of(body, sizeof(body));
		writer_uvarint(&w, len + 1);
		w.p += len;
		writer_u8(&w, 0); /* key type */
		writer_u8(&w, 0); /* tagged fields */
		struct reader r = reader_of(body, writer_len(&w));
		bool good = message_request(KEY_FIND_COORDINATOR)->decode(&m, &r, 3, &arena);
		cr_assert_eq(good, len <= INT16_MAX, "%u", len);
	}
}

Test(decode, varints_of_more_than_32_bits_are_refused)
{
	struct heartbeat_request m;
	cr_assert(DECODE(KEY_HEARTBEAT, 4, &m, "\x82\x80\x80\x80\0g\0\0\0\1\2m\0\0"), "five bytes, not the shortest form");
	cr_assert(!DECODE(KEY_HEARTBEAT, 4, &m, "\x82\x80\x80\x80\x10g\0\0\0\1\2m\0\0"), "bit 32");
	cr_assert(!DECODE(KEY_HEARTBEAT, 4, &m, "\x82\x80\x80\x80\x80\0g\0\0\0\1\2m\0\0"), "six bytes");
}

Test(decode, unknown_tagged_fields_are_skipped)
{
	struct heartbeat_request m;
	cr_assert(DECODE(KEY_HEARTBEAT, 4, &m, "\2g\0\0\0\1\2m\2i\2\5\3abc\x80\1\0"));
	cr_assert(bytes_equal(m.group_instance_id, BYTES_LITERAL("i")));
	struct join_group_request j;
	cr_assert(DECODE(KEY_JOIN_GROUP, 6, &j, "\2g\0\0\0\1\0\0\0\2\2m\0\2c\2\2r\3ab\1\0\1x\1\7\0"), "inside an element, too");
	cr_assert_eq(j.protocols_len, 1);
	cr_assert(bytes_equal(j.protocols[0].metadata, BYTES_LITERAL("ab")));
}

Test(decode, tagged_fields_beyond_the_bytes_are_refused)
{
	struct heartbeat_request m;
	cr_assert(!DECODE(KEY_HEARTBEAT, 4, &m, "\2g\0\0\0\1\2m\0\1\5\4abc"), "size beyond the end");
	cr_assert(!DECODE(KEY_HEARTBEAT, 4, &m, "\2g\0\0\0\1\2m\0\2\5\3abc"), "one field less than said");
	cr_assert(!DECODE(KEY_HEARTBEAT, 4, &m, "\2g\0\0\0\1\2m\0\xff\xff\xff\xff\x0f"), "four billion of them");
	cr_assert(!DECODE(KEY_HEARTBEAT, 4, &m, "\2g\0\0\0\1\2m\0\1\5\xff\xff\xff\xff\x0f"), "of four billion bytes");
	cr_assert(!DECODE(KEY_HEARTBEAT, 4, &m, "\2g\0\0\0\1\2m\0"), "no section at all");
}

/* ApiVersions response 3: tag 1 is the epoch of the features, an int64. */
Test(decode, known_tagged_fields_must_fill_their_size)
{
	static const struct {
		const char *tags;
		size_t len;
		int64_t epoch; /* -2: malformed */
	} cases[] = {
		{"\0", 1, -1},
		{"\1\1\10\0\0\0\0\0\0\0\5", 11, 5},
		{"\2\1\10\0\0\0\0\0\0\0\5\3\1\1", 14, 5},
		{"\1\1\7\0\0\0\0\0\0\5", 10, -2},
		{"\1\1\11\0\0\0\0\0\0\0\5\0", 12, -2},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint8_t body[64] = {0, 0, 1, 0, 0, 0, 0}; /* error, no apis, throttle time */
		memcpy(body + 7, cases[i].tags, cases[i].len);
		struct arena arena = arena_of(arena_block, sizeof(arena_block));
		struct reader r = reader_of(body, 7 + cases[i].len);
		struct api_versions_response m;
		bool good = message_response(18)->decode(&m, &r, 3, &arena);
		cr_assert_eq(good, cases[i].epoch != -2, "case %zu", i);
		if (good) {
			cr_assert_eq(m.finalized_features_epoch, cases[i].epoch);
			cr_assert_eq(reader_left(&r), 0);
			cr_assert_eq(m.zk_migration_ready, i == 2);
		}
	}
}

/*
 * A tag that a later version brings is unknown in an earlier one: Fetch request 16 does not know tag 0 of a
 * partition.
 */
Test(decode, tagged_fields_of_later_versions_are_unknown)
{
	struct fetch_request m;
	uint8_t body[128];
	struct writer w = writer_of(body, sizeof(body));
	struct fetch_request_partition partition;
	struct fetch_request_topic topic;
	struct fetch_request out;
	fetch_request_partition_init(&partition);
	fetch_request_topic_init(&topic);
	fetch_request_init(&out);
	memset(partition.replica_directory_id.b, 7, sizeof(partition.replica_directory_id.b));
	topic.partitions = &partition, topic.partitions_len = 1;
	out.topics = &topic, out.topics_len = 1;
	message_request(1)->encode(&out, &w, 17);
	for (int16_t version = 16; version <= 17; version++) {
		struct arena arena = arena_of(arena_block, sizeof(arena_block));
		struct reader r = reader_of(body, writer_len(&w));
		cr_assert(message_request(1)->decode(&m, &r, version, &arena));
		cr_assert_eq(reader_left(&r), 0);
		cr_assert_eq(uuid_is_zero(&m.topics[0].partitions[0].replica_directory_id), version == 16);
	}
}

Test(decode, bytes_behind_the_body_stay_in_the_reader)
{
	struct heartbeat_request m;
	struct arena arena = arena_of(arena_block, sizeof(arena_block));
	struct reader r = reader_of("\0\1g\0\0\0\1\0\1mrest", 14);
	cr_assert(message_request(KEY_HEARTBEAT)->decode(&m, &r, 0, &arena));
	cr_assert_eq(reader_left(&r), 4);
}
