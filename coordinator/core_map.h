/*
 * core_map.h - the core map: which CPU, queue, node id, port and shards each worker has. A plain value, read from a file or made of the settings.
 *
 *   core_map_of_settings   without a file: worker n has node.id + n, port + n, cpu + n, queue n if there is one, and the shards s with s mod workers = n
 *   core_map_read          from a file (core_map_file.c has the format), every fault told with its line
 *   core_map_check         against the machine: what cannot be, and what costs
 *   core_map_diff          which shards another map wants elsewhere
 *
 * Invariant of a map that was read without an error: workers are numbered from 0 without gaps, every shard has exactly one owner, no node id, port, CPU or
 * queue stands twice, and the queues are 0 to queues - 1.
 */
#ifndef MUSTER_CORE_MAP_H
#define MUSTER_CORE_MAP_H

#include "coordinator/config.h"

#define CORE_MAP_WORKERS_MAX 64u
#define CORE_MAP_SHARDS_MAX 10000u
#define CORE_MAP_ANY -1	   /* CPU or NUMA node: none in particular */
#define CORE_MAP_NONE -1   /* queue: none, all its frames come from and go to others */
#define CORE_MAP_AUTO -2   /* queue: the one of the worker's own number, if the device has it */

/* Keys of a worker's section, in the order in which they are written: KEY(field, name). */
#define CORE_MAP_KEYS(KEY)                                                                                                                                     \
	KEY(cpu, "cpu") KEY(nic, "nic") KEY(queue, "queue") KEY(numa, "numa") KEY(node_id, "node.id") KEY(port, "port") KEY(shards, "shards")                  \
		KEY(idle, "idle.policy")

enum core_map_key {
#define KEY(field, name) CORE_MAP_KEY_##field,
	CORE_MAP_KEYS(KEY)
#undef KEY
	CORE_MAP_KEY_COUNT
};

struct core_map_worker {
	int cpu, nic, queue, numa;
	int32_t node_id;
	int32_t port;
	int idle;		       /* in the order of the setting idle.policy */
	int line;		       /* of its section; 0: of no file */
	int lines[CORE_MAP_KEY_COUNT]; /* 0: does not stand there */
};

struct core_map {
	char path[CONFIG_TEXT_MAX + 1]; /* empty: of the settings */
	unsigned int workers, shards;
	int housekeeping;		/* CPU; CORE_MAP_ANY: whichever */
	int housekeeping_line;
	struct core_map_worker worker[CORE_MAP_WORKERS_MAX];
	uint8_t owner[CORE_MAP_SHARDS_MAX]; /* worker of each shard */
};

/* ---- faults ---- */

enum finding_kind { FINDING_ERROR, FINDING_COST };

/* Gets what is found, one by one; `line` 0: of the whole map. */
struct findings {
	void (*say)(void *arg, enum finding_kind kind, int line, const char *text);
	void *arg;
	unsigned int errors, costs; /* so far */
};

PRINTF_LIKE(4, 5) void finding(struct findings *out, enum finding_kind kind, int line, const char *format, ...);

/* ---- maps ---- */

void core_map_of_settings(struct core_map *map, const struct config *cfg);

/* `cfg` gives the number of shards, and what a section leaves out. False: errors were found, the map is not to be used. */
bool core_map_read(struct core_map *map, const char *path, const struct config *cfg, struct findings *out);

struct machine;
/* Of a map that was read without an error. */
void core_map_check(const struct core_map *map, const struct machine *machine, struct findings *out);

/*
 * The map that the settings ask for: of the file if they name one, checked against this machine. Errors only; what costs is told by `muster cores --check`.
 * The settings that the map takes the place of are set to what it says: workers. False: one line in err.
 */
bool core_map_load(struct core_map *map, struct config *cfg, char *err, size_t err_len);

/* Number of queues that it wants of the device; 0: as many as there are, at most one per worker. */
unsigned int core_map_queues(const struct core_map *map);
/* "0-12,40": the shards of a worker. */
void core_map_shards_text(const struct core_map *map, unsigned int worker, char *out, size_t len);

/* ---- from one map to another ---- */

struct core_map_move {
	uint16_t shard;
	uint8_t from, to;
};

/* Which shards move; ascending. `out` has room for all shards. */
unsigned int core_map_diff(const struct core_map *from, const struct core_map *to, struct core_map_move out[CORE_MAP_SHARDS_MAX]);

/*
 * Whether a server that runs with `running` can go over to `wanted` without a restart: nothing but shards may differ. False: one line in err, with the
 * place in the wanted file.
 */
bool core_map_can_apply(const struct core_map *running, const struct core_map *wanted, char *err, size_t err_len);

#endif
