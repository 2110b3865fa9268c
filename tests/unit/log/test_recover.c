/*
 * test_recover.c - damaged, missing and foreign files: said, refused, or skipped on demand; and the same on a real folder.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "coordinator/log/segment.h"
#include "coordinator/log/store.h"

#include "life.h"

#define FIRST "00000001-0000-00000001.seg"
#define SECOND "00000001-0000-00000002.seg"
#define THIRD "00000001-0000-00000003.seg"

/* Some segments of acknowledged batches, after a power cut. */
static struct life *written(uint64_t seed, unsigned int batches)
{
	struct life *l = life_new(seed);
	cr_assert(life_start(l));
	for (unsigned int i = 0; i < batches; i++) {
		cr_assert_eq(life_append(l, i % LIFE_SHARDS, 2, 400), 0);
		life_settle(l);
		for (int k = 0; k < 20; k++)
			life_poll(l);
	}
	life_cut(l, false);
	return l;
}

/* What was found is in order and from the ledger, but need not be all. */
static void check_part(const struct life *l)
{
	unsigned int before[LIFE_SHARDS] = {0};
	cr_assert(!l->bad);
	for (unsigned int i = 0; i < l->found_len; i++) { /* shard by shard */
		unsigned int shard = l->batches[l->found[i]].shard;
		cr_assert(l->found[i] >= before[shard]);
		before[shard] = l->found[i] + 1;
	}
}

/* What was skipped once is neither refused nor said again, whatever happens to the power. */
static void check_mended(struct life *l, unsigned int found)
{
	l->skip_damaged = false;
	for (int i = 0; i < 2; i++) {
		life_cut(l, false);
		cr_assert(life_start(l), "%s", l->err);
		check_part(l);
		cr_assert_eq(l->found_len, found);
		cr_assert_eq(l->lost_blocks, 0);
		cr_assert_str_empty(l->said);
	}
}

Test(recover, flipped_bit_in_the_middle_is_refused_then_skipped)
{
	for (unsigned int bit = 0; bit < 64; bit++) {
		struct life *l = written(bit + 1, 20);
		size_t len;
		uint8_t *p = sim_disk_bytes(l->disk, FIRST, &len);
		cr_assert(p != NULL && len > 4 * FORMAT_ALIGN);
		/* the third block; of its first 900 bytes each counts */
		p[3 * FORMAT_ALIGN + (bit * 14) % 900] ^= (uint8_t)(1 << bit % 8);
		cr_assert(!life_start(l), "bit %u", bit);
		cr_assert(strstr(l->err, FIRST ": block 3 at byte 12288") != NULL, "%s", l->err);
		l->skip_damaged = true;
		cr_assert(life_start(l), "%s", l->err);
		check_part(l);
		cr_assert_eq(l->found_len, 19);
		cr_assert_eq(l->lost_blocks, 1);
		cr_assert(strstr(l->said, "LOST: blocks 3 to 3") != NULL, "%s", l->said);
		cr_assert(strstr(l->said, "LOST: shard 2, offsets 0 to 1\n") != NULL, "%s", l->said);
		check_mended(l, 19);
		life_free(l);
	}
}

/* Several blocks in a row, and their bytes are kept. */
Test(recover, a_long_hole)
{
	struct life *l = written(30, 20);
	size_t len;
	uint8_t *p = sim_disk_bytes(l->disk, FIRST, &len), was[3 * FORMAT_ALIGN];
	cr_assert_gt(len, 6 * FORMAT_ALIGN);
	for (int i = 2; i < 5; i++)
		p[i * FORMAT_ALIGN + 10] ^= 1;
	memcpy(was, p + 2 * FORMAT_ALIGN, sizeof(was));
	l->skip_damaged = true;
	cr_assert(life_start(l), "%s", l->err);
	cr_assert_eq(l->found_len, 17);
	cr_assert_eq(l->lost_blocks, 3);
	cr_assert(strstr(l->said, "LOST: blocks 2 to 4 at byte 8192") != NULL, "%s", l->said);
	p = sim_disk_bytes(l->disk, FIRST "-2000.damaged", &len);
	cr_assert(p != NULL && len == sizeof(was) && memcmp(p, was, sizeof(was)) == 0);
	check_mended(l, 17);
	life_free(l);
}

/* The power goes at every operation of a start that mends: the next one that is told to skip ends up at the same. */
Test(recover, mending_is_cut)
{
	for (uint64_t at = 1; at < 40; at++) {
		struct life *l = written(at, 20);
		sim_disk_flip(l->disk, FIRST, 3 * FORMAT_ALIGN + 100, 1);
		l->skip_damaged = true;
		l->disk->cut_at = l->disk->ops + at;
		life_start(l);
		life_cut(l, false);
		cr_assert(life_start(l), "%s", l->err);
		check_part(l);
		cr_assert_eq(l->found_len, 19);
		check_mended(l, 19);
		life_free(l);
	}
}

