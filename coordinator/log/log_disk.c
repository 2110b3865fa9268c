/*
 * log_disk.c - the log of one worker: what is appended gathers in one block while the block before is on its way to the disk.
 *
 *   append -> [ filling ]  --poll, nothing on its way-->  [ writing ] --WRITE_DURABLE completes--> durable = its position
 *
 * So a lone append is written at once, and under load a block holds what came while the one before was written: no linger, no timer. How blocks are
 * written stands in log_write.c, how segments are made in advance in log_make.c; what the three share, and the invariants, in log_disk_own.h.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "muster/check.h"

#include "coordinator/log/batch.h"
#include "coordinator/log/block.h"
#include "coordinator/log/log_disk_own.h"

#define MAKE_WISH_US US_PER_MS /* how often to look after a segment that is made */
#define BUFFER_MIN (64u * 1024)
#define LINE_MAX 300

enum { ERROR_RECORD_TOO_LARGE = 10, ERROR_NOT_ENOUGH_REPLICAS = 19, ERROR_STORAGE = 56 }; /* Kafka's */

static struct log_disk *log_disk_of(struct log *log)
{
	return CONTAINER_OF(log, struct log_disk, log);
}

void log_say_line(const struct log_disk *d, const char *format, ...)
{
	char line[LINE_MAX];
	va_list ap;
	va_start(ap, format);
	vsnprintf(line, sizeof(line), format, ap);
	va_end(ap);
	if (d->cfg.say != NULL)
		d->cfg.say(d->cfg.say_arg, line);
}

/* ---- buffers ---- */

static bool buffer_grow(struct buffer *b, size_t payload)
{
	size_t need = block_bytes(payload), cap = b->cap == 0 ? BUFFER_MIN : b->cap;
	void *p;
	if (need <= b->cap)
		return true;
	while (cap < need)
		cap *= 2;
	if (posix_memalign(&p, FORMAT_ALIGN, cap) != 0)
		return false;
	if (b->len > 0)
		memcpy((uint8_t *)p + BLOCK_HEAD, b->p + BLOCK_HEAD, b->len);
	free(b->p);
	b->p = p;
	b->cap = cap;
	return true;
}

/* ---- room ---- */

/* `frees`: it is there to make room, so it may use the reserve. */
static bool log_has_room(const struct log_disk *d, size_t payload, bool frees)
{
	if (d->stalled_us != 0)
		return false;
	if (d->make == MAKE_READY && log_segment_fits(d, d->next.at, payload))
		return true;
	uint64_t reserve = frees ? 0 : d->cfg.reserve_bytes;
	return log_segment_fits(d, d->current.at + reserve, payload);
}

static bool only_tombstones(const struct log_entry *entries, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		if (!bytes_is_null(entries[i].value))
			return false;
	return true;
}

void log_refuse_full(struct log_disk *d)
{
	d->status.refused++;
	if (d->status.full)
		return;
	d->status.full = true;
	log_say_line(d, "log: FULL: no room for more (%s); commits and assignments are refused until there is",
	    d->make_error == 0 ? "the disk does not keep up" : d->make_error == EDQUOT ? "log.total.bytes is reached" : strerror(d->make_error));
}

/* ---- append ---- */

static uint64_t log_disk_append(struct log *log, unsigned int shard, struct log_entry *entries, unsigned int n, int16_t *error,
				struct now now)
{
	struct log_disk *d = log_disk_of(log);
	CHECK(n > 0 && d->begun && shard < d->cfg.shards);
	size_t size = batch_size(entries, n);
	if (size > INT32_MAX - FORMAT_ALIGN || !log_segment_fits(d, FORMAT_ALIGN, ENTRY_HEAD + size)) {
		*error = ERROR_RECORD_TOO_LARGE;
		return 0;
	}
	*error = ERROR_STORAGE;
	if (d->status.failed)
		return 0;
	struct buffer *b = &d->filling;
	size_t payload = b->len + ENTRY_HEAD + size;
	if (!log_has_room(d, payload, only_tombstones(entries, n))) {
		*error = ERROR_NOT_ENOUGH_REPLICAS; /* clients hear COORDINATOR_NOT_AVAILABLE, and come again */
		log_refuse_full(d);
		return 0;
	}
	if (!buffer_grow(b, payload))
		return 0;
	struct log_shard *s = &d->shards[shard];
	uint8_t *p = b->p + BLOCK_HEAD + b->len;
	struct writer w = writer_of(p, payload - b->len);
	writer_u32(&w, shard);
	writer_u32(&w, (uint32_t)size);
	batch_write(p + ENTRY_HEAD, size, entries, n, s->next_offset, s->epoch, now.wall_ms);
	log_shard_note_epoch(s, s->epoch, s->next_offset);
	for (unsigned int i = 0; i < n; i++)
		entries[i].offset = s->next_offset + i;
	s->next_offset += n;
	b->len = payload;
	d->appended += n;
	b->position = d->appended;
	if (d->status.full && log_has_room(d, payload, false)) {
		d->status.full = false;
		log_say_line(d, "log: there is room again, commits and assignments are taken");
	}
	return d->appended;
}

