/*
 * stored_log.c - see stored_log.h.
 */
#include <stdlib.h>

#include "muster/check.h"

#include "coordinator/log/batch.h"

#include "stored_log.h"

static struct stored_log *stored_of(struct log *log)
{
	return CONTAINER_OF(log, struct stored_log, log);
}

static uint64_t stored_append(struct log *log, unsigned int shard, struct log_entry *entries, unsigned int n, int16_t *error, struct now now)
{
	*error = 56;
	return 0;
}

static uint64_t stored_durable(struct log *log)
{
	return stored_of(log)->position;
}

static void stored_serve(struct stored_log *s, struct log_read *read)
{
	read->error = s->error;
	s->error = 0;
	read->len = read->need = 0;
	read->next_offset = read->offset;
	if (read->error == 0 && (read->offset < s->start[read->shard] || read->offset > s->high_watermark[read->shard]))
		read->error = 1;
	for (unsigned int i = 0; i < s->len && read->error == 0; i++) {
		const struct stored_batch *b = &s->batches[i];
		if (b->shard != read->shard || b->last < read->next_offset)
			continue;
		if (b->len > read->cap - read->len) {
			read->need = read->len == 0 ? b->len : 0;
			break;
		}
		memcpy(read->buf + read->len, b->p, b->len);
		read->len += b->len;
		read->next_offset = b->last + 1;
	}
}

static uint64_t stored_poll(struct log *log, struct now now)
{
	struct stored_log *s = stored_of(log);
	while (s->reads != NULL && !s->slow) {
		struct log_read *read = s->reads;
		s->reads = read->next;
		s->reads_now--;
		stored_serve(s, read);
		read->done(read, now);
	}
	return TIME_NEVER;
}

static void stored_free(struct log *log)
{
}

static void stored_span(struct log *log, unsigned int shard, struct log_span *out)
{
	struct stored_log *s = stored_of(log);
	*out = (struct log_span){s->start[shard], s->high_watermark[shard], s->epoch, s->epochs[shard], s->epochs_len[shard]};
}

static void stored_read(struct log *log, struct log_read *read)
{
	struct stored_log *s = stored_of(log);
	struct log_read **at = &s->reads;
	while (*at != NULL)
		at = &(*at)->next;
	*at = read;
	read->next = NULL;
	s->reads_all++;
	if (++s->reads_now > s->reads_most)
		s->reads_most = s->reads_now;
}

void stored_log_init(struct stored_log *s)
{
	static const struct log_ops ops = {
		.append = stored_append, .durable = stored_durable, .poll = stored_poll, .free = stored_free, .span = stored_span, .read = stored_read};
	*s = (struct stored_log){.log.ops = &ops};
}

void stored_log_fini(struct stored_log *s)
{
	for (unsigned int i = 0; i < s->len; i++)
		free(s->batches[i].p);
}

void stored_log_add(struct stored_log *s, unsigned int shard, unsigned int records, size_t bytes, int64_t ms)
{
	struct stored_batch *b = &s->batches[s->len++];
	struct log_entry entries[8];
	uint8_t *value = calloc(1, bytes + 1);
	CHECK(s->len <= STORED_BATCHES && records <= ARRAY_LEN(entries) && value != NULL);
	for (unsigned int i = 0; i < records; i++)
		entries[i] = (struct log_entry){.key = BYTES_LITERAL("key"), .value = bytes_of(value, bytes)};
	size_t size = batch_size(entries, records);
	*b = (struct stored_batch){shard, s->high_watermark[shard], s->high_watermark[shard] + records - 1, malloc(size), size};
	CHECK(b->p != NULL);
	batch_write(b->p, size, entries, records, b->first, s->epoch, ms);
	free(value);
	size_t n = s->epochs_len[shard];
	if (n == 0 || s->epochs[shard][n - 1].epoch < s->epoch)
		s->epochs[shard][s->epochs_len[shard]++] = (struct log_epoch){s->epoch, b->first};
	s->high_watermark[shard] += records;
	s->position += records;
}
