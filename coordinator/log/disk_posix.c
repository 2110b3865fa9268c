/*
 * disk_posix.c - the disk through plain system calls, made by helper threads, so that the worker never waits in one: one for what is waited for, one
 * for the background.
 *
 * Stacks of operations, pushed one by one and taken whole by one exchange: `asked` (worker to helper, each has one) and `answered`
 * (helpers to worker). A helper sleeps on a semaphore while nothing is asked; the worker is woken by an eventfd if it has one (disk_set_wake), and polls.
 * Taken stacks are turned round, so operations run in the order of their submission.
 *
 * A completion seen by the worker happens after the helper's system call (release and acquire on the stacks); no other state is shared.
 */
#define _GNU_SOURCE /* O_DIRECT, fallocate, pwritev2 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "muster/check.h"

#include "coordinator/log/disk.h"

#define WAIT_NS 50000 /* between two looks of a waiting poll */

struct disk_posix;

struct helper {
	struct disk_posix *d;
	pthread_t thread;
	sem_t work; /* posted for each operation asked */
	_Atomic(struct disk_op *) asked;
	bool runs;
};

struct disk_posix {
	struct disk disk;
	int folder;
	bool cached;
	struct helper helpers[2]; /* by disk_op.background */
	atomic_bool stop;
	_Atomic(struct disk_op *) answered;
	atomic_int wake; /* eventfd, or -1 */
	unsigned int pending; /* the worker's count */
};

static struct disk_posix *disk_posix_of(struct disk *disk)
{
	return CONTAINER_OF(disk, struct disk_posix, disk);
}

/* ---- stacks ---- */

static void stack_push(_Atomic(struct disk_op *) *stack, struct disk_op *op)
{
	struct disk_op *top = atomic_load_explicit(stack, memory_order_relaxed);
	do
		op->next = top;
	while (!atomic_compare_exchange_weak_explicit(stack, &top, op, memory_order_release, memory_order_relaxed));
}

/* Oldest first. */
static struct disk_op *stack_take(_Atomic(struct disk_op *) *stack)
{
	struct disk_op *op = atomic_exchange_explicit(stack, NULL, memory_order_acquire), *turned = NULL;
	while (op != NULL) {
		struct disk_op *next = op->next;
		op->next = turned;
		turned = op;
		op = next;
	}
	return turned;
}

/* ---- system calls, on the helper ---- */

static int64_t posix_open(const struct disk_posix *d, const char *name, int flags)
{
	int fd = d->cached ? -1 : openat(d->folder, name, flags | O_DIRECT | O_CLOEXEC, 0640);
	if (fd < 0 && (d->cached || errno == EINVAL))
		fd = openat(d->folder, name, flags | O_CLOEXEC, 0640);
	return fd < 0 ? -errno : fd;
}

static int64_t posix_create(const struct disk_posix *d, struct disk_op *op)
{
	int64_t fd = posix_open(d, op->name, O_RDWR | O_CREAT | O_TRUNC);
	if (fd < 0)
		return fd;
	int error = fallocate((int)fd, 0, 0, (off_t)op->len) == 0 ? 0 : errno;
	if (error == EOPNOTSUPP || error == ENOSYS)
		error = ftruncate((int)fd, (off_t)op->len) == 0 ? 0 : errno;
	if (error != 0) {
		close((int)fd);
		unlinkat(d->folder, op->name, 0);
		return -error;
	}
	op->file = (int)fd;
	return 0;
}

static int64_t posix_open_old(const struct disk_posix *d, struct disk_op *op)
{
	struct stat st;
	int64_t fd = posix_open(d, op->name, O_RDWR);
	if (fd < 0)
		return fd;
	if (fstat((int)fd, &st) != 0) {
		int error = errno;
		close((int)fd);
		return -error;
	}
	op->file = (int)fd;
	op->len = (size_t)st.st_size;
	return 0;
}

static int64_t posix_read(struct disk_op *op)
{
	size_t got = 0;
	while (got < op->len) {
		ssize_t n = pread(op->file, op->buf + got, op->len - got, (off_t)(op->offset + got));
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 0)
			break;
		got += n > 0 ? (size_t)n : 0;
	}
	return (int64_t)got;
}

