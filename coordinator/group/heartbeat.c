/*
 * heartbeat.c - Heartbeat: the hot path of the engine (group-protocol 1.7).
 *
 * A connection's memo points to the member that it last heartbeat for. When tag, group id, member id and instance id still agree, no table is
 * asked. The sign of life is one store (a lazy deadline). Nothing is allocated and nothing is logged.
 */
#include "coordinator/group/checks.h"

static struct member *heartbeat_memo(const struct member_memo *memo, const struct heartbeat_request *in)
{
	struct member *m = memo == NULL ? NULL : memo->member;
	if (m == NULL || m->tag != memo->tag)
		return NULL;
	if (!bytes_equal(m->id, in->member_id) || !bytes_equal(m->group->id, in->group_id))
		return NULL;
	return likely(bytes_is_null(in->group_instance_id)) || bytes_equal(m->instance_id, in->group_instance_id) ? m : NULL;
}

/* ---- checks: the first HEARTBEAT_FIND find the member, what is behind them is heartbeat_take ---- */

#define HEARTBEAT_FIND 5

static int16_t heartbeat_loaded(struct check_call *c)
{
	return c->shard->loading ? CHECKS_ENOUGH : 0;
}

static int16_t heartbeat_joined(struct check_call *c)
{
	return c->group->state == GROUP_PREPARING ? ERROR_REBALANCE_IN_PROGRESS : 0;
}

static const struct check heartbeat_order[] = {
	{"group id is given", "1.1", check_group_id},
	{"shard is loaded", "1.1: 0, so that nobody gives up during a failover", heartbeat_loaded},
	{"group is known", "1.7 row 2", check_group_known},
	{"shard is served here", "1.7 row 3", check_served},
	{"member is known and not fenced", "1.7 row 4, KIP-345; before the generation, or who is gone would not learn it", check_member},
	{"generation is the group's", "1.7 row 5", check_generation},
	{"no join phase is open", "1.7 row 7; in CompletingRebalance 0 (KAFKA-10134)", heartbeat_joined},
};
const struct checks heartbeat_checks = {"Heartbeat", heartbeat_order, ARRAY_LEN(heartbeat_order)};

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

int shard_heartbeat_known(const struct member_memo *memo, const struct heartbeat_request *in, struct now now)
{
	struct member *m = heartbeat_memo(memo, in);
	if (unlikely(m == NULL))
		return SHARD_MEMBER_UNKNOWN;
	struct stats *stats = m->group->shard->stats;
	stats->group_heartbeats++;
	stats->group_heartbeats_memo++;
	return heartbeat_take(m, in->generation_id, now);
}

bool shard_heartbeat_memo(struct request *rq, const struct heartbeat_request *in, struct now now)
{
	int error = shard_heartbeat_known(rq->memo, in, now);
	if (unlikely(error == SHARD_MEMBER_UNKNOWN))
		return false;
	struct heartbeat_response r = {.error_code = (int16_t)error};
	request_answer(rq, &r, now);
	return true;
}

void shard_heartbeat(struct shard *shard, struct request *rq, const struct heartbeat_request *in, struct now now)
{
	if (shard_heartbeat_memo(rq, in, now))
		return;
	if (unlikely(shard->loading)) {
		heartbeat_blind(rq, in, now);
		return;
	}
	struct check_call call = {shard, rq, in, in->group_id, in->member_id, in->group_instance_id, in->generation_id, now};
	struct heartbeat_response r = {.error_code = checks_run(&heartbeat_checks, HEARTBEAT_FIND, &call)};
	shard->stats->group_heartbeats++;
	if (likely(r.error_code == 0)) {
		if (rq->memo != NULL)
			*rq->memo = (struct member_memo){call.member, call.member->tag};
		r.error_code = heartbeat_take(call.member, in->generation_id, now);
	}
	request_answer(rq, &r, now);
}
