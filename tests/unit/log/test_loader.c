/*
 * test_loader.c - shards filled by other threads: all of them, the hot ones first, from more than is kept in memory; refused and stopped loads hand over nothing.
 */
#include <criterion/criterion.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "coordinator/group/record.h"
#include "coordinator/loader.h"

#define SHARDS 8u

struct bench {
	char folder[64];
	struct store_config cfg;
	struct store *store;
	struct shard *shards[SHARDS];
	struct stats stats;
	struct group_settings settings;
	struct log *none;
	struct loader *loader;
	sem_t done;
	char err[400];
	bool failed;
	unsigned int order[SHARDS], order_len; /* as they were handed over, when one thread does that */
};

static struct bench *b;

static void setup(void)
{
	b = calloc(1, sizeof(*b));
	snprintf(b->folder, sizeof(b->folder), "/tmp/muster-test-log-XXXXXX");
	cr_assert(mkdtemp(b->folder) != NULL);
	b->settings = (struct group_settings){6000, 1800000, 0, INT32_MAX, 4096, 4};
	b->none = log_memory_new();
	sem_init(&b->done, 0, 0);
}

static void teardown(void)
{
	char command[100];
	for (unsigned int i = 0; i < SHARDS; i++)
		if (b->shards[i] != NULL)
			shard_free(b->shards[i]);
	if (b->store != NULL)
		store_free(b->store);
	log_free(b->none);
	snprintf(command, sizeof(command), "rm -r %s", b->folder);
	cr_assert_eq(system(command), 0);
	free(b);
}

TestSuite(loader, .init = setup, .fini = teardown);

static void quiet(void *arg, const char *line)
{
}

static bool nothing(void *arg, unsigned int shard, const struct log_entry *entry)
{
	return true;
}

static struct store *open_store(uint64_t keep_bytes, bool load)
{
	b->cfg = (struct store_config){.folder = b->folder, .workers = 1, .shards = SHARDS, .segment_bytes = 1 << 20, .total_bytes = 1 << 30, .keep_bytes = keep_bytes,
				       .say = quiet};
	struct store *s = store_new(&b->cfg, b->err, sizeof(b->err));
	cr_assert(s != NULL, "%s", b->err);
	cr_assert(!load || store_load(s, nothing, NULL, b->err, sizeof(b->err)), "%s", b->err);
	return s;
}

/* One commit of group "g<shard>": partition and offset. */
static void put(struct log *log, unsigned int shard, int32_t partition, int64_t offset)
{
	uint8_t room[200];
	char group[16];
	int16_t error;
	struct record_offset v = {.offset = offset, .leader_epoch = -1, .metadata = BYTES_EMPTY, .commit_ms = 1, .expire_ms = RECORD_NO_EXPIRY};
	struct writer w = writer_of(room, sizeof(room));
	snprintf(group, sizeof(group), "g%u", shard);
	record_offset_key(&w, bytes_str(group), BYTES_LITERAL("topic"), partition);
	size_t key = writer_len(&w);
	record_offset_value(&w, &v);
	struct log_entry e = {bytes_of(room, key), bytes_of(room + key, writer_len(&w) - key)};
	struct now now = {1, 1};
	while (log_append(log, shard, &e, 1, &error, now) == 0) {
		log_poll(log, now);
		now.us += 1000;
		usleep(100);
	}
	log_poll(log, now);
}

/* Shard n gets more commits than shard n - 1, all of them over and over the same partitions. */
static void write_log(void)
{
	struct store *s = open_store(0, true);
	for (int32_t i = 0; i < 3000; i++)
		for (unsigned int shard = 0; shard < SHARDS; shard++)
			if ((unsigned int)i % SHARDS <= shard)
				put(store_log(s, 0), shard, i % 100, i);
	store_free(s);
}

static struct shard *give_shard(void *arg, unsigned int number)
{
	return b->shards[number];
}

static struct now any_time(void)
{
	return (struct now){5, 5};
}

/* Asked for the time of a hand-over: the shards before it are ready by then. */
static struct now note_order(void)
{
	for (unsigned int i = 0; i < SHARDS; i++) {
		bool noted = false;
		for (unsigned int k = 0; k < b->order_len; k++)
			noted |= b->order[k] == i;
		if (!noted && loader_ready(b->loader, i))
			b->order[b->order_len++] = i;
	}
	return any_time();
}

