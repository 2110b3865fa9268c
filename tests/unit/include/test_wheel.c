/*
 * test_wheel.c - the timer wheel against a naive model: a list of deadlines that is searched whole.
 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "muster/wheel.h"

#define TIMERS 500

struct item {
	struct wheel_timer timer;
	bool hung;
	uint64_t when;
	unsigned int fired;
	uint64_t again; /* ticks after which the callback adds it again; 0: not */
	uint64_t meant; /* of the lazy test: when it should fire; UINT64_MAX: never */
};

struct world {
	struct wheel wheel;
	uint64_t now;
	struct item item[TIMERS];
	unsigned int early, unexpected, fired;
	struct item *victim; /* the callback removes this one */
};

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static void fire(struct wheel_timer *timer, void *arg)
{
	struct world *w = arg;
	struct item *item = CONTAINER_OF(timer, struct item, timer);
	w->early += item->when > w->now;
	w->unexpected += !item->hung;
	w->fired++;
	item->hung = false;
	item->fired++;
	if (item->again > 0) {
		item->when = w->now + item->again;
		item->hung = true;
		item->again = 0;
		wheel_add(&w->wheel, timer, item->when);
	}
	if (w->victim != NULL && w->victim != item) {
		wheel_remove(&w->victim->timer);
		w->victim->hung = false;
		w->victim = NULL;
	}
}

static uint64_t earliest(const struct world *w)
{
	uint64_t min = UINT64_MAX;
	for (unsigned int i = 0; i < TIMERS; i++) {
		if (w->item[i].hung && w->item[i].when < min)
			min = w->item[i].when;
	}
	return min;
}

/* A distance of any magnitude up to 2^`bits`. */
static uint64_t distance(uint64_t *random, unsigned int bits)
{
	return next_random(random) >> (64 - 1 - next_random(random) % bits);
}

static void run(uint64_t start, uint64_t seed, unsigned int bits)
{
	struct world *w = calloc(1, sizeof(*w));
	uint64_t random = seed;
	w->now = start;
	wheel_init(&w->wheel, start);
	for (int step = 0; step < 20000; step++) {
		struct item *item = &w->item[next_random(&random) % TIMERS];
		switch (next_random(&random) % 4) {
		case 0:
			wheel_remove(&item->timer);
			item->hung = false;
			break;
		case 1:
		case 2:
			item->when = w->now + distance(&random, bits);
			item->hung = true;
			item->again = next_random(&random) % 8 == 0 ? 1 + distance(&random, 12) : 0;
			wheel_set(&w->wheel, &item->timer, item->when);
			break;
		default: {
			uint64_t min = earliest(w), next = wheel_next(&w->wheel);
			cr_assert(next <= (min > w->now ? min : w->now), "sleeps past a deadline: %lu, %lu", (unsigned long)next,
				  (unsigned long)min);
			cr_assert(min == UINT64_MAX || next >= w->now);
			w->now += next_random(&random) % 4 == 0 ? distance(&random, bits) : distance(&random, 8);
			w->victim = next_random(&random) % 8 == 0 ? item : NULL;
			wheel_advance(&w->wheel, w->now, UINT32_MAX, fire, w);
			w->victim = NULL;
			/* what the callback added for a tick that has come fires in the same or the next call */
			wheel_advance(&w->wheel, w->now, UINT32_MAX, fire, w);
			cr_assert(earliest(w) > w->now, "late: due at %lu, now %lu", (unsigned long)earliest(w), (unsigned long)w->now);
		}
		}
		cr_assert_eq(w->early, 0);
		cr_assert_eq(w->unexpected, 0);
	}
	cr_expect_gt(w->fired, 1000);
	free(w);
}

Test(wheel, like_the_naive_model)
{
	run(0, 1, 8);
	run(12345, 2, 20);
	run((1ull << 36) - 5000, 3, 14); /* the top digit wraps around */
	run((1ull << 40) + 77, 4, 30);
}

Test(wheel, budget_leaves_the_rest_for_the_next_call)
{
	struct world *w = calloc(1, sizeof(*w));
	wheel_init(&w->wheel, 100);
	w->now = 110;
	for (unsigned int i = 0; i < 10; i++) {
		w->item[i].hung = true;
		w->item[i].when = 105;
		wheel_add(&w->wheel, &w->item[i].timer, 105);
	}
	cr_expect_eq(wheel_advance(&w->wheel, 110, 4, fire, w), 4);
	cr_expect_eq(wheel_next(&w->wheel), 110);
	cr_expect_eq(wheel_advance(&w->wheel, 110, 4, fire, w), 4);
	cr_expect_eq(wheel_advance(&w->wheel, 110, 4, fire, w), 2);
	cr_expect_eq(wheel_next(&w->wheel), UINT64_MAX);
	for (unsigned int i = 0; i < 10; i++)
		cr_expect_eq(w->item[i].fired, 1);
	free(w);
}

