/*
 * test_ether.c - which frames go where.
 */
#include <criterion/criterion.h>

#include "dataplane/ether.h"

static const uint8_t self[6] = {2, 0, 0, 0, 0, 1}, other[6] = {2, 0, 0, 0, 0, 2};
static const uint8_t all[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, group[6] = {1, 0, 0x5e, 0, 0, 1};
static struct stats stats;

static enum ether_kind classify(const uint8_t dst[6], uint16_t type)
{
	uint8_t frame[60] = {0};
	ether_header(frame, dst, other, type);
	return ether_classify(self, frame, sizeof(frame), &stats);
}

Test(ether, for_us)
{
	cr_assert_eq(classify(self, 0x0800), ETHER_IPV4);
	cr_assert_eq(classify(self, 0x0806), ETHER_ARP);
	cr_assert_eq(classify(all, 0x0806), ETHER_ARP);
}

Test(ether, not_for_us)
{
	cr_assert_eq(classify(other, 0x0800), ETHER_DROP);
	cr_assert_eq(classify(all, 0x0800), ETHER_DROP);
	cr_assert_eq(classify(group, 0x0800), ETHER_DROP);
	cr_assert_eq(classify(group, 0x0806), ETHER_DROP);
	cr_assert_eq(stats.ether_not_for_us, 4);
}

Test(ether, other_types_and_short_frames)
{
	uint8_t frame[13] = {2, 0, 0, 0, 0, 1};
	cr_assert_eq(classify(self, 0x86dd), ETHER_DROP);
	cr_assert_eq(classify(self, 0x8100), ETHER_DROP);
	cr_assert_eq(stats.ether_other_type, 2);
	for (size_t len = 0; len <= sizeof(frame); len++)
		cr_assert_eq(ether_classify(self, frame, len, &stats), ETHER_DROP);
	cr_assert_eq(stats.ether_short, 14);
}
