/*
 * heartbeat.c - Heartbeat: to the member that the connection's last one was for, or else through the group's shard; answered at once.
 */
#include "coordinator/api/api.h"

bool api_heartbeat(const struct api_call *call)
{
	const struct heartbeat_request *in = call->in;
	if (likely(shard_heartbeat_memo(call->rq, in, call->now)))
		return true;
	shard_heartbeat(node_shard_quiet(call->node, in->group_id), call->rq, in, call->now);
	return true;
}
