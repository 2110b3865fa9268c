/*
 * quarantine.h - records that recovery could not use, one file per shard (format.h): kept as they are, to be looked at with Kafka's own tools, or imported
 * again by a program that understands them.
 *
 * Written with plain system calls by the threads that load, each for another shard. A start that sets something of a shard aside begins its file anew.
 */
#ifndef MUSTER_LOG_QUARANTINE_H
#define MUSTER_LOG_QUARANTINE_H

#include "coordinator/log/batch.h"

struct quarantine;

/* `folder` outlives it. NULL: no memory. */
struct quarantine *quarantine_new(const char *folder, unsigned int shards);
/* One record of `batch`, or the whole batch (record NULL), whose bytes `whole` are. False: errno says why it is not kept. */
bool quarantine_add(struct quarantine *q, unsigned int shard, const struct batch *batch, const struct batch_record *record, struct bytes whole);
/* What was added reaches the disk first. */
void quarantine_free(struct quarantine *q);

#endif
