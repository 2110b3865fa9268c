/*
 * cleaner.h - compaction of one log: rows of closed files are read, what still counts is written to one new file, and that takes their place (format.h).
 *
 *   IDLE --enough to do--> PASS: from the oldest file to the newest closed one, run after run
 *            run: READ inputs, batch by batch, while the rest fits -> FINISH the new file -> REMOVE the inputs -> the next run
 *
 * Whether a record counts, its owner says from memory (log_owner). The cleaner never changes a file: a crash, a full disk or a failed write at any moment leaves
 * the inputs as they were. It works in slices of a few records per poll.
 *
 * Invariants:
 *  1. A record is dropped only when its owner has applied a newer one of its key, or the tombstone of its key.
 *  2. A tombstone is dropped only when its owner had applied it when the pass began, all files before were cleaned in this pass, and its grace time is over.
 *     So nothing older of its key is left.
 *  3. With several workers each takes over its own shards, of old files in the groups that files_join made; old and new files are never mixed, so that
 *     all rows lie within each other or apart.
 *  4. One new file at a time; its space is reserved before it is needed.
 */
#ifndef MUSTER_LOG_CLEANER_H
#define MUSTER_LOG_CLEANER_H

#include "coordinator/log/batch.h"
#include "coordinator/log/clean_out.h"
#include "coordinator/log/log_shard.h"
#include "coordinator/log/stream.h"

enum cleaner_state { CLEANER_IDLE, CLEANER_READ, CLEANER_FINISH, CLEANER_REMOVE };

struct cleaner_config {
	struct disk *disk;
	struct log_files *files;
	const struct log_shard *shards;
	struct block_id id;	/* log, shards, start, worker */
	uint64_t segment_bytes; /* about how long a new file may become */
	bool alone; /* no other worker has a log in the folder */
	unsigned int dirty_percent; /* a pass begins when so much of the closed files has not been cleaned; 0: never */
	int64_t retention_ms;	/* grace time of tombstones */
	uint64_t random;
	uint64_t *bytes; /* of all files; kept up to date */
	uint64_t total_bytes;
	void (*say)(void *arg, const char *line);
	void *say_arg;
};

struct cleaner_counts {
	uint64_t passes, runs, failed;
	uint64_t read_bytes, written_bytes;
	uint64_t records, dropped;
};

struct cleaner {
	struct cleaner_config cfg;
	struct log_owner owner;
	bool owned;
	bool look;    /* something changed: there may be enough to do */
	bool stopped; /* by a failure that only a start mends */
	bool said;    /* that it failed */
	enum cleaner_state state;
	struct stream in;
	struct clean_out out;
	uint64_t retry_us;   /* not before */
	uint64_t worked_for; /* the log's position when the last pass began */
	/* a pass */
	size_t at;   /* in files: the first input of the run */
	size_t left; /* files that the pass has still to look at */
	int64_t *horizon; /* by shard: applied when it began */
	int64_t *ends;	  /* by shard: where the files before `at` end */
	/* a run */
	size_t inputs; /* the one that is read is the last of them */
	bool dropped;  /* something */
	struct reader block; /* what is left of the block that is read */
	uint64_t block_at;
	bool in_batch;
	struct batch batch;
	struct bytes batch_bytes;
	uint32_t batch_shard;
	size_t batch_start; /* of its copy in out.buf */
	uint32_t kept;
	struct bytes next_batch; /* waits for room; len -1: none */
	struct log_file **gone; /* to be removed; room for all inputs of a pass */
	size_t gone_len;
	struct disk_op remove;
	struct cleaner_counts counts;
};

/* False: no memory. */
bool cleaner_init(struct cleaner *c, const struct cleaner_config *cfg);
/* Waits for the disk and ends whatever is under way. */
void cleaner_fini(struct cleaner *c);
void cleaner_set_owner(struct cleaner *c, const struct log_owner *owner);
/* A file was closed. */
void cleaner_look(struct cleaner *c);
/*
 * True: it has nothing reserved to clean with, and adds what it wants to *bytes. Who needs space as well lets it go first, for only it can give some
 * back.
 */
bool cleaner_lacks(const struct cleaner *c, uint64_t *bytes);
/* Bytes that it is just reserving, which the disk may still count as free. */
uint64_t cleaner_reserving(const struct cleaner *c);
/*
 * One slice. `urgent`: space is short, so clean whatever there is, if anything was appended since the last pass (`appended` is the log's position).
 * Returns the microsecond of its next wish.
 */
uint64_t cleaner_step(struct cleaner *c, bool urgent, uint64_t appended, struct now now);

#endif
