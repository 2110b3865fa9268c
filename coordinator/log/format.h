/*
 * format.h - every byte of the log on disk.
 *
 * A folder holds
 *
 *   meta                          what can never change: the log's id and the number of shards
 *   <start>-<worker>-<number>.seg  segments: 8, 4 and 8 hex digits, e.g. 00000002-0000-0000000a.seg
 *   <start>-<worker>-<number>.cln  cleaned files: what of a row of older files still counts
 *   <name>.new                    a file that was not finished; removed at the next start
 *   <segment>.damaged, <segment>-<place>.damaged   what a start with log.recover=skip.damaged took out of the log, as it was (mend.h)
 *   quarantine-<shard>.log        records that no group could be made of: Kafka's record batches one after the other, nothing around them
 *
 * `start` counts the starts of the program on this log. No start writes into the segments of an earlier one, except for the END block that
 * recovery puts behind the last good block. In one start a shard belongs to one worker. So the records of a shard stand in the order
 * of (start, worker, number), whichever workers wrote them, and any number of workers can take the log over.
 *
 *   segment:   HEAD block | BATCHES block | BATCHES block | ... | END block | what an older write left, or zeros
 *              0            4096            multiples of 4096 ...                                     fixed size
 *   cleaned:   HEAD block | SHARDS block  | BATCHES block | ... | END block
 *
 * All integers are big-endian. A block stands at a multiple of 4096 and is a multiple of 4096 long:
 *
 *    @  size
 *    0    4   magic 0x4d4c4231 ("MLB1")
 *    4    4   CRC-32C of bytes 8 up to the end of the payload
 *    8    8   salt, the same for all blocks of one file and random for each: what an older use of the place left never fits
 *   16    8   sequence: 0 for HEAD, then counting
 *   24    8   safe: when this block was written, the blocks below this sequence had been flushed; 0: nothing is known
 *   32    2   type: 1 HEAD, 2 BATCHES, 3 END, 4 META, 5 SHARDS, 6 LOST
 *   34    2   0
 *   36    4   length of the payload
 *   40   24   0
 *   64        payload, then zeros
 *
 *   HEAD and META payload          BATCHES payload: any number of           SHARDS payload
 *    0   4   format version 1       0   4   shard                            0   4   number of shards, then for each
 *    4  16   id of the log          4   4   length of the batch                  4   shard
 *   20   4   number of shards       8       a Kafka record batch                 8   log start offset
 *   24   8   start                                                               8   end: the offset behind the last record of what it covers
 *   32   4   worker                END payload: empty                            4   number of leader epochs, then for each
 *   36   8   number of the file                                                      4   epoch
 *   44   8   length of the file                                                      8   its first offset
 *   (META: the last four are 0)                                             then zeros
 *   HEAD of a cleaned file only:
 *   52  20   start, worker, number of the first segment that it covers
 *   72  20   ... of the last one
 *
 *   LOST payload, in the place of damaged blocks that a start was told to do without: 8 bytes, how many blocks stood there, then zeros over their
 *   whole place. The block behind it has the sequence of this one plus that number.
 *
 * The batch is Kafka's format v2, uncompressed, with the shard's own offsets and leader epoch (batch.h). One batch is all records of one request.
 *
 * Reading a segment ends at END. Where a block is not good, `safe` of the good blocks behind it tells what happened: if one of them
 * says that the missing one had been flushed, data is damaged; if none does, nobody was told that the missing one is durable, and it is the torn
 * tail of a crash. A segment that has a successor of the same start and worker, or of a later start, must reach END. A cleaned file must reach END.
 *
 * Cleaning. Batches of cleaned files keep base offset, last offset delta, epoch, times and producer; records that do not count any more are
 * left out of them, and batches without records are left out altogether, so a shard's offsets have gaps. Where the shard's offsets and epochs had come to
 * is in SHARDS, for the last records may be gone. A cleaned file is written as <name>.new, its HEAD last, all of it durable, then renamed, and only
 * then are the files that it covers removed:
 *
 *   1.seg 2.seg 3.seg 4.seg       1.seg 2.seg 3.seg 4.seg        (2.seg) 3.seg 4.seg         3.seg 4.seg
 *                          -->    1.cln.new               -->    1.cln [1..2]         -->    1.cln [1..2]
 *
 * Which file counts, whatever a crash left: for each shard that SHARDS of a cleaned file names, the file stands in place of every segment between
 * the first and the last one that it covers, and of every older cleaned file (a smaller (start, number) of its name) whose row lies within its own. A
 * file none of whose shards count any more is removed unread. Rows of cleaned files that name a common shard lie within each other or apart. Files are read in the
 * order of the first segment that they cover. With several workers each cleans its own shards of old files, and who names a file's last shard removes it.
 */
#ifndef MUSTER_LOG_FORMAT_H
#define MUSTER_LOG_FORMAT_H

#include "muster/base.h"

#define FORMAT_VERSION 1
#define FORMAT_ALIGN 4096u

#define BLOCK_MAGIC 0x4d4c4231u
#define BLOCK_HEAD 64u

enum block_type { BLOCK_FIRST = 1, BLOCK_BATCHES = 2, BLOCK_END = 3, BLOCK_META = 4, BLOCK_SHARDS = 5, BLOCK_LOST = 6 };

#define ENTRY_HEAD 8u /* shard and length before each batch of a block */

#define FORMAT_META "meta"
#define FORMAT_NEW ".new"
#define FORMAT_SEGMENT ".seg"
#define FORMAT_CLEAN ".cln"
#define FORMAT_NAME_MAX 64

#endif
