/*
 * mend.h - what a start with log.recover=skip.damaged leaves behind, so that the next start finds a whole log: the damaged bytes in a file of their own, and
 * something good in their place. A cut on the way leaves the damage as it was.
 */
#ifndef MUSTER_LOG_MEND_H
#define MUSTER_LOG_MEND_H

#include "coordinator/log/segment.h"
#include "coordinator/log/disk.h"

/*
 * `bytes` damaged bytes at r->at, behind which a good block follows, become one LOST block for `blocks` blocks. The image changes like the file.
 * 0 or a negative errno.
 */
int64_t mend_hole(struct disk *disk, int file, const char *name, const struct segment_reader *r, uint8_t *image, uint64_t blocks, size_t bytes);
/* A segment that cannot be read, or is not there (`damaged` false), is replaced by one without batches. 0 or a negative errno. */
int64_t mend_segment(struct disk *disk, const struct block_id *id, bool damaged);

#endif
