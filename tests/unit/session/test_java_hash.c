/*
 * test_java_hash.c - Java's string hash, against values that Java gives.
 */
#include <criterion/criterion.h>

#include "coordinator/java_hash.h"

Test(java_hash, known_values)
{
	cr_assert_eq(java_hash(BYTES_EMPTY), 0);
	cr_assert_eq(java_hash(BYTES_NULL), 0);
	cr_assert_eq(java_hash(BYTES_LITERAL("a")), 97);
	cr_assert_eq(java_hash(BYTES_LITERAL("Aa")), 2112);
	cr_assert_eq(java_hash(BYTES_LITERAL("BB")), 2112);
	cr_assert_eq(java_hash(BYTES_LITERAL("hello")), 99162322);
	cr_assert_eq(java_hash(BYTES_LITERAL("polygenelubricants")), INT32_MIN);
	cr_assert_eq(java_hash_abs(BYTES_LITERAL("polygenelubricants")), 0);
	cr_assert_eq(java_hash(BYTES_LITERAL("console-consumer-12345")), 158455506);
	cr_assert_eq(java_hash(BYTES_LITERAL("caf\xc3\xa9-group")), -2109495341);
	cr_assert_eq(java_hash(BYTES_LITERAL("\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e")), 25921943);
	cr_assert_eq(java_hash(BYTES_LITERAL("a\xf0\x9f\x98\x80" "b")), 57849694);
}

Test(java_hash, beyond_ascii)
{
	cr_assert_eq(java_hash(BYTES_LITERAL("\xc3\xa9")), 233);
	/* one character above U+FFFF is two units, d83d and de00 */
	cr_assert_eq(java_hash(BYTES_LITERAL("\xf0\x9f\x98\x80")), 31 * 0xd83d + 0xde00);
	/* the last character there is: dbff dfff */
	cr_assert_eq(java_hash(BYTES_LITERAL("\xf4\x8f\xbf\xbf")), 31 * 0xdbff + 0xdfff);
}

/* Nothing is read behind the end, and each stray byte counts as U+FFFD. */
Test(java_hash, malformed)
{
	const int32_t one = 0xfffd, two = 31 * 0xfffd + 0xfffd;
	cr_assert_eq(java_hash(BYTES_LITERAL("\x80")), one);
	cr_assert_eq(java_hash(BYTES_LITERAL("\xff")), one);
	cr_assert_eq(java_hash(bytes_of("\xc3\xa9", 1)), one, "cut off");
	cr_assert_eq(java_hash(bytes_of("\xf0\x9f\x98\x80", 1)), one);
	cr_assert_eq(java_hash(BYTES_LITERAL("\xc0\x80")), two, "overlong");
	cr_assert_eq(java_hash(BYTES_LITERAL("\xc3\x28")), 31 * 0xfffd + '(');
	cr_assert_neq(java_hash(BYTES_LITERAL("\xed\xa0\x80")), 0xd800, "a surrogate");
	cr_assert_neq(java_hash(BYTES_LITERAL("\xf4\x90\x80\x80")), 0, "above U+10FFFF");
	for (unsigned int b = 0; b < 65536; b++) {
		uint8_t p[2] = {(uint8_t)(b >> 8), (uint8_t)b};
		java_hash(bytes_of(p, 2));
	}
}
