/*
 * restart.c - how long a restart takes: writes a log of many groups, then loads it as the program does (loader.h), into real shards.
 *
 *   restart [--folder F] [--groups N] [--members N] [--partitions N] [--threads N] [--repeat N] [--one-record] [--keep]
 *
 * Each group has so many members and has committed so many partitions of one topic, in one batch or (--one-record) each by itself. Without --folder one
 * is made in /dev/shm, so that the disk does not count; in a folder of a disk drop the page cache before a run with --keep to see what reading costs.
 * `scan` is reading and checking, on one thread with the next file being read meanwhile; `fill` is the records into the shards and the members'
 * sessions, on all threads. CPU time is that of all threads and of the kernel for them; beside other work only it means something.
 */
#include <getopt.h>
#include <inttypes.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "muster/check.h"

#include "coordinator/group/record.h"
#include "coordinator/loader.h"

#define SHARDS 50u
#define TEXT 96
#define GROUP_ROOM(members) ((members) * 400u + 1000u)

struct restart {
	const char *folder;
	unsigned int groups, members, partitions, threads, repeat;
	bool one_record, keep, made;
	struct store *store;
	struct shard *shards[SHARDS];
	struct stats *stats;
	struct loader *loader;
	sem_t done;
	_Atomic uint64_t first_ns; /* the first hand-over */
	uint64_t end_ns;
};

static const struct group_settings settings = {.group_min_session_timeout_ms = 6000,
					 .group_max_session_timeout_ms = 1800000,
					 .group_max_size = INT32_MAX,
					 .offset_metadata_max_bytes = 4096,
					 .journal_events = 32};

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
	fprintf(stderr, "%s\n", line);
}

static bool nothing(void *arg, unsigned int shard, const struct log_entry *entry)
{
	return true;
}

static struct store *open_store(const struct restart *b, uint64_t keep_bytes)
{
	char err[400];
	struct store_config cfg = {.folder = b->folder, .flush = LOG_FLUSH_WRITTEN, .workers = 1, .shards = SHARDS, .segment_bytes = 64 << 20,
				   .total_bytes = 1ull << 38, .keep_bytes = keep_bytes, .random = {1, 2, 3}, .say = say};
	struct store *s = store_new(&cfg, err, sizeof(err));
	if (s == NULL) {
		fprintf(stderr, "restart: %s\n", err);
		exit(1);
	}
	return s;
}

/* ---- writing ---- */

static void append(struct log *log, unsigned int shard, struct log_entry *entries, unsigned int n)
{
	int16_t error;
	while (log_append(log, shard, entries, n, &error, now_read()) == 0) {
		CHECK(error == 19);
		log_poll(log, now_read());
		usleep(50); /* the next segment is being made */
	}
	log_poll(log, now_read());
}

static void write_members(const struct restart *b, struct writer *w, unsigned int g)
{
	char id[TEXT];
	static const uint8_t subscription[26] = {0, 1, 0, 0, 0, 1, 0, 5, 't', 'o', 'p', 'i', 'c'}, assignment[60] = {0, 1};
	for (unsigned int i = 0; i < b->members; i++) {
		snprintf(id, sizeof(id), "consumer-%05u-%02u-8b1f3f0e-9d57-4a3b-9c33-0123456789ab", g, i);
		struct record_member m = {bytes_str(id), BYTES_NULL, BYTES_LITERAL("consumer-client"), BYTES_LITERAL("/10.77.0.1"), 300000, 45000,
					  bytes_of(subscription, sizeof(subscription)), bytes_of(assignment, sizeof(assignment))};
		record_group_member(w, &m);
	}
}

static void write_group(const struct restart *b, struct log *log, unsigned int g, uint8_t *room, struct log_entry *entries)
{
	char name[TEXT], leader[TEXT];
	snprintf(name, sizeof(name), "group-%06u", g);
	snprintf(leader, sizeof(leader), "consumer-%05u-%02u-8b1f3f0e-9d57-4a3b-9c33-0123456789ab", g, 0);
	struct writer w = writer_of(room, GROUP_ROOM(b->members) + b->partitions * 100u);
	struct record_group head = {BYTES_LITERAL("consumer"), 7, BYTES_LITERAL("range"), bytes_str(leader), 1700000000000, (int32_t)b->members};
	record_group_key(&w, bytes_str(name));
	size_t key = writer_len(&w);
	record_group_value(&w, &head);
	write_members(b, &w, g);
	entries[0] = (struct log_entry){bytes_of(room, key), bytes_of(room + key, writer_len(&w) - key)};
	append(log, g % SHARDS, entries, 1);
	struct record_offset v = {1000000 + g, 5, BYTES_EMPTY, 1700000000000, RECORD_NO_EXPIRY};
	for (unsigned int i = 0; i < b->partitions; i++) {
		uint8_t *at = w.p;
		record_offset_key(&w, bytes_str(name), BYTES_LITERAL("topic"), (int32_t)i);
		uint8_t *value = w.p;
		record_offset_value(&w, &v);
		entries[i] = (struct log_entry){bytes_of(at, (size_t)(value - at)), bytes_of(value, (size_t)(w.p - value))};
	}
	CHECK(!w.full);
	for (unsigned int i = 0; b->one_record && i < b->partitions; i++)
		append(log, g % SHARDS, &entries[i], 1);
	if (!b->one_record && b->partitions > 0)
		append(log, g % SHARDS, entries, b->partitions);
}

