/*
 * recover.h - what the disk holds at the start: the meta file, then every record of every segment in the order of its shard.
 *
 * Nothing in a file can stop or mislead it: what is not good is said in a line with file, block, shard and offset. Set aside, never fatal: a batch or
 * a record that cannot be read though its block is good. Fatal unless skip_damaged: a block that was durable and is not good any more, or a
 * missing segment. A torn tail is no damage: nobody was told that it is durable.
 *
 * Blocking; called before the workers run, by one thread for all of them.
 */
#ifndef MUSTER_LOG_RECOVER_H
#define MUSTER_LOG_RECOVER_H

#include "muster/bytes.h"

#include "coordinator/log/disk.h"
#include "coordinator/log/files.h"
#include "coordinator/log/log_shard.h"

struct recover {
	/* given */
	struct disk *disk;
	unsigned int shards;
	bool skip_damaged;
	void (*say)(void *arg, const char *line);
	/* False: it cannot be read; it is reported and left out. */
	bool (*record)(void *arg, unsigned int shard, const struct log_entry *entry);
	void *arg;
	/* found */
	uint8_t log[16];	/* the log's id */
	struct log_shard *state; /* `shards` of them; what the log goes on with, log_disk_begin takes them over */
	uint64_t start;		/* the number of this start */
	uint64_t bytes;		/* of all segments that stay */
	uint64_t segments, records, set_aside, lost_blocks;
	struct log_files files; /* what stays, indexed; log_disk_begin takes them over */
};

/*
 * Reads or makes the meta file. `id` names a log that is made. False: one line in err; nothing is held. Afterwards
 * recover_fini gives back what recover holds.
 */
bool recover_init(struct recover *rc, const uint8_t id[16], char *err, size_t err_len);
/* Calls `record` for everything, closes all segments for ever. False: one line in err. */
bool recover_run(struct recover *rc, char *err, size_t err_len);
void recover_fini(struct recover *rc);

#endif
