/*
 * bytes.h - byte slices, and the only two ways to touch bytes of the wire: a bounded reader and a bounded writer.
 *
 * Invariants:
 *  1. A reader never reads at or behind `end`. The first violation sets `bad`; from then on every read
 *     yields zero or empty, so a decoder checks once, at its end.
 *  2. A writer never writes at or behind `end`. On overflow it sets `full` and keeps counting in `need`,
 *     so the caller learns the size that would have fitted.
 *  3. All multi-byte integers are big-endian, as in Kafka and in TCP/IP.
 */
#ifndef MUSTER_BYTES_H
#define MUSTER_BYTES_H

#include <string.h>

#include "muster/base.h"

/* Bytes of somebody else, not terminated. `len` -1 is Kafka's null, told apart from empty (len 0). */
struct bytes {
	const uint8_t *p;
	int32_t len;
};

#define BYTES_NULL ((struct bytes){NULL, -1})
#define BYTES_EMPTY ((struct bytes){(const uint8_t *)"", 0})
#define BYTES_LITERAL(s) ((struct bytes){(const uint8_t *)(s), (int32_t)sizeof(s) - 1})

static inline struct bytes bytes_of(const void *p, size_t len)
{
	return (struct bytes){p, (int32_t)len};
}

static inline struct bytes bytes_str(const char *s)
{
	return s == NULL ? BYTES_NULL : bytes_of(s, strlen(s));
}

static inline bool bytes_is_null(struct bytes b)
{
	return b.len < 0;
}

/* Null or of length 0. */
static inline bool bytes_is_empty(struct bytes b)
{
	return b.len <= 0;
}

/* Same content; null equals only null. */
static inline bool bytes_equal(struct bytes a, struct bytes b)
{
	return a.len == b.len && (a.len <= 0 || memcmp(a.p, b.p, (size_t)a.len) == 0);
}

/* ---- reader ---- */

struct reader {
	const uint8_t *p;
	const uint8_t *end;
	bool bad; /* sticky: something did not fit or was malformed */
};

static inline struct reader reader_of(const void *p, size_t len)
{
	return (struct reader){p, len == 0 ? p : (const uint8_t *)p + len, false}; /* NULL + 0 is undefined */
}

static inline size_t reader_left(const struct reader *r)
{
	return (size_t)(r->end - r->p);
}

/* Whether `n` more bytes are there; if not, `bad`. */
static ALWAYS_INLINE bool reader_has(struct reader *r, size_t n)
{
	if (likely(!r->bad && reader_left(r) >= n))
		return true;
	r->bad = true;
	return false;
}

/* The next `n` bytes, or NULL (and `bad`) when fewer are left. */
static ALWAYS_INLINE const uint8_t *reader_take(struct reader *r, size_t n)
{
	if (!reader_has(r, n))
		return NULL;
	const uint8_t *p = r->p;
	r->p += n;
	return p;
}

static ALWAYS_INLINE uint8_t reader_u8(struct reader *r)
{
	return reader_has(r, 1) ? *r->p++ : 0;
}

static ALWAYS_INLINE uint16_t reader_u16(struct reader *r)
{
	if (!reader_has(r, 2))
		return 0;
	const uint8_t *p = r->p;
	r->p += 2;
	return (uint16_t)(p[0] << 8 | p[1]);
}

static ALWAYS_INLINE uint32_t reader_u32(struct reader *r)
{
	uint32_t v;
	if (!reader_has(r, sizeof(v)))
		return 0;
	memcpy(&v, r->p, sizeof(v));
	r->p += sizeof(v);
	return __builtin_bswap32(v);
}

static ALWAYS_INLINE uint64_t reader_u64(struct reader *r)
{
	uint64_t v;
	if (!reader_has(r, sizeof(v)))
		return 0;
	memcpy(&v, r->p, sizeof(v));
	r->p += sizeof(v);
	return __builtin_bswap64(v);
}

