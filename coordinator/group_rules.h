/*
 * group_rules.h - settings of single groups: which of the engine's settings a group can have for itself, and which groups have.
 *
 * A rule has a pattern, a group id or the beginning of one, and values for some of the settings. A group takes each setting from the most
 * special rule that sets it: the one of exactly its id, then the longest prefix, then shorter ones, then the server's own. As a rule's own
 * prefixes are the same for all groups that it fits, its settings are worked out once, when the rules are sealed; a group looks its rule up once, when it
 * is made.
 */
#ifndef MUSTER_GROUP_RULES_H
#define MUSTER_GROUP_RULES_H

#include "muster/bytes.h"

struct group_settings;
struct group_rules;

/* OVERRIDE(field of struct group_settings, name): the settings that a group can have for itself; all are int32_t. */
#define GROUP_OVERRIDES(OVERRIDE)                                                       \
	OVERRIDE(group_min_session_timeout_ms, "group.min.session.timeout.ms")          \
	OVERRIDE(group_max_session_timeout_ms, "group.max.session.timeout.ms")          \
	OVERRIDE(group_initial_rebalance_delay_ms, "group.initial.rebalance.delay.ms")  \
	OVERRIDE(group_max_size, "group.max.size")                                      \
	OVERRIDE(group_join_window_ms, "group.join.window.ms")                          \
	OVERRIDE(group_join_window_max_ms, "group.join.window.max.ms")                  \
	OVERRIDE(group_max_pending_members, "group.max.pending.members")                \
	OVERRIDE(offsets_retention_minutes, "offsets.retention.minutes")

enum group_override {
#define OVERRIDE(field, name) GROUP_OVERRIDE_##field,
	GROUP_OVERRIDES(OVERRIDE)
#undef OVERRIDE
	GROUP_OVERRIDE_COUNT
};

const char *group_override_name(enum group_override o);
int32_t group_override_value(const struct group_settings *settings, enum group_override o);

/* What a rule sets: `set` has a bit for each override that it sets. */
struct group_override_values {
	uint32_t set;
	int32_t values[GROUP_OVERRIDE_COUNT];
};

struct group_rules *group_rules_new(void); /* NULL: no memory */
void group_rules_free(struct group_rules *rules);
/* Copies. `prefix`: for all ids that begin with `pattern`. False: the pattern stands already, or no memory. */
bool group_rules_add(struct group_rules *rules, struct bytes pattern, bool prefix, const struct group_override_values *values);
/* After the last one: works every rule's settings out over `base`, which is copied. */
void group_rules_seal(struct group_rules *rules, const struct group_settings *base);
unsigned int group_rules_len(const struct group_rules *rules);
/* The settings of the i-th rule in force, and its pattern; for checks. */
const struct group_settings *group_rules_at(const struct group_rules *rules, unsigned int i, struct bytes *pattern);

/* The settings of a group: base itself unless base->rules has a rule for it. *set, if not NULL, tells which are the group's own. */
const struct group_settings *group_settings_find(const struct group_settings *base, struct bytes group_id, uint32_t *set);

#endif
