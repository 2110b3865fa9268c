/*
 * sync_group.c - SyncGroup: to the group's shard, which answers when the leader's assignment is durable.
 */
#include "coordinator/api/api.h"

bool api_sync_group(const struct api_call *call)
{
	const struct sync_group_request *in = call->in;
	shard_sync_group(node_shard(call->node, in->group_id), call->rq, in, call->now);
	return true;
}
