/*
 * print.c - messages as text for logs and tests, expanded from messages.def.
 *
 * name{field=value field=[value value] ...}: strings quoted, with \xNN for what is not printable ASCII, bytes in hex
 * behind 0x, uuids as Kafka writes them (base64 of the URL alphabet, no padding), null as null. Only fields that the
 * version carries, tagged ones in the place of their row.
 */
#include "coordinator/wire/codec.h"

static void print_text(struct writer *w, const char *s)
{
	writer_raw(w, s, strlen(s));
}

static void print_hex(struct writer *w, uint8_t b)
{
	static const char digit[] = "0123456789abcdef";
	writer_u8(w, (uint8_t)digit[b >> 4]);
	writer_u8(w, (uint8_t)digit[b & 15]);
}

static void print_int(struct writer *w, int64_t v)
{
	char text[24];
	snprintf(text, sizeof(text), "%lld", (long long)v);
	print_text(w, text);
}

#define print_boolean(w, v) print_text(w, (v) ? "true" : "false")
#define print_int8(w, v) print_int(w, v)
#define print_int16(w, v) print_int(w, v)
#define print_int32(w, v) print_int(w, v)
#define print_int64(w, v) print_int(w, v)

static void print_uuid(struct writer *w, struct uuid u)
{
	static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
	for (unsigned int bit = 0; bit < 128; bit += 6) {
		unsigned int at = bit / 8;
		unsigned int two = (unsigned int)(u.b[at] << 8 | (at < 15 ? u.b[at + 1] : 0));
		writer_u8(w, (uint8_t)digit[two >> (10 - bit % 8) & 63]);
	}
}

static void print_string(struct writer *w, struct bytes v)
{
	if (bytes_is_null(v)) {
		print_text(w, "null");
		return;
	}
	writer_u8(w, '"');
	for (int32_t i = 0; i < v.len; i++) {
		uint8_t c = v.p[i];
		if (c == '"' || c == '\\')
			writer_u8(w, '\\');
		if (c >= 0x20 && c < 0x7f) {
			writer_u8(w, c);
		} else {
			print_text(w, "\\x");
			print_hex(w, c);
		}
	}
	writer_u8(w, '"');
}

static void print_bytes(struct writer *w, struct bytes v)
{
	if (bytes_is_null(v)) {
		print_text(w, "null");
		return;
	}
	print_text(w, "0x");
	for (int32_t i = 0; i < v.len; i++)
		print_hex(w, v.p[i]);
}

/* What stands before a field: a space, except before the first. */
static void print_label(struct writer *w, const char *name, bool *first)
{
	if (!*first)
		writer_u8(w, ' ');
	*first = false;
	print_text(w, name);
	writer_u8(w, '=');
}

/* Opens an array; false when it is null and thereby already printed. */
static bool print_array(struct writer *w, int32_t len)
{
	print_text(w, len < 0 ? "null" : "[");
	return len >= 0;
}

#define MESSAGE(name, kafka, key, lowest, highest, flexible) STRUCT(name, , )
#define STRUCT(type, message, kafka)                                                    \
	static void type##_text(const struct type *m, struct writer *w, int version)    \
	{                                                                               \
		bool first = true;                                                      \
		print_text(w, #type "{");
#define END(name)                  \
		writer_u8(w, '}'); \
	}
#define FIELD(name, from, to, print)                  \
	if (CARRIED(from, to)) {                      \
		print_label(w, #name, &first);        \
		print;                                \
	}
#define SCALAR(type, name, from, to, dflt) FIELD(name, from, to, print_##type(w, m->name))
#define STRING(name, from, to, null, dflt) FIELD(name, from, to, print_string(w, m->name))
#define BYTES(name, from, to, null) FIELD(name, from, to, print_bytes(w, m->name))
#define RECORDS(name, from, to, null) FIELD(name, from, to, print_bytes(w, m->name))
#define ELEMENTS(name, element)                                           \
	if (print_array(w, m->name##_len)) {                              \
		for (int32_t i = 0; i < m->name##_len; i++) {             \
			if (i > 0)                                        \
				writer_u8(w, ' ');                        \
			element;                                          \
		}                                                         \
		writer_u8(w, ']');                                        \
	}
#define ARRAY(type, name, from, to, null) FIELD(name, from, to, ELEMENTS(name, print_##type(w, m->name[i])))
#define STRUCTS(type, name, from, to, null) FIELD(name, from, to, ELEMENTS(name, type##_text(&m->name[i], w, version)))
#define NESTED(type, name, from, to, null) FIELD(name, from, to, type##_text(&m->name, w, version))
#define TAGGED_SCALAR(tag, type, name, from, to, dflt) SCALAR(type, name, from, to, dflt)
#define TAGGED_STRING(tag, name, from, to, null, dflt) STRING(name, from, to, null, dflt)
#define TAGGED_STRUCTS(tag, type, name, from, to, null) STRUCTS(type, name, from, to, null)
#define TAGGED_NESTED(tag, type, name, from, to, null) NESTED(type, name, from, to, null)
#include "coordinator/wire/messages.def"
#include "coordinator/wire/messages_undef.h"

#define MESSAGE(name, kafka, key, lowest, highest, flexible)                \
	void name##_print(const void *m, struct writer *w, int16_t version) \
	{                                                                   \
		CHECK(version >= (lowest) && version <= (highest));         \
		name##_text(m, w, version);                                 \
	}
#define STRUCT(name, message, kafka)
#define END(name)
#include "coordinator/wire/messages_no_fields.h"
#include "coordinator/wire/messages.def"
#include "coordinator/wire/messages_undef.h"
