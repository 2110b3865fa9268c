/*
 * join_group.c - JoinGroup: to the group's shard, which answers when the rebalance has gathered its members.
 */
#include "coordinator/api/api.h"

bool api_join_group(const struct api_call *call)
{
	const struct join_group_request *in = call->in;
	struct shard *shard = api_shard(call, in->group_id);
	if (shard != NULL)
		shard_join_group(shard, call->rq, in, call->now);
	return true;
}
