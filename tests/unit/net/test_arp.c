/*
 * test_arp.c - the neighbour table against what neighbours, strangers and liars send.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/arp.h"

#define SELF 0x0a4d0002u
#define PEER 0x0a4d0001u
#define REQUEST 1
#define REPLY 2

static const uint8_t self_mac[6] = {2, 0, 0, 0, 0, 1}, mac_a[6] = {2, 0, 0, 0, 0, 0xa}, mac_b[6] = {2, 0, 0, 0, 0, 0xb};
static const uint8_t broadcast[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
static struct ipv4_self self = {.addr = SELF, .mask = 0xffff0000};
static struct stats stats;
static struct arp *arp;
static struct now now = {5 * US_PER_S, 0};

static uint8_t sent[ARP_PACKET_LEN], sent_to[6]; /* the last one */
static unsigned int sends, forwards, drops;
static void *forwarded;
static uint8_t forwarded_to[6];

static void on_send(void *ctx, const uint8_t packet[ARP_PACKET_LEN], const uint8_t dst[6])
{
	memcpy(sent, packet, ARP_PACKET_LEN);
	memcpy(sent_to, dst, 6);
	sends++;
}

static void on_forward(void *ctx, void *packet, const uint8_t dst[6])
{
	forwarded = packet;
	memcpy(forwarded_to, dst, 6);
	forwards++;
}

static void on_drop(void *ctx, void *packet)
{
	drops++;
}

static const struct arp_ops ops = {.send = on_send, .forward = on_forward, .drop = on_drop};

static void start(void)
{
	arp = arp_new(&self, self_mac, 0x123456789abcdef, &ops, NULL, &stats);
}

static void stop(void)
{
	arp_free(arp);
}

TestSuite(arp, .init = start, .fini = stop);

static void arrive_by(void (*input)(struct arp *, const uint8_t *, size_t, struct now), int op, uint32_t sender, const uint8_t mac[6], uint32_t target)
{
	uint8_t p[ARP_PACKET_LEN] = {0, 1, 8, 0, 6, 4, 0, (uint8_t)op};
	memcpy(p + 8, mac, 6);
	for (int i = 0; i < 4; i++) {
		p[14 + i] = (uint8_t)(sender >> (24 - 8 * i));
		p[24 + i] = (uint8_t)(target >> (24 - 8 * i));
	}
	input(arp, p, sizeof(p), now);
}

static void arrive(int op, uint32_t sender, const uint8_t mac[6], uint32_t target)
{
	arrive_by(arp_input, op, sender, mac, target);
}

static uint32_t sent_addr(int at)
{
	return (uint32_t)sent[at] << 24 | (uint32_t)sent[at + 1] << 16 | (uint32_t)sent[at + 2] << 8 | sent[at + 3];
}

static bool knows(uint32_t addr, const uint8_t mac[6])
{
	const uint8_t *found = arp_lookup(arp, addr, now);
	return found != NULL && memcmp(found, mac, 6) == 0;
}

/* ---- answering ---- */

Test(arp, answers_for_our_address_and_learns_who_asked)
{
	arrive(REQUEST, PEER, mac_a, SELF);
	cr_assert_eq(sends, 1);
	cr_assert_eq(sent[7], REPLY);
	cr_assert_eq(memcmp(sent + 8, self_mac, 6), 0);
	cr_assert_eq(sent_addr(14), SELF);
	cr_assert_eq(memcmp(sent + 18, mac_a, 6), 0);
	cr_assert_eq(sent_addr(24), PEER);
	cr_assert_eq(memcmp(sent_to, mac_a, 6), 0);
	cr_assert_eq(stats.arp_requests, 1);
	cr_assert(knows(PEER, mac_a));
}

Test(arp, is_silent_about_other_addresses)
{
	arrive(REQUEST, PEER, mac_a, SELF + 1);
	cr_assert_eq(sends, 0);
	cr_assert_null(arp_lookup(arp, PEER, now));
}

Test(arp, probe_is_answered_and_not_learned)
{
	arrive(REQUEST, 0, mac_a, SELF);
	cr_assert_eq(sends, 1);
	cr_assert_null(arp_lookup(arp, 0, now));
	arrive(REQUEST, 0xc0a80001, mac_a, SELF); /* not of our network */
	cr_assert_null(arp_lookup(arp, 0xc0a80001, now));
}

Test(arp, malformed)
{
	uint8_t p[ARP_PACKET_LEN] = {0, 1, 8, 0, 6, 4, 0, REQUEST, 2, 0, 0, 0, 0, 5, 10, 77, 0, 1, 0, 0, 0, 0, 0, 0, 10, 77, 0, 2};
	for (size_t len = 0; len < sizeof(p); len++)
		arp_input(arp, p, len, now);
	cr_assert_eq(stats.arp_bad, ARP_PACKET_LEN);
	for (int i = 0; i < 8; i++) {
		p[i] ^= 0x40;
		arp_input(arp, p, sizeof(p), now);
		p[i] ^= 0x40;
	}
	cr_assert_eq(stats.arp_bad, ARP_PACKET_LEN + 8);
	arrive(REQUEST, PEER, broadcast, SELF);
	arrive(REQUEST, PEER, (const uint8_t[6]){0}, SELF);
	cr_assert_eq(stats.arp_bad, ARP_PACKET_LEN + 10);
	cr_assert_eq(sends, 0);
	arp_input(arp, p, sizeof(p), now);
	cr_assert_eq(sends, 1);
}

