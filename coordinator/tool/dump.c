/*
 * dump.c - muster log dump: every record of the log as text, and muster log verify: whether all of it can be read.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "coordinator/tool/folder.h"
#include "coordinator/tool/record_text.h"
#include "coordinator/tool/tool.h"

struct scan {
	const struct tool_options *options;
	const struct folder *folder;
	struct text text;
	int64_t *next; /* per shard: its next offset may not be below */
	uint64_t batches, records, damages;
};

static void scan_fault(void *arg, const struct place *place, enum fault fault, const char *what)
{
	struct scan *s = arg;
	s->damages += fault == FAULT_DAMAGE;
	fprintf(stderr, "muster: %s: %s, block %" PRIu64 " at byte %zu: %s\n", fault == FAULT_DAMAGE ? "DAMAGED" : "note", place->file, place->block,
		place->at, what);
}

static void scan_damage(struct scan *s, const struct place *place, uint32_t shard, int64_t offset, const char *what)
{
	char line[200];
	if (offset >= 0)
		snprintf(line, sizeof(line), "shard %" PRIu32 ", offset %" PRId64 ": %s", shard, offset, what);
	else
		snprintf(line, sizeof(line), "shard %" PRIu32 ": %s", shard, what);
	scan_fault(s, place, FAULT_DAMAGE, line);
}

/* ---- dump ---- */

static bool wanted(const struct tool_options *o, const struct batch_record *record)
{
	struct record_name name;
	if (record->timestamp_ms < o->from_ms || record->timestamp_ms > o->to_ms)
		return false;
	return bytes_is_null(o->group) || (record_name_read(&name, record->entry.key) && bytes_equal(name.group, o->group));
}

static bool dump_batch(void *arg, const struct place *place, uint32_t shard, struct bytes bytes)
{
	struct scan *s = arg;
	struct batch batch;
	struct batch_record record;
	if (s->options->shard >= 0 && (uint32_t)s->options->shard != shard)
		return true;
	if (!batch_open(&batch, bytes) || (batch.attributes & BATCH_COMPRESSION) != 0) {
		scan_damage(s, place, shard, -1, "a batch cannot be read");
		return true;
	}
	while (batch_next(&batch, &record)) {
		if (!wanted(s->options, &record))
			continue;
		if ((batch.attributes & BATCH_CONTROL) != 0)
			record_text_control(&s->text, shard, &batch, &record);
		else
			record_text(&s->text, shard, &batch, &record);
	}
	if (batch.rest.bad)
		scan_damage(s, place, shard, batch.base_offset, "the rest of a batch cannot be read");
	return !ferror(s->text.out);
}

int tool_dump(const struct tool_options *o, struct folder *folder)
{
	struct scan s = {.options = o, .folder = folder, .text = text_to(stdout, o->json)};
	struct visitor v = {dump_batch, scan_fault, &s};
	folder_walk(folder, &v);
	return s.damages == 0 && !ferror(stdout) ? TOOL_GOOD : TOOL_BAD;
}

/* ---- verify ---- */

static void verify_records(struct scan *s, const struct place *place, uint32_t shard, struct batch *batch)
{
	struct batch_record record;
	struct record_name name;
	int64_t last = batch->base_offset - 1;
	while (batch_next(batch, &record)) {
		s->records++;
		if (record.offset <= last)
			scan_damage(s, place, shard, record.offset, "a record does not stand in the order of offsets");
		last = record.offset;
		if ((batch->attributes & BATCH_CONTROL) != 0)
			continue;
		if (!record_name_read(&name, record.entry.key))
			scan_damage(s, place, shard, record.offset, "the key of a record cannot be read");
		else if (!record_value_good(&name, record.entry.value))
			scan_damage(s, place, shard, record.offset, "the value of a record cannot be read");
	}
	if (batch->rest.bad)
		scan_damage(s, place, shard, batch->base_offset, "the rest of a batch cannot be read");
}

static bool verify_batch(void *arg, const struct place *place, uint32_t shard, struct bytes bytes)
{
	struct scan *s = arg;
	struct batch batch;
	if (s->options->shard >= 0 && (uint32_t)s->options->shard != shard)
		return true;
	s->batches++;
	if (shard >= s->folder->shards) {
		scan_damage(s, place, shard, -1, "there is no such shard");
		return true;
	}
	if (!batch_open(&batch, bytes)) {
		scan_damage(s, place, shard, -1, "a batch cannot be read: its checksum or its head is wrong");
		return true;
	}
	if (batch.base_offset < s->next[shard])
		scan_damage(s, place, shard, batch.base_offset, "a batch stands behind one with higher offsets");
	else
		s->next[shard] = batch.last_offset + 1;
	if ((batch.attributes & BATCH_COMPRESSION) != 0)
		scan_damage(s, place, shard, batch.base_offset, "a batch is compressed, which this log never writes");
	else
		verify_records(s, place, shard, &batch);
	return true;
}

int tool_verify(const struct tool_options *o, struct folder *folder)
{
	struct scan s = {.options = o, .folder = folder, .next = calloc(folder->shards, sizeof(int64_t))};
	struct visitor v = {verify_batch, scan_fault, &s};
	if (s.next == NULL) {
		fprintf(stderr, "muster: no memory\n");
		return TOOL_CANNOT;
	}
	folder_walk(folder, &v);
	free(s.next);
	printf("muster: %s: %s: %" PRIu64 " segments, %" PRIu64 " blocks, %" PRIu64 " batches, %" PRIu64 " records, %" PRIu64 " bytes, %" PRIu32
	       " shards; %" PRIu64 " damages\n",
	       folder->path, s.damages == 0 ? "GOOD" : "DAMAGED", v.segments, v.blocks, s.batches, s.records, v.bytes, folder->shards, s.damages);
	return s.damages == 0 ? TOOL_GOOD : TOOL_BAD;
}
