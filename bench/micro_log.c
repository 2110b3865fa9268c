/*
 * micro_log.c - what durability costs: a lone commit through the log against the bare device, turn by turn, then commits under load.
 *
 *   micro_log [COMMITS [FOLDER [io_uring]]]       without FOLDER, one of its own that is gone at the end
 *
 * Figures only, nothing is judged: they are those of the disk.
 */
#define _GNU_SOURCE /* O_DIRECT, RWF_DSYNC */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "muster/check.h"

#include "coordinator/log/store.h"

#define SHARDS 50
#define LOAD_US 1000000

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

static void lone_commits(struct log *log, int fd, unsigned int n)
{
	uint64_t *bare = calloc(n, sizeof(*bare)), *ours = calloc(n, sizeof(*ours));
	void *block = NULL;
	CHECK(bare != NULL && ours != NULL && posix_memalign(&block, FORMAT_ALIGN, FORMAT_ALIGN) == 0);
	memset(block, 1, FORMAT_ALIGN);
	struct iovec part = {block, FORMAT_ALIGN};
	for (unsigned int i = 0; i < n; i++) {
		uint64_t start = now_ns();
		CHECK(pwritev2(fd, &part, 1, (off_t)i * FORMAT_ALIGN, RWF_DSYNC) == FORMAT_ALIGN);
		bare[i] = now_ns() - start;
		start = now_ns();
		settle(log, commit(log, i));
		ours[i] = now_ns() - start;
	}
	show("the bare device, 4 KiB, flushed", bare, n);
	show("a lone commit until it is durable", ours, n);
	free(bare);
	free(ours);
	free(block);
}

static void load(struct log *log)
{
	uint64_t taken = 0, refused = 0, last = 0, start = now_read().us;
	struct log_disk_status before, after;
	log_disk_status(log, &before);
	while (now_read().us - start < LOAD_US) {
		for (unsigned int i = 0; i < 32; i++) {
			uint64_t position = commit(log, i);
			last = position != 0 ? position : last;
			taken += position != 0;
			refused += position == 0;
		}
		log_poll(log, now_read());
	}
	settle(log, last);
	log_disk_status(log, &after);
	printf("under load: %" PRIu64 " durable commits/s, %" PRIu64 " commits per flush, %" PRIu64 " refused\n",
	       taken * 1000000 / (now_read().us - start), taken / (after.flushes - before.flushes), refused);
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
	int fd = open(path, O_RDWR | O_CREAT | O_DIRECT, 0600);
	if (fd < 0)
		fd = open(path, O_RDWR | O_CREAT, 0600);
	CHECK(fd >= 0);
	char line[400];
	store_describe(store, line, sizeof(line));
	puts(line);
	store_describe_load(store, line, sizeof(line));
	puts(line);
	lone_commits(store_log(store, 0), fd, n);
	load(store_log(store, 0));
	close(fd);
	store_free(store);
	if (name == folder)
		remove_all(folder);
	return 0;
}
