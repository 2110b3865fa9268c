/* run.c - see run.h. The child tells its result through a pipe: one line "DONE ..." at its end, or whatever it died with. */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run.h"

#define RUN_SECONDS 120
#define SHRINK_RUNS 600

static void run_child(uint64_t seed, const bool *keep, bool tracing, uint64_t cut_op)
{
	struct world *w = calloc(1, sizeof(*w));
	w->cut_op = cut_op;
	alarm(RUN_SECONDS);
	world_run(w, seed, keep, tracing);
	printf("DONE %llu %llu %llu %llu %llu %llu %llu %llu\n", (unsigned long long)w->events, (unsigned long long)w->requests, (unsigned long long)w->answers,
	       (unsigned long long)w->stats.group_rebalances, (unsigned long long)w->stable_assignments, (unsigned long long)w->hash,
	       (unsigned long long)w->operations, (unsigned long long)w->cleaned);
	free(w);
	fflush(stdout);
}

static void name_kind(struct outcome *o, const char *text, int status)
{
	static const char *const marks[] = {"VIOLATION ", "broken invariant: ", "ERROR: AddressSanitizer: ", "runtime error: ", "ERROR: LeakSanitizer: "};
	for (unsigned int i = 0; i < ARRAY_LEN(marks); i++) {
		const char *at = strstr(text, marks[i]);
		if (at == NULL)
			continue;
		at += i == 0 ? strlen(marks[0]) : 0;
		size_t n = i == 0 ? strcspn(at, ":\n") : strcspn(at, "\n");
		snprintf(o->kind, sizeof(o->kind), "%.*s", (int)(n < 90 ? n : 90), at);
		snprintf(o->text, sizeof(o->text), "%.1000s", strstr(text, marks[i]));
		return;
	}
	snprintf(o->kind, sizeof(o->kind), "%s %d", WIFSIGNALED(status) ? "signal" : "exit status", WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	snprintf(o->text, sizeof(o->text), "%.1000s", text);
}

static struct outcome run_once(uint64_t seed, const bool *keep, bool tracing, uint64_t cut_op)
{
	static char text[1 << 16];
	struct outcome o = {.failed = true};
	size_t len = 0;
	int pipes[2], status = 0;
	fflush(stdout);
	CHECK(tracing || pipe(pipes) == 0);
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		if (!tracing) {
			dup2(pipes[1], 1);
			dup2(pipes[1], 2);
			close(pipes[0]);
			close(pipes[1]);
		}
		run_child(seed, keep, tracing, cut_op);
		exit(0);
	}
	if (!tracing) {
		close(pipes[1]);
		ssize_t n;
		while ((n = read(pipes[0], text + len, sizeof(text) - 1 - len)) > 0 && len + (size_t)n < sizeof(text) - 1)
			len += (size_t)n;
		close(pipes[0]);
	}
	text[len] = '\0';
	CHECK(waitpid(child, &status, 0) == child);
	const char *done = strstr(text, "DONE ");
	o.failed = status != 0 || (!tracing && done == NULL);
	if (o.failed)
		name_kind(&o, text, status);
	else if (done != NULL)
		sscanf(done, "DONE %lu %lu %lu %lu %lu %lu %lu %lu", &o.steps, &o.requests, &o.answers, &o.rebalances, &o.assignments, &o.hash,
		       &o.operations, &o.cleaned);
	return o;
}

struct outcome run_seed(uint64_t seed, const bool *keep, bool tracing)
{
	return run_once(seed, keep, tracing, 0);
}

struct outcome run_cut(uint64_t seed, const bool *keep, uint64_t operation)
{
	return run_once(seed, keep, false, operation);
}

unsigned int run_shrink(uint64_t seed, const char *kind, bool *keep)
{
	static struct plan plan;
	bool attempt[ACTIONS];
	plan_make(&plan, seed);
	unsigned int runs = 0, left = plan.len;
	for (unsigned int i = 0; i < ACTIONS; i++)
		keep[i] = i < plan.len;
	for (unsigned int chunk = plan.len; chunk >= 1; chunk /= 2) {
		bool again = true;
		while (again && runs < SHRINK_RUNS) {
			again = false;
			for (unsigned int start = 0; start < plan.len && runs < SHRINK_RUNS; start += chunk) {
				unsigned int dropped = 0;
				memcpy(attempt, keep, sizeof(attempt));
				for (unsigned int i = start; i < start + chunk && i < plan.len; i++) {
					dropped += attempt[i];
					attempt[i] = false;
				}
				if (dropped == 0)
					continue;
				runs++;
				struct outcome o = run_seed(seed, attempt, false);
				if (!o.failed || strcmp(o.kind, kind) != 0)
					continue;
				memcpy(keep, attempt, sizeof(attempt));
				left -= dropped;
				again = chunk == 1;
			}
		}
	}
	return left;
}
