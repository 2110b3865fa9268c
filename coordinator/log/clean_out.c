/*
 * clean_out.c - see clean_out.h. Every write is durable by itself, so nothing has to be flushed at the end, and no flush is long.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "muster/check.h"

#include "coordinator/log/clean_out.h"
#include "coordinator/log/segment.h"

static bool aligned(uint8_t **p, size_t *cap, size_t need, size_t keep)
{
	void *grown;
	if (need <= *cap)
		return true;
	if (posix_memalign(&grown, FORMAT_ALIGN, need) != 0)
		return false;
	if (keep > 0)
		memcpy(grown, *p, keep);
	free(*p);
	*p = grown;
	*cap = need;
	return true;
}

bool clean_out_init(struct clean_out *o, struct disk *disk, const struct block_id *id, uint64_t random)
{
	size_t end_cap = 0;
	*o = (struct clean_out){.disk = disk, .id = *id, .random = random};
	return aligned(&o->end, &end_cap, block_bytes(0), 0) && aligned(&o->buf, &o->cap, 2 * CLEAN_BLOCK, 0);
}

void clean_out_fini(struct clean_out *o)
{
	CHECK(!o->op.pending);
	file_free(o->info);
	free(o->buf);
	free(o->front);
	free(o->end);
}

static void out_submit(struct clean_out *o, enum clean_out_state state, enum disk_verb verb)
{
	o->state = state;
	o->op.verb = verb;
	disk_submit(o->disk, &o->op);
}

static void out_write(struct clean_out *o, enum clean_out_state state, uint8_t *buf, size_t len, uint64_t at)
{
	o->op.buf = buf;
	o->op.len = len;
	o->op.offset = at;
	out_submit(o, state, DISK_WRITE_DURABLE);
}

/* ---- making it ---- */

void clean_out_create(struct clean_out *o, uint64_t capacity)
{
	CHECK(o->state == OUT_NONE);
	o->id.number++;
	o->opened = false;
	o->capacity = o->id.bytes = (capacity + FORMAT_ALIGN - 1) & ~(uint64_t)(FORMAT_ALIGN - 1);
	o->op = (struct disk_op){.background = true, .len = o->capacity};
	segment_clean_name(o->op.to, o->id.start, o->id.worker, o->id.number);
	snprintf(o->op.name, sizeof(o->op.name), "%.*s%s", (int)(FORMAT_NAME_MAX - sizeof(FORMAT_NEW)), o->op.to, FORMAT_NEW);
	out_submit(o, OUT_CREATE, DISK_CREATE);
}

/* The index of a file that holds nothing yet. */
static bool out_new_info(struct clean_out *o)
{
	struct log_file *f = file_new(o->id.shards);
	if (f == NULL)
		return false;
	snprintf(f->name, sizeof(f->name), "%s", o->op.to);
	file_free(o->info);
	o->info = f;
	return true;
}

bool clean_out_begin(struct clean_out *o, size_t shards_payload)
{
	CHECK(o->state == OUT_READY);
	if (!out_new_info(o))
		return false;
	o->front_len = FORMAT_ALIGN + block_bytes(shards_payload);
	if (!aligned(&o->front, &o->front_cap, o->front_len, 0))
		return false;
	memset(o->front, 0, o->front_len);
	o->salt = o->random + o->id.number * 0x9e3779b97f4a7c15ull;
	o->at = o->front_len;
	o->sequence = 2;
	o->len = 0;
	o->info->salt = o->salt;
	o->info->clean = true;
	o->state = OUT_OPEN;
	return true;
}

/* ---- filling it ---- */

bool clean_out_room(struct clean_out *o, size_t batch)
{
	size_t need = block_bytes(o->len + ENTRY_HEAD + batch);
	return aligned(&o->buf, &o->cap, need <= o->cap ? need : need + CLEAN_BLOCK, BLOCK_HEAD + o->len);
}

bool clean_out_full(const struct clean_out *o, size_t batch)
{
	return o->len > 0 && o->len + ENTRY_HEAD + batch > CLEAN_BLOCK;
}

static void out_write_block(struct clean_out *o, enum clean_out_state state)
{
	struct block head = {BLOCK_BATCHES, o->salt, o->sequence++, 0, (uint32_t)o->len};
	size_t bytes = block_bytes(o->len);
	CHECK(o->at + bytes + block_bytes(0) <= o->capacity);
	block_seal(o->buf, &head);
	out_write(o, state, o->buf, bytes, o->at);
	o->at += bytes;
	o->len = 0;
}

void clean_out_flush(struct clean_out *o)
{
	CHECK(o->state == OUT_OPEN && o->len > 0);
	out_write_block(o, OUT_BLOCK);
}

