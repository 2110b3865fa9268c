/*
 * text.h - one description, two forms: a line for people, or a line of JSON. Names and values are given once; the form is the writer's.
 *
 *   people:  name=value name=value ..., nested items on indented lines of their own
 *   JSON:    one object per line (RFC 8259), nested objects and arrays
 *
 * Strings come from clients and from damaged files. For people, what is not plain printable ASCII stands in quotes with \xNN for the rest, and
 * null is a dash. In JSON, bytes that are no UTF-8 become U+FFFD.
 */
#ifndef MUSTER_TOOL_TEXT_H
#define MUSTER_TOOL_TEXT_H

#include <stdio.h>

#include "muster/bytes.h"

struct text {
	FILE *out;
	bool json;
	bool first; /* nothing stands yet in the innermost object or array */
};

struct text text_to(FILE *out, bool json);

/* One line; between the two stands everything else. */
void text_begin(struct text *t);
void text_end(struct text *t);

void text_string(struct text *t, const char *name, struct bytes value);
void text_number(struct text *t, const char *name, int64_t value);
/* ISO 8601 in UTC with milliseconds for people, the number in JSON. */
void text_time(struct text *t, const char *name, int64_t ms);
/* A word that stands for itself: without its name for people, a string in JSON. */
void text_word(struct text *t, const char *name, const char *word);
void text_null(struct text *t, const char *name);

/* JSON only: an object; for people its fields stand where they are. */
void text_object(struct text *t, const char *name);
void text_object_end(struct text *t);

/* An array of objects; each is a line of its own for people. */
void text_array(struct text *t, const char *name);
void text_item(struct text *t, const char *name);
void text_item_end(struct text *t);
void text_array_end(struct text *t);

/* An array of strings; name=a,b for people. Elements come with text_list_string or text_list_partition ("topic-partition"). */
void text_list(struct text *t, const char *name);
void text_list_string(struct text *t, struct bytes value);
void text_list_partition(struct text *t, struct bytes topic, int32_t partition);
void text_list_end(struct text *t);

#endif