/* In the tail, too, as long as a later block says that it had been flushed. */
Test(recover, damage_in_the_tail_is_no_torn_write)
{
	struct life *l = written(31, 5);
	size_t len;
	sim_disk_bytes(l->disk, FIRST, &len)[2 * FORMAT_ALIGN + 200] ^= 8;
	cr_assert(!life_start(l));
	cr_assert(strstr(l->err, FIRST ": block 2 at byte 8192 was durable") != NULL, "%s", l->err);
	l->skip_damaged = true;
	cr_assert(life_start(l), "%s", l->err);
	check_part(l);
	cr_assert_eq(l->found_len, 4);
	check_mended(l, 4);
	life_free(l);
}

/* A good block in the wrong place, as a disk that mixes up addresses leaves it. */
Test(recover, misplaced_block)
{
	struct life *l = written(32, 5);
	size_t len;
	uint8_t *p = sim_disk_bytes(l->disk, FIRST, &len);
	memcpy(p + 3 * FORMAT_ALIGN, p + FORMAT_ALIGN, FORMAT_ALIGN);
	cr_assert(!life_start(l));
	cr_assert(strstr(l->err, FIRST ": block 3") != NULL, "%s", l->err);
	life_free(l);
}

/* The last block cannot be told from one whose write was cut. */
Test(recover, damaged_last_block_is_a_torn_tail)
{
	struct life *l = written(3, 3);
	size_t len;
	uint8_t *p = sim_disk_bytes(l->disk, FIRST, &len);
	p[3 * FORMAT_ALIGN + 100] ^= 1;
	cr_assert(life_start(l), "%s", l->err);
	check_part(l);
	cr_assert_eq(l->found_len, 2);
	cr_assert(strstr(l->said, "cut at block 3, byte 12288") != NULL, "%s", l->said);
	life_free(l);
}

Test(recover, missing_segment)
{
	struct life *l = written(4, 60);
	size_t len;
	cr_assert(sim_disk_bytes(l->disk, THIRD, &len) != NULL);
	struct disk_op gone = {.verb = DISK_REMOVE, .name = SECOND};
	cr_assert_eq(disk_do(&l->disk->disk, &gone), 0);
	cr_assert(!life_start(l));
	cr_assert(strstr(l->err, "between " FIRST " and " THIRD " a segment is missing") != NULL, "%s", l->err);
	l->skip_damaged = true;
	cr_assert(life_start(l), "%s", l->err);
	check_part(l);
	cr_assert_gt(l->lost_blocks, 0);
	check_mended(l, l->found_len);
	life_free(l);
}

Test(recover, damaged_head)
{
	struct life *l = written(5, 60);
	size_t len;
	sim_disk_bytes(l->disk, FIRST, &len)[70] ^= 4;
	cr_assert(!life_start(l));
	cr_assert(strstr(l->err, FIRST) != NULL, "%s", l->err);
	l->skip_damaged = true;
	cr_assert(life_start(l), "%s", l->err);
	check_part(l);
	cr_assert_gt(l->found_len, 0);
	size_t aside;
	cr_assert(sim_disk_bytes(l->disk, FIRST ".damaged", &aside) != NULL && aside == len, "what it was is kept");
	check_mended(l, l->found_len);
	life_free(l);
}

Test(recover, meta)
{
	struct life *l = written(6, 3);
	size_t len;
	uint8_t *p = sim_disk_bytes(l->disk, "meta", &len);
	p[80] ^= 1;
	cr_assert(!life_start(l));
	cr_assert(strstr(l->err, "meta is damaged") != NULL, "%s", l->err);
	p[80] ^= 1;
	struct disk_op gone = {.verb = DISK_REMOVE, .name = "meta"};
	struct recover rc = {.disk = &l->disk->disk, .shards = LIFE_SHARDS + 1};
	cr_assert(!recover_init(&rc, (const uint8_t *)"0123456789abcdef", l->err, sizeof(l->err)));
	cr_assert(strstr(l->err, "made for 4 shards, offsets.topic.num.partitions is 5") != NULL, "%s", l->err);
	cr_assert_eq(disk_do(&l->disk->disk, &gone), 0);
	cr_assert(!life_start(l));
	cr_assert(strstr(l->err, "no file named meta") != NULL, "%s", l->err);
	life_free(l);
}

/* A segment of another log that lies in the folder. */
Test(recover, foreign_segment)
{
	struct life *l = written(7, 3), *other = written(8, 3);
	size_t len;
	uint8_t *p = sim_disk_bytes(l->disk, FIRST, &len);
	struct block b;
	struct block_id id;
	cr_assert(block_open(&b, p, len) && block_id_read(&id, bytes_of(p + BLOCK_HEAD, b.length)));
	id.log[0] ^= 1;
	block_id_write(p + BLOCK_HEAD, b.length, &id);
	block_seal(p, &b);
	cr_assert(!life_start(l));
	cr_assert(strstr(l->err, "belongs to another log") != NULL, "%s", l->err);
	life_free(l);
	life_free(other);
}

