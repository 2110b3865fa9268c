/*
 * churn.c - see churn.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "muster/check.h"

#include "coordinator/log/batch.h"

#include "churn.h"

#define VALUE_HEAD 16 /* number, length of the filling */

struct churn *churn_new(uint64_t seed)
{
	struct churn *c = calloc(1, sizeof(*c));
	c->random = seed * 0x2545f4914f6cdd1dull + 7;
	c->disk = sim_disk_new(seed);
	c->segment_bytes = 32 * 1024;
	c->total_bytes = 1ull << 40;
	c->dirty_percent = 50;
	c->workers = c->wrote = 1;
	c->now = (struct now){1000, 1700000000000};
	c->queue = calloc(CHURN_QUEUE, sizeof(*c->queue));
	for (unsigned int i = 0; i < CHURN_SHARDS; i++)
		c->behind[i] = -1;
	return c;
}

static void churn_drop_log(struct churn *c)
{
	for (unsigned int w = 0; w < c->running; w++)
		log_free(c->logs[w]);
	c->running = 0;
}

void churn_free(struct churn *c)
{
	churn_drop_log(c);
	disk_free(&c->disk->disk);
	free(c->queue);
	free(c);
}

static void churn_say(void *arg, const char *line)
{
	struct churn *c = arg;
	size_t len = strlen(c->said);
	snprintf(c->said + len, sizeof(c->said) - len, "%s\n", line);
}

/* ---- the owner ---- */

static unsigned int key_of(struct bytes key)
{
	return key.len == 2 && key.p[0] == 'k' ? key.p[1] : CHURN_KEYS;
}

static enum log_verdict churn_judge(void *arg, unsigned int shard, const struct log_entry *e)
{
	const struct churn_part *part = arg;
	const struct churn *c = part->c;
	unsigned int key = key_of(e->key);
	CHECK(shard < CHURN_SHARDS && shard % c->running == part->worker);
	if (key >= CHURN_KEYS) /* none of ours: only in logs that were damaged on purpose */
		return LOG_LIVE;
	const struct churn_value *v = &c->applied[shard][key];
	if (e->offset > c->behind[shard])
		return LOG_LIVE;
	if (v->number != 0 && v->offset == e->offset)
		return LOG_LIVE;
	return bytes_is_null(e->value) && v->number == 0 ? LOG_GONE : LOG_DEAD;
}

static bool churn_owns(void *arg, unsigned int shard)
{
	const struct churn_part *part = arg;
	return shard % part->c->running == part->worker;
}

static int64_t churn_applied(void *arg, unsigned int shard)
{
	const struct churn_part *part = arg;
	return part->c->behind[shard] + 1;
}

/* ---- recovery ---- */

static uint8_t filling(uint64_t number, size_t i)
{
	return (uint8_t)(number * 31 + i * 13 + i / 251);
}

static bool churn_record(void *arg, unsigned int shard, const struct log_entry *e)
{
	struct churn *c = arg;
	unsigned int key = key_of(e->key);
	if (shard >= CHURN_SHARDS || key >= CHURN_KEYS) {
		c->bad = true;
		return true;
	}
	struct churn_value *v = &c->found[shard][key];
	c->found_records++;
	if (e->offset <= v->offset)
		c->bad = true;
	if (bytes_is_null(e->value)) {
		*v = (struct churn_value){0, e->offset, 0};
		c->found_tombstones++;
		return true;
	}
	struct reader r = reader_of(e->value.p, (size_t)e->value.len);
	*v = (struct churn_value){reader_u64(&r), e->offset, (size_t)reader_u64(&r)};
	if (r.bad || reader_left(&r) != v->len)
		c->bad = true;
	for (size_t i = 0; !c->bad && i < v->len; i++)
		c->bad = r.p[i] != filling(v->number, i);
	return true;
}

/* One worker's log, with what recovery found, or a copy of it. */
static bool churn_begin(struct churn *c, struct recover *rc, unsigned int worker)
{
	struct log_disk_config cfg = {
		.disk = &c->disk->disk,
		.worker = worker,
		.workers = c->workers,
		.shards = CHURN_SHARDS,
		.segment_bytes = c->segment_bytes,
		.total_bytes = c->total_bytes,
		.flush = c->flush,
		.dirty_percent = c->dirty_percent,
		.retention_ms = c->retention_ms,
		.reserve_bytes = c->reserve_bytes,
		.random = sim_random(&c->random),
		.say = churn_say,
		.say_arg = c,
	};
	c->logs[worker] = log_disk_new(&cfg);
	c->running++;
	return log_disk_begin(c->logs[worker], rc, c->err, sizeof(c->err));
}