static int64_t posix_write(struct disk_op *op)
{
	size_t put = 0;
	while (put < op->len) {
		struct iovec part = {op->buf + put, op->len - put};
		ssize_t n = pwritev2(op->file, &part, 1, (off_t)(op->offset + put), op->verb == DISK_WRITE_DURABLE ? RWF_DSYNC : 0);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 0)
			return -EIO;
		put += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

static int64_t posix_sync_folder(const struct disk_posix *d, int result)
{
	return result != 0 || fsync(d->folder) != 0 ? -errno : 0;
}

static int64_t posix_space(const struct disk_posix *d)
{
	struct statvfs fs;
	if (fstatvfs(d->folder, &fs) != 0)
		return -errno;
	return (int64_t)(fs.f_bavail < INT64_MAX / fs.f_frsize ? fs.f_bavail * fs.f_frsize : INT64_MAX);
}

static int64_t posix_list(const struct disk_posix *d, struct disk_op *op)
{
	int fd = openat(d->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	if (dir == NULL)
		return -errno;
	uint8_t *names = NULL;
	size_t len = 0;
	for (struct dirent *e; (e = readdir(dir)) != NULL;) {
		size_t n = strlen(e->d_name) + 1;
		if (e->d_name[0] == '.' || n > FORMAT_NAME_MAX)
			continue;
		uint8_t *grown = realloc(names, len + n);
		if (grown == NULL) {
			free(names);
			closedir(dir);
			return -ENOMEM;
		}
		names = grown;
		memcpy(names + len, e->d_name, n);
		len += n;
	}
	closedir(dir);
	op->buf = names;
	op->len = len;
	return 0;
}

static int64_t posix_run(const struct disk_posix *d, struct disk_op *op)
{
	switch (op->verb) {
	case DISK_CREATE:
		return posix_create(d, op);
	case DISK_OPEN:
		return posix_open_old(d, op);
	case DISK_READ:
		return posix_read(op);
	case DISK_WRITE:
	case DISK_WRITE_DURABLE:
		return posix_write(op);
	case DISK_FLUSH:
		return fdatasync(op->file) == 0 ? 0 : -errno;
	case DISK_TRIM:
		return ftruncate(op->file, (off_t)op->offset) == 0 ? 0 : -errno;
	case DISK_CLOSE:
		return close(op->file) == 0 ? 0 : -errno;
	case DISK_RENAME:
		return posix_sync_folder(d, renameat(d->folder, op->name, d->folder, op->to));
	case DISK_REMOVE:
		return posix_sync_folder(d, unlinkat(d->folder, op->name, 0));
	case DISK_SPACE:
		return posix_space(d);
	case DISK_LIST:
		return posix_list(d, op);
	}
	return -EINVAL;
}

static void *posix_helper(void *arg)
{
	struct helper *h = arg;
	sigset_t all;
	sigfillset(&all); /* the process's signals are for the threads that ask for them */
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	while (!atomic_load(&h->d->stop)) {
		while (sem_wait(&h->work) != 0)
			;
		for (struct disk_op *op = stack_take(&h->asked); op != NULL;) {
			struct disk_op *next = op->next;
			op->result = posix_run(h->d, op);
			stack_push(&h->d->answered, op);
			int wake = atomic_load_explicit(&h->d->wake, memory_order_relaxed);
			if (wake >= 0)
				eventfd_write(wake, 1); /* cannot fail before 2^64 of them are unread */
			op = next;
		}
	}
	return NULL;
}

static bool helper_start(struct helper *h, struct disk_posix *d)
{
	h->d = d;
	sem_init(&h->work, 0, 0);
	h->runs = pthread_create(&h->thread, NULL, posix_helper, h) == 0;
	return h->runs;
}

/* After stop is set. */
static void helper_stop(struct helper *h)
{
	if (!h->runs)
		return;
	sem_post(&h->work);
	pthread_join(h->thread, NULL);
	sem_destroy(&h->work);
}

/* ---- the worker's side ---- */

static void disk_posix_submit(struct disk *disk, struct disk_op *op)
{
	struct disk_posix *d = disk_posix_of(disk);
	struct helper *h = &d->helpers[op->background];
	d->pending++;
	stack_push(&h->asked, op);
	sem_post(&h->work);
}

static void disk_posix_poll(struct disk *disk, bool wait)
{
	struct disk_posix *d = disk_posix_of(disk);
	if (d->pending == 0)
		return;
	while (atomic_load_explicit(&d->answered, memory_order_relaxed) == NULL) {
		if (!wait)
			return;
		nanosleep(&(struct timespec){.tv_nsec = WAIT_NS}, NULL);
	}
	for (struct disk_op *op = stack_take(&d->answered); op != NULL;) {
		struct disk_op *next = op->next;
		d->pending--;
		disk_complete(op);
		op = next;
	}
}

static void disk_posix_free(struct disk *disk)
{
	struct disk_posix *d = disk_posix_of(disk);
	CHECK(d->pending == 0);
	atomic_store(&d->stop, true);
	for (unsigned int i = 0; i < ARRAY_LEN(d->helpers); i++)
		helper_stop(&d->helpers[i]);
	close(d->folder);
	free(d);
}

static bool disk_posix_wake(struct disk *disk, int eventfd)
{
	atomic_store(&disk_posix_of(disk)->wake, eventfd);
	return true;
}

static const struct disk_ops disk_posix_ops = {disk_posix_submit, disk_posix_poll, disk_posix_free, "posix", disk_posix_wake};

/* Consumes the folder's descriptor. NULL: err says why. */
static struct disk *posix_start(int folder, bool cached, char *err, size_t err_len)
{
	struct disk_posix *d = calloc(1, sizeof(*d));
	snprintf(err, err_len, d == NULL ? "no memory" : "no thread for the disk");
	if (d != NULL) {
		d->disk.ops = &disk_posix_ops;
		d->cached = cached;
		d->folder = folder;
		atomic_init(&d->wake, -1);
		if (helper_start(&d->helpers[0], d) && helper_start(&d->helpers[1], d))
			return &d->disk;
		atomic_store(&d->stop, true);
		helper_stop(&d->helpers[0]);
	}
	free(d);
	close(folder);
	return NULL;
}

struct disk *disk_posix_new(const char *folder, bool cached, char *err, size_t err_len)
{
	bool made = mkdir(folder, 0750) == 0 || errno == EEXIST;
	int fd = made ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
		return posix_start(fd, cached, err, err_len);
	snprintf(err, err_len, "%s: %s", folder, fd >= 0 && errno == EWOULDBLOCK ? "another program uses this log" : strerror(errno));
	if (fd >= 0)
		close(fd);
	return NULL;
}

/* The lock belongs to the open folder, which a copy of its descriptor shares. */
struct disk *disk_posix_more(struct disk *first, char *err, size_t err_len)
{
	const struct disk_posix *d = disk_posix_of(first);
	int fd = fcntl(d->folder, F_DUPFD_CLOEXEC, 0);
	if (fd >= 0)
		return posix_start(fd, d->cached, err, err_len);
	snprintf(err, err_len, "%s", strerror(errno));
	return NULL;
}
