/*
 * file.c - see file.h.
 */
#define _GNU_SOURCE /* madvise */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "muster/check.h"

#include "coordinator/log/file.h"

#define HUGE_PAGE ((size_t)2 << 20)

static struct disk_op op_named(enum disk_verb verb, const char *name)
{
	struct disk_op op = {.verb = verb};
	CHECK(strlen(name) < sizeof(op.name));
	snprintf(op.name, sizeof(op.name), "%s", name);
	return op;
}

int64_t file_close(struct disk *disk, int file)
{
	struct disk_op op = {.verb = DISK_CLOSE, .file = file};
	return disk_do(disk, &op);
}

int64_t file_read_begin(struct disk *disk, const char *name, struct file_read *r)
{
	struct disk_op open = op_named(DISK_OPEN, name);
	int64_t result = disk_do(disk, &open);
	if (result < 0)
		return result;
	void *p;
	size_t room = (open.len + FORMAT_ALIGN - 1) & ~(size_t)(FORMAT_ALIGN - 1);
	if (posix_memalign(&p, room < HUGE_PAGE ? FORMAT_ALIGN : HUGE_PAGE, room == 0 ? FORMAT_ALIGN : room) != 0) {
		file_close(disk, open.file);
		return -ENOMEM;
	}
	if (room >= HUGE_PAGE)
		madvise(p, room, MADV_HUGEPAGE); /* a few large page faults instead of thousands of small ones, where the kernel will */
	*r = (struct file_read){.op = {.verb = DISK_READ, .file = open.file, .buf = p, .len = room}, .file = open.file, .p = p};
	disk_submit(disk, &r->op);
	return 0;
}

int64_t file_read_end(struct disk *disk, struct file_read *r)
{
	while (r->op.pending)
		disk_wait(disk);
	if (r->op.result >= 0) {
		r->len = (size_t)r->op.result;
		return 0;
	}
	free(r->p);
	file_close(disk, r->file);
	return r->op.result;
}

int64_t file_read(struct disk *disk, const char *name, struct file_read *r)
{
	int64_t result = file_read_begin(disk, name, r);
	return result < 0 ? result : file_read_end(disk, r);
}

void file_read_drop(struct disk *disk, struct file_read *r)
{
	free(r->p);
	file_close(disk, r->file);
}

int64_t file_write(struct disk *disk, int file, uint64_t at, uint8_t *p, size_t len)
{
	struct disk_op op = {.verb = DISK_WRITE_DURABLE, .file = file, .offset = at, .buf = p, .len = len};
	return disk_do(disk, &op);
}

int64_t file_rename(struct disk *disk, const char *name, const char *to)
{
	struct disk_op op = op_named(DISK_RENAME, name);
	CHECK(strlen(to) < sizeof(op.to));
	snprintf(op.to, sizeof(op.to), "%s", to);
	return disk_do(disk, &op);
}

int64_t file_remove(struct disk *disk, const char *name)
{
	struct disk_op op = op_named(DISK_REMOVE, name);
	return disk_do(disk, &op);
}

int64_t file_make(struct disk *disk, const char *name, uint8_t *p, size_t used, size_t len)
{
	char unfinished[FORMAT_NAME_MAX];
	CHECK(snprintf(unfinished, sizeof(unfinished), "%s%s", name, FORMAT_NEW) < (int)sizeof(unfinished));
	struct disk_op make = op_named(DISK_CREATE, unfinished);
	make.len = len;
	int64_t result = disk_do(disk, &make);
	if (result < 0)
		return result;
	result = file_write(disk, make.file, 0, p, used);
	file_close(disk, make.file);
	return result < 0 ? result : file_rename(disk, unfinished, name);
}

bool file_failed(char *err, size_t err_len, const char *name, int64_t result)
{
	snprintf(err, err_len, "log: %s: %s", name, strerror((int)-result));
	return false;
}
