/*
 * api.h - the APIs that we serve: their keys (api_key_join_group), their places in tables (api_index_join_group) and
 * versions; from api.def.
 */
#ifndef MUSTER_WIRE_API_H
#define MUSTER_WIRE_API_H

#include "muster/base.h"

/* The keys of the wire. */
enum api_key {
#define API(name, kafka, key, lowest, highest) api_key_##name = key,
#include "coordinator/wire/api.def"
#undef API
};

/* Places in api.def, to index tables with one entry per API (handlers, counters). */
enum api_index {
#define API(name, kafka, key, lowest, highest) api_index_##name,
#include "coordinator/wire/api.def"
#undef API
	API_COUNT
};

struct api_range {
	const char *name; /* Kafka's, e.g. "JoinGroup" */
	int16_t key;
	int16_t lowest, highest;
};

/* Indexed by enum api_index: what ApiVersions lists, sorted by key. */
extern const struct api_range api_ranges[API_COUNT];

/* The api's place, or -1 when we do not serve it. */
int api_index(int16_t key);

/* Whether we serve this version of this api. */
bool api_serves(int16_t key, int16_t version);

#endif