static bool churn_begin_copy(struct churn *c, const struct recover *rc, unsigned int worker, uint64_t bytes)
{
	struct recover copy = *rc;
	copy.bytes = bytes;
	copy.state = log_shards_copy(rc->state, CHURN_SHARDS);
	bool ok = files_copy(&copy.files, &rc->files) && churn_begin(c, &copy, worker);
	log_shards_free(copy.state, CHURN_SHARDS);
	files_fini(&copy.files);
	return ok;
}

/* The last worker takes the original; the first logs are made first, so that they are numbered as they are. */
static bool churn_begin_all(struct churn *c, struct recover *rc)
{
	uint64_t share = rc->bytes / c->workers;
	bool ok = true;
	for (unsigned int w = 0; ok && w + 1 < c->workers; w++)
		ok = churn_begin_copy(c, rc, w, share);
	rc->bytes -= share * (c->workers - 1);
	ok = ok && churn_begin(c, rc, c->workers - 1);
	for (unsigned int w = 0; ok && w < c->workers; w++) {
		c->parts[w] = (struct churn_part){c, w};
		struct log_owner owner = {churn_judge, churn_owns, churn_applied, &c->parts[w]};
		log_set_owner(c->logs[w], &owner);
	}
	return ok;
}

bool churn_start(struct churn *c)
{
	struct recover rc = {.disk = &c->disk->disk, .shards = CHURN_SHARDS, .skip_damaged = c->skip_damaged, .say = churn_say, .record = churn_record, .arg = c};
	c->found_records = c->found_tombstones = 0;
	c->bad = false;
	c->said[0] = c->err[0] = '\0';
	for (unsigned int i = 0; i < CHURN_SHARDS * CHURN_KEYS; i++)
		c->found[i / CHURN_KEYS][i % CHURN_KEYS] = (struct churn_value){0, -1, 0};
	if (!recover_init(&rc, (const uint8_t *)"0123456789abcdef", c->err, sizeof(c->err)))
		return false;
	bool ok = recover_run(&rc, c->err, sizeof(c->err));
	c->lost_blocks = rc.lost_blocks;
	c->set_aside = recover_set_aside(&rc);
	for (unsigned int i = 0; i < CHURN_SHARDS; i++)
		c->found_next[i] = rc.state[i].next_offset;
	ok = ok && churn_begin_all(c, &rc);
	recover_fini(&rc);
	return ok;
}

/* The key's value after `n` of the records that were not acknowledged. */
static struct churn_value value_after(const struct churn *c, unsigned int shard, unsigned int key, unsigned int n)
{
	struct churn_value v = c->applied[shard][key];
	for (unsigned int i = 0; i < n; i++)
		if (c->queue[i].shard == shard && c->queue[i].key == key)
			v = c->queue[i].value;
	return v;
}

/* What was found of the shard is what stood there after `n` of the records that were not acknowledged. */
static bool shard_fits(const struct churn *c, unsigned int shard, unsigned int n)
{
	int64_t next = c->behind[shard] + 1;
	for (unsigned int i = 0; i < n; i++)
		if (c->queue[i].shard == shard)
			next = c->queue[i].value.offset + 1;
	bool ok = c->found_next[shard] == next;
	for (unsigned int key = 0; ok && key < CHURN_KEYS; key++)
		ok = value_after(c, shard, key, n).number == c->found[shard][key].number;
	return ok;
}

/* All shards of a log came as far: it was written in one order. */
static bool log_fits(const struct churn *c, unsigned int worker, unsigned int workers)
{
	for (unsigned int n = 0; n <= c->queue_len; n++) {
		bool ok = true;
		for (unsigned int shard = worker; ok && shard < CHURN_SHARDS; shard += workers)
			ok = shard_fits(c, shard, n);
		if (ok)
			return true;
	}
	return false;
}

bool churn_check(struct churn *c)
{
	bool ok = !c->bad;
	for (unsigned int w = 0; ok && w < c->wrote; w++)
		ok = log_fits(c, w, c->wrote);
	if (!ok)
		return false;
	memcpy(c->applied, c->found, sizeof(c->applied));
	for (unsigned int i = 0; i < CHURN_SHARDS; i++)
		c->behind[i] = c->found_next[i] - 1;
	c->queue_len = 0;
	c->wrote = c->running;
	return true;
}

struct log *churn_log(const struct churn *c, unsigned int shard)
{
	return c->logs[shard % c->running];
}

/* ---- work ---- */

