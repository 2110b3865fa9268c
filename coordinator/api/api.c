/*
 * api.c - the table of handlers and what they share.
 */
#include "coordinator/api/api.h"

bool (*const api_handlers[API_COUNT])(const struct api_call *call) = {
#define API(name, kafka, key, lowest, highest) [api_index_##name] = api_##name,
#include "coordinator/wire/api.def"
#undef API
};

const struct image_topic *api_topic(const struct api_call *call, struct bytes name, const struct uuid *id, bool by_id)
{
	return by_id ? image_topic_by_id(call->image, id) : image_topic(call->image, name);
}

int16_t api_partition_error(const struct image_topic *topic, bool by_id, int32_t partition)
{
	if (topic == NULL)
		return by_id ? ERROR_UNKNOWN_TOPIC_ID : ERROR_UNKNOWN_TOPIC_OR_PARTITION;
	return partition < 0 || partition >= topic->partitions ? ERROR_UNKNOWN_TOPIC_OR_PARTITION : ERROR_NONE;
}
