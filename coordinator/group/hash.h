/*
 * hash.h - SipHash-1-3, the keyed hash of all tables of a shard, and its random numbers.
 *
 * Clients choose group ids, member ids and topic names; without the shard's secret key they cannot aim them at one bucket.
 * The tweak is hashed as a word in front of the bytes: it ties a key to its owner (member ids to their group, partitions to their topic).
 */
#ifndef MUSTER_GROUP_HASH_H
#define MUSTER_GROUP_HASH_H

#include "muster/bytes.h"

struct hash_key {
	uint64_t k[2];
};

struct hash_sip {
	uint64_t v[4];
};

static inline uint64_t hash_rotl(uint64_t x, unsigned int n)
{
	return x << n | x >> (64 - n);
}

static inline void hash_round(struct hash_sip *s)
{
	uint64_t *v = s->v;
	v[0] += v[1];
	v[2] += v[3];
	v[1] = hash_rotl(v[1], 13) ^ v[0];
	v[3] = hash_rotl(v[3], 16) ^ v[2];
	v[0] = hash_rotl(v[0], 32);
	v[2] += v[1];
	v[0] += v[3];
	v[1] = hash_rotl(v[1], 17) ^ v[2];
	v[3] = hash_rotl(v[3], 21) ^ v[0];
	v[2] = hash_rotl(v[2], 32);
}

static inline void hash_word(struct hash_sip *s, uint64_t word)
{
	s->v[3] ^= word;
	hash_round(s);
	s->v[0] ^= word;
}

static inline uint64_t hash_bytes(const struct hash_key *key, uint64_t tweak, struct bytes b)
{
	struct hash_sip s = {{key->k[0] ^ 0x736f6d6570736575ull, key->k[1] ^ 0x646f72616e646f6dull,
			      key->k[0] ^ 0x6c7967656e657261ull, key->k[1] ^ 0x7465646279746573ull}};
	size_t len = b.len > 0 ? (size_t)b.len : 0;
	uint64_t word;

	hash_word(&s, tweak);
	size_t at = 0;
	for (; at + 8 <= len; at += 8) {
		memcpy(&word, b.p + at, 8);
		hash_word(&s, word);
	}
	word = 0;
	if (at < len)
		memcpy(&word, b.p + at, len - at);
	hash_word(&s, word | (uint64_t)(len + 8) << 56);
	s.v[2] ^= 0xff;
	hash_round(&s);
	hash_round(&s);
	hash_round(&s);
	return s.v[0] ^ s.v[1] ^ s.v[2] ^ s.v[3];
}

#endif
