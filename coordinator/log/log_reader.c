/*
 * log_reader.c - see log_reader.h. A file may be cleaned away while it is read: then the place is looked up again.
 */
#include <string.h>

#include "muster/check.h"

#include "coordinator/log/batch.h"
#include "coordinator/log/log_reader.h"
#include "coordinator/log/segment.h"

enum { ERROR_OFFSET_OUT_OF_RANGE = 1, ERROR_STORAGE = 56 }; /* Kafka's */

void log_reader_init(struct log_reader *r, struct disk *disk, const struct log_files *files, const struct log_shard *shards)
{
	*r = (struct log_reader){.files = files, .shards = shards};
	stream_init(&r->stream, disk);
}

void log_reader_add(struct log_reader *r, struct log_read *read)
{
	read->next = NULL;
	read->len = read->need = 0;
	read->error = 0;
	read->next_offset = read->offset;
	if (r->last != NULL)
		r->last->next = read;
	else
		r->first = read;
	r->last = read;
}

static void reader_done(struct log_reader *r, int16_t error, struct now now)
{
	struct log_read *read = r->first;
	r->first = read->next;
	if (r->first == NULL)
		r->last = NULL;
	r->whole = false;
	read->next = NULL;
	read->error = error;
	read->done(read, now);
}

/* Takes a batch that the reader wants. False: no more. */
static bool reader_take_batch(struct log_read *read, struct bytes batch, int64_t last)
{
	if (read->cap - read->len < (size_t)batch.len) {
		if (read->len == 0)
			read->need = (size_t)batch.len;
		return false;
	}
	memcpy(read->buf + read->len, batch.p, (size_t)batch.len);
	read->len += (size_t)batch.len;
	read->next_offset = last + 1;
	return true;
}

/* False: the read has what it wants. */
static bool reader_take_block(struct log_read *read, struct bytes payload)
{
	struct reader rest = reader_of(payload.p, (size_t)payload.len);
	struct bytes batch;
	struct batch_span span;
	uint32_t shard;
	while (segment_batch(&rest, &shard, &batch))
		if (shard == read->shard && batch_peek(&span, batch) && span.last_offset >= read->next_offset &&
		    !reader_take_batch(read, batch, span.last_offset))
			return false;
	return true;
}

/* Looks up where the read goes on. False: it goes on nowhere. */
static bool reader_begin(struct log_reader *r, struct log_read *read)
{
	const struct log_file *f = files_find(r->files, read->shard, read->next_offset);
	if (f == NULL)
		return false;
	stream_open(&r->stream, f->name, f->salt, file_find(f, read->shard, read->next_offset), f->end);
	return true;
}

static void reader_first_step(struct log_reader *r, struct now now)
{
	struct log_read *read = r->first;
	const struct log_shard *s = &r->shards[read->shard];
	if (read->offset < s->start || read->offset > s->high_watermark)
		reader_done(r, ERROR_OFFSET_OUT_OF_RANGE, now);
	else if (r->whole || !reader_begin(r, read))
		reader_done(r, 0, now);
}

bool log_reader_step(struct log_reader *r, struct now now)
{
	struct bytes payload;
	uint64_t at;
	if (stream_busy(&r->stream) && r->stream.state == STREAM_CLOSING)
		return true;
	if (r->first == NULL)
		return false;
	if (r->stream.state == STREAM_IDLE) {
		reader_first_step(r, now);
		return r->first != NULL;
	}
	switch (stream_next(&r->stream, &payload, &at)) {
	case STREAM_WAIT:
		break;
	case STREAM_BLOCK:
		if (!reader_take_block(r->first, payload)) {
			r->whole = true;
			stream_close(&r->stream);
		}
		break;
	case STREAM_END: /* what is there is given; else the next file is looked up */
		r->whole = r->first->len > 0;
		stream_close(&r->stream);
		break;
	case STREAM_GONE:
		stream_close(&r->stream);
		break;
	case STREAM_FAILED:
		stream_close(&r->stream);
		reader_done(r, ERROR_STORAGE, now);
		break;
	}
	return true;
}

void log_reader_fini(struct log_reader *r, struct now now)
{
	while (r->stream.op.pending)
		disk_wait(r->stream.disk);
	if (stream_busy(&r->stream))
		stream_close(&r->stream);
	while (r->stream.op.pending)
		disk_wait(r->stream.disk);
	while (r->first != NULL)
		reader_done(r, ERROR_STORAGE, now);
	stream_fini(&r->stream);
}
