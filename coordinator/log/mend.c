/*
 * mend.c - see mend.h.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "muster/check.h"

#include "coordinator/log/file.h"
#include "coordinator/log/mend.h"

#define DAMAGED ".damaged"

int64_t mend_hole(struct disk *disk, int file, const char *name, const struct segment_reader *r, uint8_t *image, uint64_t blocks, size_t bytes)
{
	char aside[FORMAT_NAME_MAX];
	uint8_t *hole = image + r->at;
	struct block lost = {BLOCK_LOST, r->salt, r->sequence, r->sequence, (uint32_t)(bytes - BLOCK_HEAD)};
	CHECK(bytes % FORMAT_ALIGN == 0 && bytes > 0 && r->at + bytes <= r->len);
	int n = snprintf(aside, sizeof(aside), "%s-%zx" DAMAGED, name, r->at);
	int64_t result = n < (int)sizeof(aside) ? file_make(disk, aside, hole, bytes, bytes) : -ENAMETOOLONG;
	if (result < 0)
		return result;
	memset(hole, 0, bytes);
	struct writer w = writer_of(hole + BLOCK_HEAD, 8);
	writer_u64(&w, blocks);
	block_seal(hole, &lost);
	return file_write(disk, file, r->at, hole, bytes);
}

/* HEAD and END, nothing else. */
static int64_t mend_make_empty(struct disk *disk, const char *name, const struct block_id *id)
{
	void *p;
	uint64_t salt = id->number ^ 0x9e3779b97f4a7c15ull;
	struct block head = {.type = BLOCK_FIRST, .salt = salt, .length = BLOCK_ID_BYTES}, end = {BLOCK_END, salt, 1, 1, 0};
	size_t len = block_bytes(BLOCK_ID_BYTES) + block_bytes(0);
	if (posix_memalign(&p, FORMAT_ALIGN, len) != 0)
		return -ENOMEM;
	uint8_t *b = p;
	block_id_write(b + BLOCK_HEAD, FORMAT_ALIGN - BLOCK_HEAD, id);
	block_seal(b, &head);
	block_seal(b + block_bytes(BLOCK_ID_BYTES), &end);
	int64_t result = file_make(disk, name, b, len, len);
	free(p);
	return result;
}

int64_t mend_segment(struct disk *disk, const struct block_id *id, bool damaged)
{
	char name[FORMAT_NAME_MAX], aside[FORMAT_NAME_MAX];
	segment_name(name, id->start, id->worker, id->number);
	int n = snprintf(aside, sizeof(aside), "%s" DAMAGED, name);
	int64_t result = n < (int)sizeof(aside) ? 0 : -ENAMETOOLONG;
	if (result == 0 && damaged)
		result = file_rename(disk, name, aside);
	return result < 0 ? result : mend_make_empty(disk, name, id);
}
