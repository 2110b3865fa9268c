/*
 * recover.c - reads the log; see recover.h and the rules at the end of format.h.
 *
 * While one segment is looked at, the next one is being read.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "muster/check.h"

#include "coordinator/log/covers.h"
#include "coordinator/log/file.h"
#include "coordinator/log/mend.h"
#include "coordinator/log/meta.h"
#include "coordinator/log/recover.h"
#include "coordinator/log/segment.h"
#include "coordinator/log/shards_block.h"

#define LINE_MAX 300
#define MISSING_MAX 4096 /* segments in a row that are mended */

struct segment_file {
	struct block_id id; /* from the name: start, worker, number */
	char name[FORMAT_NAME_MAX];
	struct cover cover;
	bool last_start;
	bool last; /* none of the same start and worker follows that holds blocks */
	bool empty; /* read, and to be removed */
};

struct scan {
	struct recover *rc;
	struct segment_file *files;
	size_t len;
	uint64_t last_start; /* the largest of all names */
	uint8_t *block; /* for END */
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

static PRINTF_LIKE(2, 3) bool fail(struct scan *scan, const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	vsnprintf(scan->err, scan->err_len, format, ap);
	va_end(ap);
	return false;
}

static bool failed_op(struct scan *scan, const char *name, int64_t result)
{
	return file_failed(scan->err, scan->err_len, name, result);
}

/* ---- which files there are ---- */

static int file_order(const void *x, const void *y)
{
	return cover_order(&((const struct segment_file *)x)->cover, &((const struct segment_file *)y)->cover);
}

static bool is_unfinished(const char *name)
{
	size_t len = strlen(name), tail = strlen(FORMAT_NEW);
	return len > tail && strcmp(name + len - tail, FORMAT_NEW) == 0;
}

/* Fills scan->files in no order, removes unfinished files. */
static bool scan_list(struct scan *scan)
{
	struct disk *disk = scan->rc->disk;
	struct disk_op list = {.verb = DISK_LIST};
	int64_t result = disk_do(disk, &list);
	if (result < 0)
		return failed_op(scan, "cannot be listed", result);
	size_t names = 0;
	for (size_t i = 0; i < list.len; i++)
		names += list.buf[i] == 0;
	scan->files = calloc(names + 1, sizeof(*scan->files));
	for (const char *name = (const char *)list.buf; scan->files != NULL && names-- > 0; name += strlen(name) + 1) {
		struct segment_file *f = &scan->files[scan->len];
		bool clean;
		if (segment_parse_name(name, &f->id, &clean)) {
			snprintf(f->name, sizeof(f->name), "%s", name);
			cover_init(&f->cover, &f->id, clean);
			scan->last_start = f->id.start > scan->last_start ? f->id.start : scan->last_start;
			scan->len++;
		} else if (is_unfinished(name)) {
			file_remove(disk, name); /* if it stays, the next start tries again */
		}
	}
	free(list.buf);
	return scan->files != NULL || fail(scan, "log: no memory");
}

static void scan_free(struct scan *scan)
{
	for (size_t i = 0; i < scan->len; i++)
		cover_fini(&scan->files[i].cover);
	free(scan->files);
}

static void drop_file(struct scan *scan, size_t i)
{
	cover_fini(&scan->files[i].cover);
	memmove(&scan->files[i], &scan->files[i + 1], (--scan->len - i) * sizeof(*scan->files));
}

/* A cleaned file whose beginning is not good says nothing about what it stands for. */
static bool bad_cleaned(struct scan *scan, size_t i, int64_t result)
{
	struct recover *rc = scan->rc;
	const char *name = scan->files[i].name;
	char aside[2 * FORMAT_NAME_MAX];
	if (result != -EBADMSG)
		return failed_op(scan, name, result);
	if (!rc->skip_damaged)
		return fail(scan, "log: %s: its first blocks are not good or belong to another log; --recover=skip-damaged starts without it", name);
	say(rc, "log: %s: LOST: its first blocks are not good or belong to another log", name);
	rc->lost_blocks++;
	rc->holes++;
	snprintf(aside, sizeof(aside), "%s.damaged", name);
	result = file_rename(rc->disk, name, aside);
	if (result < 0)
		return failed_op(scan, name, result);
	drop_file(scan, i);
	return true;
}

/* What cleaned files stand for becomes known, and in which order all are read. */
static bool scan_covers(struct scan *scan)
{
	struct recover *rc = scan->rc;
	for (size_t i = scan->len; i-- > 0;) {
		struct segment_file *f = &scan->files[i];
		int64_t result = f->cover.clean ? cover_read(&f->cover, rc->disk, f->name, rc->log, rc->shards) : 0;
		if (result < 0 && !bad_cleaned(scan, i, result))
			return false;
	}
	qsort(scan->files, scan->len, sizeof(*scan->files), file_order);
	struct cover **list = calloc(scan->len + 1, sizeof(struct cover *));
	for (size_t i = 0; list != NULL && i < scan->len; i++)
		list[i] = &scan->files[i].cover;
	bool ok = list != NULL && covers_hide(list, scan->len, rc->shards);
	free(list);
	return ok || fail(scan, "log: no memory");
}

/*
 * Removes what does not count any more. Before that, the names of the files that took its place are made durable: a killed program may have given
 * them without that.
 */
static bool scan_remove_hidden(struct scan *scan)
{
	struct disk *disk = scan->rc->disk;
	for (size_t i = 0; i < scan->len; i++) {
		const struct segment_file *f = &scan->files[i];
		int64_t result = f->cover.makes_hidden ? file_rename(disk, f->name, f->name) : 0;
		if (result < 0)
			return failed_op(scan, f->name, result);
	}
	for (size_t i = scan->len; i-- > 0;) {
		if (!cover_gone(&scan->files[i].cover, scan->rc->shards))
			continue;
		int64_t result = file_remove(disk, scan->files[i].name);
		if (result < 0)
			return failed_op(scan, scan->files[i].name, result);
		drop_file(scan, i);
	}
	return true;
}

/* ---- begin and end ---- */

static bool init_meta(struct recover *rc, const uint8_t id[16], char *err, size_t err_len)
{
	struct scan scan = {.rc = rc, .err = err, .err_len = err_len};
	bool missing;
	if (meta_read(rc->disk, rc->shards, rc->log, &missing, err, err_len))
		return true;
	if (!missing || !scan_list(&scan))
		return false;
	scan_free(&scan);
	if (scan.len > 0)
		return fail(&scan, "log: there are segments, but no file named %s", FORMAT_META);
	memcpy(rc->log, id, sizeof(rc->log));
	return meta_make(rc->disk, rc->shards, rc->log, err, err_len);
}

bool recover_init(struct recover *rc, const uint8_t id[16], char *err, size_t err_len)
{
	if (!init_meta(rc, id, err, err_len))
		return false;
	rc->state = log_shards_new(rc->shards);
	rc->files = (struct log_files){.shards = rc->shards};
	rc->given = calloc(rc->shards, sizeof(*rc->given));
	if (rc->state == NULL || rc->given == NULL || !backlog_init(&rc->backlog, rc->shards)) {
		recover_fini(rc);
		snprintf(err, err_len, "log: no memory");
		return false;
	}
	return true;
}

void recover_fini(struct recover *rc)
{
	backlog_fini(&rc->backlog);
	log_shards_free(rc->state, rc->shards);
	files_fini(&rc->files);
	free(rc->given);
	rc->state = NULL;
	rc->given = NULL;
}

/* ---- batches of a good block ---- */

static void scan_aside(struct recover *rc, const char *name, uint32_t shard, int64_t offset, const char *why)
{
	rc->set_aside++;
	say(rc, "log: %s: shard %" PRIu32 ", offset %" PRId64 ": %s; set aside", name, shard, offset, why);
}

/* A shard's first batch behind holes tells what it lost in them. A compacted shard may have had a gap there before. */
static void scan_missed(struct recover *rc, uint32_t shard, int64_t next_offset)
{
	if (rc->given[shard].holes != rc->holes && next_offset > rc->state[shard].next_offset)
		say(rc, "log: LOST: shard %" PRIu32 ", offsets %" PRId64 " to %" PRId64, shard, rc->state[shard].next_offset, next_offset - 1);
	rc->given[shard].holes = rc->holes;
}

/* `at` is where its block stands. */
static void scan_batch(struct recover *rc, const struct cover *cover, struct log_file *info, uint64_t at, uint32_t shard, struct bytes bytes)
{
	const char *name = info->name;
	struct batch batch;
	if (!batch_open(&batch, bytes)) {
		scan_aside(rc, name, shard, -1, "a batch cannot be read");
		return;
	}
	if (shard >= rc->shards) {
		scan_aside(rc, name, shard, batch.base_offset, "there is no such shard");
		return;
	}
	if (!cover_counts(cover, shard))
		return;
	struct log_shard *state = &rc->state[shard];
	if (batch.base_offset < state->next_offset) {
		scan_aside(rc, name, shard, batch.base_offset, "a batch stands there twice");
		return;
	}
	scan_missed(rc, shard, batch.base_offset);
	state->next_offset = batch.last_offset + 1;
	if (batch.leader_epoch > state->epoch)
		state->epoch = batch.leader_epoch;
	log_shard_note_epoch(state, batch.leader_epoch, batch.base_offset);
	file_note(info, shard, batch.base_offset, batch.last_offset, at);
	backlog_add(&rc->backlog, shard, bytes);
}

static void scan_blocks(struct scan *scan, const struct cover *cover, struct log_file *info, struct segment_reader *r)
{
	struct bytes payload, batch;
	uint32_t shard;
	while (segment_next(r, &payload)) {
		uint64_t at = (uint64_t)(payload.p - BLOCK_HEAD - r->p);
		struct reader rest = reader_of(payload.p, (size_t)payload.len);
		while (segment_batch(&rest, &shard, &batch))
			scan_batch(scan->rc, cover, info, at, shard, batch);
		if (rest.bad)
			scan_aside(scan->rc, info->name, 0, -1, "the rest of a block cannot be read");
	}
}

/* ---- segments ---- */

/* What a cleaned file says of its shards. `end`: its batches were read, offsets go on behind what it stands for. */
static void scan_shards(struct recover *rc, const struct cover *cover, struct log_file *info, struct bytes payload, bool end)
{
	struct reader r;
	struct shards_block_entry e;
	struct log_epoch epoch;
	for (uint32_t n = shards_block_open(&r, payload); n > 0 && shards_block_next(&r, &e); n--) {
		if (e.shard >= rc->shards || !cover_counts(cover, e.shard))
			continue;
		struct log_shard *s = &rc->state[e.shard];
		info->bounds[e.shard].end = e.end;
		s->start = e.start > s->start ? e.start : s->start;
		if (end && e.end > s->next_offset)
			s->next_offset = e.end;
		while (!end && shards_block_epoch(&e, &epoch)) {
			log_shard_note_epoch(s, epoch.epoch, epoch.start);
			s->epoch = epoch.epoch > s->epoch ? epoch.epoch : s->epoch;
		}
	}
}

/* What was read may have come from the kernel's memory after a kill. Now that it counts, it is made durable. */
static bool make_sure(struct scan *scan, const struct segment_file *f, int file)
{
	struct disk_op flush = {.verb = DISK_FLUSH, .file = file};
	int64_t result = disk_do(scan->rc->disk, &flush);
	return result >= 0 || failed_op(scan, f->name, result);
}

/* The place where the segment ends is made its end for ever. */
static bool seal(struct scan *scan, const struct segment_file *f, int file, const struct segment_reader *r)
{
	struct block end = {BLOCK_END, r->salt, r->sequence, r->sequence, 0};
	block_seal(scan->block, &end);
	int64_t result = file_write(scan->rc->disk, file, r->at, scan->block, block_bytes(0));
	return result >= 0 || failed_op(scan, f->name, result);
}

/* Gives back what was reserved behind END; *len is the file's new length. That it fails costs nothing but space. */
static void trim(struct scan *scan, int file, const struct segment_reader *r, size_t *len)
{
	struct disk_op op = {.verb = DISK_TRIM, .file = file, .offset = r->at + block_bytes(0)};
	if (op.offset < *len && disk_do(scan->rc->disk, &op) >= 0)
		*len = op.offset;
}

/* Damage: false unless it is to be skipped, and then it is said what is lost, and mended. */
static bool damaged(struct scan *scan, const struct segment_file *f, int file, struct segment_reader *r, uint8_t *image)
{
	struct recover *rc = scan->rc;
	if (!rc->skip_damaged)
		return fail(scan, "log: %s: block %" PRIu64 " at byte %zu was durable and is damaged; --recover=skip-damaged starts without it",
			    f->name, r->sequence, r->at);
	struct segment_reader hole = *r;
	uint64_t lost = segment_skip(r);
	rc->lost_blocks += lost == 0 ? 1 : lost;
	rc->holes++;
	if (lost == 0) {
		say(rc, "log: %s: LOST: everything from block %" PRIu64 " at byte %zu", f->name, hole.sequence, hole.at);
		return true;
	}
	say(rc, "log: %s: LOST: blocks %" PRIu64 " to %" PRIu64 " at byte %zu", f->name, hole.sequence, hole.sequence + lost - 1, hole.at);
	int64_t result = mend_hole(rc->disk, file, f->name, &hole, image, lost, r->at - hole.at);
	return result >= 0 || failed_op(scan, f->name, result);
}

static bool scan_blocks_to_end(struct scan *scan, const struct segment_file *f, int file, struct segment_reader *r, uint8_t *image,
			       struct log_file *info, bool *empty)
{
	bool may_be_open = f->last && f->last_start && !f->cover.clean;
	scan_shards(scan->rc, &f->cover, info, r->shards, false);
	for (;;) {
		scan_blocks(scan, &f->cover, info, r);
		scan_shards(scan->rc, &f->cover, info, r->shards, true);
		if (r->end == SEGMENT_SEALED)
			return !f->last_start || make_sure(scan, f, file);
		if (may_be_open && r->end != SEGMENT_DAMAGED)
			break;
		if (!damaged(scan, f, file, r, image))
			return false;
		if (r->end != SEGMENT_GOING)
			break;
	}
	if (r->end == SEGMENT_TORN)
		say(scan->rc, "log: %s: cut at block %" PRIu64 ", byte %zu: a write was under way there and nobody was told that it was done", f->name,
		    r->sequence, r->at);
	*empty = may_be_open && r->sequence == 1 && r->end != SEGMENT_DAMAGED;
	return *empty || (make_sure(scan, f, file) && seal(scan, f, file, r));
}

static bool id_fits(const struct recover *rc, const struct segment_file *f, const struct block_id *id)
{
	return memcmp(id->log, rc->log, sizeof(id->log)) == 0 && id->shards == rc->shards && id->start == f->id.start && id->worker == f->id.worker &&
	       id->number == f->id.number;
}

/* A segment that says nothing about itself. */
static bool bad_head(struct scan *scan, const struct segment_file *f)
{
	struct recover *rc = scan->rc;
	if (!rc->skip_damaged)
		return fail(scan, "log: %s: its first block is not good or belongs to another log; --recover=skip-damaged starts without it", f->name);
	say(rc, "log: %s: LOST: its first block is not good or belongs to another log", f->name);
	rc->lost_blocks++;
	rc->holes++;
	struct block_id id = {.shards = rc->shards, .start = f->id.start, .worker = f->id.worker, .number = f->id.number};
	memcpy(id.log, rc->log, sizeof(id.log));
	int64_t result = mend_segment(rc->disk, &id, true);
	return result >= 0 || failed_op(scan, f->name, result);
}

/* Its entry in the index of the log. NULL: no memory. */
static struct log_file *scan_file(const struct scan *scan, const struct segment_file *f, const struct segment_reader *r)
{
	struct log_file *info = file_new(scan->rc->shards);
	if (info == NULL)
		return NULL;
	memcpy(info->name, f->name, sizeof(info->name));
	info->cover = f->cover.row;
	info->clean = f->cover.clean;
	info->salt = r->salt;
	bool ok;
	info->hidden = cover_hidden(&f->cover, scan->rc->shards, &ok);
	if (ok)
		return info;
	file_free(info);
	return NULL;
}

/* Consumes `info`. */
static bool scan_index(struct scan *scan, const struct segment_file *f, struct log_file *info, uint64_t end, uint64_t bytes)
{
	info->end = end;
	info->bytes = bytes;
	if (!f->empty && files_add(&scan->rc->files, info))
		return true;
	file_free(info);
	return f->empty || fail(scan, "log: no memory");
}

/* A segment with a good HEAD. */
static bool scan_good(struct scan *scan, struct segment_file *f, const struct file_read *read, struct segment_reader *r)
{
	struct recover *rc = scan->rc;
	size_t len = read->len;
	struct log_file *info = scan_file(scan, f, r);
	if (info == NULL)
		return fail(scan, "log: no memory");
	bool ok = scan_blocks_to_end(scan, f, read->file, r, read->p, info, &f->empty);
	if (ok && !f->empty && r->end != SEGMENT_DAMAGED)
		trim(scan, read->file, r, &len);
	rc->bytes += f->empty ? 0 : len;
	rc->segments += !f->empty;
	return scan_index(scan, f, info, r->at, len) && ok;
}

/* Consumes the image. */
static bool scan_segment(struct scan *scan, struct segment_file *f, struct file_read *read)
{
	struct recover *rc = scan->rc;
	struct segment_reader r;
	bool good = segment_open(&r, read->p, read->len) && id_fits(rc, f, &r.id);
	bool kept = good && backlog_keep(&rc->backlog, read->p, read->len, f->name);
	bool ok = !good ? bad_head(scan, f) : kept ? scan_good(scan, f, read, &r) : fail(scan, "log: no memory");
	if (!kept)
		free(read->p);
	file_close(rc->disk, read->file);
	return ok;
}

/* From the last one: a cut on the way must not look as if one were missing in between. */
static bool scan_remove_empty(struct scan *scan)
{
	for (size_t i = scan->len; i-- > 0;) {
		const struct segment_file *f = &scan->files[i];
		int64_t result = f->empty ? file_remove(scan->rc->disk, f->name) : 0;
		if (result < 0)
			return failed_op(scan, f->name, result);
	}
	return true;
}

/* True when the segment holds no block beside HEAD: it was made in advance. */
static bool scan_unused(struct scan *scan, const struct segment_file *f)
{
	struct segment_reader r;
	struct bytes payload;
	struct file_read read;
	if (file_read(scan->rc->disk, f->name, &read) < 0)
		return false;
	bool unused = segment_open(&r, read.p, read.len) && !segment_next(&r, &payload) && r.end == SEGMENT_CLEAN;
	file_read_drop(scan->rc->disk, &read);
	return unused;
}

static bool same_worker(const struct block_place *a, const struct block_place *b)
{
	return a->start == b->start && a->worker == b->worker;
}

/* Says which file is the tail of its worker. The one behind it may have been made in advance. */
static void scan_mark(struct scan *scan)
{
	for (size_t i = scan->len; i-- > 0;) {
		struct segment_file *f = &scan->files[i], *behind = i + 1 < scan->len ? f + 1 : NULL;
		f->last_start = f->id.start == scan->last_start;
		f->last = behind == NULL || !same_worker(&f->cover.row.last, &behind->cover.row.first) ||
			  (behind->last && behind->last_start && !behind->cover.clean && scan_unused(scan, behind));
	}
}

/* The last segment below `place` of the same worker that some file stands for; number 0: none. */
static struct block_place scan_before(const struct scan *scan, const struct block_place *place)
{
	struct block_place before = {place->start, place->worker, 0}, wanted = {place->start, place->worker, place->number - 1};
	for (size_t i = 0; i < scan->len; i++) {
		const struct block_cover *row = &scan->files[i].cover.row;
		if (block_place_order(&row->first, &wanted) <= 0 && block_place_order(&wanted, &row->last) <= 0)
			return wanted;
		if (same_worker(&row->last, place) && row->last.number < place->number && row->last.number > before.number)
			before = row->last;
	}
	return before;
}

static bool scan_gap(struct scan *scan, size_t i)
{
	const struct segment_file *f = &scan->files[i];
	const struct block_place *first = &f->cover.row.first;
	struct recover *rc = scan->rc;
	if (first->number <= 1)
		return true;
	struct block_place before = scan_before(scan, first);
	char name[FORMAT_NAME_MAX] = "the beginning";
	if (before.number > 0)
		segment_name(name, before.start, before.worker, before.number);
	if (before.number + 1 == first->number)
		return true;
	if (!rc->skip_damaged)
		return fail(scan, "log: between %s and %s a segment is missing; --recover=skip-damaged starts without it", name, f->name);
	rc->lost_blocks++;
	rc->holes++;
	say(rc, "log: LOST: what stood between %s and %s", name, f->name);
	struct block_id id = {.shards = rc->shards, .start = first->start, .worker = first->worker, .number = before.number};
	memcpy(id.log, rc->log, sizeof(id.log));
	for (int n = 0; n < MISSING_MAX && ++id.number < first->number; n++) {
		int64_t result = mend_segment(rc->disk, &id, false);
		if (result < 0)
			return failed_op(scan, f->name, result);
	}
	return true;
}

static void scan_drain(struct recover *rc)
{
	if (rc->keep_bytes == 0 || rc->backlog.bytes <= rc->keep_bytes)
		return;
	rc->drain(rc->arg);
	backlog_clear(&rc->backlog);
}

static bool scan_segments(struct scan *scan)
{
	struct disk *disk = scan->rc->disk;
	struct file_read now, ahead;
	int64_t result = scan->len == 0 ? 0 : file_read_begin(disk, scan->files[0].name, &ahead);
	for (size_t i = 0; i < scan->len; i++) {
		struct segment_file *f = &scan->files[i];
		if (result >= 0)
			result = file_read_end(disk, &ahead);
		if (result < 0)
			return failed_op(scan, f->name, result);
		now = ahead;
		if (i + 1 < scan->len)
			result = file_read_begin(disk, scan->files[i + 1].name, &ahead);
		bool ok = scan_gap(scan, i);
		if (ok)
			ok = scan_segment(scan, f, &now);
		else
			file_read_drop(disk, &now);
		if (ok && atomic_load_explicit(&scan->rc->stop, memory_order_relaxed))
			ok = fail(scan, "log: stopped while it was read");
		if (!ok) {
			if (i + 1 < scan->len && result >= 0 && file_read_end(disk, &ahead) >= 0)
				file_read_drop(disk, &ahead);
			return false;
		}
		scan_drain(scan->rc);
	}
	return true;
}

bool recover_scan(struct recover *rc, char *err, size_t err_len)
{
	struct scan scan = {.rc = rc, .err = err, .err_len = err_len};
	void *block;
	if (posix_memalign(&block, FORMAT_ALIGN, FORMAT_ALIGN) != 0)
		return fail(&scan, "log: no memory");
	scan.block = block;
	bool ok = scan_list(&scan) && scan_covers(&scan) && scan_remove_hidden(&scan);
	if (ok)
		scan_mark(&scan);
	ok = ok && scan_segments(&scan) && scan_remove_empty(&scan);
	rc->start = scan.last_start + 1;
	scan_free(&scan);
	free(block);
	return ok;
}
