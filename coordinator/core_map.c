/*
 * core_map.c - see core_map.h.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "coordinator/core_map.h"
#include "coordinator/cores/machine.h"
#include "coordinator/cores/number_list.h"
#include "muster/check.h"

#define FINDING_MAX 400 /* bytes of a text */

void finding(struct findings *out, enum finding_kind kind, int line, const char *format, ...)
{
	char text[FINDING_MAX];
	va_list ap;
	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	out->errors += kind == FINDING_ERROR;
	out->costs += kind == FINDING_COST;
	out->say(out->arg, kind, line, text);
}

/* ---- of the settings ---- */

void core_map_of_settings(struct core_map *map, const struct config *cfg)
{
	CHECK(cfg->workers >= 1 && cfg->workers <= CORE_MAP_WORKERS_MAX && cfg->offsets_topic_num_partitions <= CORE_MAP_SHARDS_MAX);
	memset(map, 0, sizeof(*map));
	map->workers = (unsigned int)cfg->workers;
	map->shards = (unsigned int)cfg->offsets_topic_num_partitions;
	map->housekeeping = CORE_MAP_ANY;
	for (unsigned int w = 0; w < map->workers; w++)
		map->worker[w] = (struct core_map_worker){
			.cpu = cfg->cpu < 0 ? CORE_MAP_ANY : (int)(cfg->cpu + w),
			.queue = CORE_MAP_AUTO,
			.numa = CORE_MAP_ANY,
			.node_id = (int32_t)(cfg->node_id + w),
			.port = (int32_t)(cfg->port + w),
			.idle = cfg->idle_policy,
		};
	for (unsigned int s = 0; s < map->shards; s++)
		map->owner[s] = (uint8_t)(s % map->workers);
}

/* ---- from the settings to the map in force ---- */

struct first_error {
	const char *path;
	char *err;
	size_t len;
};

static void keep_first(void *arg, enum finding_kind kind, int line, const char *text)
{
	struct first_error *first = arg;
	if (kind != FINDING_ERROR || first->err[0] != '\0')
		return;
	if (line > 0)
		snprintf(first->err, first->len, "%s:%d: %s", first->path, line, text);
	else
		snprintf(first->err, first->len, "%s: %s", first->path, text);
}

/* What a map says, a setting beside it must not say otherwise. */
static bool settings_agree(const struct core_map *map, const struct config *cfg, char *err, size_t err_len)
{
	static const enum config_id of_map[] = {CONFIG_ID_workers, CONFIG_ID_cpu, CONFIG_ID_device_queues};
	char place[300];
	for (unsigned int i = 0; i < ARRAY_LEN(of_map); i++) {
		if (cfg->origin[of_map[i]].source == CONFIG_FROM_DEFAULT || (of_map[i] == CONFIG_ID_workers && cfg->workers == map->workers))
			continue;
		config_origin_text(cfg, of_map[i], place, sizeof(place));
		snprintf(err, err_len, "%s: %s: the core map %s says this; allowed: one of the two", place, config_row(of_map[i])->name, map->path);
		return false;
	}
	return true;
}

bool core_map_load(struct core_map *map, struct config *cfg, char *err, size_t err_len)
{
	struct first_error first = {cfg->core_map_file, err, err_len};
	struct findings out = {.say = keep_first, .arg = &first};
	struct machine machine;
	err[0] = '\0';
	if (cfg->core_map_file[0] == '\0') {
		core_map_of_settings(map, cfg);
		return true;
	}
	if (!core_map_read(map, cfg->core_map_file, cfg, &out) || !settings_agree(map, cfg, err, err_len))
		return false;
	machine_read(&machine, "", cfg->device);
	core_map_check(map, &machine, &out);
	cfg->workers = map->workers;
	return out.errors == 0;
}

/* ---- looking into it ---- */

unsigned int core_map_queues(const struct core_map *map)
{
	unsigned int n = 0;
	for (unsigned int w = 0; w < map->workers; w++)
		n += map->worker[w].queue >= 0;
	return n;
}

struct owned {
	const struct core_map *map;
	unsigned int worker;
};

static bool owns(const void *arg, unsigned int shard)
{
	const struct owned *o = arg;
	return o->map->owner[shard] == o->worker;
}

void core_map_shards_text(const struct core_map *map, unsigned int worker, char *out, size_t len)
{
	struct owned o = {map, worker};
	number_list_write(out, len, map->shards, owns, &o);
}

/* ---- from one map to another ---- */

unsigned int core_map_diff(const struct core_map *from, const struct core_map *to, struct core_map_move out[CORE_MAP_SHARDS_MAX])
{
	unsigned int n = 0;
	CHECK(from->shards == to->shards);
	for (unsigned int s = 0; s < from->shards; s++)
		if (from->owner[s] != to->owner[s])
			out[n++] = (struct core_map_move){(uint16_t)s, from->owner[s], to->owner[s]};
	return n;
}

/* Writes "PATH:LINE: worker N: KEY: ..."; the line of the section where the key does not stand. */
static bool differs(const struct core_map *wanted, unsigned int w, enum core_map_key key, char *err, size_t err_len)
{
	static const char *const names[] = {
#define KEY(field, name) name,
		CORE_MAP_KEYS(KEY)
#undef KEY
	};
	const struct core_map_worker *of = &wanted->worker[w];
	snprintf(err, err_len, "%s:%d: worker %u: %s: the running server has another one; only shards move while it runs, for the rest restart it",
		 wanted->path, of->lines[key] > 0 ? of->lines[key] : of->line, w, names[key]);
	return false;
}

bool core_map_can_apply(const struct core_map *running, const struct core_map *wanted, char *err, size_t err_len)
{
	if (running->workers != wanted->workers || running->shards != wanted->shards) {
		snprintf(err, err_len, "%s: has %u workers and %u shards, the running server %u and %u; restart it for that", wanted->path, wanted->workers,
			 wanted->shards, running->workers, running->shards);
		return false;
	}
	if (running->housekeeping != wanted->housekeeping) {
		snprintf(err, err_len, "%s:%d: housekeeping: the running server has another CPU; restart it for that", wanted->path, wanted->housekeeping_line);
		return false;
	}
	for (unsigned int w = 0; w < running->workers; w++) {
		const struct core_map_worker *a = &running->worker[w], *b = &wanted->worker[w];
#define SAME(field) (a->field == b->field || differs(wanted, w, CORE_MAP_KEY_##field, err, err_len))
		/* without a file each worker has the queue that its number says, if there is one: nothing to compare with */
		bool queue_open = a->queue == CORE_MAP_AUTO || b->queue == CORE_MAP_AUTO;
		if (!SAME(cpu) || !SAME(nic) || (!queue_open && !SAME(queue)) || !SAME(numa) || !SAME(node_id) || !SAME(port) || !SAME(idle))
			return false;
#undef SAME
	}
	return true;
}
