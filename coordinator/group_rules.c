/*
 * group_rules.c - see group_rules.h. Rules lie sorted by pattern, a prefix behind the id that is spelled the same; who looks for the longest prefix
 * searches for each length, from the whole id down.
 */
#include <stdlib.h>
#include <string.h>

#include "coordinator/group_rules.h"
#include "coordinator/shard.h"
#include "muster/check.h"

struct group_rule {
	struct bytes pattern; /* malloc */
	bool prefix;
	struct group_override_values own;
	uint32_t set; /* own and inherited */
	struct group_settings settings;
};

struct group_rules {
	struct group_rule *list;
	unsigned int len, cap;
};

static const struct {
	const char *name;
	size_t offset; /* in struct group_settings */
} override_rows[GROUP_OVERRIDE_COUNT] = {
#define OVERRIDE(field, name) {name, offsetof(struct group_settings, field)},
	GROUP_OVERRIDES(OVERRIDE)
#undef OVERRIDE
};

const char *group_override_name(enum group_override o)
{
	CHECK(o < GROUP_OVERRIDE_COUNT);
	return override_rows[o].name;
}

static int32_t *override_at(struct group_settings *settings, enum group_override o)
{
	return (int32_t *)((char *)settings + override_rows[o].offset);
}

int32_t group_override_value(const struct group_settings *settings, enum group_override o)
{
	CHECK(o < GROUP_OVERRIDE_COUNT);
	return *(const int32_t *)((const char *)settings + override_rows[o].offset);
}

struct group_rules *group_rules_new(void)
{
	return calloc(1, sizeof(struct group_rules));
}

void group_rules_free(struct group_rules *rules)
{
	for (unsigned int i = 0; rules != NULL && i < rules->len; i++)
		free((void *)(uintptr_t)rules->list[i].pattern.p);
	if (rules != NULL)
		free(rules->list);
	free(rules);
}

static int rule_compare(struct bytes a, bool a_prefix, struct bytes b, bool b_prefix)
{
	int32_t n = a.len < b.len ? a.len : b.len;
	int order = n > 0 ? memcmp(a.p, b.p, (size_t)n) : 0;
	if (order != 0)
		return order;
	return a.len != b.len ? (a.len > b.len) - (a.len < b.len) : (int)a_prefix - (int)b_prefix;
}

/* The index of the first rule that is not smaller. */
static unsigned int rules_search(const struct group_rules *rules, struct bytes pattern, bool prefix)
{
	unsigned int low = 0, high = rules->len;
	while (low < high) {
		unsigned int mid = low + (high - low) / 2;
		if (rule_compare(rules->list[mid].pattern, rules->list[mid].prefix, pattern, prefix) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static const struct group_rule *rules_get(const struct group_rules *rules, struct bytes pattern, bool prefix)
{
	unsigned int i = rules_search(rules, pattern, prefix);
	bool found = i < rules->len && rule_compare(rules->list[i].pattern, rules->list[i].prefix, pattern, prefix) == 0;
	return found ? &rules->list[i] : NULL;
}

bool group_rules_add(struct group_rules *rules, struct bytes pattern, bool prefix, const struct group_override_values *values)
{
	CHECK(pattern.len >= 0);
	unsigned int at = rules_search(rules, pattern, prefix);
	if (rules_get(rules, pattern, prefix) != NULL)
		return false;
	if (rules->len == rules->cap) {
		unsigned int cap = rules->cap == 0 ? 8 : rules->cap * 2;
		struct group_rule *list = realloc(rules->list, cap * sizeof(*list));
		if (list == NULL)
			return false;
		rules->list = list;
		rules->cap = cap;
	}
	uint8_t *copy = malloc((size_t)pattern.len + 1);
	if (copy == NULL)
		return false;
	if (pattern.len > 0)
		memcpy(copy, pattern.p, (size_t)pattern.len);
	memmove(&rules->list[at + 1], &rules->list[at], (rules->len - at) * sizeof(*rules->list));
	rules->list[at] = (struct group_rule){.pattern = {copy, pattern.len}, .prefix = prefix, .own = *values};
	rules->len++;
	return true;
}

/* The rule of the longest prefix of `id` that is no longer than `len`. */
static const struct group_rule *rules_longest(const struct group_rules *rules, struct bytes id, int32_t len)
{
	const struct group_rule *rule = NULL;
	for (; len >= 0 && rule == NULL; len--)
		rule = rules_get(rules, (struct bytes){id.p, len}, true);
	return rule;
}

/* Whatever a rule inherits from must be ready: in the order of the list a prefix stands before the longer ones that begin with it. */
static void rule_work_out(const struct group_rules *rules, struct group_rule *rule, const struct group_settings *base)
{
	const struct group_rule *parent = rules_longest(rules, rule->pattern, rule->pattern.len - rule->prefix);
	rule->settings = parent != NULL ? parent->settings : *base;
	rule->settings.rules = NULL;
	rule->set = rule->own.set | (parent != NULL ? parent->set : 0);
	for (unsigned int o = 0; o < GROUP_OVERRIDE_COUNT; o++)
		if ((rule->own.set >> o & 1) != 0)
			*override_at(&rule->settings, (enum group_override)o) = rule->own.values[o];
}

void group_rules_seal(struct group_rules *rules, const struct group_settings *base)
{
	for (unsigned int i = 0; i < rules->len; i++)
		if (rules->list[i].prefix)
			rule_work_out(rules, &rules->list[i], base);
	for (unsigned int i = 0; i < rules->len; i++)
		if (!rules->list[i].prefix)
			rule_work_out(rules, &rules->list[i], base);
}

unsigned int group_rules_len(const struct group_rules *rules)
{
	return rules->len;
}

const struct group_settings *group_rules_at(const struct group_rules *rules, unsigned int i, struct bytes *pattern)
{
	CHECK(i < rules->len);
	*pattern = rules->list[i].pattern;
	return &rules->list[i].settings;
}

const struct group_settings *group_settings_find(const struct group_settings *base, struct bytes group_id, uint32_t *set)
{
	const struct group_rule *rule = base->rules == NULL ? NULL : rules_get(base->rules, group_id, false);
	if (rule == NULL && base->rules != NULL)
		rule = rules_longest(base->rules, group_id, group_id.len);
	if (set != NULL)
		*set = rule == NULL ? 0 : rule->set;
	return rule == NULL ? base : &rule->settings;
}
