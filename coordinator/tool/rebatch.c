/*
 * rebatch.c - see rebatch.h.
 */
#include <stdlib.h>

#include "coordinator/log/crc32c.h"
#include "coordinator/tool/rebatch.h"

enum { AT_LENGTH = 8, AT_CRC = 17, AT_ATTRIBUTES = 21, AT_PRODUCER = 43, AT_COUNT = 57, PRODUCER_BYTES = 14 };

static void put(uint8_t *p, size_t at, uint64_t value, unsigned int size)
{
	for (unsigned int i = 0; i < size; i++)
		p[at + i] = (uint8_t)(value >> (8 * (size - 1 - i)));
}

static bool room(struct inflate_buffer *out, size_t size)
{
	if (size <= out->cap)
		return true;
	uint8_t *grown = realloc(out->p, size);
	if (grown == NULL)
		return false;
	out->p = grown;
	out->cap = size;
	return true;
}

/* The records stand in place behind the head already. */
static void finish(struct inflate_buffer *out, struct bytes old, const struct rebatch *how, size_t len)
{
	uint8_t *p = out->p;
	memcpy(p, old.p, BATCH_HEAD);
	out->len = BATCH_HEAD + len;
	put(p, AT_LENGTH, out->len - AT_LENGTH - 4, 4);
	put(p, AT_ATTRIBUTES, how->attributes, 2);
	if (how->forget_producer)
		memset(p + AT_PRODUCER, 0xff, PRODUCER_BYTES);
	put(p, AT_COUNT, how->count, 4);
	put(p, AT_CRC, crc32c(p + AT_ATTRIBUTES, out->len - AT_ATTRIBUTES), 4);
}

bool rebatch(struct inflate_buffer *out, struct bytes old, const struct rebatch *how, const uint8_t *records, size_t len)
{
	if (!room(out, BATCH_HEAD + len))
		return false;
	if (len > 0)
		memcpy(out->p + BATCH_HEAD, records, len);
	finish(out, old, how, len);
	return true;
}

bool rebatch_filter(struct inflate_buffer *out, struct bytes old, bool (*keep)(void *arg, const struct batch_record *record), void *arg, uint32_t *kept)
{
	struct batch batch;
	struct batch_record record;
	size_t len = 0;
	if (!batch_open(&batch, old) || (batch.attributes & BATCH_COMPRESSION) != 0 || !room(out, (size_t)old.len))
		return false;
	*kept = 0;
	for (;;) {
		const uint8_t *from = batch.rest.p;
		if (!batch_next(&batch, &record))
			break;
		if (!keep(arg, &record))
			continue;
		memcpy(out->p + BATCH_HEAD + len, from, (size_t)(batch.rest.p - from));
		len += (size_t)(batch.rest.p - from);
		++*kept;
	}
	if (batch.rest.bad)
		return false;
	finish(out, old, &(struct rebatch){batch.attributes, *kept, false}, len);
	return true;
}
