/*
 * heartbeat.c - Heartbeat: to the member that the connection's last one was for, or else through the group's shard; answered at once.
 */
#include "coordinator/api/api.h"

bool api_heartbeat(const struct api_call *call)
{
	const struct heartbeat_request *in = call->in;
	if (likely(shard_heartbeat_memo(call->rq, in, call->now)))
		return true;
	struct shard *shard = api_shard_quiet(call, in->group_id);
	if (likely(shard != NULL))
		shard_heartbeat(shard, call->rq, in, call->now);
	return true;
}
