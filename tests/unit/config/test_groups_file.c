/*
 * test_groups_file.c - the file of groups with settings of their own: every kind of error with its line, and what a good file says.
 */
#include "coordinator/groups_file.h"
#include "coordinator/shard.h"
#include "fixture.h"

struct groups_fixture {
	struct fixture f;
	struct group_settings base;
	struct group_rules *rules;
};

static bool groups_read(struct groups_fixture *g, const char *text)
{
	*g = (struct groups_fixture){.rules = group_rules_new()};
	g->base = (struct group_settings){.group_min_session_timeout_ms = 6000, .group_max_session_timeout_ms = 1800000, .group_max_size = 1000};
	fixture_write(&g->f, text, strlen(text));
	bool ok = groups_file_read(g->rules, g->f.path, g->f.err, sizeof(g->f.err));
	unlink(g->f.path);
	if (!ok)
		return false;
	group_rules_seal(g->rules, &g->base);
	g->base.rules = g->rules;
	return groups_file_check(g->rules, g->f.path, g->f.err, sizeof(g->f.err));
}

/* `text` is refused with exactly "PATH:LINE: MESSAGE". */
static void groups_refused(const char *text, int line, const char *message)
{
	struct groups_fixture g;
	cr_expect(not(groups_read(&g, text)), "accepted: %s", text);
	snprintf(g.f.want, sizeof(g.f.want), "%s:%d: %s", g.f.path, line, message);
	cr_expect_str_eq(g.f.err, g.f.want);
	group_rules_free(g.rules);
}

Test(groups_file, rules)
{
	struct groups_fixture g;
	cr_assert(groups_read(&g, "# groups\n"
				  "[orders-*]\n"
				  "  group.max.size = 40 ; of all of them\n"
				  "offsets.retention.minutes = 43200\n"
				  "[a group whose id is far longer than what libinih keeps of a section's name, 60 characters and more]\n"
				  "group.initial.rebalance.delay.ms = 0\n"
				  "[orders-eu]\n"
				  "group.max.size=4\r\n"
				  "[nothing of its own]\n"),
		  "%s", g.f.err);
	cr_expect(eq(uint, group_rules_len(g.rules), 4));
	cr_expect(eq(i32, group_settings_find(&g.base, bytes_str("orders-us"), NULL)->group_max_size, 40));
	cr_expect(eq(i32, group_settings_find(&g.base, bytes_str("orders-eu"), NULL)->group_max_size, 4));
	cr_expect(eq(i32, group_settings_find(&g.base, bytes_str("orders-eu"), NULL)->offsets_retention_minutes, 43200));
	cr_expect(eq(i32, group_settings_find(&g.base, bytes_str("other"), NULL)->group_max_size, 1000));
	uint32_t set;
	group_settings_find(&g.base, bytes_str("a group whose id is far longer than what libinih keeps of a section's name, 60 characters and more"), &set);
	cr_expect(eq(u32, set, 1u << GROUP_OVERRIDE_group_initial_rebalance_delay_ms));
	group_rules_free(g.rules);
}

Test(groups_file, errors)
{
	groups_refused("[g]\ngroup.max.sze = 3\n", 2, "group.max.sze: groups have no such setting; nearest: group.max.size");
	groups_refused("[g]\nmax.size = 3\n", 2, "max.size: groups have no such setting; nearest: group.max.size");
	groups_refused("[g]\nport = 3\n", 2, "port: is a setting of the whole server; allowed: in its own file");
	groups_refused("[g]\n\ngroup.max.size = 0\n", 3, "group.max.size: 0 is too small; allowed: 1 to 2147483647 (members)");
	groups_refused("[g]\ngroup.max.size = many\n", 2, "group.max.size: \"many\" is not a whole number; allowed: 1 to 2147483647 (members)");
	groups_refused("[g]\ngroup.max.size = 1\n[h]\n[h]\n", 4, "[h]: stands for the second time, or memory is short; allowed: once");
	groups_refused("[g]\ngroup.max.size = 1\ngroup.max.size = 2\n", 3,
		       "group.max.size: is set for the second time; allowed: once, and line 2 sets it");
	groups_refused("group.max.size = 1\n", 1, "group.max.size: stands before any section; allowed: in the section of a group");
	groups_refused("[g]\n[]\n", 2, "[]: is no group; allowed: a group id, or the beginning of one with * at its end");
	groups_refused("[a*b]\n", 1, "[a*b]: is no group; allowed: a group id, or the beginning of one with * at its end");
	groups_refused("[g]\nwhat\n", 2, "neither a section nor a setting; allowed: [SECTION] or NAME = VALUE");
	groups_refused("[g\n", 1, "neither a section nor a setting; allowed: [SECTION] or NAME = VALUE");
}

Test(groups_file, unknown_names_far_from_any)
{
	struct groups_fixture g;
	cr_expect(not(groups_read(&g, "[g]\nxyz = 3\n")));
	cr_expect(ne(ptr, strstr(g.f.err, ":2: xyz: groups have no such setting; allowed: group.min.session.timeout.ms group.max."), NULL), "%s", g.f.err);
	group_rules_free(g.rules);
}

Test(groups_file, what_is_in_force_must_fit_together)
{
	struct groups_fixture g;
	cr_expect(not(groups_read(&g, "[a*]\ngroup.max.session.timeout.ms = 9000\n[ab]\ngroup.min.session.timeout.ms = 9001\n")));
	snprintf(g.f.want, sizeof(g.f.want), "%s: [ab]: group.min.session.timeout.ms is 9001, more than group.max.session.timeout.ms; allowed: at most 9000",
		 g.f.path);
	cr_expect_str_eq(g.f.err, g.f.want);
	group_rules_free(g.rules);
}

Test(groups_file, every_setting_of_a_group_is_one_of_the_server)
{
	for (unsigned int i = 0; i < GROUP_OVERRIDE_COUNT; i++) {
		int id = config_find_name(group_override_name((enum group_override)i));
		cr_assert(ge(int, id, 0), "%s", group_override_name((enum group_override)i));
		cr_expect(eq(int, config_row((enum config_id)id)->type, CONFIG_NUMBER));
	}
}

Test(groups_file, no_file)
{
	char err[CONFIG_ERROR_MAX];
	struct group_rules *rules = group_rules_new();
	cr_expect(not(groups_file_read(rules, "/nowhere/groups.conf", err, sizeof(err))));
	cr_expect_str_eq(err, "/nowhere/groups.conf: cannot be opened: No such file or directory; allowed: a readable file");
	group_rules_free(rules);
}
