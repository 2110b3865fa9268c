/*
 * shards_block.c - see shards_block.h.
 */
#include "coordinator/log/shards_block.h"

enum { ENTRY_BYTES = 24, EPOCH_BYTES = 12 };

size_t shards_block_bytes(size_t shards, size_t epochs)
{
	return 4 + shards * ENTRY_BYTES + epochs * EPOCH_BYTES;
}

void shards_block_begin(struct writer *w, uint32_t shards)
{
	writer_u32(w, shards);
}

void shards_block_put(struct writer *w, uint32_t shard, const struct log_shard *s, int64_t from, int64_t end)
{
	uint32_t first = 0, behind;
	while (first < s->epochs_len && s->epochs[first].start < from)
		first++;
	for (behind = first; behind < s->epochs_len && s->epochs[behind].start < end;)
		behind++;
	writer_u32(w, shard);
	writer_u64(w, (uint64_t)s->start);
	writer_u64(w, (uint64_t)end);
	writer_u32(w, behind - first);
	for (uint32_t i = first; i < behind; i++) {
		writer_u32(w, (uint32_t)s->epochs[i].epoch);
		writer_u64(w, (uint64_t)s->epochs[i].start);
	}
}

uint32_t shards_block_open(struct reader *r, struct bytes payload)
{
	*r = reader_of(payload.p, payload.len < 0 ? 0 : (size_t)payload.len);
	uint32_t n = reader_u32(r);
	return r->bad || n > reader_left(r) / ENTRY_BYTES ? 0 : n;
}

bool shards_block_next(struct reader *r, struct shards_block_entry *e)
{
	e->shard = reader_u32(r);
	e->start = (int64_t)reader_u64(r);
	e->end = (int64_t)reader_u64(r);
	e->epochs = reader_u32(r);
	if (r->bad || e->epochs > reader_left(r) / EPOCH_BYTES || e->start < 0 || e->end < 0 || e->end > INT64_MAX - INT32_MAX) {
		r->bad = true;
		return false;
	}
	e->rest = reader_of(r->p, (size_t)e->epochs * EPOCH_BYTES);
	reader_take(r, (size_t)e->epochs * EPOCH_BYTES);
	return true;
}

bool shards_block_epoch(struct shards_block_entry *e, struct log_epoch *epoch)
{
	if (reader_left(&e->rest) == 0)
		return false;
	epoch->epoch = (int32_t)reader_u32(&e->rest);
	epoch->start = (int64_t)reader_u64(&e->rest);
	return true;
}
