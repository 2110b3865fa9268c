/*
 * main_config.h - from settings and core map to what each half wants: a part of main.c, and like it sees both.
 */
#ifndef MUSTER_MAIN_CONFIG_H
#define MUSTER_MAIN_CONFIG_H

#include "muster/dataplane.h"

#include "coordinator/core_map.h"
#include "coordinator/setting.h"
#include "coordinator/shard.h"

/* Where the workers of a core map run; outlives the dataplane. */
struct worker_places {
	struct dataplane_worker each[CORE_MAP_WORKERS_MAX];
	char text[CORE_MAP_WORKERS_MAX][CONFIG_TEXT_MAX + 16]; /* "FILE:LINE" of each */
};

void dataplane_config_of(const struct config *cfg, const struct core_map *map, struct worker_places *places, struct dataplane_config *out);
void group_settings_of(const struct config *cfg, struct group_settings *out);
/* What clients are told to connect to. */
void host_of(const struct config *cfg, char *out, size_t len);

#endif
