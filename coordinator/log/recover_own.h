/*
 * recover_own.h - what the files of the scan share: recover.c (begin, end, the way through all segments), recover_files.c (which segments there are and
 * in which order they count), recover_segment.c (what one of them holds). The records are given away by recover_shard.c.
 */
#ifndef MUSTER_LOG_RECOVER_OWN_H
#define MUSTER_LOG_RECOVER_OWN_H

#include "muster/base.h"

#include "coordinator/log/covers.h"
#include "coordinator/log/file.h"
#include "coordinator/log/recover.h"

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

PRINTF_LIKE(2, 3) void recover_say(const struct recover *rc, const char *format, ...);
/* Both write the scan's error and return false. */
PRINTF_LIKE(2, 3) bool recover_fail(struct scan *scan, const char *format, ...);
bool recover_failed_op(struct scan *scan, const char *name, int64_t result);

/* ---- recover_files.c; those that return a bool: false is an error of the scan ---- */

/* Fills scan->files in no order, removes unfinished files. */
bool recover_list(struct scan *scan);
void recover_list_free(struct scan *scan);
/* What cleaned files stand for becomes known, and in which order all are read. */
bool recover_covers(struct scan *scan);
bool recover_remove_hidden(struct scan *scan);
/* Says which file is the tail of its worker. The one behind it may have been made in advance. */
void recover_mark(struct scan *scan);
/* Is a segment missing in front of file i? */
bool recover_gap(struct scan *scan, size_t i);
bool recover_remove_empty(struct scan *scan);

/* ---- recover_segment.c ---- */

/* Consumes the image. */
bool recover_segment(struct scan *scan, struct segment_file *f, struct file_read *read);

#endif
