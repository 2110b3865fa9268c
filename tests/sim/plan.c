/*
 * plan.c - from a seed to the settings of the world and a list of actions. One seed in four is clean: nobody misbehaves, the log takes everything, the
 * server runs on; there the checks are stronger.
 */
#include <stdio.h>

#include "sim.h"

static const char *const action_texts[ACTION_COUNT] = {
#define ACTION(name, text) text,
	ACTION_KINDS(ACTION)
#undef ACTION
};

/* How often each kind is drawn, in a clean world and in any other. */
static const uint8_t weights[ACTION_COUNT][2] = {
	[ACT_START] = {14, 12}, [ACT_STOP] = {5, 4}, [ACT_KILL] = {3, 2}, [ACT_RESET] = {2, 2}, [ACT_VANISH] = {2, 2}, [ACT_PAUSE] = {3, 3},
	[ACT_LOSE] = {8, 8}, [ACT_RESUBSCRIBE] = {4, 3}, [ACT_REJOIN] = {4, 3}, [ACT_ROGUE_JOIN] = {0, 8}, [ACT_ROGUE_SYNC] = {0, 5},
	[ACT_ROGUE_HEARTBEAT] = {0, 6}, [ACT_ROGUE_LEAVE] = {0, 4}, [ACT_ROGUE_COMMIT] = {0, 5}, [ACT_ROGUE_FETCH] = {0, 3}, [ACT_ROGUE_OTHER] = {0, 3},
	[ACT_ROGUE_CLOSE] = {0, 5}, [ACT_ADMIN] = {0, 4}, [ACT_GARBAGE] = {0, 4}, [ACT_LOG_SLOW] = {3, 3}, [ACT_LOG_FAIL] = {0, 5},
	[ACT_LOG_BREAK] = {0, 1}, [ACT_TOPIC] = {0, 3}, [ACT_NET_SLOW] = {2, 2}, [ACT_STALL] = {1, 1}, [ACT_RESTART] = {0, 1},
};

const char *action_text(enum action_kind kind)
{
	return action_texts[kind];
}

static enum action_kind draw(struct rng *r, bool clean)
{
	uint32_t sum = 0, k = 0;
	for (unsigned int i = 0; i < ACTION_COUNT; i++)
		sum += weights[i][!clean];
	uint32_t at = rng_below(r, sum);
	while (at >= weights[k][!clean])
		at -= weights[k++][!clean];
	return (enum action_kind)k;
}

void plan_make(struct plan *plan, uint64_t seed)
{
	struct rng r = rng_of(seed, 42);
	memset(plan, 0, sizeof(*plan));
	plan->seed = seed;
	plan->clean = seed % 4 == 0;
	plan->stored = seed % 8 == 5 || (seed >= STORED_SEEDS && !plan->clean);
	plan->end = rng_one_in(&r, 4) ? END_STOP : END_SILENCE;
	plan->settings = (struct group_settings){
		.group_min_session_timeout_ms = 6000,
		.group_max_session_timeout_ms = 1800000,
		.group_initial_rebalance_delay_ms = rng_one_in(&r, 3) ? 0 : (int32_t)rng_between(&r, 100, 4000),
		.group_max_size = rng_one_in(&r, 4) ? (int32_t)rng_between(&r, 1, 4) : INT32_MAX,
		.offset_metadata_max_bytes = 4096,
		.group_join_window_ms = seed % 5 == 2 ? 700 : 0,
		.group_join_window_max_ms = 3000,
		.group_max_pending_members = seed % 7 == 3 ? 2 : 0,
		.journal_events = 4,
		.journal_removed_members = 20,
		.journal_removed_minutes = 1,
		.offsets_retention_minutes = 1,
		.offsets_commit_timeout_ms = rng_one_in(&r, 3) ? (int32_t)rng_between(&r, 20, 3000) : 0,
		.offsets_retention_check_interval_ms = rng_one_in(&r, 3) ? rng_between(&r, 3000, 40000) : 0,
	};
	/* groups larger than a record, and work in slices, whatever their size */
	plan->settings.group_record_max_bytes = rng_one_in(&r, 2) ? (int32_t)rng_between(&r, 1, 700) : 0;
	plan->settings.group_slice = rng_one_in(&r, 4) ? 0 : (int32_t)rng_between(&r, 1, 4);
	uint64_t at = 1000000;
	unsigned int len = rng_between(&r, 60, 160);
	for (unsigned int i = 0; i < len; i++) {
		struct action *a = &plan->actions[plan->len++];
		bool burst = rng_one_in(&r, 3);
		at += burst ? rng_below(&r, 2000) : rng_below(&r, 3000000);
		a->kind = i < 4 ? ACT_START : draw(&r, plan->clean);
		a->at = at;
		a->who = rng_below(&r, CONSUMERS);
		a->random = rng_next(&r);
	}
}

void plan_print(const struct plan *plan, const bool *keep)
{
	for (unsigned int i = 0; i < plan->len; i++)
		if (keep == NULL || keep[i])
			printf("  %3u  %11.6f s  %-8u %s\n", i, (double)plan->actions[i].at / 1e6, plan->actions[i].who, action_text(plan->actions[i].kind));
}
