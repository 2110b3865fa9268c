/*
 * churn.h - a log whose keys are written over and over, cleaned, cut and recovered, and a model of what must be found.
 *
 * The model applies what is durable, as a shard does, and is the log's owner. Each value carries a number that grows with every append. After a
 * recovery a key must have the value of its last acknowledged record or of one behind it, and nothing else. With several workers each has a log of its own in
 * the same folder.
 */
#ifndef MUSTER_TEST_CHURN_H
#define MUSTER_TEST_CHURN_H

#include "coordinator/log/log_disk.h"

#include "sim_disk.h"

#define CHURN_SHARDS 3
#define CHURN_KEYS 64
#define CHURN_QUEUE 4096

struct churn_value {
	uint64_t number; /* 0: none, or a tombstone */
	int64_t offset;	 /* of the record; -1: none */
	size_t len;
};

struct churn_write {
	unsigned int shard, key;
	struct churn_value value;
	bool tombstone;
	uint64_t position;
};

struct churn {
	struct sim_disk *disk;
	unsigned int workers; /* of the next start; shard s is worker s % workers' */
	unsigned int running, wrote; /* logs that there are; that wrote what is in the queue */
	struct log *logs[CHURN_SHARDS];
	struct churn_part { struct churn *c; unsigned int worker; } parts[CHURN_SHARDS];
	struct now now;
	uint64_t random, number;
	uint64_t segment_bytes, total_bytes;
	unsigned int dirty_percent;
	int64_t retention_ms;
	uint64_t reserve_bytes;
	bool skip_damaged; /* of the next start */
	enum log_flush flush;
	struct churn_value applied[CHURN_SHARDS][CHURN_KEYS]; /* what is durable */
	int64_t behind[CHURN_SHARDS];			       /* the last record that was applied */
	struct churn_write *queue;			       /* appended, not applied */
	unsigned int queue_len;
	struct churn_value found[CHURN_SHARDS][CHURN_KEYS]; /* by the last recovery */
	int64_t found_next[CHURN_SHARDS];
	uint64_t found_records, found_tombstones, lost_blocks, set_aside;
	bool bad;
	char err[400], said[8000];
};

struct churn *churn_new(uint64_t seed);
void churn_free(struct churn *c);
/* Recovery and begin, not checked against the model. */
bool churn_start(struct churn *c);
/* True: what churn_start found is what may be there. The model goes on with it. */
bool churn_check(struct churn *c);
/* Appends `n` records of random keys of a shard as one batch; `tombstones` of 100 of them are tombstones. Returns Kafka's error. */
int16_t churn_append(struct churn *c, unsigned int shard, unsigned int n, unsigned int tombstones, size_t bytes);
int16_t churn_put(struct churn *c, unsigned int shard, unsigned int key, bool tombstone, size_t bytes);
void churn_poll(struct churn *c);
/* Until everything is durable and the cleaner has nothing to do. */
void churn_settle(struct churn *c);
void churn_cut(struct churn *c, bool kill);
void churn_stop(struct churn *c);
struct log_disk_status churn_status(struct churn *c);
/* The log that has the shard. */
struct log *churn_log(const struct churn *c, unsigned int shard);
/* Bytes of the live records, as batches of one record. */
uint64_t churn_live(const struct churn *c);

#endif
