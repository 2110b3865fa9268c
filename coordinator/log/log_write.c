/*
 * log_write.c - blocks of the current segment, one on its way at a time:
 *
 *   IDLE -> BLOCK -> IDLE           a block is being written
 *   IDLE -> FLUSH -> SEAL -> IDLE   the segment ends: what is only written is flushed, END follows, then the next segment becomes the current one;
 *                                   when every block was durable by itself, FLUSH is left out
 */
#include <errno.h>
#include <string.h>

#include "muster/check.h"

#include "coordinator/log/batch.h"
#include "coordinator/log/log_disk_own.h"
#include "coordinator/log/segment.h"

static bool no_space(int64_t result)
{
	return result == -ENOSPC || result == -EDQUOT;
}

static void io_fail(struct log_disk *d)
{
	d->status.failed = true;
	log_say_line(d, "log: FAILED: writing %s: %s; nothing is acknowledged any more until the disk is repaired and the program restarted", d->current.name,
	    strerror((int)-d->io_op.result));
}

static void io_write(struct log_disk *d, enum io_state state, bool durable, uint8_t *block, size_t len)
{
	d->io = state;
	d->io_op = (struct disk_op){
		.verb = durable ? DISK_WRITE_DURABLE : DISK_WRITE,
		.file = d->current.file,
		.buf = block,
		.len = len,
		.offset = d->current.at,
	};
	disk_submit(d->cfg.disk, &d->io_op);
}

static void io_write_block(struct log_disk *d)
{
	bool durable = d->cfg.flush == LOG_FLUSH_DURABLE;
	struct buffer empty = d->writing;
	d->writing = d->filling;
	d->filling = empty;
	d->filling.len = 0;
	struct segment *s = &d->current;
	struct block head = {BLOCK_BATCHES, s->salt, s->sequence, durable ? s->sequence : 0, (uint32_t)d->writing.len};
	block_seal(d->writing.p, &head);
	io_write(d, IO_BLOCK, durable, d->writing.p, block_bytes(d->writing.len));
	s->at += block_bytes(d->writing.len);
	s->sequence++;
}

static void io_write_end(struct log_disk *d)
{
	struct segment *s = &d->current;
	struct block end = {BLOCK_END, s->salt, s->sequence, s->sequence, 0};
	block_seal(d->end_block, &end);
	io_write(d, IO_SEAL, true, d->end_block, block_bytes(0));
}

static void io_end_segment(struct log_disk *d)
{
	if (d->cfg.flush == LOG_FLUSH_DURABLE) {
		io_write_end(d);
		return;
	}
	d->io = IO_FLUSH;
	d->io_op = (struct disk_op){.verb = DISK_FLUSH, .file = d->current.file};
	disk_submit(d->cfg.disk, &d->io_op);
}

void log_write_next_segment(struct log_disk *d)
{
	d->current = d->next;
	d->next.info = NULL;
	d->make = MAKE_NONE;
	bool added = files_add(&d->files, d->current.info);
	CHECK(added); /* there was room: make_create */
}

/* What the block holds is durable: readers may see it. */
static void io_block_done(struct log_disk *d)
{
	struct reader rest = reader_of(d->writing.p + BLOCK_HEAD, d->writing.len);
	struct bytes bytes;
	struct batch_span span;
	uint32_t shard;
	while (segment_batch(&rest, &shard, &bytes)) {
		CHECK(batch_peek(&span, bytes));
		file_note(d->current.info, shard, span.base_offset, span.last_offset, d->io_op.offset);
		d->shards[shard].high_watermark = span.last_offset + 1;
	}
	d->current.info->end = d->current.at;
	d->durable = d->writing.position;
	d->status.flushes++;
}

/* A block of the current segment found no space on the disk. It is written again as a whole, until it does. False: not now. */
static bool io_again(struct log_disk *d, struct now now)
{
	if (d->stalled_us == 0) {
		d->stalled_us = now.us + LOG_RETRY_US;
		d->make_error = (int)-d->io_op.result;
		log_refuse_full(d);
	}
	if (now.us < d->stalled_us)
		return false;
	d->stalled_us = now.us + LOG_RETRY_US;
	disk_submit(d->cfg.disk, &d->io_op);
	return false;
}

/* A completed operation takes effect. False: one is still on its way. */
static bool io_finish(struct log_disk *d, struct now now)
{
	if (d->io_op.pending)
		return false;
	if ((d->io == IO_BLOCK || d->io == IO_SEAL) && no_space(d->io_op.result) && !d->closing)
		return io_again(d, now);
	if (d->stalled_us != 0) {
		d->stalled_us = 0;
		d->make_error = d->make == MAKE_READY ? 0 : d->make_error;
	}
	if (d->io != IO_IDLE && d->io_op.result < 0) {
		d->io = IO_IDLE;
		io_fail(d);
	} else if (d->io == IO_BLOCK) {
		io_block_done(d);
	} else if (d->io == IO_FLUSH) {
		io_write_end(d);
		return false;
	} else if (d->io == IO_SEAL) {
		d->current.info->bytes = d->current.info->charge = d->current.at + block_bytes(0);
		d->current.info->open = false;
		d->status.bytes -= d->cfg.segment_bytes - d->current.info->bytes;
		d->close_op = (struct disk_op){.verb = DISK_TRIM, .file = d->current.file, .offset = d->current.at + block_bytes(0)};
		disk_submit(d->cfg.disk, &d->close_op);
		log_write_next_segment(d);
		cleaner_look(&d->cleaner);
	}
	d->io = IO_IDLE;
	return true;
}

bool log_close_busy(const struct log_disk *d)
{
	return d->close_op.pending || d->close_op.verb == DISK_TRIM;
}

void log_close_step(struct log_disk *d)
{
	if (d->close_op.pending || d->close_op.verb != DISK_TRIM)
		return;
	d->close_op.verb = DISK_CLOSE;
	disk_submit(d->cfg.disk, &d->close_op);
}

void log_write_step(struct log_disk *d, struct now now)
{
	if (!io_finish(d, now) || d->status.failed || d->filling.len == 0)
		return;
	if (log_segment_fits(d, d->current.at, d->filling.len))
		io_write_block(d);
	else if (!log_close_busy(d))
		io_end_segment(d);
}

bool log_write_busy(const struct log_disk *d)
{
	return d->io_op.pending || (d->filling.len > 0 && !d->status.failed);
}
