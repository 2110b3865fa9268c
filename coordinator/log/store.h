/*
 * store.h - the disk log as the program uses it: folder, recovery, quarantine and the log of each worker in one object.
 *
 *   store_new     before anything else is started: its helper threads keep the affinity and signal mask of the caller
 *   store_scan    reads and checks everything (recover.h)
 *   store_begin   the logs can go on; from now on each belongs to its worker
 *   store_shard   gives a shard its records; by several threads, each for other shards, before store_begin or after it
 *   store_loaded  every shard has got them
 */
#ifndef MUSTER_LOG_STORE_H
#define MUSTER_LOG_STORE_H

#include "coordinator/log/log_disk.h"

struct store_config {
	const char *folder;
	enum log_flush flush;
	unsigned int workers; /* one log each */
	unsigned int shards;
	uint64_t segment_bytes, total_bytes; /* log_disk.h; total_bytes is shared out to the workers */
	uint64_t reserve_bytes;		     /* log_disk.h */
	unsigned int dirty_percent;	     /* log_disk.h */
	int64_t retention_ms;		     /* log_disk.h */
	uint64_t keep_bytes;		     /* recover.h */
	bool skip_damaged;		     /* recover.h */
	bool uring;			     /* writes through io_uring where that is allowed */
	uint8_t random[24];		     /* from the system's random source */
	void (*say)(void *arg, const char *line); /* from any thread */
	void *say_arg;
};

/* Who gets the records. */
struct store_reader {
	bool (*record)(void *arg, unsigned int shard, const struct log_entry *entry); /* recover.h */
	void (*drain)(void *arg); /* calls store_shard for all; needed unless keep_bytes is 0 */
	void *arg;
};

struct store;

/* Opens or makes the log; reads no record yet. NULL: one line in err. */
struct store *store_new(const struct store_config *cfg, char *err, size_t err_len);
struct log *store_log(struct store *store, unsigned int worker);
/* The disk under a worker's log wakes it by this eventfd. Before store_begin. */
void store_set_wake(struct store *store, unsigned int worker, int eventfd);

bool store_scan(struct store *store, const struct store_reader *reader, char *err, size_t err_len);
bool store_begin(struct store *store, char *err, size_t err_len);
void store_shard(struct store *store, unsigned int shard);
void store_loaded(struct store *store);
/* From any thread: a scan and the giving away of records end soon, unfinished. */
void store_stop(struct store *store);
/* After the scan: all shards, the hot ones first (backlog.h). */
void store_order(const struct store *store, unsigned int *out);
/* All of it on one thread: scan, begin, each shard. False: one line in err. */
bool store_load(struct store *store, bool (*record)(void *arg, unsigned int shard, const struct log_entry *entry), void *arg, char *err,
		size_t err_len);

/* One line about where the log is and what it promises. */
void store_describe(const struct store *store, char *out, size_t len);
/* One line about what was read. After store_loaded. */
void store_describe_load(const struct store *store, char *out, size_t len);
/* Everything appended reaches the disk first. */
void store_free(struct store *store);

#endif
