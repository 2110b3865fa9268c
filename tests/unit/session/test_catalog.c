/*
 * test_catalog.c - the catalog file.
 */
#include <criterion/criterion.h>

#include "coordinator/catalog.h"

static struct image *build(const char *text, bool expected, char err[256])
{
	struct image *img = image_new(BYTES_LITERAL("c"));
	cr_assert(image_add_node(img, 1, BYTES_LITERAL("h"), 1));
	cr_assert_eq(catalog_add(img, bytes_str(text), err, 256), expected, "%s", err);
	image_seal(img, 1);
	return img;
}

static void wrong(const char *text, const char *message)
{
	char err[256] = "";
	image_free(build(text, false, err));
	cr_assert_not_null(strstr(err, message), "\"%s\" does not say \"%s\"", err, message);
}

Test(catalog, both_forms_comments_and_blanks)
{
	char err[256] = "";
	struct image *img = build("# the shop\n\n  topic orders 12 # twelve\r\npayments:3\n\ttopic\tx.y_z-1\t100000\n#:\ntopic:4", true, err);
	const struct image_topic *topics;
	cr_assert_eq(image_topics(img, &topics), 4);
	cr_assert_eq(image_topic(img, BYTES_LITERAL("orders"))->partitions, 12);
	cr_assert_eq(image_topic(img, BYTES_LITERAL("payments"))->partitions, 3);
	cr_assert_eq(image_topic(img, BYTES_LITERAL("x.y_z-1"))->partitions, 100000);
	cr_assert_eq(image_topic(img, BYTES_LITERAL("topic"))->partitions, 4);
	image_free(img);
}

Test(catalog, an_empty_file_has_no_topics)
{
	char err[256] = "";
	const struct image_topic *topics;
	struct image *img = build("", true, err);
	cr_assert_eq(image_topics(img, &topics), 0);
	image_free(img);
}

Test(catalog, errors_name_line_and_what_is_allowed)
{
	wrong("a:1\nb:0\n", "line 2: \"0\" is no number of partitions: 1 to 100000");
	wrong("a:\n", "line 1: \"\" is no number");
	wrong("a:-1\n", "1 to 100000");
	wrong("a:100001", "1 to 100000");
	wrong("a:99999999999999999999", "1 to 100000");
	wrong("a:0x10", "1 to 100000");
	wrong("\n\ntopic a\n", "line 3: not understood; a line is \"topic NAME PARTITIONS\" or \"NAME:PARTITIONS\"");
	wrong("topic a 1 2\n", "not understood");
	wrong("topic a 1 2 3 4 5\n", "not understood");
	wrong("Topic a 1\n", "not understood");
	wrong("justaname\n", "not understood");
	wrong("a:1\ntopic a 2\n", "line 2: topic \"a\" stands twice");
	wrong("..:1", "\"..\" is no topic name: 1 to 249 of a-z");
	wrong(":1", "\"\" is no topic name");
	wrong("a/b:1", "\"a/b\" is no topic name");
	wrong("\x01\xff:1", "\"??\" is no topic name");
}
