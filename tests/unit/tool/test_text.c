/*
 * test_text.c - one description in both forms.
 */
#define _GNU_SOURCE /* open_memstream */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "coordinator/tool/text.h"

static void describe(struct text *t)
{
	text_begin(t);
	text_word(t, "type", "Word");
	text_object(t, "key");
	text_string(t, "group", bytes_str("a b"));
	text_number(t, "n", -5);
	text_object_end(t);
	text_null(t, "nothing");
	text_string(t, "dash", bytes_str("-"));
	text_time(t, "when", 1700000000123);
	text_time(t, "never", -1);
	text_list(t, "list");
	text_list_string(t, bytes_str("x"));
	text_list_partition(t, bytes_str("t"), 3);
	text_list_end(t);
	text_list(t, "empty");
	text_list_end(t);
	text_array(t, "items");
	for (int i = 0; i < 2; i++) {
		text_item(t, "item");
		text_number(t, "i", i);
		text_item_end(t);
	}
	text_array_end(t);
	text_end(t);
}

static void check(bool json, const char *expected)
{
	char *p;
	size_t len;
	FILE *out = open_memstream(&p, &len);
	struct text t = text_to(out, json);
	describe(&t);
	fclose(out);
	cr_assert_str_eq(p, expected);
	free(p);
}

Test(text, people)
{
	check(false, "Word group=\"a b\" n=-5 nothing=- dash=\"-\" when=2023-11-14T22:13:20.123Z never=-1 list=x,t-3 empty=\n    item i=0\n    item i=1\n");
}

Test(text, json)
{
	check(true, "{\"type\":\"Word\",\"key\":{\"group\":\"a b\",\"n\":-5},\"nothing\":null,\"dash\":\"-\",\"when\":1700000000123,\"never\":-1,"
		    "\"list\":[\"x\",\"t-3\"],\"empty\":[],\"items\":[{\"i\":0},{\"i\":1}]}\n");
}
