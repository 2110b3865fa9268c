/*
 * watch.c - the workers from outside: who has not polled, and what each did in the last second. Plain loads only.
 *
 * The thread may stand still itself, together with the workers or alone: what it could not see does not count, so that it never blames a worker for a
 * paused machine.
 */
#include <stdio.h>

#include "coordinator/house/house_priv.h"

#define STILL_US US_PER_S     /* a worker that has not polled for so long is named */
#define GLANCE_MAX_US 300000u /* between two looks of ours; the rest of a longer gap is our own */
#define SAMPLE_US US_PER_S

/* What the kernel says of its thread: R runs, or waits for a CPU, S sleeps, D waits for a device, T or t is stopped. */
static char thread_state(int32_t thread)
{
	char path[64], state = '?';
	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", thread);
	FILE *f = fopen(path, "re");
	if (f == NULL)
		return '?';
	if (fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
		state = '?';
	fclose(f);
	return state;
}

void watch_describe(const struct house *house, unsigned int worker, char *out, size_t len)
{
	struct pulse p;
	house->link.pulse(house->link.arg, worker, &p);
	if (p.ended || p.raw_us == 0)
		snprintf(out, len, "%s", p.ended ? "it has ended" : "it has not begun");
	else if (house->wards[worker].still)
		snprintf(out, len, "it has not polled for %llu ms, in stage %s, thread %d in state %c",
			 (unsigned long long)(house->wards[worker].silent_us / US_PER_MS), house->link.stage(p.stage), p.thread, thread_state(p.thread));
	else
		snprintf(out, len, "it polls, in stage %s", house->link.stage(p.stage));
}

static void look_at(struct house *house, unsigned int worker, uint64_t gap_us)
{
	struct ward *ward = &house->wards[worker];
	struct pulse p;
	char text[200];
	house->link.pulse(house->link.arg, worker, &p);
	if (p.raw_us == 0 || p.ended) {
		ward->still = false;
		return;
	}
	if (p.raw_us != ward->raw_us) {
		if (ward->still)
			output_line(house->cfg.out, "muster: worker %u polls again after %llu ms", worker,
				    (unsigned long long)((p.raw_us - ward->raw_us) / US_PER_MS));
		ward->raw_us = p.raw_us;
		ward->silent_us = 0;
		ward->still = false;
		return;
	}
	ward->silent_us += gap_us < GLANCE_MAX_US ? gap_us : GLANCE_MAX_US;
	if (ward->still || ward->silent_us < STILL_US)
		return;
	ward->still = true;
	ward->stalls++;
	watch_describe(house, worker, text, sizeof(text));
	output_line(house->cfg.out, "muster: WORKER %u STANDS STILL: %s", worker, text);
}

static void sample(struct house *house, unsigned int worker, uint64_t took_us)
{
	struct ward *ward = &house->wards[worker];
	const struct stats *stats = house->link.stats(house->link.arg, worker);
	uint64_t requests = stats->requests - ward->before.requests, busy_us = stats->worker_busy_us - ward->before.worker_busy_us;
	ward->requests_rate = requests * US_PER_S / took_us;
	ward->busy_permille = (unsigned int)(busy_us >= took_us ? 1000 : busy_us * 1000 / took_us);
	ward->before = *stats;
}

void watch_round(struct house *house, struct now now)
{
	uint64_t gap_us = house->looked_us == 0 ? 0 : now.us - house->looked_us;
	house->looked_us = now.us;
	for (unsigned int w = 0; w < house->workers; w++)
		look_at(house, w, gap_us);
	if (now.us - house->sampled_us < SAMPLE_US)
		return;
	for (unsigned int w = 0; w < house->workers; w++)
		sample(house, w, now.us - house->sampled_us);
	house->sampled_us = now.us;
}
