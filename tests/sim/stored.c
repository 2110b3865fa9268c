/*
 * stored.c - the production log on the simulated disk (tests/unit/log/sim_disk.h), behind the model of disk.c: in some worlds what becomes durable, and
 * what a crash leaves, is what the log, its cleaner and its recovery make of a disk that loses, tears and reorders what was not flushed.
 *
 * disk.c keeps every record all the same: it is the ledger. Checked at each start, before anything is replayed: what is there is the ledger's
 * beginning up to some request's end, with everything in it that was durable; a record is missing only if a newer one of its key is there, or if its key is
 * gone; nothing else is there, nothing twice, and each shard goes on where it ended.
 */
#include <stdio.h>

#include "coordinator/log/log_disk.h"

#include "tests/unit/log/sim_disk.h"

#include "stored.h"

#define SEGMENT_BYTES (32u * 1024)
#define SAID_MAX 4000
#define NOT_ENOUGH_REPLICAS 19 /* the disk does not keep up */
#define STARTS_MAX 60 /* that may be cut one after the other */

struct found {
	unsigned int shard;
	struct log_entry e; /* bytes from malloc */
};

struct stored {
	struct world *w;
	struct rng rng;
	struct sim_disk *disk;
	struct log *log;
	uint64_t lazy_until;
	int64_t next_offset[SHARDS]; /* as the last start found them */
	struct found *found;
	size_t found_len, found_cap;
	bool *there; /* by position: the last start found the record */
	char said[SAID_MAX];
};

/* ---- starting ---- */

static void stored_say(void *arg, const char *line)
{
	struct stored *s = arg;
	size_t len = strlen(s->said);
	snprintf(s->said + len, sizeof(s->said) - len, "%s\n", line);
}

static bool stored_record(void *arg, unsigned int shard, const struct log_entry *e)
{
	struct stored *s = arg;
	if (s->found_len == s->found_cap) {
		s->found_cap = s->found_cap == 0 ? 256 : s->found_cap * 2;
		s->found = realloc(s->found, s->found_cap * sizeof(*s->found));
		CHECK(s->found != NULL);
	}
	struct found *f = &s->found[s->found_len++];
	*f = (struct found){shard, {.offset = e->offset}};
	CHECK(bytes_dup(&f->e.key, e->key) && bytes_dup(&f->e.value, e->value));
	return true;
}

static void stored_forget_found(struct stored *s)
{
	while (s->found_len > 0) {
		struct found *f = &s->found[--s->found_len];
		bytes_free(&f->e.key);
		bytes_free(&f->e.value);
	}
}

/* One start; false: it did not go through. */
static bool stored_start(struct stored *s, char *err, size_t err_len)
{
	struct recover rc = {.disk = &s->disk->disk, .shards = SHARDS, .say = stored_say, .record = stored_record, .arg = s};
	struct log_disk_config cfg = {
		.disk = &s->disk->disk,
		.shards = SHARDS,
		.segment_bytes = SEGMENT_BYTES,
		.total_bytes = 1ull << 40,
		.dirty_percent = 1 + rng_below(&s->rng, 50),
		.retention_ms = rng_one_in(&s->rng, 2) ? 0 : 3600000,
		.random = rng_next(&s->rng),
		.say = stored_say,
		.say_arg = s,
	};
	stored_forget_found(s);
	s->said[0] = '\0';
	if (!recover_init(&rc, (const uint8_t *)"0123456789abcdef", err, err_len))
		return false;
	bool ok = recover_run(&rc, err, err_len);
	REQUIRE(s->w, "log-damaged", rc.lost_blocks + recover_set_aside(&rc) == 0, "%s", s->said);
	for (unsigned int i = 0; i < SHARDS; i++)
		s->next_offset[i] = rc.state[i].next_offset;
	if (ok) {
		s->log = log_disk_new(&cfg);
		ok = log_disk_begin(s->log, &rc, err, err_len);
	}
	recover_fini(&rc);
	return ok;
}

static void stored_close(struct stored *s)
{
	struct log_disk_status status;
	if (s->log == NULL)
		return;
	log_disk_status(s->log, &status);
	s->w->cleaned += status.cleaned.runs;
	log_free(s->log);
	s->log = NULL;
}

/* The power is cut, or the program killed; what it leaves is another disk. */
static void stored_cut(struct stored *s, bool kill)
{
	struct sim_disk *after = sim_disk_after_cut(s->disk, kill);
	stored_close(s);
	disk_free(&s->disk->disk);
	s->disk = after;
}

/* Until a start goes through; each may be cut as well. */
static void stored_begin(struct stored *s)
{
	char err[400] = "";
	uint64_t after = rng_one_in(&s->rng, 3) ? 1 + rng_below(&s->rng, 30) : 0;
	for (unsigned int tries = 0;; tries++) {
		s->disk->cut_at = after > 0 && tries < STARTS_MAX ? after + tries % 5 : 0;
		if (stored_start(s, err, sizeof(err)) && !s->disk->cut)
			break;
		REQUIRE(s->w, "log-refuses", s->disk->cut, "%s\n%s", err, s->said);
		stored_cut(s, rng_one_in(&s->rng, 2));
	}
	s->disk->cut_at = 0;
}

struct stored *stored_new(struct world *w)
{
	struct stored *s = calloc(1, sizeof(*s));
	CHECK(s != NULL);
	s->w = w;
	s->rng = rng_of(w->plan.seed, 78);
	s->disk = sim_disk_new(w->plan.seed + 1);
	stored_begin(s);
	s->disk->cut_at = w->cut_op;
	return s;
}

