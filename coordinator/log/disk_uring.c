/*
 * disk_uring.c - the disk with its writes through io_uring, polled from the worker's loop; everything else, which is rare, goes to the helper thread
 * of disk_posix.c.
 *
 * A write is one submission: with RWF_DSYNC for a durable one, so that a device that can writes through instead of flushing. Completions are
 * found in shared memory; a worker that spins enters the kernel once a round while a write is under way.
 */
#include <errno.h>
#include <liburing.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "muster/check.h"

#include "coordinator/log/disk.h"

#define ENTRIES 8     /* the log has at most two writes under way */
#define WAIT_NS 50000 /* between two looks of a waiting poll */

struct disk_uring {
	struct disk disk;
	struct disk *posix;
	struct io_uring ring;
	unsigned int pending; /* in the ring */
};

static struct disk_uring *disk_uring_of(struct disk *disk)
{
	return CONTAINER_OF(disk, struct disk_uring, disk);
}

static bool uring_write(struct disk_uring *d, struct disk_op *op)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&d->ring);
	if (sqe == NULL)
		return false;
	io_uring_prep_write(sqe, op->file, op->buf, (unsigned int)op->len, op->offset);
	sqe->rw_flags = op->verb == DISK_WRITE_DURABLE ? RWF_DSYNC : 0;
	io_uring_sqe_set_data(sqe, op);
	d->pending++;
	io_uring_submit(&d->ring); /* if the kernel cannot take it now, it stays in the ring and poll tries again */
	return true;
}

static void disk_uring_submit(struct disk *disk, struct disk_op *op)
{
	struct disk_uring *d = disk_uring_of(disk);
	if (!op->background && (op->verb == DISK_WRITE || op->verb == DISK_WRITE_DURABLE) && uring_write(d, op))
		return;
	d->posix->ops->submit(d->posix, op);
}

static void uring_complete(struct disk_uring *d, struct io_uring_cqe *cqe)
{
	struct disk_op *op = io_uring_cqe_get_data(cqe);
	int result = cqe->res;
	io_uring_cqe_seen(&d->ring, cqe);
	d->pending--;
	/* a write that was cut short is done again as a whole; one that failed is not */
	if (result >= 0 && (size_t)result < op->len) {
		d->posix->ops->submit(d->posix, op);
		return;
	}
	op->result = result < 0 ? result : 0;
	disk_complete(op);
}

static void disk_uring_poll(struct disk *disk, bool wait)
{
	struct disk_uring *d = disk_uring_of(disk);
	struct io_uring_cqe *cqe;
	if (wait)
		nanosleep(&(struct timespec){.tv_nsec = WAIT_NS}, NULL);
	if (d->pending > 0 && io_uring_sq_ready(&d->ring) > 0)
		io_uring_submit(&d->ring);
	if (d->pending > 0)
		io_uring_get_events(&d->ring); /* the kernel finishes some completions only when their thread enters it */
	while (d->pending > 0 && io_uring_peek_cqe(&d->ring, &cqe) == 0)
		uring_complete(d, cqe);
	d->posix->ops->poll(d->posix, false);
}

static void disk_uring_free(struct disk *disk)
{
	struct disk_uring *d = disk_uring_of(disk);
	CHECK(d->pending == 0);
	io_uring_queue_exit(&d->ring);
	disk_free(d->posix);
	free(d);
}

static bool disk_uring_wake(struct disk *disk, int eventfd)
{
	struct disk_uring *d = disk_uring_of(disk);
	disk_set_wake(d->posix, eventfd);
	return eventfd < 0 ? io_uring_unregister_eventfd(&d->ring) == 0 : io_uring_register_eventfd(&d->ring, eventfd) == 0;
}

static const struct disk_ops disk_uring_ops = {disk_uring_submit, disk_uring_poll, disk_uring_free, "io_uring", disk_uring_wake};

/* Consumes `posix`; with io_uring in front of it if that is to be had. */
static struct disk *uring_over(struct disk *posix)
{
	struct disk_uring *d = posix == NULL ? NULL : calloc(1, sizeof(*d));
	if (d == NULL)
		return posix;
	if (io_uring_queue_init(ENTRIES, &d->ring, 0) != 0) { /* not allowed here, or an old kernel */
		free(d);
		return posix;
	}
	d->disk.ops = &disk_uring_ops;
	d->posix = posix;
	return &d->disk;
}

struct disk *disk_new(const char *folder, bool cached, char *err, size_t err_len)
{
	return uring_over(disk_posix_new(folder, cached, err, err_len));
}

struct disk *disk_more(struct disk *first, char *err, size_t err_len)
{
	if (first->ops != &disk_uring_ops)
		return disk_posix_more(first, err, err_len);
	return uring_over(disk_posix_more(disk_uring_of(first)->posix, err, err_len));
}
