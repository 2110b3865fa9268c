/*
 * show.c - items for people: the server as a list of names and values, all other kinds as tables, in the order in which their first item came.
 *
 * A column whose values are all missing is left out. Members that end in _ms and are points in time are shown as UTC.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "coordinator/ctl/ctl.h"

#define COLUMNS 12
#define CELL 120 /* bytes of one value; longer ones are cut */
#define KINDS 12

static const struct kind {
	const char *name;
	const char *title; /* NULL: none */
	const char *columns[COLUMNS];
} kinds[KINDS] = {
	{"server", NULL, {NULL}},
	{"worker", NULL, {"worker", "node", "port", "state", "stage", "silent_ms", "stalls", "connections", "groups", "members", "requests_per_s", "log_records"}},
	{"core", NULL, {"worker", "node", "state", "busy_permille", "connections", "groups", "members", "requests_per_s", "ring_depth", "frames_handed_over",
			"requests_forwarded", "requests_served_for_others"}},
	{"group", NULL, {"group", "state", "since_ms", "generation", "members", "handed_out_ids", "protocol", "leader", "shard", "node"}},
	{"member", "the member:", {"group", "member", "instance", "client", "host", "seen_ms", "handed_out_ms", "session_timeout_ms", "rebalance_timeout_ms", "parked"}},
	{"rebalance-open", "a rebalance is under way:", {"cause", "member", "instance", "client", "start_ms", "running_ms", "members", "joined"}},
	{"waiting", "it waits for:", {"for", "member", "instance", "client", "host", "since_ms", "seen_ms"}},
	{"rebalance", "rebalances:", {"end_ms", "cause", "member", "instance", "client", "took_ms", "generation", "members", "late", "waited_for", "leader"}},
	{"removed", "members that are gone:", {"at_ms", "group", "member", "instance", "client", "host", "reason", "because", "detail", "successor"}},
	{"unknown", "nothing is known:", {"member", "instance", "known_since_ms"}},
	{"offset", NULL, {"group", "topic", "partition", "before", "offset"}},
};

struct show {
	json_t *lists[KINDS]; /* by kind */
	const struct kind *order[KINDS];
	unsigned int len;
};

struct show *show_new(void)
{
	return calloc(1, sizeof(struct show));
}

void show_item(struct show *show, json_t *item)
{
	const char *name = json_string_value(json_object_get(item, "item"));
	for (size_t i = 0; name != NULL && i < KINDS && kinds[i].name != NULL; i++) {
		if (strcmp(kinds[i].name, name) != 0)
			continue;
		if (show->lists[i] == NULL) {
			show->lists[i] = json_array();
			show->order[show->len++] = &kinds[i];
		}
		json_array_append(show->lists[i], item);
	}
}

/* ---- cells ---- */

static bool is_time(const char *name)
{
	static const char *const times[] = {"since_ms", "start_ms", "end_ms", "seen_ms", "at_ms", "started_ms", "handed_out_ms", "known_since_ms", "waited_since_ms"};
	for (size_t i = 0; i < ARRAY_LEN(times); i++)
		if (strcmp(name, times[i]) == 0)
			return true;
	return false;
}

static void time_text(json_int_t ms, char out[CELL])
{
	time_t s = (time_t)(ms / 1000);
	struct tm tm;
	if (gmtime_r(&s, &tm) == NULL || strftime(out, CELL, "%Y-%m-%d %H:%M:%S", &tm) == 0)
		snprintf(out, CELL, "%lld", (long long)ms);
}

/* A terminal is not to be steered by a member's name. */
static void text_text(const char *s, char out[CELL])
{
	size_t n = 0;
	for (; *s != '\0' && n + 5 < CELL; s++) {
		if ((unsigned char)*s >= ' ' && *s != 0x7f)
			out[n++] = *s;
		else
			n += (size_t)sprintf(out + n, "\\x%02x", (unsigned char)*s);
	}
	while (*s != '\0' && n > 0 && ((unsigned char)*s & 0xc0) == 0x80) { /* cut: not inside of a character */
		s--;
		n--;
	}
	out[n] = '\0';
}

/* False: it is not there. */
static bool cell(const json_t *item, const char *name, char out[CELL])
{
	const json_t *value = json_object_get(item, name);
	snprintf(out, CELL, "-");
	if (json_is_string(value))
		text_text(json_string_value(value), out);
	else if (json_is_integer(value) && is_time(name))
		time_text(json_integer_value(value), out);
	else if (json_is_integer(value) && strcmp(name, "busy_permille") == 0)
		snprintf(out, CELL, "%.1f %%", (double)json_integer_value(value) / 10);
	else if (json_is_integer(value))
		snprintf(out, CELL, "%lld", (long long)json_integer_value(value));
	else
		return false;
	return true;
}

/* The name without the unit of a time, which is shown as one. */
static void heading(const char *name, char out[CELL])
{
	size_t n = strlen(name);
	if (is_time(name))
		n -= 3;
	else if (strcmp(name, "busy_permille") == 0)
		n = 4;
	for (size_t i = 0; i < n; i++)
		out[i] = name[i] == '_' ? ' ' : name[i];
	out[n] = '\0';
}

/* Columns on a terminal: bytes that begin a character. */
static size_t width_of(const char *text)
{
	size_t n = 0;
	for (; *text != '\0'; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80;
	return n;
}

/* ---- tables ---- */

static void print_cell(const char *text, size_t width, bool last, FILE *out)
{
	size_t pad = last ? 0 : width - width_of(text) + 2;
	fprintf(out, "%s%*s", text, (int)pad, "");
}

static void print_table(const struct kind *kind, const json_t *list, FILE *out)
{
	size_t widths[COLUMNS] = {0}, i;
	int last = -1;
	char text[CELL];
	json_t *item;
	json_array_foreach(list, i, item) {
		for (int c = 0; c < COLUMNS && kind->columns[c] != NULL; c++) {
			if (!cell(item, kind->columns[c], text))
				continue;
			widths[c] = width_of(text) > widths[c] ? width_of(text) : widths[c];
			last = c > last ? c : last;
		}
	}
	for (int c = 0; c <= last; c++) {
		heading(kind->columns[c], text);
		if (widths[c] > 0)
			widths[c] = widths[c] > strlen(text) ? widths[c] : strlen(text);
		if (widths[c] > 0)
			print_cell(text, widths[c], c == last, out);
	}
	fputc('\n', out);
	json_array_foreach(list, i, item) {
		for (int c = 0; c <= last; c++) {
			cell(item, kind->columns[c], text);
			if (widths[c] > 0)
				print_cell(text, widths[c], c == last, out);
		}
		fputc('\n', out);
	}
}

static void print_list(const json_t *item, FILE *out)
{
	char name_text[CELL], text[CELL];
	const char *name;
	json_t *value;
	json_object_foreach((json_t *)(uintptr_t)item, name, value) {
		if (strcmp(name, "item") == 0 || !cell(item, name, text))
			continue;
		heading(name, name_text);
		fprintf(out, "%-16s %s\n", name_text, text);
	}
}

void show_end(struct show *show, FILE *out)
{
	for (unsigned int k = 0; k < show->len; k++) {
		const struct kind *kind = show->order[k];
		const json_t *list = show->lists[kind - kinds];
		if (k > 0)
			fputc('\n', out);
		if (kind->title != NULL)
			fprintf(out, "%s\n", kind->title);
		if (kind->columns[0] == NULL)
			print_list(json_array_get(list, 0), out);
		else
			print_table(kind, list, out);
	}
	for (unsigned int i = 0; i < KINDS; i++)
		json_decref(show->lists[i]);
	free(show);
}
