/*
 * cleaner_run.c - one run of the cleaner: how many files go into the new one, reading them batch by batch, finishing it.
 */
#include <errno.h>

#include "muster/check.h"

#include "coordinator/log/clean_batch.h"
#include "coordinator/log/cleaner_own.h"
#include "coordinator/log/segment.h"
#include "coordinator/log/shards_block.h"

#define RUN_SLACK (4 * (uint64_t)FORMAT_ALIGN) /* what a clean file may become longer: leader epochs, the rest of blocks */
#define SLICE_RECORDS 32u /* judged per step */

static size_t run_shards_payload(const struct cleaner *c)
{
	size_t epochs = 0;
	for (unsigned int i = 0; i < c->cfg.id.shards; i++)
		epochs += c->cfg.shards[i].epochs_len;
	return shards_block_bytes(c->cfg.id.shards, epochs);
}

/* Bytes that what counts of a file may need. A cleaned one is packed as its successor will be. */
static uint64_t run_worst(const struct log_file *f)
{
	return f->clean ? f->bytes + RUN_SLACK : clean_out_worst(f->bytes);
}

static uint64_t run_front(const struct cleaner *c)
{
	return FORMAT_ALIGN + block_bytes(run_shards_payload(c));
}

/* No new file becomes longer than this, so that another run can always take it: a segment and a half. */
static uint64_t run_limit(const struct cleaner *c)
{
	return run_front(c) + clean_out_worst(c->cfg.segment_bytes) + c->cfg.segment_bytes / 2;
}

uint64_t cleaner_run_capacity(const struct cleaner *c, size_t at)
{
	uint64_t least = run_limit(c) + RUN_SLACK, bytes = run_front(c);
	const struct log_files *files = c->cfg.files;
	for (size_t i = at; i < files->len && (i == at || files->list[i]->joined); i++)
		bytes += run_worst(files->list[i]);
	return bytes > least ? bytes : least;
}

/* A file with nothing of this worker's shards is passed over unread: whoever has the last of it may be removing it. */
static void run_open_input(struct cleaner *c)
{
	const struct log_file *f = c->cfg.files->list[c->at + c->inputs++];
	if (f->shared != NULL && file_owned(f, c->cfg.id.shards, c->owner.owns, c->owner.arg) == 0)
		return;
	stream_open(&c->in, f->name, f->salt, 0, f->end);
}

bool cleaner_run_begin(struct cleaner *c)
{
	if (!clean_out_begin(&c->out, run_shards_payload(c)))
		return false;
	c->inputs = 0;
	c->dropped = false;
	c->in_batch = false;
	c->next_batch = BYTES_NULL;
	c->block = reader_of(NULL, 0);
	run_open_input(c);
	c->state = CLEANER_READ;
	return true;
}

/* True: one more file fits whatever it holds. */
static bool run_takes_more(const struct cleaner *c)
{
	if (c->inputs == c->left)
		return false;
	const struct log_file *f = c->cfg.files->list[c->at + c->inputs];
	if (f->joined)
		return true;
	if (!c->cfg.alone && (f->old || c->cfg.files->list[c->at]->old))
		return false;
	return c->out.at + block_bytes(c->out.len) + run_worst(f) <= run_limit(c);
}

static void run_finish(struct cleaner *c)
{
	struct log_file **in = &c->cfg.files->list[c->at];
	struct block_cover cover = in[0]->cover;
	for (size_t k = 1; k < c->inputs; k++)
		if (block_place_order(&in[k]->cover.last, &cover.last) > 0)
			cover.last = in[k]->cover.last;
	struct writer w = clean_out_shards(&c->out);
	struct log_file *info = c->out.info;
	unsigned int owned = 0;
	for (unsigned int i = 0; i < c->cfg.id.shards; i++)
		owned += c->owner.owns(c->owner.arg, i);
	shards_block_begin(&w, owned);
	for (unsigned int i = 0; i < c->cfg.id.shards; i++) {
		int64_t from = c->ends[i];
		if (!c->owner.owns(c->owner.arg, i))
			continue;
		for (size_t k = 0; k < c->inputs; k++)
			if (in[k]->bounds[i].end > c->ends[i])
				c->ends[i] = in[k]->bounds[i].end;
		info->bounds[i].end = c->ends[i];
		shards_block_put(&w, i, &c->cfg.shards[i], from, c->ends[i]);
	}
	CHECK(!w.full);
	clean_out_finish(&c->out, &cover);
	c->state = CLEANER_FINISH;
}

