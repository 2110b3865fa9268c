/*
 * micro_log.c - what durability costs: a lone commit through the log against the bare device, then commits under load against what the device does with
 * blocks of the same size. Everything takes turns, for a disk's speed changes from second to second.
 *
 *   micro_log [COMMITS [FOLDER [io_uring]]]       without FOLDER, one of its own that is gone at the end
 *
 * The bare device writes as the log does, one block at a time, aligned, around the page cache, into space that is reserved and not yet written.
 * Figures only, nothing is judged: they are those of the disk.
 */
#define _GNU_SOURCE /* O_DIRECT, RWF_DSYNC, fallocate */
#include <fcntl.h>
#include <inttypes.h>
#include <liburing.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "muster/check.h"

#include "coordinator/log/batch.h"
#include "coordinator/log/block.h"
#include "coordinator/log/store.h"

#define SHARDS 50
#define ROUNDS(commits) ((commits) >= 500 ? 60u : 4u)
#define SLICE_US 10000u /* of each kind of load in a round: short, so that what else uses the disk and the processor disturbs all alike */
#define ROUND_COMMITS 64u /* a worker takes before it polls the log */
#define BARE_BYTES (64u << 20)
#define BARE_BLOCK_MAX (4u << 20)

enum bare_way { BARE_DSYNC, BARE_FDATASYNC, BARE_URING, BARE_WAYS };

static const char *const bare_names[BARE_WAYS] = {"a write that is flushed (RWF_DSYNC)", "a write, then fdatasync", "the same through io_uring"};

struct bare {
	int fd;
	uint8_t *block; /* BARE_BLOCK_MAX bytes */
	uint64_t at;
	struct io_uring ring;
	bool uring; /* allowed here */
};

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static struct now now_read(void)
{
	return (struct now){now_ns() / 1000, 1700000000000};
}

static void say(void *arg, const char *line)
{
	puts(line);
}

static bool nothing(void *arg, unsigned int shard, const struct log_entry *entry)
{
	return true;
}

static int order(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

static void show(const char *what, uint64_t *ns, unsigned int n)
{
	qsort(ns, n, sizeof(*ns), order);
	printf("%-40s p50 %7.1f us  p99 %8.1f us\n", what, (double)ns[n / 2] / 1000, (double)ns[n * 99ull / 100] / 1000);
}

static const uint8_t value[40] = {0, 3};

static uint64_t commit(struct log *log, unsigned int shard)
{
	struct log_entry e = {BYTES_LITERAL("0123456789abcdef"), {value, sizeof(value)}};
	int16_t error;
	return log_append(log, shard % SHARDS, &e, 1, &error, now_read());
}

static void settle(struct log *log, uint64_t position)
{
	while (log_durable(log) < position)
		log_poll(log, now_read());
}

/* ---- the bare device ---- */

/* From here on the file is as a new segment of the log is. */
static void bare_reserve(struct bare *b)
{
	b->at = 0;
	if (ftruncate(b->fd, 0) != 0 || fallocate(b->fd, 0, 0, BARE_BYTES) != 0)
		CHECK(ftruncate(b->fd, BARE_BYTES) == 0);
	CHECK(fsync(b->fd) == 0);
}

static void bare_init(struct bare *b, const char *path)
{
	void *block = NULL;
	*b = (struct bare){.fd = open(path, O_RDWR | O_CREAT | O_DIRECT, 0600)};
	if (b->fd < 0)
		b->fd = open(path, O_RDWR | O_CREAT, 0600);
	CHECK(b->fd >= 0 && posix_memalign(&block, FORMAT_ALIGN, BARE_BLOCK_MAX) == 0);
	b->block = memset(block, 1, BARE_BLOCK_MAX);
	b->uring = io_uring_queue_init(1, &b->ring, 0) == 0;
	bare_reserve(b);
}

static void bare_fini(struct bare *b)
{
	if (b->uring)
		io_uring_queue_exit(&b->ring);
	close(b->fd);
	free(b->block);
}

static void bare_uring(struct bare *b, size_t len)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&b->ring);
	struct io_uring_cqe *cqe;
	io_uring_prep_write(sqe, b->fd, b->block, (unsigned int)len, b->at);
	sqe->rw_flags = RWF_DSYNC;
	CHECK(io_uring_submit_and_wait(&b->ring, 1) == 1 && io_uring_peek_cqe(&b->ring, &cqe) == 0 && cqe->res == (int)len);
	io_uring_cqe_seen(&b->ring, cqe);
}

/* One block, durable; returns its nanoseconds. */
static uint64_t bare_write(struct bare *b, enum bare_way way, size_t len)
{
	struct iovec part = {b->block, len};
	CHECK(len <= BARE_BLOCK_MAX);
	if (b->at + len > BARE_BYTES)
		bare_reserve(b);
	uint64_t start = now_ns();
	if (way == BARE_URING)
		bare_uring(b, len);
	else
		CHECK(pwritev2(b->fd, &part, 1, (off_t)b->at, way == BARE_DSYNC ? RWF_DSYNC : 0) == (ssize_t)len);
	CHECK(way != BARE_FDATASYNC || fdatasync(b->fd) == 0);
	b->at += len;
	return now_ns() - start;
}

/* ---- a lone commit ---- */

