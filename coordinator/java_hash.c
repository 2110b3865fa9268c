/*
 * java_hash.c - Java's string hash over UTF-8. Group ids are short and nearly always ASCII: four such bytes are taken in one step,
 * h * 31^4 + a * 31^3 + b * 31^2 + c * 31 + d, which shortens the chain of dependent multiplications to a quarter.
 */
#include "coordinator/java_hash.h"

#define REPLACEMENT 0xfffdu

static uint32_t step(uint32_t h, uint32_t unit)
{
	return h * 31 + unit;
}

/*
 * The code point at p, of which `left` >= 1 bytes may be read; its length in *len. Ill-formed: REPLACEMENT and length 1.
 * Overlong forms, surrogates and code points above U+10FFFF are ill-formed.
 */
static uint32_t code_point(const uint8_t *p, int32_t left, int32_t *len)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	int32_t n = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : p[0] < 0xf5 ? 4 : 0;
	*len = 1;
	if (n == 0 || n > left)
		return REPLACEMENT;
	if (n == 1)
		return p[0];
	uint32_t c = p[0] & (0x7fu >> n);
	for (int32_t i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return REPLACEMENT;
		c = c << 6 | (p[i] & 0x3f);
	}
	if (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		return REPLACEMENT;
	*len = n;
	return c;
}

int32_t java_hash(struct bytes utf8)
{
	uint32_t h = 0;
	int32_t i = 0;
	while (i < utf8.len) {
		const uint8_t *p = utf8.p + i;
		if (utf8.len - i >= 4 && ((p[0] | p[1] | p[2] | p[3]) & 0x80) == 0) {
			h = h * (31u * 31 * 31 * 31) + (p[0] * (31u * 31 * 31) + p[1] * (31u * 31) + p[2] * 31u + p[3]);
			i += 4;
			continue;
		}
		int32_t len;
		uint32_t c = code_point(p, utf8.len - i, &len);
		if (c >= 0x10000) {
			h = step(h, 0xd7c0 + (c >> 10));
			c = 0xdc00 | (c & 0x3ff);
		}
		h = step(h, c);
		i += len;
	}
	return (int32_t)h;
}

uint32_t java_hash_abs(struct bytes utf8)
{
	int32_t h = java_hash(utf8);
	return h == INT32_MIN ? 0 : (uint32_t)(h < 0 ? -h : h);
}
