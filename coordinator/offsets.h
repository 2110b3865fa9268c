/*
 * offsets.h - the committed offsets of one shard: group -> topic -> partition.
 *
 * Kept apart from the groups: an offset survives its group's tombstone, and a record of an offset may stand in the log before that of its
 * group. Only durable values are here.
 *
 * Two tables (groups, topics of a group) and an index in each topic give one look-up per level; walking goes in the order of the first commits.
 */
#ifndef MUSTER_OFFSETS_H
#define MUSTER_OFFSETS_H

#include "coordinator/group/hash.h"
#include "coordinator/group/record.h"
#include "coordinator/group/table.h"

struct offsets {
	struct hash_key key;
	struct table groups;
	struct table topics;
	struct offset_topic *last; /* that was asked for; NULL: none */
	size_t count;		   /* of offsets */
};

/* All zero is empty; only the key must be set. */
void offsets_init(struct offsets *o, const struct hash_key *key);
void offsets_fini(struct offsets *o);

/* Stores a value, whose record stands at offset `record` of the log; copies. False: no memory, nothing changed. */
bool offsets_put(struct offsets *o, struct bytes group, struct bytes topic, int32_t partition, const struct record_offset *value, int64_t record);
/* That offset in the log; -1: nothing committed. */
int64_t offsets_record(struct offsets *o, struct bytes group, struct bytes topic, int32_t partition);
/* Forgets one offset; does nothing when there is none. */
void offsets_remove(struct offsets *o, struct bytes group, struct bytes topic, int32_t partition);
/* *value's metadata is valid until the next change. False: nothing committed. */
bool offsets_get(struct offsets *o, struct bytes group, struct bytes topic, int32_t partition, struct record_offset *value);
/* Every offset of the group, topic by topic, in the order of the first commits. */
void offsets_each(struct offsets *o, struct bytes group,
		  void (*visit)(void *arg, struct bytes topic, int32_t partition, const struct record_offset *value), void *arg);
/* Every group that has offsets. */
void offsets_each_group(struct offsets *o, void (*visit)(void *arg, struct bytes group), void *arg);

#endif
