/* test_state.c - the table of legal transitions, walked whole, and what a transition stores. */
#include <criterion/criterion.h>
#include <signal.h>

#include "rig.h"

Test(state, table)
{
	/* rows: from; columns: to; in the order Empty, Preparing, Completing, Stable, Dead */
	static const char *const legal[] = {"01001", "10101", "01011", "01001", "00000"};
	for (unsigned int from = 0; from < GROUP_STATES; from++)
		for (unsigned int to = 0; to < GROUP_STATES; to++)
			cr_expect_eq(group_transition_legal(from, to), legal[from][to] == '1', "%s -> %s", group_state_name(from),
				     group_state_name(to));
}

Test(state, names)
{
	cr_expect_str_eq(group_state_name(GROUP_EMPTY), "Empty");
	cr_expect_str_eq(group_state_name(GROUP_PREPARING), "PreparingRebalance");
	cr_expect_str_eq(group_state_name(GROUP_COMPLETING), "CompletingRebalance");
	cr_expect_str_eq(group_state_name(GROUP_STABLE), "Stable");
	cr_expect_str_eq(group_state_name(GROUP_DEAD), "Dead");
}

Test(state, transition_stores_time_and_predecessor)
{
	struct rig *r = rig_new();
	struct group *g = group_new(r->shard, bytes_str("g"));
	group_transition(g, GROUP_PREPARING, (struct now){5, 777});
	cr_expect_eq(g->state, GROUP_PREPARING);
	cr_expect_eq(g->previous_state, GROUP_EMPTY);
	cr_expect_eq(g->state_ms, 777);
	group_transition(g, GROUP_EMPTY, (struct now){6, 778});
	cr_expect_eq(g->previous_state, GROUP_PREPARING);
	rig_free(r);
}

Test(state, illegal_transition_stops, .signal = SIGABRT)
{
	struct rig *r = rig_new();
	group_transition(group_new(r->shard, bytes_str("g")), GROUP_STABLE, r->now);
}
