/*
 * stored_log.h - a log for tests of readers: holds batches in memory, gives them in later polls, and refuses appends.
 */
#ifndef TEST_STORED_LOG_H
#define TEST_STORED_LOG_H

#include "coordinator/log/log.h"

#define STORED_SHARDS 4
#define STORED_BATCHES 256

struct stored_batch {
	unsigned int shard;
	int64_t first, last;
	uint8_t *p;
	size_t len;
};

struct stored_log {
	struct log log;
	struct stored_batch batches[STORED_BATCHES];
	unsigned int len;
	uint64_t position;
	int64_t start[STORED_SHARDS], high_watermark[STORED_SHARDS];
	int32_t epoch; /* of what is added, in all shards */
	struct log_epoch epochs[STORED_SHARDS][8];
	size_t epochs_len[STORED_SHARDS];
	struct log_read *reads; /* oldest first */
	unsigned int reads_now, reads_most, reads_all;
	bool slow;     /* polls answer no read */
	int16_t error; /* that the next read gets */
};

void stored_log_init(struct stored_log *s);
void stored_log_fini(struct stored_log *s);
/* Adds a batch of `records` records at the high watermark, values of `bytes` bytes, timestamps ms, ms + 1, ...; it is durable at once. */
void stored_log_add(struct stored_log *s, unsigned int shard, unsigned int records, size_t bytes, int64_t ms);

#endif
