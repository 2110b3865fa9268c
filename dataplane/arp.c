/*
 * arp.c - the neighbour table: 512 sets of 8 entries, found by a keyed hash of the address.
 *
 *   FREE --hold--> ASKING --answer--> KNOWN --used when no longer fresh, or contradicted--> VERIFYING --answer--> KNOWN
 *                    |                                                                         |
 *                    +----------------------- no answer after ARP_TRIES -----------------------+--> FREE
 *
 * Invariants:
 *  1. An answer is believed only while its entry is ASKING or VERIFYING; a request to us may fill an ASKING or FREE
 *     entry and confirm a KNOWN one with the same MAC. Nothing unasked ever changes the MAC of a known neighbour: a
 *     contradiction makes us ask.
 *  2. `asking` lists exactly the entries that are ASKING or VERIFYING; only those have deadlines, and only ASKING ones
 *     hold a packet.
 *  3. Requests of others never evict: only our own need (arp_hold) replaces the entry that was used longest ago.
 */
#include <rte_byteorder.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/arp.h"
#include "muster/check.h"

#define WAYS 8u
#define SETS (ARP_ENTRIES / WAYS)
#define ANNOUNCE_GAP_US (2u * US_PER_S)
#define DEFEND_GAP_US (10u * US_PER_S) /* RFC 5227 2.4 */
#define OP_REQUEST 1
#define OP_REPLY 2

enum entry_state { FREE, ASKING, KNOWN, VERIFYING };

struct entry {
	uint32_t addr;
	uint8_t mac[6];
	uint8_t state; /* enum entry_state */
	uint8_t tries;
	uint16_t slot; /* in `asking`, while it is listed */
	uint64_t confirmed_us;
	uint64_t used_us;
	uint64_t retry_us;
	void *packet;
};

struct arp {
	const struct ipv4_self *self;
	const struct arp_ops *ops;
	void *ctx;
	struct stats *stats;
	uint64_t secret;
	uint64_t announce_us; /* TIME_NEVER: nothing left to announce */
	uint64_t defended_us;
	unsigned int announcements;
	unsigned int n_asking;
	uint8_t mac[6];
	struct entry *asking[ARP_ASKING];
	struct entry entries[ARP_ENTRIES];
};

