/*
 * log_make.c - the next segment of the log, made in advance:
 *
 *   NONE -> SPACE -> CREATE -> HEAD -> RENAME -> READY
 *            any failure -> UNDO -> WAIT (a second) -> NONE
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "coordinator/log/log_disk_own.h"
#include "coordinator/log/segment.h"

static void make_submit(struct log_disk *d, enum make_state state, enum disk_verb verb)
{
	d->make = state;
	d->make_op.verb = verb;
	disk_submit(d->cfg.disk, &d->make_op);
}

/* The finished file's entry in the index. */
static struct log_file *make_info(const struct log_disk *d)
{
	struct block_place place = {d->start, d->cfg.worker, d->next.number};
	struct log_file *f = file_new(d->cfg.shards);
	if (f == NULL)
		return NULL;
	memcpy(f->name, d->next.name, sizeof(f->name));
	f->cover = (struct block_cover){place, place};
	f->salt = d->next.salt;
	f->bytes = f->charge = d->cfg.segment_bytes;
	f->end = FORMAT_ALIGN;
	f->open = true;
	return f;
}

/* With what the cleaner has to get first. */
static uint64_t make_wants(const struct log_disk *d)
{
	uint64_t wanted = d->cfg.segment_bytes;
	if (d->begun)
		cleaner_lacks(&d->cleaner, &wanted);
	return wanted;
}

static void make_begin(struct log_disk *d)
{
	if (d->status.bytes + make_wants(d) > d->cfg.total_bytes) {
		d->make_error = EDQUOT;
		d->make = MAKE_WAIT;
		return;
	}
	d->make_op = (struct disk_op){.verb = DISK_SPACE};
	make_submit(d, MAKE_SPACE, DISK_SPACE);
}

static void make_create(struct log_disk *d)
{
	struct segment *next = &d->next;
	if (d->make_op.result >= 0 && (uint64_t)d->make_op.result < make_wants(d) + (d->begun ? cleaner_reserving(&d->cleaner) : 0)) {
		d->make_error = ENOSPC;
		d->make = MAKE_WAIT;
		return;
	}
	*next = (struct segment){.number = d->current.number + 1, .at = FORMAT_ALIGN, .sequence = 1};
	next->salt = log_mix(d->cfg.random + log_mix(d->start << 32 ^ next->number) + d->cfg.worker);
	segment_name(next->name, d->start, d->cfg.worker, next->number);
	next->info = files_reserve(&d->files) ? make_info(d) : NULL;
	if (next->info == NULL) {
		d->make_error = ENOMEM;
		d->make = MAKE_WAIT;
		return;
	}
	d->make_op = (struct disk_op){.len = d->cfg.segment_bytes};
	snprintf(d->make_op.name, sizeof(d->make_op.name), "%.*s%s", (int)(FORMAT_NAME_MAX - sizeof(FORMAT_NEW)), next->name, FORMAT_NEW);
	snprintf(d->make_op.to, sizeof(d->make_op.to), "%s", next->name);
	make_submit(d, MAKE_CREATE, DISK_CREATE);
}

static void make_head(struct log_disk *d)
{
	struct block_id id = {.shards = d->cfg.shards, .start = d->start, .worker = d->cfg.worker, .number = d->next.number,
			      .bytes = d->cfg.segment_bytes};
	struct block head = {.type = BLOCK_FIRST, .salt = d->next.salt, .length = BLOCK_ID_BYTES};
	d->next.file = d->make_op.file;
	memcpy(id.log, d->id, sizeof(id.log));
	block_id_write(d->head_block + BLOCK_HEAD, FORMAT_ALIGN - BLOCK_HEAD, &id);
	block_seal(d->head_block, &head);
	d->make_op.buf = d->head_block;
	d->make_op.len = FORMAT_ALIGN;
	d->make_op.offset = 0;
	make_submit(d, MAKE_HEAD, DISK_WRITE_DURABLE);
}

/* The unfinished file is given back, so that what it holds of a full disk is free for the next attempt. */
static void make_failed(struct log_disk *d)
{
	d->make_error = (int)-d->make_op.result;
	file_free(d->next.info);
	d->next.info = NULL;
	if (d->make == MAKE_CREATE) {
		d->make = MAKE_WAIT;
		return;
	}
	make_submit(d, MAKE_UNDO, DISK_CLOSE);
}

void log_make_step(struct log_disk *d, struct now now)
{
	if (d->make_op.pending)
		return;
	bool ok = d->make_op.result >= 0;
	switch (d->make) {
	case MAKE_NONE:
		if (!d->closing && !d->status.failed)
			make_begin(d);
		break;
	case MAKE_SPACE:
		make_create(d);
		break;
	case MAKE_CREATE:
		ok ? make_head(d) : make_failed(d);
		break;
	case MAKE_HEAD:
		ok ? make_submit(d, MAKE_RENAME, DISK_RENAME) : make_failed(d);
		break;
	case MAKE_RENAME:
		if (!ok) {
			make_failed(d);
			break;
		}
		d->make = MAKE_READY;
		d->make_error = 0;
		d->status.bytes += d->cfg.segment_bytes;
		break;
	case MAKE_UNDO:
		if (d->make_op.verb == DISK_CLOSE)
			make_submit(d, MAKE_UNDO, DISK_REMOVE);
		else
			d->make = MAKE_WAIT;
		break;
	case MAKE_WAIT:
	case MAKE_READY:
		break;
	}
	if (d->make == MAKE_WAIT) {
		if (d->retry_us == 0)
			d->retry_us = now.us + LOG_RETRY_US;
		else if (d->retry_us <= now.us) {
			d->retry_us = 0;
			d->make = MAKE_NONE;
		}
	}
}

bool log_make_busy(const struct log_disk *d)
{
	return d->make_op.pending || d->make == MAKE_SPACE || d->make == MAKE_CREATE || d->make == MAKE_HEAD || d->make == MAKE_RENAME || d->make == MAKE_UNDO;
}
