/*
 * life.h - a log on a simulated disk that lives, dies and lives again, and a ledger of what it took and acknowledged.
 *
 * Every batch carries its number in the ledger, so recovery can be compared with it: what was acknowledged is there, whole, once, in order; behind
 * it may stand a part of what was appended after it, in order; nothing else.
 */
#ifndef MUSTER_TEST_LIFE_H
#define MUSTER_TEST_LIFE_H

#include "coordinator/log/log_disk.h"

#include "sim_disk.h"

#define LIFE_SHARDS 4
#define LIFE_BATCHES 4000

struct life_batch {
	unsigned int shard, records;
	uint64_t position;
};

struct life {
	struct sim_disk *disk;
	struct log *log;
	struct now now;
	uint64_t random;
	uint64_t segment_bytes, total_bytes;
	enum log_flush flush;
	bool skip_damaged;
	/* ledger: in the order of the appends */
	struct life_batch *batches;
	unsigned int len, acked;
	/* what the last recovery found */
	unsigned int found[LIFE_BATCHES]; /* numbers of batches */
	unsigned int found_len, found_records; /* of the batch that is being read */
	bool bad;			       /* something that does not fit the ledger */
	uint64_t lost_blocks, set_aside, start, recovered_bytes;
	char err[400], said[4000];
	int64_t next_offset[LIFE_SHARDS];
	int32_t epoch[LIFE_SHARDS];
};

struct life *life_new(uint64_t seed);
void life_free(struct life *l);
/* Recovery and begin. False: l->err (also when the power was cut in between). */
bool life_start(struct life *l);
/* Appends one batch of `records` records with values of about `bytes`. Returns 0 or Kafka's error. */
int16_t life_append(struct life *l, unsigned int shard, unsigned int records, size_t bytes);
void life_poll(struct life *l);
/* Polls until everything appended is acknowledged (or nothing goes on any more). */
void life_settle(struct life *l);
/* The power goes, or the program is killed, now; the ledger then holds what may be found. */
void life_cut(struct life *l, bool kill);
/* Ends in order. */
void life_stop(struct life *l);
/* After life_start: found what it must and nothing else. Afterwards the ledger is what was found, all of it acknowledged. */
bool life_check(struct life *l);

#endif
