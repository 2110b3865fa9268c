/* test_time.c - worker time stands still while the worker does. */
#include <criterion/criterion.h>

#include "muster/time.h"

#define LIMIT 200000u

static uint64_t worker_us(const struct pace *p)
{
	return p->raw_us - p->lost_us;
}

Test(pace, short_delays_and_sleeps_count)
{
	struct pace p = {.limit_us = LIMIT};
	cr_expect_eq(pace_step(&p, 5000000, 0), 0, "the first step has nothing before it");
	cr_expect_eq(worker_us(&p), 5000000);
	cr_expect_eq(pace_step(&p, 5000000 + LIMIT, 0), 0);
	cr_expect_eq(p.late_us, LIMIT);
	cr_expect_eq(pace_step(&p, 5000000 + 2 * LIMIT, 100000), 0, "it slept for a part of it");
	cr_expect_eq(p.late_us, LIMIT - 100000);
	cr_expect_eq(worker_us(&p), 5000000 + 2 * LIMIT);
}

Test(pace, waking_up_early_is_not_late)
{
	struct pace p = {.limit_us = LIMIT};
	pace_step(&p, 1000000, 0);
	cr_expect_eq(pace_step(&p, 1050000, 100000), 0);
	cr_expect_eq(p.late_us, 0);
}

Test(pace, what_is_lost_stays_lost)
{
	struct pace p = {.limit_us = LIMIT};
	pace_step(&p, 1000000, 0);
	cr_expect_eq(pace_step(&p, 21000000, 0), 20000000);
	cr_expect_eq(worker_us(&p), 1000000);
	cr_expect_eq(pace_step(&p, 21000500, 0), 0);
	cr_expect_eq(worker_us(&p), 1000500);
	cr_expect_eq(pace_step(&p, 31000500 + 100000, 100000), 10000000, "the sleep is not lost");
	cr_expect_eq(worker_us(&p), 1100500);
	cr_expect_eq(p.lost_us, 30000000);
}

Test(pace, no_limit_no_loss)
{
	struct pace p = {0};
	pace_step(&p, 1000000, 0);
	cr_expect_eq(pace_step(&p, 3600000000, 0), 0);
	cr_expect_eq(worker_us(&p), 3600000000);
}