/* A record that the engine cannot read is set aside with its place, and what follows is loaded. */
static bool refuse_second(void *arg, unsigned int shard, const struct log_entry *e)
{
	unsigned int *n = arg;
	return ++*n != 2;
}

static void keep_line(void *arg, const char *line)
{
	snprintf(arg, 300, "%s", line);
}

struct both {
	char line[300];
	unsigned int records;
};

static bool both_record(void *arg, unsigned int shard, const struct log_entry *e)
{
	struct both *b = arg;
	return refuse_second(&b->records, shard, e);
}

Test(recover, unreadable_record_is_set_aside)
{
	struct life *l = written(9, 5);
	struct both b = {.records = 0};
	struct recover rc = {.disk = &l->disk->disk, .shards = LIFE_SHARDS, .say = keep_line, .record = both_record, .arg = &b};
	cr_assert(recover_init(&rc, (const uint8_t *)"0123456789abcdef", l->err, sizeof(l->err)));
	cr_assert(recover_run(&rc, l->err, sizeof(l->err)), "%s", l->err);
	cr_assert_eq(b.records, 10);
	cr_assert_eq(recover_set_aside(&rc), 1);
	cr_assert(strstr(b.line, FIRST ": shard 0, offset 1: a record cannot be read; set aside") != NULL, "%s", b.line);
	recover_fini(&rc);
	life_free(l);
}

/* ---- a real folder ---- */

struct folder {
	char name[64];
	struct store_config cfg;
	unsigned int records;
};

static void quiet(void *arg, const char *line)
{
}

static bool count(void *arg, unsigned int shard, const struct log_entry *e)
{
	struct folder *f = arg;
	f->records += shard == 3 && bytes_equal(e->key, BYTES_LITERAL("key"));
	return true;
}

static struct store *folder_open(struct folder *f)
{
	char err[300];
	struct store *s = store_new(&f->cfg, err, sizeof(err));
	cr_assert(s != NULL, "%s", err);
	f->records = 0;
	cr_assert(store_load(s, count, f, err, sizeof(err)), "%s", err);
	return s;
}

static void real_folder(enum log_flush flush, bool uring)
{
	struct folder f = {.name = "/tmp/muster-test-log-XXXXXX"};
	char path[128], err[300];
	cr_assert(mkdtemp(f.name) != NULL);
	snprintf(path, sizeof(path), "%s/log", f.name);
	f.cfg = (struct store_config){.folder = path, .flush = flush, .workers = 1, .shards = 8, .segment_bytes = 1 << 20, .total_bytes = 1 << 30,
				      .uring = uring, .say = quiet};
	unsigned int total = 0;
	for (int life = 0; life < 3; life++) {
		struct store *s = folder_open(&f);
		cr_assert_eq(f.records, total);
		cr_assert(store_new(&f.cfg, err, sizeof(err)) == NULL, "locked");
		cr_assert(strstr(err, "another program") != NULL, "%s", err);
		uint8_t value[5000] = {1};
		struct log_entry e = {BYTES_LITERAL("key"), bytes_of(value, sizeof(value))};
		uint64_t position = 0;
		struct now now = {1, 1};
		for (int i = 0; i < 500; i++) { /* more than two segments */
			int16_t error = 0;
			uint64_t got;
			while ((got = log_append(store_log(s, 0), 3, &e, 1, &error, now)) == 0) { /* the next segment is being made */
				cr_assert_eq(error, 19);
				log_poll(store_log(s, 0), now);
				now.us += 1000;
				usleep(100);
			}
			position = got;
			total++;
			log_poll(store_log(s, 0), now);
		}
		while (log_durable(store_log(s, 0)) < position)
			log_poll(store_log(s, 0), now);
		store_free(s);
	}
	store_free(folder_open(&f));
	cr_assert_eq(f.records, total);
	snprintf(err, sizeof(err), "rm -r %s", f.name);
	cr_assert_eq(system(err), 0);
}

Test(recover, real_folder_durable)
{
	real_folder(LOG_FLUSH_DURABLE, false);
	real_folder(LOG_FLUSH_DURABLE, true);
}

Test(recover, real_folder_written)
{
	real_folder(LOG_FLUSH_WRITTEN, false);
	real_folder(LOG_FLUSH_WRITTEN, true);
}

/* Values count up in each shard. */
struct sequence {
	uint32_t next[8];
	bool bad;
};

