/*
 * log_disk.c - appending: batches gather in one block while the block before is on its way to the disk.
 *
 *   append -> [ filling ]  --poll, nothing on its way-->  [ writing ] --WRITE_DURABLE completes--> durable = its position
 *
 * So a lone append is written at once, and under load a block holds what came while the one before was written: no linger, no timer.
 *
 *   io:    IDLE -> BLOCK -> IDLE           a block is being written
 *          IDLE -> FLUSH -> SEAL -> IDLE   the segment ends: what is only written is flushed, END follows, then the next segment becomes the
 *                                          current one; when every block was durable by itself, FLUSH is left out
 *   make:  NONE -> SPACE -> CREATE -> HEAD -> RENAME -> READY      the next segment, made in advance
 *                    any failure -> UNDO -> WAIT (a second) -> NONE
 *
 * Invariants:
 *  1. An append is taken only if its block fits into what is reserved on the disk already: the current segment, or the next one when that is READY.
 *     So a full disk refuses appends and never fails a write of what was taken. While there is no next segment, the last reserve_bytes of the
 *     current one are for tombstones: what frees space must go on.
 *  2. At most one block is on its way, and nothing is written to a segment before END of the one before is durable.
 *  3. A failed write is final: nothing is written or acknowledged after it, for nobody knows what the disk kept. Except for lack of space, on file systems
 *     that reserve nothing: then the same block is written again, all of it, until there is room; nothing is taken meanwhile.
 *  4. The cleaner gets its reserve before a segment is made, once space is short.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

#include "muster/check.h"

#include "coordinator/log/batch.h"
#include "coordinator/log/block.h"
#include "coordinator/log/log_disk.h"
#include "coordinator/log/log_reader.h"
#include "coordinator/log/segment.h"

#define RETRY_US US_PER_S	/* between two attempts to make a segment */
#define MAKE_WISH_US US_PER_MS	/* how often to look after it */
#define BUFFER_MIN (64u * 1024)
#define LINE_MAX 300

enum { ERROR_RECORD_TOO_LARGE = 10, ERROR_NOT_ENOUGH_REPLICAS = 19, ERROR_STORAGE = 56 }; /* Kafka's */

enum io_state { IO_IDLE, IO_BLOCK, IO_FLUSH, IO_SEAL };
enum make_state { MAKE_NONE, MAKE_SPACE, MAKE_CREATE, MAKE_HEAD, MAKE_RENAME, MAKE_READY, MAKE_UNDO, MAKE_WAIT };

struct segment {
	int file;
	uint64_t number, salt;
	uint64_t at;	   /* where the next block goes */
	uint64_t sequence; /* of the next block */
	char name[FORMAT_NAME_MAX];
	struct log_file *info; /* once it is ready; the log's list has it once it is the current one */
};

struct buffer {
	uint8_t *p; /* aligned; a block: head, payload */
	size_t cap;
	size_t len;	   /* of the payload */
	uint64_t position; /* after its last batch */
};

struct log_disk {
	struct log log;
	struct log_disk_config cfg;
	struct log_shard *shards;
	struct log_files files;
	struct log_reader reader;
	struct cleaner cleaner;
	uint8_t id[16];
	uint64_t start;
	uint64_t appended, durable; /* positions: records so far */
	struct buffer filling, writing;
	struct segment current, next;
	enum io_state io;
	enum make_state make;
	struct disk_op io_op, make_op, close_op;
	uint8_t *end_block, *head_block;
	uint64_t retry_us;
	uint64_t stalled_us; /* when the block that found no space is written again; 0: none did */
	int make_error; /* why the last attempt to make a segment failed */
	struct log_disk_status status;
	bool begun, closing;
};

static struct log_disk *log_disk_of(struct log *log)
{
	return CONTAINER_OF(log, struct log_disk, log);
}

static PRINTF_LIKE(2, 3) void say(const struct log_disk *d, const char *format, ...)
{
	char line[LINE_MAX];
	va_list ap;
	va_start(ap, format);
	vsnprintf(line, sizeof(line), format, ap);
	va_end(ap);
	if (d->cfg.say != NULL)
		d->cfg.say(d->cfg.say_arg, line);
}

/* Spreads a counter over 64 bits. */
static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
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

static bool no_space(int64_t result)
{
	return result == -ENOSPC || result == -EDQUOT;
}

static bool segment_fits(const struct log_disk *d, uint64_t at, size_t payload)
{
	return at + block_bytes(payload) + block_bytes(0) <= d->cfg.segment_bytes;
}

/* `frees`: it is there to make room, so it may use the reserve. */
static bool log_has_room(const struct log_disk *d, size_t payload, bool frees)
{
	if (d->stalled_us != 0)
		return false;
	if (d->make == MAKE_READY && segment_fits(d, d->next.at, payload))
		return true;
	uint64_t reserve = frees ? 0 : d->cfg.reserve_bytes;
	return segment_fits(d, d->current.at + reserve, payload);
}

