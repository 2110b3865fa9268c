/*
 * disk.c - the simulated log: batches become durable later, in order; sometimes it is slow, sometimes it refuses;
 * when it breaks nothing becomes durable any more; a crash loses what is not durable.
 *
 * In some worlds when and what is decided by the production log on a simulated disk (stored.c); then this is the ledger beside it.
 *
 * Positions count records. All bytes are kept, so that a shard can be rebuilt from them at any time.
 */
#include "stored.h"

static struct ledger *disk_of(struct log *log)
{
	return CONTAINER_OF(log, struct ledger, log);
}

/* Which group and partition of ours an offset's record is about; false: none. */
static bool disk_offset_of(struct world *w, const struct log_entry *e, int *group, int *part)
{
	struct record_key key;
	*group = record_key_decode(&key, e->key) ? world_group(w, key.group) : -1;
	*part = *group >= 0 && key.kind == RECORD_OFFSET ? part_of(key.topic, key.partition) : -1;
	return *part >= 0;
}

/* Where the last record and the last tombstone of each partition stand, up to a position. */
void disk_survey(struct ledger *d, uint64_t end)
{
	struct world *w = d->w;
	memset(w->appended, 0, sizeof(w->appended));
	memset(w->tombstones, 0, sizeof(w->tombstones));
	for (uint64_t i = 0; i < end; i++) {
		int group, part;
		if (!disk_offset_of(w, &d->entries[i].e, &group, &part))
			continue;
		w->appended[group][part] = i + 1;
		if (bytes_is_null(d->entries[i].e.value))
			w->tombstones[group][part] = i + 1;
	}
}

/* Nobody asked for this: expiry, or the topic is gone. Of a group that is between two assignments nothing expires (KIP-211). */
static void disk_check_expiry(struct world *w, int group, int part)
{
	const struct group *g = group_find(world_shard(w, group), w->group_id[group]);
	bool gone = w->topic_gone_at[part_topic((unsigned int)part)] != 0 || (w->topics_gone >> part_topic((unsigned int)part) & 1);
	bool between = g != NULL && (g->state == GROUP_PREPARING || g->state == GROUP_COMPLETING);
	REQUIRE(w, "expired-in-rebalance", gone || !between, "group %d partition %d", group, part);
}

/* Commits carry unique offsets: remember where each one stands, and where it was taken away. */
static void disk_note(struct ledger *d, const struct log_entry *e, uint64_t position)
{
	struct world *w = d->w;
	struct record_key key;
	struct record_offset value;
	int group, part;
	bool ours = disk_offset_of(w, e, &group, &part);
	if (group >= 0 && record_key_decode(&key, e->key) && key.kind == RECORD_GROUP && bytes_is_null(e->value))
		w->group_tombstones[group]++;
	if (ours)
		w->appended[group][part] = position;
	if (ours && bytes_is_null(e->value) && w->step.api < 0)
		disk_check_expiry(w, group, part);
	if (ours && bytes_is_null(e->value))
		w->tombstones[group][part] = position;
	if (!ours || !record_offset_decode(&value, e->value))
		return;
	if (value.offset >= 0 && (uint64_t)value.offset < w->offset_cap)
		w->offset_position[value.offset] = position;
}

/* When what is appended now becomes durable. */
static uint64_t disk_time(struct ledger *d)
{
	uint64_t delay = rng_one_in(&d->rng, 4) ? 0 : rng_between(&d->rng, 50, 4000);
	if (d->w->now.us < d->slow_until)
		delay += d->slow_ms * (uint64_t)US_PER_MS;
	if (d->w->now.us + delay > d->last_at)
		d->last_at = d->w->now.us + delay;
	return d->last_at;
}

static uint64_t disk_append(struct log *log, unsigned int shard, struct log_entry *entries, unsigned int n, int16_t *error, struct now now)
{
	struct ledger *d = disk_of(log);
	REQUIRE(d->w, "log-empty-batch", n > 0, "a batch without records");
	if (disk_refuses(d)) {
		*error = d->broken != 0 ? d->broken : d->fail_code;
		return 0;
	}
	uint64_t at = d->stored != NULL ? stored_append(d->stored, shard, entries, n, error, now) : 0;
	if (d->stored != NULL && at == 0)
		return 0;
	for (unsigned int i = 0; i < n; i++) {
		if (d->len == d->cap) {
			d->cap = d->cap == 0 ? 256 : d->cap * 2;
			d->entries = realloc(d->entries, d->cap * sizeof(*d->entries));
		}
		if (d->stored == NULL)
			entries[i].offset = (int64_t)d->len;
		struct disk_entry *e = &d->entries[d->len++];
		e->shard = shard;
		e->e.offset = entries[i].offset;
		CHECK(bytes_dup(&e->e.key, entries[i].key) && bytes_dup(&e->e.value, entries[i].value));
		disk_note(d, &e->e, d->len);
	}
	at = d->stored != NULL ? at : disk_time(d);
	if (d->batch_len == d->batch_cap) {
		d->batch_cap = d->batch_cap == 0 ? 256 : d->batch_cap * 2;
		d->batches = realloc(d->batches, d->batch_cap * sizeof(*d->batches));
	}
	d->batches[d->batch_len++] = (struct disk_batch){d->len, at};
	return d->len;
}

static uint64_t disk_durable(struct log *log)
{
	return disk_of(log)->durable;
}

static void disk_advance(struct ledger *d, uint64_t to)
{
	while (d->batch_first < d->batch_len && d->batches[d->batch_first].at <= to)
		d->durable = d->batches[d->batch_first++].position;
}

