/*
 * inflate.c - see inflate.h. Snappy comes in the frame of Java's library, which is not snappy's own:
 *   82 'SNAPPY' 00 | version i32 | compatible version i32 | chunks: length i32, a snappy block
 */
#include <lz4frame.h>
#include <snappy-c.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

#include "coordinator/tool/inflate.h"

#define FIRST_ROOM ((size_t)64 << 10)

enum { CODEC_GZIP = 1, CODEC_SNAPPY, CODEC_LZ4, CODEC_ZSTD };

const char *inflate_name(unsigned int codec)
{
	static const char *const names[] = {[CODEC_GZIP] = "gzip", [CODEC_SNAPPY] = "snappy", [CODEC_LZ4] = "lz4", [CODEC_ZSTD] = "zstd"};
	return codec < ARRAY_LEN(names) ? names[codec] : NULL;
}

/* Room for `more` bytes behind out->len. */
static bool room(struct inflate_buffer *out, size_t more)
{
	size_t cap = out->cap == 0 ? FIRST_ROOM : out->cap;
	if (more > INFLATE_MAX - out->len)
		return false;
	while (cap - out->len < more)
		cap *= 2;
	uint8_t *p = cap == out->cap ? out->p : realloc(out->p, cap);
	if (p == NULL)
		return false;
	out->p = p;
	out->cap = cap;
	return true;
}

static bool inflate_gzip(struct bytes in, struct inflate_buffer *out)
{
	z_stream z = {.next_in = (Bytef *)(uintptr_t)in.p, .avail_in = (uInt)in.len};
	if (inflateInit2(&z, 15 + 16) != Z_OK)
		return false;
	int result = Z_OK;
	while (result == Z_OK && room(out, 1)) {
		size_t left = out->cap - out->len;
		z.next_out = out->p + out->len;
		z.avail_out = (uInt)left;
		result = inflate(&z, Z_NO_FLUSH);
		out->len += left - z.avail_out;
	}
	inflateEnd(&z);
	return result == Z_STREAM_END && z.avail_in == 0;
}

static bool inflate_snappy_block(struct bytes in, struct inflate_buffer *out)
{
	size_t len;
	const char *p = (const char *)in.p;
	if (snappy_uncompressed_length(p, (size_t)in.len, &len) != SNAPPY_OK || len > INFLATE_MAX || !room(out, len) ||
	    snappy_uncompress(p, (size_t)in.len, (char *)out->p + out->len, &len) != SNAPPY_OK)
		return false;
	out->len += len;
	return true;
}

static bool inflate_snappy(struct bytes in, struct inflate_buffer *out)
{
	static const uint8_t magic[8] = {0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0};
	struct reader r = reader_of(in.p, (size_t)in.len);
	const uint8_t *head = reader_take(&r, sizeof(magic));
	if (head == NULL || memcmp(head, magic, sizeof(magic)) != 0)
		return inflate_snappy_block(in, out);
	reader_u32(&r);
	reader_u32(&r);
	while (!r.bad && reader_left(&r) > 0) {
		uint32_t len = reader_u32(&r);
		const uint8_t *p = reader_take(&r, len);
		if (p == NULL || !inflate_snappy_block(bytes_of(p, len), out))
			return false;
	}
	return !r.bad;
}

static bool inflate_lz4(struct bytes in, struct inflate_buffer *out)
{
	LZ4F_dctx *ctx;
	if (LZ4F_isError(LZ4F_createDecompressionContext(&ctx, LZ4F_VERSION)))
		return false;
	size_t at = 0, hint = 1;
	bool ok = true;
	while (ok && hint != 0) {
		ok = room(out, 1);
		size_t got = ok ? out->cap - out->len : 0, used = (size_t)in.len - at;
		hint = ok ? LZ4F_decompress(ctx, out->p + out->len, &got, in.p + at, &used, NULL) : 0;
		ok = ok && !LZ4F_isError(hint) && (got > 0 || used > 0);
		at += used;
		out->len += got;
	}
	LZ4F_freeDecompressionContext(ctx);
	return ok && at == (size_t)in.len;
}

static bool inflate_zstd(struct bytes in, struct inflate_buffer *out)
{
	ZSTD_DStream *ctx = ZSTD_createDStream();
	ZSTD_inBuffer from = {in.p, (size_t)in.len, 0};
	size_t hint = 1;
	bool ok = ctx != NULL;
	while (ok && hint != 0) {
		ok = room(out, 1);
		ZSTD_outBuffer to = {out->p, out->cap, out->len};
		size_t before = from.pos;
		hint = ok ? ZSTD_decompressStream(ctx, &to, &from) : 0;
		ok = ok && !ZSTD_isError(hint) && (to.pos > out->len || from.pos > before);
		out->len = ok ? to.pos : out->len;
	}
	ZSTD_freeDStream(ctx);
	return ok && from.pos == from.size;
}

bool inflate_records(unsigned int codec, struct bytes in, struct inflate_buffer *out)
{
	out->len = 0;
	switch (codec) {
	case CODEC_GZIP:
		return inflate_gzip(in, out);
	case CODEC_SNAPPY:
		return inflate_snappy(in, out);
	case CODEC_LZ4:
		return inflate_lz4(in, out);
	case CODEC_ZSTD:
		return inflate_zstd(in, out);
	default:
		return false;
	}
}