static int16_t append(struct churn *c, unsigned int shard, struct churn_write *w, unsigned int n)
{
	struct log_entry entries[16];
	uint8_t keys[16][2], *room;
	size_t used = 0;
	int16_t error = 0;
	CHECK(n <= 16 && c->queue_len + n <= CHURN_QUEUE);
	for (unsigned int i = 0; i < n; i++)
		used += VALUE_HEAD + w[i].value.len;
	room = malloc(used + 1);
	used = 0;
	for (unsigned int i = 0; i < n; i++) {
		struct writer out = writer_of(room + used, VALUE_HEAD);
		keys[i][0] = 'k';
		keys[i][1] = (uint8_t)w[i].key;
		w[i].shard = shard;
		w[i].value.number = ++c->number;
		writer_u64(&out, c->number);
		writer_u64(&out, w[i].value.len);
		for (size_t k = 0; k < w[i].value.len; k++)
			room[used + VALUE_HEAD + k] = filling(c->number, k);
		struct bytes value = bytes_of(room + used, VALUE_HEAD + w[i].value.len);
		entries[i] = (struct log_entry){bytes_of(keys[i], 2), w[i].tombstone ? BYTES_NULL : value};
		used += VALUE_HEAD + w[i].value.len;
	}
	uint64_t position = log_append(churn_log(c, shard), shard, entries, n, &error, c->now);
	for (unsigned int i = 0; position != 0 && i < n; i++) {
		w[i].position = position;
		w[i].value.offset = entries[i].offset;
		if (w[i].tombstone)
			w[i].value.number = w[i].value.len = 0;
		c->queue[c->queue_len++] = w[i];
	}
	free(room);
	return position != 0 ? 0 : error;
}

int16_t churn_put(struct churn *c, unsigned int shard, unsigned int key, bool tombstone, size_t bytes)
{
	struct churn_write w = {.key = key, .tombstone = tombstone, .value = {.len = bytes}};
	return append(c, shard, &w, 1);
}

int16_t churn_append(struct churn *c, unsigned int shard, unsigned int n, unsigned int tombstones, size_t bytes)
{
	struct churn_write w[16] = {{.shard = shard}};
	for (unsigned int i = 0; i < n; i++) {
		uint64_t dice = sim_random(&c->random);
		w[i] = (struct churn_write){
			.key = (unsigned int)(dice >> 8) % CHURN_KEYS, .tombstone = dice % 100 < tombstones, .value = {.len = bytes}};
	}
	return append(c, shard, w, n);
}

void churn_poll(struct churn *c)
{
	unsigned int kept = 0;
	c->now.us += 10;
	for (unsigned int w = 0; w < c->running; w++)
		log_poll(c->logs[w], c->now);
	for (unsigned int i = 0; i < c->queue_len; i++) {
		const struct churn_write *w = &c->queue[i];
		if (w->position > log_durable(churn_log(c, w->shard))) {
			c->queue[kept++] = *w;
			continue;
		}
		c->applied[w->shard][w->key] = w->value;
		c->behind[w->shard] = w->value.offset;
	}
	c->queue_len = kept;
}

void churn_settle(struct churn *c)
{
	for (int i = 0, quiet = 0; i < 400000 && quiet < 200; i++) {
		uint64_t runs = churn_status(c).cleaned.read_bytes + churn_status(c).cleaned.records;
		churn_poll(c);
		quiet = c->queue_len == 0 && churn_status(c).cleaned.read_bytes + churn_status(c).cleaned.records == runs ? quiet + 1 : 0;
	}
}

void churn_cut(struct churn *c, bool kill)
{
	struct sim_disk *after = sim_disk_after_cut(c->disk, kill);
	churn_drop_log(c);
	disk_free(&c->disk->disk);
	c->disk = after;
}

void churn_stop(struct churn *c)
{
	churn_drop_log(c);
}

struct log_disk_status churn_status(struct churn *c)
{
	struct log_disk_status sum, s;
	log_disk_status(c->logs[0], &sum);
	for (unsigned int w = 1; w < c->running; w++) {
		log_disk_status(c->logs[w], &s);
		sum.bytes += s.bytes;
		sum.failed |= s.failed;
		sum.cleaned.passes += s.cleaned.passes;
		sum.cleaned.runs += s.cleaned.runs;
		sum.cleaned.failed += s.cleaned.failed;
		sum.cleaned.read_bytes += s.cleaned.read_bytes;
		sum.cleaned.records += s.cleaned.records;
		sum.cleaned.dropped += s.cleaned.dropped;
	}
	return sum;
}

uint64_t churn_live(const struct churn *c)
{
	uint64_t bytes = 0;
	for (unsigned int i = 0; i < CHURN_SHARDS * CHURN_KEYS; i++)
		if (c->applied[i / CHURN_KEYS][i % CHURN_KEYS].number != 0)
			bytes += ENTRY_HEAD + BATCH_HEAD + 12 + VALUE_HEAD + c->applied[i / CHURN_KEYS][i % CHURN_KEYS].len;
	return bytes;
}
