/*
 * test_steady.c - the short reading of a heartbeat against the general codec: what it takes, it must understand as that does, byte for byte; and what
 * clients really send it must take.
 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "coordinator/wire/arena.h"
#include "coordinator/wire/header.h"
#include "coordinator/wire/steady.h"

struct frame {
	uint8_t bytes[512];
	size_t len;
};

static void make(struct frame *f, int16_t version, struct bytes client, struct bytes group, struct bytes member, struct bytes instance)
{
	struct writer w = writer_of(f->bytes, sizeof(f->bytes));
	struct request_header h = {api_key_heartbeat, version, 0x01020304, client, true};
	struct heartbeat_request in = {group, 0x7f006001, member, instance};
	request_header_encode(&w, &h);
	message_request(api_key_heartbeat)->encode(&in, &w, version);
	cr_assert_not(w.full);
	f->len = writer_len(&w);
}

static bool same(struct bytes a, struct bytes b)
{
	return a.len == b.len && bytes_equal(a, b);
}

/* True: taken, and then as the general codec takes it. The frame lies at the end of its allocation, so that sanitizers see a byte too many. */
static bool agrees(const uint8_t *bytes, size_t len)
{
	uint8_t *p = malloc(len), block[4096];
	memcpy(p, bytes, len);
	struct steady s;
	bool taken = steady_read(&s, p, len);
	if (taken) {
		struct reader r = reader_of(p, len);
		struct request_header h;
		struct heartbeat_request in;
		struct arena arena = arena_of(block, sizeof(block));
		cr_assert(request_header_decode(&h, &r) && h.served && h.api_key == api_key_heartbeat);
		cr_assert(message_request(api_key_heartbeat)->decode(&in, &r, h.version, &arena));
		cr_assert_eq(reader_left(&r), 0);
		cr_assert_eq(s.flexible, h.version == 4);
		struct reader id = reader_of(s.correlation_id, sizeof(s.correlation_id));
		cr_assert_eq((int32_t)reader_u32(&id), h.correlation_id);
		cr_assert(same(s.body.group_id, in.group_id) && same(s.body.member_id, in.member_id));
		cr_assert(same(s.body.group_instance_id, in.group_instance_id));
		cr_assert_eq(s.body.generation_id, in.generation_id);
	}
	free(p);
	return taken;
}

static struct bytes text(size_t len)
{
	static const char x[300] = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";
	return bytes_of(x, len);
}

Test(steady, takes_what_clients_send)
{
	struct frame f;
	for (int16_t version = 3; version <= 4; version++) {
		make(&f, version, BYTES_LITERAL("consumer-1"), BYTES_LITERAL("orders"), BYTES_LITERAL("consumer-1-uuid"), BYTES_NULL);
		cr_expect(agrees(f.bytes, f.len));
		make(&f, version, BYTES_NULL, BYTES_LITERAL("orders"), BYTES_LITERAL("consumer-1-uuid"), BYTES_LITERAL("instance-1"));
		cr_expect(agrees(f.bytes, f.len));
		make(&f, version, BYTES_EMPTY, text(126), text(0), text(126));
		cr_expect(agrees(f.bytes, f.len));
	}
}

Test(steady, leaves_the_rest_to_the_general_codec)
{
	struct frame f;
	for (int16_t version = 0; version <= 2; version++) {
		make(&f, version, BYTES_NULL, BYTES_LITERAL("g"), BYTES_LITERAL("m"), BYTES_NULL);
		cr_expect_not(agrees(f.bytes, f.len));
	}
	make(&f, 4, BYTES_NULL, text(127), BYTES_LITERAL("m"), BYTES_NULL);
	cr_expect_not(agrees(f.bytes, f.len), "a length of two bytes");
	make(&f, 4, BYTES_NULL, BYTES_LITERAL("g"), BYTES_LITERAL("m"), BYTES_NULL);
	f.bytes[1] = api_key_sync_group;
	cr_expect_not(agrees(f.bytes, f.len));
	f.bytes[1] = api_key_heartbeat;
	f.bytes[f.len++] = 0;
	cr_expect_not(agrees(f.bytes, f.len), "something behind the body");
}

/* Every cut, and every value of every byte. */
Test(steady, understands_no_frame_otherwise_than_the_general_codec)
{
	for (int16_t version = 3; version <= 4; version++) {
		struct frame f;
		unsigned int taken = 0;
		make(&f, version, BYTES_LITERAL("c"), BYTES_LITERAL("group"), BYTES_LITERAL("member"), version == 3 ? BYTES_NULL : BYTES_LITERAL("i"));
		for (size_t len = 1; len < f.len; len++)
			cr_expect_not(agrees(f.bytes, len));
		for (size_t at = 0; at < f.len; at++) {
			uint8_t was = f.bytes[at];
			for (unsigned int v = 0; v < 256; v++) {
				f.bytes[at] = (uint8_t)v;
				taken += agrees(f.bytes, f.len);
			}
			f.bytes[at] = was;
		}
		cr_expect_gt(taken, 256 * 16u, "the correlation id, the generation and the texts may be anything");
	}
}

/* Two bytes at a time, so that lengths can shift against each other. */
Test(steady, understands_pairs_of_changes_as_the_general_codec)
{
	struct frame f;
	make(&f, 4, BYTES_LITERAL("c"), BYTES_LITERAL("gr"), BYTES_LITERAL("mem"), BYTES_LITERAL("i"));
	for (size_t a = 8; a < f.len; a++) {
		for (size_t b = a + 1; b < f.len; b++) {
			struct frame g = f;
			for (unsigned int v = 0; v < 12 * 12; v++) {
				g.bytes[a] = (uint8_t)(v / 12);
				g.bytes[b] = (uint8_t)(v % 12);
				agrees(g.bytes, g.len);
			}
		}
	}
}

Test(steady, answers_as_the_general_codec)
{
	const int16_t errors[] = {0, 27, 22, 25, -1, 0x1234};
	for (int16_t version = 3; version <= 4; version++) {
		for (unsigned int i = 0; i < ARRAY_LEN(errors); i++) {
			struct steady s = {.correlation_id = {1, 2, 3, 4}, .flexible = version == 4};
			struct heartbeat_response response = {0, errors[i]};
			uint8_t out[STEADY_ANSWER_MAX], expected[64];
			struct writer w = writer_of(expected, sizeof(expected));
			writer_u32(&w, 0);
			response_header_encode(&w, api_key_heartbeat, version, 0x01020304);
			message_response(api_key_heartbeat)->encode(&response, &w, version);
			size_t len = writer_len(&w);
			expected[3] = (uint8_t)(len - 4);
			cr_assert_eq(steady_answer(out, &s, errors[i]), len);
			cr_assert_eq(memcmp(out, expected, len), 0);
		}
	}
}
