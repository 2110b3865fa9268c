/*
 * cleaner.c - see cleaner.h.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "muster/check.h"

#include "coordinator/log/clean_batch.h"
#include "coordinator/log/cleaner.h"
#include "coordinator/log/segment.h"
#include "coordinator/log/shards_block.h"

#define RUN_SLACK (4 * (uint64_t)FORMAT_ALIGN) /* what a clean file may become longer: leader epochs, the rest of blocks */
#define SLICE_RECORDS 32u /* judged per step */
#define RETRY_US (10 * US_PER_S)
#define DISK_WISH_US 100 /* how often to look after the disk */
#define LINE_MAX 300

static void cleaner_say(const struct cleaner *c, const char *what, const char *name, int error)
{
	char line[LINE_MAX];
	snprintf(line, sizeof(line), "log: cleaning: %s %s: %s", what, name, error == EBADMSG ? "a block is damaged" : strerror(error));
	if (c->cfg.say != NULL)
		c->cfg.say(c->cfg.say_arg, line);
}

bool cleaner_init(struct cleaner *c, const struct cleaner_config *cfg)
{
	*c = (struct cleaner){.cfg = *cfg, .look = true, .next_batch = BYTES_NULL, .worked_for = UINT64_MAX};
	stream_init(&c->in, cfg->disk);
	c->horizon = calloc(cfg->id.shards, sizeof(*c->horizon));
	c->ends = calloc(cfg->id.shards, sizeof(*c->ends));
	return clean_out_init(&c->out, cfg->disk, &cfg->id, cfg->random) && c->horizon != NULL && c->ends != NULL;
}

void cleaner_set_owner(struct cleaner *c, const struct log_owner *owner)
{
	c->owner = *owner;
	c->owned = true;
}

void cleaner_look(struct cleaner *c)
{
	c->look = true;
}

/* ---- a pass ---- */

/* How many files from the oldest on can be cleaned, and whether it is time to. */
static size_t pass_candidates(const struct cleaner *c, bool *time_to)
{
	uint64_t dirty = 0, all = 0;
	size_t n = 0;
	for (; n < c->cfg.files->len; n++) {
		const struct log_file *f = c->cfg.files->list[n];
		if (f->open || f->broken)
			break;
		all += f->bytes;
		dirty += f->clean ? 0 : f->bytes;
	}
	*time_to = dirty > 0 && dirty * 100 >= all * c->cfg.dirty_percent;
	return n;
}

/* False: no memory. */
static bool pass_begin(struct cleaner *c, size_t n, uint64_t appended)
{
	struct log_file **gone = realloc(c->gone, n * sizeof(struct log_file *));
	if (gone == NULL)
		return false;
	c->gone = gone;
	c->at = 0;
	c->left = n;
	c->worked_for = appended;
	for (unsigned int i = 0; i < c->cfg.id.shards; i++) {
		c->horizon[i] = c->owner.applied(c->owner.arg, i);
		c->ends[i] = 0;
	}
	return true;
}

static bool pass_wanted(struct cleaner *c, bool urgent, uint64_t appended)
{
	bool time_to;
	if (!c->look && !(urgent && appended != c->worked_for))
		return false;
	c->look = false;
	size_t n = pass_candidates(c, &time_to);
	if (n == 0 || (!time_to && !(urgent && appended != c->worked_for)))
		return false;
	return pass_begin(c, n, appended);
}

/* ---- a run ---- */

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

/* What is reserved for a run that begins with the file at `at`, which may be joined with others, or of a time when segments were longer. */
static uint64_t run_capacity(const struct cleaner *c, size_t at)
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

/* Begins a run with the files from c->at on; the new file is reserved. */
static bool run_begin(struct cleaner *c)
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

/* The run is given up, its inputs stay; the new file is thrown away. */
static void run_abandon(struct cleaner *c, struct now now)
{
	c->counts.failed++;
	c->retry_us = now.us + RETRY_US;
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
	run_abandon(c, now);
}

/* The new file has its name: it takes the place of its inputs. */
static void run_done(struct cleaner *c)
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
	run_abandon(c, now);
}

static bool step_read(struct cleaner *c, struct now now)
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

/* ---- the rest of the life of a run ---- */

static bool step_finish(struct cleaner *c, struct now now)
{
	if (clean_out_step(&c->out))
		return false;
	if (c->out.state == OUT_DONE)
		run_done(c);
	else if (c->out.state == OUT_FAILED)
		run_abandon(c, now);
	return true;
}

static void remove_forget(struct cleaner *c, struct log_file *f)
{
	*c->cfg.bytes -= f->charge;
	file_free(f);
}

