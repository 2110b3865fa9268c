/*
 * log_topic.c - see log_topic.h.
 */
#include "coordinator/api/log_topic.h"

bool log_topic_is(const struct image_topic *topic)
{
	return topic != NULL && bytes_equal(topic->name, BYTES_LITERAL(IMAGE_LOG_TOPIC));
}

int16_t log_topic_span(const struct api_call *call, int32_t partition, int32_t leader_epoch, struct log_span *out)
{
	const struct shard *shard = node_shard_by_number(call->node, (unsigned int)partition);
	if (shard == NULL || image_shard_owner(call->image, (unsigned int)partition)->id != node_id(call->node) || shard_is_loading(shard))
		return ERROR_NOT_LEADER_OR_FOLLOWER;
	if (!log_span(node_log(call->node), (unsigned int)partition, out))
		*out = (struct log_span){.epoch = 0};
	if (leader_epoch < 0 || leader_epoch == out->epoch)
		return ERROR_NONE;
	return leader_epoch < out->epoch ? ERROR_FENCED_LEADER_EPOCH : ERROR_UNKNOWN_LEADER_EPOCH;
}

int32_t log_topic_epoch(const struct log_span *span, int64_t offset)
{
	if (offset >= span->high_watermark)
		return span->epoch;
	for (size_t i = span->epochs_len; i-- > 0;)
		if (span->epochs[i].start <= offset)
			return span->epochs[i].epoch;
	return -1;
}
