/* test_offsets.c - the store of committed offsets. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "coordinator/offsets.h"

static const struct hash_key key = {{3, 4}};

static struct record_offset value(int64_t offset, struct bytes metadata)
{
	return (struct record_offset){offset, 1, metadata, 10, RECORD_NO_EXPIRY};
}

static void put(struct offsets *o, const char *group, const char *topic, int32_t partition, int64_t offset)
{
	struct record_offset v = value(offset, bytes_str("some metadata"));
	cr_assert(offsets_put(o, bytes_str(group), bytes_str(topic), partition, &v));
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
	cr_assert(offsets_put(&o, bytes_str("g"), bytes_str("t"), 3, &v));
	text[0] = 'X';
	cr_assert(offsets_get(&o, bytes_str("g"), bytes_str("t"), 3, &v));
	cr_expect(bytes_equal(v.metadata, BYTES_LITERAL("before")));
	v = value(2, BYTES_EMPTY);
	cr_assert(offsets_put(&o, bytes_str("g"), bytes_str("t"), 3, &v));
	cr_assert(offsets_get(&o, bytes_str("g"), bytes_str("t"), 3, &v));
	cr_expect_eq(v.metadata.len, 0);
	offsets_fini(&o);
}
