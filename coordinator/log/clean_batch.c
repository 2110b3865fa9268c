/*
 * clean_batch.c - see clean_batch.h. A record of a batch is bytes that do not depend on its neighbours, so the copy keeps them, and only the
 * batch's length, count and CRC change.
 */
#include "muster/check.h"

#include "coordinator/log/clean_batch.h"

static uint8_t *copy_at(struct cleaner *c, size_t at)
{
	return c->out.buf + BLOCK_HEAD + at;
}

static void copy_append(struct cleaner *c, const uint8_t *p, size_t len)
{
	CHECK(BLOCK_HEAD + c->out.len + len <= c->out.cap);
	memcpy(copy_at(c, c->out.len), p, len);
	c->out.len += len;
}

/* The index of the new file knows the batch, unless it stands where recovery would not believe it. */
static void copy_note(struct cleaner *c, int64_t base, int64_t last)
{
	struct file_bounds *b = &c->out.info->bounds[c->batch_shard];
	if (base > b->last && base >= c->ends[c->batch_shard])
		file_note(c->out.info, c->batch_shard, base, last, c->out.at);
}

static void copy_head(struct cleaner *c, size_t len)
{
	struct writer w = writer_of(copy_at(c, c->batch_start), ENTRY_HEAD);
	writer_u32(&w, c->batch_shard);
	writer_u32(&w, (uint32_t)len);
}

static void copy_whole(struct cleaner *c)
{
	struct batch_span span;
	c->out.len = c->batch_start + ENTRY_HEAD;
	copy_head(c, (size_t)c->batch_bytes.len);
	copy_append(c, c->batch_bytes.p, (size_t)c->batch_bytes.len);
	if (c->batch_shard < c->cfg.id.shards && batch_peek(&span, c->batch_bytes))
		copy_note(c, span.base_offset, span.last_offset);
}

/* It counts, and no other worker takes care of it. */
static bool batch_is_mine(const struct cleaner *c)
{
	const struct log_file *f = c->cfg.files->list[c->at + c->inputs - 1];
	if (c->batch_shard >= c->cfg.id.shards)
		return c->cfg.alone;
	return c->owner.owns(c->owner.arg, c->batch_shard) && (f->hidden == NULL || !f->hidden[c->batch_shard]);
}

bool clean_batch_begin(struct cleaner *c)
{
	c->batch_start = c->out.len;
	c->kept = 0;
	if (!batch_is_mine(c))
		return false;
	if (c->batch_shard >= c->cfg.id.shards || !batch_open(&c->batch, c->batch_bytes) ||
	    (c->batch.attributes & (BATCH_COMPRESSION | BATCH_TRANSACTIONAL | BATCH_CONTROL)) != 0) {
		copy_whole(c);
		return false;
	}
	c->out.len += ENTRY_HEAD;
	copy_append(c, c->batch_bytes.p, BATCH_HEAD);
	return true;
}

static bool record_counts(struct cleaner *c, const struct batch_record *record, struct now now)
{
	struct log_entry entry = {record->entry.key, record->entry.value, record->offset};
	switch (c->owner.judge(c->owner.arg, c->batch_shard, &entry)) {
	case LOG_LIVE:
		return true;
	case LOG_DEAD:
		return false;
	case LOG_GONE:
		return record->offset >= c->horizon[c->batch_shard] || record->timestamp_ms > now.wall_ms - c->cfg.retention_ms;
	}
	return true;
}

static void batch_end(struct cleaner *c)
{
	size_t len = c->out.len - c->batch_start - ENTRY_HEAD;
	c->in_batch = false;
	if (c->batch.rest.bad) {
		copy_whole(c);
		return;
	}
	if (c->kept == 0) {
		c->out.len = c->batch_start;
		return;
	}
	copy_head(c, len);
	batch_reseal(copy_at(c, c->batch_start + ENTRY_HEAD), len, c->kept);
	copy_note(c, c->batch.base_offset, c->batch.last_offset);
}

void clean_batch_go_on(struct cleaner *c, unsigned int *budget, struct now now)
{
	struct batch_record record;
	for (; *budget > 0; --*budget) {
		const uint8_t *from = c->batch.rest.p;
		if (!batch_next(&c->batch, &record)) {
			batch_end(c);
			return;
		}
		c->counts.records++;
		if (record_counts(c, &record, now)) {
			copy_append(c, from, (size_t)(c->batch.rest.p - from));
			c->kept++;
		} else {
			c->counts.dropped++;
			c->dropped = true;
		}
	}
}
