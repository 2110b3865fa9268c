/*
 * leave_group.c - LeaveGroup: to the group's shard.
 */
#include "coordinator/api/api.h"

bool api_leave_group(const struct api_call *call)
{
	const struct leave_group_request *in = call->in;
	shard_leave_group(node_shard(call->node, in->group_id), call->rq, in, call->now);
	return true;
}
