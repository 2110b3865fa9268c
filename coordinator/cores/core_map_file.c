/*
 * core_map_file.c - the file of a core map, an ini file (ini_file.h):
 *
 *   [housekeeping]
 *   cpu = 0                 or any
 *
 *   [worker 0]              numbered from 0 without gaps
 *   cpu = 2                 or any: wherever the program may run
 *   queue = 0               of the card, or none: its frames come from and go through other workers
 *   nic = 0                 the card; there is one
 *   numa = 0                where its mbufs lie; left out, or any: on the node of its CPU
 *   node.id = 1000          left out: the setting node.id + N
 *   port = 19092            left out: the setting port + N
 *   shards = 0-12,40        or auto: a fair part of what nobody names; left out: auto; or none
 *   idle.policy = spin      or adaptive; left out: the setting idle.policy
 *
 * Every fault is told, with its line: reading goes on behind it.
 */
#include <stdlib.h>
#include <string.h>

#include "coordinator/config_value.h"
#include "coordinator/core_map.h"
#include "coordinator/cores/number_list.h"
#include "coordinator/ini_file.h"

static const char *const key_names[CORE_MAP_KEY_COUNT] = {
#define KEY(field, name) name,
	CORE_MAP_KEYS(KEY)
#undef KEY
};

#define KEY(field, name) " " name
static const char keys_allowed[] = CORE_MAP_KEYS(KEY);
#undef KEY

enum part { PART_NONE, PART_BROKEN, PART_HOUSEKEEPING, PART_WORKER };

struct map_reading {
	struct core_map *map;
	const struct config *cfg;
	struct findings *out;
	enum part part;
	unsigned int worker; /* of PART_WORKER */
	bool has_section[CORE_MAP_WORKERS_MAX];
	bool takes_rest[CORE_MAP_WORKERS_MAX]; /* shards = auto */
	int owner_line[CORE_MAP_SHARDS_MAX];   /* 0: nobody names it */
	struct config scratch;		       /* where values of settings are parsed into */
};

#define WRONG(rd, at, ...) finding((rd)->out, FINDING_ERROR, (at), __VA_ARGS__)

static const char *key_name(unsigned int i)
{
	return key_names[i];
}

/* ---- sections ---- */

static bool worker_number(const char *text, unsigned int *out)
{
	char *end;
	if (*text < '0' || *text > '9')
		return false;
	unsigned long v = strtoul(text, &end, 10);
	*out = (unsigned int)v;
	return *end == '\0' && v < CORE_MAP_WORKERS_MAX;
}

static void begin_worker(struct map_reading *rd, int line)
{
	struct core_map_worker *w = &rd->map->worker[rd->worker];
	if (rd->has_section[rd->worker]) {
		WRONG(rd, line, "[worker %u]: stands for the second time; allowed: once, and line %d has it", rd->worker, w->line);
		rd->part = PART_BROKEN;
		return;
	}
	rd->part = PART_WORKER;
	rd->has_section[rd->worker] = rd->takes_rest[rd->worker] = true;
	*w = (struct core_map_worker){
		.cpu = CORE_MAP_ANY,
		.queue = CORE_MAP_NONE,
		.numa = CORE_MAP_ANY,
		.node_id = (int32_t)((uint32_t)rd->cfg->node_id + rd->worker), /* may be too large: derived_fit */
		.port = (int32_t)(rd->cfg->port + rd->worker),
		.idle = rd->cfg->idle_policy,
		.line = line,
	};
	if (rd->worker + 1 > rd->map->workers)
		rd->map->workers = rd->worker + 1;
}

static void map_section(struct ini_file *f, const char *name)
{
	struct map_reading *rd = f->arg;
	if (strncmp(name, "worker ", 7) == 0 && worker_number(name + 7, &rd->worker)) {
		begin_worker(rd, f->line);
	} else if (strcmp(name, "housekeeping") == 0) {
		rd->part = PART_HOUSEKEEPING;
	} else {
		WRONG(rd, f->line, "[%.60s]: is no section of a core map; allowed: [housekeeping], [worker 0] to [worker %u]", name, CORE_MAP_WORKERS_MAX - 1);
		rd->part = PART_BROKEN;
	}
}

