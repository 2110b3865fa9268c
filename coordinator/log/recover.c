/*
 * recover.c - reads the log; see recover.h and the rules at the end of format.h.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

#include "muster/check.h"

#include "coordinator/log/batch.h"
#include "coordinator/log/recover.h"
#include "coordinator/log/segment.h"

#define LINE_MAX 300

struct segment_file {
	struct block_id id; /* from the name: start, worker, number */
	char name[FORMAT_NAME_MAX];
	bool last_start;
	bool last; /* none of the same start and worker follows that holds blocks */
	bool empty; /* read, and to be removed */
};

struct scan {
	struct recover *rc;
	struct segment_file *files;
	size_t len;
	char *err;
	size_t err_len;
};

static PRINTF_LIKE(2, 3) void say(const struct recover *rc, const char *format, ...)
{
	char line[LINE_MAX];
	va_list ap;
	va_start(ap, format);
	vsnprintf(line, sizeof(line), format, ap);
	va_end(ap);
	if (rc->say != NULL)
		rc->say(rc->arg, line);
}

static PRINTF_LIKE(3, 4) bool fail(char *err, size_t len, const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	vsnprintf(err, len, format, ap);
	va_end(ap);
	return false;
}

static bool failed_op(char *err, size_t len, const char *name, int64_t result)
{
	return fail(err, len, "log: %s: %s", name, strerror((int)-result));
}

static struct disk_op op_named(enum disk_verb verb, const char *name)
{
	struct disk_op op = {.verb = verb};
	snprintf(op.name, sizeof(op.name), "%s", name);
	return op;
}

static int64_t do_close(struct disk *disk, int file)
{
	struct disk_op op = {.verb = DISK_CLOSE, .file = file};
	return disk_do(disk, &op);
}

/* The whole file in *out (aligned; the caller frees it). Returns 0 or a negative errno. The file stays open as *file. */
static int64_t read_file(struct disk *disk, const char *name, int *file, uint8_t **out, size_t *len)
{
	struct disk_op open = op_named(DISK_OPEN, name);
	int64_t result = disk_do(disk, &open);
	if (result < 0)
		return result;
	void *p;
	size_t room = (open.len + FORMAT_ALIGN - 1) & ~(size_t)(FORMAT_ALIGN - 1);
	result = posix_memalign(&p, FORMAT_ALIGN, room == 0 ? FORMAT_ALIGN : room) == 0 ? 0 : -ENOMEM;
	if (result == 0) {
		struct disk_op read = {.verb = DISK_READ, .file = open.file, .buf = p, .len = room};
		result = disk_do(disk, &read);
		if (result >= 0) {
			*file = open.file;
			*out = p;
			*len = (size_t)result;
			return 0;
		}
		free(p);
	}
	do_close(disk, open.file);
	return result;
}

static int64_t write_block(struct disk *disk, int file, uint64_t at, uint8_t *block, size_t len)
{
	struct disk_op op = {.verb = DISK_WRITE_DURABLE, .file = file, .offset = at, .buf = block, .len = len};
	return disk_do(disk, &op);
}

/* ---- the meta file ---- */

static int64_t meta_write(struct recover *rc, uint8_t *block)
{
	struct block_id id = {.shards = rc->shards};
	struct block head = {.type = BLOCK_META, .length = BLOCK_ID_BYTES};
	memcpy(id.log, rc->log, sizeof(id.log));
	block_id_write(block + BLOCK_HEAD, FORMAT_ALIGN - BLOCK_HEAD, &id);
	block_seal(block, &head);
	struct disk_op make = op_named(DISK_CREATE, FORMAT_META FORMAT_NEW);
	make.len = FORMAT_ALIGN;
	int64_t result = disk_do(rc->disk, &make);
	if (result < 0)
		return result;
	result = write_block(rc->disk, make.file, 0, block, FORMAT_ALIGN);
	do_close(rc->disk, make.file);
	struct disk_op move = op_named(DISK_RENAME, FORMAT_META FORMAT_NEW);
	snprintf(move.to, sizeof(move.to), "%s", FORMAT_META);
	return result < 0 ? result : disk_do(rc->disk, &move);
}

