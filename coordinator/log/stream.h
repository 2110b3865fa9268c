/*
 * stream.h - the blocks of one file, one after the other, through disk_ops in slices, for a worker that must not wait.
 *
 *   stream_open -> stream_next: WAIT ... BLOCK, BLOCK, WAIT ..., END -> stream_close -> idle
 *
 * A slice is STREAM_SLICE bytes, or one block where that is longer. Nothing is trusted: a block counts when its checksum and the file's salt fit.
 */
#ifndef MUSTER_LOG_STREAM_H
#define MUSTER_LOG_STREAM_H

#include "coordinator/log/block.h"
#include "coordinator/log/disk.h"

#define STREAM_SLICE (64u * 1024)

enum stream_state { STREAM_IDLE, STREAM_OPENING, STREAM_READING, STREAM_HOLDING, STREAM_CLOSING };

enum stream_got {
	STREAM_WAIT,   /* the disk is at work: ask again after a disk_poll */
	STREAM_BLOCK,  /* a BATCHES block */
	STREAM_END,    /* the end of what was to be read */
	STREAM_GONE,   /* there is no such file any more */
	STREAM_FAILED, /* a block is not good, or the disk said no: stream->error */
};

struct stream {
	struct disk *disk;
	struct disk_op op;
	enum stream_state state;
	bool opened;
	int file;
	uint64_t salt;
	uint64_t at;	/* of the block that comes next */
	uint64_t limit; /* nothing at or behind it is read */
	uint8_t *buf;	/* aligned */
	size_t cap;
	uint64_t buf_at; /* where buf stands in the file */
	size_t len;	 /* good bytes in buf */
	int error;	 /* errno; EBADMSG: a block is not good */
};

void stream_init(struct stream *s, struct disk *disk);
/* Idle, or after disk_wait until it is. */
void stream_fini(struct stream *s);
/* Begins with the block at `at`; the stream is idle. */
void stream_open(struct stream *s, const char *name, uint64_t salt, uint64_t at, uint64_t limit);
/* *payload is valid until the next call, *at is where its block stands. */
enum stream_got stream_next(struct stream *s, struct bytes *payload, uint64_t *at);
/* Ends it; stream_busy says until when. */
void stream_close(struct stream *s);
bool stream_busy(struct stream *s);

#endif
