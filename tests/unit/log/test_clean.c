/*
 * test_clean.c - what cleaning leaves: every key's newest record, tombstones as long as they are needed, offsets that go on, a bounded disk.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/log/batch.h"

#include "churn.h"

static struct churn *started(uint64_t seed)
{
	struct churn *c = churn_new(seed);
	cr_assert(churn_start(c), "%s", c->err);
	return c;
}

static void put(struct churn *c, unsigned int shard, unsigned int n, unsigned int tombstones, size_t bytes)
{
	while (churn_append(c, shard, n, tombstones, bytes) != 0)
		churn_poll(c);
}

static void work(struct churn *c, unsigned int batches, unsigned int tombstones, size_t bytes)
{
	for (unsigned int i = 0; i < batches; i++) {
		put(c, i % CHURN_SHARDS, 1 + i % 4, tombstones, bytes);
		for (int k = 0; k < 10; k++)
			churn_poll(c);
	}
}

static void restart(struct churn *c)
{
	churn_stop(c);
	cr_assert(churn_start(c), "%s", c->err);
	cr_assert(churn_check(c), "%s", c->said);
	cr_assert_eq(c->lost_blocks + c->set_aside, 0, "%s", c->said);
}

Test(clean, superseded_records_go_and_nothing_else)
{
	struct churn *c = started(1);
	work(c, 1500, 0, 300);
	churn_settle(c);
	struct log_disk_status s = churn_status(c);
	cr_assert_gt(s.cleaned.passes, 2);
	cr_assert_gt(s.cleaned.dropped, 2000);
	cr_assert_eq(s.cleaned.failed, 0, "%s", c->said);
	restart(c);
	cr_assert_lt(c->found_records, 3 * CHURN_SHARDS * CHURN_KEYS, "%lu", (unsigned long)c->found_records);
	for (int i = 0; i < 10; i++) {
		work(c, 200, 10, 300);
		restart(c);
	}
	churn_free(c);
}

/* While it is written, not only afterwards. The floor: what is being written, what is made in advance, what is kept to clean with. */
Test(clean, disk_use_under_churn_stays_below_three_times_the_live_data)
{
	struct churn *c = started(2);
	size_t worst = 0;
	for (unsigned int i = 0; i < 1500; i++) {
		put(c, i % CHURN_SHARDS, 2, 0, 4000);
		for (int k = 0; k < 40; k++)
			churn_poll(c);
		if (i > 600 && c->disk->used > worst)
			worst = c->disk->used;
	}
	uint64_t live = churn_live(c), floor = 5 * c->segment_bytes; /* written 1, next 1, kept to clean with 2.5, tiny as they are here */
	cr_assert_gt(live, 20 * c->segment_bytes);
	cr_assert_lt(worst, 3 * live + floor, "%zu bytes for %lu live ones", worst, (unsigned long)live);
	cr_log_info("%zu bytes for %lu live ones: %.2f", worst, (unsigned long)live, (double)worst / (double)live);
	restart(c);
	churn_free(c);
}

/* Of two keys. */
static void traffic(struct churn *c, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		while (churn_put(c, 0, i % 2, false, 900) != 0)
			churn_poll(c);
		churn_poll(c);
	}
}

/* Deleted keys do not come back, whatever was cleaned when; their tombstones stay for the grace time and then go. */
Test(clean, tombstones_go_after_their_grace_time)
{
	struct churn *c = churn_new(3);
	c->retention_ms = 60000;
	cr_assert(churn_start(c));
	work(c, 400, 0, 300);
	for (unsigned int shard = 0; shard < CHURN_SHARDS; shard++)
		for (unsigned int key = 0; key < CHURN_KEYS; key++)
			while (churn_put(c, shard, key, true, 0) != 0)
				churn_poll(c);
	traffic(c, 60);
	churn_settle(c);
	restart(c);
	cr_assert_gt(c->found_tombstones, 150, "%lu", (unsigned long)c->found_tombstones);
	c->now.wall_ms += 61000;
	for (int i = 0; i < 8; i++) { /* enough for a pass to begin */
		traffic(c, 60);
		churn_settle(c);
	}
	restart(c);
	cr_assert_lt(c->found_tombstones, 10, "%lu", (unsigned long)c->found_tombstones);
	churn_free(c);
}