/* ---- asking ---- */

Test(arp, asks_holds_and_forwards)
{
	int packet;
	cr_assert_null(arp_lookup(arp, PEER, now));
	arp_hold(arp, PEER, &packet, now);
	cr_assert_eq(sends, 1);
	cr_assert_eq(sent[7], REQUEST);
	cr_assert_eq(sent_addr(24), PEER);
	cr_assert_eq(memcmp(sent_to, broadcast, 6), 0);
	arrive(REPLY, PEER, mac_a, SELF);
	cr_assert_eq(forwards, 1);
	cr_assert_eq(forwarded, &packet);
	cr_assert_eq(memcmp(forwarded_to, mac_a, 6), 0);
	cr_assert(knows(PEER, mac_a));
	cr_assert_eq(stats.arp_replies, 1);
	cr_assert_eq(arp_deadline(arp), TIME_NEVER);
}

Test(arp, keeps_the_newest_packet_and_asks_once)
{
	int first, second;
	arp_hold(arp, PEER, &first, now);
	arp_hold(arp, PEER, &second, now);
	cr_assert_eq(sends, 1);
	cr_assert_eq(drops, 1);
	arrive(REPLY, PEER, mac_a, SELF);
	cr_assert_eq(forwarded, &second);
	cr_assert_eq(forwards, 1);
}

Test(arp, asks_again_then_gives_up)
{
	int packet;
	arp_hold(arp, PEER, &packet, now);
	for (unsigned int i = 1; i < ARP_TRIES; i++) {
		cr_assert_eq(arp_deadline(arp), now.us + ARP_RETRY_US);
		now.us += ARP_RETRY_US - 1;
		arp_poll(arp, now);
		cr_assert_eq(sends, i);
		now.us += 1;
		arp_poll(arp, now);
		cr_assert_eq(sends, i + 1);
	}
	now.us += ARP_RETRY_US;
	arp_poll(arp, now);
	cr_assert_eq(sends, ARP_TRIES);
	cr_assert_eq(drops, 1);
	cr_assert_eq(stats.arp_unresolved, 1);
	cr_assert_eq(arp_deadline(arp), TIME_NEVER);
	arrive(REPLY, PEER, mac_a, SELF); /* too late: nobody asked any more */
	cr_assert_null(arp_lookup(arp, PEER, now));
}

Test(arp, waiting_packets_are_bounded)
{
	int packet;
	for (uint32_t i = 0; i < ARP_ASKING + 10; i++)
		arp_hold(arp, 0x0a4d0100 + i, &packet, now);
	cr_assert_eq(sends, ARP_ASKING);
	cr_assert_eq(drops, 10);
	arp_free(arp);
	cr_assert_eq(drops, ARP_ASKING + 10);
	start();
}

/* ---- liars ---- */

Test(arp, unsolicited_reply_is_ignored)
{
	arrive(REPLY, PEER, mac_b, SELF);
	cr_assert_null(arp_lookup(arp, PEER, now));
	arrive(REQUEST, PEER, mac_a, SELF);
	arrive(REPLY, PEER, mac_b, SELF);
	cr_assert(knows(PEER, mac_a));
	cr_assert_eq(stats.arp_bad, 2);
}

Test(arp, contradiction_makes_us_ask_and_the_answer_decides)
{
	arrive(REQUEST, PEER, mac_a, SELF);
	sends = 0;
	arrive(REQUEST, PEER, mac_b, PEER); /* a gratuitous announcement */
	cr_assert_eq(sends, 1);
	cr_assert_eq(sent_addr(24), PEER);
	cr_assert_eq(memcmp(sent_to, mac_a, 6), 0, "the known one is asked first");
	cr_assert(knows(PEER, mac_a));
	arrive(REPLY, PEER, mac_a, SELF);
	cr_assert(knows(PEER, mac_a));
	arrive(REQUEST, PEER, mac_b, SELF);
	cr_assert(knows(PEER, mac_a), "a question to us changes nothing by itself");
	arrive(REPLY, PEER, mac_b, SELF);
	cr_assert(knows(PEER, mac_b), "it has really moved");
}

Test(arp, moved_neighbour_is_found_by_the_last_question)
{
	arrive(REQUEST, PEER, mac_a, SELF);
	arrive(REQUEST, PEER, mac_b, PEER);
	for (unsigned int i = 1; i < ARP_TRIES; i++) {
		now.us += ARP_RETRY_US;
		arp_poll(arp, now);
	}
	cr_assert_eq(memcmp(sent_to, broadcast, 6), 0);
	now.us += ARP_RETRY_US;
	arp_poll(arp, now);
	cr_assert_null(arp_lookup(arp, PEER, now), "nobody answered: forgotten");
	cr_assert_eq(stats.arp_unresolved, 0, "nothing waited for it");
}

