/*
 * encode.c - encoders of all messages, expanded from messages.def.
 *
 * name_put writes the fields of a struct in wire order, then its tagged fields. A tagged field is left out when it
 * holds its default; those that are not are written in ascending order (as the rows of messages.def stand), each
 * behind its exact size, which is found by encoding the value into a writer without room. Null where the version
 * does not allow it is written as empty.
 */
#include "coordinator/wire/codec.h"

/* ---- primitive types ---- */

static inline void encode_boolean(struct writer *w, bool v)
{
	writer_u8(w, v);
}

static inline void encode_int8(struct writer *w, int8_t v)
{
	writer_u8(w, (uint8_t)v);
}

static inline void encode_int16(struct writer *w, int16_t v)
{
	writer_u16(w, (uint16_t)v);
}

static inline void encode_int32(struct writer *w, int32_t v)
{
	writer_u32(w, (uint32_t)v);
}

static inline void encode_int64(struct writer *w, int64_t v)
{
	writer_u64(w, (uint64_t)v);
}

static inline void encode_uuid(struct writer *w, struct uuid v)
{
	writer_raw(w, v.b, sizeof(v.b));
}

static inline void encode_string(struct writer *w, struct bytes v, bool flexible, bool nullable)
{
	CHECK(v.len <= STRING_MAX);
	int32_t len = v.len < 0 ? (nullable ? -1 : 0) : v.len;
	if (flexible)
		writer_uvarint(w, (uint32_t)(len + 1));
	else
		writer_u16(w, (uint16_t)len);
	if (len > 0)
		writer_raw(w, v.p, (size_t)len);
}

/* The length of bytes or of an array: i32, compact one more. Returns the number of elements to write. */
static inline int32_t encode_length(struct writer *w, int32_t len, bool flexible, bool nullable)
{
	if (len < 0)
		len = nullable ? -1 : 0;
	if (flexible)
		writer_uvarint(w, (uint32_t)len + 1);
	else
		writer_u32(w, (uint32_t)len);
	return len;
}

static inline void encode_bytes(struct writer *w, struct bytes v, bool flexible, bool nullable)
{
	int32_t len = encode_length(w, v.len, flexible, nullable);
	if (len > 0)
		writer_raw(w, v.p, (size_t)len);
}

/* The element types of ARRAY rows. */
#define ELEMENT_int32(w, v, flexible) encode_int32(w, v)
#define ELEMENT_int64(w, v, flexible) encode_int64(w, v)
#define ELEMENT_string(w, v, flexible) encode_string(w, v, flexible, false)

/* ---- whether a struct holds only defaults: a tagged field of such a value is left out ---- */

#define IS_DEFAULT_uuid(v, dflt) uuid_is_zero(&(v))
#define IS_DEFAULT_boolean(v, dflt) ((v) == DEFAULT_boolean(dflt))
#define IS_DEFAULT_int8(v, dflt) ((v) == (dflt))
#define IS_DEFAULT_int16(v, dflt) ((v) == (dflt))
#define IS_DEFAULT_int32(v, dflt) ((v) == (dflt))
#define IS_DEFAULT_int64(v, dflt) ((v) == (dflt))

#define MESSAGE(name, kafka, key, lowest, highest, flexible) STRUCT(name, , )
#define STRUCT(name, message, kafka)                                              \
	GENERATED bool name##_is_default(const struct name *m)                \
	{                                                                         \
		bool is = true;
#define END(name)          \
		return is; \
	}
#define SCALAR(type, name, from, to, dflt) is = is && IS_DEFAULT_##type(m->name, dflt);
#define STRING(name, from, to, null, dflt) is = is && bytes_equal(m->name, dflt);
#define BYTES(name, from, to, null) is = is && m->name.len == 0;
#define RECORDS(name, from, to, null) is = is && m->name.len == 0;
#define ARRAY(type, name, from, to, null) is = is && m->name##_len == 0;
#define STRUCTS(type, name, from, to, null) is = is && m->name##_len == 0;
#define NESTED(type, name, from, to, null) is = is && type##_is_default(&m->name);
#define TAGGED_SCALAR(tag, type, name, from, to, dflt) SCALAR(type, name, from, to, dflt)
#define TAGGED_STRING(tag, name, from, to, null, dflt) STRING(name, from, to, null, dflt)
#define TAGGED_STRUCTS(tag, type, name, from, to, null) STRUCTS(type, name, from, to, null)
#define TAGGED_NESTED(tag, type, name, from, to, null) NESTED(type, name, from, to, null)
#include "coordinator/wire/messages.def"
#include "coordinator/wire/messages_undef.h"