static bool meta_make(struct recover *rc, char *err, size_t err_len)
{
	void *block;
	if (posix_memalign(&block, FORMAT_ALIGN, FORMAT_ALIGN) != 0)
		return fail(err, err_len, "log: no memory");
	int64_t result = meta_write(rc, block);
	free(block);
	return result >= 0 || failed_op(err, err_len, FORMAT_META, result);
}

static bool meta_check(struct recover *rc, const uint8_t *p, size_t len, char *err, size_t err_len)
{
	struct block b;
	struct block_id id;
	if (!block_open(&b, p, len) || b.type != BLOCK_META || !block_id_read(&id, bytes_of(p + BLOCK_HEAD, b.length)))
		return fail(err, err_len, "log: %s is damaged or of another version", FORMAT_META);
	if (id.shards != rc->shards)
		return fail(err, err_len,
			    "log: it was made for %" PRIu32 " shards, offsets.topic.num.partitions is %u; allowed: the number it was made for",
			    id.shards, rc->shards);
	memcpy(rc->log, id.log, sizeof(rc->log));
	return true;
}

/* ---- which files there are ---- */

static int file_order(const void *x, const void *y)
{
	const struct block_id *a = &((const struct segment_file *)x)->id, *b = &((const struct segment_file *)y)->id;
	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	if (a->worker != b->worker)
		return a->worker < b->worker ? -1 : 1;
	return a->number < b->number ? -1 : a->number > b->number;
}

static bool is_unfinished(const char *name)
{
	size_t len = strlen(name), tail = strlen(FORMAT_NEW);
	return len > tail && strcmp(name + len - tail, FORMAT_NEW) == 0;
}

/* Fills scan->files, removes unfinished files. */
static bool scan_list(struct scan *scan)
{
	struct disk *disk = scan->rc->disk;
	struct disk_op list = {.verb = DISK_LIST};
	int64_t result = disk_do(disk, &list);
	if (result < 0)
		return failed_op(scan->err, scan->err_len, "cannot be listed", result);
	size_t names = 0;
	for (size_t i = 0; i < list.len; i++)
		names += list.buf[i] == 0;
	scan->files = calloc(names + 1, sizeof(*scan->files));
	for (const char *name = (const char *)list.buf; scan->files != NULL && names-- > 0; name += strlen(name) + 1) {
		struct segment_file *f = &scan->files[scan->len];
		if (segment_parse_name(name, &f->id)) {
			snprintf(f->name, sizeof(f->name), "%s", name);
			scan->len++;
		} else if (is_unfinished(name)) {
			struct disk_op gone = op_named(DISK_REMOVE, name);
			disk_do(disk, &gone); /* if it stays, the next start tries again */
		}
	}
	free(list.buf);
	if (scan->files == NULL)
		return fail(scan->err, scan->err_len, "log: no memory");
	qsort(scan->files, scan->len, sizeof(*scan->files), file_order);
	return true;
}

bool recover_init(struct recover *rc, const uint8_t id[16], char *err, size_t err_len)
{
	struct scan scan = {rc, NULL, 0, err, err_len};
	uint8_t *p;
	size_t len;
	int file;
	bool ok;
	int64_t result = read_file(rc->disk, FORMAT_META, &file, &p, &len);
	if (result == 0) {
		ok = meta_check(rc, p, len, err, err_len);
		free(p);
		do_close(rc->disk, file);
	} else if (result != -ENOENT) {
		ok = failed_op(err, err_len, FORMAT_META, result);
	} else {
		ok = scan_list(&scan);
		if (ok && scan.len > 0)
			ok = fail(err, err_len, "log: there are segments, but no file named %s", FORMAT_META);
		free(scan.files);
		memcpy(rc->log, id, sizeof(rc->log));
		ok = ok && meta_make(rc, err, err_len);
	}
	if (!ok)
		return false;
	rc->state = log_shards_new(rc->shards);
	rc->files = (struct log_files){.shards = rc->shards};
	return rc->state != NULL || fail(err, err_len, "log: no memory");
}

