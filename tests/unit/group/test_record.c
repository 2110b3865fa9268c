/* test_record.c - records to bytes and back; old and flexible versions; every truncation is refused. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "coordinator/group/record.h"

#define SAME(a, b) cr_expect(bytes_equal(a, b))

Test(record, offset_key_bytes)
{
	static const uint8_t expected[] = {0, 1, 0, 2, 'g', '1', 0, 1, 't', 0, 0, 1, 2};
	uint8_t buf[64];
	struct writer w = writer_of(buf, sizeof(buf));
	record_offset_key(&w, BYTES_LITERAL("g1"), BYTES_LITERAL("t"), 258);
	cr_assert_eq(writer_len(&w), sizeof(expected));
	cr_expect_arr_eq(buf, expected, sizeof(expected));
	struct record_key k;
	cr_assert(record_key_decode(&k, bytes_of(buf, writer_len(&w))));
	cr_expect_eq(k.kind, RECORD_OFFSET);
	SAME(k.group, BYTES_LITERAL("g1"));
	SAME(k.topic, BYTES_LITERAL("t"));
	cr_expect_eq(k.partition, 258);
	buf[1] = 0; /* the old type of the same key */
	cr_assert(record_key_decode(&k, bytes_of(buf, writer_len(&w))));
	cr_expect_eq(k.kind, RECORD_OFFSET);
	buf[1] = 3; /* a type of another protocol */
	cr_assert(record_key_decode(&k, bytes_of(buf, writer_len(&w))));
	cr_expect_eq(k.kind, RECORD_OTHER);
}

Test(record, offset_value)
{
	static const uint8_t v3[] = {0, 3, 0, 0, 0, 0, 0, 0, 0, 42, 0, 0, 0, 7, 0, 1, 'm', 0, 0, 0, 0, 0, 0, 1, 0};
	uint8_t buf[64];
	struct writer w = writer_of(buf, sizeof(buf));
	struct record_offset in = {42, 7, BYTES_LITERAL("m"), 256, RECORD_NO_EXPIRY}, out;
	record_offset_value(&w, &in);
	cr_assert_eq(writer_len(&w), sizeof(v3));
	cr_expect_arr_eq(buf, v3, sizeof(v3));
	cr_assert(record_offset_decode(&out, bytes_of(buf, writer_len(&w))));
	cr_expect_eq(out.offset, 42);
	cr_expect_eq(out.leader_epoch, 7);
	SAME(out.metadata, in.metadata);
	cr_expect_eq(out.commit_ms, 256);
	cr_expect_eq(out.expire_ms, RECORD_NO_EXPIRY);

	w = writer_of(buf, sizeof(buf));
	in.expire_ms = 999;
	record_offset_value(&w, &in);
	cr_expect_eq(buf[1], 1);
	cr_assert(record_offset_decode(&out, bytes_of(buf, writer_len(&w))));
	cr_expect_eq(out.expire_ms, 999);
	cr_expect_eq(out.leader_epoch, -1); /* version 1 cannot hold it */
	cr_expect_eq(out.commit_ms, 256);
}

Test(record, offset_value_flexible_with_unknown_tag)
{
	static const uint8_t v4[] = {0, 4, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 1, 3, 'a', 'b', 0, 0, 0, 0, 0, 0, 0, 9, 1, 0, 2, 0xee, 0xee};
	struct record_offset out;
	cr_assert(record_offset_decode(&out, bytes_of(v4, sizeof(v4))));
	cr_expect_eq(out.offset, 5);
	SAME(out.metadata, BYTES_LITERAL("ab"));
	for (size_t n = 0; n < sizeof(v4); n++)
		cr_expect(!record_offset_decode(&out, bytes_of(v4, n)));
}

