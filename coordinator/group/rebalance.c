/*
 * rebalance.c - the join phase: how it begins, when it is complete, and what it leaves behind.
 *
 * One delayed operation per group, of one of three kinds:
 *   initial join   the group was Empty: waits out the initial delay whatever happens, once more for every delay in which somebody joined,
 *                  never longer than the largest rebalance timeout;
 *   join           complete when every member has a parked JoinGroup and no handed-out id is missing, else at the largest rebalance timeout.
 *   join window    everybody has joined, but members came or went shortly before: waits for further ones (group.join.window.ms), so that a rolling
 *                  deploy is not one rebalance per member; never longer than group.join.window.max.ms or the join phase itself.
 * A second one, sync, removes members that got their generation but never asked for their assignment.
 *
 * Completing: members that did not rejoin are removed, except static ones, which keep their place and their last subscription; the generation is
 * counted up; the parked joins are answered. Removing and answering are done in slices (slice.c): in between, the group is still joining, and
 * whoever joins before its turn to be removed has come is in; then the generation is formed at one instant, also for those whose answers come later.
 */
#include "coordinator/group/group.h"

/* A join phase that found nobody is not repeated faster than this, whatever timeouts the members asked for. */
#define REBALANCE_AGAIN_MS 1000

static bool rebalance_all_joined(const struct group *group)
{
	return group->waiting == group->members_len && group->pending_len == 0;
}

/* ---- completing the join phase ---- */

static const struct purgatory_kind rebalance_join, rebalance_initial, rebalance_window, rebalance_sync;

static void rebalance_arm(struct group *group, const struct purgatory_kind *kind, int64_t ms, struct now now)
{
	struct purgatory_op *op = kind == &rebalance_sync ? &group->sync : &group->join;
	purgatory_start(&group->shard->purgatory, op, kind, &group->watch, deadline_after(now, ms), now);
}

/* The leader must be one that gets an answer now. */
static void rebalance_elect(struct group *group)
{
	if (group->leader != NULL && group->leader->join != NULL)
		return;
	for (uint32_t i = 0; i < group->members_len; i++) {
		if (group->members[i]->join != NULL) {
			group->leader = group->members[i];
			return;
		}
	}
}

int32_t rebalance_next(int32_t generation)
{
	return generation < 0 || generation == INT32_MAX ? 1 : generation + 1;
}

static void rebalance_finish_empty(struct group *group, struct now now)
{
	group->generation = rebalance_next(group->generation);
	group->leader = NULL;
	group_set_protocol(group, BYTES_NULL);
	group_subscribe(group);
	group_transition(group, GROUP_EMPTY, now);
	journal_close(group, now);
	group_write_empty(group, now);
}

static void rebalance_complete(struct group *group, struct now now)
{
	CHECK(group->state == GROUP_PREPARING && !group->closing);
	group->closing = true;
	group->closings++;
	slice_start(group, now);
}

void rebalance_form(struct group *group, struct now now)
{
	CHECK(group->state == GROUP_PREPARING && group->syncing == 0);
	if (group->members_len == 0) {
		rebalance_finish_empty(group, now);
		return;
	}
	if (group->waiting == 0) { /* only absent static members: their sessions will end it */
		int64_t timeout = group_rebalance_timeout(group);
		journal_forget_late(group);
		rebalance_arm(group, &rebalance_join, timeout > REBALANCE_AGAIN_MS ? timeout : REBALANCE_AGAIN_MS, now);
		return;
	}
	rebalance_elect(group);
	group_set_protocol(group, protocols_select(group));
	subscription_clear(&group->subscription);
	group->generation = rebalance_next(group->generation);
	group_transition(group, GROUP_COMPLETING, now);
	group->shard->stats->group_rebalances++;
	journal_close(group, now);
	group->sync_number++;
	group->sync_open = true;
	group->unsynced = group->members_len;
	group->answering = true;
	rebalance_arm(group, &rebalance_sync, group_rebalance_timeout(group), now);
	slice_start(group, now);
}

/* ---- the delayed operations ---- */

static struct group *rebalance_group_of_join(struct purgatory_op *op)
{
	return CONTAINER_OF(op, struct group, join);
}

static bool rebalance_join_try(struct purgatory_op *op)
{
	return rebalance_all_joined(rebalance_group_of_join(op));
}

/* Whether the join phase that would end now, and must end by `deadline`, waits in its window for further members. */
static bool rebalance_waits(struct group *group, uint64_t deadline, struct now now)
{
	int64_t window_ms = group->settings->group_join_window_ms;
	if (window_ms <= 0 || group->changed_us == 0)
		return false;
	uint64_t until = group->changed_us + (uint64_t)window_ms * US_PER_MS;
	until = until < group->window_end_us ? until : group->window_end_us;
	until = until < deadline ? until : deadline;
	if (until <= now.us)
		return false;
	group->join_end_us = deadline;
	purgatory_start(&group->shard->purgatory, &group->join, &rebalance_window, &group->watch, until, now);
	return true;
}

static void rebalance_join_complete(struct purgatory_op *op, struct now now)
{
	struct group *group = rebalance_group_of_join(op);
	if (now.us >= op->deadline || !rebalance_waits(group, op->deadline, now))
		rebalance_complete(group, now);
}

