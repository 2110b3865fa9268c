/*
 * test_bytes.c - the bounded reader and writer: what fits, what does not, and that neither touches a byte outside.
 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "muster/bytes.h"

Test(bytes, null_and_empty_differ)
{
	cr_expect(bytes_is_null(BYTES_NULL) && bytes_is_empty(BYTES_NULL));
	cr_expect(!bytes_is_null(BYTES_EMPTY) && bytes_is_empty(BYTES_EMPTY));
	cr_expect(!bytes_equal(BYTES_NULL, BYTES_EMPTY));
	cr_expect(bytes_equal(BYTES_NULL, BYTES_NULL) && bytes_equal(BYTES_EMPTY, BYTES_EMPTY));
	cr_expect(bytes_equal(BYTES_LITERAL("abc"), bytes_str("abc")));
	cr_expect(!bytes_equal(BYTES_LITERAL("abc"), bytes_str("abd")));
	cr_expect(!bytes_equal(BYTES_LITERAL("abc"), bytes_str("abcd")));
	cr_expect(bytes_is_null(bytes_str(NULL)));
}

Test(bytes, reader_is_big_endian)
{
	static const uint8_t p[] = {0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f, 0x10};
	struct reader r = reader_of(p, sizeof(p));
	cr_expect_eq(reader_u8(&r), 0x01);
	cr_expect_eq(reader_u16(&r), 0x0203);
	cr_expect_eq(reader_u32(&r), 0x04050607);
	cr_expect_eq(reader_u64(&r), 0x08090a0b0c0d0e0f);
	cr_expect_eq(reader_left(&r), 1);
	cr_expect(!r.bad);
}

Test(bytes, reader_error_sticks)
{
	static const uint8_t p[] = {1, 2, 3, 4, 5};
	struct reader r = reader_of(p, sizeof(p));
	cr_expect_eq(reader_u32(&r), 0x01020304);
	cr_expect_eq(reader_u16(&r), 0, "one byte left");
	cr_expect(r.bad);
	cr_expect_eq(reader_u8(&r), 0, "though a byte is left");
	cr_expect_null(reader_take(&r, 0));
	cr_expect_eq(reader_u64(&r), 0);
	r = reader_of(p, sizeof(p));
	cr_expect_null(reader_take(&r, SIZE_MAX));
	cr_expect(r.bad);
}

Test(bytes, uvarint_round_trip)
{
	static const uint32_t value[] = {0, 1, 127, 128, 300, 16383, 16384, 2097151, 2097152, 268435455, 268435456, UINT32_MAX};
	static const size_t size[] = {1, 1, 1, 2, 2, 2, 3, 3, 4, 4, 5, 5};
	for (size_t i = 0; i < ARRAY_LEN(value); i++) {
		uint8_t p[5];
		struct writer w = writer_of(p, sizeof(p));
		writer_uvarint(&w, value[i]);
		cr_assert_eq(writer_len(&w), size[i], "%u", value[i]);
		struct reader r = reader_of(p, size[i]);
		cr_expect_eq(reader_uvarint(&r), value[i]);
		cr_expect(!r.bad && reader_left(&r) == 0);
		r = reader_of(p, size[i] - 1);
		reader_uvarint(&r);
		cr_expect(r.bad, "cut short");
	}
}

Test(bytes, uvarint_too_long)
{
	static const uint8_t six[] = {0x80, 0x80, 0x80, 0x80, 0x80, 0x00}, above[] = {0xff, 0xff, 0xff, 0xff, 0x1f};
	struct reader r = reader_of(six, sizeof(six));
	cr_expect_eq(reader_uvarint(&r), 0);
	cr_expect(r.bad);
	r = reader_of(above, sizeof(above));
	cr_expect_eq(reader_uvarint(&r), 0, "more than 32 bits");
	cr_expect(r.bad);
}

Test(bytes, writer_counts_past_its_end)
{
	uint8_t p[8] = {0, 0, 0, 0, 0, 0, 0, 0xee};
	struct writer w = writer_of(p, 7);
	writer_u8(&w, 1);
	writer_u16(&w, 0x0203);
	writer_u32(&w, 0x04050607);
	cr_expect(!w.full);
	cr_expect_eq(memcmp(p, "\1\2\3\4\5\6\7", 7), 0);
	writer_u64(&w, UINT64_MAX);
	writer_u8(&w, 9);
	writer_raw(&w, "abc", 3);
	writer_raw(&w, NULL, 0);
	cr_expect(w.full);
	cr_expect_eq(w.need, 7 + 8 + 1 + 3);
	cr_expect_eq(writer_len(&w), 7);
	cr_expect_eq(p[7], 0xee);
}

Test(bytes, writer_takes_nothing_after_an_overflow)
{
	uint8_t p[4] = {0};
	struct writer w = writer_of(p, sizeof(p));
	writer_u8(&w, 1);
	writer_u64(&w, 2);
	writer_u8(&w, 3); /* would fit, but a hole would precede it */
	cr_expect_eq(writer_len(&w), 1);
	cr_expect_eq(p[1], 0);
}

Test(bytes, random_reads_stay_inside)
{
	uint64_t random = 5;
	for (int i = 0; i < 20000; i++) {
		size_t len = (size_t)i % 24;
		uint8_t *p = malloc(len + (len == 0)); /* AddressSanitizer guards the end */
		memset(p, 0x81, len);
		struct reader r = reader_of(p, len);
		size_t taken = 0;
		for (int k = 0; k < 10; k++) {
			random = random * 6364136223846793005u + 1442695040888963407u;
			size_t n = (random >> 40) % 9;
			size_t left = reader_left(&r);
			bool fits = !r.bad && n <= left;
			cr_assert_eq(reader_take(&r, n) != NULL, fits);
			taken += fits ? n : 0;
			cr_assert_eq(reader_left(&r), len - taken);
		}
		free(p);
	}
}