static bool only_tombstones(const struct log_entry *entries, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		if (!bytes_is_null(entries[i].value))
			return false;
	return true;
}

static void refuse_full(struct log_disk *d)
{
	d->status.refused++;
	if (d->status.full)
		return;
	d->status.full = true;
	say(d, "log: FULL: no room for more (%s); commits and assignments are refused until there is",
	    d->make_error == 0 ? "the disk does not keep up" : d->make_error == EDQUOT ? "log.total.bytes is reached" : strerror(d->make_error));
}

/* ---- append ---- */

static uint64_t log_disk_append(struct log *log, unsigned int shard, struct log_entry *entries, unsigned int n, int16_t *error,
				struct now now)
{
	struct log_disk *d = log_disk_of(log);
	CHECK(n > 0 && d->begun && shard < d->cfg.shards);
	size_t size = batch_size(entries, n);
	if (size > INT32_MAX - FORMAT_ALIGN || !segment_fits(d, FORMAT_ALIGN, ENTRY_HEAD + size)) {
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
		refuse_full(d);
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
		say(d, "log: there is room again, commits and assignments are taken");
	}
	return d->appended;
}

static uint64_t log_disk_durable(struct log *log)
{
	return log_disk_of(log)->durable;
}

/* ---- making the next segment ---- */

static void make_submit(struct log_disk *d, enum make_state state, enum disk_verb verb)
{
	d->make = state;
	d->make_op.verb = verb;
	disk_submit(d->cfg.disk, &d->make_op);
}

/* The finished file's entry in the index. */
static struct log_file *make_info(const struct log_disk *d)
{
	struct block_place place = {d->start, d->cfg.worker, d->next.number};
	struct log_file *f = file_new(d->cfg.shards);
	if (f == NULL)
		return NULL;
	memcpy(f->name, d->next.name, sizeof(f->name));
	f->cover = (struct block_cover){place, place};
	f->salt = d->next.salt;
	f->bytes = f->charge = d->cfg.segment_bytes;
	f->end = FORMAT_ALIGN;
	f->open = true;
	return f;
}

/* With what the cleaner has to get first. */
static uint64_t make_wants(const struct log_disk *d)
{
	uint64_t wanted = d->cfg.segment_bytes;
	if (d->begun)
		cleaner_lacks(&d->cleaner, &wanted);
	return wanted;
}

static void make_begin(struct log_disk *d)
{
	if (d->status.bytes + make_wants(d) > d->cfg.total_bytes) {
		d->make_error = EDQUOT;
		d->make = MAKE_WAIT;
		return;
	}
	d->make_op = (struct disk_op){.verb = DISK_SPACE};
	make_submit(d, MAKE_SPACE, DISK_SPACE);
}

static void make_create(struct log_disk *d)
{
	struct segment *next = &d->next;
	if (d->make_op.result >= 0 && (uint64_t)d->make_op.result < make_wants(d) + (d->begun ? cleaner_reserving(&d->cleaner) : 0)) {
		d->make_error = ENOSPC;
		d->make = MAKE_WAIT;
		return;
	}
	*next = (struct segment){.number = d->current.number + 1, .at = FORMAT_ALIGN, .sequence = 1};
	next->salt = mix(d->cfg.random + mix(d->start << 32 ^ next->number) + d->cfg.worker);
	segment_name(next->name, d->start, d->cfg.worker, next->number);
	next->info = files_reserve(&d->files) ? make_info(d) : NULL;
	if (next->info == NULL) {
		d->make_error = ENOMEM;
		d->make = MAKE_WAIT;
		return;
	}
	d->make_op = (struct disk_op){.len = d->cfg.segment_bytes};
	snprintf(d->make_op.name, sizeof(d->make_op.name), "%.*s%s", (int)(FORMAT_NAME_MAX - sizeof(FORMAT_NEW)), next->name, FORMAT_NEW);
	snprintf(d->make_op.to, sizeof(d->make_op.to), "%s", next->name);
	make_submit(d, MAKE_CREATE, DISK_CREATE);
}

static void make_head(struct log_disk *d)
{
	struct block_id id = {.shards = d->cfg.shards, .start = d->start, .worker = d->cfg.worker, .number = d->next.number,
			      .bytes = d->cfg.segment_bytes};
	struct block head = {.type = BLOCK_FIRST, .salt = d->next.salt, .length = BLOCK_ID_BYTES};
	d->next.file = d->make_op.file;
	memcpy(id.log, d->id, sizeof(id.log));
	block_id_write(d->head_block + BLOCK_HEAD, FORMAT_ALIGN - BLOCK_HEAD, &id);
	block_seal(d->head_block, &head);
	d->make_op.buf = d->head_block;
	d->make_op.len = FORMAT_ALIGN;
	d->make_op.offset = 0;
	make_submit(d, MAKE_HEAD, DISK_WRITE_DURABLE);
}

