/*
 * host.c - see host.h.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "coordinator/forward.h"
#include "host.h"

static struct host_ring *ring_of(struct host *host, unsigned int from, unsigned int to)
{
	return &host->rings[from * HOST_WORKERS + to];
}

static bool box_send(struct mailbox *mailbox, unsigned int to, const struct mail *mail)
{
	struct host *host = ((struct host_box *)mailbox)->host;
	struct host_ring *ring = ring_of(host, mailbox->self, to);
	cr_assert(to < host->workers && to != mailbox->self);
	if (ring->len == HOST_MAIL)
		return false;
	ring->mail[(ring->first + ring->len++) % HOST_MAIL] = *mail;
	if (ring->len > host->longest)
		host->longest = ring->len;
	return true;
}

static const struct mailbox_ops box_ops = {.send = box_send};

struct host *host_new(unsigned int workers, unsigned int max_sessions)
{
	struct host *host = calloc(1, sizeof(*host));
	host->rings = calloc(HOST_WORKERS * HOST_WORKERS, sizeof(struct host_ring));
	host->workers = workers;
	host->random = 88172645463325252ull;
	for (unsigned int w = 0; w < workers; w++) {
		host->boxes[w] = (struct host_box){{&box_ops, w, workers, HOST_MAIL}, host};
		host->rigs[w] = rig_new_worker(50, workers, max_sessions, &host->boxes[w].mailbox);
	}
	return host;
}

void host_free(struct host *host)
{
	host_settle(host);
	cr_assert_eq(host->kinds[FORWARD_REQUEST], host->kinds[FORWARD_ANSWER] + host->taken_back, "each request has one end");
	cr_assert_eq(host->kinds[FORWARD_CANCEL], host->kinds[FORWARD_CANCELLED]);
	for (unsigned int w = 0; w < host->workers; w++) {
		const struct stats *stats = &host->rigs[w]->stats;
		cr_assert_eq(stats->requests_parked_now, 0, "worker %u has %llu requests parked", w, (unsigned long long)stats->requests_parked_now);
		cr_assert_eq(stats->session_opened, stats->session_closed);
	}
	for (unsigned int w = 0; w < host->workers; w++)
		rig_free(host->rigs[w]);
	free(host->rings);
	free(host);
}

uint64_t host_random(struct host *host)
{
	host->random ^= host->random << 13;
	host->random ^= host->random >> 7;
	host->random ^= host->random << 17;
	return host->random;
}

bool host_deliver(struct host *host, unsigned int from, unsigned int to)
{
	struct host_ring *ring = ring_of(host, from, to);
	if (ring->len == 0)
		return false;
	struct mail mail = ring->mail[ring->first];
	ring->first = (ring->first + 1) % HOST_MAIL;
	ring->len--;
	host->kinds[mail.kind]++;
	host->taken_back += mail.kind == FORWARD_CANCELLED && mail.arg != 0;
	node_service_ops.mail(host->rigs[to]->node, from, &mail, host->rigs[to]->now);
	return true;
}

static void pump(struct rig *rig)
{
	for (struct conn *c = rig->conns; c != NULL; c = c->next)
		conn_pump(c);
}

void host_step(struct host *host)
{
	unsigned int from = (unsigned int)(host_random(host) % host->workers), to = (unsigned int)(host_random(host) % host->workers);
	if (from != to && host_deliver(host, from, to))
		return;
	rig_round(host->rigs[to]);
	pump(host->rigs[to]);
}

void host_settle(struct host *host)
{
	for (unsigned int quiet = 0; quiet < 4; quiet++) {
		for (unsigned int from = 0; from < host->workers; from++)
			for (unsigned int to = 0; to < host->workers; to++)
				while (host_deliver(host, from, to))
					quiet = 0;
		for (unsigned int w = 0; w < host->workers; w++) {
			rig_round(host->rigs[w]);
			pump(host->rigs[w]);
		}
	}
}

void host_advance(struct host *host, uint64_t ms)
{
	for (uint64_t i = 0; i < ms; i++) {
		for (unsigned int w = 0; w < host->workers; w++)
			rig_advance(host->rigs[w], 1);
		host_settle(host);
	}
}

unsigned int host_owner(const struct host *host, const char *group)
{
	const struct image *image = host->rigs[0]->image;
	return image_shard_node(image, image_shard_of(image, bytes_str(group)));
}

const char *host_group(const struct host *host, unsigned int worker, unsigned int i, char out[32])
{
	char name[32];
	for (unsigned int n = 0, seen = 0; n < 100000; n++) {
		snprintf(name, sizeof(name), "group-%u", n);
		if (host_owner(host, name) == worker && seen++ == i)
			return memcpy(out, name, sizeof(name));
	}
	cr_assert(false, "worker %u owns no such group", worker);
	return out;
}