static size_t encode_group(uint8_t *buf, size_t cap)
{
	struct writer w = writer_of(buf, cap);
	struct record_group g = {.protocol_type = BYTES_LITERAL("consumer"), .generation = 3, .protocol = BYTES_LITERAL("range"),
				 .leader = BYTES_LITERAL("m1"), .state_ms = 1234567, .members_len = 2};
	struct record_member a = {BYTES_LITERAL("m1"), BYTES_NULL, BYTES_LITERAL("c"), BYTES_LITERAL("/1.2.3.4"), 60000, 10000,
				  BYTES_LITERAL("sub1"), BYTES_LITERAL("as1")};
	struct record_member b = {BYTES_LITERAL("m2"), BYTES_LITERAL("inst"), BYTES_EMPTY, BYTES_LITERAL("/1.2.3.5"), 1, 2, BYTES_EMPTY,
				  BYTES_EMPTY};
	record_group_value(&w, &g);
	record_group_member(&w, &a);
	record_group_member(&w, &b);
	cr_assert(!w.full);
	return writer_len(&w);
}

Test(record, group_value_round_trip_and_truncations)
{
	uint8_t buf[512];
	size_t len = encode_group(buf, sizeof(buf));
	struct record_group g;
	struct record_member m;
	cr_assert(record_group_decode(&g, bytes_of(buf, len)));
	cr_expect_eq(g.version, 3);
	SAME(g.protocol_type, BYTES_LITERAL("consumer"));
	SAME(g.protocol, BYTES_LITERAL("range"));
	SAME(g.leader, BYTES_LITERAL("m1"));
	cr_expect_eq(g.generation, 3);
	cr_expect_eq(g.state_ms, 1234567);
	cr_expect_eq(g.members_len, 2);
	cr_assert(record_group_next(&g, &m));
	SAME(m.id, BYTES_LITERAL("m1"));
	cr_expect(bytes_is_null(m.instance_id));
	SAME(m.subscription, BYTES_LITERAL("sub1"));
	SAME(m.assignment, BYTES_LITERAL("as1"));
	cr_expect_eq(m.rebalance_timeout_ms, 60000);
	cr_expect_eq(m.session_timeout_ms, 10000);
	cr_assert(record_group_next(&g, &m));
	SAME(m.instance_id, BYTES_LITERAL("inst"));
	SAME(m.host, BYTES_LITERAL("/1.2.3.5"));
	cr_expect(!record_group_next(&g, &m));
	for (size_t n = 0; n < len; n++)
		cr_expect(!record_group_decode(&g, bytes_of(buf, n)), "%zu", n);
}

Test(record, group_value_version_0)
{
	static const uint8_t v0[] = {0, 0, 0, 1, 'c', 0, 0, 0, 9, 0, 1, 'r', 0, 2, 'm', '1', 0, 0, 0, 1,
				     0, 2, 'm', '1', 0, 1, 'k', 0, 1, 'h', 0, 0, 0x27, 0x10, 0, 0, 0, 1, 's', 0, 0, 0, 1, 'a'};
	struct record_group g;
	struct record_member m;
	cr_assert(record_group_decode(&g, bytes_of(v0, sizeof(v0))));
	cr_expect_eq(g.state_ms, -1);
	cr_assert(record_group_next(&g, &m));
	cr_expect_eq(m.session_timeout_ms, 10000);
	cr_expect_eq(m.rebalance_timeout_ms, 10000);
	cr_expect(bytes_is_null(m.instance_id));
	SAME(m.assignment, BYTES_LITERAL("a"));
}

