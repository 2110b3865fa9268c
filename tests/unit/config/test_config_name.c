/*
 * test_config_name.c - distances between words, and which name is offered for a wrong one.
 */
#include "fixture.h"

Test(config_name, distances)
{
	cr_expect(eq(uint, config_distance("", ""), 0));
	cr_expect(eq(uint, config_distance("port", "port"), 0));
	cr_expect(eq(uint, config_distance("", "port"), 4));
	cr_expect(eq(uint, config_distance("port", ""), 4));
	cr_expect(eq(uint, config_distance("port", "ports"), 1));
	cr_expect(eq(uint, config_distance("port", "pot"), 1));
	cr_expect(eq(uint, config_distance("port", "pert"), 1));
	cr_expect(eq(uint, config_distance("port", "prot"), 1));
	cr_expect(eq(uint, config_distance("kitten", "sitting"), 3));
	cr_expect(eq(uint, config_distance("ca", "abc"), 3));
}

static void nearest_is(const char *wrong, const char *want)
{
	const char *got = config_nearest_name(wrong);
	cr_expect_str_eq((got == NULL ? "(none)" : got), want, "for %s", wrong);
}

Test(config_name, nearest)
{
	nearest_is("prot", "port");
	nearest_is("node_id", "node.id");
	nearest_is("group.max.sizes", "group.max.size");
	nearest_is("group.max.session.timout", "group.max.session.timeout.ms");
	nearest_is("session.timeout.ms", "group.min.session.timeout.ms");
	nearest_is("idle", "idle.policy");
	nearest_is("x", "(none)");
	nearest_is("", "(none)");
	nearest_is("no.such.thing.at.all", "(none)");
	char longest[4096];
	memset(longest, 'a', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	nearest_is(longest, "(none)");
}
