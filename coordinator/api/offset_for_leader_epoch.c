/*
 * offset_for_leader_epoch.c - OffsetForLeaderEpoch: where an epoch ended, which consumers ask to find out whether their position was cut off.
 *
 * We keep no data, so nothing was ever cut off: whatever epoch a committed offset carries, it ends beyond every position. A smaller end would make
 * clients reset their position, and then commit the reset one over the group's offset.
 */
#include "coordinator/api/api.h"

#define END_BEYOND_ALL INT64_MAX

static void fill_partition(const struct offset_for_leader_epoch_request_partition *in, int16_t error,
			   struct offset_for_leader_epoch_response_partition *out)
{
	offset_for_leader_epoch_response_partition_init(out);
	out->partition = in->partition;
	out->error_code = error;
	if (error != ERROR_NONE || in->leader_epoch < 0)
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
			fill_partition(&asked->partitions[p], api_partition_error(topic, false, asked->partitions[p].partition),
				       &partitions[p]);
		topics[t] = (struct offset_for_leader_epoch_response_topic){asked->topic, partitions, asked->partitions_len};
	}
	out.topics = topics;
	out.topics_len = in->topics_len;
	request_answer(call->rq, &out, call->now);
	return true;
}
