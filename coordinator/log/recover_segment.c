/*
 * recover_segment.c - what one segment holds: its batches are noted for their shards, its end is closed for ever, damage is refused or mended.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/log/mend.h"
#include "coordinator/log/recover_own.h"
#include "coordinator/log/segment.h"
#include "coordinator/log/shards_block.h"

/* ---- batches of a good block ---- */

static void scan_aside(struct recover *rc, const char *name, uint32_t shard, int64_t offset, const char *why)
{
	rc->set_aside++;
	recover_say(rc, "log: %s: shard %" PRIu32 ", offset %" PRId64 ": %s; set aside", name, shard, offset, why);
}

/* A shard's first batch behind holes tells what it lost in them. A compacted shard may have had a gap there before. */
static void scan_missed(struct recover *rc, uint32_t shard, int64_t next_offset)
{
	if (rc->given[shard].holes != rc->holes && next_offset > rc->state[shard].next_offset)
		recover_say(rc, "log: LOST: shard %" PRIu32 ", offsets %" PRId64 " to %" PRId64, shard, rc->state[shard].next_offset, next_offset - 1);
	rc->given[shard].holes = rc->holes;
}

/* `at` is where its block stands. */
static void scan_batch(struct recover *rc, const struct cover *cover, struct log_file *info, uint64_t at, uint32_t shard, struct bytes bytes)
{
	const char *name = info->name;
	struct batch batch;
	if (!batch_open(&batch, bytes)) {
		scan_aside(rc, name, shard, -1, "a batch cannot be read");
		return;
	}
	if (shard >= rc->shards) {
		scan_aside(rc, name, shard, batch.base_offset, "there is no such shard");
		return;
	}
	if (!cover_counts(cover, shard))
		return;
	struct log_shard *state = &rc->state[shard];
	if (batch.base_offset < state->next_offset) {
		scan_aside(rc, name, shard, batch.base_offset, "a batch stands there twice");
		return;
	}
	scan_missed(rc, shard, batch.base_offset);
	state->next_offset = batch.last_offset + 1;
	if (batch.leader_epoch > state->epoch)
		state->epoch = batch.leader_epoch;
	log_shard_note_epoch(state, batch.leader_epoch, batch.base_offset);
	file_note(info, shard, batch.base_offset, batch.last_offset, at);
	backlog_add(&rc->backlog, shard, bytes);
}

static void scan_blocks(struct scan *scan, const struct cover *cover, struct log_file *info, struct segment_reader *r)
{
	struct bytes payload, batch;
	uint32_t shard;
	while (segment_next(r, &payload)) {
		uint64_t at = (uint64_t)(payload.p - BLOCK_HEAD - r->p);
		struct reader rest = reader_of(payload.p, (size_t)payload.len);
		while (segment_batch(&rest, &shard, &batch))
			scan_batch(scan->rc, cover, info, at, shard, batch);
		if (rest.bad)
			scan_aside(scan->rc, info->name, 0, -1, "the rest of a block cannot be read");
	}
}

/* ---- segments ---- */

/* What a cleaned file says of its shards. `end`: its batches were read, offsets go on behind what it stands for. */
static void scan_shards(struct recover *rc, const struct cover *cover, struct log_file *info, struct bytes payload, bool end)
{
	struct reader r;
	struct shards_block_entry e;
	struct log_epoch epoch;
	for (uint32_t n = shards_block_open(&r, payload); n > 0 && shards_block_next(&r, &e); n--) {
		if (e.shard >= rc->shards || !cover_counts(cover, e.shard))
			continue;
		struct log_shard *s = &rc->state[e.shard];
		info->bounds[e.shard].end = e.end;
		s->start = e.start > s->start ? e.start : s->start;
		if (end && e.end > s->next_offset)
			s->next_offset = e.end;
		while (!end && shards_block_epoch(&e, &epoch)) {
			log_shard_note_epoch(s, epoch.epoch, epoch.start);
			s->epoch = epoch.epoch > s->epoch ? epoch.epoch : s->epoch;
		}
	}
}

/* What was read may have come from the kernel's memory after a kill. Now that it counts, it is made durable. */
static bool make_sure(struct scan *scan, const struct segment_file *f, int file)
{
	struct disk_op flush = {.verb = DISK_FLUSH, .file = file};
	int64_t result = disk_do(scan->rc->disk, &flush);
	return result >= 0 || recover_failed_op(scan, f->name, result);
}

/* The place where the segment ends is made its end for ever. */
static bool seal(struct scan *scan, const struct segment_file *f, int file, const struct segment_reader *r)
{
	struct block end = {BLOCK_END, r->salt, r->sequence, r->sequence, 0};
	block_seal(scan->block, &end);
	int64_t result = file_write(scan->rc->disk, file, r->at, scan->block, block_bytes(0));
	return result >= 0 || recover_failed_op(scan, f->name, result);
}

/* Gives back what was reserved behind END; *len is the file's new length. That it fails costs nothing but space. */
static void trim(struct scan *scan, int file, const struct segment_reader *r, size_t *len)
{
	struct disk_op op = {.verb = DISK_TRIM, .file = file, .offset = r->at + block_bytes(0)};
	if (op.offset < *len && disk_do(scan->rc->disk, &op) >= 0)
		*len = op.offset;
}