static const uint8_t broadcast[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
static const uint8_t unknown[6];

struct arp *arp_new(const struct ipv4_self *self, const uint8_t mac[6], uint64_t secret, const struct arp_ops *ops, void *ctx,
		    struct stats *stats)
{
	struct arp *arp = calloc(1, sizeof(*arp));
	if (arp == NULL)
		return NULL;
	arp->self = self;
	arp->ops = ops;
	arp->ctx = ctx;
	arp->stats = stats;
	arp->secret = secret | 1;
	arp->announce_us = TIME_NEVER;
	memcpy(arp->mac, mac, 6);
	return arp;
}

void arp_free(struct arp *arp)
{
	for (unsigned int i = 0; i < arp->n_asking; i++)
		if (arp->asking[i]->packet != NULL)
			arp->ops->drop(arp->ctx, arp->asking[i]->packet);
	free(arp);
}

size_t arp_memory_needed(void)
{
	return sizeof(struct arp);
}

/* ---- packets ---- */

static void send_packet(struct arp *arp, uint16_t op, const uint8_t target_mac[6], uint32_t target, const uint8_t dst[6])
{
	uint8_t p[ARP_PACKET_LEN] = {0, 1, 8, 0, 6, 4, 0, (uint8_t)op};
	uint32_t self_be = rte_cpu_to_be_32(arp->self->addr), target_be = rte_cpu_to_be_32(target);
	memcpy(p + 8, arp->mac, 6);
	memcpy(p + 14, &self_be, 4);
	memcpy(p + 18, target_mac, 6);
	memcpy(p + 24, &target_be, 4);
	arp->ops->send(arp->ctx, p, dst);
}

/* A neighbour whose MAC we think we know is asked directly; the last question goes to everybody. */
static void ask(struct arp *arp, struct entry *e, struct now now)
{
	bool direct = e->state == VERIFYING && e->tries + 1u < ARP_TRIES;
	e->tries++;
	e->retry_us = now.us + ARP_RETRY_US;
	send_packet(arp, OP_REQUEST, unknown, e->addr, direct ? e->mac : broadcast);
}

/* ---- entries ---- */

static struct entry *set_of(struct arp *arp, uint32_t addr)
{
	uint64_t h = (addr + 0x9e3779b97f4a7c15ull) * arp->secret;
	return &arp->entries[(h >> 40) % SETS * WAYS];
}

static struct entry *find(struct arp *arp, uint32_t addr)
{
	struct entry *set = set_of(arp, addr);
	for (unsigned int i = 0; i < WAYS; i++)
		if (set[i].addr == addr && set[i].state != FREE)
			return &set[i];
	return NULL;
}

static bool is_listed(const struct entry *e)
{
	return e->state == ASKING || e->state == VERIFYING;
}

static void list(struct arp *arp, struct entry *e, enum entry_state state)
{
	CHECK(!is_listed(e) && arp->n_asking < ARP_ASKING);
	e->state = (uint8_t)state;
	e->tries = 0;
	e->slot = (uint16_t)arp->n_asking;
	arp->asking[arp->n_asking++] = e;
}

static void unlist(struct arp *arp, struct entry *e, enum entry_state state)
{
	CHECK(is_listed(e) && arp->asking[e->slot] == e);
	struct entry *last = arp->asking[--arp->n_asking];
	arp->asking[e->slot] = last;
	last->slot = e->slot;
	e->state = (uint8_t)state;
}

static void confirm(struct arp *arp, struct entry *e, const uint8_t mac[6], struct now now)
{
	memcpy(e->mac, mac, 6);
	e->confirmed_us = now.us;
	if (is_listed(e))
		unlist(arp, e, KNOWN);
	if (e->packet != NULL) {
		void *packet = e->packet;
		e->packet = NULL;
		arp->ops->forward(arp->ctx, packet, e->mac);
	}
}

static void give_up(struct arp *arp, struct entry *e)
{
	unlist(arp, e, FREE);
	if (e->packet != NULL) {
		arp->stats->arp_unresolved++;
		arp->ops->drop(arp->ctx, e->packet);
		e->packet = NULL;
	}
}

static void verify(struct arp *arp, struct entry *e, struct now now)
{
	if (e->state != KNOWN || arp->n_asking == ARP_ASKING)
		return;
	list(arp, e, VERIFYING);
	ask(arp, e, now);
}

/* A place for a new neighbour in its set: a free or stale entry, or (evict) the KNOWN one that was used longest ago. */
static struct entry *place(struct arp *arp, uint32_t addr, bool evict, struct now now)
{
	struct entry *set = set_of(arp, addr), *oldest = NULL;
	for (unsigned int i = 0; i < WAYS; i++) {
		struct entry *e = &set[i];
		if (e->state == FREE)
			return e;
		if (e->state == KNOWN && (oldest == NULL || e->used_us < oldest->used_us))
			oldest = e;
	}
	return oldest != NULL && (evict || now.us - oldest->confirmed_us >= ARP_STALE_US) ? oldest : NULL;
}

/* Somebody asked us, and so told us about themselves (invariant 1). */
static void learn(struct arp *arp, uint32_t addr, const uint8_t mac[6], struct now now)
{
	struct entry *e = find(arp, addr);
	if (e == NULL) {
		e = place(arp, addr, false, now);
		if (e == NULL)
			return;
		*e = (struct entry){.addr = addr, .state = KNOWN, .used_us = now.us};
		confirm(arp, e, mac, now);
	} else if (e->state == ASKING || memcmp(e->mac, mac, 6) == 0) {
		confirm(arp, e, mac, now);
	} else {
		verify(arp, e, now);
	}
}

/* ---- input ---- */

/* A neighbour that we know spoke with another MAC. */
static void contradict(struct arp *arp, struct entry *e, const uint8_t mac[6], struct now now)
{
	if (e != NULL && e->state == KNOWN && memcmp(e->mac, mac, 6) != 0)
		verify(arp, e, now);
}

static void input_request(struct arp *arp, uint32_t sender, uint32_t target, const uint8_t *mac, bool local, struct now now)
{
	if (target != arp->self->addr) {
		contradict(arp, local ? find(arp, sender) : NULL, mac, now);
		return;
	}
	arp->stats->arp_requests++;
	send_packet(arp, OP_REPLY, mac, sender, mac);
	if (local)
		learn(arp, sender, mac, now);
}

static void input_reply(struct arp *arp, uint32_t sender, const uint8_t *mac, struct now now)
{
	struct entry *e = find(arp, sender);
	if (e == NULL || !is_listed(e)) {
		arp->stats->arp_bad++;
		return;
	}
	arp->stats->arp_replies++;
	confirm(arp, e, mac, now);
}

/* Somebody else claims our address: say again whose it is, but not in a duel. */
static void defend(struct arp *arp, struct now now)
{
	arp->stats->arp_conflicts++;
	if (arp->defended_us != 0 && now.us - arp->defended_us < DEFEND_GAP_US)
		return;
	arp->defended_us = now.us;
	send_packet(arp, OP_REQUEST, unknown, arp->self->addr, broadcast);
}

struct packet {
	const uint8_t *mac; /* of the sender */
	uint32_t sender, target;
	uint8_t op;
	bool local; /* the sender is a neighbour */
};

/* False: no ARP packet of a single host. */
static bool parse(const struct arp *arp, const uint8_t *p, size_t len, struct packet *out)
{
	static const uint8_t kind[6] = {0, 1, 8, 0, 6, 4}; /* Ethernet, IPv4, and the lengths of their addresses */
	uint32_t sender, target;
	if (len < ARP_PACKET_LEN || memcmp(p, kind, sizeof(kind)) != 0 || p[6] != 0 || (p[7] != OP_REQUEST && p[7] != OP_REPLY))
		return false;
	const uint8_t *mac = p + 8;
	if ((mac[0] & 1) != 0 || memcmp(mac, unknown, 6) == 0)
		return false;
	memcpy(&sender, p + 14, 4);
	memcpy(&target, p + 24, 4);
	*out = (struct packet){mac, rte_be_to_cpu_32(sender), rte_be_to_cpu_32(target), p[7], false};
	out->local = ipv4_is_host(arp->self, out->sender) && ipv4_next_hop(arp->self, out->sender) == out->sender;
	return true;
}

void arp_input(struct arp *arp, const uint8_t *p, size_t len, struct now now)
{
	struct packet in;
	if (!parse(arp, p, len, &in)) {
		arp->stats->arp_bad++;
		return;
	}
	if (in.sender == arp->self->addr) {
		if (memcmp(in.mac, arp->mac, 6) != 0)
			defend(arp, now);
		return;
	}
	if (in.op == OP_REQUEST)
		input_request(arp, in.sender, in.target, in.mac, in.local, now);
	else
		input_reply(arp, in.sender, in.mac, now);
}

void arp_overhear(struct arp *arp, const uint8_t *p, size_t len, struct now now)
{
	struct packet in;
	if (!parse(arp, p, len, &in) || !in.local || in.sender == arp->self->addr)
		return;
	struct entry *e = find(arp, in.sender);
	if (in.op == OP_REQUEST && in.target == arp->self->addr)
		learn(arp, in.sender, in.mac, now);
	else if (in.op == OP_REQUEST)
		contradict(arp, e, in.mac, now);
	else if (e != NULL && is_listed(e))
		input_reply(arp, in.sender, in.mac, now);
}

/* ---- use ---- */

const uint8_t *arp_lookup(struct arp *arp, uint32_t addr, struct now now)
{
	struct entry *e = find(arp, addr);
	if (unlikely(e == NULL || e->state == ASKING))
		return NULL;
	uint64_t age = now.us - e->confirmed_us;
	if (unlikely(age >= ARP_FRESH_US)) {
		if (age >= ARP_STALE_US && e->state == KNOWN) {
			e->state = FREE;
			return NULL;
		}
		verify(arp, e, now);
	}
	e->used_us = now.us;
	return e->mac;
}

void arp_hold(struct arp *arp, uint32_t addr, void *packet, struct now now)
{
	struct entry *e = find(arp, addr);
	if (e == NULL) {
		e = arp->n_asking < ARP_ASKING ? place(arp, addr, true, now) : NULL;
		if (e == NULL) {
			arp->stats->arp_unresolved++;
			arp->ops->drop(arp->ctx, packet);
			return;
		}
		*e = (struct entry){.addr = addr, .used_us = now.us};
		list(arp, e, ASKING);
		ask(arp, e, now);
	}
	CHECK(e->state == ASKING);
	if (e->packet != NULL) {
		arp->stats->arp_unresolved++;
		arp->ops->drop(arp->ctx, e->packet);
	}
	e->packet = packet;
}

/* ---- time ---- */

void arp_announce(struct arp *arp, struct now now)
{
	arp->announcements = 2;
	arp->announce_us = now.us;
	arp_poll(arp, now);
}

void arp_poll(struct arp *arp, struct now now)
{
	if (arp->announce_us <= now.us) {
		send_packet(arp, OP_REQUEST, unknown, arp->self->addr, broadcast);
		arp->announce_us = --arp->announcements == 0 ? TIME_NEVER : now.us + ANNOUNCE_GAP_US;
	}
	for (unsigned int i = arp->n_asking; i-- > 0;) {
		struct entry *e = arp->asking[i];
		if (e->retry_us > now.us)
			continue;
		if (e->tries < ARP_TRIES)
			ask(arp, e, now);
		else
			give_up(arp, e);
	}
}

uint64_t arp_deadline(const struct arp *arp)
{
	uint64_t deadline = arp->announce_us;
	for (unsigned int i = 0; i < arp->n_asking; i++)
		if (arp->asking[i]->retry_us < deadline)
			deadline = arp->asking[i]->retry_us;
	return deadline;
}
