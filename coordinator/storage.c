/*
 * storage.c - see storage.h.
 */
#define _GNU_SOURCE /* sched_getaffinity */
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "muster/check.h"

#include "coordinator/loader.h"
#include "coordinator/storage.h"

#define KEEP_BYTES ((uint64_t)1 << 30) /* of the log in memory at once, while it is loaded */
#define THREADS_MAX 64

struct storage {
	const struct config *cfg;
	struct output *out;
	struct log **logs;   /* per worker */
	struct store *store; /* behind them; NULL: they are in memory */
	struct loader *loader;
	struct node **nodes;
	struct now (*clock)(void);
	uint64_t begun_us, took_us; /* of the loading */
	void (*done)(void *arg, const char *err);
	void *arg;
};

static void storage_line(void *arg, const char *line)
{
	struct storage *s = arg;
	output_line(s->out, "muster: %s", line);
}

/* ---- opening ---- */

static bool storage_in_memory(const struct config *cfg)
{
	return cfg->log_dir[0] == '\0' || cfg->log_flush_mode > LOG_FLUSH_WRITTEN;
}

static bool storage_open_store(struct storage *s, char *err, size_t err_len)
{
	const struct config *cfg = s->cfg;
	struct store_config store = {
		.folder = cfg->log_dir,
		.flush = (enum log_flush)cfg->log_flush_mode,
		.workers = (unsigned int)cfg->workers,
		.shards = (unsigned int)cfg->offsets_topic_num_partitions,
		.segment_bytes = (uint64_t)cfg->log_segment_bytes,
		.total_bytes = (uint64_t)cfg->log_total_bytes,
		.reserve_bytes = (uint64_t)(cfg->log_reserve_bytes < cfg->log_segment_bytes / 2 ? cfg->log_reserve_bytes : cfg->log_segment_bytes / 2),
		.dirty_percent = (unsigned int)cfg->log_cleaner_min_cleanable_percent,
		.retention_ms = cfg->log_cleaner_delete_retention_ms,
		.keep_bytes = KEEP_BYTES,
		.skip_damaged = cfg->log_recover == 1,
		.uring = cfg->log_io == 1,
		.say = storage_line,
		.say_arg = s,
	};
	if (getrandom(store.random, sizeof(store.random), 0) != sizeof(store.random)) {
		snprintf(err, err_len, "the system gives no random bytes");
		return false;
	}
	s->store = store_new(&store, err, err_len);
	if (s->store == NULL)
		return false;
	s->loader = loader_new();
	snprintf(err, err_len, "no thread for the loading of the log");
	return s->loader != NULL;
}

static bool storage_make_logs(struct storage *s, char *err, size_t err_len)
{
	s->logs = calloc((size_t)s->cfg->workers, sizeof(struct log *));
	for (unsigned int w = 0; s->logs != NULL && w < (unsigned int)s->cfg->workers; w++) {
		s->logs[w] = s->store != NULL ? store_log(s->store, w) : log_memory_new();
		if (s->logs[w] == NULL)
			break;
		if (w + 1 == (unsigned int)s->cfg->workers)
			return true;
	}
	snprintf(err, err_len, "no memory for the log");
	return false;
}

struct storage *storage_open(const struct config *cfg, struct output *out, char *err, size_t err_len)
{
	struct storage *s = calloc(1, sizeof(*s));
	if (s == NULL) {
		snprintf(err, err_len, "no memory for the log");
		return NULL;
	}
	s->cfg = cfg;
	s->out = out;
	if ((storage_in_memory(cfg) || storage_open_store(s, err, err_len)) && storage_make_logs(s, err, err_len))
		return s;
	storage_close(s);
	return NULL;
}

struct log *storage_log(struct storage *s, unsigned int worker)
{
	return s->logs[worker];
}

void storage_set_wake(struct storage *s, unsigned int worker, int eventfd)
{
	if (s->store != NULL)
		store_set_wake(s->store, worker, eventfd);
}

/* ---- loading ---- */

static struct shard *storage_shard(void *arg, unsigned int number)
{
	struct storage *s = arg;
	unsigned int w = 0;
	while (!node_has_shard(s->nodes[w], number)) {
		w++;
		CHECK(w < (unsigned int)s->cfg->workers);
	}
	return node_loading_shard(s->nodes[w], number);
}

static void storage_done(void *arg, const char *err)
{
	struct storage *s = arg;
	s->took_us = s->clock().us - s->begun_us;
	s->done(s->arg, err);
}

/* As many as the CPUs that the program may use, where the setting leaves it open. */
static unsigned int storage_threads(const struct config *cfg)
{
	cpu_set_t set;
	unsigned int n = (unsigned int)cfg->log_load_threads;
	if (n == 0)
		n = sched_getaffinity(0, sizeof(set), &set) == 0 ? (unsigned int)CPU_COUNT(&set) : 1;
	return n < 1 ? 1 : n > THREADS_MAX ? THREADS_MAX : n;
}

bool storage_load(struct storage *s, struct node **nodes, struct now (*clock)(void), void (*done)(void *arg, const char *err), void *arg)
{
	if (s->store == NULL) {
		done(arg, NULL);
		return true;
	}
	struct loader_config cfg = {
		.store = s->store,
		.shards = (unsigned int)s->cfg->offsets_topic_num_partitions,
		.threads = storage_threads(s->cfg),
		.shard = storage_shard,
		.clock = clock,
		.done = storage_done,
		.arg = s,
	};
	s->nodes = nodes;
	s->clock = clock;
	s->done = done;
	s->arg = arg;
	s->begun_us = clock().us;
	if (!loader_begin(s->loader, &cfg))
		return false;
	for (unsigned int w = 0; w < (unsigned int)s->cfg->workers; w++)
		node_load(nodes[w], loader_stats(s->loader), loader_ready, s->loader);
	loader_go(s->loader);
	return true;
}

/* ---- telling ---- */

void storage_describe(const struct storage *s, char *out, size_t len)
{
	if (s->store != NULL)
		store_describe(s->store, out, len);
	else
		snprintf(out, len, "MEMORY ONLY, nothing survives a restart (%s)",
			 s->cfg->log_dir[0] == '\0' ? "log.dir names no folder" : "log.flush.mode=memory");
}

bool storage_describe_load(const struct storage *s, char *out, size_t len)
{
	if (s->store == NULL)
		return false;
	store_describe_load(s->store, out, len);
	size_t used = strlen(out);
	snprintf(out + used, len - used, ", in %" PRIu64 " ms", s->took_us / US_PER_MS);
	return true;
}

/* ---- end ---- */

void storage_stop(struct storage *s)
{
	if (s->loader != NULL)
		loader_free(s->loader);
	s->loader = NULL;
}

void storage_close(struct storage *s)
{
	storage_stop(s);
	for (unsigned int w = 0; s->store == NULL && s->logs != NULL && w < (unsigned int)s->cfg->workers; w++)
		if (s->logs[w] != NULL)
			log_free(s->logs[w]);
	if (s->store != NULL)
		store_free(s->store);
	free(s->logs);
	free(s);
}
