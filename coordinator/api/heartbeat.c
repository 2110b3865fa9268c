/*
 * heartbeat.c - Heartbeat: to the group's shard, which answers at once.
 */
#include "coordinator/api/api.h"

bool api_heartbeat(const struct api_call *call)
{
	const struct heartbeat_request *in = call->in;
	shard_heartbeat(node_shard_quiet(call->node, in->group_id), call->rq, in, call->now);
	return true;
}
