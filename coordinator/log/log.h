/*
 * log.h - the log behind its interface: records go in, positions become durable.
 *
 * One log per worker carries the batches of all its shards. A batch is all records of one request; it is atomic. Appending never blocks and never
 * waits: the caller keeps the position and asks log_durable for how far durability has come. log_memory.c keeps nothing and is durable at
 * the next poll; the disk log comes behind the same calls.
 */
#ifndef MUSTER_LOG_H
#define MUSTER_LOG_H

#include "muster/bytes.h"
#include "muster/time.h"

struct log;

/* Key and value as in Kafka's __consumer_offsets; a value of len -1 is a tombstone. */
struct log_entry {
	struct bytes key;
	struct bytes value;
	int64_t offset; /* in its shard; log_append sets it when it takes the entry */
};

/* One leader epoch of a shard, and the first offset that was written in it. */
struct log_epoch {
	int32_t epoch;
	int64_t start;
};

/* Where a shard stands. Slices are valid until the log changes. */
struct log_span {
	int64_t start; /* the log start offset */
	int64_t high_watermark; /* behind the last durable record: readers see what is below */
	int32_t epoch; /* of the next record */
	const struct log_epoch *epochs; /* oldest first, those without a record left out; the oldest of very many are forgotten */
	size_t epochs_len;
};

/*
 * Batches of a shard as they are stored, for those who read along: from the batch that holds `offset`, or the next one where that is a gap, as many whole
 * batches as fit. The caller fills in the first part and keeps the object and the buffer where they are until `done`, which runs inside a later
 * log_poll. The log reads in slices between its other work; reads of one log are served in order.
 */
struct log_read {
	unsigned int shard;
	int64_t offset;
	uint8_t *buf;
	size_t cap;
	void (*done)(struct log_read *read, struct now now);
	void *arg;
	/* the result */
	int16_t error;	     /* Kafka's: 0, 1 (below the start or above the high watermark), 56 */
	size_t len;	     /* bytes; 0 at the high watermark, or when the first batch does not fit */
	size_t need;	     /* what the first batch needs when it does not fit, else 0 */
	int64_t next_offset; /* behind the last batch in buf */
	struct log_read *next; /* of the log */
};

enum log_verdict {
	LOG_LIVE, /* the newest record of its key, or nobody knows better */
	LOG_DEAD, /* a newer one of its key has been applied, or its key is gone and it is not the tombstone */
	LOG_GONE, /* the tombstone of a key that is gone: dead as soon as nothing older of the key is left */
};

/* Who applied the records knows which of them still count. Called in log_poll; must answer from memory. */
struct log_owner {
	enum log_verdict (*judge)(void *arg, unsigned int shard, const struct log_entry *entry);
	/* The shard's records are judged here; those of the others are left to the owners of their worker's log. The same for all of the log's life. */
	bool (*owns)(void *arg, unsigned int shard);
	/* Behind the last record of the shard that was applied. */
	int64_t (*applied)(void *arg, unsigned int shard);
	void *arg;
};

struct log_ops {
	/* Returns the position after the batch (> 0, growing), or 0 with *error set to a Kafka error code when it cannot be taken. Copies the bytes. */
	uint64_t (*append)(struct log *log, unsigned int shard, struct log_entry *entries, unsigned int n, int16_t *error, struct now now);
	/* Everything up to this position is durable. Never falls. */
	uint64_t (*durable)(struct log *log);
	/* Lets it work; returns the microsecond of its next wish (TIME_NEVER: none). Called once per poll round. */
	uint64_t (*poll)(struct log *log, struct now now);
	void (*free)(struct log *log);
	/* 0, or the Kafka error code of the failure after which nothing becomes durable any more. NULL: it cannot fail so. */
	int16_t (*failed)(struct log *log);
	/* The next three are NULL in a log that keeps nothing. */
	void (*span)(struct log *log, unsigned int shard, struct log_span *out);
	void (*read)(struct log *log, struct log_read *read);
	void (*set_owner)(struct log *log, const struct log_owner *owner);
};

struct log {
	const struct log_ops *ops;
	size_t largest; /* bytes of the longest batch that append takes; 0: it does not say */
};

/* A log that keeps nothing: appended batches become durable at the next poll. */
struct log *log_memory_new(void);

static inline uint64_t log_append(struct log *log, unsigned int shard, struct log_entry *entries, unsigned int n, int16_t *error,
				  struct now now)
{
	return log->ops->append(log, shard, entries, n, error, now);
}

static inline uint64_t log_durable(struct log *log)
{
	return log->ops->durable(log);
}

static inline uint64_t log_poll(struct log *log, struct now now)
{
	return log->ops->poll(log, now);
}

static inline int16_t log_failed(struct log *log)
{
	return log->ops->failed == NULL ? 0 : log->ops->failed(log);
}

/* False: this log keeps nothing that could be read. */
static inline bool log_span(struct log *log, unsigned int shard, struct log_span *out)
{
	if (log->ops->span == NULL)
		return false;
	log->ops->span(log, shard, out);
	return true;
}

/* False: this log keeps nothing that could be read, and `done` does not run. Every read ends before log_free: with 56 at the latest inside it. */
static inline bool log_read_start(struct log *log, struct log_read *read)
{
	if (log->ops->read == NULL)
		return false;
	log->ops->read(log, read);
	return true;
}

/* From now on the log may drop what its owner says is dead. `owner` is copied; its arg stays until log_free. */
static inline void log_set_owner(struct log *log, const struct log_owner *owner)
{
	if (log->ops->set_owner != NULL)
		log->ops->set_owner(log, owner);
}

static inline void log_free(struct log *log)
{
	log->ops->free(log);
}

#endif