/* Its only input is clean already and all of it counts: it stays, and what was reserved serves the next run. */
static void run_skip(struct cleaner *c)
{
	const struct log_file *f = c->cfg.files->list[c->at];
	for (unsigned int i = 0; i < c->cfg.id.shards; i++)
		if (f->bounds[i].end > c->ends[i])
			c->ends[i] = f->bounds[i].end;
	clean_out_reset(&c->out);
	c->at++;
	c->left--;
	c->counts.passes += c->left == 0;
	c->state = CLEANER_IDLE;
}

void cleaner_run_abandon(struct cleaner *c, struct now now)
{
	c->counts.failed++;
	c->retry_us = now.us + CLEANER_RETRY_US;
	c->look = true;
	c->state = CLEANER_IDLE;
	if (c->out.state == OUT_OPEN || c->out.state == OUT_READY)
		clean_out_abandon(&c->out);
}

static void run_input_failed(struct cleaner *c, struct now now)
{
	struct log_file *f = c->cfg.files->list[c->at + c->inputs - 1];
	cleaner_say(c, "reading", f->name, c->in.error);
	if (c->in.error == EBADMSG) { /* from here on nothing is cleaned before the next start says what is lost */
		f->broken = true;
		c->left = c->inputs - 1;
	}
	stream_close(&c->in);
	cleaner_run_abandon(c, now);
}

void cleaner_run_done(struct cleaner *c)
{
	struct log_file *info = clean_out_take(&c->out);
	for (size_t i = 0; i < c->inputs; i++)
		c->gone[i] = c->cfg.files->list[c->at + i];
	c->gone_len = c->inputs;
	info->old = c->gone[0]->old;
	files_replace(c->cfg.files, c->at, c->inputs, info);
	*c->cfg.bytes -= c->out.capacity - info->bytes;
	c->counts.runs++;
	c->counts.written_bytes += info->bytes;
	c->left -= c->inputs;
	c->at++;
	c->said = false;
	c->state = CLEANER_REMOVE;
}

/* ---- reading ---- */

/* The next batch goes into the block that gathers. False: not now. */
static bool read_take_batch(struct cleaner *c)
{
	size_t len = (size_t)c->next_batch.len;
	if (clean_out_full(&c->out, len)) {
		clean_out_flush(&c->out);
		return false;
	}
	if (!clean_out_room(&c->out, len))
		return false; /* no memory: later */
	c->batch_bytes = c->next_batch;
	c->next_batch = BYTES_NULL;
	c->in_batch = clean_batch_begin(c);
	return true;
}

/* Goes on within the block that was read. */
static void read_records(struct cleaner *c, unsigned int budget, struct now now)
{
	while (budget > 0) {
		if (c->in_batch) {
			clean_batch_go_on(c, &budget, now);
			continue;
		}
		budget--;
		if (bytes_is_null(c->next_batch) && !segment_batch(&c->block, &c->batch_shard, &c->next_batch))
			return;
		if (!read_take_batch(c))
			return;
	}
}

static bool read_has_more(const struct cleaner *c)
{
	return c->in_batch || !bytes_is_null(c->next_batch) || (reader_left(&c->block) > 0 && !c->block.bad);
}

/* The next input, or the end of the run. */
static void read_next_file(struct cleaner *c)
{
	if (run_takes_more(c))
		run_open_input(c);
	else if (c->inputs == 1 && !c->dropped && c->cfg.files->list[c->at]->clean)
		run_skip(c);
	else
		run_finish(c);
}

/* The next block. True: go on at once. */
static bool read_on(struct cleaner *c, struct now now)
{
	struct bytes payload;
	if (!stream_busy(&c->in)) {
		read_next_file(c);
		return true;
	}
	if (c->in.state == STREAM_CLOSING)
		return false;
	switch (stream_next(&c->in, &payload, &c->block_at)) {
	case STREAM_WAIT:
		return false;
	case STREAM_BLOCK:
		c->block = reader_of(payload.p, (size_t)payload.len);
		c->counts.read_bytes += (uint64_t)payload.len;
		break;
	case STREAM_END:
		stream_close(&c->in);
		break;
	case STREAM_GONE:
		c->in.error = ENOENT;
		run_input_failed(c, now);
		break;
	case STREAM_FAILED:
		run_input_failed(c, now);
		break;
	}
	return true;
}

/* A write of the new file failed. */
static void read_out_failed(struct cleaner *c, struct now now)
{
	if (c->in.op.pending)
		return;
	if (stream_busy(&c->in) && c->in.state != STREAM_CLOSING)
		stream_close(&c->in);
	cleaner_run_abandon(c, now);
}

bool cleaner_run_read(struct cleaner *c, struct now now)
{
	if (clean_out_step(&c->out))
		return false;
	if (c->out.state == OUT_FAILED) {
		read_out_failed(c, now);
		return false;
	}
	if (!read_has_more(c))
		return read_on(c, now);
	read_records(c, SLICE_RECORDS, now);
	return true;
}
