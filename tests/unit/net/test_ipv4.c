/*
 * test_ipv4.c - every reason to drop a packet, and the header that we send.
 */
#include <criterion/criterion.h>
#include <rte_ip.h>

#include "dataplane/ipv4.h"

static const struct ipv4_self self = {.addr = 0x0a4d0002, .mask = 0xffffff00, .gateway = 0x0a4d00fe};
static struct stats stats;
static uint8_t p[64];
static struct ipv4_packet out;

static void fix_checksum(void)
{
	p[10] = p[11] = 0;
	uint16_t sum = (uint16_t)~rte_raw_cksum(p, (size_t)(p[0] & 15) * 4);
	memcpy(p + 10, &sum, 2);
}

static void good(void)
{
	static const uint8_t header[20] = {0x45, 0, 0, 28, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 77, 0, 1, 10, 77, 0, 2};
	memset(p, 0, sizeof(p));
	memcpy(p, header, sizeof(header));
	fix_checksum();
}

TestSuite(ipv4, .init = good);

static bool input(size_t len)
{
	return ipv4_input(&self, p, len, false, &stats, &out);
}

Test(ipv4, good_packet_loses_its_padding)
{
	cr_assert(input(46));
	cr_assert_eq(out.src, 0x0a4d0001);
	cr_assert_eq(out.dst, 0x0a4d0002);
	cr_assert_eq(out.protocol, 6);
	cr_assert_eq(out.payload, p + 20);
	cr_assert_eq(out.len, 8);
}

Test(ipv4, malformed_headers)
{
	cr_assert_not(input(19));
	cr_assert_not(input(27)); /* total length beyond the frame */
	p[0] = 0x65;
	fix_checksum();
	cr_assert_not(input(46));
	good();
	p[0] = 0x44;
	fix_checksum();
	cr_assert_not(input(46));
	good();
	p[3] = 19; /* total length shorter than the header */
	fix_checksum();
	cr_assert_not(input(46));
	good();
	p[0] = 0x4f; /* header longer than the packet */
	fix_checksum();
	cr_assert_not(input(46));
	cr_assert_eq(stats.ipv4_bad_header, 6);
}

Test(ipv4, checksum)
{
	p[8]--;
	cr_assert_not(input(46));
	cr_assert_eq(stats.ipv4_bad_checksum, 1);
	cr_assert(ipv4_input(&self, p, 46, true, &stats, &out), "the device has looked already");
}

Test(ipv4, options_and_fragments)
{
	p[0] = 0x46;
	fix_checksum();
	cr_assert_not(input(46));
	cr_assert_eq(stats.ipv4_options, 1);
	good();
	p[6] = 0x20;
	fix_checksum();
	cr_assert_not(input(46));
	good();
	p[7] = 1;
	fix_checksum();
	cr_assert_not(input(46));
	cr_assert_eq(stats.ipv4_fragments, 2);
	good();
	p[6] = 0; /* DF is not asked for */
	fix_checksum();
	cr_assert(input(46));
}

Test(ipv4, addresses)
{
	static const uint8_t bad_sources[][4] = {
		{0, 0, 0, 0}, {127, 0, 0, 1}, {224, 0, 0, 1}, {255, 255, 255, 255}, {10, 77, 0, 255}, {10, 77, 0, 0}, {10, 77, 0, 2}};
	p[19] = 3;
	fix_checksum();
	cr_assert_not(input(46));
	cr_assert_eq(stats.ipv4_not_for_us, 1);
	for (size_t i = 0; i < ARRAY_LEN(bad_sources); i++) {
		good();
		memcpy(p + 12, bad_sources[i], 4);
		fix_checksum();
		cr_assert_not(input(46), "source %zu", i);
	}
	cr_assert_eq(stats.ipv4_bad_header, ARRAY_LEN(bad_sources));
	good();
	p[12] = 192; /* from elsewhere, by the gateway */
	fix_checksum();
	cr_assert(input(46));
}

Test(ipv4, header_is_what_input_takes)
{
	struct ipv4_self peer = {.addr = 0x0a4d0001, .mask = 0xffffff00};
	memset(p, 0xee, sizeof(p));
	ipv4_header(p, self.addr, peer.addr, 17, 40, false);
	cr_assert(ipv4_input(&peer, p, 60, false, &stats, &out));
	cr_assert_eq(out.len, 40);
	cr_assert_eq(out.src, self.addr);
	cr_assert_eq(out.protocol, 17);
	cr_assert_eq(p[6], 0x40, "never to be fragmented");
	ipv4_header(p, self.addr, peer.addr, 17, 40, true);
	cr_assert_eq(p[10] | p[11], 0);
}

Test(ipv4, next_hop)
{
	struct ipv4_self alone = {.addr = 0x0a4d0002, .mask = 0xffffff00};
	cr_assert_eq(ipv4_next_hop(&self, 0x0a4d0063), 0x0a4d0063);
	cr_assert_eq(ipv4_next_hop(&self, 0x0a4d0163), 0x0a4d00fe);
	cr_assert_eq(ipv4_next_hop(&alone, 0x0a4d0163), 0);
}

Test(ipv4, point_to_point_networks_have_no_broadcast)
{
	struct ipv4_self two = {.addr = 0x0a4d0002, .mask = 0xfffffffe};
	cr_assert(ipv4_is_host(&two, 0x0a4d0003));
	cr_assert_not(ipv4_is_host(&self, 0x0a4d00ff));
	cr_assert(ipv4_is_host(&self, 0x0a4d01ff), "of a network that we know nothing about");
}
