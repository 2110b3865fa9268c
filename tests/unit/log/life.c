/*
 * life.c - see life.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "muster/check.h"

#include "life.h"

#define RECORD_HEAD 12 /* number of the batch, record of it, length of the filling */

struct life *life_new(uint64_t seed)
{
	struct life *l = calloc(1, sizeof(*l));
	l->random = seed * 0x2545f4914f6cdd1dull + 3;
	l->disk = sim_disk_new(seed);
	l->segment_bytes = 32 * 1024;
	l->total_bytes = 1ull << 40;
	l->now = (struct now){1000, 1700000000000};
	l->batches = calloc(LIFE_BATCHES, sizeof(*l->batches));
	return l;
}

void life_free(struct life *l)
{
	if (l->log != NULL)
		log_free(l->log);
	disk_free(&l->disk->disk);
	free(l->batches);
	free(l);
}

static void life_say(void *arg, const char *line)
{
	struct life *l = arg;
	size_t len = strlen(l->said);
	snprintf(l->said + len, sizeof(l->said) - len, "%s\n", line);
}

/* The byte at i of a value; different for each record. */
static uint8_t filling(uint32_t number, uint32_t record, size_t i)
{
	return (uint8_t)(number * 31 + record * 7 + i * 13 + i / 251);
}

static bool life_record(void *arg, unsigned int shard, const struct log_entry *e)
{
	struct life *l = arg;
	struct reader r = reader_of(e->value.p, e->value.len < 0 ? 0 : (size_t)e->value.len);
	uint32_t number = reader_u32(&r), record = reader_u32(&r), len = reader_u32(&r);
	if (r.bad || reader_left(&r) != len || number >= l->len || l->batches[number].shard != shard || e->key.len != 4) {
		l->bad = true;
		return true;
	}
	for (uint32_t i = 0; i < len; i++)
		l->bad |= r.p[i] != filling(number, record, i);
	if (record == 0) {
		l->bad |= l->found_records != 0;
		l->found[l->found_len++] = number;
	}
	l->bad |= l->found[l->found_len - 1] != number || l->found_records != record;
	l->found_records = record + 1 == l->batches[number].records ? 0 : record + 1;
	return true;
}

bool life_start(struct life *l)
{
	struct recover rc = {
		.disk = &l->disk->disk, .shards = LIFE_SHARDS, .skip_damaged = l->skip_damaged, .say = life_say, .record = life_record, .arg = l};
	struct log_disk_config cfg = {
		.disk = &l->disk->disk,
		.shards = LIFE_SHARDS,
		.segment_bytes = l->segment_bytes,
		.total_bytes = l->total_bytes,
		.flush = l->flush,
		.random = sim_random(&l->random),
		.say = life_say,
		.say_arg = l,
	};
	l->found_len = l->found_records = 0;
	l->bad = false;
	l->said[0] = l->err[0] = '\0';
	if (!recover_init(&rc, (const uint8_t *)"0123456789abcdef", l->err, sizeof(l->err)))
		return false;
	bool ok = recover_run(&rc, l->err, sizeof(l->err));
	l->lost_blocks = rc.lost_blocks;
	l->set_aside = recover_set_aside(&rc);
	l->start = rc.start;
	l->recovered_bytes = rc.bytes;
	for (unsigned int i = 0; i < LIFE_SHARDS; i++) {
		l->next_offset[i] = rc.state[i].next_offset;
		l->epoch[i] = rc.state[i].epoch;
	}
	if (ok) {
		l->log = log_disk_new(&cfg);
		ok = log_disk_begin(l->log, &rc, l->err, sizeof(l->err));
	}
	recover_fini(&rc);
	return ok;
}

int16_t life_append(struct life *l, unsigned int shard, unsigned int records, size_t bytes)
{
	struct log_entry entries[16];
	uint8_t *room = malloc(records * (RECORD_HEAD + bytes));
	int16_t error = 0;
	CHECK(records <= 16 && l->len < LIFE_BATCHES && room != NULL);
	for (unsigned int i = 0; i < records; i++) {
		uint8_t *p = room + i * (RECORD_HEAD + bytes);
		struct writer w = writer_of(p, RECORD_HEAD);
		writer_u32(&w, l->len);
		writer_u32(&w, i);
		writer_u32(&w, (uint32_t)bytes);
		for (size_t k = 0; k < bytes; k++)
			p[RECORD_HEAD + k] = filling(l->len, i, k);
		entries[i] = (struct log_entry){BYTES_LITERAL("key."), bytes_of(p, RECORD_HEAD + bytes)};
	}
	uint64_t position = log_append(l->log, shard, entries, records, &error, l->now);
	if (position != 0)
		l->batches[l->len++] = (struct life_batch){shard, records, position};
	free(room);
	return position != 0 ? 0 : error;
}

static void life_note_acks(struct life *l)
{
	uint64_t durable = log_durable(l->log);
	while (l->acked < l->len && l->batches[l->acked].position <= durable)
		l->acked++;
}

void life_poll(struct life *l)
{
	l->now.us += 10;
	log_poll(l->log, l->now);
	life_note_acks(l);
}

void life_settle(struct life *l)
{
	for (int i = 0; i < 100000 && l->acked < l->len; i++)
		life_poll(l);
}

static void life_drop_log(struct life *l)
{
	if (l->log != NULL)
		log_free(l->log);
	l->log = NULL;
}

void life_cut(struct life *l, bool kill)
{
	struct sim_disk *after = sim_disk_after_cut(l->disk, kill);
	life_drop_log(l);
	disk_free(&l->disk->disk);
	l->disk = after;
}

void life_stop(struct life *l)
{
	life_drop_log(l);
	l->acked = l->len;
}

bool life_check(struct life *l)
{
	/* records come shard by shard, each in its order; together they are the first that were appended, for there is one log */
	bool ok = !l->bad && l->found_records == 0 && l->found_len >= l->acked && l->found_len <= l->len;
	int64_t next[LIFE_SHARDS] = {0};
	unsigned int before[LIFE_SHARDS] = {0};
	for (unsigned int i = 0; ok && i < l->found_len; i++) {
		const struct life_batch *b = &l->batches[l->found[i]];
		ok = l->found[i] < l->found_len && (next[b->shard] == 0 || l->found[i] > before[b->shard]);
		before[b->shard] = l->found[i];
		next[b->shard] += b->records;
	}
	for (unsigned int i = 0; ok && i < LIFE_SHARDS; i++)
		ok = next[i] == l->next_offset[i];
	if (ok)
		l->len = l->acked = l->found_len;
	for (unsigned int i = 0; i < l->len; i++)
		l->batches[i].position = 0;
	return ok;
}
