/*
 * store.h - the disk log as the program uses it: folder, recovery and the worker's log in one object.
 *
 * store_new before anything else is started (its helper thread keeps the affinity and signal mask of the caller), store_load when the shards
 * exist, then store_log serves.
 */
#ifndef MUSTER_LOG_STORE_H
#define MUSTER_LOG_STORE_H

#include "coordinator/log/log_disk.h"

struct store_config {
	const char *folder;
	enum log_flush flush;
	unsigned int shards;
	uint64_t segment_bytes, total_bytes; /* log_disk.h */
	bool skip_damaged;		     /* recover.h */
	bool uring;			     /* writes through io_uring where that is allowed */
	uint8_t random[24];		     /* from the system's random source */
	void (*say)(void *arg, const char *line);
	void *say_arg;
};

struct store;

/* Opens or makes the log; reads no record yet. NULL: one line in err. */
struct store *store_new(const struct store_config *cfg, char *err, size_t err_len);
/* The worker's log; it takes appends after store_load. */
struct log *store_log(struct store *store);
/* Gives every record to `record`, in the order of its shard (recover.h). False: one line in err. */
bool store_load(struct store *store, bool (*record)(void *arg, unsigned int shard, const struct log_entry *entry), void *arg, char *err,
		size_t err_len);
/* One line about where the log is, what it promises and what was read. */
void store_describe(const struct store *store, char *out, size_t len);
/* Everything appended reaches the disk first. */
void store_free(struct store *store);

#endif
