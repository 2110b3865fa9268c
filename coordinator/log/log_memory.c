/*
 * log_memory.c - the log that keeps nothing: a batch is counted, thrown away, and durable at the next poll.
 *
 * It serves tests, benchmarks and a first start without a disk; every caller sees the same order of events as with a disk log.
 */
#include <stdlib.h>

#include "muster/check.h"

#include "coordinator/log/log.h"

struct log_memory {
	struct log log;
	uint64_t appended; /* position after the last batch: records appended so far */
	uint64_t durable;
};

static struct log_memory *log_memory_of(struct log *log)
{
	return CONTAINER_OF(log, struct log_memory, log);
}

static uint64_t log_memory_append(struct log *log, unsigned int shard, struct log_entry *entries, unsigned int n, int16_t *error,
				  struct now now)
{
	struct log_memory *m = log_memory_of(log);
	CHECK(n > 0);
	for (unsigned int i = 0; i < n; i++)
		entries[i].offset = (int64_t)m->appended + i; /* of all shards together: each sees gaps */
	m->appended += n;
	return m->appended;
}

static uint64_t log_memory_durable(struct log *log)
{
	return log_memory_of(log)->durable;
}

static uint64_t log_memory_poll(struct log *log, struct now now)
{
	struct log_memory *m = log_memory_of(log);
	m->durable = m->appended;
	return TIME_NEVER;
}

static void log_memory_free(struct log *log)
{
	free(log_memory_of(log));
}

static const struct log_ops log_memory_ops = {log_memory_append, log_memory_durable, log_memory_poll, log_memory_free, NULL};

struct log *log_memory_new(void)
{
	struct log_memory *m = calloc(1, sizeof(*m));
	if (m == NULL)
		return NULL;
	m->log.ops = &log_memory_ops;
	return &m->log;
}
