/*
 * messages.h - the structs of all requests and responses, and what can be done with them; expanded from messages.def.
 *
 * In memory a message has all fields of all versions; decoding fills those that the version lacks with their defaults, encoding leaves
 * them out. Strings and bytes are slices of the decoded buffer, arrays lie in the arena given to the decoder.
 */
#ifndef MUSTER_WIRE_MESSAGES_H
#define MUSTER_WIRE_MESSAGES_H

#include "coordinator/wire/types.h"

typedef bool type_boolean;
typedef int8_t type_int8;
typedef int16_t type_int16;
typedef int32_t type_int32;
typedef int64_t type_int64;
typedef struct uuid type_uuid;
typedef struct bytes type_string;

/* Structs. An array field `x` has its elements at `x` and their number in `x_len`; -1 is null. */
#define MESSAGE(name, kafka, key, lowest, highest, flexible) struct name {
#define STRUCT(name, message, kafka) struct name {
#define END(name) };
#define SCALAR(type, name, from, to, dflt) type_##type name;
#define STRING(name, from, to, null, dflt) struct bytes name;
#define BYTES(name, from, to, null) struct bytes name;
#define RECORDS(name, from, to, null) struct bytes name;
#define ARRAY(type, name, from, to, null) const type_##type *name; int32_t name##_len;
#define STRUCTS(type, name, from, to, null) const struct type *name; int32_t name##_len;
#define NESTED(type, name, from, to, null) struct type name;
#define TAGGED_SCALAR(tag, type, name, from, to, dflt) SCALAR(type, name, from, to, dflt)
#define TAGGED_STRING(tag, name, from, to, null, dflt) STRING(name, from, to, null, dflt)
#define TAGGED_STRUCTS(tag, type, name, from, to, null) STRUCTS(type, name, from, to, null)
#define TAGGED_NESTED(tag, type, name, from, to, null) NESTED(type, name, from, to, null)
#include "coordinator/wire/messages.def"
#include "coordinator/wire/messages_undef.h"

struct arena;

/*
 * Per struct and message `name`:
 *   void name_init(struct name *m)                all fields to their defaults, arrays to empty
 */
#define MESSAGE(name, kafka, key, lowest, highest, flexible) void name##_init(struct name *m);
#define STRUCT(name, message, kafka) void name##_init(struct name *m);
#define END(name)
#include "coordinator/wire/messages_no_fields.h"
#include "coordinator/wire/messages.def"
#include "coordinator/wire/messages_undef.h"

/* A message type, for code that treats all alike. */
struct message_type {
	const char *name; /* Kafka's, e.g. "JoinGroupRequest" */
	int16_t api_key;
	int16_t lowest, highest;
	int16_t flexible; /* first flexible version; INT16_MAX: never */
	uint32_t size;	  /* of the struct */
	void (*init)(void *m);
	/*
	 * Decodes a body of a version in [lowest, highest]. Returns false when it is malformed, counts exceed the bytes that are left, or
	 * the arena is full; *m is then undefined. Bytes left behind the body stay in the reader (Kafka ignores them).
	 */
	bool (*decode)(void *m, struct reader *r, int16_t version, struct arena *arena);
	/* Encodes; w->full when it did not fit. */
	void (*encode)(const void *m, struct writer *w, int16_t version);
	/* Text for logs and tests, one line, as name{field=value ...}; only the fields of that version. */
	void (*print)(const void *m, struct writer *w, int16_t version);
};

/* Indexed like the MESSAGE rows of messages.def. */
extern const struct message_type message_types[];
extern const unsigned int message_types_len;

/* NULL when we do not know the api. */
const struct message_type *message_request(int16_t api_key);
const struct message_type *message_response(int16_t api_key);

#endif
