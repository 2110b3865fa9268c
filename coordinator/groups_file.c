/*
 * groups_file.c - see groups_file.h.
 */
#include <inttypes.h>
#include <string.h>

#include "coordinator/config_value.h"
#include "coordinator/groups_file.h"
#include "coordinator/ini_file.h"
#include "coordinator/shard.h"
#include "muster/check.h"

/* A setting of a group has the row of the server's setting of the same name: its range, unit and words. */
static const enum config_id override_ids[GROUP_OVERRIDE_COUNT] = {
#define OVERRIDE(field, name) CONFIG_ID_##field,
	GROUP_OVERRIDES(OVERRIDE)
#undef OVERRIDE
};

/* All of them, for an error. */
#define OVERRIDE(field, name) " " name
static const char groups_allowed[] = GROUP_OVERRIDES(OVERRIDE);
#undef OVERRIDE

struct groups_reading {
	struct group_rules *rules;
	struct config scratch; /* where values are parsed into */
	char pattern[INI_SECTION_MAX];
	bool open; /* a section is being read */
	int section_line;
	struct group_override_values values;
	int lines[GROUP_OVERRIDE_COUNT]; /* that set them */
};

static const char *override_name(unsigned int i)
{
	return group_override_name((enum group_override)i);
}

static int override_find(const char *name)
{
	for (unsigned int i = 0; i < GROUP_OVERRIDE_COUNT; i++)
		if (strcmp(override_name(i), name) == 0)
			return (int)i;
	return -1;
}

/* The section is over: its rule. */
static void groups_close(struct ini_file *f)
{
	struct groups_reading *rd = f->arg;
	size_t len = strlen(rd->pattern);
	bool prefix = len > 0 && rd->pattern[len - 1] == '*';
	if (!rd->open)
		return;
	rd->open = false;
	if (!group_rules_add(rd->rules, bytes_of(rd->pattern, len - prefix), prefix, &rd->values))
		ini_file_fail(f, rd->section_line, "[%s]: stands for the second time, or memory is short; allowed: once", rd->pattern);
}

static void groups_section(struct ini_file *f, const char *name)
{
	struct groups_reading *rd = f->arg;
	const char *star = strchr(name, '*');
	groups_close(f);
	if (f->bad_line != 0)
		return;
	if (*name == '\0' || (star != NULL && star[1] != '\0')) {
		ini_file_fail(f, f->line, "[%s]: is no group; allowed: a group id, or the beginning of one with * at its end", name);
		return;
	}
	snprintf(rd->pattern, sizeof(rd->pattern), "%s", name);
	rd->section_line = f->line;
	rd->values = (struct group_override_values){0};
	memset(rd->lines, 0, sizeof(rd->lines));
	rd->open = true;
}

static void groups_unknown(struct ini_file *f, const char *name)
{
	const char *nearest = config_nearest(name, override_name, GROUP_OVERRIDE_COUNT);
	if (config_find_name(name) >= 0)
		ini_file_fail(f, f->line, "%s: is a setting of the whole server; allowed: in its own file", name);
	else if (nearest != NULL)
		ini_file_fail(f, f->line, "%.60s: groups have no such setting; nearest: %s", name, nearest);
	else
		ini_file_fail(f, f->line, "%.60s: groups have no such setting; allowed:%s", name, groups_allowed);
}

static void groups_entry(struct ini_file *f, const char *section, const char *name, const char *value)
{
	struct groups_reading *rd = f->arg;
	char why[256], allowed[256];
	int i = override_find(name);
	if (i < 0) {
		groups_unknown(f, name);
		return;
	}
	const struct config_row *row = config_row(override_ids[i]);
	CHECK(row->type == CONFIG_NUMBER && row->max <= INT32_MAX && strcmp(row->name, name) == 0);
	if (!rd->open) {
		ini_file_fail(f, f->line, "%s: stands before any section; allowed: in the section of a group", name);
	} else if (rd->lines[i] != 0) {
		ini_file_fail(f, f->line, "%s: is set for the second time; allowed: once, and line %d sets it", name, rd->lines[i]);
	} else if (!config_value_parse(&rd->scratch, row, value, f->folder, why, sizeof(why))) {
		config_allowed(row, allowed, sizeof(allowed));
		ini_file_fail(f, f->line, "%s: %s; allowed: %s", name, why, allowed);
	} else {
		rd->lines[i] = f->line;
		rd->values.set |= 1u << i;
		rd->values.values[i] = (int32_t)*(const int64_t *)((const char *)&rd->scratch + row->offset);
	}
}

bool groups_file_read(struct group_rules *rules, const char *path, char *err, size_t err_len)
{
	struct groups_reading rd = {.rules = rules};
	struct ini_file f = {.section = groups_section, .entry = groups_entry, .arg = &rd};
	config_init(&rd.scratch);
	if (!ini_file_read(&f, path, err, err_len))
		return false;
	groups_close(&f);
	return f.bad_line == 0;
}

bool groups_file_check(const struct group_rules *rules, const char *path, char *err, size_t err_len)
{
	struct bytes pattern;
	for (unsigned int i = 0; i < group_rules_len(rules); i++) {
		const struct group_settings *s = group_rules_at(rules, i, &pattern);
		if (s->group_min_session_timeout_ms <= s->group_max_session_timeout_ms)
			continue;
		snprintf(err, err_len, "%s: [%.*s]: group.min.session.timeout.ms is %d, more than group.max.session.timeout.ms; allowed: at most %d", path,
			 pattern.len, (const char *)pattern.p, s->group_min_session_timeout_ms, s->group_max_session_timeout_ms);
		return false;
	}
	return true;
}
