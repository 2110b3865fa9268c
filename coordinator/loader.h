/*
 * loader.h - fills the shards from the log while the nodes serve: threads of its own, which the workers never wait for.
 *
 *   read and check the whole log -> the logs can go on -> shard by shard, hot ones first: records, sessions, hand-over
 *
 * Until a shard is handed over its requests are answered as for a partition that is loading (shard.h). If the log is refused or cannot be read, no
 * shard was handed over yet. When a log is longer than what is kept in memory at once, its older part is given to all shards before; the order then counts
 * for the rest.
 */
#ifndef MUSTER_LOADER_H
#define MUSTER_LOADER_H

#include "muster/stats.h"
#include "muster/time.h"

#include "coordinator/log/store.h"
#include "coordinator/shard.h"

struct loader;

struct loader_config {
	struct store *store;
	unsigned int shards;
	unsigned int threads; /* that fill shards, at least 1 */
	struct shard *(*shard)(void *arg, unsigned int number); /* asked for each of them in loader_begin */
	struct now (*clock)(void);
	/* Called once, by the loader's thread: everything is loaded, or `err` says why nothing is. Not once loader_free is at work. */
	void (*done)(void *arg, const char *err);
	void *arg;
};

/* Its thread starts with the caller's affinity and signal mask, and waits for loader_go. NULL: no memory or no thread. */
struct loader *loader_new(void);
/* Makes it ready; *cfg is copied. False: no memory. */
bool loader_begin(struct loader *loader, const struct loader_config *cfg);
/* Counters for each shard while it is filled, and whether it has been (any thread): for node_load. After loader_begin. */
struct stats *loader_stats(struct loader *loader);
bool loader_ready(void *loader, unsigned int shard);
/* The loader's from now on: all shards and the store. After node_load. */
void loader_go(struct loader *loader);
/* Ends its threads, in the middle of the work if need be, and frees it. */
void loader_free(struct loader *loader);

#endif
