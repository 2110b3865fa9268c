/*
 * recover_shard.c - the second half of recovery: the records of one shard, from the batches that the scan has noted.
 */
#include <inttypes.h>
#include <stdio.h>

#include "coordinator/log/recover.h"

#define LINE_MAX 300

static void shard_aside(const struct recover *rc, unsigned int shard, const struct batch *batch, const struct batch_record *record, struct bytes bytes,
			const char *why)
{
	char line[LINE_MAX];
	snprintf(line, sizeof(line), "log: %s: shard %u, offset %" PRId64 ": %s; set aside", backlog_name(&rc->backlog, bytes.p), shard,
		 record != NULL ? record->offset : batch->base_offset, why);
	if (rc->say != NULL)
		rc->say(rc->arg, line);
	if (rc->aside != NULL)
		rc->aside(rc->arg, shard, batch, record, bytes);
}

/* Returns how many records are given away; adds to *aside those that were not taken. */
static uint64_t shard_batch(const struct recover *rc, unsigned int shard, struct bytes bytes, uint64_t *aside)
{
	struct batch batch, rest;
	struct batch_record record;
	uint64_t n = 0;
	if (!batch_reopen(&batch, bytes)) /* it was good when it was noted */
		return 0;
	rest = batch;
	if ((batch.attributes & (BATCH_COMPRESSION | BATCH_CONTROL | BATCH_TRANSACTIONAL)) != 0) {
		shard_aside(rc, shard, &batch, NULL, bytes, "a batch is compressed or of a transaction");
		(*aside)++;
		return 0;
	}
	for (; batch_next(&rest, &record); n++) {
		record.entry.offset = record.offset;
		if (rc->record(rc->arg, shard, &record.entry))
			continue;
		shard_aside(rc, shard, &batch, &record, bytes, "a record cannot be read");
		(*aside)++;
	}
	if (rest.rest.bad) {
		shard_aside(rc, shard, &batch, NULL, bytes, "the rest of a batch cannot be read");
		(*aside)++;
	}
	return n;
}

void recover_shard(struct recover *rc, unsigned int shard)
{
	const uint8_t *at = NULL;
	struct bytes bytes;
	uint64_t records = 0, aside = 0;
	while (!atomic_load_explicit(&rc->stop, memory_order_relaxed) && backlog_next(&rc->backlog, shard, &at, &bytes))
		records += shard_batch(rc, shard, bytes, &aside);
	rc->given[shard].records += records;
	rc->given[shard].set_aside += aside;
}

void recover_forget(struct recover *rc)
{
	backlog_clear(&rc->backlog);
}

bool recover_run(struct recover *rc, char *err, size_t err_len)
{
	if (!recover_scan(rc, err, err_len))
		return false;
	for (unsigned int i = 0; i < rc->shards; i++)
		recover_shard(rc, i);
	recover_forget(rc);
	return true;
}

uint64_t recover_records(const struct recover *rc)
{
	uint64_t n = 0;
	for (unsigned int i = 0; i < rc->shards; i++)
		n += rc->given[i].records;
	return n;
}

uint64_t recover_set_aside(const struct recover *rc)
{
	uint64_t n = rc->set_aside;
	for (unsigned int i = 0; i < rc->shards; i++)
		n += rc->given[i].set_aside;
	return n;
}
