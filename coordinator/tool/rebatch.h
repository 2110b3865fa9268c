/*
 * rebatch.h - a record batch made from another one: the same head, other attributes or other records.
 */
#ifndef MUSTER_TOOL_REBATCH_H
#define MUSTER_TOOL_REBATCH_H

#include "coordinator/log/batch.h"
#include "coordinator/tool/inflate.h"

struct rebatch {
	uint16_t attributes;
	uint32_t count; /* of records */
	bool forget_producer; /* it belongs to no transaction any more */
};

/* In `out`: the head of `old` as `how` says in front of these bytes of records. False: no memory. */
bool rebatch(struct inflate_buffer *out, struct bytes old, const struct rebatch *how, const uint8_t *records, size_t len);

/*
 * In `out`: the batch without the records that `keep` does not want; offsets and head stay. *kept says how many are left; with none of them `out` is
 * a batch without records. False: no memory, or the batch cannot be read.
 */
bool rebatch_filter(struct inflate_buffer *out, struct bytes old, bool (*keep)(void *arg, const struct batch_record *record), void *arg, uint32_t *kept);

#endif