static uint64_t disk_poll_stored(struct ledger *d, struct now now)
{
	struct world *w = d->w;
	uint64_t wish = stored_poll(d->stored, d->held, w->now.us < d->slow_until ? d->slow_ms : 0, now);
	disk_advance(d, stored_durable(d->stored));
	if (stored_is_cut(d->stored)) { /* now: what does not become durable any more is lost with the next start */
		w->later[LATER_BREAK].at = w->now.us;
		w->later[LATER_REPAIR].at = w->now.us + 1;
	}
	return wish;
}

static uint64_t disk_poll(struct log *log, struct now now)
{
	struct ledger *d = disk_of(log);
	if (d->broken != 0)
		return TIME_NEVER;
	if (d->stored != NULL)
		return disk_poll_stored(d, now);
	if (d->held)
		return TIME_NEVER;
	disk_advance(d, d->w->now.us);
	return d->batch_first < d->batch_len ? d->batches[d->batch_first].at - d->w->lost_us : TIME_NEVER;
}

static void disk_free(struct log *log)
{
}

static int16_t disk_failed(struct log *log)
{
	return disk_of(log)->broken;
}

static void disk_set_owner(struct log *log, const struct log_owner *owner)
{
	if (disk_of(log)->stored != NULL)
		stored_set_owner(disk_of(log)->stored, owner);
}

static const struct log_ops disk_ops = {.append = disk_append, .durable = disk_durable, .poll = disk_poll, .free = disk_free, .failed = disk_failed,
					.set_owner = disk_set_owner};

bool disk_refuses(const struct ledger *d)
{
	return d->broken != 0 || d->w->now.us < d->fail_until;
}

bool disk_may_refuse(const struct ledger *d)
{
	return d->stored != NULL || disk_refuses(d);
}

/* The last that becomes durable does so in the very round in which the failure shows. */
void disk_break(struct ledger *d)
{
	if (d->stored != NULL) {
		stored_break(d->stored, served(d->w));
		disk_advance(d, stored_durable(d->stored));
	}
	while (d->stored == NULL && d->batch_first < d->batch_len && !rng_one_in(&d->rng, 3))
		d->durable = d->batches[d->batch_first++].position;
	d->broken = 56;
	d->held = false;
}

void disk_init(struct ledger *d, struct world *w)
{
	*d = (struct ledger){.log.ops = &disk_ops, .w = w, .rng = rng_of(w->plan.seed, 77)};
	if (!w->plan.stored)
		return;
	d->fail_code = 19;
	d->stored = stored_new(w);
}

static void disk_cut(struct ledger *d, uint64_t len)
{
	while (d->len > len) {
		struct disk_entry *e = &d->entries[--d->len];
		bytes_free(&e->e.key);
		bytes_free(&e->e.value);
	}
}

/* What was not reported durable may be there or not, from some batch on. */
void disk_crash(struct ledger *d, struct rng *r)
{
	while (d->stored == NULL && d->batch_first < d->batch_len && rng_one_in(r, 2))
		d->durable = d->batches[d->batch_first++].position;
	if (d->stored != NULL)
		d->durable = stored_crash(d->stored, d);
	disk_cut(d, d->durable);
	d->batch_first = d->batch_len = 0;
	d->last_at = d->fail_until = d->slow_until = 0;
	d->broken = 0;
	d->held = false;
}

static uint64_t key_hash(const struct disk_entry *e)
{
	uint64_t h = 0xcbf29ce484222325ull + e->shard;
	for (int32_t i = 0; i < e->e.key.len; i++)
		h = (h ^ e->e.key.p[i]) * 0x100000001b3ull;
	return h ^ h >> 32;
}

static enum record_kind key_kind(const struct disk_entry *e)
{
	struct record_key key;
	return record_key_decode(&key, e->e.key) ? key.kind : RECORD_OTHER;
}

/* Which records up to a position are the newest of their keys there, malloc: from the end, the first of a key that comes along. */
bool *disk_newest(const struct ledger *d, uint64_t end)
{
	size_t slots = 16;
	while (slots < 2 * end)
		slots *= 2;
	const struct disk_entry **seen = calloc(slots, sizeof(*seen));
	bool *newest = calloc(end + 1, sizeof(*newest));
	CHECK(seen != NULL && newest != NULL);
	for (uint64_t i = end; i-- > 0;) {
		const struct disk_entry *e = &d->entries[i];
		size_t at = key_hash(e) & (slots - 1);
		while (seen[at] != NULL && (seen[at]->shard != e->shard || !bytes_equal(seen[at]->e.key, e->e.key)))
			at = (at + 1) & (slots - 1);
		newest[i] = seen[at] == NULL;
		seen[at] = seen[at] == NULL ? e : seen[at];
	}
	free(seen);
	return newest;
}

/*
 * Records of offsets stay all, and tombstones of groups: a group that consisted of nothing but offsets is there until expiry takes it, and a compacted log
 * would have forgotten it before.
 */
bool *disk_compacted(const struct ledger *d, bool tombstones)
{
	bool *keep = disk_newest(d, d->len);
	for (uint64_t i = 0; i < d->len; i++) {
		enum record_kind kind = key_kind(&d->entries[i]);
		bool stays = tombstones || kind != RECORD_PART || !bytes_is_null(d->entries[i].e.value);
		keep[i] = (keep[i] && stays) || (kind != RECORD_GROUP && kind != RECORD_PART);
	}
	return keep;
}

/* What the last crash left of the records, malloc. NULL: all. */
bool *disk_left(const struct ledger *d)
{
	bool *keep = d->stored == NULL ? NULL : calloc(d->len + 1, sizeof(*keep));
	if (keep != NULL)
		memcpy(keep, stored_there(d->stored), d->len * sizeof(*keep));
	return keep;
}

void disk_fini(struct ledger *d)
{
	if (d->stored != NULL)
		stored_free(d->stored);
	disk_cut(d, 0);
	free(d->entries);
	free(d->batches);
}
