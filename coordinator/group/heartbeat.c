/*
 * heartbeat.c - Heartbeat: the hot path of the engine (group-protocol 1.7).
 *
 * A connection's memo points to the member that it last heartbeat for. When tag, group id, member id and instance id still agree, no table is
 * asked. The sign of life is one store (a lazy deadline). Nothing is allocated and nothing is logged.
 */
#include "coordinator/group/group.h"

static struct member *heartbeat_memo(const struct member_memo *memo, const struct heartbeat_request *in)
{
	struct member *m = memo == NULL ? NULL : memo->member;
	if (m == NULL || m->tag != memo->tag)
		return NULL;
	if (!bytes_equal(m->id, in->member_id) || !bytes_equal(m->group->id, in->group_id))
		return NULL;
	return likely(bytes_is_null(in->group_instance_id)) || bytes_equal(m->instance_id, in->group_instance_id) ? m : NULL;
}

static int16_t heartbeat_find(struct shard *shard, const struct heartbeat_request *in, struct member **out)
{
	if (bytes_is_empty(in->group_id))
		return ERROR_INVALID_GROUP_ID;
	struct group *group = group_find(shard, in->group_id);
	if (group == NULL)
		return ERROR_UNKNOWN_MEMBER_ID;
	if (group->state == GROUP_DEAD)
		return ERROR_COORDINATOR_NOT_AVAILABLE;
	return group_validate(group, in->member_id, in->group_instance_id, out);
}

static int16_t heartbeat_take(struct member *m, int32_t generation, struct now now)
{
	const struct group *group = m->group;
	if (unlikely(group->state == GROUP_DEAD))
		return ERROR_COORDINATOR_NOT_AVAILABLE;
	if (unlikely(generation != group->generation))
		return ERROR_ILLEGAL_GENERATION;
	member_touch(m, now);
	return group->state == GROUP_PREPARING ? ERROR_REBALANCE_IN_PROGRESS : 0;
}

/* Nobody knows yet who is a member: nobody is told to give up. */
static void heartbeat_blind(struct request *rq, const struct heartbeat_request *in, struct now now)
{
	struct heartbeat_response r = {.error_code = bytes_is_empty(in->group_id) ? ERROR_INVALID_GROUP_ID : ERROR_NONE};
	request_answer(rq, &r, now);
}

bool shard_heartbeat_memo(struct request *rq, const struct heartbeat_request *in, struct now now)
{
	struct member *m = heartbeat_memo(rq->memo, in);
	if (unlikely(m == NULL))
		return false;
	struct stats *stats = m->group->shard->stats;
	struct heartbeat_response r = {.error_code = heartbeat_take(m, in->generation_id, now)};
	stats->group_heartbeats++;
	stats->group_heartbeats_memo++;
	request_answer(rq, &r, now);
	return true;
}

void shard_heartbeat(struct shard *shard, struct request *rq, const struct heartbeat_request *in, struct now now)
{
	struct member *m;
	if (shard_heartbeat_memo(rq, in, now))
		return;
	if (unlikely(shard->loading)) {
		heartbeat_blind(rq, in, now);
		return;
	}
	struct heartbeat_response r = {.error_code = heartbeat_find(shard, in, &m)};
	shard->stats->group_heartbeats++;
	if (likely(r.error_code == 0)) {
		if (rq->memo != NULL)
			*rq->memo = (struct member_memo){m, m->tag};
		r.error_code = heartbeat_take(m, in->generation_id, now);
	}
	request_answer(rq, &r, now);
}
