/*
 * decode.c - decoders of all messages, expanded from messages.def.
 *
 * name_fields decodes the fields of a struct in wire order, then its tagged fields; name_tag decodes the value of
 * one tagged field; name_decode is the entry for a whole message. Malformed input sets `bad` in the reader and the
 * code runs on over zeroes, since a failed reader yields nothing else; only loops look at it.
 *
 * Lengths: -1 (compact: 0) is null; Kafka takes every other negative length for null, too, and so do we. Null where
 * the version does not allow it is malformed. An array's count is compared with the bytes that are left before
 * anything is allocated: an element takes at least one byte.
 */
#include "coordinator/wire/codec.h"

/* ---- primitive types ---- */

static inline bool decode_boolean(struct reader *r)
{
	return reader_u8(r) != 0;
}

static inline int8_t decode_int8(struct reader *r)
{
	return (int8_t)reader_u8(r);
}

static inline int16_t decode_int16(struct reader *r)
{
	return (int16_t)reader_u16(r);
}

static inline int32_t decode_int32(struct reader *r)
{
	return (int32_t)reader_u32(r);
}

static inline int64_t decode_int64(struct reader *r)
{
	return (int64_t)reader_u64(r);
}

static inline struct uuid decode_uuid(struct reader *r)
{
	struct uuid u = UUID_ZERO;
	const uint8_t *p = reader_take(r, sizeof(u.b));
	if (p != NULL)
		memcpy(u.b, p, sizeof(u.b));
	return u;
}

/* A compact length: one more than the length on the wire, 0 for null. */
static inline int32_t decode_compact_length(struct reader *r)
{
	return (int32_t)(reader_uvarint(r) - 1);
}

/* `len` bytes, or null where that is allowed. */
static ALWAYS_INLINE struct bytes decode_slice(struct reader *r, int32_t len, bool nullable)
{
	if (unlikely(len < 0)) {
		r->bad |= !nullable;
		return BYTES_NULL;
	}
	if (!reader_has(r, (size_t)len))
		return BYTES_EMPTY;
	r->p += len;
	return bytes_of(r->p - len, (size_t)len);
}

static ALWAYS_INLINE struct bytes decode_string(struct reader *r, bool flexible, bool nullable)
{
	int32_t len = flexible ? decode_compact_length(r) : decode_int16(r);
	if (unlikely(len > STRING_MAX))
		r->bad = true;
	return decode_slice(r, len, nullable);
}

static inline struct bytes decode_bytes(struct reader *r, bool flexible, bool nullable)
{
	return decode_slice(r, flexible ? decode_compact_length(r) : decode_int32(r), nullable);
}

/*
 * The elements of an array, allocated for as many as the count says, in *elements; returns the count, -1 for null.
 * Afterwards the reader is bad if the count is not possible or the arena is full; the count is then 0.
 */
static inline int32_t decode_count(struct reader *r, bool flexible, bool nullable, size_t size, struct arena *arena, void **elements)
{
	int32_t count = flexible ? decode_compact_length(r) : decode_int32(r);
	*elements = NULL;
	if (count < 0) {
		r->bad |= !nullable;
		return -1;
	}
	if (count == 0)
		return 0;
	if (!r->bad && (size_t)count <= reader_left(r))
		*elements = arena_alloc(arena, (size_t)count, size);
	if (unlikely(*elements == NULL)) {
		r->bad = true;
		return 0;
	}
	return count;
}

/* The element types of ARRAY rows. */
#define ELEMENT_int32(r, flexible) decode_int32(r)
#define ELEMENT_int64(r, flexible) decode_int64(r)
#define ELEMENT_string(r, flexible) decode_string(r, flexible, false)

/* ---- arrays, with the decoders of their elements declared before use ---- */

#define MESSAGE(name, kafka, key, lowest, highest, flexible)
#define STRUCT(name, message, kafka)                                                                         \
	static void name##_fields(struct name *m, struct reader *r, int version, bool flexible, struct arena *arena);
#define END(name)
#include "coordinator/wire/messages_no_fields.h"
#include "coordinator/wire/messages.def"
#include "coordinator/wire/messages_undef.h"

