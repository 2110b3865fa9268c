/*
 * test_steer.c - which worker a frame is for.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "dataplane/steer.h"

#define SELF 2u

static const struct steer steer = {19092, 4};

/* A frame of Ethernet, IPv4 with `words` 32-bit words of header, and the beginning of TCP. */
static size_t frame_to(uint8_t *out, unsigned int words, uint16_t port)
{
	memset(out, 0, 128);
	out[12] = 0x08;
	out[14] = (uint8_t)(0x40 | words);
	out[14 + 9] = 6;
	out[14 + words * 4 + 2] = (uint8_t)(port >> 8);
	out[14 + words * 4 + 3] = (uint8_t)port;
	return 14 + words * 4 + 20;
}

Test(steer, a_worker_s_port_names_it)
{
	uint8_t f[128];
	for (unsigned int w = 0; w < 4; w++) {
		cr_assert_eq(steer_frame(&steer, SELF, f, frame_to(f, 5, (uint16_t)(19092 + w))), w);
		cr_assert_eq(steer_frame(&steer, SELF, f, frame_to(f, 15, (uint16_t)(19092 + w))), w, "with IP options");
	}
}

Test(steer, other_ports_stay_where_they_came)
{
	uint8_t f[128];
	cr_assert_eq(steer_frame(&steer, SELF, f, frame_to(f, 5, 19091)), SELF);
	cr_assert_eq(steer_frame(&steer, SELF, f, frame_to(f, 5, 19096)), SELF);
	cr_assert_eq(steer_frame(&steer, SELF, f, frame_to(f, 5, 0)), SELF);
	cr_assert_eq(steer_frame(&steer, SELF, f, frame_to(f, 5, 65535)), SELF);
}

Test(steer, what_we_open_comes_back_to_its_opener)
{
	uint8_t f[128];
	for (unsigned int w = 0; w < 4; w++) {
		for (unsigned int i = 0; i < STEER_EPHEMERAL_COUNT / 4; i++) {
			uint16_t port = steer_ephemeral(&steer, w, i);
			cr_assert_geq(port, STEER_EPHEMERAL_FIRST);
			cr_assert_eq(steer_frame(&steer, SELF, f, frame_to(f, 5, port)), w);
		}
	}
}

Test(steer, a_listening_port_is_not_given_out)
{
	struct steer high = {40000, 3};
	unsigned int left_out = 0;
	for (unsigned int w = 0; w < 3; w++) {
		for (unsigned int i = 0; i < STEER_EPHEMERAL_COUNT / 3; i++) {
			uint16_t port = steer_ephemeral(&high, w, i);
			cr_assert(port < 40000 || port > 40002);
			left_out += port == 0;
		}
	}
	cr_assert_eq(left_out, 3);
}

Test(steer, ports_that_are_not_in_a_row)
{
	static const struct dataplane_worker each[] = {{.port = 9092}, {.port = 40000}, {.port = 19092}};
	const struct steer any = {9092, 3, each};
	uint8_t f[128];
	for (unsigned int w = 0; w < 3; w++)
		cr_assert_eq(steer_frame(&any, SELF, f, frame_to(f, 5, each[w].port)), w);
	cr_assert_eq(steer_frame(&any, SELF, f, frame_to(f, 5, 9093)), SELF);
	cr_assert_eq(steer_frame(&any, SELF, f, frame_to(f, 5, 19093)), SELF);
	unsigned int left_out = 0;
	for (unsigned int w = 0; w < 3; w++)
		for (unsigned int i = 0; i < STEER_EPHEMERAL_COUNT / 3; i++) {
			uint16_t port = steer_ephemeral(&any, w, i);
			cr_assert_neq(port, 40000);
			left_out += port == 0;
			cr_assert(port == 0 || steer_frame(&any, SELF, f, frame_to(f, 5, port)) == w);
		}
	cr_assert_eq(left_out, 1);
}

Test(steer, what_is_no_whole_tcp_stays)
{
	uint8_t f[128];
	size_t len = frame_to(f, 5, 19092);
	for (size_t cut = 0; cut < 14 + 20 + 4; cut++)
		cr_assert_eq(steer_frame(&steer, SELF, f, cut), SELF, "%zu bytes", cut);
	cr_assert_eq(steer_frame(&steer, SELF, f, 14 + 20 + 4), 0);
	f[14 + 9] = 17;
	cr_assert_eq(steer_frame(&steer, SELF, f, len), SELF, "UDP");
	frame_to(f, 5, 19092);
	f[14 + 7] = 1;
	cr_assert_eq(steer_frame(&steer, SELF, f, len), SELF, "a later fragment has no ports");
	frame_to(f, 5, 19092);
	f[14 + 6] = 0x40;
	cr_assert_eq(steer_frame(&steer, SELF, f, len), 0, "do not fragment");
	f[14] = 0x44;
	cr_assert_eq(steer_frame(&steer, SELF, f, len), SELF, "header too short");
	frame_to(f, 15, 19092);
	cr_assert_eq(steer_frame(&steer, SELF, f, 14 + 60), SELF, "options without ports");
	frame_to(f, 5, 19092);
	f[13] = 6;
	cr_assert_eq(steer_frame(&steer, SELF, f, len), SELF, "ARP");
}

Test(steer, arp_that_others_may_wait_for)
{
	uint8_t f[14 + 28] = {[12] = 0x08, [13] = 0x06, [14 + 7] = 2, [14 + 17] = 7};
	cr_assert(steer_is_arp_news(f, sizeof(f)), "an answer");
	f[14 + 7] = 1;
	cr_assert_not(steer_is_arp_news(f, sizeof(f)), "a question is its receiver's");
	f[14 + 27] = 7;
	cr_assert(steer_is_arp_news(f, sizeof(f)), "a host's word about itself");
	cr_assert_not(steer_is_arp_news(f, sizeof(f) - 1));
	f[13] = 0;
	cr_assert_not(steer_is_arp_news(f, sizeof(f)));
}