/* The unfinished file is given back, so that what it holds of a full disk is free for the next attempt. */
static void make_failed(struct log_disk *d)
{
	d->make_error = (int)-d->make_op.result;
	file_free(d->next.info);
	d->next.info = NULL;
	if (d->make == MAKE_CREATE) {
		d->make = MAKE_WAIT;
		return;
	}
	make_submit(d, MAKE_UNDO, DISK_CLOSE);
}

static void make_step(struct log_disk *d, struct now now)
{
	if (d->make_op.pending)
		return;
	bool ok = d->make_op.result >= 0;
	switch (d->make) {
	case MAKE_NONE:
		if (!d->closing && !d->status.failed)
			make_begin(d);
		break;
	case MAKE_SPACE:
		make_create(d);
		break;
	case MAKE_CREATE:
		ok ? make_head(d) : make_failed(d);
		break;
	case MAKE_HEAD:
		ok ? make_submit(d, MAKE_RENAME, DISK_RENAME) : make_failed(d);
		break;
	case MAKE_RENAME:
		if (!ok) {
			make_failed(d);
			break;
		}
		d->make = MAKE_READY;
		d->make_error = 0;
		d->status.bytes += d->cfg.segment_bytes;
		break;
	case MAKE_UNDO:
		if (d->make_op.verb == DISK_CLOSE)
			make_submit(d, MAKE_UNDO, DISK_REMOVE);
		else
			d->make = MAKE_WAIT;
		break;
	case MAKE_WAIT:
	case MAKE_READY:
		break;
	}
	if (d->make == MAKE_WAIT) {
		if (d->retry_us == 0)
			d->retry_us = now.us + RETRY_US;
		else if (d->retry_us <= now.us) {
			d->retry_us = 0;
			d->make = MAKE_NONE;
		}
	}
}

/* ---- writing blocks ---- */

static void io_fail(struct log_disk *d)
{
	d->status.failed = true;
	say(d, "log: FAILED: writing %s: %s; nothing is acknowledged any more until the disk is repaired and the program restarted", d->current.name,
	    strerror((int)-d->io_op.result));
}

static void io_write(struct log_disk *d, enum io_state state, bool durable, uint8_t *block, size_t len)
{
	d->io = state;
	d->io_op = (struct disk_op){
		.verb = durable ? DISK_WRITE_DURABLE : DISK_WRITE,
		.file = d->current.file,
		.buf = block,
		.len = len,
		.offset = d->current.at,
	};
	disk_submit(d->cfg.disk, &d->io_op);
}

static void io_write_block(struct log_disk *d)
{
	bool durable = d->cfg.flush == LOG_FLUSH_DURABLE;
	struct buffer empty = d->writing;
	d->writing = d->filling;
	d->filling = empty;
	d->filling.len = 0;
	struct segment *s = &d->current;
	struct block head = {BLOCK_BATCHES, s->salt, s->sequence, durable ? s->sequence : 0, (uint32_t)d->writing.len};
	block_seal(d->writing.p, &head);
	io_write(d, IO_BLOCK, durable, d->writing.p, block_bytes(d->writing.len));
	s->at += block_bytes(d->writing.len);
	s->sequence++;
}

static void io_write_end(struct log_disk *d)
{
	struct segment *s = &d->current;
	struct block end = {BLOCK_END, s->salt, s->sequence, s->sequence, 0};
	block_seal(d->end_block, &end);
	io_write(d, IO_SEAL, true, d->end_block, block_bytes(0));
}

static void io_end_segment(struct log_disk *d)
{
	if (d->cfg.flush == LOG_FLUSH_DURABLE) {
		io_write_end(d);
		return;
	}
	d->io = IO_FLUSH;
	d->io_op = (struct disk_op){.verb = DISK_FLUSH, .file = d->current.file};
	disk_submit(d->cfg.disk, &d->io_op);
}

/* The segment made in advance becomes the current one. */
static void io_next_segment(struct log_disk *d)
{
	d->current = d->next;
	d->next.info = NULL;
	d->make = MAKE_NONE;
	bool added = files_add(&d->files, d->current.info);
	CHECK(added); /* there was room: make_create */
}

/* What the block holds is durable: readers may see it. */
static void io_block_done(struct log_disk *d)
{
	struct reader rest = reader_of(d->writing.p + BLOCK_HEAD, d->writing.len);
	struct bytes bytes;
	struct batch_span span;
	uint32_t shard;
	while (segment_batch(&rest, &shard, &bytes)) {
		CHECK(batch_peek(&span, bytes));
		file_note(d->current.info, shard, span.base_offset, span.last_offset, d->io_op.offset);
		d->shards[shard].high_watermark = span.last_offset + 1;
	}
	d->current.info->end = d->current.at;
	d->durable = d->writing.position;
	d->status.flushes++;
}