Test(wheel, far_deadlines_are_clamped)
{
	struct world *w = calloc(1, sizeof(*w));
	wheel_init(&w->wheel, 0);
	wheel_add(&w->wheel, &w->item[0].timer, UINT64_MAX);
	cr_expect_leq(w->item[0].timer.when, WHEEL_HORIZON);
	cr_expect_gt(w->item[0].timer.when, 1ull << 34);
	wheel_advance(&w->wheel, 1000000, 10, fire, w);
	cr_expect_eq(w->fired, 0);
	wheel_remove(&w->item[0].timer);
	cr_expect(!wheel_timer_hung(&w->item[0].timer));
	wheel_remove(&w->item[0].timer);
	free(w);
}

/* ---- lazy timers: what each means moves on while it hangs where it was ---- */

static uint64_t means(struct wheel_timer *timer)
{
	return CONTAINER_OF(timer, struct item, timer)->meant;
}

static void fire_lazy(struct wheel_timer *timer, void *arg)
{
	struct world *w = arg;
	struct item *item = CONTAINER_OF(timer, struct item, timer);
	if (item->meant > w->now) {
		if (item->meant != UINT64_MAX)
			wheel_add(&w->wheel, timer, item->meant);
		return;
	}
	item->fired++;
	item->meant = UINT64_MAX;
}

static uint64_t earliest_meant(const struct world *w)
{
	uint64_t min = UINT64_MAX;
	for (unsigned int i = 0; i < TIMERS; i++)
		min = w->item[i].meant < min ? w->item[i].meant : min;
	return min;
}

/* A deadline that moved away is a store; one that comes closer hangs the timer anew. */
static void mean(struct world *w, struct item *item, uint64_t when)
{
	item->meant = when;
	if (when != UINT64_MAX && (!wheel_timer_hung(&item->timer) || item->timer.when > when))
		wheel_set(&w->wheel, &item->timer, when);
}

static void run_lazy(uint64_t start, uint64_t seed, unsigned int bits)
{
	struct world *w = calloc(1, sizeof(*w));
	uint64_t random = seed;
	w->now = start;
	wheel_init(&w->wheel, start);
	for (unsigned int i = 0; i < TIMERS; i++)
		w->item[i].meant = UINT64_MAX;
	for (int step = 0; step < 20000; step++) {
		struct item *item = &w->item[next_random(&random) % TIMERS];
		if (next_random(&random) % 4 != 0) {
			mean(w, item, next_random(&random) % 3 == 0 ? UINT64_MAX : w->now + 1 + distance(&random, bits));
			continue;
		}
		uint64_t next = wheel_next_meant(&w->wheel, (unsigned int)(next_random(&random) % 20), means), min = earliest_meant(w);
		cr_assert(next <= (min > w->now ? min : w->now), "sleeps past a deadline: %lu, %lu", (unsigned long)next, (unsigned long)min);
		w->now += distance(&random, next_random(&random) % 4 == 0 ? bits : 8);
		wheel_advance(&w->wheel, w->now, UINT32_MAX, fire_lazy, w);
		cr_assert(earliest_meant(w) > w->now, "late");
	}
	free(w);
}

Test(wheel, lazy_timers_like_the_naive_model)
{
	run_lazy(0, 5, 8);
	run_lazy(12345, 6, 20);
	run_lazy((1ull << 36) - 5000, 7, 14);
}

Test(wheel, a_sleep_does_not_end_for_a_deadline_that_moved_away)
{
	struct world *w = calloc(1, sizeof(*w));
	wheel_init(&w->wheel, 1000);
	w->now = 1000;
	for (unsigned int i = 0; i < 10; i++) {
		mean(w, &w->item[i], 1050 + i);
		w->item[i].meant = i == 0 ? UINT64_MAX : 9000;
	}
	cr_expect_leq(wheel_next(&w->wheel), 1059);
	cr_expect_leq(wheel_next_meant(&w->wheel, 4, means), 1059, "no more than the budget is moved");
	cr_expect_gt(wheel_next_meant(&w->wheel, 100, means), 8000);
	cr_expect(!wheel_timer_hung(&w->item[0].timer), "means nothing any more");
	free(w);
}
