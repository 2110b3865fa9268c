/*
 * import.c - muster log import: a new log from the folders of a Kafka broker's __consumer_offsets.
 *
 * Batches keep their offsets, timestamps and leader epochs; records keep their bytes, whatever their type. Three things change:
 *   compressed batches are unpacked;
 *   transactions are decided: the batches of a committed one become ordinary ones, those of an aborted one and the control batches are left
 *   out, those of one that is not decided yet stay as they are, and a start does not apply them;
 *   what is left out at the end of a partition leaves an empty batch, so that no offset is given away a second time.
 *
 * Each partition is read twice: first for the ends of transactions. Memory: one batch, and the ends of one partition.
 *
 * Refused, because it would put groups where nobody looks for them: a partition that holds a group which by Kafka's rule does not belong into
 * it, when there are as many partitions as offsets.topic.num.partitions says.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "coordinator/java_hash.h"
#include "coordinator/tool/carrier.h"
#include "coordinator/tool/inflate.h"
#include "coordinator/tool/kafka_log.h"
#include "coordinator/tool/rebatch.h"
#include "coordinator/tool/record_text.h"
#include "coordinator/tool/tool.h"
#include "coordinator/tool/transactions.h"

struct import {
	const struct tool_options *o;
	uint32_t shards;
	bool skip_damaged;
	struct carrier carrier;
	/* the partition that is being read */
	struct kafka_log in;
	uint32_t shard;
	struct transactions transactions;
	int64_t written; /* offset behind the last batch that was kept */
	int32_t epoch;	 /* of the last batch */
	/* grow */
	struct inflate_buffer inflated, made;
	/* counted */
	uint64_t batches, offsets, groups, others, unreadable, compressed, committed, aborted, pending, lost, lost_tail;
};

static PRINTF_LIKE(1, 2) bool complain(const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	fputs("muster: ", stderr);
	vfprintf(stderr, format, ap);
	fputc('\n', stderr);
	va_end(ap);
	return false;
}

/* ---- the partitions that were given ---- */

static bool check_partitions(const struct import *im)
{
	const struct tool_options *o = im->o;
	uint8_t *seen = calloc(im->shards, 1);
	bool ok = seen != NULL;
	if (!ok)
		return complain("no memory");
	for (int i = 0; ok && i < o->dirs_len; i++) {
		int64_t n = kafka_partition_of(o->dirs[i]);
		if (n < 0)
			ok = complain("%s: the folder of a partition is named __consumer_offsets-N", o->dirs[i]);
		else if (n >= im->shards)
			ok = complain("%s: offsets.topic.num.partitions is %" PRIu32 "; set it, for this import and for the server, to what the broker has",
				      o->dirs[i], im->shards);
		else if (seen[n]++)
			ok = complain("%s: partition %" PRId64 " is given twice", o->dirs[i], n);
	}
	for (uint32_t n = 0; ok && !o->partial && n < im->shards; n++)
		if (!seen[n])
			ok = complain("partition %" PRIu32 " is missing: %d folders are given, offsets.topic.num.partitions is %" PRIu32
				      "; set it, for this import and for the server, to what the broker has, or give the folder of every partition "
				      "(they may lie on several brokers), or import without it by --partial",
				      n, o->dirs_len, im->shards);
	free(seen);
	return ok;
}

/* ---- places ---- */

/* Something at the last step's place is not good: a line, and whether the import may go on. */
static bool damaged(struct import *im, const char *what)
{
	char segment[300];
	kafka_log_segment(&im->in, segment, sizeof(segment));
	if (!im->skip_damaged)
		return complain("%s: byte %" PRIu64 ": %s; --set log.recover=skip.damaged imports without it", segment, im->in.batch_at, what);
	complain("LOST: %s: byte %" PRIu64 ": %s", segment, im->in.batch_at, what);
	im->lost++;
	return true;
}

/* ---- records ---- */

static bool check_record(struct import *im, const struct batch_record *record)
{
	struct record_name name;
	if (!record_name_read(&name, record->entry.key) || !record_value_good(&name, record->entry.value)) {
		im->unreadable++;
		return true;
	}
	im->offsets += name.type == 0 || name.type == 1;
	im->groups += name.type == 2;
	im->others += name.type > 2 || name.type < 0;
	if (bytes_is_null(name.group) || java_hash_abs(name.group) % im->shards == im->shard)
		return true;
	return complain("%s: offset %" PRId64 ": group \"%.*s\" belongs into partition %" PRIu32 " of %" PRIu32
			"; the broker has another number of partitions: set offsets.topic.num.partitions to it, for this import and for the server",
			im->in.path, record->offset, (int)name.group.len, (const char *)name.group.p, java_hash_abs(name.group) % im->shards, im->shards);
}

