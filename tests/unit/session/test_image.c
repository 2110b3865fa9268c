/*
 * test_image.c - the metadata image: building, lookups, shards of groups.
 */
#include <criterion/criterion.h>
#include <stdio.h>

#include "coordinator/image.h"
#include "coordinator/topic_id.h"

static struct image *image_with(unsigned int topics)
{
	struct image *img = image_new(BYTES_LITERAL("c"));
	cr_assert(image_add_node(img, 7, BYTES_LITERAL("host"), 9092));
	for (unsigned int i = 0; i < topics; i++) {
		char name[32];
		snprintf(name, sizeof(name), "topic-%u", (i * 7919) % topics);
		cr_assert(image_add_topic(img, bytes_str(name), (int32_t)(i % 5) + 1), "%s", name);
	}
	image_seal(img, 50);
	return img;
}

Test(image, topics_are_sorted_and_found_by_name_and_id)
{
	struct image *img = image_with(1000);
	const struct image_topic *topics;
	cr_assert_eq(image_topics(img, &topics), 1000);
	for (unsigned int i = 0; i < 1000; i++) {
		if (i > 0) {
			int32_t len = topics[i - 1].name.len < topics[i].name.len ? topics[i - 1].name.len : topics[i].name.len;
			int order = memcmp(topics[i - 1].name.p, topics[i].name.p, (size_t)len);
			cr_assert(order < 0 || (order == 0 && topics[i - 1].name.len < topics[i].name.len));
		}
		cr_assert_eq(image_topic(img, topics[i].name), &topics[i]);
		cr_assert_eq(image_topic_by_id(img, &topics[i].id), &topics[i]);
	}
	cr_assert_null(image_topic(img, BYTES_LITERAL("topic-1000")));
	cr_assert_null(image_topic(img, BYTES_LITERAL("topic-")));
	cr_assert_null(image_topic(img, BYTES_NULL));
	cr_assert_null(image_topic(img, BYTES_EMPTY));
	cr_assert_null(image_topic_by_id(img, &UUID_ZERO));
	image_free(img);
}

Test(image, an_image_without_topics)
{
	struct image *img = image_with(0);
	const struct image_topic *topics;
	cr_assert_eq(image_topics(img, &topics), 0);
	cr_assert_null(image_topic(img, BYTES_LITERAL("a")));
	image_free(img);
}

Test(image, wrong_topics_are_refused)
{
	struct image *img = image_new(BYTES_LITERAL("c"));
	char longest[250];
	memset(longest, 'n', sizeof(longest));
	cr_assert(image_add_topic(img, BYTES_LITERAL("Az09._-"), 1));
	cr_assert(image_add_topic(img, bytes_of(longest, 249), IMAGE_PARTITIONS_MAX));
	cr_assert(image_add_topic(img, BYTES_LITERAL("..."), 1));
	cr_assert_not(image_add_topic(img, BYTES_LITERAL("Az09._-"), 2), "taken");
	cr_assert_not(image_add_topic(img, bytes_of(longest, 250), 1), "too long");
	cr_assert_not(image_add_topic(img, BYTES_EMPTY, 1));
	cr_assert_not(image_add_topic(img, BYTES_NULL, 1));
	cr_assert_not(image_add_topic(img, BYTES_LITERAL("."), 1));
	cr_assert_not(image_add_topic(img, BYTES_LITERAL(".."), 1));
	cr_assert_not(image_add_topic(img, BYTES_LITERAL("a b"), 1));
	cr_assert_not(image_add_topic(img, BYTES_LITERAL("a\xc3\xa9"), 1));
	cr_assert_not(image_add_topic(img, BYTES_LITERAL("p0"), 0));
	cr_assert_not(image_add_topic(img, BYTES_LITERAL("p1"), IMAGE_PARTITIONS_MAX + 1));
	image_free(img);
}

Test(image, nodes_and_their_shards)
{
	struct image *img = image_new(BYTES_LITERAL("the-cluster"));
	cr_assert(image_add_node(img, 1000, BYTES_LITERAL("h"), 1));
	cr_assert(image_add_node(img, 1001, BYTES_LITERAL("h"), 2));
	image_seal(img, 50);
	const struct image_node *nodes;
	cr_assert_eq(image_nodes(img, &nodes), 2);
	cr_assert_eq(nodes[1].id, 1001);
	cr_assert_eq(nodes[1].port, 2);
	cr_assert_eq(image_controller_id(img), 1000);
	cr_assert(bytes_equal(image_cluster_id(img), BYTES_LITERAL("the-cluster")));
	cr_assert_eq(image_shards(img), 50);
	cr_assert_eq(image_shard_owner(img, 0), &nodes[0]);
	cr_assert_eq(image_shard_owner(img, 49), &nodes[1]);
	cr_assert_eq(image_shard_of(img, BYTES_LITERAL("hello")), 22);
	cr_assert_eq(image_shard_of(img, BYTES_LITERAL("polygenelubricants")), 0, "the absolute value of the smallest int is 0");
	cr_assert_eq(image_shard_of(img, BYTES_EMPTY), 0);
	image_free(img);
}

Test(image, owners_by_a_map)
{
	static const uint8_t owners[] = {1, 1, 0, 2, 1};
	struct image *img = image_new(BYTES_LITERAL("c"));
	for (int32_t n = 0; n < 3; n++)
		cr_assert(image_add_node(img, 10 + n, BYTES_LITERAL("h"), 1 + n));
	cr_assert(image_set_owners(img, owners, ARRAY_LEN(owners)));
	image_seal(img, ARRAY_LEN(owners));
	for (unsigned int s = 0; s < ARRAY_LEN(owners); s++) {
		cr_assert_eq(image_shard_node(img, s), owners[s]);
		cr_assert_eq(image_shard_owner(img, s)->id, 10 + owners[s]);
	}
	image_free(img);
}

static void check_id(const char *name, const char *expected)
{
	struct uuid id = topic_id_of(bytes_str(name));
	char text[37], *p = text;
	for (unsigned int i = 0; i < 16; i++)
		p += sprintf(p, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", id.b[i]);
	cr_assert_str_eq(text, expected);
}

/* Expected values: version 5 of an independent UUID implementation. The lengths stand around the edges of SHA-1's padding (16 bytes namespace). */
Test(image, topic_ids_are_uuids_of_version_5)
{
	check_id("alpha", "81726ede-411e-5a05-b47f-f1e78434683b");
	check_id("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "7f653840-be83-5f66-9077-011f8ac6f604");
	check_id("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "7c2a7f15-0af3-514d-8135-4b736fdb5121");
	check_id("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "e19e0795-5b10-57e1-93d1-40d05a97590c");
	check_id("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "99034573-8ae0-5292-a899-25a2656d4f29");
	check_id("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
		 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
		 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
		 "09556b3c-a4b2-5a5e-8411-0f984a6967a6");
}
