/*
 * log_reader.h - serves the reads of one log (log.h, struct log_read): one after the other, one block per step.
 */
#ifndef MUSTER_LOG_READER_H
#define MUSTER_LOG_READER_H

#include "coordinator/log/files.h"
#include "coordinator/log/log_shard.h"
#include "coordinator/log/stream.h"

struct log_reader {
	const struct log_files *files;
	const struct log_shard *shards;
	struct stream stream;
	struct log_read *first, *last; /* the first is being served when the stream is not idle */
	bool whole;		       /* it has what it wants */
};

void log_reader_init(struct log_reader *r, struct disk *disk, const struct log_files *files, const struct log_shard *shards);
/* Waits for the disk; what is still asked for ends with 56. */
void log_reader_fini(struct log_reader *r, struct now now);
void log_reader_add(struct log_reader *r, struct log_read *read);
/* Call after disk_poll. True: there is more to do. */
bool log_reader_step(struct log_reader *r, struct now now);

#endif
