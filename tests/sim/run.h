/*
 * run.h - a run of one seed in a process of its own, so that a broken invariant of the server, a sanitizer's report or a hang is a result like any other;
 * and the search for a short list of actions that still fails in the same way.
 */
#ifndef TEST_SIM_RUN_H
#define TEST_SIM_RUN_H

#include "sim.h"

struct outcome {
	bool failed;
	char kind[96];	 /* what the violation is called; "" when it did not fail */
	char text[1024]; /* the first lines about it */
	uint64_t steps, requests, answers, rebalances, assignments, hash, operations, cleaned;
};

struct outcome run_seed(uint64_t seed, const bool *keep, bool trace);
/* The same, and the power is cut in that operation of the disk (stored.h), which `operations` of a run without says how many there are of. */
struct outcome run_cut(uint64_t seed, const bool *keep, uint64_t operation);
/* Leaves out actions as long as the run fails in the same way. keep[] has ACTIONS entries; returns how many are left. */
unsigned int run_shrink(uint64_t seed, const char *kind, bool *keep);

#endif
