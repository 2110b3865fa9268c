/*
 * meta.h - the meta file: the log's id and its number of shards.
 */
#ifndef MUSTER_LOG_META_H
#define MUSTER_LOG_META_H

#include "coordinator/log/disk.h"

/* Reads it: true, the id in `log`. False: one line in err, or *missing. */
bool meta_read(struct disk *disk, unsigned int shards, uint8_t log[16], bool *missing, char *err, size_t err_len);
/* Makes it. False: one line in err. */
bool meta_make(struct disk *disk, unsigned int shards, const uint8_t log[16], char *err, size_t err_len);

#endif