/* False: what was complained about ends the import. *good: the records can be read. */
static bool check_records(struct import *im, struct bytes bytes, bool *good)
{
	struct batch batch;
	struct batch_record record;
	*good = batch_open(&batch, bytes);
	while (*good && batch_next(&batch, &record))
		if (!check_record(im, &record))
			return false;
	*good = *good && !batch.rest.bad;
	return true;
}

/* ---- batches that are made anew ---- */

static bool write_batch(struct import *im, const struct batch *batch, struct bytes bytes)
{
	if (!carrier_batch(&im->carrier, im->shard, bytes))
		return complain("%s", im->carrier.err);
	im->written = batch->last_offset + 1;
	im->batches++;
	return true;
}

/* `batch` counts. Its records are unpacked and looked at, and it goes into the log. */
static bool keep_batch(struct import *im, const struct batch *batch, struct bytes bytes, bool decided)
{
	unsigned int codec = batch->attributes & BATCH_COMPRESSION;
	struct bytes records = bytes_of(bytes.p + BATCH_HEAD, (size_t)bytes.len - BATCH_HEAD);
	bool good;
	if (codec != 0) {
		char what[100];
		snprintf(what, sizeof(what), "a batch cannot be unpacked (%s)", inflate_name(codec) == NULL ? "unknown codec" : inflate_name(codec));
		if (inflate_name(codec) == NULL || !inflate_records(codec, records, &im->inflated))
			return damaged(im, what);
		records = bytes_of(im->inflated.p, im->inflated.len);
		im->compressed++;
	}
	if (codec != 0 || decided) {
		uint16_t attributes = batch->attributes & (uint16_t)~(BATCH_COMPRESSION | (decided ? BATCH_TRANSACTIONAL : 0));
		struct rebatch how = {attributes, batch->records, decided};
		if (!rebatch(&im->made, bytes, &how, records.p, (size_t)records.len))
			return complain("no memory");
		bytes = bytes_of(im->made.p, im->made.len);
	}
	if (!check_records(im, bytes, &good))
		return false;
	return good ? write_batch(im, batch, bytes) : damaged(im, "the records of a batch cannot be read, although its checksum is right");
}

static bool take_batch(struct import *im, const struct batch *batch, struct bytes bytes)
{
	im->epoch = batch->leader_epoch;
	if ((batch->attributes & BATCH_CONTROL) != 0)
		return true;
	if ((batch->attributes & BATCH_TRANSACTIONAL) == 0)
		return keep_batch(im, batch, bytes, false);
	switch (transactions_outcome(&im->transactions, batch->producer_id, batch->base_offset)) {
	case OUTCOME_ABORTED:
		im->aborted++;
		return true;
	case OUTCOME_COMMITTED:
		im->committed++;
		return keep_batch(im, batch, bytes, true);
	case OUTCOME_PENDING:
		im->pending++;
		complain("note: %s: offset %" PRId64 ": a transaction of producer %" PRId64 " is not decided; its records are kept and not applied",
			 im->in.path, batch->base_offset, batch->producer_id);
		return keep_batch(im, batch, bytes, false);
	}
	return false;
}

/* ---- partitions ---- */

static bool cut_tail(struct import *im)
{
	char segment[300];
	kafka_log_segment(&im->in, segment, sizeof(segment));
	im->lost_tail++;
	complain("note: %s: from byte %" PRIu64 " on it holds no whole batch, as after a crash of the broker; that is left out", segment, im->in.batch_at);
	return true;
}

/* Every batch of the partition once; `take` may be NULL. */
static bool each_batch(struct import *im, bool (*take)(struct import *im, const struct batch *batch, struct bytes bytes))
{
	struct batch batch;
	struct bytes bytes;
	kafka_log_rewind(&im->in);
	for (;;) {
		bool ok = true;
		switch (kafka_log_next(&im->in, &batch, &bytes)) {
		case KAFKA_BATCH:
			if (take != NULL)
				ok = take(im, &batch, bytes);
			else if ((batch.attributes & BATCH_CONTROL) != 0)
				ok = transactions_add(&im->transactions, &batch) || complain("no memory");
			break;
		case KAFKA_END:
			return true;
		case KAFKA_TAIL:
			ok = take == NULL || cut_tail(im);
			break;
		case KAFKA_DAMAGED:
			ok = take == NULL || damaged(im, "a batch is damaged");
			break;
		case KAFKA_FAILED:
			ok = complain("%s: %s", im->in.path, im->in.err);
			break;
		}
		if (!ok)
			return false;
	}
}

