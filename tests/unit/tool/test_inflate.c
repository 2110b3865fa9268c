/*
 * test_inflate.c - what each codec made comes back; what it cannot have made is refused, whatever it says about its own length.
 */
#include <criterion/criterion.h>
#include <lz4frame.h>
#include <snappy-c.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

#include "coordinator/tool/inflate.h"

enum { GZIP = 1, SNAPPY, LZ4, ZSTD };

#define PLAIN_LEN 300000

static uint8_t *plain(void)
{
	uint8_t *p = malloc(PLAIN_LEN);
	for (size_t i = 0; i < PLAIN_LEN; i++)
		p[i] = (uint8_t)(i * i / 257 + i / 1000);
	return p;
}

static size_t pack_gzip(const uint8_t *in, size_t len, uint8_t *out, size_t cap)
{
	z_stream z = {.next_in = (Bytef *)(uintptr_t)in, .avail_in = (uInt)len, .next_out = out, .avail_out = (uInt)cap};
	cr_assert_eq(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
	cr_assert_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
	size_t n = cap - z.avail_out;
	deflateEnd(&z);
	return n;
}

/* In the frame of Java's library, in chunks of 32 KiB. */
static size_t pack_snappy(const uint8_t *in, size_t len, uint8_t *out, size_t cap)
{
	static const uint8_t head[] = {0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0, 0, 0, 0, 1, 0, 0, 0, 1};
	struct writer w = writer_of(out, cap);
	writer_raw(&w, head, sizeof(head));
	for (size_t at = 0; at < len; at += 32768) {
		size_t part = len - at < 32768 ? len - at : 32768, n = (size_t)(w.end - w.p) - 4;
		cr_assert_eq(snappy_compress((const char *)in + at, part, (char *)w.p + 4, &n), SNAPPY_OK);
		writer_u32(&w, (uint32_t)n);
		writer_room(&w, n);
	}
	return writer_len(&w);
}

static size_t pack(unsigned int codec, const uint8_t *in, size_t len, uint8_t *out, size_t cap)
{
	switch (codec) {
	case GZIP:
		return pack_gzip(in, len, out, cap);
	case SNAPPY:
		return pack_snappy(in, len, out, cap);
	case LZ4:
		return LZ4F_compressFrame(out, cap, in, len, NULL);
	default:
		return ZSTD_compress(out, cap, in, len, 3);
	}
}

Test(inflate, there_and_back)
{
	static const size_t lengths[] = {0, 1, 1000, PLAIN_LEN};
	uint8_t *in = plain(), *packed = malloc(2 * PLAIN_LEN);
	struct inflate_buffer out = {NULL, 0, 0};
	for (unsigned int codec = GZIP; codec <= ZSTD; codec++) {
		for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
			size_t n = pack(codec, in, lengths[i], packed, 2 * PLAIN_LEN);
			cr_assert(inflate_records(codec, bytes_of(packed, n), &out), "%s, %zu bytes", inflate_name(codec), lengths[i]);
			cr_assert(out.len == lengths[i] && (out.len == 0 || memcmp(out.p, in, out.len) == 0));
		}
	}
	free(out.p);
	free(in);
	free(packed);
}

Test(inflate, cut_or_lengthened)
{
	uint8_t *in = plain(), *packed = malloc(2 * PLAIN_LEN);
	struct inflate_buffer out = {NULL, 0, 0};
	for (unsigned int codec = GZIP; codec <= ZSTD; codec++) {
		size_t n = pack(codec, in, 5000, packed, 2 * PLAIN_LEN);
		for (size_t cut = 1; cut < n; cut += n / 20 + 1)
			cr_assert(!inflate_records(codec, bytes_of(packed, n - cut), &out) || out.len < 5000, "%s cut by %zu", inflate_name(codec), cut);
		memset(packed + n, 0x55, 10);
		cr_assert(!inflate_records(codec, bytes_of(packed, n + 10), &out), "%s", inflate_name(codec));
	}
	cr_assert(!inflate_records(5, bytes_of(packed, 10), &out) && inflate_name(5) == NULL && inflate_name(0) == NULL);
	free(out.p);
	free(in);
	free(packed);
}

/* A few bytes that say they are gigabytes. */
Test(inflate, bombs)
{
	size_t large = INFLATE_MAX + 1000;
	uint8_t *zeros = calloc(1, large), *packed = malloc(large / 2);
	struct inflate_buffer out = {NULL, 0, 0};
	size_t n = ZSTD_compress(packed, large / 2, zeros, large, 1);
	cr_assert(n < large / 100 && !inflate_records(ZSTD, bytes_of(packed, n), &out));
	n = pack_gzip(zeros, large, packed, large / 2);
	cr_assert(!inflate_records(GZIP, bytes_of(packed, n), &out));
	static const uint8_t snappy[] = {0xff, 0xff, 0xff, 0xff, 0x0f, 0};
	cr_assert(!inflate_records(SNAPPY, bytes_of(snappy, sizeof(snappy)), &out));
	free(out.p);
	free(zeros);
	free(packed);
}