static bool step_remove(struct cleaner *c)
{
	if (c->remove.pending)
		return false;
	if (c->remove.verb == DISK_REMOVE) {
		struct log_file *f = c->gone[--c->gone_len];
		if (c->remove.result < 0) /* it does not count any more; the next start removes it */
			cleaner_say(c, "removing", f->name, (int)-c->remove.result);
		remove_forget(c, f);
		c->remove.verb = DISK_CREATE;
	}
	while (c->gone_len > 0 && !file_release(c->gone[c->gone_len - 1], c->cfg.id.shards, c->owner.owns, c->owner.arg))
		remove_forget(c, c->gone[--c->gone_len]);
	if (c->gone_len == 0) {
		c->state = CLEANER_IDLE;
		c->counts.passes += c->left == 0;
		return true;
	}
	c->remove = (struct disk_op){.verb = DISK_REMOVE, .background = true};
	snprintf(c->remove.name, sizeof(c->remove.name), "%s", c->gone[c->gone_len - 1]->name);
	disk_submit(c->cfg.disk, &c->remove);
	return false;
}

static void idle_out_failed(struct cleaner *c, struct now now)
{
	if (!c->said && c->out.error != ECANCELED && c->out.error != ENOSPC && c->out.error != EDQUOT)
		cleaner_say(c, "writing", c->out.op.to, c->out.error);
	c->said = true;
	c->stopped = c->out.renamed;
	*c->cfg.bytes -= c->out.capacity;
	if (c->out.error != ECANCELED)
		c->retry_us = now.us + RETRY_US;
	clean_out_take(&c->out);
}

/* The new file is reserved before there is anything to do: it is what a full disk leaves to clean with. */
static bool idle_reserve(struct cleaner *c, uint64_t capacity)
{
	if (*c->cfg.bytes + capacity > c->cfg.total_bytes)
		return false;
	clean_out_create(&c->out, capacity);
	*c->cfg.bytes += c->out.capacity;
	return true;
}

static bool step_idle(struct cleaner *c, bool urgent, uint64_t appended, struct now now)
{
	if (clean_out_step(&c->out))
		return false;
	if (c->out.state == OUT_FAILED) {
		idle_out_failed(c, now);
		return false;
	}
	if (stream_busy(&c->in))
		return false;
	bool going = c->left > 0;
	if (now.us < c->retry_us)
		return false;
	if (c->out.state == OUT_NONE)
		return idle_reserve(c, run_capacity(c, going ? c->at : 0));
	if (!going && !pass_wanted(c, urgent, appended))
		return false;
	if (run_capacity(c, c->at) > c->out.capacity) {
		clean_out_abandon(&c->out);
		return true;
	}
	return run_begin(c);
}

bool cleaner_lacks(const struct cleaner *c, uint64_t *bytes)
{
	if (!c->owned || c->cfg.dirty_percent == 0 || c->stopped || c->out.state != OUT_NONE)
		return false;
	uint64_t capacity = run_capacity(c, c->left > 0 ? c->at : 0);
	if (2 * c->cfg.segment_bytes + capacity > c->cfg.total_bytes) /* it never fits */
		return false;
	*bytes += capacity;
	return true;
}

uint64_t cleaner_reserving(const struct cleaner *c)
{
	return c->out.state == OUT_CREATE ? c->out.capacity : 0;
}

uint64_t cleaner_step(struct cleaner *c, bool urgent, uint64_t appended, struct now now)
{
	bool more = false;
	if (!c->owned || c->cfg.dirty_percent == 0 || c->stopped)
		return TIME_NEVER;
	switch (c->state) {
	case CLEANER_IDLE:
		more = step_idle(c, urgent, appended, now);
		break;
	case CLEANER_READ:
		more = step_read(c, now);
		break;
	case CLEANER_FINISH:
		more = step_finish(c, now);
		break;
	case CLEANER_REMOVE:
		more = step_remove(c);
		break;
	}
	if (more)
		return now.us;
	if (c->state != CLEANER_IDLE || c->out.op.pending || c->in.op.pending)
		return c->cfg.disk->wakes ? TIME_NEVER : now.us + DISK_WISH_US;
	if (c->retry_us > now.us)
		return c->retry_us;
	return c->out.state == OUT_NONE || c->left > 0 ? now.us + US_PER_S : TIME_NEVER;
}

void cleaner_fini(struct cleaner *c)
{
	while (c->in.op.pending || c->out.op.pending || c->remove.pending)
		disk_wait(c->cfg.disk);
	if (stream_busy(&c->in))
		stream_close(&c->in);
	while (c->in.op.pending)
		disk_wait(c->cfg.disk);
	stream_busy(&c->in);
	stream_fini(&c->in);
	for (size_t i = 0; i < c->gone_len; i++)
		file_free(c->gone[i]);
	clean_out_fini(&c->out);
	free(c->gone);
	free(c->horizon);
	free(c->ends);
}
