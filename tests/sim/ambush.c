/*
 * ambush.c - what comes between two slices of one work: a member goes, joins anew or is thrown out, its group is deleted, the server crashes, while the
 * group is in the middle of a walk, a draft or a merge. The plan's own actions rarely fall into so short a time.
 *
 * Drawn after a round that left such work, from the seed and the moment. The network takes no time for it, so that it arrives before
 * the next round.
 */
#include "sim.h"

#define AMBUSH_ONE_IN 2
#define AMBUSH_RESTART_ONE_IN 8

static int queued_group(struct world *w, struct rng *r)
{
	uint32_t skip = rng_below(r, GROUPS);
	for (unsigned int i = 0; i < GROUPS; i++) {
		int number = (int)((i + skip) % GROUPS);
		const struct shard *shard = world_shard(w, number);
		const struct group *g = group_find(world_shard(w, number), w->group_id[number]);
		if (g != NULL && (g->queued || shard->merge.group == g))
			return number;
	}
	return -1;
}

/* A consumer of the group, drawn, more often one that waits for an answer; NULL: none that runs. */
static struct consumer *somebody(struct world *w, struct rng *r, int group)
{
	struct consumer *any = NULL;
	uint32_t skip = rng_below(r, CONSUMERS);
	bool waiting = !rng_one_in(r, 3);
	for (unsigned int i = 0; i < CONSUMERS; i++) {
		struct consumer *c = &w->consumers[(i + skip) % CONSUMERS];
		if (c->group != group || c->state == OFF || c->state == FATAL)
			continue;
		if (!waiting || c->state == JOINING || c->state == SYNCING)
			return c;
		any = c;
	}
	return any;
}

static enum action_kind draw(struct world *w, struct rng *r)
{
	static const enum action_kind by_consumers[] = {ACT_STOP, ACT_KILL, ACT_RESET, ACT_LOSE, ACT_REJOIN, ACT_RESUBSCRIBE};
	static const enum action_kind by_others[] = {ACT_ROGUE_JOIN, ACT_ROGUE_SYNC, ACT_ROGUE_LEAVE, ACT_ROGUE_COMMIT, ACT_ADMIN, ACT_STALL};
	if (w->plan.clean || rng_one_in(r, 2))
		return by_consumers[rng_below(r, ARRAY_LEN(by_consumers))];
	if (rng_one_in(r, AMBUSH_RESTART_ONE_IN))
		return ACT_RESTART;
	return by_others[rng_below(r, ARRAY_LEN(by_others))];
}

bool world_ambush(struct world *w)
{
	struct rng r = rng_of(w->plan.seed ^ w->now.us, 77);
	if (w->draining || w->stopping || w->stalled || !rng_one_in(&r, AMBUSH_ONE_IN))
		return false;
	int group = queued_group(w, &r);
	if (group < 0)
		return false;
	struct consumer *c = somebody(w, &r, group);
	struct action a = {.at = w->now.us, .kind = draw(w, &r), .who = (uint32_t)group, .random = rng_next(&r)};
	if (a.kind < ACT_ROGUE_JOIN) {
		if (c == NULL)
			return false;
		a.who = (uint32_t)c->index;
	}
	w->rush = true;
	world_act(w, &a);
	w->rush = false;
	return true;
}
