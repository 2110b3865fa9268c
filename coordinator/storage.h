/*
 * storage.h - the log as the program has it: made of the settings, loaded while the nodes serve, described, closed. One log per worker.
 */
#ifndef MUSTER_STORAGE_H
#define MUSTER_STORAGE_H

#include "coordinator/config.h"
#include "coordinator/node.h"
#include "coordinator/output.h"

struct storage;

/*
 * Before the dataplane pins the calling thread: the threads of the log keep the affinity and signal mask that it has now. `cfg` and `out` outlive it.
 * NULL: one line in err.
 */
struct storage *storage_open(const struct config *cfg, struct output *out, char *err, size_t err_len);
struct log *storage_log(struct storage *s, unsigned int worker);
/* The worker sleeps on this eventfd; its log wakes it. Before storage_load. */
void storage_set_wake(struct storage *s, unsigned int worker, int eventfd);

/*
 * Before the first connection. The nodes (one per worker; each shard is one node's) answer as loading until the loader has filled their shards.
 * `done` is called once, by a thread of its own, or right here where there is nothing to load: err NULL: all is loaded. False: no memory.
 */
bool storage_load(struct storage *s, struct node **nodes, struct now (*clock)(void), void (*done)(void *arg, const char *err), void *arg);

/* One line for the start: what an acknowledgement is worth. */
void storage_describe(const struct storage *s, char *out, size_t len);
/* After `done`: one line about what was read. False: nothing was. */
bool storage_describe_load(const struct storage *s, char *out, size_t len);

/* Ends the loading, in the middle if need be. Before the nodes are freed. */
void storage_stop(struct storage *s);
/* After the nodes are freed: what was appended reaches the disk first. */
void storage_close(struct storage *s);

#endif
