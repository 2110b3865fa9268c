/*
 * leave.c - LeaveGroup: one member (versions 0 to 2) or several (group-protocol 1.8), by member id or by instance id.
 */
#include "coordinator/group/checks.h"

struct leave {
	struct group *group;
	uint32_t removed; /* members */
	bool pending;	  /* a handed-out id was dropped */
};

/* ---- checks of the request, and of each member that it names ---- */

static int16_t leave_served(struct check_call *c)
{
	c->group = group_find(c->shard, c->group_id); /* an unknown group is the members' error */
	return c->group != NULL ? check_served(c) : 0;
}

static const struct check leave_order[] = {
	{"group id is given", "1.1", check_group_id},
	{"shard is loaded", "1.1", check_loaded},
	{"shard is served here", "1.8 row 3", leave_served},
};
const struct checks leave_checks = {"LeaveGroup", leave_order, ARRAY_LEN(leave_order)};

static int16_t leave_known(struct check_call *c)
{
	return c->group == NULL ? ERROR_UNKNOWN_MEMBER_ID : 0;
}

/* An administrator names static members by their instance id alone. */
static int16_t leave_instance(struct check_call *c)
{
	if (!bytes_is_empty(c->member_id))
		return 0;
	c->member = bytes_is_null(c->instance_id) ? NULL : member_find_instance(c->group, c->instance_id);
	return c->member == NULL ? ERROR_UNKNOWN_MEMBER_ID : CHECKS_ENOUGH;
}

static int16_t leave_handed_out(struct check_call *c)
{
	return pending_find(c->group, c->member_id) != NULL ? CHECKS_ENOUGH : 0;
}

static const struct check leave_member_order[] = {
	{"group is known", "1.8 row 2", leave_known},
	{"instance id alone is a member's", "1.8 rows a and b, KIP-345", leave_instance},
	{"id was handed out", "1.8 row c, KIP-394", leave_handed_out},
	{"member is known and not fenced", "1.8 row d, KIP-345", check_member},
};
const struct checks leave_member_checks = {"LeaveGroup, one member", leave_member_order, ARRAY_LEN(leave_member_order)};

static int16_t leave_one(struct leave *leave, const struct check_call *request, const struct leave_group_request_member *who, struct now now)
{
	struct check_call call = *request;
	struct group *group = call.group;
	call.member_id = who->member_id;
	call.instance_id = who->group_instance_id;
	int16_t error = checks_run(&leave_member_checks, leave_member_checks.len, &call);
	if (error != 0)
		return error;
	struct member *m = call.member;
	if (m == NULL) { /* an id that was handed out */
		removal_note_id(group, who->member_id, REMOVAL_ID_LEFT, now);
		pending_remove(pending_find(group, who->member_id));
		leave->pending = true;
		return 0;
	}
	group->shard->stats->group_leaves++;
	removal_note(m, REMOVAL_LEFT, who->reason, now);
	journal_open(group, JOURNAL_MEMBER_LEFT, m, now);
	member_remove(m, ERROR_UNKNOWN_MEMBER_ID, now);
	leave->removed++;
	return 0;
}

/* Top-level error, or 0 with the members' results in `out`, which has room for all. */
static int16_t leave_all(struct shard *shard, struct request *rq, struct leave *leave, struct bytes group_id,
			 const struct leave_group_request_member *list, struct leave_group_response_member *out, int32_t n, struct now now)
{
	struct check_call call = {.shard = shard, .rq = rq, .group_id = group_id, .now = now};
	int16_t error = checks_run(&leave_checks, leave_checks.len, &call);
	if (error != 0)
		return error;
	leave->group = call.group;
	for (int32_t i = 0; i < n; i++)
		out[i] = (struct leave_group_response_member){list[i].member_id, list[i].group_instance_id, leave_one(leave, &call, &list[i], now)};
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
	r.error_code = out == NULL ? (int16_t)ERROR_COORDINATOR_NOT_AVAILABLE : leave_all(shard, rq, &leave, in->group_id, list, out, n, now);
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
