/*
 * record_text.h - a record of __consumer_offsets as text: its key and value decoded as far as we know them.
 */
#ifndef MUSTER_TOOL_RECORD_TEXT_H
#define MUSTER_TOOL_RECORD_TEXT_H

#include "coordinator/log/batch.h"
#include "coordinator/tool/text.h"

/* What the key of any record type says. */
struct record_name {
	int16_t type;
	const char *name;   /* NULL: a type that we do not know */
	struct bytes group; /* null: unknown */
	struct bytes second; /* topic, member or regular expression; null: none */
	const char *second_name;
	int32_t partition; /* -1: none */
	int32_t slot;	   /* of a part of a group; -1: none */
};

/* False: the key cannot be read. Slices of the key. */
bool record_name_read(struct record_name *name, struct bytes key);

/* Whether the value can be read; one of a type that we do not decode is taken as it is. */
bool record_value_good(const struct record_name *name, struct bytes value);

/* One line (with lines for members behind it, for people). */
void record_text(struct text *t, uint32_t shard, const struct batch *batch, const struct batch_record *record);
/* The same for a control record: the end of a transaction. */
void record_text_control(struct text *t, uint32_t shard, const struct batch *batch, const struct batch_record *record);

#endif