Test(arp, requests_never_evict)
{
	static const uint8_t mac_x[6] = {2, 9, 9, 9, 9, 9};
	int packet;
	arrive(REQUEST, PEER, mac_a, SELF);
	for (uint32_t i = 0; i < 60000; i++)
		arrive(REQUEST, 0x0a4d1000 + i, mac_x, SELF);
	cr_assert(knows(PEER, mac_a));
	arp_hold(arp, 0x0a4dff01, &packet, now); /* our own need finds a place in a full table */
	arrive(REPLY, 0x0a4dff01, mac_b, SELF);
	cr_assert(knows(0x0a4dff01, mac_b));
}

/* ---- age ---- */

Test(arp, old_entry_is_used_while_it_is_confirmed)
{
	arrive(REQUEST, PEER, mac_a, SELF);
	sends = 0;
	now.us += ARP_FRESH_US - 1;
	cr_assert(knows(PEER, mac_a));
	cr_assert_eq(sends, 0);
	now.us += 1;
	cr_assert(knows(PEER, mac_a));
	cr_assert_eq(sends, 1);
	cr_assert(knows(PEER, mac_a));
	cr_assert_eq(sends, 1, "one question at a time");
	arrive(REPLY, PEER, mac_a, SELF);
	now.us += ARP_STALE_US;
	cr_assert_null(arp_lookup(arp, PEER, now));
}

/* ---- our own address ---- */

Test(arp, announces_twice)
{
	arp_announce(arp, now);
	cr_assert_eq(sends, 1);
	cr_assert_eq(sent_addr(14), SELF);
	cr_assert_eq(sent_addr(24), SELF);
	cr_assert_eq(memcmp(sent_to, broadcast, 6), 0);
	now.us = arp_deadline(arp);
	arp_poll(arp, now);
	cr_assert_eq(sends, 2);
	cr_assert_eq(arp_deadline(arp), TIME_NEVER);
}

Test(arp, defends_its_address_but_not_in_a_duel)
{
	arrive(REQUEST, SELF, mac_b, SELF);
	cr_assert_eq(sends, 1);
	cr_assert_eq(sent_addr(24), SELF);
	arrive(REPLY, SELF, mac_b, PEER);
	cr_assert_eq(sends, 1);
	cr_assert_eq(stats.arp_conflicts, 2);
	now.us += 10 * US_PER_S;
	arrive(REPLY, SELF, mac_b, PEER);
	cr_assert_eq(sends, 2);
	arrive(REQUEST, SELF, self_mac, SELF); /* our own, come back */
	cr_assert_eq(stats.arp_conflicts, 3);
}

/* ---- what another worker of the host received and answers ---- */

Test(arp, an_overheard_request_is_learned_from_and_not_answered)
{
	arrive_by(arp_overhear, REQUEST, PEER, mac_a, SELF);
	cr_assert(knows(PEER, mac_a));
	cr_assert_eq(sends, 0);
	cr_assert_eq(stats.arp_requests, 0);
	arrive_by(arp_overhear, REQUEST, PEER + 10, mac_b, PEER);
	cr_assert_null(arp_lookup(arp, PEER + 10, now), "not about us");
}

Test(arp, an_overheard_answer_is_the_one_that_was_waited_for)
{
	int packet;
	arp_hold(arp, PEER, &packet, now);
	arrive_by(arp_overhear, REPLY, PEER, mac_a, SELF);
	cr_assert_eq(forwards, 1);
	cr_assert(knows(PEER, mac_a));
	arrive_by(arp_overhear, REPLY, PEER + 10, mac_b, SELF);
	cr_assert_null(arp_lookup(arp, PEER + 10, now), "nobody asked");
	cr_assert_eq(stats.arp_bad, 0, "another worker may have asked");
}

Test(arp, an_overheard_contradiction_makes_us_ask_and_a_conflict_is_left_to_the_receiver)
{
	arrive(REQUEST, PEER, mac_a, SELF);
	sends = 0;
	for (unsigned int i = 0; i < 3; i++)
		arrive_by(arp_overhear, REPLY, PEER, mac_b, SELF);
	cr_assert_eq(sends, 0, "an answer that nobody asked for is nothing");
	cr_assert(knows(PEER, mac_a));
	arrive_by(arp_overhear, REQUEST, PEER, mac_b, PEER);
	cr_assert_eq(sends, 1, "asked");
	cr_assert(knows(PEER, mac_a));
	arrive_by(arp_overhear, REPLY, SELF, mac_b, SELF);
	cr_assert_eq(sends, 1);
	cr_assert_eq(stats.arp_conflicts, 0);
}

Test(arp, overheard_garbage_is_nothing)
{
	uint8_t p[ARP_PACKET_LEN] = {0};
	for (size_t len = 0; len <= sizeof(p); len++)
		arp_overhear(arp, p, len, now);
	arrive_by(arp_overhear, REQUEST, PEER, broadcast, SELF);
	cr_assert_null(arp_lookup(arp, PEER, now));
	cr_assert_eq(stats.arp_bad, 0);
}