static void done(void *arg, const char *err)
{
	b->failed = err != NULL;
	if (err != NULL)
		snprintf(b->err, sizeof(b->err), "%s", err);
	sem_post(&b->done);
}

static void go(uint64_t keep_bytes, unsigned int threads)
{
	const uint64_t random[2] = {1, 2};
	b->store = open_store(keep_bytes, false);
	b->loader = loader_new();
	struct loader_config cfg = {b->store, SHARDS, threads, give_shard, threads == 1 ? note_order : any_time, done, NULL};
	for (unsigned int i = 0; i < SHARDS; i++)
		b->shards[i] = shard_new(i, b->none, &b->settings, &b->stats, random, (struct now){1, 1});
	cr_assert(b->loader != NULL && loader_begin(b->loader, &cfg));
	for (unsigned int i = 0; i < SHARDS; i++)
		shard_load_begin(b->shards[i], &loader_stats(b->loader)[i]);
	loader_go(b->loader);
}

static void check_filled(void)
{
	for (unsigned int shard = 0; shard < SHARDS; shard++) {
		char group[16];
		struct offset_value v;
		int64_t last[100];
		cr_assert(loader_ready(b->loader, shard));
		shard_load_end(b->shards[shard]);
		snprintf(group, sizeof(group), "g%u", shard);
		memset(last, -1, sizeof(last));
		for (int32_t i = 0; i < 3000; i++)
			if ((unsigned int)i % SHARDS <= shard)
				last[i % 100] = i;
		for (int32_t p = 0; p < 100; p++) {
			bool there = shard_offset_get(b->shards[shard], bytes_str(group), BYTES_LITERAL("topic"), p, &v);
			cr_assert_eq(there, last[p] >= 0);
			cr_assert(!there || v.offset == last[p], "shard %u, partition %d", shard, p);
		}
	}
	cr_assert_eq(b->stats.group_groups_now, SHARDS);
}

static void loads(uint64_t keep_bytes, unsigned int threads)
{
	write_log();
	go(keep_bytes, threads);
	sem_wait(&b->done);
	cr_assert(!b->failed, "%s", b->err);
	check_filled();
	loader_free(b->loader);
}

Test(loader, one_thread_hot_shards_first)
{
	loads(0, 1);
	cr_assert_eq(b->order_len, SHARDS - 1, "the last one's hand-over is followed by no other");
	b->order[SHARDS - 1] = 0;
	for (unsigned int i = 0; i < SHARDS; i++)
		cr_assert_eq(b->order[i], SHARDS - 1 - i, "%u", b->order[i]);
}

Test(loader, several_threads)
{
	loads(0, 3);
}

Test(loader, more_than_is_kept)
{
	loads(1 << 20, 3);
}

Test(loader, more_threads_than_shards)
{
	loads(1 << 21, 20);
}

Test(loader, a_damaged_log_hands_over_nothing)
{
	char path[128];
	write_log();
	snprintf(path, sizeof(path), "%s/00000001-0000-00000001.seg", b->folder);
	FILE *f = fopen(path, "r+");
	cr_assert(f != NULL && fseek(f, 3 * FORMAT_ALIGN + 100, SEEK_SET) == 0 && fputc(0xff, f) == 0xff && fclose(f) == 0);
	go(1 << 20, 2);
	sem_wait(&b->done);
	cr_assert(b->failed);
	cr_assert(strstr(b->err, "was durable and is damaged") != NULL, "%s", b->err);
	for (unsigned int i = 0; i < SHARDS; i++)
		cr_assert(!loader_ready(b->loader, i));
	loader_free(b->loader);
}

/* Ended at any moment, also before it began. */
Test(loader, stopped)
{
	write_log();
	for (unsigned int i = 0; i < 30; i++) {
		go(1 << 20, 2);
		usleep(i * 200);
		loader_free(b->loader);
		for (unsigned int k = 0; k < SHARDS; k++) {
			shard_free(b->shards[k]);
			b->shards[k] = NULL;
		}
		store_free(b->store);
		b->store = NULL;
	}
	loader_free(loader_new());
}
