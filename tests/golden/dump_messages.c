/*
 * dump_messages.c - writes messages.def as text, for check_messages.py: one line per row.
 *
 *   message NAME KAFKA KEY LOWEST HIGHEST FLEXIBLE
 *   struct NAME KAFKA_MESSAGE KAFKA_STRUCT
 *   field KIND TYPE NAME FROM TO NULL DEFAULT TAG        of the struct or message above; "-" where the row has no such column
 */
#include <stdio.h>

#include "coordinator/wire/codec.h"

#undef EMPTY_DEFAULT
#undef NULL_DEFAULT
#define EMPTY_DEFAULT "empty"
#define NULL_DEFAULT "null"

static void field(const char *kind, const char *type, const char *name, int from, int to, int null, const char *dflt, int tag)
{
	printf("field %s %s %s %d %d %d %s %d\n", kind, type, name, from, to, null, dflt, tag);
}

static void scalar(const char *type, const char *name, int from, int to, long long dflt, int tag)
{
	char text[32];
	snprintf(text, sizeof(text), "%lld", dflt);
	field("scalar", type, name, from, to, NEVER, text, tag);
}

int main(void)
{
	printf("last %d never %d\n", LAST, NEVER);
#define MESSAGE(name, kafka, key, lowest, highest, flexible) \
	printf("message " #name " " #kafka " %d %d %d %d\n", key, lowest, highest, flexible);
#define STRUCT(name, message, kafka) printf("struct " #name " " #message " " #kafka "\n");
#define END(name)
#define SCALAR(type, name, from, to, dflt) scalar(#type, #name, from, to, dflt, -1);
#define STRING(name, from, to, null, dflt) field("scalar", "string", #name, from, to, null, dflt, -1);
#define BYTES(name, from, to, null) field("scalar", "bytes", #name, from, to, null, "-", -1);
#define RECORDS(name, from, to, null) field("scalar", "records", #name, from, to, null, "-", -1);
#define ARRAY(type, name, from, to, null) field("array", #type, #name, from, to, null, "-", -1);
#define STRUCTS(type, name, from, to, null) field("array", #type, #name, from, to, null, "-", -1);
#define NESTED(type, name, from, to, null) field("nested", #type, #name, from, to, null, "-", -1);
#define TAGGED_SCALAR(tag, type, name, from, to, dflt) scalar(#type, #name, from, to, dflt, tag);
#define TAGGED_STRING(tag, name, from, to, null, dflt) field("scalar", "string", #name, from, to, null, dflt, tag);
#define TAGGED_STRUCTS(tag, type, name, from, to, null) field("array", #type, #name, from, to, null, "-", tag);
#define TAGGED_NESTED(tag, type, name, from, to, null) field("nested", #type, #name, from, to, null, "-", tag);
#include "coordinator/wire/messages.def"
#include "coordinator/wire/messages_undef.h"
	return 0;
}