/* A block of the current segment found no space on the disk. It is written again as a whole, until it does. False: not now. */
static bool io_again(struct log_disk *d, struct now now)
{
	if (d->stalled_us == 0) {
		d->stalled_us = now.us + RETRY_US;
		d->make_error = (int)-d->io_op.result;
		refuse_full(d);
	}
	if (now.us < d->stalled_us)
		return false;
	d->stalled_us = now.us + RETRY_US;
	disk_submit(d->cfg.disk, &d->io_op);
	return false;
}

/* A completed operation takes effect. False: one is still on its way. */
static bool io_finish(struct log_disk *d, struct now now)
{
	if (d->io_op.pending)
		return false;
	if ((d->io == IO_BLOCK || d->io == IO_SEAL) && no_space(d->io_op.result) && !d->closing)
		return io_again(d, now);
	if (d->stalled_us != 0) {
		d->stalled_us = 0;
		d->make_error = d->make == MAKE_READY ? 0 : d->make_error;
	}
	if (d->io != IO_IDLE && d->io_op.result < 0) {
		d->io = IO_IDLE;
		io_fail(d);
	} else if (d->io == IO_BLOCK) {
		io_block_done(d);
	} else if (d->io == IO_FLUSH) {
		io_write_end(d);
		return false;
	} else if (d->io == IO_SEAL) {
		d->current.info->bytes = d->current.info->charge = d->current.at + block_bytes(0);
		d->current.info->open = false;
		d->status.bytes -= d->cfg.segment_bytes - d->current.info->bytes;
		d->close_op = (struct disk_op){.verb = DISK_TRIM, .file = d->current.file, .offset = d->current.at + block_bytes(0)};
		disk_submit(d->cfg.disk, &d->close_op);
		io_next_segment(d);
		cleaner_look(&d->cleaner);
	}
	d->io = IO_IDLE;
	return true;
}

/* The segment before the current one: TRIM, then CLOSE. */
static bool close_busy(const struct log_disk *d)
{
	return d->close_op.pending || d->close_op.verb == DISK_TRIM;
}

static void close_step(struct log_disk *d)
{
	if (d->close_op.pending || d->close_op.verb != DISK_TRIM)
		return;
	d->close_op.verb = DISK_CLOSE;
	disk_submit(d->cfg.disk, &d->close_op);
}

static void io_step(struct log_disk *d, struct now now)
{
	if (!io_finish(d, now) || d->status.failed || d->filling.len == 0)
		return;
	if (segment_fits(d, d->current.at, d->filling.len))
		io_write_block(d);
	else if (!close_busy(d))
		io_end_segment(d);
}

static bool log_must_write(const struct log_disk *d)
{
	return d->io_op.pending || (d->filling.len > 0 && !d->status.failed);
}

static bool make_busy(const struct log_disk *d)
{
	return d->make_op.pending || d->make == MAKE_SPACE || d->make == MAKE_CREATE || d->make == MAKE_HEAD || d->make == MAKE_RENAME || d->make == MAKE_UNDO;
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
	close_step(d);
	io_step(d, now);
	make_step(d, now);
	bool reads = log_reader_step(&d->reader, now) && !(d->reader.stream.op.pending && d->cfg.disk->wakes);
	uint64_t wish = clean_step(d, now);
	if (d->stalled_us != 0 && !d->io_op.pending)
		return earlier(wish, d->stalled_us);
	if ((log_must_write(d) && !(d->io_op.pending && d->cfg.disk->wakes)) || reads)
		return now.us;
	if ((make_busy(d) && !(d->make_op.pending && d->cfg.disk->wakes)) || (close_busy(d) && !(d->close_op.pending && d->cfg.disk->wakes)))
		return earlier(wish, now.us + MAKE_WISH_US);
	return d->make == MAKE_WAIT && !d->status.failed ? earlier(wish, d->retry_us) : wish;
}

/* ---- life ---- */

static void log_disk_free(struct log *log)
{
	struct log_disk *d = log_disk_of(log);
	struct now long_ago = {0, 0};
	d->closing = true;
	while (d->begun && (log_must_write(d) || make_busy(d) || close_busy(d))) {
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
		.random = mix(d->cfg.random + mix(d->start) + d->cfg.worker),
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
		make_step(d, now);
		if (d->make_op.pending)
			disk_wait(d->cfg.disk);
	}
	if (d->make != MAKE_READY) {
		snprintf(err, err_len, "log: its first segment cannot be made: %s",
			 d->make_error == EDQUOT ? "log.total.bytes is reached" : strerror(d->make_error));
		return false;
	}
	io_next_segment(d);
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
