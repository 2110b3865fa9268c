/*
 * replicas.c - live == replayed: a second shard, made from nothing but the log's bytes, equals the live one (groups at rest and all offsets).
 *
 * Groups are compared after every step; the offsets, which are many, after every step that made something durable, and now and then besides.
 */
#include "sim.h"

#define OFFSETS_EVERY 64

/* A group that removes whoever did not sync, slice by slice, is about to rebalance. */
static bool at_rest(const struct group *g)
{
	return (g->state == GROUP_EMPTY || g->state == GROUP_STABLE) && g->writes == 0 && !g->unsaved && !g->expelling;
}

static void compare_member(struct world *w, const struct member *m, struct group *replayed)
{
	const struct member *r = member_find(replayed, m->id);
	REQUIRE(w, "replay-differs", r != NULL, "member %.*s is not in the log", m->id.len, m->id.p);
	REQUIRE(w, "replay-differs", bytes_equal(m->instance_id, r->instance_id) && bytes_equal(m->client_id, r->client_id) && bytes_equal(m->host, r->host),
		"identity of %.*s", m->id.len, m->id.p);
	REQUIRE(w, "replay-differs", m->session_timeout_ms == r->session_timeout_ms && m->rebalance_timeout_ms == r->rebalance_timeout_ms,
		"timeouts of %.*s", m->id.len, m->id.p);
	REQUIRE(w, "replay-differs", bytes_equal(member_metadata(m), member_metadata(r)), "subscription of %.*s", m->id.len, m->id.p);
	REQUIRE(w, "replay-differs", bytes_equal(member_assignment(m), member_assignment(r)), "assignment of %.*s", m->id.len, m->id.p);
}

struct pair {
	struct world *w;
	struct shard *live, *replica;
	struct bytes group;
	unsigned int offsets;
};

static void compare_group(struct table_node *n, void *arg)
{
	struct pair *pair = arg;
	struct world *w = pair->w;
	const struct group *g = CONTAINER_OF(n, struct group, node);
	struct group *r = group_find(pair->replica, g->id);
	if (!at_rest(g))
		return;
	REQUIRE(w, "replay-differs", r != NULL, "group %.*s is not in the log", g->id.len, g->id.p);
	REQUIRE(w, "replay-differs", g->state == r->state && g->generation == r->generation && g->members_len == r->members_len,
		"group %.*s: %s %d with %u members, in the log %s %d with %u", g->id.len, g->id.p, group_state_name(g->state), g->generation,
		g->members_len, group_state_name(r->state), r->generation, r->members_len);
	REQUIRE(w, "replay-differs", bytes_equal(g->protocol_type, r->protocol_type) && bytes_equal(g->protocol, r->protocol), "protocol of %.*s",
		g->id.len, g->id.p);
	REQUIRE(w, "replay-differs", g->state_ms == r->state_ms, "time of state of %.*s: %lld and %lld", g->id.len, g->id.p, (long long)g->state_ms,
		(long long)r->state_ms);
	REQUIRE(w, "replay-differs", bytes_equal(g->leader == NULL ? BYTES_NULL : g->leader->id, r->leader == NULL ? BYTES_NULL : r->leader->id),
		"leader of %.*s", g->id.len, g->id.p);
	for (uint32_t i = 0; i < g->members_len; i++)
		compare_member(w, g->members[i], r);
}

/* A cleaned log forgets a group that consisted of nothing but offsets with the last of them; as it stood, it knew the group until expiry took it. */
static void count_offset(void *arg, struct bytes topic, int32_t partition, const struct record_offset *v)
{
	(*(unsigned int *)arg)++;
}

static bool cleaned_away(const struct pair *pair, const struct group *r)
{
	unsigned int offsets = 0;
	offsets_each(&pair->replica->offsets, r->id, count_offset, &offsets);
	return pair->w->plan.stored && bytes_is_null(r->protocol_type) && r->members_len == 0 && offsets == 0;
}

