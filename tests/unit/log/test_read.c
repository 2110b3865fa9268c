/*
 * test_read.c - reading along: by any offset, in any portions, up to the high watermark, while the log is written and after restarts.
 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "coordinator/log/batch.h"

#include "life.h"

struct reading {
	struct log_read read;
	bool done;
};

static void reading_done(struct log_read *read, struct now now)
{
	struct reading *r = CONTAINER_OF(read, struct reading, read);
	cr_assert(!r->done);
	r->done = true;
}

static void read_at(struct life *l, struct reading *r, unsigned int shard, int64_t offset, uint8_t *buf, size_t cap)
{
	*r = (struct reading){.read = {.shard = shard, .offset = offset, .buf = buf, .cap = cap, .done = reading_done}};
	cr_assert(log_read_start(l->log, &r->read));
	cr_assert(!r->done, "not from inside");
	for (int i = 0; i < 100000 && !r->done; i++)
		life_poll(l);
	cr_assert(r->done);
}

/* How many records the whole batches in buf have; they follow each other without a gap from *offset on. */
static unsigned int check_batches(const struct log_read *read, int64_t offset, bool exact)
{
	unsigned int records = 0;
	struct reader rest = reader_of(read->buf, read->len);
	while (reader_left(&rest) > 0) {
		struct reader head = rest;
		reader_u64(&head);
		size_t size = reader_u32(&head) + 12;
		struct batch b;
		struct batch_record record;
		cr_assert(size <= reader_left(&rest) && batch_open(&b, bytes_of(rest.p, size)));
		cr_assert(exact ? b.base_offset == offset : b.base_offset <= offset && b.last_offset >= offset);
		while (batch_next(&b, &record))
			records++;
		offset = b.last_offset + 1;
		exact = true;
		reader_take(&rest, size);
	}
	cr_assert_eq(offset, read->len == 0 ? offset : read->next_offset);
	return records;
}

/* Everything of each shard, in portions. */
static void read_all(struct life *l, size_t cap)
{
	uint8_t *buf = malloc(cap);
	for (unsigned int shard = 0; shard < LIFE_SHARDS; shard++) {
		unsigned int records = 0, want = 0;
		for (unsigned int i = 0; i < l->len; i++)
			want += l->batches[i].shard == shard ? l->batches[i].records : 0;
		struct log_span span;
		cr_assert(log_span(l->log, shard, &span));
		cr_assert_eq(span.high_watermark, want);
		struct reading r;
		for (int64_t offset = 0;; offset = r.read.next_offset) {
			read_at(l, &r, shard, offset, buf, cap);
			cr_assert_eq(r.read.error, 0);
			if (r.read.len == 0)
				break;
			records += check_batches(&r.read, offset, true);
		}
		cr_assert_eq(r.read.need, 0);
		cr_assert_eq(records, want);
	}
	free(buf);
}

static struct life *filled(uint64_t seed, unsigned int batches)
{
	struct life *l = life_new(seed);
	cr_assert(life_start(l));
	for (unsigned int i = 0; i < batches; i++) {
		while (life_append(l, i * 7 % LIFE_SHARDS, 1 + i % 5, i % 90 == 0 ? 20000 : i % 700) != 0)
			life_poll(l);
		if (i % 3 == 0)
			life_settle(l);
	}
	life_settle(l);
	return l;
}

Test(read, everything_in_portions_live_and_after_restarts)
{
	struct life *l = filled(1, 600);
	read_all(l, 1 << 20);
	read_all(l, 128 * 1024);
	life_stop(l);
	cr_assert(life_start(l) && life_check(l));
	read_all(l, 128 * 1024);
	for (unsigned int i = 0; i < 50; i++)
		life_append(l, 1, 2, 100);
	life_settle(l);
	read_all(l, 128 * 1024);
	life_cut(l, true);
	cr_assert(life_start(l) && life_check(l));
	read_all(l, 1 << 20);
	life_free(l);
}