static bool in_sequence(void *arg, unsigned int shard, const struct log_entry *e)
{
	struct sequence *q = arg;
	uint32_t v;
	memcpy(&v, e->value.p, sizeof(v));
	q->bad |= v != q->next[shard]++;
	return true;
}

/* ---- quarantine ---- */

static bool refuse_some(void *arg, unsigned int shard, const struct log_entry *e)
{
	return e->value.p[0] % 3 != 0;
}

static void last_line(void *arg, const char *line)
{
	snprintf(arg, 300, "%s", line);
}

/* What is set aside stands in a file of its shard, as Kafka's batches with the offsets that it had. */
Test(recover, quarantine)
{
	char folder[] = "/tmp/muster-test-log-XXXXXX", path[128], err[300], line[300] = "";
	cr_assert(mkdtemp(folder) != NULL);
	struct store_config cfg = {.folder = folder, .workers = 1, .shards = 8, .segment_bytes = 1 << 20, .total_bytes = 1 << 30, .say = last_line, .say_arg = line};
	struct store *s = store_new(&cfg, err, sizeof(err));
	cr_assert(s != NULL && store_load(s, count, &(struct folder){.records = 0}, err, sizeof(err)), "%s", err);
	uint64_t position = 0;
	for (unsigned int i = 0; i < 10; i++) {
		uint8_t value[20] = {(uint8_t)i};
		struct log_entry e[2] = {{BYTES_LITERAL("key"), bytes_of(value, sizeof(value))}, {BYTES_LITERAL("more"), BYTES_LITERAL("\1")}};
		int16_t error;
		position = log_append(store_log(s, 0), 5, e, 2, &error, (struct now){1, 1234});
		cr_assert_gt(position, 0);
	}
	store_free(s);
	s = store_new(&cfg, err, sizeof(err));
	cr_assert(s != NULL && store_load(s, refuse_some, NULL, err, sizeof(err)), "%s", err);
	cr_assert_str_eq(line, "log: kept in quarantine-5.log");
	store_describe_load(s, line, sizeof(line));
	cr_assert(strstr(line, "20 records read from 1 segments, 4 set aside") != NULL, "%s", line);
	store_free(s);
	snprintf(path, sizeof(path), "%s/quarantine-5.log", folder);
	uint8_t bytes[1000];
	FILE *f = fopen(path, "r");
	size_t len = fread(bytes, 1, sizeof(bytes), f), at = 0;
	fclose(f);
	for (unsigned int i = 0; i < 10; i += 3) {
		struct batch b;
		struct batch_record record;
		cr_assert(at < len && batch_open(&b, bytes_of(bytes + at, batch_bytes(bytes + at))));
		cr_assert(batch_next(&b, &record) && b.records == 0);
		cr_assert_eq(record.offset, 2 * i);
		cr_assert_eq(record.timestamp_ms, 1234);
		cr_assert(bytes_equal(record.entry.key, BYTES_LITERAL("key")) && record.entry.value.p[0] == i);
		at += batch_bytes(bytes + at);
	}
	cr_assert_eq(at, len);
	snprintf(err, sizeof(err), "rm -r %s", folder);
	cr_assert_eq(system(err), 0);
}

/* Logs of several workers, and then another number of them: every shard gets its records in order, wherever they stand. */
Test(recover, the_number_of_workers_changes)
{
	char folder[] = "/tmp/muster-test-log-XXXXXX", err[300];
	static const unsigned int workers[] = {3, 1, 2, 5, 1};
	cr_assert(mkdtemp(folder) != NULL);
	uint32_t total = 0;
	for (unsigned int life = 0; life < ARRAY_LEN(workers); life++) {
		struct store_config cfg = {.folder = folder, .workers = workers[life], .shards = 8, .segment_bytes = 1 << 20, .total_bytes = 1 << 30, .say = quiet};
		struct sequence q = {.bad = false};
		struct store *s = store_new(&cfg, err, sizeof(err));
		cr_assert(s != NULL && store_load(s, in_sequence, &q, err, sizeof(err)), "%s", err);
		cr_assert(!q.bad);
		for (unsigned int shard = 0; shard < 8; shard++)
			cr_assert_eq(q.next[shard], total, "life %u, shard %u: %u", life, shard, q.next[shard]);
		for (unsigned int i = 0; i < 100; i++, total++) {
			for (unsigned int shard = 0; shard < 8; shard++) {
				struct log_entry e = {BYTES_LITERAL("key"), bytes_of(&total, sizeof(total))};
				struct log *log = store_log(s, (shard + life) % workers[life]);
				int16_t error;
				cr_assert_gt(log_append(log, shard, &e, 1, &error, (struct now){1, 1}), 0);
				log_poll(log, (struct now){1, 1});
			}
		}
		store_free(s);
	}
	snprintf(err, sizeof(err), "rm -r %s", folder);
	cr_assert_eq(system(err), 0);
}
