/*
 * test_roundtrip.c - random structs of every message and version: encoded, decoded and encoded again they stay the
 * same, in text and in bytes. The structs are filled by one more expansion of messages.def.
 */
#include <criterion/criterion.h>

#include "coordinator/wire/arena.h"
#include "coordinator/wire/messages.h"

#define ARENA_SIZE (1u << 20)
#define BODY_SIZE (1u << 18)
#define TEXT_SIZE (1u << 19)
#define ROUNDS 40

struct filler {
	uint64_t random;
	struct arena arena;
};

static uint32_t fill_random(struct filler *f, uint32_t bound)
{
	f->random ^= f->random << 13;
	f->random ^= f->random >> 7;
	f->random ^= f->random << 17;
	return (uint32_t)(f->random >> 16) % bound;
}

/* Small numbers, and the whole range. */
static int64_t fill_int(struct filler *f)
{
	return fill_random(f, 3) == 0 ? (int64_t)f->random : (int64_t)fill_random(f, 5) - 2;
}

/* Mostly short; sometimes long enough for a compact length of two bytes. */
static struct bytes fill_bytes(struct filler *f, bool nullable)
{
	if (nullable && fill_random(f, 4) == 0)
		return BYTES_NULL;
	size_t len = fill_random(f, 16) == 0 ? 120 + fill_random(f, 200) : fill_random(f, 6);
	uint8_t *p = arena_alloc(&f->arena, len, 1);
	cr_assert(p != NULL);
	for (size_t i = 0; i < len; i++)
		p[i] = (uint8_t)fill_random(f, 256);
	return bytes_of(p, len);
}

static int32_t fill_count(struct filler *f, bool nullable)
{
	return (int32_t)fill_random(f, 4) - (nullable && fill_random(f, 4) == 0 ? 4 : 0);
}

static struct uuid fill_uuid(struct filler *f)
{
	struct uuid u = UUID_ZERO;
	for (unsigned int i = 0; i < sizeof(u.b) && f->random % 3 != 0; i++)
		u.b[i] = (uint8_t)fill_random(f, 256);
	return u;
}

#define LAST INT16_MAX
#define NEVER (INT16_MAX + 1)
#define VALUE_boolean(f) (fill_random(f, 2) == 1)
#define VALUE_int8(f) (int8_t)fill_int(f)
#define VALUE_int16(f) (int16_t)fill_int(f)
#define VALUE_int32(f) (int32_t)fill_int(f)
#define VALUE_int64(f) fill_int(f)
#define VALUE_uuid(f) fill_uuid(f)
#define VALUE_string(f) fill_bytes(f, false)

