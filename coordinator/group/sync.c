/*
 * sync.c - SyncGroup: the leader hands in the assignment, everybody fetches theirs (group-protocol 1.6).
 *
 * In CompletingRebalance a sync parks. The leader's one also appends the group with its assignments to the log; the state stays, and other
 * requests are served, until the record is durable. Then replay stores the assignments and makes the group Stable, and all parked syncs are
 * answered. If the group moved on meanwhile, they have been answered already and the record changes nothing.
 */
#include "coordinator/group/checks.h"

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

/* ---- checks ---- */

static int16_t sync_named(struct check_call *c)
{
	const struct sync_group_request *in = c->in;
	bool missing = bytes_is_null(in->protocol_type) || bytes_is_null(in->protocol_name);
	return c->rq->version >= 5 && missing ? ERROR_INCONSISTENT_GROUP_PROTOCOL : 0;
}

static int16_t sync_loaded(struct check_call *c)
{
	return c->shard->loading ? ERROR_REBALANCE_IN_PROGRESS : 0;
}

static int16_t sync_members(struct check_call *c)
{
	return c->group->state == GROUP_EMPTY ? ERROR_UNKNOWN_MEMBER_ID : 0;
}

static int16_t sync_protocol(struct check_call *c)
{
	const struct sync_group_request *in = c->in;
	bool differs = sync_differs(in->protocol_type, c->group->protocol_type) || sync_differs(in->protocol_name, c->group->protocol);
	return differs ? ERROR_INCONSISTENT_GROUP_PROTOCOL : 0;
}

static int16_t sync_joined(struct check_call *c)
{
	bool over = c->group->state == GROUP_PREPARING || (c->group->state == GROUP_COMPLETING && c->rq->eof);
	return over ? ERROR_REBALANCE_IN_PROGRESS : 0;
}

static const struct check sync_order[] = {
	{"protocol is named from version 5 on", "KIP-559; before all others in Kafka's request handler", sync_named},
	{"group id is given", "1.1", check_group_id},
	{"shard is loaded", "1.1: 27, because the Java client takes 14 for fatal here", sync_loaded},
	{"group is known", "1.6 row 2", check_group_known},
	{"group has members", "1.6 row 3", sync_members},
	{"shard is served here", "1.6 row 5", check_served},
	{"member is known and not fenced", "1.6 row 6, KIP-345", check_member},
	{"generation is the group's", "1.6 row 7", check_generation},
	{"protocol is the group's", "1.6 row 8, KIP-559", sync_protocol},
	{"join phase is over", "1.6 row 9", sync_joined},
};
const struct checks sync_checks = {"SyncGroup", sync_order, ARRAY_LEN(sync_order)};

void shard_sync_group(struct shard *shard, struct request *rq, const struct sync_group_request *in, struct now now)
{
	struct check_call call = {shard, rq, in, in->group_id, in->member_id, in->group_instance_id, in->generation_id, now};
	int16_t error = checks_run(&sync_checks, sync_checks.len, &call);
	if (!shard->loading)
		shard->stats->group_syncs++;
	if (error != 0) {
		sync_answer_error(rq, error, now);
		return;
	}
	struct member *m = call.member;
	struct group *group = call.group;
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
