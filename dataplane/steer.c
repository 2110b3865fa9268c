/*
 * steer.c - from a frame's TCP port to its worker.
 *
 *   the port that worker n listens on worker n
 *   STEER_EPHEMERAL_FIRST + i         worker i mod workers, for what we opened ourselves
 *   any other                         whoever has received it answers (with a reset)
 */
#include <string.h>

#include "dataplane/steer.h"

#define ETHER_LEN 14u
#define IPV4_LEN 20u
#define ARP_LEN 28u /* operation at 6, addresses of sender and target at 14 and 24 */
#define PROTOCOL_TCP 6
#define FRAGMENT_OFFSET 0x1fff

static uint16_t u16_at(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

/* The worker that listens on a port; `workers` or more: nobody does. */
static unsigned int listener(const struct steer *steer, uint16_t port)
{
	if (likely(steer->each == NULL))
		return (unsigned int)port - steer->port;
	for (unsigned int n = 0; n < steer->workers; n++)
		if (steer->each[n].port == port)
			return n;
	return steer->workers;
}

static unsigned int steer_port(const struct steer *steer, unsigned int self, uint16_t port)
{
	unsigned int n = listener(steer, port);
	if (n < steer->workers)
		return n;
	n = (unsigned int)port - STEER_EPHEMERAL_FIRST;
	return n < STEER_EPHEMERAL_COUNT ? n % steer->workers : self;
}

unsigned int steer_frame(const struct steer *steer, unsigned int self, const uint8_t *frame, size_t len)
{
	const uint8_t *ip = frame + ETHER_LEN;
	if (len < ETHER_LEN + IPV4_LEN + 4 || u16_at(frame + 12) != 0x0800 || ip[9] != PROTOCOL_TCP || (u16_at(ip + 6) & FRAGMENT_OFFSET) != 0)
		return self;
	size_t header = (size_t)(ip[0] & 15) * 4;
	if (header < IPV4_LEN || len < ETHER_LEN + header + 4)
		return self;
	return steer_port(steer, self, u16_at(ip + header + 2));
}

uint16_t steer_ephemeral(const struct steer *steer, unsigned int self, unsigned int i)
{
	uint16_t port = (uint16_t)(STEER_EPHEMERAL_FIRST + i * steer->workers + self);
	return listener(steer, port) < steer->workers ? 0 : port;
}

bool steer_is_arp_news(const uint8_t *frame, size_t len)
{
	const uint8_t *arp = frame + ETHER_LEN;
	if (len < ETHER_LEN + ARP_LEN || u16_at(frame + 12) != 0x0806)
		return false;
	return u16_at(arp + 6) == 2 || memcmp(arp + 14, arp + 24, 4) == 0;
}
