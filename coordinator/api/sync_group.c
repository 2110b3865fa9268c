/*
 * sync_group.c - SyncGroup: to the group's shard, which answers when the leader's assignment is durable.
 */
#include "coordinator/api/api.h"

bool api_sync_group(const struct api_call *call)
{
	const struct sync_group_request *in = call->in;
	struct shard *shard = api_shard(call, in->group_id);
	if (shard != NULL)
		shard_sync_group(shard, call->rq, in, call->now);
	return true;
}