/* A varint that was read: its value and where it ends, NULL if it is malformed or cut. */
struct uvarint {
	const uint8_t *end;
	uint32_t v;
};

/* The one at `p`, which ends before `end`. */
static __attribute__((noinline, unused)) struct uvarint uvarint_read(const uint8_t *p, const uint8_t *end)
{
	struct uvarint u = {NULL, 0};
	for (unsigned int shift = 0; shift < 35 && p != end; shift += 7) {
		uint8_t b = *p++;
		if (shift == 28 && b > 0x0f)
			break;
		u.v |= (uint32_t)(b & 0x7f) << shift;
		if (b < 0x80) {
			u.end = p;
			return u;
		}
	}
	return (struct uvarint){NULL, 0};
}

/*
 * Unsigned base-128 varint of at most 32 bits (Kafka's compact lengths and tags). Nearly all are of one byte; the call for others is not given the
 * reader's address, so that a reader that is a local variable can stay in registers.
 */
static ALWAYS_INLINE uint32_t reader_uvarint(struct reader *r)
{
	if (!reader_has(r, 1))
		return 0;
	if (likely(*r->p < 0x80))
		return *r->p++;
	struct uvarint u = uvarint_read(r->p, r->end);
	if (u.end == NULL)
		r->bad = true;
	else
		r->p = u.end;
	return u.v;
}

/* ---- writer ---- */

struct writer {
	uint8_t *start;
	uint8_t *p;
	uint8_t *end;
	size_t need; /* bytes asked for so far, also past the end */
	bool full;   /* sticky: need > capacity */
};

static inline struct writer writer_of(void *p, size_t cap)
{
	return (struct writer){p, p, cap == 0 ? p : (uint8_t *)p + cap, 0, false};
}

/* Whether there is room for `n` more bytes, which are counted; if not, `full`. */
static ALWAYS_INLINE bool writer_has(struct writer *w, size_t n)
{
	w->need += n;
	if (likely(!w->full && (size_t)(w->end - w->p) >= n))
		return true;
	w->full = true;
	return false;
}

/* Room for `n` bytes, or NULL (and `full`). */
static ALWAYS_INLINE uint8_t *writer_room(struct writer *w, size_t n)
{
	if (!writer_has(w, n))
		return NULL;
	uint8_t *p = w->p;
	w->p += n;
	return p;
}

static inline size_t writer_len(const struct writer *w)
{
	return (size_t)(w->p - w->start);
}

static ALWAYS_INLINE void writer_u8(struct writer *w, uint8_t v)
{
	if (writer_has(w, 1))
		*w->p++ = v;
}

static ALWAYS_INLINE void writer_u16(struct writer *w, uint16_t v)
{
	v = __builtin_bswap16(v);
	if (writer_has(w, sizeof(v))) {
		memcpy(w->p, &v, sizeof(v));
		w->p += sizeof(v);
	}
}

static ALWAYS_INLINE void writer_u32(struct writer *w, uint32_t v)
{
	v = __builtin_bswap32(v);
	if (writer_has(w, sizeof(v))) {
		memcpy(w->p, &v, sizeof(v));
		w->p += sizeof(v);
	}
}

static ALWAYS_INLINE void writer_u64(struct writer *w, uint64_t v)
{
	v = __builtin_bswap64(v);
	if (writer_has(w, sizeof(v))) {
		memcpy(w->p, &v, sizeof(v));
		w->p += sizeof(v);
	}
}

static inline void writer_raw(struct writer *w, const void *src, size_t n)
{
	uint8_t *p = writer_room(w, n);
	if (p != NULL && n > 0)
		memcpy(p, src, n);
}

static ALWAYS_INLINE void writer_uvarint(struct writer *w, uint32_t v)
{
	while (v >= 0x80) {
		writer_u8(w, (uint8_t)(v | 0x80));
		v >>= 7;
	}
	writer_u8(w, (uint8_t)v);
}

#endif