void recover_fini(struct recover *rc)
{
	log_shards_free(rc->state, rc->shards);
	rc->state = NULL;
	files_fini(&rc->files);
}

/* ---- records ---- */

static void set_aside(struct recover *rc, const char *name, uint32_t shard, int64_t offset, const char *why)
{
	rc->set_aside++;
	say(rc, "log: %s: shard %" PRIu32 ", offset %" PRId64 ": %s; set aside", name, shard, offset, why);
}

/* `at` is where its block stands. */
static void read_batch(struct recover *rc, struct log_file *info, uint64_t at, uint32_t shard, struct bytes bytes)
{
	const char *name = info->name;
	struct batch batch;
	struct batch_record record;
	if (!batch_open(&batch, bytes)) {
		set_aside(rc, name, shard, -1, "a batch cannot be read");
		return;
	}
	if (shard >= rc->shards) {
		set_aside(rc, name, shard, batch.base_offset, "there is no such shard");
		return;
	}
	struct log_shard *state = &rc->state[shard];
	if (batch.base_offset < state->next_offset) {
		set_aside(rc, name, shard, batch.base_offset, "a batch stands there twice");
		return;
	}
	state->next_offset = batch.last_offset + 1;
	if (batch.leader_epoch > state->epoch)
		state->epoch = batch.leader_epoch;
	log_shard_note_epoch(state, batch.leader_epoch, batch.base_offset);
	file_note(info, shard, batch.base_offset, batch.last_offset, at);
	if ((batch.attributes & (BATCH_COMPRESSION | BATCH_CONTROL | BATCH_TRANSACTIONAL)) != 0) {
		set_aside(rc, name, shard, batch.base_offset, "a batch is compressed or of a transaction");
		return;
	}
	while (batch_next(&batch, &record)) {
		rc->records++;
		record.entry.offset = record.offset;
		if (!rc->record(rc->arg, shard, &record.entry))
			set_aside(rc, name, shard, record.offset, "a record cannot be read");
	}
	if (batch.rest.bad)
		set_aside(rc, name, shard, batch.base_offset, "the rest of a batch cannot be read");
}

/* ---- segments ---- */

/* What was read may have come from the kernel's memory after a kill. Now that it counts, it is made durable. */
static bool make_sure(struct scan *scan, const struct segment_file *f, int file)
{
	struct disk_op flush = {.verb = DISK_FLUSH, .file = file};
	int64_t result = disk_do(scan->rc->disk, &flush);
	return result >= 0 || failed_op(scan->err, scan->err_len, f->name, result);
}

/* The place where the segment ends is made its end for ever. */
static bool seal(struct scan *scan, const struct segment_file *f, int file, const struct segment_reader *r, uint8_t *block)
{
	struct block end = {BLOCK_END, r->salt, r->sequence, r->sequence, 0};
	block_seal(block, &end);
	int64_t result = write_block(scan->rc->disk, file, r->at, block, block_bytes(0));
	if (result < 0)
		return failed_op(scan->err, scan->err_len, f->name, result);
	return true;
}

/* Gives back what was reserved behind END; *len is the file's new length. That it fails costs nothing but space. */
static void trim(struct scan *scan, int file, const struct segment_reader *r, size_t *len)
{
	struct disk_op op = {.verb = DISK_TRIM, .file = file, .offset = r->at + block_bytes(0)};
	if (op.offset < *len && disk_do(scan->rc->disk, &op) >= 0)
		*len = op.offset;
}