/* The same group in every value version, and an offset in version 4, as a real broker's library (4.3.1) writes them. */
static const char *const golden_groups[] = {
	"00000008636f6e73756d657200000007000572616e676500026d310000000200026d310003636c6900092f31302e312e322e3300002710"
	 "000000037375620000000361736700026d320003636c6900092f31302e312e322e33000027100000000373756200000000",
	"00010008636f6e73756d657200000007000572616e676500026d310000000200026d310003636c6900092f31302e312e322e330000ea60"
	 "00002710000000037375620000000361736700026d320003636c6900092f31302e312e322e330000ea6000002710000000037375620000"
	 "0000",
	"00020008636f6e73756d657200000007000572616e676500026d310000018bcfe5687b0000000200026d310003636c6900092f31302e31"
	 "2e322e330000ea6000002710000000037375620000000361736700026d320003636c6900092f31302e312e322e330000ea600000271000"
	 "00000373756200000000",
	"00030008636f6e73756d657200000007000572616e676500026d310000018bcfe5687b0000000200026d31ffff0003636c6900092f3130"
	 "2e312e322e330000ea6000002710000000037375620000000361736700026d320004696e73740003636c6900092f31302e312e322e3300"
	 "00ea60000027100000000373756200000000",
	"000409636f6e73756d6572000000070672616e6765036d310000018bcfe5687b03036d310004636c690a2f31302e312e322e330000ea60"
	 "00002710047375620461736700036d3205696e737404636c690a2f31302e312e322e330000ea600000271004737562010000",
};
static const char golden_offset[] = "0004000000000000002affffffff056d6574610000018bcfe569c800";

static size_t unhex(const char *hex, uint8_t *out)
{
	size_t n = strlen(hex) / 2;
	for (size_t i = 0; i < n; i++) {
		unsigned int byte;
		sscanf(hex + 2 * i, "%2x", &byte);
		out[i] = (uint8_t)byte;
	}
	return n;
}

Test(record, golden_values)
{
	uint8_t in[512], out[512], three[512];
	size_t three_len = unhex(golden_groups[3], three);
	for (int version = 0; version <= 4; version++) {
		struct record_group g;
		struct record_member m[2];
		size_t len = unhex(golden_groups[version], in);
		cr_assert(record_group_decode(&g, bytes_of(in, len)));
		cr_expect_eq(g.version, version);
		cr_expect_eq(g.state_ms, version >= 2 ? 1700000000123 : -1);
		struct writer w = writer_of(out, sizeof(out));
		struct record_group head = g;
		head.state_ms = 1700000000123;
		record_group_value(&w, &head);
		for (int i = 0; i < 2; i++) {
			cr_assert(record_group_next(&g, &m[i]));
			cr_expect_eq(m[i].rebalance_timeout_ms, version >= 1 ? 60000 : 10000);
			if (version < 3 && i == 1)
				m[i].instance_id = BYTES_LITERAL("inst");
			m[i].rebalance_timeout_ms = 60000;
			record_group_member(&w, &m[i]);
		}
		cr_assert_eq(writer_len(&w), three_len, "version %d", version);
		cr_expect_arr_eq(out, three, three_len);
		for (size_t n = 0; n < len; n++)
			cr_expect(!record_group_decode(&g, bytes_of(in, n)));
	}
	struct record_offset v;
	cr_assert(record_offset_decode(&v, bytes_of(in, unhex(golden_offset, in))));
	cr_expect_eq(v.offset, 42);
	cr_expect_eq(v.leader_epoch, -1);
	SAME(v.metadata, BYTES_LITERAL("meta"));
	cr_expect_eq(v.commit_ms, 1700000000456);
}

Test(record, hostile_values)
{
	struct record_group g;
	struct record_key k;
	struct record_offset o;
	static const uint8_t many[] = {0, 3, 0, 0, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff};
	static const uint8_t negative[] = {0, 3, 0, 0, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff};
	static const uint8_t newer[] = {0, 5, 0, 0, 0, 0, 0, 0, 0, 0};
	cr_expect(!record_group_decode(&g, bytes_of(many, sizeof(many))));
	cr_expect(!record_group_decode(&g, bytes_of(negative, sizeof(negative))));
	cr_expect(!record_group_decode(&g, bytes_of(newer, sizeof(newer))));
	cr_expect(!record_offset_decode(&o, bytes_of(newer, sizeof(newer))));
	cr_expect(!record_group_decode(&g, BYTES_NULL));
	cr_expect(!record_offset_decode(&o, BYTES_NULL));
	cr_expect(!record_key_decode(&k, BYTES_NULL));
	cr_expect(!record_key_decode(&k, BYTES_EMPTY));
	cr_expect(!record_key_decode(&k, BYTES_LITERAL("\0\2\377\377")));
	cr_expect(!record_key_decode(&k, BYTES_LITERAL("\0\2\0\5abc")));
}

