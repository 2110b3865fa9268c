/*
 * fake_shard.h - stands in for the group engine: it parks and answers when the test says so, and remembers what it was given.
 */
#ifndef TEST_FAKE_SHARD_H
#define TEST_FAKE_SHARD_H

#include "coordinator/shard.h"
#include "coordinator/wire/api.h"

#define FAKE_PARKED 256
#define FAKE_OFFSETS 16

struct fake {
	struct request *parked[FAKE_PARKED]; /* joins, syncs and commits, in order; NULL where dropped or answered */
	unsigned int parked_len;
	unsigned int dropped;	   /* calls of on_drop */
	unsigned int heartbeats, leaves;
	unsigned int ticks;
	bool durable; /* barriers pass at once */
	struct shard_barrier *barriers;
	unsigned int cancelled;
	struct {
		struct bytes group, topic;
		int32_t partition;
		struct offset_value value;
	} offsets[FAKE_OFFSETS];
	unsigned int offsets_len;
	/* the last commit */
	char commit_topic[64];
	int32_t commit_left; /* partitions that it was to decide about */
	int64_t commit_offset;
};

/* The one of this process: Criterion runs each test in its own. */
extern struct fake fake;

/* Answers the i-th parked request with an error code. */
void fake_answer(unsigned int i, int16_t error, struct now now);
/* Lets all barriers pass that wait. */
void fake_pass(struct now now);
void fake_offset(const char *group, const char *topic, int32_t partition, int64_t offset, const char *metadata);

#endif
