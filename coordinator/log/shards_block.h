/*
 * shards_block.h - the payload of a SHARDS block (format.h): for each shard that a cleaned file stands for, where its offsets and epochs had come to.
 */
#ifndef MUSTER_LOG_SHARDS_BLOCK_H
#define MUSTER_LOG_SHARDS_BLOCK_H

#include "coordinator/log/log_shard.h"

/* Bytes for so many shards with so many epochs together. */
size_t shards_block_bytes(size_t shards, size_t epochs);
/* Writes the number of shards; then shards_block_put for each of them. */
void shards_block_begin(struct writer *w, uint32_t shards);
/* The epochs of `s` that began at `from` or behind and before `end`. */
void shards_block_put(struct writer *w, uint32_t shard, const struct log_shard *s, int64_t from, int64_t end);

struct shards_block_entry {
	uint32_t shard;
	int64_t start, end;
	uint32_t epochs;
	struct reader rest; /* of the epochs */
};

/* Untrusted. The number of shards, 0 when it cannot be. */
uint32_t shards_block_open(struct reader *r, struct bytes payload);
/* False: malformed. */
bool shards_block_next(struct reader *r, struct shards_block_entry *e);
bool shards_block_epoch(struct shards_block_entry *e, struct log_epoch *epoch);

#endif
