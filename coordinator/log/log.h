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
};

struct log_ops {
	/* Returns the position after the batch (> 0, growing), or 0 with *error set to a Kafka error code when it cannot be taken. Copies the bytes. */
	uint64_t (*append)(struct log *log, unsigned int shard, const struct log_entry *entries, unsigned int n, int16_t *error, struct now now);
	/* Everything up to this position is durable. Never falls. */
	uint64_t (*durable)(struct log *log);
	/* Lets it work; returns the microsecond of its next wish (TIME_NEVER: none). Called once per poll round. */
	uint64_t (*poll)(struct log *log, struct now now);
	void (*free)(struct log *log);
	/* 0, or the Kafka error code of the failure after which nothing becomes durable any more. NULL: it cannot fail so. */
	int16_t (*failed)(struct log *log);
};

struct log {
	const struct log_ops *ops;
};

/* A log that keeps nothing: appended batches become durable at the next poll. */
struct log *log_memory_new(void);

static inline uint64_t log_append(struct log *log, unsigned int shard, const struct log_entry *entries, unsigned int n, int16_t *error,
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

static inline void log_free(struct log *log)
{
	log->ops->free(log);
}

#endif
