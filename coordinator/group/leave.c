/*
 * leave.c - LeaveGroup: one member (versions 0 to 2) or several (group-protocol 1.8), by member id or by instance id.
 */
#include "coordinator/group/group.h"

struct leave {
	struct group *group;
	uint32_t removed; /* members */
	bool pending;	  /* a handed-out id was dropped */
};

static int16_t leave_one(struct leave *leave, const struct leave_group_request_member *who, struct now now)
{
	struct group *group = leave->group;
	struct member *m = NULL;
	if (bytes_is_empty(who->member_id)) {
		if (!bytes_is_null(who->group_instance_id))
			m = member_find_instance(group, who->group_instance_id);
		if (m == NULL)
			return ERROR_UNKNOWN_MEMBER_ID;
	} else {
		struct pending *p = pending_find(group, who->member_id);
		if (p != NULL) {
			removal_note_id(group, p->id, REMOVAL_ID_LEFT, now);
			pending_remove(p);
			leave->pending = true;
			return 0;
		}
		int16_t error = group_validate(group, who->member_id, who->group_instance_id, &m);
		if (error != 0)
			return error;
	}
	group->shard->stats->group_leaves++;
	removal_note(m, REMOVAL_LEFT, who->reason, now);
	journal_open(group, JOURNAL_MEMBER_LEFT, m, now);
	member_remove(m, ERROR_UNKNOWN_MEMBER_ID, now);
	leave->removed++;
	return 0;
}

/* Top-level error, or 0 with the members' results in `out`, which has room for all. */
static int16_t leave_all(struct shard *shard, struct leave *leave, struct bytes group_id, const struct leave_group_request_member *list,
			 struct leave_group_response_member *out, int32_t n, struct now now)
{
	if (bytes_is_empty(group_id))
		return ERROR_INVALID_GROUP_ID;
	if (shard->loading)
		return ERROR_COORDINATOR_LOAD_IN_PROGRESS;
	leave->group = group_find(shard, group_id);
	if (leave->group != NULL && leave->group->state == GROUP_DEAD)
		return ERROR_COORDINATOR_NOT_AVAILABLE;
	for (int32_t i = 0; i < n; i++) {
		int16_t error = leave->group == NULL ? ERROR_UNKNOWN_MEMBER_ID : leave_one(leave, &list[i], now);
		out[i] = (struct leave_group_response_member){list[i].member_id, list[i].group_instance_id, error};
	}
	return 0;
}

void shard_leave_group(struct shard *shard, struct request *rq, const struct leave_group_request *in, struct now now)
{
	struct leave leave = {NULL, 0, false};
	struct leave_group_request_member single = {in->member_id, BYTES_NULL, BYTES_NULL};
	bool one = rq->version <= 2;
	const struct leave_group_request_member *list = one ? &single : in->members;
	int32_t n = one ? 1 : in->members_len > 0 ? in->members_len : 0;
	struct leave_group_response_member *out = malloc((size_t)n * sizeof(*out) + 1);
	struct leave_group_response r;

	leave_group_response_init(&r);
	r.error_code = out == NULL ? (int16_t)ERROR_COORDINATOR_NOT_AVAILABLE : leave_all(shard, &leave, in->group_id, list, out, n, now);
	if (r.error_code == 0 && one)
		r.error_code = out[0].error_code;
	else if (r.error_code == 0) {
		r.members = out;
		r.members_len = n;
	}
	request_answer(rq, &r, now);
	free(out);
	if (leave.removed > 0)
		rebalance_after_removal(leave.group, JOURNAL_MEMBER_LEFT, now);
	else if (leave.pending)
		rebalance_try_complete(leave.group, now);
}
