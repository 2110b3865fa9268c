/*
 * recover.c - reads the log; see recover.h and the rules at the end of format.h.
 *
 * While one segment is looked at, the next one is being read.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/log/meta.h"
#include "coordinator/log/recover_own.h"

#define LINE_MAX 300

void recover_say(const struct recover *rc, const char *format, ...)
{
	char line[LINE_MAX];
	va_list ap;
	va_start(ap, format);
	vsnprintf(line, sizeof(line), format, ap);
	va_end(ap);
	if (rc->say != NULL)
		rc->say(rc->arg, line);
}

bool recover_fail(struct scan *scan, const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	vsnprintf(scan->err, scan->err_len, format, ap);
	va_end(ap);
	return false;
}

bool recover_failed_op(struct scan *scan, const char *name, int64_t result)
{
	return file_failed(scan->err, scan->err_len, name, result);
}

/* ---- begin and end ---- */

static bool init_meta(struct recover *rc, const uint8_t id[16], char *err, size_t err_len)
{
	struct scan scan = {.rc = rc, .err = err, .err_len = err_len};
	bool missing;
	if (meta_read(rc->disk, rc->shards, rc->log, &missing, err, err_len))
		return true;
	if (!missing || !recover_list(&scan))
		return false;
	recover_list_free(&scan);
	if (scan.len > 0)
		return recover_fail(&scan, "log: there are segments, but no file named %s", FORMAT_META);
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
			return recover_failed_op(scan, f->name, result);
		now = ahead;
		if (i + 1 < scan->len)
			result = file_read_begin(disk, scan->files[i + 1].name, &ahead);
		bool ok = recover_gap(scan, i);
		if (ok)
			ok = recover_segment(scan, f, &now);
		else
			file_read_drop(disk, &now);
		if (ok && atomic_load_explicit(&scan->rc->stop, memory_order_relaxed))
			ok = recover_fail(scan, "log: stopped while it was read");
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
		return recover_fail(&scan, "log: no memory");
	scan.block = block;
	bool ok = recover_list(&scan) && recover_covers(&scan) && recover_remove_hidden(&scan);
	if (ok)
		recover_mark(&scan);
	ok = ok && scan_segments(&scan) && recover_remove_empty(&scan);
	rc->start = scan.last_start + 1;
	recover_list_free(&scan);
	free(block);
	return ok;
}
