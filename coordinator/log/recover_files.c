/*
 * recover_files.c - which segments there are: listed, put in order by what they stand for, those that do not count any more removed, missing ones noticed.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/log/mend.h"
#include "coordinator/log/recover_own.h"
#include "coordinator/log/segment.h"

#define MISSING_MAX 4096 /* segments in a row that are mended */

static int file_order(const void *x, const void *y)
{
	return cover_order(&((const struct segment_file *)x)->cover, &((const struct segment_file *)y)->cover);
}

static bool is_unfinished(const char *name)
{
	size_t len = strlen(name), tail = strlen(FORMAT_NEW);
	return len > tail && strcmp(name + len - tail, FORMAT_NEW) == 0;
}

bool recover_list(struct scan *scan)
{
	struct disk *disk = scan->rc->disk;
	struct disk_op list = {.verb = DISK_LIST};
	int64_t result = disk_do(disk, &list);
	if (result < 0)
		return recover_failed_op(scan, "cannot be listed", result);
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
	return scan->files != NULL || recover_fail(scan, "log: no memory");
}

void recover_list_free(struct scan *scan)
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
		return recover_failed_op(scan, name, result);
	if (!rc->skip_damaged)
		return recover_fail(scan, "log: %s: its first blocks are not good or belong to another log; --recover=skip-damaged starts without it", name);
	recover_say(rc, "log: %s: LOST: its first blocks are not good or belong to another log", name);
	rc->lost_blocks++;
	rc->holes++;
	snprintf(aside, sizeof(aside), "%s.damaged", name);
	result = file_rename(rc->disk, name, aside);
	if (result < 0)
		return recover_failed_op(scan, name, result);
	drop_file(scan, i);
	return true;
}

bool recover_covers(struct scan *scan)
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
	return ok || recover_fail(scan, "log: no memory");
}

/*
 * Removes what does not count any more. Before that, the names of the files that took its place are made durable: a killed program may have given
 * them without that.
 */
bool recover_remove_hidden(struct scan *scan)
{
	struct disk *disk = scan->rc->disk;
	for (size_t i = 0; i < scan->len; i++) {
		const struct segment_file *f = &scan->files[i];
		int64_t result = f->cover.makes_hidden ? file_rename(disk, f->name, f->name) : 0;
		if (result < 0)
			return recover_failed_op(scan, f->name, result);
	}
	for (size_t i = scan->len; i-- > 0;) {
		if (!cover_gone(&scan->files[i].cover, scan->rc->shards))
			continue;
		int64_t result = file_remove(disk, scan->files[i].name);
		if (result < 0)
			return recover_failed_op(scan, scan->files[i].name, result);
		drop_file(scan, i);
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

void recover_mark(struct scan *scan)
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

bool recover_gap(struct scan *scan, size_t i)
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
		return recover_fail(scan, "log: between %s and %s a segment is missing; --recover=skip-damaged starts without it", name, f->name);
	rc->lost_blocks++;
	rc->holes++;
	recover_say(rc, "log: LOST: what stood between %s and %s", name, f->name);
	struct block_id id = {.shards = rc->shards, .start = first->start, .worker = first->worker, .number = before.number};
	memcpy(id.log, rc->log, sizeof(id.log));
	for (int n = 0; n < MISSING_MAX && ++id.number < first->number; n++) {
		int64_t result = mend_segment(rc->disk, &id, false);
		if (result < 0)
			return recover_failed_op(scan, f->name, result);
	}
	return true;
}

/* From the last one: a cut on the way must not look as if one were missing in between. */
bool recover_remove_empty(struct scan *scan)
{
	for (size_t i = scan->len; i-- > 0;) {
		const struct segment_file *f = &scan->files[i];
		int64_t result = f->empty ? file_remove(scan->rc->disk, f->name) : 0;
		if (result < 0)
			return recover_failed_op(scan, f->name, result);
	}
	return true;
}
