/*
 * disk.h - the only way to the disk: operations that are submitted and complete later, in one folder.
 *
 * A worker submits an operation and finds it completed in a later disk_poll, which calls `done`. Nothing here blocks the caller, except
 * disk_wait and disk_do, which are for start and end. An operation belongs to the caller and stays where it is until `done`.
 *
 * What a completed operation promises:
 *  WRITE   the bytes are what a READ sees, and what a killed process leaves. A power cut may lose them, or any of their sectors.
 *  WRITE_DURABLE   these bytes, and that the file is as long as it is, survive a power cut. One that fails promises nothing about them, ever: a
 *          second attempt that succeeds proves nothing, for the kernel may have dropped the pages.
 *  FLUSH   the same for every WRITE into the file that had completed when it was submitted, also by an earlier program.
 *  CREATE  a file that is as long as asked for, of zeros, with its space reserved. It is durable after a WRITE_DURABLE into it and a RENAME.
 *  TRIM    only gives back space; it may not have happened after a power cut.
 *  RENAME, REMOVE   survive a power cut. Before they complete, either state may.
 *
 * Operations that are under way at the same time may complete in any order; one in the background never delays the start of another. Buffers, offsets and lengths of WRITE are multiples of FORMAT_ALIGN.
 */
#ifndef MUSTER_LOG_DISK_H
#define MUSTER_LOG_DISK_H

#include "muster/base.h"

#include "coordinator/log/format.h"

enum disk_verb {
	DISK_CREATE, /* name, len -> file */
	DISK_OPEN,   /* name -> file; len: its size */
	DISK_READ,   /* file, offset, len -> buf; result: bytes, fewer at the end of the file */
	DISK_WRITE,  /* file, offset, len, buf: all of it or an error */
	DISK_WRITE_DURABLE, /* the same, and durable */
	DISK_FLUSH,  /* file */
	DISK_TRIM,   /* file, offset: it ends there */
	DISK_CLOSE,  /* file */
	DISK_RENAME, /* name -> to; replaces */
	DISK_REMOVE, /* name */
	DISK_SPACE,  /* result: bytes that are free, as far as that is known */
	DISK_LIST,   /* buf: all names, each ended by a zero byte, len: bytes; the caller frees buf */
};

struct disk_op {
	enum disk_verb verb;
	int file;
	char name[FORMAT_NAME_MAX], to[FORMAT_NAME_MAX];
	uint8_t *buf;
	size_t len;
	uint64_t offset;
	int64_t result; /* 0 or bytes; negative: an errno */
	void (*done)(struct disk_op *op);
	void *arg;
	bool background; /* nobody waits for it: it does not stand in front of those that are waited for */
	bool pending;
	struct disk_op *next; /* of the implementation */
};

struct disk;

struct disk_ops {
	void (*submit)(struct disk *disk, struct disk_op *op);
	/* Calls `done` of what has completed. `wait`: may block until there is something; only while an operation is pending. */
	void (*poll)(struct disk *disk, bool wait);
	/* Nothing may be pending. */
	void (*free)(struct disk *disk);
	const char *name;
	/* Writes to the eventfd when something has completed, from now on; false: it cannot. NULL: never can. Nothing may be pending. */
	bool (*wake)(struct disk *disk, int eventfd);
};

struct disk {
	const struct disk_ops *ops;
	bool wakes; /* a sleeping worker is woken by a completion and need not look on its own */
};

/*
 * A folder of the file system, with two helper threads, one of them for what is in the background; `cached`: through the page cache, otherwise around it where the file system allows that.
 * The folder is made when it is missing, and locked against a second program. NULL: err says why.
 */
struct disk *disk_posix_new(const char *folder, bool cached, char *err, size_t err_len);
/*
 * One more for the same folder and under the same lock, for another worker: with a helper thread of its own. `first` is from disk_posix_new.
 */
struct disk *disk_posix_more(struct disk *first, char *err, size_t err_len);
/* For a disk of either kind. */
struct disk *disk_more(struct disk *first, char *err, size_t err_len);
/* The same with the writes through io_uring where that is allowed, else disk_posix_new. */
struct disk *disk_new(const char *folder, bool cached, char *err, size_t err_len);

static inline void disk_submit(struct disk *disk, struct disk_op *op)
{
	op->pending = true;
	disk->ops->submit(disk, op);
}

/* The worker sleeps on this eventfd. -1: on nothing that the disk knows. */
static inline void disk_set_wake(struct disk *disk, int eventfd)
{
	disk->wakes = disk->ops->wake != NULL && disk->ops->wake(disk, eventfd) && eventfd >= 0;
}

static inline void disk_poll(struct disk *disk)
{
	disk->ops->poll(disk, false);
}

static inline void disk_wait(struct disk *disk)
{
	disk->ops->poll(disk, true);
}

/* Start and end only: submits and waits. Returns the result. */
static inline int64_t disk_do(struct disk *disk, struct disk_op *op)
{
	disk_submit(disk, op);
	while (op->pending)
		disk_wait(disk);
	return op->result;
}

/* For implementations: completes an operation, on the caller's thread. */
static inline void disk_complete(struct disk_op *op)
{
	op->pending = false;
	if (op->done != NULL)
		op->done(op);
}

static inline void disk_free(struct disk *disk)
{
	disk->ops->free(disk);
}

#endif