/* The last record of a shard is a tombstone that goes: the next one still gets the next offset, in the next epoch. */
Test(clean, offsets_and_epochs_survive_their_records)
{
	struct churn *c = started(4);
	cr_assert_eq(churn_put(c, 2, 5, false, 100), 0);
	cr_assert_eq(churn_put(c, 2, 5, true, 0), 0);
	for (int i = 0; i < 8; i++) {
		for (unsigned int k = 0; k < 120; k++) {
			while (churn_put(c, 0, k % 7, false, 300) != 0)
				churn_poll(c);
			churn_poll(c);
		}
		churn_settle(c);
	}
	restart(c);
	cr_assert_eq(c->found_tombstones, 0);
	struct log_span span;
	log_span(churn_log(c, 2), 2, &span);
	cr_assert_eq(span.high_watermark, 2);
	cr_assert_eq(span.epochs_len, 1);
	cr_assert_eq(span.epoch, 1);
	cr_assert_eq(churn_put(c, 2, 6, false, 100), 0);
	churn_settle(c);
	restart(c);
	log_span(churn_log(c, 2), 2, &span);
	cr_assert_eq(span.high_watermark, 3);
	cr_assert_eq(span.epochs_len, 2);
	cr_assert(span.epochs[1].epoch == 1 && span.epochs[1].start == 2);
	churn_free(c);
}

/* ---- reading what was cleaned ---- */

static bool read_done;

static void note_done(struct log_read *read, struct now now)
{
	read_done = true;
}

static void read_one(struct churn *c, struct log_read *r)
{
	read_done = false;
	r->done = note_done;
	cr_assert(log_read_start(churn_log(c, r->shard), r));
	while (!read_done)
		churn_poll(c);
	cr_assert_eq(r->error, 0);
}

/* From any offset, in gaps too: offsets rise, and the last record of every live key is among them. */
static void read_everything(struct churn *c, unsigned int shard)
{
	static uint8_t buf[1 << 17];
	bool seen[CHURN_KEYS] = {false};
	int64_t last = -1;
	struct log_read r = {.shard = shard, .buf = buf, .cap = sizeof(buf)};
	for (;; r.offset = r.next_offset) {
		read_one(c, &r);
		if (r.len == 0)
			break;
		for (struct reader rest = reader_of(buf, r.len); reader_left(&rest) > 0;) {
			struct reader head = rest;
			reader_u64(&head);
			size_t size = reader_u32(&head) + 12;
			struct batch b;
			struct batch_record record;
			cr_assert(batch_open(&b, bytes_of(rest.p, size)));
			while (batch_next(&b, &record)) {
				unsigned int key = record.entry.key.p[1];
				cr_assert_gt(record.offset, last);
				last = record.offset;
				seen[key] |= c->applied[shard][key].offset == record.offset;
			}
			reader_take(&rest, size);
		}
	}
	for (unsigned int key = 0; key < CHURN_KEYS; key++)
		cr_assert(c->applied[shard][key].number == 0 || seen[key], "key %u", key);
}

Test(clean, readers_find_their_way_through_cleaned_files)
{
	struct churn *c = started(5);
	work(c, 900, 5, 300);
	churn_settle(c);
	for (unsigned int shard = 0; shard < CHURN_SHARDS; shard++)
		read_everything(c, shard);
	restart(c);
	for (unsigned int shard = 0; shard < CHURN_SHARDS; shard++)
		read_everything(c, shard);
	/* and while it goes on */
	for (int i = 0; i < 40; i++) {
		work(c, 30, 5, 300);
		read_everything(c, (unsigned int)i % CHURN_SHARDS);
	}
	churn_free(c);
}

/* ---- what goes wrong ---- */

static const char *first_with(struct churn *c, const char *end)
{
	for (int i = 0; sim_disk_name(c->disk, i) != NULL; i++)
		if (strstr(sim_disk_name(c->disk, i), end) != NULL && strstr(sim_disk_name(c->disk, i), ".new") == NULL)
			return sim_disk_name(c->disk, i);
	return NULL;
}

/* A block that rotted is found by the cleaner: it stops before it, says so, removes nothing; the next start says what is lost. */
Test(clean, a_damaged_input_is_left_alone)
{
	struct churn *c = churn_new(6);
	c->dirty_percent = 100; /* later */
	cr_assert(churn_start(c));
	work(c, 100, 0, 300);
	churn_stop(c);
	size_t len;
	const char *name = first_with(c, ".seg");
	char kept[FORMAT_NAME_MAX];
	snprintf(kept, sizeof(kept), "%s", name);
	c->dirty_percent = 50;
	cr_assert(churn_start(c) && churn_check(c));
	sim_disk_bytes(c->disk, kept, &len)[2 * FORMAT_ALIGN + 100] ^= 1;
	work(c, 300, 0, 300);
	churn_settle(c);
	cr_assert(strstr(c->said, "cleaning: reading") != NULL && strstr(c->said, "a block is damaged") != NULL, "%s", c->said);
	cr_assert(sim_disk_bytes(c->disk, kept, &len) != NULL);
	churn_stop(c);
	cr_assert(!churn_start(c));
	cr_assert(strstr(c->err, "was durable and is damaged") != NULL, "%s", c->err);
	churn_free(c);
}

