/*
 * test_rtt.c - the estimator of RFC 6298 with numbers worked out by hand.
 */
#include <criterion/criterion.h>

#include "dataplane/tcp/rtt.h"

#define MIN_US 50000
#define MAX_US 60000000

Test(rtt, first_sample)
{
	struct rtt rtt;
	rtt_init(&rtt, MIN_US, MAX_US);
	cr_expect_eq(rtt.rto, 1000000);
	rtt_sample(&rtt, 100000, MIN_US, MAX_US);
	cr_expect_eq(rtt.srtt, 100000);
	cr_expect_eq(rtt.rttvar, 50000);
	cr_expect_eq(rtt.rto, 300000);
}

Test(rtt, second_sample)
{
	struct rtt rtt;
	rtt_init(&rtt, MIN_US, MAX_US);
	rtt_sample(&rtt, 100000, MIN_US, MAX_US);
	rtt_sample(&rtt, 180000, MIN_US, MAX_US);
	cr_expect_eq(rtt.rttvar, (3 * 50000 + 80000) / 4);
	cr_expect_eq(rtt.srtt, (7 * 100000 + 180000) / 8);
	cr_expect_eq(rtt.rto, rtt.srtt + 4 * rtt.rttvar);
}

Test(rtt, steady_path_keeps_the_floor_above_the_round_trip)
{
	struct rtt rtt;
	rtt_init(&rtt, MIN_US, MAX_US);
	for (int i = 0; i < 200; i++)
		rtt_sample(&rtt, 40000, MIN_US, MAX_US);
	cr_expect_eq(rtt.srtt, 40000);
	cr_expect_eq(rtt.rto, 90000);
}

Test(rtt, bounds)
{
	struct rtt rtt;
	rtt_init(&rtt, 2000000, MAX_US);
	cr_expect_eq(rtt.rto, 2000000, "the initial value obeys the floor");
	rtt_init(&rtt, MIN_US, MAX_US);
	rtt_sample(&rtt, 0, MIN_US, MAX_US);
	cr_expect_eq(rtt.srtt, 1, "0 would mean: no sample yet");
	rtt_sample(&rtt, UINT64_MAX, MIN_US, MAX_US);
	cr_expect_eq(rtt.rto, MAX_US);
	for (int i = 0; i < 1000; i++)
		rtt_sample(&rtt, 0, MIN_US, MAX_US);
	cr_expect_eq(rtt.rto, MIN_US + 1);
}

Test(rtt, backoff_doubles_up_to_the_ceiling)
{
	struct rtt rtt;
	rtt_init(&rtt, MIN_US, MAX_US);
	cr_expect_eq(rtt_backed_off(&rtt, 0, MAX_US), 1000000);
	cr_expect_eq(rtt_backed_off(&rtt, 1, MAX_US), 2000000);
	cr_expect_eq(rtt_backed_off(&rtt, 5, MAX_US), 32000000);
	cr_expect_eq(rtt_backed_off(&rtt, 6, MAX_US), MAX_US);
	cr_expect_eq(rtt_backed_off(&rtt, 255, MAX_US), MAX_US);
}
