/*
 * slice.c - work on every member of a group, in pieces, so that no group holds up the others of its shard for long.
 *
 * What is due follows from the state of the group (slice_due); of several things the first one of enum slice_walk is done first. A walk goes down from
 * the last member; removing a member moves the last one into the hole, so none is missed, and every walk may visit a member twice or begin anew.
 *
 *   join phase over     CLOSE -> rebalance_form -> ANSWER
 *   leader's SyncGroup  WRITE (after ANSWER); durable and merged, which replay.c does in slices of its own -> RELEASE
 *   sync phase over     EXPEL -> rebalance_expelled
 *   rebalance meanwhile ABORT
 *
 * The first slice runs in the call that makes the work due, so a small group never waits. Units are about a microsecond each: visiting a member is
 * one, besides one for each SLICE_BYTES that are copied for it. A shard does slice_units of them per round, for all of its groups, in turn.
 *
 * While joins are answered, the members are the ones that formed the generation: whatever adds, removes or changes one begins a rebalance, which ends the
 * walk. So the leader's list and the topics may point to what members own.
 */
#include "coordinator/group/group.h"

#define SLICE_UNITS 128
#define SLICE_BYTES 4096

/* What the walk ANSWER collects. */
struct slice_scratch {
	struct subscribed *topics;
	uint32_t len;
	struct join_group_response_member list[];
};

unsigned int slice_units(const struct shard *shard)
{
	return shard->settings->group_slice > 0 ? (unsigned int)shard->settings->group_slice : SLICE_UNITS;
}

static enum slice_walk slice_due(const struct group *g)
{
	if (g->expelling)
		return SLICE_EXPEL;
	if (g->closing)
		return SLICE_CLOSE;
	if (g->state == GROUP_PREPARING && g->syncing > 0)
		return SLICE_ABORT;
	if (g->answering)
		return SLICE_ANSWER;
	if (g->draft != NULL)
		return SLICE_WRITE;
	if (g->state == GROUP_STABLE && g->syncing > 0)
		return SLICE_RELEASE;
	return parts_to_sweep(g) ? SLICE_SWEEP : SLICE_NOTHING;
}

static void slice_drop_scratch(struct group *g)
{
	if (g->scratch != NULL)
		subscribed_free(g->scratch->topics);
	free(g->scratch);
	g->scratch = NULL;
}

static unsigned int slice_cost(struct bytes b)
{
	return 1 + (b.len > 0 ? (unsigned int)b.len / SLICE_BYTES : 0);
}

/* ---- answers ---- */

static void slice_answer_join(struct member *m, struct now now)
{
	struct request *rq = member_unpark_join(m);
	m->is_new = m->unnamed = false;
	member_touch(m, now);
	if (rq != NULL)
		join_answer(m, rq, now);
}

static void slice_answer_sync(struct member *m, struct now now)
{
	struct request *rq = member_unpark_sync(m);
	member_touch(m, now);
	if (m->group->state == GROUP_STABLE)
		sync_answer(m, rq, now);
	else
		sync_answer_error(rq, m->group->abort_error, now);
}

void slice_hurry(struct member *m, struct now now)
{
	const struct group *g = m->group;
	if (m->join != NULL && g->answering)
		slice_answer_join(m, now);
	if (m->sync != NULL && (g->state == GROUP_PREPARING || g->state == GROUP_STABLE))
		slice_answer_sync(m, now);
}

const struct join_group_response_member *slice_list(const struct group *g)
{
	return g->scratch != NULL && g->scratch->len == g->members_len && g->walk == SLICE_ANSWER && g->walk_at == 0 ? g->scratch->list : NULL;
}

/* ---- one member of a walk ---- */

/* Whose connection goes between the end of the phase and this walk had joined: it is a member that does not hear the answer. */
static unsigned int slice_close_one(struct group *g, struct member *m, struct now now)
{
	if (m->join != NULL || m->dropped == g->closings)
		return 1;
	if (m->sync != NULL)
		slice_answer_sync(m, now);
	journal_late(g, m);
	if (!bytes_is_null(m->instance_id))
		return 1;
	g->shard->stats->group_join_dropped++;
	removal_note(m, REMOVAL_LATE, BYTES_NULL, now);
	member_remove(m, ERROR_UNKNOWN_MEMBER_ID, now);
	return 2;
}

static unsigned int slice_expel_one(struct group *g, struct member *m, struct now now)
{
	if (!member_unsynced(m))
		return 1;
	g->shard->stats->group_sync_expired++;
	g->expelled++;
	removal_note(m, REMOVAL_DID_NOT_SYNC, BYTES_NULL, now);
	journal_open(g, JOURNAL_SYNC_TIMEOUT, m, now);
	member_remove(m, ERROR_UNKNOWN_MEMBER_ID, now);
	return 2;
}

static unsigned int slice_answer_one(struct group *g, struct member *m, struct now now)
{
	struct slice_scratch *s = g->scratch;
	if (s != NULL && m->index < s->len) {
		join_list_put(&s->list[m->index], m);
		subscribed_member(s->topics, m);
	}
	if (m != g->leader)
		slice_answer_join(m, now);
	return 1;
}

