/*
 * topics_gone.c - offsets of topics that were deleted are removed from all groups by tombstones (KAFKA-2000; group-protocol 1.17).
 *
 * The shard keeps the names of the topics that are gone and walks its groups in slices, as for expired offsets (expiry.c says why no group is
 * missed). The walk begins when the commits that were on their way when the topic went have arrived, among them the first ones of groups that do
 * not exist yet; later ones are refused, for their topic does not exist. When the log takes no tombstones for now, the walk waits. A name that
 * comes back is taken off the list.
 */
#include "coordinator/group/group.h"

#define GONE_SLICE 256
#define GONE_PAUSE_MS 1
#define GONE_RETRY_MS 1000

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

static void gone_put(struct tombstones *t, void *arg)
{
	struct gone_walk *walk = arg;
	walk->t = t;
	walk->topic = BYTES_NULL;
	walk->gone = false;
	walk->looked_at = 0;
	offsets_each(&walk->shard->offsets, t->group_id, gone_committed, walk);
}

/* ---- the walk ---- */

static void gone_slice(struct purgatory_op *op, struct now now);

static const struct purgatory_kind gone_kind = {"topics-gone", NULL, NULL, gone_slice};

/* Returns what it cost; *later is set when the log did not take the tombstones but may do so later. */
static unsigned int gone_group(struct group *group, bool *later, struct now now)
{
	struct shard *shard = group->shard;
	struct gone_walk walk = {.shard = shard};
	struct tombstones t = tombstones_of(group->id);
	int16_t error = tombstones_write(&t, shard, gone_put, &walk, now);
	shard->stats->log_append_failed += error != 0;
	shard->stats->offset_topic_gone += error == 0 ? t.records : 0;
	*later |= error != 0 && error != ERROR_UNKNOWN_SERVER_ERROR;
	return 1 + walk.looked_at;
}

static void gone_slice(struct purgatory_op *op, struct now now)
{
	struct shard *shard = CONTAINER_OF(op, struct shard, gone.op);
	bool early = shard->writes.first != NULL && shard->writes.first->position <= shard->gone.after, later = false;
	for (unsigned int cost = 0; !early && cost < GONE_SLICE && shard->gone.bucket < shard->groups.buckets;) {
		for (struct table_node *n = *table_slot(&shard->groups, shard->gone.bucket); n != NULL && !later; n = n->next)
			cost += gone_group(CONTAINER_OF(n, struct group, node), &later, now);
		if (later)
			break;
		shard->gone.bucket++;
	}
	if (early || shard->gone.bucket < shard->groups.buckets)
		purgatory_start(&shard->purgatory, op, &gone_kind, NULL, deadline_after(now, later ? GONE_RETRY_MS : GONE_PAUSE_MS), now);
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
	shard->gone.after = shard->writes.appended;
	if (len == 0 || !ok) {
		topics_gone_fini(shard);
		return ok;
	}
	names_sort(list, len);
	purgatory_start(&shard->purgatory, &shard->gone.op, &gone_kind, NULL, now.us, now);
	return true;
}