static void lone_commits(struct log *log, struct bare *b, unsigned int n)
{
	uint64_t *bare[BARE_WAYS], *ours = calloc(n, sizeof(*ours));
	for (unsigned int way = 0; way < BARE_WAYS; way++)
		CHECK((bare[way] = calloc(n, sizeof(*ours))) != NULL);
	CHECK(ours != NULL);
	for (unsigned int i = 0; i < n; i++) {
		for (unsigned int way = 0; way < BARE_WAYS; way++)
			bare[way][i] = way == BARE_URING && !b->uring ? 0 : bare_write(b, way, FORMAT_ALIGN);
		uint64_t start = now_ns();
		settle(log, commit(log, i));
		ours[i] = now_ns() - start;
	}
	for (unsigned int way = 0; way < BARE_WAYS; way++)
		show(bare_names[way], bare[way], n);
	show("a lone commit until it is durable", ours, n);
	printf("a lone commit takes %+.1f us (p10), %+.1f us (p50) beyond the flush\n", ((double)ours[n / 10] - (double)bare[BARE_DSYNC][n / 10]) / 1000,
	       ((double)ours[n / 2] - (double)bare[BARE_DSYNC][n / 2]) / 1000);
	for (unsigned int way = 0; way < BARE_WAYS; way++)
		free(bare[way]);
	free(ours);
}

/* ---- commits under load ---- */

struct rate {
	uint64_t n, us;
};

static double rate_per_s(const struct rate *r)
{
	return r->us == 0 ? 0 : (double)r->n * 1e6 / (double)r->us;
}

/* `waiting` commits are not durable at any time, as with so many connections. Returns the flushes. */
static uint64_t load_slice(struct log *log, unsigned int waiting, struct rate *commits)
{
	struct log_disk_status before, after;
	uint64_t start = now_read().us, last = log_durable(log), first = last;
	log_disk_status(log, &before);
	while (now_read().us - start < SLICE_US) {
		for (unsigned int i = 0; i < ROUND_COMMITS && last - log_durable(log) < waiting; i++) {
			uint64_t position = commit(log, (unsigned int)last);
			last = position != 0 ? position : last;
		}
		log_poll(log, now_read());
	}
	settle(log, last);
	log_disk_status(log, &after);
	commits->n += last - first;
	commits->us += now_read().us - start;
	return after.flushes - before.flushes;
}

static void bare_slice(struct bare *b, enum bare_way way, size_t len, struct rate *writes)
{
	for (uint64_t ns = 0; ns < SLICE_US * 1000ull; writes->n++) {
		uint64_t took = bare_write(b, way, len);
		ns += took;
		writes->us += took / 1000;
	}
}

static void load(struct log *log, struct bare *b, unsigned int waiting, unsigned int rounds)
{
	struct log_entry e = {BYTES_LITERAL("0123456789abcdef"), {value, sizeof(value)}};
	struct rate commits = {0}, writes[BARE_WAYS] = {0};
	uint64_t flushes = 0;
	size_t len = FORMAT_ALIGN, batch = ENTRY_HEAD + batch_size(&e, 1);
	for (unsigned int round = 0; round < rounds; round++) {
		flushes += load_slice(log, waiting, &commits);
		len = block_bytes((size_t)(commits.n / (flushes > 0 ? flushes : 1)) * batch);
		for (unsigned int way = 0; way < BARE_WAYS; way++)
			if (way != BARE_URING || b->uring)
				bare_slice(b, way, len, &writes[way]);
	}
	double per = (double)commits.n / (double)(flushes > 0 ? flushes : 1), ours = rate_per_s(&commits);
	printf("%5u waiting: %8.0f durable commits/s, %6.1f per flush of %3zu KiB;", waiting, ours, per, len / 1024);
	for (unsigned int way = 0; way < BARE_WAYS; way++)
		if (writes[way].n > 0)
			printf(" %s %.2f", way == BARE_DSYNC ? "of the bare device's: RWF_DSYNC" : way == BARE_FDATASYNC ? "fdatasync" : "io_uring",
			       ours / (rate_per_s(&writes[way]) * per));
	printf("\n");
}

static void remove_all(const char *folder)
{
	char err[300];
	struct disk *disk = disk_posix_new(folder, true, err, sizeof(err));
	struct disk_op list = {.verb = DISK_LIST};
	if (disk == NULL)
		return;
	disk_do(disk, &list);
	for (size_t at = 0; at < list.len;) {
		struct disk_op gone = {.verb = DISK_REMOVE};
		int n = snprintf(gone.name, sizeof(gone.name), "%s", (const char *)list.buf + at);
		disk_do(disk, &gone);
		at += (size_t)n + 1;
	}
	free(list.buf);
	disk_free(disk);
	rmdir(folder);
}

int main(int argc, char **argv)
{
	unsigned int n = argc > 1 ? (unsigned int)strtoul(argv[1], NULL, 10) : 1000;
	char folder[] = "micro_log.XXXXXX", path[300], err[300];
	const char *name = argc > 2 ? argv[2] : mkdtemp(folder);
	struct store_config cfg = {
		.folder = name, .flush = LOG_FLUSH_DURABLE, .workers = 1, .shards = SHARDS, .segment_bytes = 64 << 20, .total_bytes = 1ull << 34, .uring = argc > 3, .say = say};
	struct store *store = name == NULL || n == 0 ? NULL : store_new(&cfg, err, sizeof(err));
	if (store == NULL || !store_load(store, nothing, NULL, err, sizeof(err))) {
		fprintf(stderr, "micro_log: %s\n", name == NULL || n == 0 ? "usage: micro_log [COMMITS [FOLDER [io_uring]]]" : err);
		return 1;
	}
	snprintf(path, sizeof(path), "%s/bare.new", name);
	struct bare bare;
	bare_init(&bare, path);
	char line[400];
	store_describe(store, line, sizeof(line));
	puts(line);
	store_describe_load(store, line, sizeof(line));
	puts(line);
	lone_commits(store_log(store, 0), &bare, n);
	for (unsigned int waiting = 1; waiting <= 4096; waiting *= 16)
		load(store_log(store, 0), &bare, waiting, ROUNDS(n));
	bare_fini(&bare);
	store_free(store);
	if (name == folder)
		remove_all(folder);
	return 0;
}
