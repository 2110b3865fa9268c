/*
 * offset_for_leader_epoch.c - OffsetForLeaderEpoch: where an epoch ended, which consumers ask to find out whether their position was cut off.
 *
 * We keep no data, so nothing was ever cut off: whatever epoch a committed offset carries, it ends beyond every position. A smaller end would make
 * clients reset their position, and then commit the reset one over the group's offset. Of __consumer_offsets, which is the log, the epochs are known.
 */
#include "coordinator/api/log_topic.h"

#define END_BEYOND_ALL INT64_MAX

/* The largest epoch that is not above the one asked for, and where the next one began. */
static void fill_log_partition(const struct api_call *call, const struct offset_for_leader_epoch_request_partition *in,
			       struct offset_for_leader_epoch_response_partition *out)
{
	struct log_span span;
	out->error_code = log_topic_span(call, in->partition, in->current_leader_epoch, &span);
	if (out->error_code != ERROR_NONE || in->leader_epoch < 0 || in->leader_epoch > span.epoch)
		return;
	out->leader_epoch = in->leader_epoch;
	out->end_offset = span.high_watermark;
	for (size_t i = span.epochs_len; i-- > 0;) {
		if (span.epochs[i].epoch <= in->leader_epoch) {
			out->leader_epoch = span.epochs[i].epoch;
			return;
		}
		out->end_offset = span.epochs[i].start;
	}
}

static void fill_partition(const struct api_call *call, const struct image_topic *topic, const struct offset_for_leader_epoch_request_partition *in,
			   struct offset_for_leader_epoch_response_partition *out)
{
	int16_t error = api_partition_error(topic, false, in->partition);
	offset_for_leader_epoch_response_partition_init(out);
	out->partition = in->partition;
	out->error_code = error;
	if (error == ERROR_NONE && log_topic_is(topic))
		fill_log_partition(call, in, out);
	if (error != ERROR_NONE || in->leader_epoch < 0 || log_topic_is(topic))
		return;
	out->leader_epoch = in->leader_epoch;
	out->end_offset = END_BEYOND_ALL;
}

bool api_offset_for_leader_epoch(const struct api_call *call)
{
	const struct offset_for_leader_epoch_request *in = call->in;
	struct offset_for_leader_epoch_response out;
	offset_for_leader_epoch_response_init(&out);
	struct offset_for_leader_epoch_response_topic *topics =
		API_ALLOC(call, in->topics_len, struct offset_for_leader_epoch_response_topic);
	if (topics == NULL)
		return false;
	for (int32_t t = 0; t < in->topics_len; t++) {
		const struct offset_for_leader_epoch_request_topic *asked = &in->topics[t];
		const struct image_topic *topic = image_topic(call->image, asked->topic);
		struct offset_for_leader_epoch_response_partition *partitions =
			API_ALLOC(call, asked->partitions_len, struct offset_for_leader_epoch_response_partition);
		if (partitions == NULL)
			return false;
		for (int32_t p = 0; p < asked->partitions_len; p++)
			fill_partition(call, topic, &asked->partitions[p], &partitions[p]);
		topics[t] = (struct offset_for_leader_epoch_response_topic){asked->topic, partitions, asked->partitions_len};
	}
	out.topics = topics;
	out.topics_len = in->topics_len;
	request_answer(call->rq, &out, call->now);
	return true;
}