/* ---- values ---- */

/* A whole number up to `max`, or `word`, which stands for -1. */
static bool number_or(const char *text, int max, const char *word, int *out)
{
	unsigned int n;
	const char *list = text;
	unsigned int last;
	if (strcmp(text, word) == 0) {
		*out = -1;
		return true;
	}
	if (strchr(text, '-') != NULL || strchr(text, ',') != NULL || !number_list_next(&list, &n, &last) || n > (unsigned int)max)
		return false;
	*out = (int)n;
	return true;
}

static void set_number(struct map_reading *rd, int line, const char *name, const char *text, int max, const char *word, int *out)
{
	if (!number_or(text, max, word, out))
		WRONG(rd, line, "%s: \"%.40s\" is no such number; allowed: 0 to %d, or %s", name, text, max, word);
}

/* By the parser of the setting of the same name. */
static void set_as_setting(struct map_reading *rd, int line, enum config_id id, const char *text)
{
	char why[256], allowed[256];
	const struct config_row *row = config_row(id);
	struct core_map_worker *w = &rd->map->worker[rd->worker];
	if (!config_value_parse(&rd->scratch, row, text, "/", why, sizeof(why))) {
		config_allowed(row, allowed, sizeof(allowed));
		WRONG(rd, line, "worker %u: %s: %s; allowed: %s", rd->worker, row->name, why, allowed);
		return;
	}
	if (id == CONFIG_ID_node_id)
		w->node_id = (int32_t)rd->scratch.node_id;
	else if (id == CONFIG_ID_port)
		w->port = (int32_t)rd->scratch.port;
	else
		w->idle = rd->scratch.idle_policy;
}

static void own_shards(struct map_reading *rd, int line, unsigned int first, unsigned int last)
{
	const struct core_map *map = rd->map;
	if (last >= map->shards) {
		WRONG(rd, line, "worker %u: shards: there is no shard %u; allowed: 0 to %u, as offsets.topic.num.partitions says", rd->worker, last,
		      map->shards - 1);
		return;
	}
	for (unsigned int s = first; s <= last; s++) {
		if (rd->owner_line[s] != 0) {
			WRONG(rd, line, "worker %u: shards: %u has worker %u already, by line %d; allowed: one owner", rd->worker, s, map->owner[s],
			      rd->owner_line[s]);
			return;
		}
		rd->map->owner[s] = (uint8_t)rd->worker;
		rd->owner_line[s] = line;
	}
}

static void set_shards(struct map_reading *rd, int line, const char *text)
{
	unsigned int first, last;
	const char *list = text;
	if (strcmp(text, "auto") == 0)
		return;
	rd->takes_rest[rd->worker] = false;
	if (strcmp(text, "none") == 0)
		return;
	while (number_list_next(&list, &first, &last))
		own_shards(rd, line, first, last);
	if (*list != '\0' || *text == '\0')
		WRONG(rd, line, "worker %u: shards: \"%.40s\" is no list of shards; allowed: numbers and ranges like 0-12,40, or auto, or none", rd->worker, list);
}

static void set_key(struct map_reading *rd, enum core_map_key key, int line, const char *text)
{
	struct core_map_worker *w = &rd->map->worker[rd->worker];
	char name[40];
	snprintf(name, sizeof(name), "worker %u: %s", rd->worker, key_names[key]);
	switch (key) {
	case CORE_MAP_KEY_cpu:
		set_number(rd, line, name, text, 1023, "any", &w->cpu);
		break;
	case CORE_MAP_KEY_queue:
		set_number(rd, line, name, text, CORE_MAP_WORKERS_MAX - 1, "none", &w->queue);
		break;
	case CORE_MAP_KEY_numa:
		set_number(rd, line, name, text, 31, "any", &w->numa);
		break;
	case CORE_MAP_KEY_nic:
		if (strcmp(text, "0") != 0)
			WRONG(rd, line, "%s: \"%.40s\": muster drives one card, the one of the setting device; allowed: 0", name, text);
		break;
	case CORE_MAP_KEY_node_id:
		set_as_setting(rd, line, CONFIG_ID_node_id, text);
		break;
	case CORE_MAP_KEY_port:
		set_as_setting(rd, line, CONFIG_ID_port, text);
		break;
	case CORE_MAP_KEY_idle:
		set_as_setting(rd, line, CONFIG_ID_idle_policy, text);
		break;
	case CORE_MAP_KEY_shards:
		set_shards(rd, line, text);
		break;
	case CORE_MAP_KEY_COUNT:
		break;
	}
}