static void write_log(const struct restart *b)
{
	char err[400];
	struct store *s = open_store(b, 0);
	uint8_t *room = malloc(GROUP_ROOM(b->members) + b->partitions * 100u);
	struct log_entry *entries = calloc(b->partitions + 1, sizeof(*entries));
	CHECK(room != NULL && entries != NULL);
	if (!store_load(s, nothing, NULL, err, sizeof(err))) {
		fprintf(stderr, "restart: %s\n", err);
		exit(1);
	}
	for (unsigned int g = 0; g < b->groups; g++)
		write_group(b, store_log(s, 0), g, room, entries);
	free(room);
	free(entries);
	store_free(s);
}

/* ---- loading ---- */

static struct shard *give_shard(void *arg, unsigned int number)
{
	const struct restart *b = arg;
	return b->shards[number];
}

static _Atomic uint64_t *first_hand_over; /* the loader asks for the time when it hands a shard over */

static struct now clock_of_loader(void)
{
	uint64_t none = 0;
	atomic_compare_exchange_strong(first_hand_over, &none, now_ns());
	return now_read();
}

static void done(void *arg, const char *err)
{
	struct restart *b = arg;
	b->end_ns = now_ns();
	if (err != NULL) {
		fprintf(stderr, "restart: %s\n", err);
		exit(1);
	}
	sem_post(&b->done);
}

static uint64_t total(const struct stats *stats, size_t offset)
{
	uint64_t n = 0;
	for (unsigned int i = 0; i < SHARDS; i++)
		n += *(const uint64_t *)((const char *)&stats[i] + offset);
	return n;
}

/* CPU time of all threads so far, seconds. */
static double cpu_s(void)
{
	struct rusage u;
	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static void load(struct restart *b)
{
	double cpu = cpu_s();
	const uint64_t random[2] = {1, 2};
	struct log *none = log_memory_new();
	char line[300];
	uint64_t start = now_ns();
	b->store = open_store(b, (uint64_t)1 << 30);
	b->loader = loader_new();
	struct loader_config cfg = {b->store, SHARDS, b->threads, give_shard, clock_of_loader, done, b};
	CHECK(none != NULL && b->loader != NULL);
	for (unsigned int i = 0; i < SHARDS; i++)
		CHECK((b->shards[i] = shard_new(i, none, &settings, NULL, random, now_read())) != NULL);
	CHECK(loader_begin(b->loader, &cfg));
	b->first_ns = 0;
	first_hand_over = &b->first_ns;
	b->stats = loader_stats(b->loader);
	for (unsigned int i = 0; i < SHARDS; i++)
		shard_load_begin(b->shards[i], &b->stats[i]);
	loader_go(b->loader);
	sem_wait(&b->done);
	cpu = cpu_s() - cpu;
	uint64_t took = b->end_ns - start, records = (uint64_t)b->groups * (1 + b->partitions);
	store_describe_load(b->store, line, sizeof(line));
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	printf("%s\n%" PRIu64 " groups, %" PRIu64 " members, %" PRIu64 " offsets: %.3f s with %u threads, first shard after %.3f s; %.3f s of CPU, "
	       "%.2f M records/s of CPU; %ld MiB at most\n",
	       line, total(b->stats, offsetof(struct stats, group_groups_now)), total(b->stats, offsetof(struct stats, group_members_now)),
	       (uint64_t)b->groups * b->partitions, (double)took / 1e9, b->threads, (double)(b->first_ns - start) / 1e9, cpu, (double)records / 1e6 / cpu,
	       usage.ru_maxrss / 1024);
	for (unsigned int i = 0; i < SHARDS; i++)
		shard_free(b->shards[i]);
	loader_free(b->loader);
	store_free(b->store);
	log_free(none);
}

static void options(struct restart *b, int argc, char **argv)
{
	static const struct option list[] = {{"folder", 1, NULL, 'f'}, {"groups", 1, NULL, 'g'},     {"members", 1, NULL, 'm'}, {"partitions", 1, NULL, 'p'},
					     {"threads", 1, NULL, 't'}, {"repeat", 1, NULL, 'r'},     {"one-record", 0, NULL, 'o'}, {"keep", 0, NULL, 'k'},
					     {NULL, 0, NULL, 0}};
	for (int c; (c = getopt_long(argc, argv, "", list, NULL)) != -1;) {
		unsigned int n = optarg == NULL ? 0 : (unsigned int)strtoul(optarg, NULL, 10);
		switch (c) {
		case 'f': b->folder = optarg; break;
		case 'g': b->groups = n; break;
		case 'm': b->members = n; break;
		case 'p': b->partitions = n; break;
		case 't': b->threads = n; break;
		case 'r': b->repeat = n; break;
		case 'o': b->one_record = true; break;
		case 'k': b->keep = true; break;
		default: exit(2);
		}
	}
}

int main(int argc, char **argv)
{
	char made[] = "/dev/shm/muster-restart.XXXXXX", command[300];
	struct restart b = {.groups = 100000, .members = 10, .partitions = 100, .threads = 2, .repeat = 3};
	options(&b, argc, argv);
	if (b.folder == NULL) {
		b.folder = mkdtemp(made);
		b.made = true;
	}
	if (b.folder == NULL || b.threads == 0 || b.groups == 0)
		return 2;
	sem_init(&b.done, 0, 0);
	if (!b.keep || access(b.folder, F_OK) != 0)
		write_log(&b);
	for (unsigned int i = 0; i < b.repeat; i++)
		load(&b);
	snprintf(command, sizeof(command), "rm -r %s", b.folder);
	return b.made && system(command) != 0;
}