/* Damage: false unless it is to be skipped, and then it is said what is lost. */
static bool damaged(struct scan *scan, const struct segment_file *f, struct segment_reader *r)
{
	if (!scan->rc->skip_damaged)
		return fail(scan->err, scan->err_len,
			    "log: %s: block %" PRIu64 " at byte %zu was durable and is damaged; log.recover=skip.damaged starts without it",
			    f->name, r->sequence, r->at);
	uint64_t first = r->sequence;
	size_t at = r->at;
	uint64_t lost = segment_skip(r);
	scan->rc->lost_blocks += lost == 0 ? 1 : lost;
	if (lost > 0)
		say(scan->rc, "log: %s: LOST: blocks %" PRIu64 " to %" PRIu64 " at byte %zu", f->name, first, first + lost - 1, at);
	else
		say(scan->rc, "log: %s: LOST: everything from block %" PRIu64 " at byte %zu", f->name, first, at);
	return true;
}

static void read_blocks(struct scan *scan, struct log_file *info, struct segment_reader *r)
{
	struct bytes payload, batch;
	uint32_t shard;
	for (size_t at = r->at; segment_next(r, &payload); at = r->at) {
		struct reader rest = reader_of(payload.p, (size_t)payload.len);
		while (segment_batch(&rest, &shard, &batch))
			read_batch(scan->rc, info, at, shard, batch);
		if (rest.bad)
			set_aside(scan->rc, info->name, 0, -1, "the rest of a block cannot be read");
	}
}

static bool read_segment(struct scan *scan, const struct segment_file *f, int file, struct segment_reader *r, uint8_t *block, struct log_file *info,
			 bool *empty)
{
	bool may_be_open = f->last && f->last_start;
	for (;;) {
		read_blocks(scan, info, r);
		if (r->end == SEGMENT_SEALED)
			return !f->last_start || make_sure(scan, f, file);
		if (may_be_open && r->end != SEGMENT_DAMAGED)
			break;
		info->broken = true;
		if (!damaged(scan, f, r))
			return false;
		if (r->end != SEGMENT_GOING)
			break;
	}
	if (r->end == SEGMENT_TORN)
		say(scan->rc, "log: %s: cut at block %" PRIu64 ", byte %zu: a write was under way there and nobody was told that it was done", f->name,
		    r->sequence, r->at);
	*empty = may_be_open && r->sequence == 1 && r->end != SEGMENT_DAMAGED;
	return *empty || (make_sure(scan, f, file) && seal(scan, f, file, r, block));
}

static bool id_fits(const struct recover *rc, const struct segment_file *f, const struct block_id *id)
{
	return memcmp(id->log, rc->log, sizeof(id->log)) == 0 && id->shards == rc->shards && id->start == f->id.start && id->worker == f->id.worker &&
	       id->number == f->id.number;
}

static struct log_file *scan_file(struct scan *scan, const struct segment_file *f, const struct segment_reader *r)
{
	struct log_file *info = file_new(scan->rc->shards);
	struct block_place place = {f->id.start, f->id.worker, f->id.number};
	if (info == NULL) {
		fail(scan->err, scan->err_len, "log: no memory");
		return NULL;
	}
	memcpy(info->name, f->name, sizeof(info->name));
	info->cover = (struct block_cover){place, place};
	info->salt = r->salt;
	return info;
}

/* Consumes `info`, which may be NULL. */
static bool scan_keep(struct scan *scan, const struct segment_file *f, struct log_file *info, uint64_t end, uint64_t bytes)
{
	if (info == NULL || f->empty) {
		file_free(info);
		return true;
	}
	info->end = end;
	info->bytes = bytes;
	if (files_add(&scan->rc->files, info))
		return true;
	file_free(info);
	return fail(scan->err, scan->err_len, "log: no memory");
}