static int key_find(const char *name)
{
	for (unsigned int i = 0; i < CORE_MAP_KEY_COUNT; i++)
		if (strcmp(key_names[i], name) == 0)
			return (int)i;
	return -1;
}

static void unknown_key(struct map_reading *rd, int line, const char *name)
{
	const char *nearest = config_nearest(name, key_name, CORE_MAP_KEY_COUNT);
	if (nearest != NULL)
		WRONG(rd, line, "%.60s: a worker has no such key; nearest: %s", name, nearest);
	else
		WRONG(rd, line, "%.60s: a worker has no such key; allowed:%s", name, keys_allowed);
}

static void housekeeping_entry(struct map_reading *rd, int line, const char *name, const char *value)
{
	struct core_map *map = rd->map;
	if (strcmp(name, "cpu") != 0) {
		WRONG(rd, line, "%.60s: housekeeping has no such key; allowed: cpu", name);
	} else if (map->housekeeping_line != 0) {
		WRONG(rd, line, "cpu: is set for the second time; allowed: once, and line %d sets it", map->housekeeping_line);
	} else {
		map->housekeeping_line = line;
		set_number(rd, line, "housekeeping: cpu", value, 1023, "any", &map->housekeeping);
	}
}

static void map_entry(struct ini_file *f, const char *section, const char *name, const char *value)
{
	struct map_reading *rd = f->arg;
	if (rd->part == PART_BROKEN)
		return;
	if (rd->part == PART_NONE) {
		WRONG(rd, f->line, "%.60s: stands before any section; allowed: in [housekeeping] or [worker N]", name);
		return;
	}
	if (rd->part == PART_HOUSEKEEPING) {
		housekeeping_entry(rd, f->line, name, value);
		return;
	}
	int key = key_find(name), *line = key < 0 ? NULL : &rd->map->worker[rd->worker].lines[key];
	if (key < 0) {
		unknown_key(rd, f->line, name);
	} else if (*line != 0) {
		WRONG(rd, f->line, "worker %u: %s: is set for the second time; allowed: once, and line %d sets it", rd->worker, name, *line);
	} else {
		*line = f->line;
		set_key(rd, (enum core_map_key)key, f->line, value);
	}
}

/* ---- the whole ---- */

/* What nobody names goes round the workers that take a part of the rest: with all of them on auto, shard s is worker s mod workers'. */
static void deal_rest(struct map_reading *rd)
{
	struct core_map *map = rd->map;
	unsigned int unowned = 0, first = 0, next = 0;
	for (unsigned int w = 0; w < map->workers; w++)
		next = rd->takes_rest[next] ? next : w;
	bool taken = rd->takes_rest[next];
	for (unsigned int s = 0; s < map->shards; s++) {
		if (rd->owner_line[s] != 0)
			continue;
		first = unowned++ == 0 ? s : first;
		map->owner[s] = (uint8_t)next;
		do
			next = (next + 1) % map->workers;
		while (taken && !rd->takes_rest[next]);
	}
	if (unowned > 0 && !taken)
		WRONG(rd, 0, "%u shards have no owner, the first is %u; name them, or write shards = auto for a worker", unowned, first);
}

/* A value that only one worker may have; -1 counts as none. */
static void only_once(struct map_reading *rd, enum core_map_key key, size_t offset)
{
	const struct core_map *map = rd->map;
#define VALUE(i) (*(const int *)(const void *)((const char *)&map->worker[i] + offset))
	for (unsigned int w = 1; w < map->workers; w++)
		for (unsigned int before = 0; before < w; before++) {
			const struct core_map_worker *at = &map->worker[w], *has = &map->worker[before];
			if (VALUE(w) < 0 || VALUE(w) != VALUE(before))
				continue;
			WRONG(rd, at->lines[key] != 0 ? at->lines[key] : at->line, "worker %u: %s: %d has worker %u already, by line %d; give it another one", w,
			      key_names[key], VALUE(w), before, has->lines[key] != 0 ? has->lines[key] : has->line);
			break;
		}
#undef VALUE
}

