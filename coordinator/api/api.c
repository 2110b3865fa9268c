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

void api_answer_unavailable(struct request *rq, struct now now)
{
	if (rq->api_key == api_key_join_group) {
		struct join_group_response out;
		join_group_response_init(&out);
		out.error_code = ERROR_COORDINATOR_NOT_AVAILABLE;
		out.protocol_name = rq->version >= 7 ? BYTES_NULL : BYTES_EMPTY;
		request_answer(rq, &out, now);
	} else if (rq->api_key == api_key_sync_group) {
		struct sync_group_response out;
		sync_group_response_init(&out);
		out.error_code = ERROR_COORDINATOR_NOT_AVAILABLE;
		request_answer(rq, &out, now);
	} else {
		rq->ops->refuse(rq, now);
	}
}