static bool scan_segment(struct scan *scan, struct segment_file *f, uint8_t *block)
{
	struct recover *rc = scan->rc;
	struct segment_reader r = {.at = 0};
	uint8_t *p;
	size_t len;
	int file;
	int64_t result = read_file(rc->disk, f->name, &file, &p, &len);
	if (result < 0)
		return failed_op(scan->err, scan->err_len, f->name, result);
	bool good = segment_open(&r, p, len) && id_fits(rc, f, &r.id), ok = false;
	struct log_file *info = good ? scan_file(scan, f, &r) : NULL;
	if (good) {
		ok = info != NULL && read_segment(scan, f, file, &r, block, info, &f->empty);
	} else if (rc->skip_damaged) {
		say(rc, "log: %s: LOST: its first block is not good or belongs to another log", f->name);
		rc->lost_blocks++;
		ok = true;
	} else {
		fail(scan->err, scan->err_len,
		     "log: %s: its first block is not good or belongs to another log; log.recover=skip.damaged starts without it", f->name);
	}
	if (ok && good && !f->empty && r.end != SEGMENT_DAMAGED)
		trim(scan, file, &r, &len);
	free(p);
	do_close(rc->disk, file);
	rc->bytes += f->empty ? 0 : len;
	rc->segments += !f->empty;
	return scan_keep(scan, f, info, r.at, len) && ok;
}

/* From the last one: a cut on the way must not look as if one were missing in between. */
static bool scan_remove_empty(struct scan *scan)
{
	for (size_t i = scan->len; i-- > 0;) {
		const struct segment_file *f = &scan->files[i];
		struct disk_op gone = op_named(DISK_REMOVE, f->name);
		int64_t result = f->empty ? disk_do(scan->rc->disk, &gone) : 0;
		if (result < 0)
			return failed_op(scan->err, scan->err_len, f->name, result);
	}
	return true;
}

/* True when the segment holds no block beside HEAD: it was made in advance. */
static bool scan_unused(struct scan *scan, const struct segment_file *f)
{
	struct segment_reader r;
	struct bytes payload;
	uint8_t *p;
	size_t len;
	int file;
	if (read_file(scan->rc->disk, f->name, &file, &p, &len) < 0)
		return false;
	bool unused = segment_open(&r, p, len) && !segment_next(&r, &payload) && (r.end == SEGMENT_CLEAN);
	free(p);
	do_close(scan->rc->disk, file);
	return unused;
}

/* Says which file is the tail of its worker. The one behind it may have been made in advance. */
static void scan_mark(struct scan *scan)
{
	for (size_t i = scan->len; i-- > 0;) {
		struct segment_file *f = &scan->files[i], *behind = i + 1 < scan->len ? f + 1 : NULL;
		f->last_start = f->id.start == scan->files[scan->len - 1].id.start;
		f->last = behind == NULL || behind->id.start != f->id.start || behind->id.worker != f->id.worker ||
			  (behind->last && behind->last_start && scan_unused(scan, behind));
	}
}

static bool scan_gap(struct scan *scan, size_t i)
{
	const struct segment_file *f = &scan->files[i], *before = i > 0 ? f - 1 : NULL;
	if (before == NULL || before->id.start != f->id.start || before->id.worker != f->id.worker || before->id.number + 1 == f->id.number)
		return true;
	if (!scan->rc->skip_damaged)
		return fail(scan->err, scan->err_len, "log: between %s and %s a segment is missing; log.recover=skip.damaged starts without it",
			    before->name, f->name);
	scan->rc->lost_blocks++;
	say(scan->rc, "log: LOST: what stood between %s and %s", before->name, f->name);
	return true;
}

bool recover_run(struct recover *rc, char *err, size_t err_len)
{
	struct scan scan = {rc, NULL, 0, err, err_len};
	void *block;
	if (posix_memalign(&block, FORMAT_ALIGN, FORMAT_ALIGN) != 0)
		return fail(err, err_len, "log: no memory");
	bool ok = scan_list(&scan);
	if (ok && scan.len > 0)
		scan_mark(&scan);
	for (size_t i = 0; ok && i < scan.len; i++)
		ok = scan_gap(&scan, i) && scan_segment(&scan, &scan.files[i], block);
	ok = ok && scan_remove_empty(&scan);
	rc->start = scan.len == 0 ? 1 : scan.files[scan.len - 1].id.start + 1;
	free(scan.files);
	free(block);
	return ok;
}
