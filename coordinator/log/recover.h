/*
 * recover.h - what the disk holds at the start: the meta file, then every record of every segment in the order of its shard.
 *
 *   recover_init    the meta file
 *   recover_scan    reads and checks all segments, closes them for ever, says what is damaged. After it the log can go on. Batches are only noted for their
 *                   shards (backlog.h); when more than keep_bytes are kept, `drain` is called, which takes what there is of every shard
 *   recover_shard   gives the noted records of one shard away; different shards by different threads at once
 *
 * Nothing in a file can stop or mislead it: what is not good is said in a line with file, block, shard and offset. Set aside, never fatal: a batch or
 * a record that cannot be read though its block is good. Fatal unless skip_damaged: a block that was durable and is not good any more, or a
 * missing segment. With skip_damaged it is said what is lost, and the place is mended so that the next start finds a whole log (mend.h). A torn
 * tail is no damage: nobody was told that it is durable.
 *
 * Blocking; never on a worker's thread once that runs.
 */
#ifndef MUSTER_LOG_RECOVER_H
#define MUSTER_LOG_RECOVER_H

#include <stdatomic.h>

#include "muster/bytes.h"

#include "coordinator/log/backlog.h"
#include "coordinator/log/batch.h"
#include "coordinator/log/disk.h"
#include "coordinator/log/files.h"
#include "coordinator/log/log_shard.h"

struct recover_shard {
	uint64_t records, set_aside; /* given away, and not taken */
	unsigned int holes;	     /* that were found before its last batch */
};

struct recover {
	/* given */
	struct disk *disk;
	unsigned int shards;
	bool skip_damaged;
	uint64_t keep_bytes; /* 0: all */
	/* These are called by several threads, each for another shard; `say` also for the same one. */
	void (*say)(void *arg, const char *line);
	/* False: it cannot be read; it is reported and left out. */
	bool (*record)(void *arg, unsigned int shard, const struct log_entry *entry);
	/* What was left out: one record, or a whole batch of which nothing can be read (record NULL). May be NULL. */
	void (*aside)(void *arg, unsigned int shard, const struct batch *batch, const struct batch_record *record, struct bytes bytes);
	void (*drain)(void *arg); /* calls recover_shard for every shard; needed unless keep_bytes is 0 */
	void *arg;
	/* found */
	uint8_t log[16];	 /* the log's id */
	struct log_shard *state; /* `shards` of them; what the log goes on with, log_disk_begin takes them over */
	struct log_files files;	 /* what stays, indexed; log_disk_begin takes them over */
	uint64_t start;		 /* the number of this start */
	uint64_t bytes;		 /* of all segments that stay */
	uint64_t segments, lost_blocks, set_aside; /* set_aside: by the scan */
	unsigned int holes;
	struct backlog backlog;
	struct recover_shard *given;
	atomic_bool stop; /* set by any thread: whatever runs ends soon, a scan with an error */
};

/*
 * Reads or makes the meta file. `id` names a log that is made. False: one line in err; nothing is held. Afterwards
 * recover_fini gives back what recover holds.
 */
bool recover_init(struct recover *rc, const uint8_t id[16], char *err, size_t err_len);
/* False: one line in err. */
bool recover_scan(struct recover *rc, char *err, size_t err_len);
/* The records that are kept for this shard, in order. */
void recover_shard(struct recover *rc, unsigned int shard);
/* Forgets the batches; all shards must have got theirs. */
void recover_forget(struct recover *rc);
/* recover_scan, and then all shards one after the other. */
bool recover_run(struct recover *rc, char *err, size_t err_len);
void recover_fini(struct recover *rc);

/* Sums over all shards. */
uint64_t recover_records(const struct recover *rc);
uint64_t recover_set_aside(const struct recover *rc);

#endif
