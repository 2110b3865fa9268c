/*
 * messages_no_fields.h - makes every field row of messages.def expand to nothing. No include guard: it is included before an
 * expansion that wants only the MESSAGE, STRUCT and END rows.
 */
#define SCALAR(type, name, from, to, dflt)
#define STRING(name, from, to, null, dflt)
#define BYTES(name, from, to, null)
#define RECORDS(name, from, to, null)
#define ARRAY(type, name, from, to, null)
#define STRUCTS(type, name, from, to, null)
#define NESTED(type, name, from, to, null)
#define TAGGED_SCALAR(tag, type, name, from, to, dflt)
#define TAGGED_STRING(tag, name, from, to, null, dflt)
#define TAGGED_STRUCTS(tag, type, name, from, to, null)
#define TAGGED_NESTED(tag, type, name, from, to, null)