/* Damage: false unless it is to be skipped, and then it is said what is lost, and mended. */
static bool damaged(struct scan *scan, const struct segment_file *f, int file, struct segment_reader *r, uint8_t *image)
{
	struct recover *rc = scan->rc;
	if (!rc->skip_damaged)
		return recover_fail(scan, "log: %s: block %" PRIu64 " at byte %zu was durable and is damaged; --recover=skip-damaged starts without it",
			    f->name, r->sequence, r->at);
	struct segment_reader hole = *r;
	uint64_t lost = segment_skip(r);
	rc->lost_blocks += lost == 0 ? 1 : lost;
	rc->holes++;
	if (lost == 0) {
		recover_say(rc, "log: %s: LOST: everything from block %" PRIu64 " at byte %zu", f->name, hole.sequence, hole.at);
		return true;
	}
	recover_say(rc, "log: %s: LOST: blocks %" PRIu64 " to %" PRIu64 " at byte %zu", f->name, hole.sequence, hole.sequence + lost - 1, hole.at);
	int64_t result = mend_hole(rc->disk, file, f->name, &hole, image, lost, r->at - hole.at);
	return result >= 0 || recover_failed_op(scan, f->name, result);
}

static bool scan_blocks_to_end(struct scan *scan, const struct segment_file *f, int file, struct segment_reader *r, uint8_t *image,
			       struct log_file *info, bool *empty)
{
	bool may_be_open = f->last && f->last_start && !f->cover.clean;
	scan_shards(scan->rc, &f->cover, info, r->shards, false);
	for (;;) {
		scan_blocks(scan, &f->cover, info, r);
		scan_shards(scan->rc, &f->cover, info, r->shards, true);
		if (r->end == SEGMENT_SEALED)
			return !f->last_start || make_sure(scan, f, file);
		if (may_be_open && r->end != SEGMENT_DAMAGED)
			break;
		if (!damaged(scan, f, file, r, image))
			return false;
		if (r->end != SEGMENT_GOING)
			break;
	}
	if (r->end == SEGMENT_TORN)
		recover_say(scan->rc, "log: %s: cut at block %" PRIu64 ", byte %zu: a write was under way there and nobody was told that it was done", f->name,
		    r->sequence, r->at);
	*empty = may_be_open && r->sequence == 1 && r->end != SEGMENT_DAMAGED;
	return *empty || (make_sure(scan, f, file) && seal(scan, f, file, r));
}

static bool id_fits(const struct recover *rc, const struct segment_file *f, const struct block_id *id)
{
	return memcmp(id->log, rc->log, sizeof(id->log)) == 0 && id->shards == rc->shards && id->start == f->id.start && id->worker == f->id.worker &&
	       id->number == f->id.number;
}

/* A segment that says nothing about itself. */
static bool bad_head(struct scan *scan, const struct segment_file *f)
{
	struct recover *rc = scan->rc;
	if (!rc->skip_damaged)
		return recover_fail(scan, "log: %s: its first block is not good or belongs to another log; --recover=skip-damaged starts without it", f->name);
	recover_say(rc, "log: %s: LOST: its first block is not good or belongs to another log", f->name);
	rc->lost_blocks++;
	rc->holes++;
	struct block_id id = {.shards = rc->shards, .start = f->id.start, .worker = f->id.worker, .number = f->id.number};
	memcpy(id.log, rc->log, sizeof(id.log));
	int64_t result = mend_segment(rc->disk, &id, true);
	return result >= 0 || recover_failed_op(scan, f->name, result);
}

/* Its entry in the index of the log. NULL: no memory. */
static struct log_file *scan_file(const struct scan *scan, const struct segment_file *f, const struct segment_reader *r)
{
	struct log_file *info = file_new(scan->rc->shards);
	if (info == NULL)
		return NULL;
	memcpy(info->name, f->name, sizeof(info->name));
	info->cover = f->cover.row;
	info->clean = f->cover.clean;
	info->salt = r->salt;
	bool ok;
	info->hidden = cover_hidden(&f->cover, scan->rc->shards, &ok);
	if (ok)
		return info;
	file_free(info);
	return NULL;
}

/* Consumes `info`. */
static bool scan_index(struct scan *scan, const struct segment_file *f, struct log_file *info, uint64_t end, uint64_t bytes)
{
	info->end = end;
	info->bytes = bytes;
	if (!f->empty && files_add(&scan->rc->files, info))
		return true;
	file_free(info);
	return f->empty || recover_fail(scan, "log: no memory");
}

/* A segment with a good HEAD. */
static bool scan_good(struct scan *scan, struct segment_file *f, const struct file_read *read, struct segment_reader *r)
{
	struct recover *rc = scan->rc;
	size_t len = read->len;
	struct log_file *info = scan_file(scan, f, r);
	if (info == NULL)
		return recover_fail(scan, "log: no memory");
	bool ok = scan_blocks_to_end(scan, f, read->file, r, read->p, info, &f->empty);
	if (ok && !f->empty && r->end != SEGMENT_DAMAGED)
		trim(scan, read->file, r, &len);
	rc->bytes += f->empty ? 0 : len;
	rc->segments += !f->empty;
	return scan_index(scan, f, info, r->at, len) && ok;
}

bool recover_segment(struct scan *scan, struct segment_file *f, struct file_read *read)
{
	struct recover *rc = scan->rc;
	struct segment_reader r;
	bool good = segment_open(&r, read->p, read->len) && id_fits(rc, f, &r.id);
	bool kept = good && backlog_keep(&rc->backlog, read->p, read->len, f->name);
	bool ok = !good ? bad_head(scan, f) : kept ? scan_good(scan, f, read, &r) : recover_fail(scan, "log: no memory");
	if (!kept)
		free(read->p);
	file_close(rc->disk, read->file);
	return ok;
}