#define ARRAY_OF(type, name, from, to, null)                                                                         \
	do {                                                                                                         \
		void *elements;                                                                                      \
		m->name##_len = decode_count(r, flexible, version >= (null), sizeof(*m->name), arena, &elements);    \
		m->name = elements;                                                                                  \
		type_##type *e = elements;                                                                           \
		for (int32_t i = 0; i < m->name##_len && !r->bad; i++)                                               \
			e[i] = ELEMENT_##type(r, flexible);                                                          \
	} while (0)

#define ARRAY_OF_STRUCTS(type, name, from, to, null)                                                                 \
	do {                                                                                                         \
		void *elements;                                                                                      \
		m->name##_len = decode_count(r, flexible, version >= (null), sizeof(*m->name), arena, &elements);    \
		m->name = elements;                                                                                  \
		struct type *e = elements;                                                                           \
		for (int32_t i = 0; i < m->name##_len && !r->bad; i++)                                               \
			type##_fields(&e[i], r, version, flexible, arena);                                           \
	} while (0)

/* ---- the value of a tagged field: false when the struct has no such field in this version ---- */

#define MESSAGE(name, kafka, key, lowest, highest, flexible) STRUCT(name, , )
#define STRUCT(name, message, kafka)                                                                                 \
	static inline bool name##_tag(struct name *m, uint32_t tag, struct reader *r, int version, struct arena *arena) \
	{                                                                                                            \
		const bool flexible = true;                                                                          \
		(void)flexible;                                                                                      \
		switch (tag) {
#define END(name)             \
	default:              \
		return false; \
		}             \
		}
#define TAGGED(tag, from, to, decode)    \
	case tag:                        \
		if (!CARRIED(from, to))  \
			return false;    \
		decode;                  \
		return true;
#define TAGGED_SCALAR(tag, type, name, from, to, dflt) TAGGED(tag, from, to, m->name = decode_##type(r))
#define TAGGED_STRING(tag, name, from, to, null, dflt) \
	TAGGED(tag, from, to, m->name = decode_string(r, flexible, version >= (null)))
#define TAGGED_STRUCTS(tag, type, name, from, to, null) TAGGED(tag, from, to, ARRAY_OF_STRUCTS(type, name, from, to, null))
#define TAGGED_NESTED(tag, type, name, from, to, null) \
	TAGGED(tag, from, to, type##_fields(&m->name, r, version, flexible, arena))
#define SCALAR(type, name, from, to, dflt)
#define STRING(name, from, to, null, dflt)
#define BYTES(name, from, to, null)
#define RECORDS(name, from, to, null)
#define ARRAY(type, name, from, to, null)
#define STRUCTS(type, name, from, to, null)
#define NESTED(type, name, from, to, null)
#include "coordinator/wire/messages.def"
#include "coordinator/wire/messages_undef.h"

/* ---- all fields of a struct ---- */

/* The next tagged field: its number, its value as a reader of its own. */
static ALWAYS_INLINE struct reader decode_tagged(struct reader *r, uint32_t *tag)
{
	*tag = reader_uvarint(r);
	uint32_t size = reader_uvarint(r);
	const uint8_t *p = reader_take(r, size);
	return reader_of(p == NULL ? r->end : p, p == NULL ? 0 : size);
}

#define FIELDS(call, name)                                                                                         \
	static call void name##_fields(struct name *m, struct reader *r, int version, bool flexible, struct arena *arena) \
	{
#define MESSAGE(name, kafka, key, lowest, highest, flexible) FIELDS(ALWAYS_INLINE, name)
#define STRUCT(name, message, kafka) FIELDS(, name)
/* A tagged field must fill its size exactly. */
#define END(name)                                                                                \
	if (!flexible)                                                                           \
		return;                                                                          \
	for (uint32_t n = reader_uvarint(r); unlikely(n > 0) && !r->bad; n--) {                  \
		uint32_t tag;                                                                    \
		struct reader value = decode_tagged(r, &tag);                                    \
		if (!r->bad && name##_tag(m, tag, &value, version, arena))                       \
			r->bad = value.bad || reader_left(&value) != 0;                          \
	}                                                                                        \
	}
#define SCALAR(type, name, from, to, dflt) m->name = CARRIED(from, to) ? decode_##type(r) : DEFAULT_##type(dflt);
#define STRING(name, from, to, null, dflt) m->name = CARRIED(from, to) ? decode_string(r, flexible, version >= (null)) : dflt;
#define BYTES(name, from, to, null) m->name = CARRIED(from, to) ? decode_bytes(r, flexible, version >= (null)) : BYTES_EMPTY;
#define RECORDS(name, from, to, null) BYTES(name, from, to, null)
#define ARRAY(type, name, from, to, null)                     \
	m->name = NULL, m->name##_len = 0;                    \
	if (CARRIED(from, to))                                \
		ARRAY_OF(type, name, from, to, null);
#define STRUCTS(type, name, from, to, null)                   \
	m->name = NULL, m->name##_len = 0;                    \
	if (CARRIED(from, to))                                \
		ARRAY_OF_STRUCTS(type, name, from, to, null);
#define NESTED(type, name, from, to, null)                                 \
	if (CARRIED(from, to))                                             \
		type##_fields(&m->name, r, version, flexible, arena);      \
	else                                                               \
		type##_init(&m->name);
#define TAGGED_SCALAR(tag, type, name, from, to, dflt) m->name = DEFAULT_##type(dflt);
#define TAGGED_STRING(tag, name, from, to, null, dflt) m->name = dflt;
#define TAGGED_STRUCTS(tag, type, name, from, to, null) m->name = NULL, m->name##_len = 0;
#define TAGGED_NESTED(tag, type, name, from, to, null) type##_init(&m->name);
#include "coordinator/wire/messages.def"
#include "coordinator/wire/messages_undef.h"

/* ---- whole messages ---- */

/* The reader is copied, so that it lies in registers where no decoder of a nested struct needs its address. */
#define MESSAGE(name, kafka, key, lowest, highest, flexible)                                \
	bool name##_decode(void *m, struct reader *r, int16_t version, struct arena *arena) \
	{                                                                                   \
		CHECK(version >= (lowest) && version <= (highest));                         \
		struct reader local = *r;                                                   \
		if (NEWEST_APART(name) && version == (highest))                             \
			name##_fields(m, &local, highest, (highest) >= (flexible), arena);  \
		else                                                                        \
			name##_fields(m, &local, version, version >= (flexible), arena);    \
		*r = local;                                                                 \
		return !local.bad;                                                          \
	}
#define STRUCT(name, message, kafka)
#define END(name)
#include "coordinator/wire/messages_no_fields.h"
#include "coordinator/wire/messages.def"
#include "coordinator/wire/messages_undef.h"
