/*
 * test_icmp.c - echo, its checksum, and the rate limit.
 */
#include <criterion/criterion.h>
#include <rte_ip.h>

#include "dataplane/icmp.h"

static struct icmp icmp;
static struct stats stats;
static struct now now = {1000000, 0};
static uint8_t p[64], out[64];

static void make(uint8_t type, size_t len)
{
	for (size_t i = 0; i < len; i++)
		p[i] = (uint8_t)(i * 37);
	p[0] = type;
	p[1] = p[2] = p[3] = 0;
	uint16_t sum = (uint16_t)~rte_raw_cksum(p, len);
	memcpy(p + 2, &sum, 2);
}

Test(icmp, reply_has_the_same_data_and_a_right_checksum)
{
	for (size_t len = 8; len < 40; len++) {
		make(8, len);
		cr_assert(icmp_input(&icmp, p, len, &stats, now));
		icmp_reply(out, p, len);
		cr_assert_eq(out[0], 0);
		cr_assert_eq(memcmp(out + 4, p + 4, len - 4), 0);
		cr_assert_eq(rte_raw_cksum(out, len), 0xffff, "length %zu", len);
	}
	cr_assert_eq(stats.icmp_echo, 32);
}

Test(icmp, not_answered)
{
	make(8, 7);
	cr_assert_not(icmp_input(&icmp, p, 7, &stats, now));
	make(8, 20);
	p[12] ^= 1;
	cr_assert_not(icmp_input(&icmp, p, 20, &stats, now));
	cr_assert_eq(stats.icmp_bad, 2);
	make(0, 20);
	cr_assert_not(icmp_input(&icmp, p, 20, &stats, now));
	make(3, 20);
	cr_assert_not(icmp_input(&icmp, p, 20, &stats, now));
	cr_assert_eq(stats.icmp_bad, 2, "well-formed, only not for us to answer");
	cr_assert_eq(stats.icmp_echo, 0);
}

static unsigned int flood(unsigned int n)
{
	unsigned int answered = 0;
	make(8, 20);
	for (unsigned int i = 0; i < n; i++)
		answered += icmp_input(&icmp, p, 20, &stats, now);
	return answered;
}

Test(icmp, burst_then_rate)
{
	cr_assert_eq(flood(1000), ICMP_BURST);
	cr_assert_eq(stats.icmp_limited, 1000 - ICMP_BURST);
	now.us += 10000;
	cr_assert_eq(flood(1000), ICMP_RATE / 100);
	unsigned int sum = 0;
	for (int i = 0; i < 1000; i++) { /* fractions of a token are not lost */
		now.us += 1234;
		sum += flood(5);
	}
	cr_assert_geq(sum, 1233);
	cr_assert_leq(sum, 1235);
	now.us += 3600ull * US_PER_S;
	cr_assert_eq(flood(1000), ICMP_BURST);
}
