/* test_group_rules.c - groups with settings of their own: which rule holds for which group, and that the engine goes by them. */
#include <criterion/criterion.h>

#include "rig.h"

static struct rig *r;
static struct group_rules *rules;

static void setup(void)
{
	r = rig_new();
	rules = group_rules_new();
}

static void teardown(void)
{
	rig_free(r);
	group_rules_free(rules);
}

TestSuite(group_rules, .init = setup, .fini = teardown);

static bool add(const char *pattern, bool prefix, enum group_override o, int32_t value)
{
	struct group_override_values v = {.set = 1u << o};
	v.values[o] = value;
	return group_rules_add(rules, bytes_str(pattern), prefix, &v);
}

static void seal(void)
{
	group_rules_seal(rules, &r->settings);
	r->settings.rules = rules;
}

static const struct group_settings *of(const char *group, uint32_t *set)
{
	return group_settings_find(&r->settings, bytes_str(group), set);
}

Test(group_rules, the_most_special_rule_that_sets_it)
{
	uint32_t set;
	cr_assert(add("orders-eu", false, GROUP_OVERRIDE_group_max_size, 5));
	cr_assert(add("orders-", true, GROUP_OVERRIDE_group_max_size, 7));
	cr_assert(add("orders-eu-", true, GROUP_OVERRIDE_offsets_retention_minutes, 11));
	cr_assert(add("orders-eu", true, GROUP_OVERRIDE_offsets_retention_minutes, 12));
	cr_assert(add("", true, GROUP_OVERRIDE_group_initial_rebalance_delay_ms, 100));
	seal();
	cr_expect_eq(of("orders-eu", &set)->group_max_size, 5);
	cr_expect_eq(of("orders-eu", NULL)->offsets_retention_minutes, 12);
	cr_expect_eq(of("orders-eu", NULL)->group_initial_rebalance_delay_ms, 100);
	cr_expect_eq(set, 1u << GROUP_OVERRIDE_group_max_size | 1u << GROUP_OVERRIDE_offsets_retention_minutes |
			  1u << GROUP_OVERRIDE_group_initial_rebalance_delay_ms);
	cr_expect_eq(of("orders-eu-1", NULL)->group_max_size, 7);
	cr_expect_eq(of("orders-eu-1", NULL)->offsets_retention_minutes, 11);
	cr_expect_eq(of("orders-eu1", NULL)->offsets_retention_minutes, 12);
	cr_expect_eq(of("orders-us", NULL)->group_max_size, 7);
	cr_expect_eq(of("orders-us", NULL)->offsets_retention_minutes, r->settings.offsets_retention_minutes);
	cr_expect_eq(of("order", &set)->group_max_size, INT32_MAX);
	cr_expect_eq(set, 1u << GROUP_OVERRIDE_group_initial_rebalance_delay_ms);
	cr_expect_eq(of("", NULL)->group_initial_rebalance_delay_ms, 100);
	cr_expect_eq(of("order", NULL)->group_max_session_timeout_ms, 1800000);
}

Test(group_rules, none_fits)
{
	uint32_t set = 1;
	cr_assert(add("x", true, GROUP_OVERRIDE_group_max_size, 7));
	seal();
	cr_expect_eq(of("g", &set), &r->settings);
	cr_expect_eq(set, 0);
	r->settings.rules = NULL;
	cr_expect_eq(of("x", &set), &r->settings);
}

Test(group_rules, no_pattern_twice)
{
	cr_expect(add("x", true, GROUP_OVERRIDE_group_max_size, 7));
	cr_expect(add("x", false, GROUP_OVERRIDE_group_max_size, 7));
	cr_expect(!add("x", true, GROUP_OVERRIDE_group_max_size, 8));
	cr_expect(!add("x", false, GROUP_OVERRIDE_group_max_size, 8));
	cr_expect_eq(group_rules_len(rules), 2);
}

/* Against a walk over all rules. */
Test(group_rules, many)
{
	char id[16], pattern[16];
	bool have[1000] = {false};
	for (unsigned int i = 0; i < 1000; i += 7) {
		snprintf(pattern, sizeof(pattern), "%u", i * 37 % 1000);
		have[i * 37 % 1000] = add(pattern, true, GROUP_OVERRIDE_group_max_size, (int32_t)(i * 37 % 1000) + 1);
	}
	seal();
	for (unsigned int i = 0; i < 3000; i++) {
		int32_t want = INT32_MAX;
		snprintf(id, sizeof(id), "%u", i);
		for (int len = (int)strlen(id); len > 0 && want == INT32_MAX; len--) {
			snprintf(pattern, sizeof(pattern), "%.*s", len, id);
			unsigned int n = (unsigned int)atoi(pattern);
			want = n < 1000 && have[n] ? (int32_t)n + 1 : INT32_MAX;
		}
		cr_assert_eq(of(id, NULL)->group_max_size, want, "%s", id);
	}
}

Test(group_rules, the_engine_goes_by_them)
{
	cr_assert(add("g", false, GROUP_OVERRIDE_group_max_size, 1));
	cr_assert(add("s", true, GROUP_OVERRIDE_group_min_session_timeout_ms, 20000));
	cr_assert(add("t", true, GROUP_OVERRIDE_group_max_session_timeout_ms, 9000));
	cr_assert(add("d", true, GROUP_OVERRIDE_group_initial_rebalance_delay_ms, 500));
	seal();
	struct call *c[1];
	rig_stable(r, c, 1);
	cr_expect_eq(rig_join(r, 3, "", NULL, 10000, 60000, "range")->error, 81);
	cr_expect_eq(rig_join_to(r, "s1", 3, "", NULL, 10000, 60000, "consumer", "range")->error, 26);
	cr_expect_eq(rig_join_to(r, "t1", 3, "", NULL, 10000, 60000, "consumer", "range")->error, 26);
	struct call *soon = rig_join_to(r, "d1", 3, "", NULL, 10000, 60000, "consumer", "range");
	struct call *other = rig_join_to(r, "e1", 3, "", NULL, 10000, 60000, "consumer", "range");
	rig_pass(r, 500);
	cr_expect(soon->answered && !other->answered);
}

Test(group_rules, offsets_of_a_group_expire_by_its_own_retention)
{
	r->settings.offsets_retention_minutes = 10;
	r->settings.offsets_retention_check_interval_ms = 60000;
	cr_assert(add("long", true, GROUP_OVERRIDE_offsets_retention_minutes, 30));
	seal();
	rig_commit_full(r, "long-1", 2, "", NULL, -1, "t:0=5", -1, -1);
	rig_commit_full(r, "g", 2, "", NULL, -1, "t:0=5", -1, -1);
	rig_pass(r, 15 * 60000);
	struct offset_value v;
	cr_expect(shard_offset_get(r->shard, bytes_str("long-1"), bytes_str("t"), 0, &v));
	cr_expect(!shard_offset_get(r->shard, bytes_str("g"), bytes_str("t"), 0, &v));
	rig_pass(r, 20 * 60000);
	cr_expect(!shard_offset_get(r->shard, bytes_str("long-1"), bytes_str("t"), 0, &v));
}
