/*
 * test_opt.c - options: what is understood, what is skipped, what is malformed.
 */
#include <criterion/criterion.h>

#include "dataplane/tcp/opt.h"

#define PARSE(opt, ...) opt_parse(opt, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

Test(opt, syn_of_linux)
{
	struct opt opt;
	cr_expect(PARSE(&opt, 2, 4, 0x05, 0xb4, 4, 2, 8, 10, 0x11, 0x22, 0x33, 0x44, 0, 0, 0, 0, 1, 3, 3, 7));
	cr_expect(opt.has_mss && opt.mss == 1460);
	cr_expect(opt.sack_permitted);
	cr_expect(opt.has_timestamp && opt.tsval == 0x11223344 && opt.tsecr == 0);
	cr_expect(opt.has_scale && opt.scale == 7);
	cr_expect_eq(opt.sacks, 0);
}

Test(opt, sack_ranges)
{
	struct opt opt;
	cr_expect(PARSE(&opt, 1, 1, 5, 18, 0, 0, 0, 1, 0, 0, 0, 2, 0xff, 0xff, 0xff, 0xfe, 0, 0, 0, 3));
	cr_assert_eq(opt.sacks, 2);
	cr_expect(opt.sack[0].start == 1 && opt.sack[0].end == 2);
	cr_expect(opt.sack[1].start == 0xfffffffe && opt.sack[1].end == 3);
	cr_expect(!PARSE(&opt, 5, 2), "no range");
	cr_expect(!PARSE(&opt, 5, 9, 0, 0, 0, 1, 0, 0, 0), "half a range");
}

Test(opt, unknown_kinds_are_skipped)
{
	struct opt opt;
	cr_expect(PARSE(&opt, 253, 6, 1, 2, 3, 4, 30, 2, 3, 3, 5));
	cr_expect(opt.has_scale && opt.scale == 5);
}

Test(opt, end_of_list_hides_the_rest)
{
	struct opt opt;
	cr_expect(PARSE(&opt, 1, 0, 2, 4, 5, 0xb4));
	cr_expect(!opt.has_mss);
}

Test(opt, malformed)
{
	struct opt opt;
	cr_expect(!PARSE(&opt, 253, 0), "length 0 would loop for ever");
	cr_expect(!PARSE(&opt, 253, 1));
	cr_expect(!PARSE(&opt, 253), "no length");
	cr_expect(!PARSE(&opt, 2, 4, 5), "past the end");
	cr_expect(!PARSE(&opt, 3, 255, 1, 1));
	cr_expect(!PARSE(&opt, 2, 3, 5), "MSS of a wrong length");
	cr_expect(!opt.has_mss);
	cr_expect(!PARSE(&opt, 8, 9, 0, 0, 0, 0, 0, 0, 0));
	cr_expect(!opt.has_timestamp);
	cr_expect(!PARSE(&opt, 3, 2));
	cr_expect(!opt.has_scale);
	cr_expect(!PARSE(&opt, 3, 3, 9, 4, 3, 0), "what came before counts");
	cr_expect(opt.has_scale && opt.scale == 9);
}

Test(opt, scale_is_clamped)
{
	struct opt opt;
	cr_expect(PARSE(&opt, 3, 3, 255));
	cr_expect_eq(opt.scale, 14);
}

Test(opt, random_bytes_never_read_past_the_end)
{
	uint64_t random = 42;
	for (int i = 0; i < 20000; i++) {
		size_t len = (size_t)i % 41;
		uint8_t *p = malloc(len + 1); /* AddressSanitizer guards the end */
		for (size_t k = 0; k < len; k++) {
			random = random * 6364136223846793005u + 1442695040888963407u;
			p[k] = (uint8_t)(random >> 33) % (i % 2 ? 12 : 256);
		}
		struct opt opt;
		opt_parse(&opt, p, len);
		cr_assert_leq(opt.sacks, OPT_MAX_SACK);
		cr_assert_leq(opt.scale, OPT_MAX_SCALE);
		free(p);
	}
}

Test(opt, written_options_are_read_back)
{
	uint8_t p[OPT_MAX_BYTES];
	struct opt in = {.has_mss = true, .mss = 8960, .has_scale = true, .scale = 3, .has_timestamp = true, .sack_permitted = true,
			 .tsval = 77, .tsecr = 88};
	struct opt out;
	size_t n = opt_write_syn(p, &in);
	cr_expect_eq(n, 24);
	cr_assert(opt_parse(&out, p, n));
	cr_expect(out.mss == 8960 && out.scale == 3 && out.tsval == 77 && out.tsecr == 88 && out.sack_permitted);
	struct opt_sack ranges[3] = {{10, 20}, {30, 40}, {50, 60}};
	n = opt_write_timestamp(p, 1, 2);
	n += opt_write_sack(p + n, ranges, 3);
	cr_expect_eq(n, OPT_MAX_BYTES);
	cr_assert(opt_parse(&out, p, n));
	cr_expect_eq(out.sacks, 3);
	cr_expect(out.sack[2].start == 50 && out.sack[2].end == 60);
}