/* Who left the window's group incomplete (a lost connection, an id just handed out) is waited for as in any join phase. */
static void rebalance_window_complete(struct purgatory_op *op, struct now now)
{
	struct group *group = rebalance_group_of_join(op);
	if (!rebalance_all_joined(group) && group->join_end_us > now.us)
		purgatory_start(&group->shard->purgatory, op, &rebalance_join, &group->watch, group->join_end_us, now);
	else if (!rebalance_waits(group, group->join_end_us, now))
		rebalance_complete(group, now);
}

static void rebalance_initial_complete(struct purgatory_op *op, struct now now)
{
	struct group *group = rebalance_group_of_join(op);
	if (!group->new_member_added || group->initial_left_ms == 0) {
		rebalance_complete(group, now);
		return;
	}
	uint64_t delay = group->initial_delay_ms, left = group->initial_left_ms;
	group->new_member_added = false;
	group->initial_left_ms = left > delay ? left - delay : 0;
	rebalance_arm(group, &rebalance_initial, (int64_t)(delay < left ? delay : left), now);
}

static bool rebalance_sync_try(struct purgatory_op *op)
{
	return CONTAINER_OF(op, struct group, sync)->unsynced == 0;
}

/* A member of version 0 has a session as long as its rebalance timeout; whose session ends now goes alone, and the others may rejoin. */
static bool rebalance_session_due(const struct group *group, struct now now)
{
	for (uint32_t i = 0; i < group->members_len; i++) {
		const struct member *m = group->members[i];
		if (m->join == NULL && m->sync == NULL && m->session.deadline <= now.us)
			return true;
	}
	return false;
}

static void rebalance_sync_expired(struct purgatory_op *op, struct now now)
{
	struct group *group = CONTAINER_OF(op, struct group, sync);
	CHECK(group->state == GROUP_COMPLETING || group->state == GROUP_STABLE);
	if (rebalance_session_due(group, now)) {
		rebalance_arm(group, &rebalance_sync, 1, now);
		return;
	}
	group->expelling = true;
	group->expelled = 0;
	slice_start(group, now);
}

/* Whoever synced while the others were being removed has stayed. */
void rebalance_expelled(struct group *group, struct now now)
{
	if (group->expelled > 0)
		rebalance_prepare(group, JOURNAL_SYNC_TIMEOUT, NULL, now);
}

static const struct purgatory_kind rebalance_join = {"join", rebalance_join_try, rebalance_join_complete, NULL, true};
static const struct purgatory_kind rebalance_initial = {"initial join", NULL, rebalance_initial_complete, NULL};
static const struct purgatory_kind rebalance_window = {"join window", NULL, rebalance_window_complete, NULL};
static const struct purgatory_kind rebalance_sync = {"sync", rebalance_sync_try, NULL, rebalance_sync_expired, true};

/* ---- beginning and re-checking ---- */

void rebalance_prepare_after(struct group *group, enum journal_cause cause, const struct member *who, int16_t error, struct now now)
{
	CHECK(group->state == GROUP_EMPTY || group->state == GROUP_STABLE || group->state == GROUP_COMPLETING);
	journal_open(group, cause, who, now);
	if (who != NULL && who->join != NULL)
		group->journal.last_tag = who->tag;
	journal_started(group);
	slice_forget(group);
	if (group->state == GROUP_COMPLETING)
		group->assigned += 2; /* also those void that a merge has begun to store */
	group->abort_error = error;
	group->sync_open = false;
	group->unsynced = 0;
	purgatory_cancel(&group->sync);

	bool initial = group->state == GROUP_EMPTY;
	group_transition(group, GROUP_PREPARING, now);
	int64_t timeout = group_rebalance_timeout(group);
	if (!initial && group->members_len == 0) { /* handed-out ids are not waited for when there is nobody whose time could run out */
		rebalance_complete(group, now);
		return;
	}
	group->changed_us = journal_cause_is_change(cause) ? now.us : 0;
	group->window_end_us = deadline_after(now, group->settings->group_join_window_max_ms);
	if (!initial) {
		slice_start(group, now);
		rebalance_arm(group, &rebalance_join, timeout, now);
		return;
	}
	int64_t delay = group->settings->group_initial_rebalance_delay_ms;
	group->new_member_added = false;
	group->initial_delay_ms = (uint64_t)(delay > 0 ? delay : 0);
	group->initial_left_ms = timeout > delay ? (uint64_t)(timeout - delay) : 0;
	rebalance_arm(group, &rebalance_initial, delay, now);
}

void rebalance_prepare(struct group *group, enum journal_cause cause, const struct member *who, struct now now)
{
	rebalance_prepare_after(group, cause, who, ERROR_REBALANCE_IN_PROGRESS, now);
}

void rebalance_try_complete(struct group *group, struct now now)
{
	purgatory_check(&group->watch, now);
}

void rebalance_changed(struct group *group, struct now now)
{
	if (group->state != GROUP_PREPARING)
		return;
	group->changed_us = now.us;
	group->shard->stats->group_rebalances_avoided += purgatory_waiting(&group->join) && group->join.kind != &rebalance_join;
}

void rebalance_after_expiry(struct group *group, struct now now)
{
	if (group->state != GROUP_PREPARING || group->closing || group->join.kind == &rebalance_window || !rebalance_all_joined(group))
		return;
	purgatory_cancel(&group->join);
	rebalance_complete(group, now);
}

void rebalance_after_removal(struct group *group, enum journal_cause cause, struct now now)
{
	if (group->state == GROUP_STABLE || group->state == GROUP_COMPLETING) {
		rebalance_prepare(group, cause, NULL, now);
	} else {
		rebalance_changed(group, now);
		rebalance_try_complete(group, now);
	}
}
