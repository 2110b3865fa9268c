/*
 * test_frames.c - headers and bodies as real clients and a real broker sent them to each other: decoded, used up,
 * encoded again to the same bytes.
 */
#include <criterion/criterion.h>

#include "coordinator/wire/api.h"
#include "coordinator/wire/arena.h"
#include "coordinator/wire/header.h"
#include "coordinator/wire/messages.h"

#include "tests/golden/frames.h"

#define ARENA_SIZE (1u << 18)

struct seen {
	struct arena arena;
	uint8_t message[1024];
	unsigned int requests[API_COUNT], responses[API_COUNT];
};

static void same(const struct frame *f, const struct writer *w)
{
	cr_assert(!w->full && writer_len(w) == f->len && memcmp(w->start, f->bytes, f->len) == 0, "%s %s %d %d", f->client, f->direction,
		  f->key, f->version);
}

static void request_again(const struct frame *f, struct seen *s)
{
	uint8_t again[FRAME_MAX];
	struct request_header h;
	struct reader r = reader_of(f->bytes, f->len);
	struct writer w = writer_of(again, sizeof(again));
	cr_assert(request_header_decode(&h, &r));
	cr_assert(h.served && h.api_key == f->key && h.version == f->version);
	const struct message_type *type = message_request(h.api_key);
	cr_assert(type->decode(s->message, &r, h.version, &s->arena), "%s %s %d", f->client, type->name, h.version);
	cr_assert_eq(reader_left(&r), 0, "%s %s %d", f->client, type->name, h.version);
	request_header_encode(&w, &h);
	type->encode(s->message, &w, h.version);
	same(f, &w);
	s->requests[api_index(h.api_key)]++;
}

static void response_again(const struct frame *f, struct seen *s)
{
	uint8_t again[FRAME_MAX];
	int32_t correlation_id;
	int16_t key = (int16_t)f->key, version = (int16_t)f->version;
	struct reader r = reader_of(f->bytes, f->len);
	struct writer w = writer_of(again, sizeof(again));
	cr_assert(response_header_decode(&correlation_id, &r, key, version));
	const struct message_type *type = message_response(key);
	cr_assert(type->decode(s->message, &r, version, &s->arena), "%s %s %d", f->client, type->name, version);
	cr_assert_eq(reader_left(&r), 0, "%s %s %d", f->client, type->name, version);
	response_header_encode(&w, key, version, correlation_id);
	type->encode(s->message, &w, version);
	same(f, &w);
	s->responses[api_index(key)]++;
}

static void frame_again(const struct frame *f, void *arg)
{
	struct seen *s = arg;
	arena_reset(&s->arena);
	if (strcmp(f->direction, "request") == 0)
		request_again(f, s);
	else
		response_again(f, s);
}

Test(frames, of_real_clients_and_a_real_broker_are_encoded_again_to_the_same_bytes)
{
	struct seen s = {.arena = arena_of(malloc(ARENA_SIZE), ARENA_SIZE)};
	cr_assert_gt(frames_each(GOLDEN_FRAMES, frame_again, &s), 100);
	for (unsigned int i = 0; i < API_COUNT; i++) {
		if (i == api_index_offset_for_leader_epoch) /* no client of these sends it */
			continue;
		cr_assert(s.requests[i] > 0 && s.responses[i] > 0, "no frame of %s", api_ranges[i].name);
	}
	free(s.arena.base);
}