/* From any offset, also from inside a batch: the batch that holds it comes first. */
Test(read, from_any_offset)
{
	struct life *l = filled(2, 300);
	size_t cap = 1 << 17;
	uint8_t *buf = malloc(cap);
	struct log_span span;
	struct reading r;
	log_span(l->log, 2, &span);
	for (int64_t offset = 0; offset < span.high_watermark; offset++) {
		read_at(l, &r, 2, offset, buf, cap);
		cr_assert_eq(r.read.error, 0);
		cr_assert_gt(r.read.len, 0);
		check_batches(&r.read, offset, false);
	}
	read_at(l, &r, 2, span.high_watermark, buf, cap);
	cr_assert(r.read.error == 0 && r.read.len == 0 && r.read.need == 0);
	read_at(l, &r, 2, span.high_watermark + 1, buf, cap);
	cr_assert_eq(r.read.error, 1);
	read_at(l, &r, 2, -1, buf, cap);
	cr_assert_eq(r.read.error, 1);
	free(buf);
	life_free(l);
}

Test(read, a_batch_that_does_not_fit_says_what_it_needs)
{
	struct life *l = filled(3, 4);
	uint8_t *buf = malloc(30000);
	struct reading r;
	read_at(l, &r, 0, 0, buf, 100);
	cr_assert(r.read.error == 0 && r.read.len == 0 && r.read.need > 20000);
	read_at(l, &r, 0, 0, buf, r.read.need);
	cr_assert_gt(r.read.len, 20000);
	free(buf);
	life_free(l);
}

/* What is not durable is not seen. */
Test(read, nothing_above_the_high_watermark)
{
	struct life *l = filled(4, 20);
	uint8_t buf[4096];
	struct log_span span;
	struct reading r;
	for (int i = 0; i < 300; i++)
		life_poll(l);
	log_span(l->log, 0, &span);
	l->disk->lazy = true;
	life_append(l, 0, 1, 100);
	life_poll(l);
	int64_t before = span.high_watermark;
	log_span(l->log, 0, &span);
	cr_assert_eq(span.high_watermark, before);
	read_at(l, &r, 0, before, buf, sizeof(buf));
	cr_assert(r.read.error == 0 && r.read.len == 0);
	l->disk->lazy = false;
	life_settle(l);
	read_at(l, &r, 0, before, buf, sizeof(buf));
	cr_assert_gt(r.read.len, 0);
	life_free(l);
}

/* A block that rotted on the disk is an error for the reader, never bytes. */
Test(read, damage_is_an_error)
{
	struct life *l = filled(5, 40);
	size_t len;
	uint8_t *buf = malloc(1 << 16);
	struct reading r;
	sim_disk_bytes(l->disk, "00000001-0000-00000001.seg", &len)[FORMAT_ALIGN + 200] ^= 4;
	read_at(l, &r, 0, 0, buf, 1 << 16);
	cr_assert_eq(r.read.error, 56);
	cr_assert_eq(r.read.len, 0);
	free(buf);
	life_free(l);
}

/* Each start is an epoch; one that writes nothing leaves no entry. */
Test(read, epoch_history)
{
	struct life *l = filled(6, 40);
	struct log_span span;
	int64_t first;
	log_span(l->log, 1, &span);
	first = span.high_watermark;
	cr_assert_eq(span.epochs_len, 1);
	for (int i = 0; i < 3; i++) {
		life_stop(l);
		cr_assert(life_start(l) && life_check(l));
	}
	life_append(l, 1, 1, 10);
	life_settle(l);
	life_stop(l);
	cr_assert(life_start(l) && life_check(l));
	log_span(l->log, 1, &span);
	cr_assert_eq(span.epochs_len, 2);
	cr_assert(span.epochs[0].epoch == 0 && span.epochs[0].start == 0);
	cr_assert(span.epochs[1].epoch == 1 && span.epochs[1].start == first);
	cr_assert_eq(span.epoch, 2);
	cr_assert_eq(span.start, 0);
	life_free(l);
}

/* Reads that are still under way when the log ends are answered. */
Test(read, log_free_ends_reads)
{
	struct life *l = filled(7, 40);
	uint8_t buf[4096];
	struct reading a = {.read = {.shard = 0, .buf = buf, .cap = sizeof(buf), .done = reading_done}}, b = a;
	log_read_start(l->log, &a.read);
	log_read_start(l->log, &b.read);
	l->disk->lazy = true;
	life_poll(l);
	life_stop(l);
	cr_assert(a.done && b.done);
	cr_assert_eq(b.read.error, 56);
	life_free(l);
}
