/*
 * leave_group.c - LeaveGroup: to the group's shard.
 */
#include "coordinator/api/api.h"

bool api_leave_group(const struct api_call *call)
{
	const struct leave_group_request *in = call->in;
	struct shard *shard = api_shard(call, in->group_id);
	if (shard != NULL)
		shard_leave_group(shard, call->rq, in, call->now);
	return true;
}
