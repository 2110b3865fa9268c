/*
 * test_seq.c - sequence arithmetic around the wrap.
 */
#include <criterion/criterion.h>

#include "dataplane/tcp/seq.h"

Test(seq, order_around_the_wrap)
{
	static const uint32_t base[] = {0, 1, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff};
	static const uint32_t ahead[] = {1, 2, 1000, 0x7ffffffe, 0x7fffffff};
	for (size_t i = 0; i < sizeof(base) / sizeof(base[0]); i++) {
		uint32_t a = base[i];
		cr_expect(seq_leq(a, a) && seq_geq(a, a) && !seq_lt(a, a) && !seq_gt(a, a));
		for (size_t k = 0; k < sizeof(ahead) / sizeof(ahead[0]); k++) {
			uint32_t b = a + ahead[k];
			cr_expect(seq_lt(a, b) && !seq_lt(b, a) && seq_gt(b, a), "%x %x", a, b);
			cr_expect(seq_leq(a, b) && !seq_leq(b, a) && seq_geq(b, a) && !seq_geq(a, b));
			cr_expect_eq(seq_max(a, b), b);
			cr_expect_eq(seq_max(b, a), b);
			cr_expect_eq(seq_min(a, b), a);
			cr_expect_eq(seq_ahead(b, a), ahead[k]);
			cr_expect_eq(seq_ahead(a, b), 0);
		}
	}
}
