/*
 * codec.h - private to the codec: what its files share, and the vocabulary of messages.def's columns.
 *
 * Every row of messages.def becomes straight-line code, one function per struct and purpose; there is no
 * interpreter. Where the pieces stand:
 *   codec.c    defaults (name_init), the table of message types
 *   decode.c   name_decode
 *   encode.c   name_encode
 *   print.c    name_print
 *
 * Invariants:
 *  1. The version is that of the message, also inside nested structs, and so is the flexible form.
 *  2. Whatever the bytes are, a decoder reads inside the reader and allocates inside the arena.
 *  3. Encoding what was decoded gives the same bytes, if these were canonical: shortest varints, tags ascending,
 *     defaults left out, booleans 0 or 1, null as -1, and no unknown tagged fields.
 */
#ifndef MUSTER_WIRE_CODEC_H
#define MUSTER_WIRE_CODEC_H

#include "muster/check.h"

#include "coordinator/wire/arena.h"
#include "coordinator/wire/messages.h"

/* Columns. Versions are compared as int, so that NEVER stands above every version. */
#define LAST INT16_MAX
#define NEVER (INT16_MAX + 1)
#define EMPTY_DEFAULT BYTES_EMPTY
#define NULL_DEFAULT BYTES_NULL

/* Whether `version`, a local variable, carries a field of these rows. */
#define CARRIED(from, to) (((from) == 0 || version >= (from)) && ((to) == LAST || version <= (to)))

/* The default column of a SCALAR as a value of its type. */
#define DEFAULT_boolean(v) ((v) != 0)
#define DEFAULT_int8(v) ((int8_t)(v))
#define DEFAULT_int16(v) ((int16_t)(v))
#define DEFAULT_int32(v) ((int32_t)(v))
#define DEFAULT_int64(v) ((int64_t)(v))
#define DEFAULT_uuid(v) UUID_ZERO

/* A function of a struct that some structs have no use for. */
#define GENERATED static inline __attribute__((unused))

/* Small messages, Heartbeat's among them, have code of their own for their newest version: no branch for each field that asks for the version. */
#define NEWEST_APART(name) (sizeof(struct name) <= 64)

/* Longest string of the protocol; a longer one is malformed. */
#define STRING_MAX INT16_MAX

/* The three things that each message can do, as the table calls them. */
#define MESSAGE(name, kafka, key, lowest, highest, flexible)                                 \
	bool name##_decode(void *m, struct reader *r, int16_t version, struct arena *arena); \
	void name##_encode(const void *m, struct writer *w, int16_t version);                \
	void name##_print(const void *m, struct writer *w, int16_t version);
#define STRUCT(name, message, kafka)
#define END(name)
#include "coordinator/wire/messages_no_fields.h"
#include "coordinator/wire/messages.def"
#include "coordinator/wire/messages_undef.h"

#endif