/* What the settings and a worker's number make of a key that is left out. */
static void derived_fit(struct map_reading *rd)
{
	for (unsigned int w = 0; w < rd->map->workers; w++) {
		const struct core_map_worker *at = &rd->map->worker[w];
		if (at->port > UINT16_MAX)
			WRONG(rd, at->line, "worker %u: port: the setting port + %u is more than %d; write port here", w, w, UINT16_MAX);
		if (rd->cfg->node_id + w > INT32_MAX && at->lines[CORE_MAP_KEY_node_id] == 0)
			WRONG(rd, at->line, "worker %u: node.id: the setting node.id + %u is more than %d; write node.id here", w, w, INT32_MAX);
	}
}

/* The device is given queues 0 to n - 1, and it spreads frames over all of them. */
static void queues_without_gaps(struct map_reading *rd)
{
	unsigned int n = core_map_queues(rd->map);
	if (n == 0)
		WRONG(rd, 0, "no worker has a queue: no frame would ever be received; write queue = 0 for one");
	for (unsigned int w = 0; w < rd->map->workers; w++) {
		const struct core_map_worker *at = &rd->map->worker[w];
		if (at->queue >= (int)n)
			WRONG(rd, at->lines[CORE_MAP_KEY_queue], "worker %u: queue: %d, and one below it has no worker: what the card puts there would never be "
			      "received; number the %u queues from 0 without gaps", w, at->queue, n);
	}
}

static void whole_map(struct map_reading *rd)
{
	if (rd->map->workers == 0) {
		WRONG(rd, 0, "there is no worker; write a section [worker 0]");
		return;
	}
	for (unsigned int w = 0; w < rd->map->workers; w++)
		if (!rd->has_section[w])
			WRONG(rd, rd->map->worker[rd->map->workers - 1].line, "[worker %u]: there is no worker %u; number them from 0 without gaps",
			      rd->map->workers - 1, w);
	if (rd->out->errors > 0)
		return;
	only_once(rd, CORE_MAP_KEY_cpu, offsetof(struct core_map_worker, cpu));
	only_once(rd, CORE_MAP_KEY_queue, offsetof(struct core_map_worker, queue));
	only_once(rd, CORE_MAP_KEY_node_id, offsetof(struct core_map_worker, node_id));
	only_once(rd, CORE_MAP_KEY_port, offsetof(struct core_map_worker, port));
	derived_fit(rd);
	deal_rest(rd);
	queues_without_gaps(rd);
}

bool core_map_read(struct core_map *map, const char *path, const struct config *cfg, struct findings *out)
{
	char err[CONFIG_ERROR_MAX];
	unsigned int before = out->errors;
	struct map_reading *rd = calloc(1, sizeof(*rd));
	if (rd == NULL) {
		finding(out, FINDING_ERROR, 0, "no memory to read it");
		return false;
	}
	memset(map, 0, sizeof(*map));
	snprintf(map->path, sizeof(map->path), "%s", path);
	map->shards = (unsigned int)cfg->offsets_topic_num_partitions;
	map->housekeeping = CORE_MAP_ANY;
	*rd = (struct map_reading){.map = map, .cfg = cfg, .out = out};
	config_init(&rd->scratch);
	struct ini_file f = {.section = map_section, .entry = map_entry, .arg = rd};
	if (ini_file_read(&f, path, err, sizeof(err))) {
		whole_map(rd);
	} else { /* without the place, which the finding has */
		int place = f.bad_line > 0 ? snprintf(NULL, 0, "%s:%d: ", path, f.bad_line) : snprintf(NULL, 0, "%s: ", path);
		WRONG(rd, f.bad_line, "%s", strlen(err) > (size_t)place ? err + place : err);
	}
	free(rd);
	return out->errors == before;
}