#define MESSAGE(name, kafka, key, lowest, highest, flexible) STRUCT(name, , )
#define STRUCT(name, message, kafka)                                                                       \
	static __attribute__((unused)) void name##_fill(struct name *m, struct filler *f, int version)     \
	{
#define END(name) }
#define SCALAR(type, name, from, to, dflt) m->name = VALUE_##type(f);
#define STRING(name, from, to, null, dflt) m->name = fill_bytes(f, version >= (null));
#define BYTES(name, from, to, null) m->name = fill_bytes(f, version >= (null));
#define RECORDS(name, from, to, null) m->name = fill_bytes(f, version >= (null));
#define ELEMENTS(of, name, null, fill)                                                             \
	{                                                                                          \
		int32_t count = fill_count(f, version >= (null));                                  \
		of *e = arena_alloc(&f->arena, count > 0 ? (size_t)count : 1, sizeof(of));         \
		cr_assert(e != NULL);                                                              \
		for (int32_t i = 0; i < count; i++)                                                \
			fill;                                                                      \
		m->name = e;                                                                       \
		m->name##_len = count < 0 ? -1 : count;                                            \
	}
#define ARRAY(type, name, from, to, null) ELEMENTS(type_##type, name, null, e[i] = VALUE_##type(f))
#define STRUCTS(type, name, from, to, null) ELEMENTS(struct type, name, null, type##_fill(&e[i], f, version))
#define NESTED(type, name, from, to, null) type##_fill(&m->name, f, version);
#define TAGGED_SCALAR(tag, type, name, from, to, dflt) SCALAR(type, name, from, to, dflt)
#define TAGGED_STRING(tag, name, from, to, null, dflt) STRING(name, from, to, null, dflt)
#define TAGGED_STRUCTS(tag, type, name, from, to, null) STRUCTS(type, name, from, to, null)
#define TAGGED_NESTED(tag, type, name, from, to, null) NESTED(type, name, from, to, null)
#include "coordinator/wire/messages.def"
#include "coordinator/wire/messages_undef.h"

static void fill_message(unsigned int index, void *m, struct filler *f, int version)
{
	unsigned int i = 0;
#define MESSAGE(name, kafka, key, lowest, highest, flexible) \
	if (index == i++)                                    \
		name##_fill(m, f, version);
#define STRUCT(name, message, kafka)
#define END(name)
#include "coordinator/wire/messages_no_fields.h"
#include "coordinator/wire/messages.def"
#include "coordinator/wire/messages_undef.h"
	cr_assert_lt(index, i);
}

struct side {
	uint8_t message[1024];
	uint8_t *body;
	size_t len;
	char *text;
	size_t text_len;
};

static void side_encode(struct side *s, const struct message_type *type, int16_t version)
{
	struct writer body = writer_of(s->body, BODY_SIZE), text = writer_of(s->text, TEXT_SIZE);
	type->encode(s->message, &body, version);
	type->print(s->message, &text, version);
	cr_assert(!body.full && !text.full);
	s->len = writer_len(&body);
	s->text_len = writer_len(&text);
}

static struct side *side_new(void)
{
	struct side *s = malloc(sizeof(*s));
	s->body = malloc(BODY_SIZE);
	s->text = malloc(TEXT_SIZE);
	return s;
}

static void side_free(struct side *s)
{
	free(s->body);
	free(s->text);
	free(s);
}

Test(roundtrip, random_structs_come_back_the_same)
{
	struct filler f = {.random = 0x9e3779b97f4a7c15, .arena = arena_of(malloc(ARENA_SIZE), ARENA_SIZE)};
	struct arena decoded = arena_of(malloc(ARENA_SIZE), ARENA_SIZE);
	struct side *a = side_new(), *b = side_new();
	for (unsigned int i = 0; i < message_types_len; i++) {
		const struct message_type *type = &message_types[i];
		cr_assert_leq(type->size, sizeof(a->message));
		for (int16_t version = type->lowest; version <= type->highest; version++) {
			for (int round = 0; round < ROUNDS; round++) {
				arena_reset(&f.arena);
				arena_reset(&decoded);
				fill_message(i, a->message, &f, version);
				side_encode(a, type, version);
				struct reader r = reader_of(a->body, a->len);
				cr_assert(type->decode(b->message, &r, version, &decoded), "%s %d", type->name, version);
				cr_assert_eq(reader_left(&r), 0);
				side_encode(b, type, version);
				cr_assert(a->text_len == b->text_len && memcmp(a->text, b->text, a->text_len) == 0,
					  "%s %d:\n%.*s\n%.*s", type->name, version, (int)a->text_len, a->text, (int)b->text_len,
					  b->text);
				cr_assert(a->len == b->len && memcmp(a->body, b->body, a->len) == 0, "%s %d", type->name, version);
			}
		}
	}
	free(f.arena.base);
	free(decoded.base);
	side_free(a);
	side_free(b);
}

/* What a version lacks comes out of the decoder as name_init leaves it, whatever stood in the memory. */
Test(roundtrip, fields_that_the_version_lacks_get_their_defaults)
{
	uint8_t arena_block[64];
	struct side *a = side_new(), *b = side_new();
	for (unsigned int i = 0; i < message_types_len; i++) {
		const struct message_type *type = &message_types[i];
		struct arena arena = arena_of(arena_block, sizeof(arena_block));
		type->init(a->message);
		side_encode(a, type, type->lowest);
		struct reader r = reader_of(a->body, a->len);
		memset(b->message, 0xa5, sizeof(b->message));
		cr_assert(type->decode(b->message, &r, type->lowest, &arena), "%s", type->name);
		side_encode(a, type, type->highest);
		side_encode(b, type, type->highest);
		cr_assert(a->text_len == b->text_len && memcmp(a->text, b->text, a->text_len) == 0, "%s:\n%.*s\n%.*s", type->name,
			  (int)a->text_len, a->text, (int)b->text_len, b->text);
	}
	side_free(a);
	side_free(b);
}