/* Offsets behind the last batch that was kept had been given away, too. */
static bool fill_end(struct import *im)
{
	static const struct rebatch how = {.count = 0};
	struct log_entry entry = {.key = BYTES_EMPTY, .value = BYTES_NULL};
	uint8_t head[2 * BATCH_HEAD];
	int64_t last = im->in.next_offset - 1;
	if (last < im->written)
		return true;
	batch_write(head, batch_size(&entry, 1), &entry, 1, last, im->epoch, 0);
	struct batch what = {.base_offset = last, .last_offset = last};
	return (rebatch(&im->made, bytes_of(head, BATCH_HEAD), &how, NULL, 0) || complain("no memory")) &&
	       write_batch(im, &what, bytes_of(im->made.p, im->made.len));
}

static bool import_partition(struct import *im, const char *path)
{
	if (!kafka_log_open(&im->in, path))
		return complain("%s: %s", path, im->in.err);
	im->shard = (uint32_t)kafka_partition_of(path);
	im->transactions.len = 0;
	im->written = 0;
	bool ok = each_batch(im, NULL);
	transactions_sort(&im->transactions);
	ok = ok && each_batch(im, take_batch) && fill_end(im);
	kafka_log_close(&im->in);
	return ok;
}

static bool enough_room(const struct import *im)
{
	const struct config *cfg = im->o->cfg;
	uint64_t bytes = carrier_bytes(&im->carrier), need = bytes + 2 * (uint64_t)cfg->log_segment_bytes;
	return need <= (uint64_t)cfg->log_total_bytes ||
	       complain("the log has %" PRIu64 " bytes, and log.total.bytes is %" PRId64 "; at least %" PRIu64 " is needed", bytes, cfg->log_total_bytes, need);
}

static void report(const struct import *im)
{
	printf("muster: imported %d partitions into %s: %" PRIu64 " batches with %" PRIu64 " offset records, %" PRIu64 " group records, %" PRIu64
	       " others, %" PRIu64 " unreadable ones that are kept\n",
	       im->o->dirs_len, im->carrier.path, im->batches, im->offsets, im->groups, im->others, im->unreadable);
	if (im->compressed + im->committed + im->aborted + im->pending + im->lost + im->lost_tail > 0)
		printf("muster: %" PRIu64 " batches unpacked; of transactions: %" PRIu64 " committed, %" PRIu64 " aborted and left out, %" PRIu64
		       " undecided; %" PRIu64 " LOST, %" PRIu64 " cut tails\n",
		       im->compressed, im->committed, im->aborted, im->pending, im->lost, im->lost_tail);
	printf("muster: start the server with log.dir=%s and offsets.topic.num.partitions=%" PRIu32 "\n", im->carrier.path, im->shards);
}

static int import_into(struct import *im, const char *folder)
{
	struct carrier_config cfg = {.path = folder, .shards = im->shards, .segment_bytes = (uint64_t)im->o->cfg->log_segment_bytes};
	if (getrandom(cfg.random, sizeof(cfg.random), 0) != sizeof(cfg.random)) {
		complain("the system gives no random bytes");
		return TOOL_CANNOT;
	}
	if (!carrier_open(&im->carrier, &cfg)) {
		complain("%s", im->carrier.err);
		return TOOL_CANNOT;
	}
	bool ok = true;
	for (int i = 0; ok && i < im->o->dirs_len; i++)
		ok = import_partition(im, im->o->dirs[i]);
	ok = ok && enough_room(im);
	if (ok && !carrier_finish(&im->carrier))
		ok = complain("%s", im->carrier.err);
	if (ok)
		report(im);
	else
		complain("nothing was imported; remove %s before the next attempt", folder);
	carrier_close(&im->carrier);
	return ok ? TOOL_GOOD : TOOL_BAD;
}

int tool_import(const struct tool_options *o, const char *folder)
{
	struct import im = {.o = o, .shards = (uint32_t)o->cfg->offsets_topic_num_partitions, .skip_damaged = o->cfg->log_recover == 1};
	if (o->dirs_len == 0) {
		complain("import: which folders? muster log import [...]/__consumer_offsets-*");
		return TOOL_CANNOT;
	}
	if (!check_partitions(&im))
		return TOOL_CANNOT;
	int status = import_into(&im, folder);
	free(im.transactions.ends);
	free(im.inflated.p);
	free(im.made.p);
	return status;
}