/* ---- how many tagged fields a struct has to write ---- */

#define PRESENT_SCALAR(type, name, from, to, dflt) (CARRIED(from, to) && !IS_DEFAULT_##type(m->name, dflt))
#define PRESENT_STRING(name, from, to, dflt) (CARRIED(from, to) && !bytes_equal(m->name, dflt))
#define PRESENT_STRUCTS(name, from, to) (CARRIED(from, to) && m->name##_len > 0)
#define PRESENT_NESTED(type, name, from, to) (CARRIED(from, to) && !type##_is_default(&m->name))

#define MESSAGE(name, kafka, key, lowest, highest, flexible) STRUCT(name, , )
#define STRUCT(name, message, kafka)                                         \
	GENERATED uint32_t name##_tags(const struct name *m, int version)    \
	{                                                                    \
		uint32_t n = 0;
#define END(name)         \
		return n; \
	}
#define SCALAR(type, name, from, to, dflt)
#define STRING(name, from, to, null, dflt)
#define BYTES(name, from, to, null)
#define RECORDS(name, from, to, null)
#define ARRAY(type, name, from, to, null)
#define STRUCTS(type, name, from, to, null)
#define NESTED(type, name, from, to, null)
#define TAGGED_SCALAR(tag, type, name, from, to, dflt) n += PRESENT_SCALAR(type, name, from, to, dflt);
#define TAGGED_STRING(tag, name, from, to, null, dflt) n += PRESENT_STRING(name, from, to, dflt);
#define TAGGED_STRUCTS(tag, type, name, from, to, null) n += PRESENT_STRUCTS(name, from, to);
#define TAGGED_NESTED(tag, type, name, from, to, null) n += PRESENT_NESTED(type, name, from, to);
#include "coordinator/wire/messages.def"
#include "coordinator/wire/messages_undef.h"

/* ---- structs and arrays of them, declared before use ---- */

#define MESSAGE(name, kafka, key, lowest, highest, flexible)
#define STRUCT(name, message, kafka)                                                                                \
	static void name##_put(const struct name *m, struct writer *w, int version, bool flexible);                 \
	GENERATED void name##_put_array(const struct name *m, int32_t count, struct writer *w, int version,         \
					bool flexible, bool nullable)                                               \
	{                                                                                                           \
		count = encode_length(w, count, flexible, nullable);                                                \
		for (int32_t i = 0; i < count; i++)                                                                 \
			name##_put(&m[i], w, version, flexible);                                                    \
	}
#define END(name)
#include "coordinator/wire/messages_no_fields.h"
#include "coordinator/wire/messages.def"
#include "coordinator/wire/messages_undef.h"

/* ---- the tagged fields of a struct ---- */

/*
 * `probing` and `writing` are the same expression, first on `probe`, a writer without room that only counts, then
 * on `w`.
 */
#define TAGGED(tag, present, probing, writing)                 \
	if (present) {                                         \
		struct writer probe = writer_of(w->p, 0);      \
		probing;                                       \
		writer_uvarint(w, tag);                        \
		writer_uvarint(w, (uint32_t)probe.need);       \
		writing;                                       \
	}