static unsigned int slice_visit(struct group *g, struct member *m, struct now now)
{
	switch (g->walk) {
	case SLICE_EXPEL:
		return slice_expel_one(g, m, now);
	case SLICE_CLOSE:
		return slice_close_one(g, m, now);
	case SLICE_ANSWER:
		return slice_answer_one(g, m, now);
	case SLICE_ABORT:
	case SLICE_RELEASE:
		if (m->sync == NULL)
			return 1;
		slice_answer_sync(m, now);
		return slice_cost(member_assignment(m));
	default:
		CHECK(!"a walk over members");
		return 1;
	}
}

/* ---- the walks ---- */

static void slice_begin(struct group *g, enum slice_walk walk)
{
	slice_drop_scratch(g);
	g->walk = (uint8_t)walk;
	g->walk_at = g->members_len;
	if (walk != SLICE_ANSWER)
		return;
	g->scratch = malloc(sizeof(*g->scratch) + g->members_len * sizeof(g->scratch->list[0]));
	if (g->scratch == NULL) /* the leader's list is made in one go then, or the leader is told that it is alone */
		return;
	g->scratch->len = g->members_len;
	g->scratch->topics = subscribed_new(g);
}

/* Nobody is left whom the walk would do anything about. */
static bool slice_over(const struct group *g)
{
	switch (g->walk) {
	case SLICE_EXPEL:
		return g->unsynced == 0 || g->walk_at == 0;
	case SLICE_CLOSE:
		return g->waiting == g->members_len || g->walk_at == 0;
	case SLICE_ANSWER:
		return g->walk_at == 0;
	default:
		return g->syncing == 0 || g->walk_at == 0;
	}
}

static void slice_answered(struct group *g, struct now now)
{
	struct member *leader = g->leader;
	if (g->scratch != NULL) {
		group_subscribed(g, g->scratch->topics);
		g->scratch->topics = NULL;
	} else {
		group_subscribe(g);
	}
	if (leader != NULL)
		slice_answer_join(leader, now);
	CHECK(g->waiting == 0);
	g->answering = false;
	slice_drop_scratch(g);
}

static void slice_finish(struct group *g, struct now now)
{
	switch (g->walk) {
	case SLICE_EXPEL:
		g->expelling = false;
		rebalance_expelled(g, now);
		break;
	case SLICE_CLOSE:
		g->closing = false;
		rebalance_form(g, now);
		break;
	case SLICE_ANSWER:
		slice_answered(g, now);
		break;
	default:
		CHECK(g->syncing == 0);
	}
	g->walk = SLICE_NOTHING;
}

static void slice_take(unsigned int *units, unsigned int cost)
{
	*units = *units > cost ? *units - cost : 0;
}

static void slice_walk(struct group *g, unsigned int *units, struct now now)
{
	enum slice_walk walk = (enum slice_walk)g->walk;
	if (g->walk_at > g->members_len)
		g->walk_at = g->members_len;
	while (*units > 0 && !slice_over(g)) {
		slice_take(units, slice_visit(g, g->members[--g->walk_at], now));
		if (g->walk_at > g->members_len)
			g->walk_at = g->members_len;
	}
	if (slice_over(g) && g->walk == walk)
		slice_finish(g, now);
}

static void slice_write(struct group *g, unsigned int *units, struct now now)
{
	int16_t error = 0;
	if (draft_step(g->draft, units, &error, now))
		sync_drafted(g, error, now);
}

static void slice_run(struct group *g, struct now now)
{
	unsigned int *units = &g->shard->slice_left;
	enum slice_walk due;
	g->running = true;
	while (*units > 0 && (due = slice_due(g)) != SLICE_NOTHING) {
		if (due != g->walk)
			slice_begin(g, due);
		if (due == SLICE_WRITE)
			slice_write(g, units, now);
		else if (due == SLICE_SWEEP)
			parts_sweep(g, units, now);
		else
			slice_walk(g, units, now);
	}
	g->running = false;
}

/* ---- the queue ---- */

static void slice_queue(struct group *g)
{
	bool due = !g->removed && slice_due(g) != SLICE_NOTHING;
	if (due == g->queued)
		return;
	if (due)
		TAILQ_INSERT_TAIL(&g->shard->queue, g, queue);
	else
		TAILQ_REMOVE(&g->shard->queue, g, queue);
	g->queued = due;
}

void slice_start(struct group *g, struct now now)
{
	if (g->running)
		return;
	slice_run(g, now);
	slice_queue(g);
}

void slice_forget(struct group *g)
{
	slice_drop_scratch(g);
	draft_free(g->draft);
	g->draft = NULL;
	g->closing = g->answering = g->expelling = false;
	g->walk = SLICE_NOTHING;
}

void slice_leave(struct group *g)
{
	slice_forget(g);
	if (g->queued)
		TAILQ_REMOVE(&g->shard->queue, g, queue);
	g->queued = false;
}

void slices_run(struct shard *shard, struct now now)
{
	while (shard->slice_left > 0 && !TAILQ_EMPTY(&shard->queue)) {
		struct group *g = TAILQ_FIRST(&shard->queue);
		TAILQ_REMOVE(&shard->queue, g, queue);
		g->queued = false;
		slice_run(g, now);
		slice_queue(g);
	}
}
