/*
 * kafka_log.h - a folder of one partition of a Kafka broker, read batch by batch.
 *
 *   __consumer_offsets-7/00000000000000000000.log   record batches of format v2, one behind the other; the name is the first offset
 *                        00000000000000031415.log   the next segment
 *                        *.index, *.timeindex, *.snapshot, leader-epoch-checkpoint, partition.metadata: not needed
 *
 * Memory: one batch. Nothing in a file is trusted: a length must fit into the file, a batch must have the checksum that it says.
 */
#ifndef MUSTER_TOOL_KAFKA_LOG_H
#define MUSTER_TOOL_KAFKA_LOG_H

#include "coordinator/log/batch.h"

#define KAFKA_OFFSETS "__consumer_offsets-"
#define KAFKA_NAME_DIGITS 20

enum kafka_step {
	KAFKA_BATCH,
	KAFKA_END,
	KAFKA_TAIL,    /* the last segment ends with bytes that are no whole batch: a write was cut off */
	KAFKA_DAMAGED, /* what follows is no good batch; kafka_log_next goes on behind it, if that can be found */
	KAFKA_FAILED,  /* reading failed: `err` says why */
};

struct kafka_log {
	const char *path;
	int folder;
	uint64_t *segments; /* first offsets, in order */
	size_t len, current; /* current: the segment that is open, or comes next */
	int fd;
	uint64_t size, at; /* of the open segment; where the next batch stands */
	int64_t next_offset;
	uint8_t *buf; /* the file from `buf_at` on */
	size_t cap, buf_len;
	uint64_t buf_at;
	uint64_t batch_at; /* where the last step's batch or damage stands */
	char err[200];
};

/* The partition that a path names ("/a/b/__consumer_offsets-7"), or -1. */
int64_t kafka_partition_of(const char *path);

/* False: k->err. `path` must stay. */
bool kafka_log_open(struct kafka_log *k, const char *path);
void kafka_log_close(struct kafka_log *k);
/* From the beginning again. */
void kafka_log_rewind(struct kafka_log *k);
/* The next batch, valid until the next call; not checked further than its checksum, its head and that offsets grow. */
enum kafka_step kafka_log_next(struct kafka_log *k, struct batch *batch, struct bytes *bytes);
/* The name of the segment that the last step was in. */
void kafka_log_segment(const struct kafka_log *k, char *out, size_t len);

#endif
