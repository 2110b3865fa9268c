/*
 * topic_id.c - SHA-1 (FIPS 180-4) over namespace and name, cut to a UUID of version 5. SHA-1 because RFC 9562 has it so; nothing is kept secret by it.
 */
#include "muster/check.h"

#include "coordinator/topic_id.h"

#define BLOCK 64

/* 6f1d8e52-4c0b-5a7e-9b3f-2d6a17c4e880 */
static const struct uuid namespace = {
	{0x6f, 0x1d, 0x8e, 0x52, 0x4c, 0x0b, 0x5a, 0x7e, 0x9b, 0x3f, 0x2d, 0x6a, 0x17, 0xc4, 0xe8, 0x80}};

struct sha1 {
	uint32_t h[5];
	uint8_t block[BLOCK];
	size_t used;	/* of the block */
	uint64_t total; /* bytes */
};

static uint32_t rotate(uint32_t v, unsigned int n)
{
	return v << n | v >> (32 - n);
}

static void sha1_block(struct sha1 *s)
{
	uint32_t w[80];
	struct reader r = reader_of(s->block, BLOCK);
	for (unsigned int i = 0; i < 16; i++)
		w[i] = reader_u32(&r);
	for (unsigned int i = 16; i < 80; i++)
		w[i] = rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
	uint32_t a = s->h[0], b = s->h[1], c = s->h[2], d = s->h[3], e = s->h[4];
	for (unsigned int i = 0; i < 80; i++) {
		uint32_t f, k;
		if (i < 20)
			f = (b & c) | (~b & d), k = 0x5a827999;
		else if (i < 40)
			f = b ^ c ^ d, k = 0x6ed9eba1;
		else if (i < 60)
			f = (b & c) | (b & d) | (c & d), k = 0x8f1bbcdc;
		else
			f = b ^ c ^ d, k = 0xca62c1d6;
		uint32_t t = rotate(a, 5) + f + e + k + w[i];
		e = d, d = c, c = rotate(b, 30), b = a, a = t;
	}
	s->h[0] += a, s->h[1] += b, s->h[2] += c, s->h[3] += d, s->h[4] += e;
}

static void sha1_add(struct sha1 *s, const uint8_t *p, size_t len)
{
	s->total += len;
	for (size_t i = 0; i < len; i++) {
		s->block[s->used++] = p[i];
		if (s->used == BLOCK) {
			sha1_block(s);
			s->used = 0;
		}
	}
}

static void sha1_end(struct sha1 *s, uint8_t digest[20])
{
	static const uint8_t padding[BLOCK] = {0x80};
	uint64_t bits = s->total * 8;
	sha1_add(s, padding, s->used < BLOCK - 8 ? BLOCK - 8 - s->used : 2 * BLOCK - 8 - s->used);
	CHECK(s->used == BLOCK - 8);
	struct writer length = writer_of(s->block + s->used, 8);
	writer_u64(&length, bits);
	sha1_block(s);
	struct writer w = writer_of(digest, 20);
	for (unsigned int i = 0; i < 5; i++)
		writer_u32(&w, s->h[i]);
}

struct uuid topic_id_of(struct bytes name)
{
	struct sha1 s = {.h = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0}};
	uint8_t digest[20];
	struct uuid id;
	sha1_add(&s, namespace.b, sizeof(namespace.b));
	sha1_add(&s, name.p, (size_t)name.len);
	sha1_end(&s, digest);
	memcpy(id.b, digest, sizeof(id.b));
	id.b[6] = (uint8_t)((id.b[6] & 0x0f) | 0x50);
	id.b[8] = (uint8_t)((id.b[8] & 0x3f) | 0x80);
	return id;
}
