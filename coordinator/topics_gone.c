/*
 * topics_gone.c - offsets of topics that were deleted are removed from all groups by tombstones (KAFKA-2000; group-protocol 1.17).
 *
 * The shard keeps the names of the topics that are gone and walks its groups in slices, as for expired offsets (expiry.c says why no group is
 * missed). A commit that was on its way when the topic went is found among the records in flight; later ones are refused, for their topic does not
 * exist. A name that comes back is taken off the list.
 */
#include "coordinator/group/group.h"

#define GONE_SLICE 256
#define GONE_PAUSE_MS 1

struct gone_walk {
	struct shard *shard;
	struct tombstones *t;
	struct bytes topic; /* the last one that was looked up, and the result */
	bool gone;
	unsigned int looked_at;
};

void topics_gone_fini(struct shard *shard)
{
	for (size_t i = 0; i < shard->gone.len; i++)
		bytes_free(&shard->gone.topics[i]);
	free(shard->gone.topics);
	shard->gone.topics = NULL;
	shard->gone.len = 0;
}

/* ---- one group ---- */

static bool gone_has(struct gone_walk *walk, struct bytes topic)
{
	if (!bytes_equal(walk->topic, topic)) {
		walk->topic = topic;
		walk->gone = names_have(walk->shard->gone.topics, walk->shard->gone.len, topic);
	}
	return walk->gone;
}

static void gone_committed(void *arg, struct bytes topic, int32_t partition, const struct record_offset *value)
{
	struct gone_walk *walk = arg;
	walk->looked_at++;
	if (gone_has(walk, topic))
		tombstone_offset(walk->t, topic, partition);
}

static void gone_in_flight(void *arg, const struct record_key *key, bool tombstone)
{
	struct gone_walk *walk = arg;
	if (key->kind == RECORD_OFFSET && !tombstone && gone_has(walk, key->topic))
		tombstone_offset(walk->t, key->topic, key->partition);
}

static void gone_put(struct tombstones *t, void *arg)
{
	struct gone_walk *walk = arg;
	walk->t = t;
	walk->topic = BYTES_NULL;
	walk->gone = false;
	walk->looked_at = 0;
	offsets_each(&walk->shard->offsets, t->group_id, gone_committed, walk);
	writes_each_of_group(walk->shard, t->group_id, gone_in_flight, walk);
}

/* ---- the walk ---- */

static void gone_slice(struct purgatory_op *op, struct now now);

static const struct purgatory_kind gone_kind = {"topics-gone", NULL, NULL, gone_slice};

static void gone_slice(struct purgatory_op *op, struct now now)
{
	struct shard *shard = CONTAINER_OF(op, struct shard, gone.op);
	unsigned int cost = 0;
	for (; cost < GONE_SLICE && shard->gone.bucket < shard->groups.buckets; shard->gone.bucket++) {
		for (struct table_node *n = *table_slot(&shard->groups, shard->gone.bucket); n != NULL; n = n->next) {
			struct gone_walk walk = {.shard = shard};
			struct tombstones t = tombstones_of(CONTAINER_OF(n, struct group, node)->id);
			if (tombstones_write(&t, shard, gone_put, &walk, now) != 0)
				shard->stats->log_append_failed++;
			else
				shard->stats->offset_topic_gone += t.records;
			cost += 1 + walk.looked_at;
		}
	}
	if (shard->gone.bucket < shard->groups.buckets)
		purgatory_start(&shard->purgatory, op, &gone_kind, NULL, deadline_after(now, GONE_PAUSE_MS), now);
	else
		topics_gone_fini(shard);
}

/* ---- the list ---- */

static bool gone_names(struct bytes name, const struct bytes *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (bytes_equal(names[i], name))
			return true;
	return false;
}

/* False: no memory. */
static bool gone_add(struct bytes *list, size_t *len, struct bytes name)
{
	if (!bytes_dup(&list[*len], name))
		return false;
	(*len)++;
	return true;
}

bool shard_topics_changed(struct shard *shard, const struct bytes *gone, size_t gone_len, const struct bytes *made, size_t made_len, struct now now)
{
	size_t len = 0;
	struct bytes *list = calloc(gone_len + shard->gone.len + 1, sizeof(*list));
	bool ok = list != NULL;
	for (size_t i = 0; ok && i < shard->gone.len; i++)
		if (!gone_names(shard->gone.topics[i], made, made_len))
			ok = gone_add(list, &len, shard->gone.topics[i]);
	for (size_t i = 0; ok && i < gone_len; i++)
		ok = gone_add(list, &len, gone[i]);
	topics_gone_fini(shard);
	purgatory_cancel(&shard->gone.op);
	shard->gone.topics = list;
	shard->gone.len = len;
	shard->gone.bucket = 0;
	if (len == 0 || !ok) {
		topics_gone_fini(shard);
		return ok;
	}
	names_sort(list, len);
	purgatory_start(&shard->purgatory, &shard->gone.op, &gone_kind, NULL, now.us, now);
	return true;
}
