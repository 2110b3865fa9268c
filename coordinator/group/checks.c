/*
 * checks.c - the checks that several APIs have; see checks.h.
 */
#include "coordinator/group/checks.h"

int16_t check_group_id(struct check_call *c)
{
	return bytes_is_empty(c->group_id) ? ERROR_INVALID_GROUP_ID : 0;
}

int16_t check_loaded(struct check_call *c)
{
	return c->shard->loading ? ERROR_COORDINATOR_LOAD_IN_PROGRESS : 0;
}

int16_t check_group_known(struct check_call *c)
{
	c->group = group_find(c->shard, c->group_id);
	return c->group == NULL ? ERROR_UNKNOWN_MEMBER_ID : 0;
}

int16_t check_served(struct check_call *c)
{
	return c->group->state == GROUP_DEAD ? ERROR_COORDINATOR_NOT_AVAILABLE : 0;
}

int16_t check_member(struct check_call *c)
{
	return group_validate(c->group, c->member_id, c->instance_id, &c->member);
}

int16_t check_generation(struct check_call *c)
{
	return c->generation != c->group->generation ? ERROR_ILLEGAL_GENERATION : 0;
}
