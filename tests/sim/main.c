/*
 * main.c - the simulator's command line.
 *
 *   sim [--first SEED] [--seeds N] [--seconds S]   seeds in a row; the first failure is shrunk and printed, the exit status is 1
 *   sim --forever [--first SEED]                   until interrupted
 *   sim --list FILE                                the seeds that once failed: lines "SEED [kept actions: 1,5,9]"; # begins a comment
 *   sim --seed SEED [--keep 1,5,9] [--trace]       one run, with its actions, or with everything that happens
 *   sim [--actions N] --cuts SEED                  the first N actions (30), with the power cut in every operation of the disk
 *   sim --twice SEED                               two runs must give the same answers at the same times
 */
#include <getopt.h>
#include <stdio.h>
#include <time.h>

#include "run.h"

#define LIST_MAX 500 /* seeds in a list file */

struct total {
	uint64_t seeds, steps, requests, answers, rebalances, assignments;
};

static double seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void add(struct total *t, const struct outcome *o)
{
	t->seeds++;
	t->steps += o->steps;
	t->requests += o->requests;
	t->answers += o->answers;
	t->rebalances += o->rebalances;
	t->assignments += o->assignments;
}

static void print_total(const struct total *t, double took)
{
	printf("%lu seeds, %lu steps, %lu requests, %lu answers, %lu rebalances, %lu assignments taken, %.1f s, %.0f steps/s\n", t->seeds, t->steps, t->requests,
	       t->answers, t->rebalances, t->assignments, took, (double)t->steps / (took > 0 ? took : 1));
	fflush(stdout);
}

static void print_keep(const bool *keep)
{
	const char *comma = "";
	for (unsigned int i = 0; i < ACTIONS; i++) {
		if (!keep[i])
			continue;
		printf("%s%u", comma, i);
		comma = ",";
	}
	printf("\n");
}

static void report(uint64_t seed, const struct outcome *o, bool shrink)
{
	static struct plan plan;
	bool keep[ACTIONS];
	printf("seed %lu failed: %s\n%s\n", seed, o->kind, o->text);
	if (!shrink)
		return;
	unsigned int left = run_shrink(seed, o->kind, keep);
	plan_make(&plan, seed);
	printf("shrunk to %u of %u actions:\n", left, plan.len);
	plan_print(&plan, keep);
	struct outcome again = run_seed(seed, keep, false);
	printf("%s\nreplay with: --seed %lu --trace --keep ", again.text, seed);
	print_keep(keep);
	fflush(stdout);
}

static void read_keep(const char *text, bool *keep)
{
	memset(keep, 0, ACTIONS * sizeof(*keep));
	while (*text != '\0') {
		char *end;
		unsigned long i = strtoul(text, &end, 10);
		if (end == text)
			break;
		if (i < ACTIONS)
			keep[i] = true;
		text = end + (*end == ',');
	}
}

/* One line of the list; false when it holds no seed. keep[] is all true when the line names no actions. */
static bool read_line(char *line, uint64_t *seed, bool *keep)
{
	char *end;
	line[strcspn(line, "#\n")] = '\0';
	*seed = strtoull(line, &end, 10);
	if (end == line)
		return false;
	end += strspn(end, " \t");
	if (*end != '\0')
		read_keep(end, keep);
	else
		memset(keep, true, ACTIONS * sizeof(*keep));
	return true;
}

/* The file is closed before the first run: a child that exits would move the place where its parent reads. */
static int run_list(const char *path)
{
	static struct {
		uint64_t seed;
		bool keep[ACTIONS];
	} rows[LIST_MAX];
	char line[4096];
	unsigned int len = 0;
	int failures = 0;
	struct total total = {0};
	double start = seconds();
	FILE *f = fopen(path, "r");
	if (f == NULL) {
		fprintf(stderr, "sim: cannot read %s\n", path);
		return 2;
	}
	while (len < LIST_MAX && fgets(line, sizeof(line), f) != NULL)
		len += read_line(line, &rows[len].seed, rows[len].keep);
	fclose(f);
	for (unsigned int i = 0; i < len; i++) {
		struct outcome o = run_seed(rows[i].seed, rows[i].keep, false);
		add(&total, &o);
		if (o.failed)
			report(rows[i].seed, &o, false);
		failures += o.failed;
	}
	print_total(&total, seconds() - start);
	return failures > 0;
}

static int run_twice(uint64_t seed)
{
	struct outcome a = run_seed(seed, NULL, false), b = run_seed(seed, NULL, false);
	printf("seed %lu: %lu steps, hash %016lx, then %lu steps, hash %016lx\n", seed, a.steps, a.hash, b.steps, b.hash);
	return a.failed || b.failed || a.hash != b.hash || a.steps != b.steps;
}

