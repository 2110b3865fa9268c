/*
 * format.h - every byte of the log on disk.
 *
 * A folder holds
 *
 *   meta                          what can never change: the log's id and the number of shards
 *   <start>-<worker>-<number>.seg  segments: 8, 4 and 8 hex digits, e.g. 00000002-0000-0000000a.seg
 *   <name>.new                    a file that was not finished; removed at the next start
 *
 * `start` counts the starts of the program on this log. No start writes into the segments of an earlier one, except for the END block that
 * recovery puts behind the last good block. In one start a shard belongs to one worker. So the records of a shard stand in the order
 * of (start, number), whichever workers wrote them, and any number of workers can take the log over.
 *
 *   segment:   HEAD block | BATCHES block | BATCHES block | ... | END block | what an older write left, or zeros
 *              0            4096            multiples of 4096 ...                                     fixed size
 *
 * All integers are big-endian. A block stands at a multiple of 4096 and is a multiple of 4096 long:
 *
 *    @  size
 *    0    4   magic 0x4d4c4231 ("MLB1")
 *    4    4   CRC-32C of bytes 8 up to the end of the payload
 *    8    8   salt, the same for all blocks of one segment and random for each: what an older use of the place left never fits
 *   16    8   sequence: 0 for HEAD, then counting
 *   24    8   safe: when this block was written, the blocks below this sequence had been flushed; 0: nothing is known
 *   32    2   type: 1 HEAD, 2 BATCHES, 3 END, 4 META
 *   34    2   0
 *   36    4   length of the payload
 *   40   24   0
 *   64        payload, then zeros
 *
 *   HEAD and META payload          BATCHES payload: any number of           END payload: empty
 *    0   4   format version 1       0   4   shard
 *    4  16   id of the log          4   4   length of the batch
 *   20   4   number of shards       8       a Kafka record batch
 *   24   8   start
 *   32   4   worker
 *   36   8   number of the segment
 *   44   8   length of the segment
 *   (META: the last four are 0)
 *
 * The batch is Kafka's format v2, uncompressed, with the shard's own offsets and leader epoch (batch.h). One batch is all records of one request.
 *
 * Reading a segment ends at END. Where a block is not good, `safe` of the good blocks behind it tells what happened: if one of them
 * says that the missing one had been flushed, data is damaged; if none does, nobody was told that the missing one is durable, and it is the torn
 * tail of a crash. A segment that has a successor of the same start and worker, or of a later start, must reach END.
 */
#ifndef MUSTER_LOG_FORMAT_H
#define MUSTER_LOG_FORMAT_H

#include "muster/base.h"

#define FORMAT_VERSION 1
#define FORMAT_ALIGN 4096u

#define BLOCK_MAGIC 0x4d4c4231u
#define BLOCK_HEAD 64u

enum block_type { BLOCK_FIRST = 1, BLOCK_BATCHES = 2, BLOCK_END = 3, BLOCK_META = 4 };

#define ENTRY_HEAD 8u /* shard and length before each batch of a block */

#define FORMAT_META "meta"
#define FORMAT_NEW ".new"
#define FORMAT_NAME_MAX 64

#endif
