/*
 * codec.c - the defaults of all structs and the table of message types; decode.c, encode.c and print.c hold the rest.
 */
#include "coordinator/wire/codec.h"
#include "coordinator/wire/api.h"

/* ---- name_init ---- */

#define MESSAGE(name, kafka, key, lowest, highest, flexible) \
	void name##_init(struct name *m)                     \
	{
#define STRUCT(name, message, kafka)     \
	void name##_init(struct name *m) \
	{
#define END(name) }
#define SCALAR(type, name, from, to, dflt) m->name = DEFAULT_##type(dflt);
#define STRING(name, from, to, null, dflt) m->name = dflt;
#define BYTES(name, from, to, null) m->name = BYTES_EMPTY;
#define RECORDS(name, from, to, null) m->name = BYTES_EMPTY;
#define ARRAY(type, name, from, to, null) m->name = NULL, m->name##_len = 0;
#define STRUCTS(type, name, from, to, null) m->name = NULL, m->name##_len = 0;
#define NESTED(type, name, from, to, null) type##_init(&m->name);
#define TAGGED_SCALAR(tag, type, name, from, to, dflt) SCALAR(type, name, from, to, dflt)
#define TAGGED_STRING(tag, name, from, to, null, dflt) STRING(name, from, to, null, dflt)
#define TAGGED_STRUCTS(tag, type, name, from, to, null) STRUCTS(type, name, from, to, null)
#define TAGGED_NESTED(tag, type, name, from, to, null) NESTED(type, name, from, to, null)
#include "coordinator/wire/messages.def"
#include "coordinator/wire/messages_undef.h"

/* ---- the table ---- */

/* Its entries take void *, so that calling through them is no cast of a function. */
#define MESSAGE(name, kafka, key, lowest, highest, flexible) \
	static void name##_init_any(void *m)                 \
	{                                                    \
		name##_init(m);                              \
	}
#define STRUCT(name, message, kafka)
#define END(name)
#include "coordinator/wire/messages_no_fields.h"
#include "coordinator/wire/messages.def"
#include "coordinator/wire/messages_undef.h"

enum message_index {
#define MESSAGE(name, kafka, key, lowest, highest, flexible) index_##name,
#define STRUCT(name, message, kafka)
#define END(name)
#include "coordinator/wire/messages_no_fields.h"
#include "coordinator/wire/messages.def"
#include "coordinator/wire/messages_undef.h"
};

const struct message_type message_types[] = {
#define MESSAGE(type, kafka, key, low, high, flex) \
	[index_##type] = {                         \
		.name = #kafka,                    \
		.api_key = key,                    \
		.lowest = low,                     \
		.highest = high,                   \
		.flexible = flex,                  \
		.size = sizeof(struct type),       \
		.init = type##_init_any,           \
		.decode = type##_decode,           \
		.encode = type##_encode,           \
		.print = type##_print,             \
	},
#define STRUCT(name, message, kafka)
#define END(name)
#include "coordinator/wire/messages_no_fields.h"
#include "coordinator/wire/messages.def"
#include "coordinator/wire/messages_undef.h"
};

const unsigned int message_types_len = ARRAY_LEN(message_types);

/*
 * api.def and messages.def must agree on keys and versions: the range of each message, as the enum constants
 * FIRST_x, LAST_x, KEY_x.
 */
#define MESSAGE(name, kafka, key, lowest, highest, flexible) \
	enum { KEY_##name = (key), FIRST_##name = (lowest), LAST_##name = (highest) };
#define STRUCT(name, message, kafka)
#define END(name)
#include "coordinator/wire/messages_no_fields.h"
#include "coordinator/wire/messages.def"
#include "coordinator/wire/messages_undef.h"

#define API(name, kafka, key, lowest, highest)                                                             \
	_Static_assert(KEY_##name##_request == (key) && KEY_##name##_response == (key), #name);            \
	_Static_assert(FIRST_##name##_request == (lowest) && FIRST_##name##_response == (lowest), #name);  \
	_Static_assert(LAST_##name##_request == (highest) && LAST_##name##_response == (highest), #name);
#include "coordinator/wire/api.def"
#undef API

const struct message_type *message_request(int16_t api_key)
{
	switch (api_key) {
#define API(name, kafka, key, lowest, highest) \
	case key:                              \
		return &message_types[index_##name##_request];
#include "coordinator/wire/api.def"
#undef API
	default:
		return NULL;
	}
}

const struct message_type *message_response(int16_t api_key)
{
	switch (api_key) {
#define API(name, kafka, key, lowest, highest) \
	case key:                              \
		return &message_types[index_##name##_response];
#include "coordinator/wire/api.def"
#undef API
	default:
		return NULL;
	}
}
