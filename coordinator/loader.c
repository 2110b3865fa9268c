/*
 * loader.c - see loader.h.
 *
 * One thread reads; for filling it is joined by others, and each takes the next shard of a list. A shard is one thread's from the moment it takes
 * it from the list; the flag `ready` hands it over to its worker (release and acquire), and with the first one the log, which the reading thread has begun
 * before it let the others go.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "muster/check.h"

#include "coordinator/loader.h"

#define ERROR_LEN 400

struct loader {
	struct loader_config cfg;
	pthread_t thread;
	sem_t begin;
	atomic_bool stop;
	bool begun;
	unsigned int *order; /* the list */
	atomic_uint next;    /* place in it */
	bool last;	     /* what is filled now is handed over */
	struct shard **shards;
	struct stats *stats;
	atomic_bool *ready;
	pthread_t *helpers;
};

/* ---- filling ---- */

static bool loader_record(void *arg, unsigned int shard, const struct log_entry *entry)
{
	struct loader *l = arg;
	struct now when = {0, 0}; /* sessions start when the shard is handed over */
	return shard_replay(l->shards[shard], entry, when);
}

static void loader_fill_one(struct loader *l, unsigned int number)
{
	store_shard(l->cfg.store, number);
	if (!l->last || atomic_load(&l->stop))
		return;
	shard_loaded(l->shards[number], l->cfg.clock());
	atomic_store_explicit(&l->ready[number], true, memory_order_release);
}

static void *loader_fill(void *arg)
{
	struct loader *l = arg;
	unsigned int place;
	while (!atomic_load(&l->stop) && (place = atomic_fetch_add(&l->next, 1)) < l->cfg.shards)
		loader_fill_one(l, l->order[place]);
	return NULL;
}

/* Fills all shards from what is kept. Fewer threads than asked for only take longer. */
static void loader_fill_all(void *arg)
{
	struct loader *l = arg;
	unsigned int n = 0;
	store_order(l->cfg.store, l->order);
	atomic_store(&l->next, 0);
	while (n + 1 < l->cfg.threads && pthread_create(&l->helpers[n], NULL, loader_fill, l) == 0)
		n++;
	loader_fill(l);
	while (n > 0)
		pthread_join(l->helpers[--n], NULL);
}

/* ---- the thread ---- */

static bool loader_load(struct loader *l, char *err, size_t err_len)
{
	struct store_reader reader = {loader_record, loader_fill_all, l};
	if (!store_scan(l->cfg.store, &reader, err, err_len) || !store_begin(l->cfg.store, err, err_len))
		return false;
	l->last = true;
	loader_fill_all(l);
	store_loaded(l->cfg.store);
	return true;
}

static void *loader_run(void *arg)
{
	struct loader *l = arg;
	char err[ERROR_LEN];
	while (sem_wait(&l->begin) != 0)
		;
	if (atomic_load(&l->stop))
		return NULL;
	bool ok = loader_load(l, err, sizeof(err));
	if (!atomic_load(&l->stop))
		l->cfg.done(l->cfg.arg, ok ? NULL : err);
	return NULL;
}

/* ---- life ---- */

struct loader *loader_new(void)
{
	struct loader *l = calloc(1, sizeof(*l));
	if (l == NULL)
		return NULL;
	sem_init(&l->begin, 0, 0);
	if (pthread_create(&l->thread, NULL, loader_run, l) == 0)
		return l;
	sem_destroy(&l->begin);
	free(l);
	return NULL;
}

bool loader_begin(struct loader *l, const struct loader_config *cfg)
{
	size_t bytes = cfg->shards * sizeof(struct stats);
	CHECK(cfg->threads > 0 && cfg->shards > 0 && !l->begun);
	l->order = calloc(cfg->shards, sizeof(*l->order));
	l->ready = calloc(cfg->shards, sizeof(*l->ready));
	l->helpers = calloc(cfg->threads, sizeof(*l->helpers));
	l->stats = aligned_alloc(MUSTER_CACHE_LINE, bytes);
	l->shards = calloc(cfg->shards, sizeof(struct shard *));
	if (l->order == NULL || l->ready == NULL || l->helpers == NULL || l->stats == NULL || l->shards == NULL)
		return false;
	memset(l->stats, 0, bytes);
	l->cfg = *cfg;
	for (unsigned int i = 0; i < cfg->shards; i++)
		l->shards[i] = cfg->shard(cfg->arg, i);
	l->begun = true;
	return true;
}

void loader_go(struct loader *l)
{
	CHECK(l->begun);
	sem_post(&l->begin);
}

struct stats *loader_stats(struct loader *l)
{
	return l->stats;
}

bool loader_ready(void *arg, unsigned int shard)
{
	struct loader *l = arg;
	return atomic_load_explicit(&l->ready[shard], memory_order_acquire);
}

void loader_free(struct loader *l)
{
	atomic_store(&l->stop, true);
	if (l->begun)
		store_stop(l->cfg.store);
	sem_post(&l->begin);
	pthread_join(l->thread, NULL);
	sem_destroy(&l->begin);
	free(l->order);
	free(l->shards);
	free(l->ready);
	free(l->helpers);
	free(l->stats);
	free(l);
}
