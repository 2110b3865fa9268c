/*
 * static.c - replacement of a static member: a client with a known group.instance.id comes without its member id (KIP-345).
 *
 * The member keeps its place and its assignment; it gets a new id, a new tag, and what the request says about protocols and
 * timeouts. Requests parked under the old id are answered with 82. Then:
 *   Stable, the vote's winner unchanged   the group is written with the new id, and the join is answered when that is durable: no rebalance
 *   Stable otherwise, CompletingRebalance  rebalance (the leader may have been told the old id)
 *   PreparingRebalance                     parked like any join
 *
 * Invariant: if the log does not take the write, the member is as it was before.
 */
#include "coordinator/group/group.h"

struct static_old {
	struct bytes id; /* malloc */
	struct offers *offers;
	int32_t session_timeout_ms, rebalance_timeout_ms;
	uint8_t slots;
};

/* Gives the member the request's identity and offers; what it had goes to *old. False: no memory, nothing changed. */
static bool static_swap(struct member *m, struct static_old *old, struct request *rq, const struct join_group_request *in)
{
	struct group *group = m->group;
	struct bytes id = member_make_id(group->shard, in->group_instance_id);
	*old = (struct static_old){BYTES_NULL, m->offers, m->session_timeout_ms, m->rebalance_timeout_ms, m->slots};
	if (bytes_is_null(id) || !bytes_dup(&old->id, m->id))
		return false;
	struct offers *offers = offers_new(group, in->protocols, in->protocols_len);
	if (offers == NULL || !member_rename(m, id)) {
		if (offers != NULL)
			offers_free(offers);
		bytes_free(&old->id);
		return false;
	}
	offers_uncount(old->offers);
	m->offers = offers;
	m->slots = 0;
	member_set_timeouts(m, in->session_timeout_ms, join_rebalance_timeout(rq, in));
	return true;
}

static void static_restore(struct member *m, struct static_old *old)
{
	parts_forget(m->group, m->id, m->slots);
	m->slots = 0;
	bool renamed = member_rename(m, old->id);
	if (!renamed) /* no memory for the old name: the new one stays, its client rejoins */
		m->group->shard->stats->log_append_failed++;
	offers_recount(old->offers);
	member_set_offers(m, old->offers);
	member_set_timeouts(m, old->session_timeout_ms, old->rebalance_timeout_ms);
	if (renamed)
		m->slots = old->slots;
	else
		parts_forget(m->group, old->id, old->slots);
}

static void static_written(struct shard *shard, struct write *w, struct now now)
{
	struct member *m = w->who.member;
	struct request *rq = w->rq;
	if (rq == NULL)
		return;
	if (m->tag != w->who.tag) { /* replaced once more, or removed, meanwhile */
		bool replaced = m->tag != 0 && m->group == w->group;
		join_answer_error(rq, replaced ? ERROR_FENCED_INSTANCE_ID : ERROR_UNKNOWN_MEMBER_ID, BYTES_EMPTY, now);
		return;
	}
	if (w->group->generation != w->generation || w->group->state != GROUP_STABLE) { /* a rebalance began meanwhile: the generation is over */
		join_answer_error(rq, ERROR_REBALANCE_IN_PROGRESS, m->id, now);
		return;
	}
	/*
	 * A restarted leader does not know the assignment it made. From version 9 it can be told to keep it; older ones must believe that
	 * they follow, so they are told the id that the leader had.
	 */
	struct bytes leader = m->group->leader != NULL ? m->group->leader->id : BYTES_EMPTY;
	bool leads = m->group->leader == m;
	if (leads && rq->version < 9)
		leader = w->previous_leader;
	join_answer_as(m, rq, leader, leads && rq->version >= 9, now);
}