/* Other groups than at rest may stand in memory only, but none in the log only. */
static void compare_back(struct table_node *n, void *arg)
{
	const struct pair *pair = arg;
	const struct group *r = CONTAINER_OF(n, struct group, node);
	REQUIRE(pair->w, "replay-differs", group_find(pair->live, r->id) != NULL || cleaned_away(pair, r), "group %.*s is in the log only", r->id.len, r->id.p);
}

static void compare_offset(void *arg, struct bytes topic, int32_t partition, const struct record_offset *v)
{
	struct pair *pair = arg;
	struct record_offset r;
	pair->offsets++;
	REQUIRE(pair->w, "replay-differs", offsets_get(&pair->replica->offsets, pair->group, topic, partition, &r) && r.offset == v->offset &&
		r.leader_epoch == v->leader_epoch && r.commit_ms == v->commit_ms && r.expire_ms == v->expire_ms && bytes_equal(r.metadata, v->metadata),
		"offset of %.*s %.*s %d", pair->group.len, pair->group.p, topic.len, topic.p, partition);
}

static void compare_offsets(void *arg, struct bytes group)
{
	struct pair *pair = arg;
	pair->group = group;
	offsets_each(&pair->live->offsets, group, compare_offset, pair);
}

static struct shard *replica_new(struct world *w, unsigned int number)
{
	uint64_t random[2] = {number + 5, 6};
	struct shard *s = shard_new(number, &w->disk.log, &w->plan.settings, &w->replica_stats, random, served(w));
	CHECK(s != NULL);
	return s;
}

static void replay_one(struct world *w, uint64_t position)
{
	const struct disk_entry *e = &w->disk.entries[position];
	if (w->replicas[e->shard] == NULL)
		w->replicas[e->shard] = replica_new(w, e->shard);
	REQUIRE(w, "record-unreadable", shard_replay(w->replicas[e->shard], &e->e, served(w)), "record %llu", (unsigned long long)position);
}

static void audit_replay(struct world *w)
{
	for (; w->replayed < w->disk.durable; w->replayed++)
		replay_one(w, w->replayed);
}

static void compare_all_offsets(struct world *w, struct shard *live, struct shard *replica)
{
	struct pair pair = {w, live, replica, BYTES_NULL, 0}, back = {w, replica, live, BYTES_NULL, 0};
	offsets_each_group(&live->offsets, compare_offsets, &pair);
	offsets_each_group(&replica->offsets, compare_offsets, &back);
	REQUIRE(w, "replay-differs", pair.offsets == back.offsets, "%u offsets, %u in the log", pair.offsets, back.offsets);
}

void audit_deep(struct world *w)
{
	audit_replay(w);
	for (unsigned int i = 0; i < SHARDS; i++) {
		struct shard *live = world_shard_number(w, i), *replica = w->replicas[i];
		const struct write *next = live->writes.first;
		struct pair pair = {w, live, replica, BYTES_NULL, 0};
		if (replica == NULL || (next != NULL && next->position <= w->disk.durable)) /* durable, and applied in the next round */
			continue;
		table_each(&live->groups, compare_group, &pair);
		table_each(&replica->groups, compare_back, &pair);
		if (w->compared[i] == w->replayed && w->steps % OFFSETS_EVERY != 0)
			continue;
		compare_all_offsets(w, live, replica);
		w->compared[i] = w->replayed;
	}
}

void audit_fini(struct world *w)
{
	for (unsigned int i = 0; i < SHARDS; i++) {
		if (w->replicas[i] != NULL)
			shard_free(w->replicas[i]);
		w->replicas[i] = NULL;
	}
}

void audit_replay_again(struct world *w, const bool *keep)
{
	audit_fini(w);
	for (w->replayed = 0; w->replayed < w->disk.durable; w->replayed++)
		if (keep[w->replayed])
			replay_one(w, w->replayed);
	memset(w->compared, 0, sizeof(w->compared));
}