/* A group in parts, byte for byte. */
Test(record, header_of_a_group_in_parts)
{
	static const uint8_t bytes[] = {0,    4,    9,    'c', 'o', 'n', 's', 'u', 'm', 'e', 'r', 0, 0, 0, 7, 6, 'r', 'a', 'n', 'g', 'e', 3, 'm', '1',
					0,    0,    1,    0x8b, 0xcf, 0xe5, 0x68, 0x7b, 1, 1, 0x81, 0x9a, 1, 13, 1, 0, 0, 0, 0, 0, 0, 0, 9,
					0,    0,    0x27, 0x10};
	uint8_t buf[128];
	struct writer w = writer_of(buf, sizeof(buf));
	struct record_group in = {.protocol_type = BYTES_LITERAL("consumer"), .generation = 7, .protocol = BYTES_LITERAL("range"),
				  .leader = BYTES_LITERAL("m1"), .state_ms = 1700000000123, .parts = {.edition = 9, .members = 10000, .slot = 1}}, out;
	record_group_value(&w, &in);
	cr_assert_eq(writer_len(&w), sizeof(bytes));
	cr_expect_arr_eq(buf, bytes, sizeof(bytes));
	cr_assert(record_group_decode(&out, bytes_of(buf, sizeof(bytes))));
	cr_expect_eq(out.members_len, 0);
	cr_expect_eq(out.parts.edition, 9);
	cr_expect_eq(out.parts.members, 10000);
	cr_expect_eq(out.parts.slot, 1);
	SAME(out.leader, in.leader);
	for (size_t n = 0; n < sizeof(bytes); n++)
		cr_expect(!record_group_decode(&out, bytes_of(buf, n)));
	buf[38] = 2; /* there are two slots */
	cr_expect(!record_group_decode(&out, bytes_of(buf, sizeof(bytes))));
}

Test(record, part_round_trip_and_truncations)
{
	uint8_t buf[256];
	struct writer w = writer_of(buf, sizeof(buf));
	struct record_part in = {.edition = 5, .generation = 3, .member = {BYTES_NULL, BYTES_LITERAL("inst"), BYTES_LITERAL("c"), BYTES_LITERAL("/1.2.3.4"),
									   60000, 10000, BYTES_LITERAL("sub"), BYTES_LITERAL("as")}}, out;
	struct record_key key;
	record_part_key(&w, BYTES_LITERAL("g"), 1, BYTES_LITERAL("m1"));
	cr_assert(record_key_decode(&key, bytes_of(buf, writer_len(&w))));
	cr_expect_eq(key.kind, RECORD_PART);
	cr_expect_eq(key.slot, 1);
	SAME(key.group, BYTES_LITERAL("g"));
	SAME(key.member, BYTES_LITERAL("m1"));
	for (size_t n = 0; n < writer_len(&w); n++)
		cr_expect(!record_key_decode(&key, bytes_of(buf, n)));
	w = writer_of(buf, sizeof(buf));
	record_part_value(&w, &in);
	size_t len = writer_len(&w);
	cr_assert(record_part_decode(&out, bytes_of(buf, len)));
	cr_expect_eq(out.edition, 5);
	cr_expect_eq(out.generation, 3);
	SAME(out.member.instance_id, in.member.instance_id);
	SAME(out.member.subscription, in.member.subscription);
	SAME(out.member.assignment, in.member.assignment);
	cr_expect_eq(out.member.session_timeout_ms, 10000);
	for (size_t n = 0; n < len; n++)
		cr_expect(!record_part_decode(&out, bytes_of(buf, n)));
	buf[1] = 1; /* of a later version */
	cr_expect(!record_part_decode(&out, bytes_of(buf, len)));
}