void stored_free(struct stored *s)
{
	stored_close(s);
	s->w->operations = s->disk->ops;
	disk_free(&s->disk->disk);
	stored_forget_found(s);
	free(s->found);
	free(s->there);
	free(s);
}

/* ---- working ---- */

uint64_t stored_append(struct stored *s, unsigned int shard, struct log_entry *entries, unsigned int n, int16_t *error, struct now now)
{
	uint64_t at = log_append(s->log, shard, entries, n, error, now);
	REQUIRE(s->w, "log-refuses", at != 0 || *error == NOT_ENOUGH_REPLICAS || s->disk->cut, "error %d\n%s", *error, s->said);
	return at;
}

uint64_t stored_poll(struct stored *s, bool held, uint32_t slow_ms, struct now now)
{
	if (slow_ms > 0 && s->lazy_until <= now.us && rng_one_in(&s->rng, 4))
		s->lazy_until = now.us + slow_ms * (uint64_t)US_PER_MS;
	s->disk->lazy = held || now.us < s->lazy_until;
	uint64_t wish = log_poll(s->log, now);
	REQUIRE(s->w, "log-failed", log_failed(s->log) == 0 || s->disk->cut, "%s", s->said);
	if (held)
		return TIME_NEVER;
	return s->disk->lazy && wish < s->lazy_until ? s->lazy_until : wish;
}

uint64_t stored_durable(const struct stored *s)
{
	return log_durable(s->log);
}

void stored_set_owner(struct stored *s, const struct log_owner *owner)
{
	log_set_owner(s->log, owner);
}

bool stored_is_cut(const struct stored *s)
{
	return s->disk->cut;
}

void stored_break(struct stored *s, struct now now)
{
	s->disk->lazy = false;
	s->disk->fail_write = 1;
	for (unsigned int i = 0; i < 200 && log_failed(s->log) == 0; i++)
		log_poll(s->log, now);
}

/* ---- what must be there ---- */

/* Entries of each shard up to a position. */
static bool shards_end_at(const struct stored *s, const struct ledger *d, uint64_t position)
{
	int64_t next[SHARDS] = {0};
	for (uint64_t i = 0; i < position; i++)
		next[d->entries[i].shard] = d->entries[i].e.offset + 1;
	return memcmp(next, s->next_offset, sizeof(next)) == 0;
}

/* The end of the request up to which the log is there. */
static uint64_t find_end(const struct stored *s, const struct ledger *d)
{
	if (shards_end_at(s, d, d->durable))
		return d->durable;
	for (unsigned int i = d->batch_first; i < d->batch_len; i++)
		if (shards_end_at(s, d, d->batches[i].position))
			return d->batches[i].position;
	fail(s->w, "log-lost", "the shards end at %lld, %lld, %lld, that is at no request from %llu on; %llu are durable\n%s", (long long)s->next_offset[0],
	     (long long)s->next_offset[1], (long long)s->next_offset[2], (unsigned long long)d->durable, (unsigned long long)d->durable, s->said);
}

static void mark_found(struct stored *s, const struct ledger *d, uint64_t end)
{
	uint64_t at[SHARDS] = {0};
	free(s->there);
	s->there = calloc(end + 1, sizeof(bool));
	CHECK(s->there != NULL);
	for (size_t k = 0; k < s->found_len; k++) {
		const struct found *f = &s->found[k];
		uint64_t *i = &at[f->shard];
		while (*i < end && (d->entries[*i].shard != f->shard || d->entries[*i].e.offset < f->e.offset))
			(*i)++;
		REQUIRE(s->w, "log-invented", *i < end && d->entries[*i].e.offset == f->e.offset && !s->there[*i] &&
			bytes_equal(d->entries[*i].e.key, f->e.key) && bytes_equal(d->entries[*i].e.value, f->e.value),
			"shard %u, offset %lld was never written so\n%s", f->shard, (long long)f->e.offset, s->said);
		s->there[*i] = true;
	}
}

static void check_missing(const struct stored *s, const struct ledger *d, uint64_t end)
{
	bool *newest = disk_newest(d, end);
	for (uint64_t i = 0; i < end; i++)
		REQUIRE(s->w, "log-lost", !newest[i] || s->there[i] || bytes_is_null(d->entries[i].e.value), "record %llu, the newest of its key\n%s",
			(unsigned long long)i, s->said);
	for (uint64_t i = 0; i < end; i++) { /* a key that is gone */
		if (!newest[i] || s->there[i])
			continue;
		for (uint64_t k = 0; k < i; k++)
			REQUIRE(s->w, "log-brings-back", !s->there[k] || d->entries[k].shard != d->entries[i].shard ||
				!bytes_equal(d->entries[k].e.key, d->entries[i].e.key), "record %llu of a key whose tombstone is gone",
				(unsigned long long)k);
	}
	free(newest);
}

uint64_t stored_crash(struct stored *s, const struct ledger *d)
{
	stored_cut(s, rng_one_in(&s->rng, 2));
	s->lazy_until = 0;
	stored_begin(s);
	uint64_t end = find_end(s, d);
	mark_found(s, d, end);
	check_missing(s, d, end);
	return end;
}

const bool *stored_there(const struct stored *s)
{
	return s->there;
}
