/*
 * api.c - the table of served APIs, from api.def.
 */
#include "coordinator/wire/api.h"

const struct api_range api_ranges[API_COUNT] = {
#define API(name, kafka, key, lowest, highest) [api_index_##name] = {#kafka, key, lowest, highest},
#include "coordinator/wire/api.def"
#undef API
};

int api_index(int16_t key)
{
	switch (key) {
#define API(name, kafka, number, lowest, highest) \
	case number:                              \
		return api_index_##name;
#include "coordinator/wire/api.def"
#undef API
	default:
		return -1;
	}
}

bool api_serves(int16_t key, int16_t version)
{
	int i = api_index(key);
	return i >= 0 && version >= api_ranges[i].lowest && version <= api_ranges[i].highest;
}
