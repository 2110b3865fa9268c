/*
 * export_parts.c - see export_parts.h.
 */
#include <stdio.h>
#include <stdlib.h>

#include "coordinator/group/record.h"
#include "coordinator/shard.h"
#include "coordinator/tool/export_parts.h"

static struct bytes id_of(const uint8_t *id)
{
	return bytes_of(id + 2, (size_t)(id[0] << 8 | id[1]));
}

static void note(struct export_parts *p, struct bytes group)
{
	if (p->len > 0 && bytes_equal(id_of(p->ids[p->len - 1]), group))
		return;
	if (p->len == p->cap) {
		size_t cap = p->cap == 0 ? 16 : p->cap * 2;
		uint8_t **grown = realloc(p->ids, cap * sizeof(*grown));
		p->no_memory |= grown == NULL;
		if (grown == NULL)
			return;
		p->ids = grown;
		p->cap = cap;
	}
	uint8_t *id = malloc(2 + (size_t)group.len);
	p->no_memory |= id == NULL;
	if (id == NULL)
		return;
	id[0] = (uint8_t)(group.len >> 8);
	id[1] = (uint8_t)group.len;
	memcpy(id + 2, group.p, (size_t)group.len);
	p->ids[p->len++] = id;
}

bool export_parts_keep(struct export_parts *p, const struct batch_record *record)
{
	struct record_key key;
	struct record_group group;
	if (!record_key_decode(&key, record->entry.key))
		return true;
	if (key.kind == RECORD_GROUP && record_group_decode(&group, record->entry.value) && group.parts.edition != 0) {
		note(p, key.group);
		return false;
	}
	return key.kind != RECORD_PART;
}

void export_parts_fini(struct export_parts *p)
{
	for (size_t i = 0; i < p->len; i++)
		free(p->ids[i]);
	free(p->ids);
	p->ids = NULL;
	p->len = p->cap = 0;
}

/* ---- the groups of the shard ---- */

struct replayed {
	uint32_t number;
	struct shard *shard;
	struct log *log;
	struct stats *stats;
	struct group_settings settings;
};

static bool replay_batch(void *arg, const struct place *place, uint32_t shard, struct bytes bytes)
{
	struct replayed *r = arg;
	struct batch batch;
	struct batch_record record;
	struct record_key key;
	if (shard != r->number || !batch_open(&batch, bytes) || (batch.attributes & (BATCH_COMPRESSION | BATCH_CONTROL | BATCH_TRANSACTIONAL)) != 0)
		return true;
	while (batch_next(&batch, &record))
		if (record_key_decode(&key, record.entry.key) && (key.kind == RECORD_GROUP || key.kind == RECORD_PART))
			shard_replay(r->shard, &record.entry, (struct now){1, record.timestamp_ms});
	return true;
}

static void ignore_fault(void *arg, const struct place *place, enum fault fault, const char *what)
{
	/* the export's own walk has told it */
}

static bool replay(struct replayed *r, struct folder *log)
{
	const uint64_t random[2] = {1, 2};
	struct visitor v = {replay_batch, ignore_fault, r};
	r->log = log_memory_new();
	r->stats = aligned_alloc(MUSTER_CACHE_LINE, sizeof(*r->stats));
	r->settings = (struct group_settings){.group_max_size = INT32_MAX};
	if (r->log == NULL || r->stats == NULL)
		return false;
	memset(r->stats, 0, sizeof(*r->stats));
	r->shard = shard_new(r->number, r->log, &r->settings, r->stats, random, (struct now){1, 1});
	if (r->shard == NULL)
		return false;
	folder_walk(log, &v);
	return true;
}

static bool give_group(struct replayed *r, struct bytes id, bool (*give)(void *arg, const struct log_entry *entry), void *arg, bool *no_memory)
{
	struct writer key = writer_of(NULL, 0), value = key;
	if (!shard_group_export(r->shard, id, &key, &value))
		return true;
	size_t key_len = key.need, value_len = value.need;
	uint8_t *p = malloc(key_len + value_len);
	*no_memory = p == NULL;
	if (p == NULL)
		return false;
	key = writer_of(p, key_len);
	value = writer_of(p + key_len, value_len);
	shard_group_export(r->shard, id, &key, &value);
	bool ok = give(arg, &(struct log_entry){.key = bytes_of(p, key_len), .value = bytes_of(p + key_len, value_len)});
	free(p);
	return ok;
}

static int id_order(const void *x, const void *y)
{
	const uint8_t *a = *(uint8_t *const *)x, *b = *(uint8_t *const *)y;
	size_t n = (size_t)id_of(a).len, m = (size_t)id_of(b).len;
	return n != m ? (n < m ? -1 : 1) : memcmp(a, b, n + 2);
}

bool export_parts_give(struct export_parts *p, struct folder *log, bool (*give)(void *arg, const struct log_entry *entry), void *arg, char *err,
		       size_t err_len)
{
	struct replayed r = {.number = p->shard};
	bool no_memory = p->no_memory, ok = !no_memory;
	if (p->len == 0)
		return true;
	snprintf(err, err_len, "no memory for the groups of shard %u", p->shard);
	ok = ok && replay(&r, log);
	if (ok)
		qsort(p->ids, p->len, sizeof(*p->ids), id_order);
	for (size_t i = 0; ok && i < p->len; i++)
		if (i == 0 || id_order(&p->ids[i - 1], &p->ids[i]) != 0)
			ok = give_group(&r, id_of(p->ids[i]), give, arg, &no_memory);
	if (r.shard != NULL)
		shard_free(r.shard);
	if (r.log != NULL)
		log_free(r.log);
	free(r.stats);
	return ok;
}
