/*
 * sync.c - SyncGroup: the leader hands in the assignment, everybody fetches theirs (group-protocol 1.6).
 *
 * In CompletingRebalance a sync parks. The leader's one also appends the group with its assignments to the log; the state stays, and other
 * requests are served, until the record is durable. Then replay stores the assignments and makes the group Stable, and all parked syncs are
 * answered. If the group moved on meanwhile, they have been answered already and the record changes nothing.
 */
#include "coordinator/group/group.h"

void sync_answer_error(struct request *rq, int16_t error, struct now now)
{
	struct sync_group_response r;
	sync_group_response_init(&r);
	r.error_code = error;
	r.assignment = BYTES_EMPTY;
	request_answer(rq, &r, now);
}

void sync_answer(struct member *m, struct request *rq, struct now now)
{
	struct sync_group_response r;
	sync_group_response_init(&r);
	r.protocol_type = m->group->protocol_type;
	r.protocol_name = m->group->protocol;
	r.assignment = member_assignment(m);
	request_answer(rq, &r, now);
}

static void sync_failed(struct group *group, int16_t error, struct now now)
{
	rebalance_prepare_after(group, JOURNAL_WRITE_FAILED, group->leader, error, now);
}

static void sync_written(struct shard *shard, struct write *w, struct now now)
{
	struct group *group = w->group;
	if (group->generation != w->generation)
		return;
	if (group->state == GROUP_COMPLETING && group->assignment_written) { /* durable, but replay had no memory for it */
		sync_failed(group, ERROR_UNKNOWN_SERVER_ERROR, now);
		return;
	}
	if (group->state != GROUP_STABLE)
		return;
	struct journal_line line;
	if (journal_line(&line, group, "assignment-stored")) {
		journal_put_number(&line, "members", group->members_len);
		journal_put_number(&line, "bytes", (int64_t)writer_len(&w->bytes));
		journal_tell(group, &line);
	}
	slice_start(group, now);
}

/* The log broke or is late: all join again, and the record, should it become durable yet, is of a generation that is over. */
static void sync_unwritten(struct shard *shard, struct write *w, int16_t error, struct now now)
{
	struct group *group = w->group;
	if (group->generation == w->generation && group->state == GROUP_COMPLETING && group->assignment_written)
		sync_failed(group, error, now);
}

static void sync_submit(struct group *group, struct write *w, int16_t error, struct now now)
{
	if (w != NULL) {
		w->done = sync_written;
		w->failed = w->late = sync_unwritten;
		error = write_submit(group->shard, w, now);
	}
	if (error != 0)
		sync_failed(group, error, now);
}

void sync_drafted(struct group *group, int16_t error, struct now now)
{
	struct draft *draft = group->draft;
	group->draft = NULL;
	struct write *w = error != 0 ? NULL : draft_finish(draft, 0, now);
	if (w == NULL && error == 0)
		error = ERROR_COORDINATOR_NOT_AVAILABLE;
	draft_free(draft);
	sync_submit(group, w, error, now);
}

/* The leader's assignment is on its way from here on. */
static void sync_write(struct group *group, const struct sync_group_request *in, struct now now)
{
	group->assignment_written = true;
	group->draft = draft_new(group, now);
	if (group->draft == NULL || !draft_assign(group->draft, in))
		sync_failed(group, ERROR_COORDINATOR_NOT_AVAILABLE, now);
	else
		slice_start(group, now);
}

static bool sync_differs(struct bytes asked, struct bytes have)
{
	return !bytes_is_null(asked) && !bytes_is_null(have) && !bytes_equal(asked, have);
}

static int16_t sync_check(struct shard *shard, const struct request *rq, const struct sync_group_request *in, struct member **out)
{
	if (rq->version >= 5 && (bytes_is_null(in->protocol_type) || bytes_is_null(in->protocol_name)))
		return ERROR_INCONSISTENT_GROUP_PROTOCOL;
	if (bytes_is_empty(in->group_id))
		return ERROR_INVALID_GROUP_ID;
	if (shard->loading) /* the Java client takes 14 for fatal here */
		return ERROR_REBALANCE_IN_PROGRESS;
	struct group *group = group_find(shard, in->group_id);
	if (group == NULL || group->state == GROUP_EMPTY)
		return ERROR_UNKNOWN_MEMBER_ID;
	if (group->state == GROUP_DEAD)
		return ERROR_COORDINATOR_NOT_AVAILABLE;
	int16_t error = group_validate(group, in->member_id, in->group_instance_id, out);
	if (error != 0)
		return error;
	if (in->generation_id != group->generation)
		return ERROR_ILLEGAL_GENERATION;
	if (sync_differs(in->protocol_type, group->protocol_type) || sync_differs(in->protocol_name, group->protocol))
		return ERROR_INCONSISTENT_GROUP_PROTOCOL;
	if (group->state == GROUP_PREPARING || (group->state == GROUP_COMPLETING && rq->eof))
		return ERROR_REBALANCE_IN_PROGRESS;
	return 0;
}

void shard_sync_group(struct shard *shard, struct request *rq, const struct sync_group_request *in, struct now now)
{
	struct member *m;
	int16_t error = sync_check(shard, rq, in, &m);
	if (!shard->loading)
		shard->stats->group_syncs++;
	if (error != 0) {
		sync_answer_error(rq, error, now);
		return;
	}
	struct group *group = m->group;
	slice_hurry(m, now);
	member_set_synced(m);
	if (group->state == GROUP_STABLE) {
		sync_answer(m, rq, now);
	} else {
		member_park_sync(m, rq, now);
		if (group->leader == m && !group->assignment_written)
			sync_write(group, in, now);
	}
	if (group->unsynced == 0)
		purgatory_check(&group->watch, now);
}
