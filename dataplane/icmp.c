/*
 * icmp.c - echo replies behind a token bucket.
 *
 * Layout: type (1), code (1), checksum over the whole message (2), identifier (2), sequence (2), data.
 */
#include <rte_ip.h>

#include "dataplane/icmp.h"

#define HEADER_LEN 8u
#define TYPE_ECHO_REPLY 0
#define TYPE_ECHO_REQUEST 8

static bool take_token(struct icmp *icmp, uint64_t now_us)
{
	if (!icmp->started) {
		*icmp = (struct icmp){.filled_us = now_us, .tokens = ICMP_BURST, .started = true};
	} else {
		uint64_t earned = (now_us - icmp->filled_us) * ICMP_RATE / US_PER_S;
		if (earned >= ICMP_BURST - icmp->tokens) {
			icmp->tokens = ICMP_BURST;
			icmp->filled_us = now_us;
		} else {
			icmp->tokens += (unsigned int)earned;
			icmp->filled_us += earned * US_PER_S / ICMP_RATE;
		}
	}
	if (icmp->tokens == 0)
		return false;
	icmp->tokens--;
	return true;
}

bool icmp_input(struct icmp *icmp, const uint8_t *p, size_t len, struct stats *stats, struct now now)
{
	if (len < HEADER_LEN || rte_raw_cksum(p, len) != 0xffff) {
		stats->icmp_bad++;
		return false;
	}
	if (p[0] != TYPE_ECHO_REQUEST || p[1] != 0)
		return false;
	if (!take_token(icmp, now.us)) {
		stats->icmp_limited++;
		return false;
	}
	stats->icmp_echo++;
	return true;
}

void icmp_reply(uint8_t *out, const uint8_t *request, size_t len)
{
	memcpy(out, request, len);
	out[0] = TYPE_ECHO_REPLY;
	out[2] = out[3] = 0;
	uint16_t sum = (uint16_t)~rte_raw_cksum(out, len); /* already in the byte order of the wire */
	memcpy(out + 2, &sum, 2);
}