/* ---- finishing it ---- */

struct writer clean_out_shards(struct clean_out *o)
{
	return writer_of(o->front + FORMAT_ALIGN + BLOCK_HEAD, o->front_len - FORMAT_ALIGN - BLOCK_HEAD);
}

static void out_end(struct clean_out *o)
{
	struct block end = {BLOCK_END, o->salt, o->sequence, o->sequence, 0};
	block_seal(o->end, &end);
	out_write(o, OUT_END, o->end, block_bytes(0), o->at);
}

static void out_front(struct clean_out *o)
{
	struct block head = {BLOCK_FIRST, o->salt, 0, 0, BLOCK_ID_BYTES + BLOCK_COVER_BYTES};
	struct block shards = {BLOCK_SHARDS, o->salt, 1, 0, (uint32_t)(o->front_len - FORMAT_ALIGN - BLOCK_HEAD)};
	block_id_write(o->front + BLOCK_HEAD, BLOCK_ID_BYTES, &o->id);
	block_cover_write(o->front + BLOCK_HEAD + BLOCK_ID_BYTES, BLOCK_COVER_BYTES, &o->cover);
	block_seal(o->front, &head);
	block_seal(o->front + FORMAT_ALIGN, &shards);
	out_write(o, OUT_FRONT, o->front, o->front_len, 0);
}

void clean_out_finish(struct clean_out *o, const struct block_cover *cover)
{
	CHECK(o->state == OUT_OPEN);
	o->cover = *cover;
	if (o->len > 0)
		out_write_block(o, OUT_LAST);
	else
		out_end(o);
}

void clean_out_reset(struct clean_out *o)
{
	CHECK(o->state == OUT_OPEN);
	o->state = OUT_READY;
}

static void out_undo(struct clean_out *o)
{
	if (o->opened)
		out_submit(o, OUT_UNDO, DISK_CLOSE);
	else if (o->state != OUT_CREATE)
		out_submit(o, OUT_UNDO, DISK_REMOVE);
	else
		o->state = OUT_FAILED;
}

void clean_out_abandon(struct clean_out *o)
{
	CHECK(o->state == OUT_READY || o->state == OUT_OPEN);
	o->error = ECANCELED;
	out_undo(o);
}

static void out_undo_step(struct clean_out *o)
{
	if (o->op.verb == DISK_CLOSE)
		out_submit(o, OUT_UNDO, DISK_REMOVE);
	else
		o->state = OUT_FAILED;
}

/* The completed operation was good. */
static void out_go_on(struct clean_out *o)
{
	switch (o->state) {
	case OUT_CREATE:
		o->opened = true;
		o->state = OUT_READY;
		break;
	case OUT_BLOCK:
		o->state = OUT_OPEN;
		break;
	case OUT_LAST:
		out_end(o);
		break;
	case OUT_END:
		o->info->cover = o->cover;
		o->info->end = o->at;
		o->info->bytes = o->info->charge = o->at + block_bytes(0);
		out_front(o);
		break;
	case OUT_FRONT:
		o->op.offset = o->info->bytes;
		out_submit(o, OUT_TRIM, DISK_TRIM);
		break;
	case OUT_TRIM:
		out_submit(o, OUT_CLOSE, DISK_CLOSE);
		o->opened = false;
		break;
	case OUT_CLOSE:
		out_submit(o, OUT_RENAME, DISK_RENAME);
		break;
	case OUT_RENAME:
		o->state = OUT_DONE;
		break;
	default:
		break;
	}
}

bool clean_out_step(struct clean_out *o)
{
	if (o->op.pending)
		return true;
	if (o->state == OUT_NONE || o->state == OUT_READY || o->state == OUT_OPEN || o->state == OUT_DONE || o->state == OUT_FAILED)
		return false;
	if (o->state == OUT_UNDO) {
		out_undo_step(o);
	} else if (o->op.result < 0 && o->state == OUT_TRIM) { /* a file that is too long does no harm */
		o->info->bytes = o->info->charge = o->capacity;
		out_go_on(o);
	} else if (o->op.result < 0) {
		o->error = (int)-o->op.result;
		o->renamed = o->state == OUT_RENAME;
		out_undo(o);
	} else {
		out_go_on(o);
	}
	return o->op.pending;
}

struct log_file *clean_out_take(struct clean_out *o)
{
	struct log_file *f = o->state == OUT_DONE ? o->info : NULL;
	CHECK(o->state == OUT_DONE || o->state == OUT_FAILED);
	if (f == NULL)
		file_free(o->info);
	o->info = NULL;
	o->state = OUT_NONE;
	return f;
}
