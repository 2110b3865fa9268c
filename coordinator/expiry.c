/*
 * expiry.c - offsets that nobody needs any more, and groups that hold nothing any more, are removed by tombstones (KIP-211; group-protocol 1.18).
 *
 *   group                                     an offset's age counts from       spared
 *   of no protocol type (simple)              its commit                        -
 *   Empty                                     when the group became Empty       -        (from its commit where that is unknown)
 *   Stable, of type "consumer"                its commit                        topics that it subscribes to
 *   any other                                 -                                 all
 *
 * An explicit expiry time (commits of versions 2 to 4) takes the place of age and retention. An Empty group of which no offset is left
 * goes too, also when it never had one; one with ids that were handed out is spared until these have come back or expired.
 *
 * Every offsets.retention.check.interval.ms the shard's groups are walked, bucket by bucket of their table, in slices of EXPIRY_SLICE groups and
 * offsets with a millisecond between. The table may grow meanwhile: growing moves groups to later buckets only, so none is missed.
 *
 * Invariants:
 *  1. A group with records in flight is left for the next walk: a tombstone must not follow a commit that it was not decided by.
 *  2. One walk appends at most EXPIRY_RECORDS tombstones per group.
 */
#include "coordinator/group/group.h"

#define EXPIRY_SLICE 256
#define EXPIRY_RECORDS 4096
#define EXPIRY_PAUSE_MS 1

enum expiry_from { EXPIRY_FROM_COMMIT, EXPIRY_FROM_STATE, EXPIRY_NEVER };

struct expiry_walk {
	const struct group *group;
	int64_t wall_ms, retention_ms;
	enum expiry_from from;
	unsigned int looked_at;
	unsigned int due; /* in this pass, subscribed topics among them */
	bool kept;	  /* some offset stays */
	struct tombstones *t;
	struct bytes topic; /* the last one that was looked up, and the result */
	bool spared;
};

static enum expiry_from expiry_rule(const struct group *group)
{
	if (group->state == GROUP_DEAD)
		return EXPIRY_NEVER;
	if (bytes_is_null(group->protocol_type))
		return EXPIRY_FROM_COMMIT;
	if (group->state == GROUP_EMPTY)
		return group->state_ms >= 0 ? EXPIRY_FROM_STATE : EXPIRY_FROM_COMMIT;
	bool consumers = group->state == GROUP_STABLE && bytes_equal(group->protocol_type, BYTES_LITERAL("consumer"));
	return consumers ? EXPIRY_FROM_COMMIT : EXPIRY_NEVER;
}

static bool expiry_is_due(const struct expiry_walk *walk, const struct record_offset *v)
{
	if (v->expire_ms != RECORD_NO_EXPIRY)
		return walk->wall_ms >= v->expire_ms;
	int64_t base = walk->from == EXPIRY_FROM_STATE ? walk->group->state_ms : v->commit_ms;
	return base <= walk->wall_ms - walk->retention_ms;
}

static void expiry_count(void *arg, struct bytes topic, int32_t partition, const struct record_offset *v)
{
	struct expiry_walk *walk = arg;
	walk->looked_at++;
	walk->due += expiry_is_due(walk, v);
}

static bool expiry_spares(struct expiry_walk *walk, struct bytes topic)
{
	if (walk->group->state != GROUP_STABLE)
		return false;
	if (!bytes_equal(walk->topic, topic)) {
		walk->topic = topic;
		walk->spared = group_is_subscribed(walk->group, topic);
	}
	return walk->spared;
}

static void expiry_put(void *arg, struct bytes topic, int32_t partition, const struct record_offset *v)
{
	struct expiry_walk *walk = arg;
	if (expiry_is_due(walk, v) && walk->due < EXPIRY_RECORDS && !expiry_spares(walk, topic)) {
		walk->due++;
		tombstone_offset(walk->t, topic, partition);
	} else {
		walk->kept = true;
	}
}

static void expiry_put_all(struct tombstones *t, void *arg)
{
	struct expiry_walk *walk = arg;
	const struct group *g = walk->group;
	walk->t = t;
	walk->due = 0;
	walk->kept = false;
	walk->topic = BYTES_NULL;
	offsets_each(&g->shard->offsets, g->id, expiry_put, walk);
	if (g->state == GROUP_EMPTY && !walk->kept && g->pending_len == 0) {
		parts_tombstones(t, g);
		tombstone_group(t);
	}
}

/* Returns what it cost: the group and its offsets. */
static unsigned int expiry_group(struct group *group, struct now now)
{
	struct shard *shard = group->shard;
	struct expiry_walk walk = {
		.group = group,
		.wall_ms = now.wall_ms,
		.retention_ms = (int64_t)group->settings->offsets_retention_minutes * 60000,
		.from = expiry_rule(group),
	};
	if (walk.from == EXPIRY_NEVER)
		return 1;
	offsets_each(&shard->offsets, group->id, expiry_count, &walk);
	bool nothing = walk.due == 0 && (walk.looked_at > 0 || group->state != GROUP_EMPTY);
	if (nothing || writes_of_group(shard, group->id))
		return 1 + walk.looked_at;
	struct tombstones t = tombstones_of(group->id);
	if (tombstones_write(&t, shard, expiry_put_all, &walk, now) != 0) {
		shard->stats->log_append_failed++;
		return 1 + walk.looked_at;
	}
	shard->stats->offset_expired += walk.due;
	shard->stats->group_deleted += t.records > walk.due;
	return 1 + walk.looked_at;
}

static void expiry_slice(struct purgatory_op *op, struct now now);

static const struct purgatory_kind expiry_kind = {"expiry", NULL, NULL, expiry_slice};

static void expiry_slice(struct purgatory_op *op, struct now now)
{
	struct shard *shard = CONTAINER_OF(op, struct shard, expiry);
	for (unsigned int cost = 0; cost < EXPIRY_SLICE && shard->expiry_bucket < shard->groups.buckets; shard->expiry_bucket++)
		for (struct table_node *n = *table_slot(&shard->groups, shard->expiry_bucket); n != NULL; n = n->next)
			cost += expiry_group(CONTAINER_OF(n, struct group, node), now);
	if (shard->expiry_bucket < shard->groups.buckets) {
		purgatory_start(&shard->purgatory, op, &expiry_kind, NULL, deadline_after(now, EXPIRY_PAUSE_MS), now);
		return;
	}
	shard->expiry_bucket = 0;
	expiry_arm(shard, now);
}

void expiry_arm(struct shard *shard, struct now now)
{
	int64_t interval = shard->settings->offsets_retention_check_interval_ms;
	if (shard->groups.count > 0 && interval > 0 && !purgatory_waiting(&shard->expiry))
		purgatory_start(&shard->purgatory, &shard->expiry, &expiry_kind, NULL, deadline_after(now, interval), now);
}
