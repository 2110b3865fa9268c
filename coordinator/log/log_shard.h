/*
 * log_shard.h - how far a shard's log has come: offsets and leader epochs, as recovery finds them and as the log goes on with them.
 */
#ifndef MUSTER_LOG_SHARD_H
#define MUSTER_LOG_SHARD_H

#include "coordinator/log/log.h"

#define LOG_EPOCHS_MAX 64u /* kept of a shard; each start that writes is one */

struct log_shard {
	int64_t next_offset; /* of the next record */
	int64_t start;	     /* the log start offset */
	int64_t high_watermark;
	int32_t epoch; /* of the last batch, -1: none; of the next one once the log has begun */
	uint32_t epochs_len;
	struct log_epoch *epochs; /* LOG_EPOCHS_MAX of them, or NULL */
};

/*
 * `offset` is the first one of an epoch, if that is newer than all before. The oldest one is forgotten when there are too many; nothing is noted
 * when there is no memory.
 */
void log_shard_note_epoch(struct log_shard *s, int32_t epoch, int64_t offset);
/* Array of `n`, nothing written yet. NULL: no memory. */
struct log_shard *log_shards_new(unsigned int n);
/* NULL: no memory. */
struct log_shard *log_shards_copy(const struct log_shard *from, unsigned int n);
void log_shards_free(struct log_shard *shards, unsigned int n);

#endif
