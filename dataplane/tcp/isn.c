/*
 * isn.c - keyed hash of the connection's tuple: initial sequence numbers and timestamp offsets.
 *
 * SipHash-2-4: four 64-bit words of state, two mixing rounds for each 8-byte little-endian word of the message, the length
 * modulo 256 in the top byte of the last word, four rounds to finish.
 */
#include <string.h>

#include "dataplane/tcp/isn.h"

struct sip {
	uint64_t v0, v1, v2, v3;
};

static uint64_t rotate(uint64_t x, unsigned int bits)
{
	return x << bits | x >> (64 - bits);
}

static void sip_round(struct sip *s)
{
	s->v0 += s->v1;
	s->v2 += s->v3;
	s->v1 = rotate(s->v1, 13) ^ s->v0;
	s->v3 = rotate(s->v3, 16) ^ s->v2;
	s->v0 = rotate(s->v0, 32);
	s->v2 += s->v1;
	s->v0 += s->v3;
	s->v1 = rotate(s->v1, 17) ^ s->v2;
	s->v3 = rotate(s->v3, 21) ^ s->v0;
	s->v2 = rotate(s->v2, 32);
}

static void sip_word(struct sip *s, uint64_t word)
{
	s->v3 ^= word;
	sip_round(s);
	sip_round(s);
	s->v0 ^= word;
}

uint64_t tcp_siphash(const uint64_t key[2], const void *p, size_t len)
{
	struct sip s = {
		.v0 = key[0] ^ 0x736f6d6570736575,
		.v1 = key[1] ^ 0x646f72616e646f6d,
		.v2 = key[0] ^ 0x6c7967656e657261,
		.v3 = key[1] ^ 0x7465646279746573,
	};
	const uint8_t *byte = p;
	size_t whole = len & ~(size_t)7;
	for (size_t i = 0; i < whole; i += 8) {
		uint64_t word;
		memcpy(&word, byte + i, 8);
		sip_word(&s, word);
	}
	uint64_t last = (uint64_t)len << 56;
	for (size_t i = whole; i < len; i++)
		last |= (uint64_t)byte[i] << (8 * (i - whole));
	sip_word(&s, last);
	s.v2 ^= 0xff;
	for (int i = 0; i < 4; i++)
		sip_round(&s);
	return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

/* The purpose separates the two hashes of one tuple. */
static uint32_t tuple_hash(const uint64_t secret[2], const struct tcp_tuple *tuple, uint32_t purpose)
{
	uint32_t words[4] = {
		tuple->local_addr,
		tuple->remote_addr,
		(uint32_t)tuple->local_port << 16 | tuple->remote_port,
		purpose,
	};
	return (uint32_t)tcp_siphash(secret, words, sizeof(words));
}

uint32_t tcp_isn(const uint64_t secret[2], const struct tcp_tuple *tuple, struct now now)
{
	return tuple_hash(secret, tuple, 1) + (uint32_t)(now.us / 4);
}

uint32_t tcp_timestamp_offset(const uint64_t secret[2], const struct tcp_tuple *tuple)
{
	return tuple_hash(secret, tuple, 2);
}