/* The first actions of a seed without restarts of its own, with the power cut in every operation of the disk, one run for each. */
static int run_cuts(uint64_t seed, unsigned int actions)
{
	static struct plan plan;
	bool keep[ACTIONS] = {false};
	struct total total = {0};
	double start = seconds();
	plan_make(&plan, seed);
	for (unsigned int i = 0; i < plan.len && i < actions; i++)
		keep[i] = plan.actions[i].kind != ACT_RESTART && plan.actions[i].kind != ACT_LOG_BREAK;
	struct outcome whole = run_seed(seed, keep, false);
	if (whole.failed || whole.cleaned == 0) {
		printf("seed %lu: %s\n", seed, whole.failed ? whole.text : "nothing is cleaned, which proves too little");
		return 1;
	}
	for (uint64_t at = 1; at <= whole.operations; at++) {
		struct outcome o = run_cut(seed, keep, at);
		add(&total, &o);
		if (o.failed) {
			printf("seed %lu failed, cut in operation %lu of %lu: %s\n%s\n", seed, at, whole.operations, o.kind, o.text);
			return 1;
		}
	}
	printf("seed %lu, groups %s, %lu runs of the cleaner, cut in each of %lu operations: ", seed, plan.settings.group_record_max_bytes > 0 ? "in parts" : "whole",
	       whole.cleaned, whole.operations);
	print_total(&total, seconds() - start);
	return 0;
}

static int run_many(uint64_t first, uint64_t n, double limit, bool forever, bool shrink)
{
	struct total total = {0};
	double start = seconds(), told = start;
	for (uint64_t seed = first; forever || seed < first + n; seed++) {
		struct outcome o = run_seed(seed, NULL, false);
		add(&total, &o);
		if (o.failed) {
			report(seed, &o, shrink);
			print_total(&total, seconds() - start);
			return 1;
		}
		if (limit > 0 && seconds() - start > limit)
			break;
		if (forever && seconds() - told > 60) {
			print_total(&total, seconds() - start);
			told = seconds();
		}
	}
	printf("last seed %lu\n", first + total.seeds - 1);
	print_total(&total, seconds() - start);
	return 0;
}

int main(int argc, char **argv)
{
	enum { FIRST = 256, SEEDS, SECONDS, FOREVER, LIST, SEED, KEEP, TRACE, TWICE, NO_SHRINK, CUTS, ACTS };
	static const struct option options[] = {{"first", 1, NULL, FIRST}, {"seeds", 1, NULL, SEEDS}, {"seconds", 1, NULL, SECONDS},
		{"forever", 0, NULL, FOREVER}, {"list", 1, NULL, LIST}, {"seed", 1, NULL, SEED}, {"keep", 1, NULL, KEEP}, {"trace", 0, NULL, TRACE},
		{"twice", 1, NULL, TWICE}, {"no-shrink", 0, NULL, NO_SHRINK},
		{"cuts", 1, NULL, CUTS}, {"actions", 1, NULL, ACTS}, {NULL, 0, NULL, 0}};
	uint64_t first = 1, seeds = 200, seed = 0;
	double limit = 0;
	unsigned int actions = 30;
	bool forever = false, tracing = false, shrink = true, one = false, kept = false, keep[ACTIONS];
	for (int o; (o = getopt_long(argc, argv, "", options, NULL)) != -1;) {
		switch (o) {
		case FIRST: first = strtoull(optarg, NULL, 10); break;
		case SEEDS: seeds = strtoull(optarg, NULL, 10); break;
		case SECONDS: limit = strtod(optarg, NULL); break;
		case FOREVER: forever = true; break;
		case LIST: return run_list(optarg);
		case SEED: seed = strtoull(optarg, NULL, 10); one = true; break;
		case KEEP: read_keep(optarg, keep); kept = true; break;
		case TRACE: tracing = true; break;
		case TWICE: return run_twice(strtoull(optarg, NULL, 10));
		case ACTS: actions = (unsigned int)strtoul(optarg, NULL, 10); break;
		case CUTS: return run_cuts(strtoull(optarg, NULL, 10), actions);
		case NO_SHRINK: shrink = false; break;
		default: return 2;
		}
	}
	if (!one)
		return run_many(first, seeds, limit, forever, shrink);
	static struct plan plan;
	plan_make(&plan, seed);
	plan_print(&plan, kept ? keep : NULL);
	struct outcome o = run_seed(seed, kept ? keep : NULL, tracing);
	printf("%s\n", o.failed ? o.text : "passed");
	return o.failed;
}
