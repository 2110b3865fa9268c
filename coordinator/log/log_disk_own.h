/*
 * log_disk_own.h - what the files of the log on disk share: log_disk.c (appends, polls, life), log_make.c (the next segment), log_write.c (blocks).
 *
 * Invariants:
 *  1. An append is taken only if its block fits into what is reserved on the disk already: the current segment, or the next one when that is READY.
 *     So a full disk refuses appends and never fails a write of what was taken. While there is no next segment, the last reserve_bytes of the
 *     current one are for tombstones: what frees space must go on.
 *  2. At most one block is on its way, and nothing is written to a segment before END of the one before is durable.
 *  3. A failed write is final: nothing is written or acknowledged after it, for nobody knows what the disk kept. Except for lack of space, on file systems
 *     that reserve nothing: then the same block is written again, all of it, until there is room; nothing is taken meanwhile.
 *  4. The cleaner gets its reserve before a segment is made, once space is short.
 */
#ifndef MUSTER_LOG_DISK_OWN_H
#define MUSTER_LOG_DISK_OWN_H

#include "muster/base.h"

#include "coordinator/log/block.h"
#include "coordinator/log/log_disk.h"
#include "coordinator/log/log_reader.h"

#define LOG_RETRY_US US_PER_S /* between two attempts to make a segment, or to write a block that found no space */

enum io_state { IO_IDLE, IO_BLOCK, IO_FLUSH, IO_SEAL };
enum make_state { MAKE_NONE, MAKE_SPACE, MAKE_CREATE, MAKE_HEAD, MAKE_RENAME, MAKE_READY, MAKE_UNDO, MAKE_WAIT };

struct segment {
	int file;
	uint64_t number, salt;
	uint64_t at;	   /* where the next block goes */
	uint64_t sequence; /* of the next block */
	char name[FORMAT_NAME_MAX];
	struct log_file *info; /* once it is ready; the log's list has it once it is the current one */
};

struct buffer {
	uint8_t *p; /* aligned; a block: head, payload */
	size_t cap;
	size_t len;	   /* of the payload */
	uint64_t position; /* after its last batch */
};

struct log_disk {
	struct log log;
	struct log_disk_config cfg;
	struct log_shard *shards;
	struct log_files files;
	struct log_reader reader;
	struct cleaner cleaner;
	uint8_t id[16];
	uint64_t start;
	uint64_t appended, durable; /* positions: records so far */
	struct buffer filling, writing;
	struct segment current, next;
	enum io_state io;
	enum make_state make;
	struct disk_op io_op, make_op, close_op;
	uint8_t *end_block, *head_block;
	uint64_t retry_us;
	uint64_t stalled_us; /* when the block that found no space is written again; 0: none did */
	int make_error; /* why the last attempt to make a segment failed */
	struct log_disk_status status;
	bool begun, closing;
};

/* Hands a line to the log's owner. */
PRINTF_LIKE(2, 3) void log_say_line(const struct log_disk *d, const char *format, ...);
/* An append was refused, or a block found no room: said once, until there is room again. */
void log_refuse_full(struct log_disk *d);

/* ---- log_make.c: the next segment ---- */

void log_make_step(struct log_disk *d, struct now now);
bool log_make_busy(const struct log_disk *d);

/* ---- log_write.c: blocks of the current segment ---- */

void log_write_step(struct log_disk *d, struct now now);
/* Something is on its way, or waits for it. */
bool log_write_busy(const struct log_disk *d);
/* The segment made in advance becomes the current one. */
void log_write_next_segment(struct log_disk *d);
/* The segment before the current one: TRIM, then CLOSE. */
void log_close_step(struct log_disk *d);
bool log_close_busy(const struct log_disk *d);

/* Spreads a counter over 64 bits. */
static inline uint64_t log_mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

static inline bool log_segment_fits(const struct log_disk *d, uint64_t at, size_t payload)
{
	return at + block_bytes(payload) + block_bytes(0) <= d->cfg.segment_bytes;
}

#endif