/* In a cleaned file every block was durable before anybody could miss it: any flipped bit in a block is damage. */
Test(clean, damage_in_a_cleaned_file_is_refused)
{
	for (unsigned int at = 0; at < 40; at++) {
		struct churn *c = started(7);
		work(c, 400, 0, 300);
		churn_settle(c);
		churn_stop(c);
		size_t len;
		uint8_t *p = sim_disk_bytes(c->disk, first_with(c, ".cln"), &len);
		size_t blocks = len / FORMAT_ALIGN;
		p[at % blocks * FORMAT_ALIGN + at] ^= (uint8_t)(1 << at % 8); /* in a head: all of them are checked */
		bool block_begins = at % blocks < 3 || at % blocks == blocks - 1;
		bool ok = churn_start(c);
		cr_assert(!block_begins || !ok, "block %zu of %zu", at % blocks, blocks);
		cr_assert(!ok || churn_check(c), "damage was believed");
		churn_free(c);
	}
}

/* Files of earlier starts are cleaned by several workers, each for its own shards. Who reads or removes one that another removed is stopped by it for good. */
Test(clean, workers_stay_out_of_what_another_has_removed)
{
	struct churn *c = churn_new(9);
	uint64_t runs = 0;
	c->segment_bytes = 16 * 1024;
	c->dirty_percent = 1;
	c->workers = CHURN_SHARDS;
	cr_assert(churn_start(c));
	for (int i = 0; i < 12; i++) {
		work(c, 200, 10, 300);
		c->now.us += 20 * US_PER_S;
		churn_settle(c);
		runs += churn_status(c).cleaned.runs;
		cr_assert_eq(churn_status(c).cleaned.failed, 0, "%s", c->said);
		cr_assert_null(strstr(c->said, "cleaning:"), "%s", c->said);
		restart(c);
	}
	cr_assert_gt(runs, 20, "%lu", (unsigned long)runs);
	churn_free(c);
}

/* Reads and writes of the cleaner that fail cost nothing but time. */
Test(clean, failed_reads_and_writes)
{
	uint64_t failures = 0;
	for (uint64_t n = 1; n < 40; n++) {
		struct churn *c = churn_new(100 + n);
		c->dirty_percent = 100;
		cr_assert(churn_start(c));
		work(c, 150, 10, 300);
		churn_stop(c);
		c->dirty_percent = 1;
		cr_assert(churn_start(c) && churn_check(c));
		for (int i = 0; i < 60; i++) /* the next segment is made; from now on only the cleaner is at work */
			churn_poll(c);
		if (n % 2 == 0)
			c->disk->fail_read = n / 2;
		else
			c->disk->fail_write = n / 2 + 1;
		churn_settle(c);
		c->now.us += 20 * US_PER_S;
		churn_settle(c);
		cr_assert(!churn_status(c).failed);
		failures += churn_status(c).cleaned.failed;
		c->disk->fail_read = c->disk->fail_write = 0; /* it had less to do than that */
		work(c, 20, 0, 300);
		churn_settle(c);
		restart(c);
		churn_free(c);
	}
	cr_assert_gt(failures, 10, "%lu", (unsigned long)failures);
}

/* The model would notice an owner that lets live records go. */
static enum log_verdict lie(void *arg, unsigned int shard, const struct log_entry *e)
{
	return LOG_DEAD;
}

static bool lie_owns(void *arg, unsigned int shard)
{
	return true;
}

static int64_t lie_applied(void *arg, unsigned int shard)
{
	return INT64_MAX;
}

Test(clean, the_test_can_fail)
{
	struct churn *c = started(8);
	struct log_owner liar = {lie, lie_owns, lie_applied, NULL};
	log_set_owner(c->logs[0], &liar);
	work(c, 400, 0, 300);
	churn_settle(c);
	churn_stop(c);
	cr_assert(churn_start(c), "%s", c->err);
	cr_assert(!churn_check(c));
	churn_free(c);
}
