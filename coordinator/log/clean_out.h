/*
 * clean_out.h - the file that a cleaning writes: reserved in advance, filled batch by batch, and real only after its rename.
 *
 *   NONE -> CREATE -> READY -> OPEN <-> BLOCK
 *                               OPEN -> LAST -> END -> FRONT -> TRIM -> CLOSE -> RENAME -> DONE -> NONE
 *   any failure -> UNDO (close) -> UNDO (remove) -> FAILED -> NONE
 *
 * That it is READY all the time is the cleaner's reserve on a full disk: what is reserved already can be filled.
 */
#ifndef MUSTER_LOG_CLEAN_OUT_H
#define MUSTER_LOG_CLEAN_OUT_H

#include "coordinator/log/disk.h"
#include "coordinator/log/files.h"

#define CLEAN_BLOCK (128u * 1024) /* a block is written when it has gathered so much */

enum clean_out_state {
	OUT_NONE, OUT_CREATE, OUT_READY, OUT_OPEN, OUT_BLOCK, OUT_LAST, OUT_END, OUT_FRONT, OUT_TRIM, OUT_CLOSE, OUT_RENAME, OUT_DONE, OUT_UNDO,
	OUT_FAILED,
};

struct clean_out {
	struct disk *disk;
	struct disk_op op;
	enum clean_out_state state;
	bool opened;
	bool renamed;	   /* FAILED, and it may have its name all the same: nothing may be cleaned any more before the next start */
	int error;	   /* errno of the last failure */
	struct block_id id; /* log, shards, start, worker; number: of this file */
	uint64_t random;
	uint64_t salt, sequence, at;
	uint64_t capacity; /* reserved */
	struct block_cover cover;
	struct log_file *info;
	uint8_t *buf; /* aligned; a block that gathers: head, payload */
	size_t cap, len;
	uint8_t *front; /* HEAD and SHARDS; aligned */
	size_t front_cap, front_len; /* front_len: reserved at the beginning of the file */
	uint8_t *end;
};

/* False: no memory. */
bool clean_out_init(struct clean_out *o, struct disk *disk, const struct block_id *id, uint64_t random);
/* Nothing may be pending. An unfinished file stays on the disk; the next start removes it. */
void clean_out_fini(struct clean_out *o);

/* NONE -> CREATE: reserves so many bytes. */
void clean_out_create(struct clean_out *o, uint64_t capacity);
/* READY -> OPEN: `shards_payload` bytes are kept free for SHARDS. False: no memory. */
bool clean_out_begin(struct clean_out *o, size_t shards_payload);
/* Room for a batch of that length in the block that gathers. OPEN only. False: no memory. */
bool clean_out_room(struct clean_out *o, size_t batch);
/* True: the block should be written before `batch` more bytes go into it. */
bool clean_out_full(const struct clean_out *o, size_t batch);
/* OPEN -> BLOCK -> OPEN. */
void clean_out_flush(struct clean_out *o);
/* OPEN -> ... -> DONE. The payload of SHARDS stands in clean_out_shards by then. */
void clean_out_finish(struct clean_out *o, const struct block_cover *cover);
/* Where the payload of SHARDS goes; clean_out_begin said how long. */
struct writer clean_out_shards(struct clean_out *o);
/* READY, OPEN -> UNDO -> FAILED. */
void clean_out_abandon(struct clean_out *o);
/* OPEN -> READY: what was written does not count. No block is on its way. */
void clean_out_reset(struct clean_out *o);
/* Goes on after a completed operation. True: the disk is at work. */
bool clean_out_step(struct clean_out *o);
/* DONE -> NONE: the finished file. FAILED -> NONE: NULL. */
struct log_file *clean_out_take(struct clean_out *o);

/* Bytes that a file may need for what stands in `bytes` bytes of others, besides the front. */
static inline uint64_t clean_out_worst(uint64_t bytes)
{
	return bytes + bytes / 16 + 3 * FORMAT_ALIGN;
}

#endif