#define MESSAGE(name, kafka, key, lowest, highest, flexible) STRUCT(name, , )
#define STRUCT(name, message, kafka)                                                                    \
	static inline void name##_put_tagged(const struct name *m, struct writer *w, int version)       \
	{                                                                                               \
		writer_uvarint(w, name##_tags(m, version));
#define END(name) }
#define SCALAR(type, name, from, to, dflt)
#define STRING(name, from, to, null, dflt)
#define BYTES(name, from, to, null)
#define RECORDS(name, from, to, null)
#define ARRAY(type, name, from, to, null)
#define STRUCTS(type, name, from, to, null)
#define NESTED(type, name, from, to, null)
#define TAGGED_SCALAR(tag, type, name, from, to, dflt)                                                      \
	TAGGED(tag, PRESENT_SCALAR(type, name, from, to, dflt), encode_##type(&probe, m->name),             \
	       encode_##type(w, m->name))
#define TAGGED_STRING(tag, name, from, to, null, dflt)                                                            \
	TAGGED(tag, PRESENT_STRING(name, from, to, dflt), encode_string(&probe, m->name, true, version >= (null)), \
	       encode_string(w, m->name, true, version >= (null)))
#define TAGGED_STRUCTS(tag, type, name, from, to, null)                                                \
	TAGGED(tag, PRESENT_STRUCTS(name, from, to),                                                   \
	       type##_put_array(m->name, m->name##_len, &probe, version, true, version >= (null)),     \
	       type##_put_array(m->name, m->name##_len, w, version, true, version >= (null)))
#define TAGGED_NESTED(tag, type, name, from, to, null)                                            \
	TAGGED(tag, PRESENT_NESTED(type, name, from, to), type##_put(&m->name, &probe, version, true), \
	       type##_put(&m->name, w, version, true))
#include "coordinator/wire/messages.def"
#include "coordinator/wire/messages_undef.h"

/* ---- all fields of a struct ---- */

#define PUT(call, name)                                                                                    \
	static call void name##_put(const struct name *m, struct writer *w, int version, bool flexible)    \
	{
#define MESSAGE(name, kafka, key, lowest, highest, flexible) PUT(ALWAYS_INLINE, name)
#define STRUCT(name, message, kafka) PUT(, name)
#define END(name)                                            \
		if (flexible)                                \
			name##_put_tagged(m, w, version);    \
	}
#define SCALAR(type, name, from, to, dflt) \
	if (CARRIED(from, to))             \
		encode_##type(w, m->name);
#define STRING(name, from, to, null, dflt) \
	if (CARRIED(from, to))             \
		encode_string(w, m->name, flexible, version >= (null));
#define BYTES(name, from, to, null) \
	if (CARRIED(from, to))      \
		encode_bytes(w, m->name, flexible, version >= (null));
#define RECORDS(name, from, to, null) BYTES(name, from, to, null)
#define ARRAY(type, name, from, to, null)                                                              \
	if (CARRIED(from, to)) {                                                                       \
		int32_t count = encode_length(w, m->name##_len, flexible, version >= (null));          \
		for (int32_t i = 0; i < count; i++)                                                    \
			ELEMENT_##type(w, m->name[i], flexible);                                       \
	}
#define STRUCTS(type, name, from, to, null) \
	if (CARRIED(from, to))              \
		type##_put_array(m->name, m->name##_len, w, version, flexible, version >= (null));
#define NESTED(type, name, from, to, null) \
	if (CARRIED(from, to))             \
		type##_put(&m->name, w, version, flexible);
#define TAGGED_SCALAR(tag, type, name, from, to, dflt)
#define TAGGED_STRING(tag, name, from, to, null, dflt)
#define TAGGED_STRUCTS(tag, type, name, from, to, null)
#define TAGGED_NESTED(tag, type, name, from, to, null)
#include "coordinator/wire/messages.def"
#include "coordinator/wire/messages_undef.h"

/* ---- whole messages ---- */

/* The writer is copied for the same reason as decode.c's reader. */
#define MESSAGE(name, kafka, key, lowest, highest, flexible)                     \
	void name##_encode(const void *m, struct writer *w, int16_t version)     \
	{                                                                        \
		CHECK(version >= (lowest) && version <= (highest));              \
		struct writer local = *w;                                        \
		if (NEWEST_APART(name) && version == (highest))                  \
			name##_put(m, &local, highest, (highest) >= (flexible)); \
		else                                                             \
			name##_put(m, &local, version, version >= (flexible));   \
		*w = local;                                                      \
	}
#define STRUCT(name, message, kafka)
#define END(name)
#include "coordinator/wire/messages_no_fields.h"
#include "coordinator/wire/messages.def"
#include "coordinator/wire/messages_undef.h"
