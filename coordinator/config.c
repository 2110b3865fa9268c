/*
 * config.c - the table of settings, and how the file and the command line set them.
 *
 * Invariants:
 *  1. The first error wins: later ones are neither checked nor told.
 *  2. Every row's default passes the row's own parser (config_init checks it).
 */
#include "coordinator/config.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "muster/check.h"

#include "coordinator/config_value.h"
#include "coordinator/ini_file.h"

#define WHAT_MAX 540 /* an error without its place: what is wrong, and what is allowed */

static const struct config_row rows[CONFIG_SETTINGS] = {
#define SETTING(section, field, name, type, def, min, max, unit, help) \
	{#section, name, CONFIG_##type, def, min, max, unit, help, offsetof(struct config, field)},
#include "coordinator/config.def"
#undef SETTING
};

const struct config_row *config_row(enum config_id id)
{
	CHECK(id < CONFIG_SETTINGS);
	return &rows[id];
}

void config_init(struct config *cfg)
{
	memset(cfg, 0, sizeof(*cfg));
	char why[CONFIG_ERROR_MAX];
	for (unsigned int i = 0; i < CONFIG_SETTINGS; i++)
		CHECK(config_value_parse(cfg, &rows[i], rows[i].default_text, "/", why, sizeof(why)));
}

/* "a|b|c" as "a, b, c". */
static void allowed_words(const char *words, char *out, size_t len)
{
	size_t at = 0;
	for (; *words != '\0' && at + 3 < len; words++) {
		out[at++] = *words == '|' ? ',' : *words;
		if (*words == '|')
			out[at++] = ' ';
	}
	out[at] = '\0';
}

void config_allowed(const struct config_row *row, char *out, size_t len)
{
	bool unit = *row->unit != '\0';
	switch (row->type) {
	case CONFIG_NUMBER:
		if (row->min == row->max)
			snprintf(out, len, "only %lld", (long long)row->min);
		else
			snprintf(out, len, "%lld to %lld%s%s%s", (long long)row->min, (long long)row->max, unit ? " (" : "", row->unit,
				 unit ? ")" : "");
		break;
	case CONFIG_BOOL:
		snprintf(out, len, "true, false");
		break;
	case CONFIG_TEXT:
	case CONFIG_PATH:
		snprintf(out, len, "%s%s of at most %lld bytes", row->min == 0 ? "nothing, or a " : "a ", row->unit, (long long)row->max);
		break;
	case CONFIG_ENUM:
		allowed_words(row->unit, out, len);
		break;
	case CONFIG_ADDRESS:
		snprintf(out, len, "nothing, or an IPv4 address like 10.77.0.1");
		break;
	case CONFIG_NETWORK:
		snprintf(out, len, "an IPv4 address with a prefix length of %lld to %lld, like 10.77.0.2/24", (long long)row->min,
			 (long long)row->max);
		break;
	case CONFIG_MAC:
		snprintf(out, len, "nothing, or six bytes like 02:00:00:00:00:01");
		break;
	}
}

void config_origin_text(const struct config *cfg, enum config_id id, char *out, size_t len)
{
	const struct config_origin *origin = &cfg->origin[id];
	if (origin->source == CONFIG_FROM_FILE)
		snprintf(out, len, "%s:%d", cfg->file, origin->line);
	else
		snprintf(out, len, "%s", origin->source == CONFIG_FROM_SET ? "--set" : "default");
}

/* What is said about a name that is no setting. */
static void unknown_name(const char *name, char *what, size_t len)
{
	const char *nearest = config_nearest_name(name);
	if (nearest != NULL)
		snprintf(what, len, "there is no such setting; nearest: %s", nearest);
	else
		snprintf(what, len, "there is no such setting; allowed: those that muster config --print lists");
}

int config_find_name(const char *name)
{
	for (int i = 0; i < CONFIG_SETTINGS; i++)
		if (strcmp(rows[i].name, name) == 0)
			return i;
	return -1;
}

/* Sets rows[id] to `text`; False: `what` is the error without its place. */
static bool set_value(struct config *cfg, int id, const char *text, const char *folder, struct config_origin origin, char *what, size_t len)
{
	char why[256], allowed[256];
	if (!config_value_parse(cfg, &rows[id], text, folder, why, sizeof(why))) {
		config_allowed(&rows[id], allowed, sizeof(allowed));
		snprintf(what, len, "%s; allowed: %s", why, allowed);
		return false;
	}
	cfg->origin[id] = origin;
	return true;
}

/* ---- the file ---- */

/* Row `id` may be set here: in its section, for the first time. */
static bool place_ok(struct ini_file *f, int id, const char *section)
{
	const struct config *cfg = f->arg;
	const struct config_row *row = &rows[id];
	const struct config_origin *origin = &cfg->origin[id];
	if (strcmp(row->section, section) == 0 && origin->source == CONFIG_FROM_DEFAULT)
		return true;
	if (*section == '\0')
		ini_file_fail(f, f->line, "%s: stands before any section; allowed: in [%s]", row->name, row->section);
	else if (strcmp(row->section, section) != 0)
		ini_file_fail(f, f->line, "%s: does not belong in section [%.40s]; allowed: in [%s]", row->name, section, row->section);
	else
		ini_file_fail(f, f->line, "%s: is set for the second time; allowed: once, and line %d sets it", row->name, origin->line);
	return false;
}

static void config_entry(struct ini_file *f, const char *section, const char *name, const char *value)
{
	struct config *cfg = f->arg;
	char what[WHAT_MAX];
	int id = config_find_name(name);
	if (id < 0) {
		unknown_name(name, what, sizeof(what));
		ini_file_fail(f, f->line, "%.60s: %s", name, what);
		return;
	}
	struct config_origin origin = {CONFIG_FROM_FILE, f->line};
	if (place_ok(f, id, section) && !set_value(cfg, id, value, f->folder, origin, what, sizeof(what)))
		ini_file_fail(f, f->line, "%s: %s", name, what);
}

bool config_read(struct config *cfg, const char *path, char *err, size_t err_len)
{
	CHECK(cfg->file[0] == '\0');
	if (strlen(path) >= sizeof(cfg->file)) {
		snprintf(err, err_len, "%.80s...: name of the file is too long; allowed: %zu bytes", path, sizeof(cfg->file) - 1);
		return false;
	}
	memcpy(cfg->file, path, strlen(path) + 1);
	struct ini_file f = {.entry = config_entry, .arg = cfg};
	return ini_file_read(&f, cfg->file, err, err_len);
}

/* ---- the command line ---- */

bool config_set(struct config *cfg, const char *assignment, char *err, size_t err_len)
{
	char name[64], what[WHAT_MAX], folder[PATH_MAX];
	assignment += strspn(assignment, " \t");
	const char *value = strchr(assignment, '=');
	size_t n = value != NULL ? (size_t)(value - assignment) : strlen(assignment);
	while (n > 0 && isblank((unsigned char)assignment[n - 1]))
		n--;
	snprintf(name, sizeof(name), "%.*s", (int)(n < sizeof(name) ? n : sizeof(name) - 1), assignment);
	int id = config_find_name(name);
	if (id < 0) {
		unknown_name(name, what, sizeof(what));
		snprintf(err, err_len, "--set: %s: %s", name, what);
		return false;
	}
	if (value == NULL) {
		snprintf(err, err_len, "--set: %s: has no value; allowed: %s=VALUE", name, name);
		return false;
	}
	char text[1024];
	value += 1 + strspn(value + 1, " \t");
	n = strlen(value);
	while (n > 0 && isblank((unsigned char)value[n - 1]))
		n--;
	if (n >= sizeof(text) || getcwd(folder, sizeof(folder)) == NULL) {
		snprintf(err, err_len, "--set: %s: %s", name, n >= sizeof(text) ? "value is too long" : strerror(errno));
		return false;
	}
	memcpy(text, value, n);
	text[n] = '\0';
	if (set_value(cfg, id, text, folder, (struct config_origin){CONFIG_FROM_SET, cfg->sets + 1}, what, sizeof(what))) {
		cfg->sets++;
		return true;
	}
	snprintf(err, err_len, "--set: %s: %s", name, what);
	return false;
}
