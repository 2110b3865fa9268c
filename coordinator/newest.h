/*
 * newest.h - which record of a key is the newest that the shard has applied. The log asks before it drops a record (log.h, struct log_owner).
 *
 * Committed offsets and groups remember the log offset of their own record. Every other key, of record types that the shard does not speak as well, is a
 * node of a table under a keyed hash of 128 bits: 40 bytes a key, and no two keys meet.
 */
#ifndef MUSTER_NEWEST_H
#define MUSTER_NEWEST_H

#include "coordinator/group/hash.h"
#include "coordinator/group/record.h"
#include "coordinator/group/table.h"
#include "coordinator/log/log.h"

struct newest {
	struct hash_key key;
	struct table others;
	int64_t applied; /* behind the last record that was */
	bool unsure;	 /* memory ran out: a key that is not here may have a record that counts */
};

struct shard;

void newest_init(struct newest *n, const struct hash_key *key);
void newest_fini(struct newest *n);
/* The entry was given to shard_replay, which said `ok`. `key` is NULL when it cannot be read. */
void newest_note(struct shard *shard, const struct record_key *key, const struct log_entry *entry, bool ok);

#endif