/* The client will not hear of the new id: the one before stays valid (KAFKA-10284), what else the request changed does no harm. */
static void static_unwritten(struct shard *shard, struct write *w, int16_t error, struct now now)
{
	struct member *m = w->who.member;
	if (m->tag == w->who.tag && !member_rename(m, w->previous_leader))
		shard->stats->log_append_failed++;
	if (w->rq != NULL)
		join_answer_error(w->rq, error, BYTES_EMPTY, now);
}

/* The new id stays: the client, told to try again, comes without an id and replaces it once more. */
static void static_late(struct shard *shard, struct write *w, int16_t error, struct now now)
{
	if (w->rq != NULL)
		join_answer_error(w->rq, error, BYTES_EMPTY, now);
}

static int16_t static_write(struct member *m, const struct static_old *old, struct request *rq, struct now now)
{
	struct group *group = m->group;
	int16_t error = 0;
	struct write *w = draft_one(m, old->id, old->slots, (size_t)old->id.len + 16, now);
	bool one = w != NULL;
	if (!one)
		w = group_write_new(group, NULL, (size_t)old->id.len + 16, &error, now);
	if (w == NULL)
		return error;
	uint8_t *leader = arena_alloc(&w->arena, (size_t)old->id.len, 1);
	CHECK(leader != NULL);
	memcpy(leader, old->id.p, (size_t)old->id.len);
	w->previous_leader = bytes_of(leader, (size_t)old->id.len);
	w->who = (struct member_memo){m, m->tag};
	w->done = static_written;
	w->failed = static_unwritten;
	w->late = static_late;
	error = write_submit(group->shard, w, now);
	if (error != 0)
		return error;
	write_park(w, rq);
	if (one)
		m->slots |= (uint8_t)(1u << group->parts->at.slot);
	else
		parts_forget(group, old->id, old->slots);
	return 0;
}

static void static_rebalance(struct member *m, struct static_old *old, struct request *rq, struct now now)
{
	struct group *group = m->group;
	struct request *join = member_unpark_join(m);
	struct request *sync = member_unpark_sync(m);
	m->is_new = m->unnamed = false;
	member_touch(m, now);
	if (group->state != GROUP_PREPARING)
		journal_open(group, JOURNAL_STATIC_REPLACED, m, now);
	member_park_join(m, rq, now);
	if (join != NULL)
		join_answer_error(join, ERROR_FENCED_INSTANCE_ID, old->id, now);
	if (sync != NULL)
		sync_answer_error(sync, ERROR_FENCED_INSTANCE_ID, now);
	if (group->state == GROUP_PREPARING)
		rebalance_try_complete(group, now);
	else
		rebalance_prepare(group, JOURNAL_STATIC_REPLACED, m, now);
}

void join_static(struct group *group, struct member *m, struct request *rq, const struct join_group_request *in, struct now now)
{
	struct static_old old;
	CHECK(group->state != GROUP_EMPTY && group->state != GROUP_DEAD);
	if (!static_swap(m, &old, rq, in)) {
		join_answer_error(rq, ERROR_COORDINATOR_NOT_AVAILABLE, BYTES_EMPTY, now);
		return;
	}
	if (group->state == GROUP_STABLE && bytes_equal(protocols_select(group), group->protocol)) {
		int16_t error = static_write(m, &old, rq, now);
		if (error != 0) {
			static_restore(m, &old);
			member_touch(m, now);
			join_answer_error(rq, error, BYTES_EMPTY, now);
		} else {
			struct request *sync = member_unpark_sync(m);
			removal_note_as(m, old.id, REMOVAL_REPLACED, m->id, now);
			offers_release(old.offers);
			member_touch(m, now);
			if (sync != NULL) /* its assignment was still to be told */
				sync_answer_error(sync, ERROR_FENCED_INSTANCE_ID, now);
		}
	} else {
		removal_note_as(m, old.id, REMOVAL_REPLACED, m->id, now);
		offers_release(old.offers);
		parts_forget(group, old.id, old.slots);
		static_rebalance(m, &old, rq, now);
	}
	bytes_free(&old.id);
}
