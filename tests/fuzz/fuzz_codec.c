/*
 * fuzz_codec.c - arbitrary bytes as the body of any message: what decodes must encode to no more bytes, decode
 * again, and be the same text.
 *
 * Input: message (index into message_types, modulo), version (modulo the number of versions), arena size in units of
 * 64 bytes with 255 for a large one, then the body.
 */
#include <stdlib.h>

#include "muster/check.h"

#include "coordinator/wire/arena.h"
#include "coordinator/wire/messages.h"

#define ARENA_SIZE (1u << 22)
#define TEXT_SIZE (1u << 18)
#define MESSAGE_SIZE 1024

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Text of the message in `text`, cut at its size; the length it would have had. */
static size_t print(const struct message_type *type, const void *m, int16_t version, uint8_t *text)
{
	struct writer w = writer_of(text, TEXT_SIZE);
	memset(text, 0, TEXT_SIZE);
	type->print(m, &w, version);
	return w.need;
}

static void encode_and_decode_again(const struct message_type *type, const void *m, int16_t version, size_t body_size)
{
	static _Alignas(16) uint8_t block[ARENA_SIZE];
	static _Alignas(16) uint8_t again[MESSAGE_SIZE];
	static uint8_t before[TEXT_SIZE], after[TEXT_SIZE];
	uint8_t *body = malloc(body_size > 0 ? body_size : 1);
	CHECK(body != NULL);
	struct writer w = writer_of(body, body_size);
	type->encode(m, &w, version);
	CHECK(!w.full && w.need == writer_len(&w));

	struct arena arena = arena_of(block, sizeof(block));
	struct reader r = reader_of(body, writer_len(&w));
	CHECK(type->decode(again, &r, version, &arena));
	CHECK(reader_left(&r) == 0);
	size_t len = print(type, m, version, before);
	CHECK(print(type, again, version, after) == len);
	CHECK(memcmp(before, after, TEXT_SIZE) == 0);
	free(body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static _Alignas(16) uint8_t block[ARENA_SIZE];
	static _Alignas(16) uint8_t message[MESSAGE_SIZE];
	if (size < 3)
		return 0;
	const struct message_type *type = &message_types[data[0] % message_types_len];
	int16_t version = (int16_t)(type->lowest + data[1] % (type->highest - type->lowest + 1));
	struct arena arena = arena_of(block, data[2] == 255 ? ARENA_SIZE : data[2] * 64u);
	struct reader r = reader_of(data + 3, size - 3);
	CHECK(type->size <= MESSAGE_SIZE);
	memset(message, 0xa5, MESSAGE_SIZE);
	if (type->decode(message, &r, version, &arena))
		encode_and_decode_again(type, message, version, size - 3);
	return 0;
}
