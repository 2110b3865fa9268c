/*
 * clean_batch.h - one batch on its way through the cleaner: record by record, what counts is copied.
 */
#ifndef MUSTER_LOG_CLEAN_BATCH_H
#define MUSTER_LOG_CLEAN_BATCH_H

#include "coordinator/log/cleaner.h"

/*
 * Takes c->batch_bytes; the block that gathers has room for it. False: there is no more to do about it. It is of another worker's shard, or it was copied as
 * it is, for nobody here may take it apart: compressed, transactional, control and unreadable batches are kept.
 */
bool clean_batch_begin(struct cleaner *c);
/* Judges records and counts *budget down, to the end of the batch at the most, which c->in_batch tells. */
void clean_batch_go_on(struct cleaner *c, unsigned int *budget, struct now now);

#endif
