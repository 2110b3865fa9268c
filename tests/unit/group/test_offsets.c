/* test_offsets.c - the store of committed offsets. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "coordinator/offsets.h"

static const struct hash_key key = {{3, 4}};

static struct record_offset value(int64_t offset, struct bytes metadata)
{
	return (struct record_offset){offset, 1, metadata, 10, RECORD_NO_EXPIRY};
}

static void put(struct offsets *o, const char *group, const char *topic, int32_t partition, int64_t offset)
{
	struct record_offset v = value(offset, bytes_str("some metadata"));
	cr_assert(offsets_put(o, bytes_str(group), bytes_str(topic), partition, &v, 1));
}

static int64_t get(struct offsets *o, const char *group, const char *topic, int32_t partition)
{
	struct record_offset v;
	return offsets_get(o, bytes_str(group), bytes_str(topic), partition, &v) ? v.offset : -1;
}

static char walked[256];

static void walk(void *arg, struct bytes topic, int32_t partition, const struct record_offset *v)
{
	snprintf(walked + strlen(walked), sizeof(walked) - strlen(walked), "%.*s:%d=%lld ", topic.len, (const char *)topic.p, partition,
		 (long long)v->offset);
}

Test(offsets, put_get_replace_remove)
{
	struct offsets o;
	offsets_init(&o, &key);
	cr_expect_eq(get(&o, "g", "t", 0), -1);
	put(&o, "g", "t", 0, 5);
	put(&o, "g", "t", 1, 6);
	put(&o, "g", "u", 0, 7);
	put(&o, "h", "t", 0, 8);
	put(&o, "", "t", 0, 9); /* the empty group id is legal here */
	cr_expect_eq(get(&o, "g", "t", 0), 5);
	cr_expect_eq(get(&o, "h", "t", 0), 8);
	cr_expect_eq(get(&o, "", "t", 0), 9);
	cr_expect_eq(get(&o, "g", "t", 2), -1);
	put(&o, "g", "t", 0, 50);
	cr_expect_eq(get(&o, "g", "t", 0), 50);
	offsets_each(&o, bytes_str("g"), walk, NULL);
	cr_expect_str_eq(walked, "t:0=50 t:1=6 u:0=7 ");
	offsets_remove(&o, bytes_str("g"), bytes_str("t"), 0);
	offsets_remove(&o, bytes_str("g"), bytes_str("t"), 0);
	offsets_remove(&o, bytes_str("g"), bytes_str("t"), 1);
	cr_expect_eq(o.topics.count, 3);
	offsets_remove(&o, bytes_str("g"), bytes_str("u"), 0);
	cr_expect_eq(o.groups.count, 2);
	cr_expect_eq(get(&o, "g", "t", 0), -1);
	cr_expect_eq(get(&o, "h", "t", 0), 8);
	offsets_fini(&o);
}

Test(offsets, metadata_is_copied)
{
	struct offsets o;
	char text[] = "before";
	struct record_offset v = value(1, bytes_str(text));
	offsets_init(&o, &key);
	cr_assert(offsets_put(&o, bytes_str("g"), bytes_str("t"), 3, &v, 1));
	text[0] = 'X';
	cr_assert(offsets_get(&o, bytes_str("g"), bytes_str("t"), 3, &v));
	cr_expect(bytes_equal(v.metadata, BYTES_LITERAL("before")));
	v = value(2, BYTES_EMPTY);
	cr_assert(offsets_put(&o, bytes_str("g"), bytes_str("t"), 3, &v, 1));
	cr_assert(offsets_get(&o, bytes_str("g"), bytes_str("t"), 3, &v));
	cr_expect_eq(v.metadata.len, 0);
	offsets_fini(&o);
}

/* Thousands of puts and removals in one topic against a plain array: few partitions and many, dense and scattered. */
static void random_topic(unsigned int partitions, int32_t stride)
{
	struct offsets o;
	int64_t *want = calloc(partitions, sizeof(*want));
	uint64_t x = 88172645463325252ull + partitions;
	size_t there = 0;
	offsets_init(&o, &key);
	for (unsigned int i = 0; i < partitions; i++)
		want[i] = -1;
	for (int64_t step = 0; step < 20000; step++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		unsigned int n = (unsigned int)(x >> 8) % partitions;
		int32_t partition = (int32_t)n * stride;
		if (x % 5 < 3) {
			there += want[n] < 0;
			put(&o, "g", "t", partition, step);
			want[n] = step;
		} else {
			there -= want[n] >= 0;
			offsets_remove(&o, bytes_str("g"), bytes_str("t"), partition);
			want[n] = -1;
		}
		cr_assert_eq(get(&o, "g", "t", partition), want[n]);
		cr_assert_eq(o.count, there);
		if (step % 500 == 0)
			for (unsigned int i = 0; i < partitions; i++)
				cr_assert_eq(get(&o, "g", "t", (int32_t)i * stride), want[i]);
	}
	offsets_fini(&o);
	free(want);
}

Test(offsets, random_topics)
{
	random_topic(1, 1);
	random_topic(5, 1);
	random_topic(9, 1000);
	random_topic(100, 1);
	random_topic(1000, 65536);
	random_topic(2000, -7);
}

/* What was asked for last is tried first: groups and topics of the same name are not mixed up, and nothing that is gone is remembered. */
Test(offsets, the_last_one)
{
	struct offsets o;
	offsets_init(&o, &key);
	put(&o, "g", "t", 0, 1);
	put(&o, "h", "t", 0, 2);
	cr_expect_eq(get(&o, "g", "t", 0), 1);
	cr_expect_eq(get(&o, "h", "t", 0), 2);
	cr_expect_eq(get(&o, "h", "u", 0), -1);
	cr_expect_eq(get(&o, "i", "t", 0), -1);
	offsets_remove(&o, bytes_str("h"), bytes_str("t"), 0);
	cr_expect_eq(get(&o, "h", "t", 0), -1);
	cr_expect_eq(o.groups.count, 1);
	put(&o, "h", "t", 0, 3);
	cr_expect_eq(get(&o, "h", "t", 0), 3);
	cr_expect_eq(get(&o, "g", "t", 0), 1);
	offsets_fini(&o);
}
