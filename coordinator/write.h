/*
 * write.h - the records of one request on their way to durability, and the queue of a shard's writes.
 *
 * A write is built (keys and values are encoded once, into its own bytes), submitted (appended to the log as one batch), and, when the log is
 * durable up to its position, each record is applied by shard_replay and then `done` runs: the parked answer. The same bytes are what a
 * recovery reads, so the live state and a replayed one cannot differ by an encoding.
 *
 * Invariants:
 *  1. Writes of a shard complete in the order of their submission.
 *  2. A write that could not be appended changes nothing: write_submit frees it and returns the error for the client.
 *  3. A write that is not durable after offsets.commit.timeout.ms stays where it is; whoever waits for it is told (`late`), once. When it becomes durable
 *     after all, its records are applied like any others. The first write of the queue may be replayed in several rounds; until it is through, it
 *     counts as on its way.
 *  4. `done` runs exactly once, and never inside write_submit; or `failed` does, when the log broke. What the record says is then not applied, and
 *     nobody knows whether a restart will find it.
 */
#ifndef MUSTER_WRITE_H
#define MUSTER_WRITE_H

#include "coordinator/group/record.h"
#include "coordinator/log/log.h"
#include "coordinator/request.h"
#include "coordinator/wire/arena.h"
#include "coordinator/wire/messages.h"

struct shard;

struct write {
	struct write *next;
	uint64_t position;
	void (*done)(struct shard *shard, struct write *w, struct now now); /* may be NULL */
	/* Instead of `done` when the log broke; `error` is for the client. NULL: a parked request is refused. */
	void (*failed)(struct shard *shard, struct write *w, int16_t error, struct now now);
	/* The deadline has passed: answers who waits; `done` or `failed` still comes. `error` is for the client. NULL: waits on. */
	void (*late)(struct shard *shard, struct write *w, int16_t error, struct now now);
	uint64_t deadline_us;
	struct group *group;   /* referenced, or NULL */
	int32_t generation;    /* of the group when it was written */
	struct record_parts parts; /* of `group`, from this record on */
	uint64_t commit;	   /* its number among the records of `group` (group_parts.submitted) */
	bool sliced;		   /* a round may replay only some of its records */
	bool begun;		   /* `next_entry` of them are replayed */
	unsigned int next_entry;
	struct member_memo who; /* the member that waits */
	struct request *rq;    /* parked until durable; NULL: nobody, or dropped */
	struct bytes previous_leader; /* in the arena */
	struct offset_commit_response response; /* in the arena */
	struct arena arena;    /* what the answer needs besides */
	struct writer bytes;   /* of keys and values */
	unsigned int len, cap; /* records */
	struct log_entry entries[];
};

struct write_queue {
	struct write *first, *last;
	struct write *patient; /* the first one whose deadline has not passed; those behind it have later ones */
	uint64_t appended; /* position after the last write */
};

/* Room for `records` of `bytes` bytes together, and an arena of `extra`. NULL: no memory. */
struct write *write_new(unsigned int records, size_t bytes, size_t extra);
/* Between these two, the record is written into w->bytes: key, write_value, value (or nothing: tombstone). */
void write_key(struct write *w);
void write_value(struct write *w);
void write_end(struct write *w, bool tombstone);
void write_free(struct write *w);

/* Appends and queues. Consumes `w`. Returns 0 or the error code for the client. */
int16_t write_submit(struct shard *shard, struct write *w, struct now now);
/* Parks a request that the write's `done` will answer. */
void write_park(struct write *w, struct request *rq);
/* Completes what is durable, with no more than *units of the work that records of large groups are. Returns how many. */
unsigned int writes_complete(struct shard *shard, unsigned int *units, struct now now);
/* Tells those who have waited for too long. */
void writes_overdue(struct shard *shard, struct now now);
/* When that has to be done next, microseconds. */
uint64_t writes_deadline(const struct shard *shard);
/* When the log broke: ends every write that is on its way. Returns the error for clients if there was one, else 0. */
int16_t writes_fail(struct shard *shard, struct now now);
/* What a client is told for an error of the log (group-protocol 1.1); 0 for 0. */
int16_t write_client_error(int16_t error);
/* Whether a write is durable and not completed yet. */
bool writes_due(const struct shard *shard);
void writes_free(struct shard *shard);

#endif
