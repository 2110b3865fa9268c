/*
 * cleaner.c - when a pass begins, what follows when in it, and how its inputs are removed; see cleaner.h. One run of it is cleaner_run.c.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "coordinator/log/cleaner_own.h"

#define DISK_WISH_US 100 /* how often to look after the disk */
#define LINE_MAX 300

void cleaner_say(const struct cleaner *c, const char *what, const char *name, int error)
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

/* ---- the steps ---- */

static bool step_finish(struct cleaner *c, struct now now)
{
	if (clean_out_step(&c->out))
		return false;
	if (c->out.state == OUT_DONE)
		cleaner_run_done(c);
	else if (c->out.state == OUT_FAILED)
		cleaner_run_abandon(c, now);
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
		c->retry_us = now.us + CLEANER_RETRY_US;
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
		return idle_reserve(c, cleaner_run_capacity(c, going ? c->at : 0));
	if (!going && !pass_wanted(c, urgent, appended))
		return false;
	if (cleaner_run_capacity(c, c->at) > c->out.capacity) {
		clean_out_abandon(&c->out);
		return true;
	}
	return cleaner_run_begin(c);
}

bool cleaner_lacks(const struct cleaner *c, uint64_t *bytes)
{
	if (!c->owned || c->cfg.dirty_percent == 0 || c->stopped || c->out.state != OUT_NONE)
		return false;
	uint64_t capacity = cleaner_run_capacity(c, c->left > 0 ? c->at : 0);
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
		more = cleaner_run_read(c, now);
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
