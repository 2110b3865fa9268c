/*
 * state.c - the states of a group and the only function that changes them.
 *
 *     Empty --> PreparingRebalance <--> CompletingRebalance --> Stable --> PreparingRebalance;  any --> Dead
 */
#include "coordinator/group/group.h"

static const char *const group_state_names[GROUP_STATES] = {
	[GROUP_EMPTY] = "Empty",
	[GROUP_PREPARING] = "PreparingRebalance",
	[GROUP_COMPLETING] = "CompletingRebalance",
	[GROUP_STABLE] = "Stable",
	[GROUP_DEAD] = "Dead",
};

/* group_legal[from] is a set of states. */
static const uint8_t group_legal[GROUP_STATES] = {
	[GROUP_EMPTY] = 1u << GROUP_PREPARING | 1u << GROUP_DEAD,
	[GROUP_PREPARING] = 1u << GROUP_COMPLETING | 1u << GROUP_EMPTY | 1u << GROUP_DEAD,
	[GROUP_COMPLETING] = 1u << GROUP_STABLE | 1u << GROUP_PREPARING | 1u << GROUP_DEAD,
	[GROUP_STABLE] = 1u << GROUP_PREPARING | 1u << GROUP_DEAD,
	[GROUP_DEAD] = 0,
};

const char *group_state_name(enum group_state state)
{
	CHECK(state < GROUP_STATES);
	return group_state_names[state];
}

bool group_transition_legal(enum group_state from, enum group_state to)
{
	CHECK(from < GROUP_STATES && to < GROUP_STATES);
	return (group_legal[from] >> to & 1) != 0;
}

void group_transition(struct group *group, enum group_state to, struct now now)
{
	CHECK(group_transition_legal(group->state, to));
	group->previous_state = group->state;
	group->state = to;
	group->state_ms = now.wall_ms;
	group->assignment_written = false;
	CHECK(to != GROUP_EMPTY || group->members_len == 0);
	CHECK(to != GROUP_COMPLETING || (group->members_len > 0 && group->waiting > 0));
}

void group_restore(struct group *group, enum group_state state, int64_t state_ms)
{
	CHECK(group->state == GROUP_EMPTY || group->state == GROUP_STABLE);
	CHECK(state == (group->members_len == 0 ? GROUP_EMPTY : GROUP_STABLE));
	CHECK(group->waiting == 0);
	group->state = state;
	group->state_ms = state_ms;
}
