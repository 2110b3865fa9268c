/*
 * test_isn.c - SipHash against its authors' vectors, and what RFC 6528 asks of sequence numbers.
 */
#include <criterion/criterion.h>

#include "dataplane/tcp/isn.h"

Test(isn, siphash_vectors)
{
	/* Key 00 01 .. 0f, message 00 01 .. n - 1 (the SipHash paper's appendix and its reference table). */
	static const uint64_t key[2] = {0x0706050403020100, 0x0f0e0d0c0b0a0908};
	uint8_t message[16];
	for (uint8_t i = 0; i < sizeof(message); i++)
		message[i] = i;
	cr_expect_eq(tcp_siphash(key, message, 0), 0x726fdb47dd0e0e31);
	cr_expect_eq(tcp_siphash(key, message, 1), 0x74f839c593dc67fd);
	cr_expect_eq(tcp_siphash(key, message, 8), 0x93f5f5799a932462);
	cr_expect_eq(tcp_siphash(key, message, 15), 0xa129ca6149be45e5);
}

Test(isn, grows_with_time_and_differs_by_tuple_and_key)
{
	static const uint64_t secret[2] = {1, 2}, other[2] = {1, 3};
	struct tcp_tuple a = {1, 2, 3, 4}, b = {1, 2, 3, 5}, c = {1, 2, 4, 3};
	struct now t0 = {.us = 1000000}, t1 = {.us = 1000400};
	uint32_t isn = tcp_isn(secret, &a, t0);
	cr_expect_eq(tcp_isn(secret, &a, t1) - isn, 100);
	cr_expect_neq(tcp_isn(secret, &b, t0), isn);
	cr_expect_neq(tcp_isn(secret, &c, t0), isn);
	cr_expect_neq(tcp_isn(other, &a, t0), isn);
	cr_expect_neq(tcp_timestamp_offset(secret, &a), tcp_timestamp_offset(secret, &b));
	cr_expect_neq(tcp_timestamp_offset(secret, &a), isn - 250000);
}
