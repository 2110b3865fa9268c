/*
 * segment.c - reading the blocks of a segment; what an unreadable place means is decided by the rule at the end of format.h.
 */
#include <inttypes.h>
#include <stdio.h>

#include "coordinator/log/segment.h"

/* HEAD says that the file is a cleaned one. */
static bool segment_open_cleaned(struct segment_reader *r, struct bytes head)
{
	struct block b;
	if (!block_cover_read(&r->cover, head) || r->at >= r->len || !block_open(&b, r->p + r->at, r->len - r->at) || b.type != BLOCK_SHARDS ||
	    b.salt != r->salt || b.sequence != 1)
		return false;
	r->shards = bytes_of(r->p + r->at + BLOCK_HEAD, b.length);
	r->at += block_bytes(b.length);
	r->sequence = 2;
	return true;
}

bool segment_open(struct segment_reader *r, const uint8_t *p, size_t len)
{
	struct block b;
	struct block_id id;
	if (!block_open(&b, p, len) || b.type != BLOCK_FIRST || b.sequence != 0 || !block_id_read(&id, bytes_of(p + BLOCK_HEAD, b.length)))
		return false;
	struct block_place place = {id.start, id.worker, id.number};
	*r = (struct segment_reader){p, len, id, {place, place}, BYTES_NULL, b.salt, 1, block_bytes(b.length), SEGMENT_GOING};
	return b.length <= BLOCK_ID_BYTES || segment_open_cleaned(r, bytes_of(p + BLOCK_HEAD, b.length));
}

/* A good block of this segment at or behind `at` with a sequence of at least `from`. */
static bool segment_find(const struct segment_reader *r, size_t at, uint64_t from, struct block *b, size_t *found)
{
	for (; at + FORMAT_ALIGN <= r->len; at += FORMAT_ALIGN) {
		struct reader head = reader_of(r->p + at, r->len - at);
		uint32_t magic = reader_u32(&head);
		reader_u32(&head);
		if (magic != BLOCK_MAGIC || reader_u64(&head) != r->salt || reader_u64(&head) < from)
			continue;
		if (block_open(b, r->p + at, r->len - at)) {
			*found = at;
			return true;
		}
	}
	return false;
}

static bool segment_blank(const struct segment_reader *r)
{
	size_t n = r->len - r->at < FORMAT_ALIGN ? r->len - r->at : FORMAT_ALIGN;
	for (size_t i = 0; i < n; i++)
		if (r->p[r->at + i] != 0)
			return false;
	return true;
}

static enum segment_end segment_judge(const struct segment_reader *r)
{
	struct block b;
	bool more = false;
	for (size_t at = r->at, found; segment_find(r, at, r->sequence + 1, &b, &found); at = found + block_bytes(b.length)) {
		if (b.safe > r->sequence)
			return SEGMENT_DAMAGED;
		more = true;
	}
	return !more && segment_blank(r) ? SEGMENT_CLEAN : SEGMENT_TORN;
}

/* How many blocks a LOST block stands for; 0: it is no good one. */
static uint64_t segment_lost(const struct segment_reader *r, const struct block *b)
{
	struct reader payload = reader_of(r->p + r->at + BLOCK_HEAD, b->length);
	uint64_t n = reader_u64(&payload);
	return payload.bad || n > UINT64_MAX - r->sequence ? 0 : n;
}

/* The next block that is no LOST one. */
static bool segment_open_next(struct segment_reader *r, struct block *b)
{
	while (r->at < r->len && block_open(b, r->p + r->at, r->len - r->at) && b->salt == r->salt && b->sequence == r->sequence) {
		uint64_t lost = b->type == BLOCK_LOST ? segment_lost(r, b) : 0;
		if (lost == 0)
			return b->type == BLOCK_BATCHES || b->type == BLOCK_END;
		r->at += block_bytes(b->length);
		r->sequence += lost;
	}
	return false;
}

bool segment_next(struct segment_reader *r, struct bytes *payload)
{
	struct block b;
	if (r->end != SEGMENT_GOING)
		return false;
	if (!segment_open_next(r, &b)) {
		r->end = segment_judge(r);
		return false;
	}
	if (b.type == BLOCK_END) {
		r->end = SEGMENT_SEALED;
		return false;
	}
	*payload = bytes_of(r->p + r->at + BLOCK_HEAD, b.length);
	r->at += block_bytes(b.length);
	r->sequence++;
	return true;
}

uint64_t segment_skip(struct segment_reader *r)
{
	struct block b;
	size_t found = r->at;
	do { /* a block that the missing ones had no room in front of is not where it belongs */
		if (!segment_find(r, found + FORMAT_ALIGN, r->sequence + 1, &b, &found))
			return 0;
	} while (b.sequence - r->sequence > (found - r->at) / FORMAT_ALIGN);
	uint64_t missing = b.sequence - r->sequence;
	r->at = found;
	r->sequence = b.sequence;
	r->end = SEGMENT_GOING;
	return missing;
}

bool segment_batch(struct reader *payload, uint32_t *shard, struct bytes *batch)
{
	if (reader_left(payload) == 0 || payload->bad)
		return false;
	uint32_t number = reader_u32(payload);
	uint32_t len = reader_u32(payload);
	const uint8_t *p = reader_take(payload, len);
	if (p == NULL || len > INT32_MAX) {
		payload->bad = true;
		return false;
	}
	*shard = number;
	*batch = bytes_of(p, len);
	return true;
}

void segment_name(char out[FORMAT_NAME_MAX], uint64_t start, uint32_t worker, uint64_t number)
{
	snprintf(out, FORMAT_NAME_MAX, "%08" PRIx64 "-%04" PRIx32 "-%08" PRIx64 FORMAT_SEGMENT, start, worker, number);
}

void segment_clean_name(char out[FORMAT_NAME_MAX], uint64_t start, uint32_t worker, uint64_t number)
{
	snprintf(out, FORMAT_NAME_MAX, "%08" PRIx64 "-%04" PRIx32 "-%08" PRIx64 FORMAT_CLEAN, start, worker, number);
}

bool segment_parse_name(const char *name, struct block_id *id, bool *clean)
{
	char again[FORMAT_NAME_MAX];
	struct block_id v = {.start = 0};
	if (sscanf(name, "%8" SCNx64 "-%4" SCNx32 "-%8" SCNx64, &v.start, &v.worker, &v.number) != 3)
		return false;
	segment_name(again, v.start, v.worker, v.number);
	if (strcmp(again, name) == 0) {
		*clean = false;
	} else {
		segment_clean_name(again, v.start, v.worker, v.number);
		if (strcmp(again, name) != 0)
			return false;
		*clean = true;
	}
	*id = v;
	return true;
}
