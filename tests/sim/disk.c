/*
 * disk.c - the simulated log: batches become durable later, in order; sometimes it is slow, sometimes it refuses;
 * when it breaks nothing becomes durable any more; a crash loses what is not durable.
 *
 * Positions count records. All bytes are kept, so that a shard can be rebuilt from them at any time.
 */
#include "sim.h"

static struct disk *disk_of(struct log *log)
{
	return CONTAINER_OF(log, struct disk, log);
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
void disk_survey(struct disk *d, uint64_t end)
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

/* Commits carry unique offsets: remember where each one stands, and where it was taken away. */
static void disk_note(struct disk *d, const struct log_entry *e, uint64_t position)
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
	if (ours && bytes_is_null(e->value))
		w->tombstones[group][part] = position;
	if (!ours || !record_offset_decode(&value, e->value))
		return;
	if (value.offset >= 0 && (uint64_t)value.offset < w->offset_cap)
		w->offset_position[value.offset] = position;
}

static uint64_t disk_append(struct log *log, unsigned int shard, struct log_entry *entries, unsigned int n, int16_t *error, struct now now)
{
	struct disk *d = disk_of(log);
	REQUIRE(d->w, "log-empty-batch", n > 0, "a batch without records");
	if (disk_refuses(d)) {
		*error = d->broken != 0 ? d->broken : d->fail_code;
		return 0;
	}
	for (unsigned int i = 0; i < n; i++) {
		if (d->len == d->cap) {
			d->cap = d->cap == 0 ? 256 : d->cap * 2;
			d->entries = realloc(d->entries, d->cap * sizeof(*d->entries));
		}
		entries[i].offset = (int64_t)d->len;
		struct disk_entry *e = &d->entries[d->len++];
		e->shard = shard;
		e->e.offset = entries[i].offset;
		CHECK(bytes_dup(&e->e.key, entries[i].key) && bytes_dup(&e->e.value, entries[i].value));
		disk_note(d, &e->e, d->len);
	}
	uint64_t delay = rng_one_in(&d->rng, 4) ? 0 : rng_between(&d->rng, 50, 4000);
	if (d->w->now.us < d->slow_until)
		delay += d->slow_ms * (uint64_t)US_PER_MS;
	uint64_t at = d->w->now.us + delay > d->last_at ? d->w->now.us + delay : d->last_at;
	d->last_at = at;
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

static uint64_t disk_poll(struct log *log, struct now now)
{
	struct disk *d = disk_of(log);
	if (d->broken != 0 || d->held)
		return TIME_NEVER;
	while (d->batch_first < d->batch_len && d->batches[d->batch_first].at <= d->w->now.us)
		d->durable = d->batches[d->batch_first++].position;
	return d->batch_first < d->batch_len ? d->batches[d->batch_first].at - d->w->lost_us : TIME_NEVER;
}

static void disk_free(struct log *log)
{
}

static int16_t disk_failed(struct log *log)
{
	return disk_of(log)->broken;
}

static const struct log_ops disk_ops = {disk_append, disk_durable, disk_poll, disk_free, disk_failed};

bool disk_refuses(const struct disk *d)
{
	return d->broken != 0 || d->w->now.us < d->fail_until;
}

/* The last that becomes durable does so in the very round in which the failure shows. */
void disk_break(struct disk *d)
{
	while (d->batch_first < d->batch_len && !rng_one_in(&d->rng, 3))
		d->durable = d->batches[d->batch_first++].position;
	d->broken = 56;
	d->held = false;
}

void disk_init(struct disk *d, struct world *w)
{
	*d = (struct disk){.log.ops = &disk_ops, .w = w, .rng = rng_of(w->plan.seed, 77)};
}

static void disk_cut(struct disk *d, uint64_t len)
{
	while (d->len > len) {
		struct disk_entry *e = &d->entries[--d->len];
		bytes_free(&e->e.key);
		bytes_free(&e->e.value);
	}
}

/* What was not reported durable may be there or not, from some batch on. */
void disk_crash(struct disk *d, struct rng *r)
{
	while (d->batch_first < d->batch_len && rng_one_in(r, 2))
		d->durable = d->batches[d->batch_first++].position;
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

/*
 * From the end: the first record of a key that comes along is the one that stays. Records of offsets stay all, and tombstones of groups: a group that
 * consisted of nothing but offsets is there until expiry takes it, and a compacted log would have forgotten it before.
 */
bool *disk_compacted(const struct disk *d, bool tombstones)
{
	size_t slots = 16;
	while (slots < 2 * d->len)
		slots *= 2;
	const struct disk_entry **seen = calloc(slots, sizeof(*seen));
	bool *keep = calloc(d->len + 1, sizeof(*keep));
	CHECK(seen != NULL && keep != NULL);
	for (uint64_t i = d->len; i-- > 0;) {
		const struct disk_entry *e = &d->entries[i];
		size_t at = key_hash(e) & (slots - 1);
		while (seen[at] != NULL && (seen[at]->shard != e->shard || !bytes_equal(seen[at]->e.key, e->e.key)))
			at = (at + 1) & (slots - 1);
		enum record_kind kind = key_kind(e);
		bool stays = tombstones || kind != RECORD_PART || !bytes_is_null(e->e.value);
		keep[i] = (seen[at] == NULL && stays) || (kind != RECORD_GROUP && kind != RECORD_PART);
		seen[at] = seen[at] == NULL ? e : seen[at];
	}
	free(seen);
	return keep;
}

void disk_fini(struct disk *d)
{
	disk_cut(d, 0);
	free(d->entries);
	free(d->batches);
}