static uint64_t log_disk_durable(struct log *log)
{
	return log_disk_of(log)->durable;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Space that it has freed may be what a segment waits for. */
static uint64_t clean_step(struct log_disk *d, struct now now)
{
	uint64_t before = d->status.bytes;
	if (d->closing)
		return TIME_NEVER;
	uint64_t wish = cleaner_step(&d->cleaner, d->make_error != 0, d->appended, now);
	if (d->status.bytes < before && d->make == MAKE_WAIT)
		d->retry_us = 1;
	return wish;
}

static uint64_t log_disk_poll(struct log *log, struct now now)
{
	struct log_disk *d = log_disk_of(log);
	if (!d->begun)
		return TIME_NEVER;
	disk_poll(d->cfg.disk);
	log_close_step(d);
	log_write_step(d, now);
	log_make_step(d, now);
	bool reads = log_reader_step(&d->reader, now) && !(d->reader.stream.op.pending && d->cfg.disk->wakes);
	uint64_t wish = clean_step(d, now);
	if (d->stalled_us != 0 && !d->io_op.pending)
		return earlier(wish, d->stalled_us);
	if ((log_write_busy(d) && !(d->io_op.pending && d->cfg.disk->wakes)) || reads)
		return now.us;
	if ((log_make_busy(d) && !(d->make_op.pending && d->cfg.disk->wakes)) || (log_close_busy(d) && !(d->close_op.pending && d->cfg.disk->wakes)))
		return earlier(wish, now.us + MAKE_WISH_US);
	return d->make == MAKE_WAIT && !d->status.failed ? earlier(wish, d->retry_us) : wish;
}

/* ---- life ---- */

static void log_disk_free(struct log *log)
{
	struct log_disk *d = log_disk_of(log);
	struct now long_ago = {0, 0};
	d->closing = true;
	while (d->begun && (log_write_busy(d) || log_make_busy(d) || log_close_busy(d))) {
		log_disk_poll(log, long_ago);
		if (d->io_op.pending || d->make_op.pending || d->close_op.pending)
			disk_wait(d->cfg.disk);
	}
	struct disk_op close = {.verb = DISK_CLOSE, .file = d->current.file};
	if (d->begun)
		disk_do(d->cfg.disk, &close);
	close.file = d->next.file;
	if (d->make == MAKE_READY)
		disk_do(d->cfg.disk, &close);
	if (d->begun) {
		log_reader_fini(&d->reader, long_ago);
		cleaner_fini(&d->cleaner);
	}
	file_free(d->next.info);
	free(d->filling.p);
	free(d->writing.p);
	free(d->end_block);
	free(d->head_block);
	log_shards_free(d->shards, d->cfg.shards);
	files_fini(&d->files);
	free(d);
}

static int16_t log_disk_failed(struct log *log)
{
	return log_disk_of(log)->status.failed ? ERROR_STORAGE : 0;
}

static void log_disk_span(struct log *log, unsigned int shard, struct log_span *out)
{
	const struct log_disk *d = log_disk_of(log);
	CHECK(d->begun && shard < d->cfg.shards);
	const struct log_shard *s = &d->shards[shard];
	*out = (struct log_span){s->start, s->high_watermark, s->epoch, s->epochs, s->epochs_len};
}

static void log_disk_read(struct log *log, struct log_read *read)
{
	struct log_disk *d = log_disk_of(log);
	CHECK(d->begun && read->shard < d->cfg.shards);
	log_reader_add(&d->reader, read);
}

static void log_disk_set_owner(struct log *log, const struct log_owner *owner)
{
	struct log_disk *d = log_disk_of(log);
	CHECK(d->begun);
	cleaner_set_owner(&d->cleaner, owner);
}

static const struct log_ops log_disk_ops = {
	.append = log_disk_append,
	.durable = log_disk_durable,
	.poll = log_disk_poll,
	.free = log_disk_free,
	.failed = log_disk_failed,
	.span = log_disk_span,
	.read = log_disk_read,
	.set_owner = log_disk_set_owner,
};

struct log *log_disk_new(const struct log_disk_config *cfg)
{
	struct log_disk *d = calloc(1, sizeof(*d));
	void *end = NULL, *head = NULL;
	if (d == NULL)
		return NULL;
	d->log.ops = &log_disk_ops;
	d->cfg = *cfg;
	d->cfg.segment_bytes = (cfg->segment_bytes + FORMAT_ALIGN - 1) & ~(uint64_t)(FORMAT_ALIGN - 1);
	d->log.largest = d->cfg.segment_bytes - 2 * FORMAT_ALIGN - BLOCK_HEAD - ENTRY_HEAD;
	if (posix_memalign(&end, FORMAT_ALIGN, FORMAT_ALIGN) == 0)
		d->end_block = end;
	if (posix_memalign(&head, FORMAT_ALIGN, FORMAT_ALIGN) == 0)
		d->head_block = head;
	if (d->end_block == NULL || d->head_block == NULL || !buffer_grow(&d->filling, 0) || !buffer_grow(&d->writing, 0)) {
		log_disk_free(&d->log);
		return NULL;
	}
	return &d->log;
}

static bool begin_cleaner(struct log_disk *d)
{
	struct cleaner_config cfg = {
		.disk = d->cfg.disk,
		.files = &d->files,
		.shards = d->shards,
		.id = {.shards = d->cfg.shards, .start = d->start, .worker = d->cfg.worker},
		.segment_bytes = d->cfg.segment_bytes,
		.dirty_percent = d->cfg.dirty_percent,
		.retention_ms = d->cfg.retention_ms,
		.alone = d->cfg.workers <= 1,
		.random = log_mix(d->cfg.random + log_mix(d->start) + d->cfg.worker),
		.bytes = &d->status.bytes,
		.total_bytes = d->cfg.total_bytes,
		.say = d->cfg.say,
		.say_arg = d->cfg.say_arg,
	};
	memcpy(cfg.id.log, d->id, sizeof(d->id));
	return cleaner_init(&d->cleaner, &cfg);
}

bool log_disk_begin(struct log *log, struct recover *rc, char *err, size_t err_len)
{
	struct log_disk *d = log_disk_of(log);
	struct now now = {0, 0};
	CHECK(!d->begun && rc->shards == d->cfg.shards);
	memcpy(d->id, rc->log, sizeof(d->id));
	d->start = rc->start;
	d->status.bytes = rc->bytes;
	d->shards = rc->state;
	d->files = rc->files;
	rc->state = NULL;
	memset(&rc->files, 0, sizeof(rc->files));
	for (unsigned int i = 0; i < d->cfg.shards; i++) {
		d->shards[i].epoch++;
		d->shards[i].high_watermark = d->shards[i].next_offset;
	}
	files_join(&d->files, d->cfg.workers > 1 ? d->cfg.workers : 1, d->cfg.segment_bytes);
	while (d->make != MAKE_READY && d->make != MAKE_WAIT) {
		log_make_step(d, now);
		if (d->make_op.pending)
			disk_wait(d->cfg.disk);
	}
	if (d->make != MAKE_READY) {
		snprintf(err, err_len, "log: its first segment cannot be made: %s",
			 d->make_error == EDQUOT ? "log.total.bytes is reached" : strerror(d->make_error));
		return false;
	}
	log_write_next_segment(d);
	log_reader_init(&d->reader, d->cfg.disk, &d->files, d->shards);
	d->begun = true;
	if (!begin_cleaner(d)) {
		snprintf(err, err_len, "log: no memory");
		return false;
	}
	return true;
}

void log_disk_status(struct log *log, struct log_disk_status *out)
{
	const struct log_disk *d = log_disk_of(log);
	*out = d->status;
	out->files = d->files.len;
	out->cleaned = d->cleaner.counts;
}
