/*
 * list_offsets.c - ListOffsets: every partition is empty, from offset 0 to offset 0.
 *
 * The first and the next offset are both 0. A time, or another special position, finds nothing: offset -1, timestamp -1, epoch -1.
 * Topics of which no partition is named are left out of the answer.
 */
#include "coordinator/api/api.h"

#define TIME_LATEST (-1)
#define TIME_EARLIEST (-2)
#define TIME_EARLIEST_LOCAL (-4)

static const int64_t only_offset = 0;

static void fill_partition(const struct list_offsets_request_partition *in, int16_t error, struct list_offsets_response_partition *out)
{
	list_offsets_response_partition_init(out);
	out->partition_index = in->partition_index;
	out->error_code = error;
	if (error != ERROR_NONE)
		return;
	if (in->timestamp == TIME_LATEST || in->timestamp == TIME_EARLIEST || in->timestamp == TIME_EARLIEST_LOCAL) {
		out->offset = only_offset;
		out->leader_epoch = 0;
		out->old_style_offsets = &only_offset;
		out->old_style_offsets_len = 1;
	}
}

bool api_list_offsets(const struct api_call *call)
{
	const struct list_offsets_request *in = call->in;
	struct list_offsets_response out;
	list_offsets_response_init(&out);
	struct list_offsets_response_topic *topics = API_ALLOC(call, in->topics_len, struct list_offsets_response_topic);
	if (topics == NULL)
		return false;
	for (int32_t t = 0; t < in->topics_len; t++) {
		const struct list_offsets_request_topic *asked = &in->topics[t];
		if (asked->partitions_len <= 0)
			continue;
		const struct image_topic *topic = image_topic(call->image, asked->name);
		struct list_offsets_response_partition *partitions =
			API_ALLOC(call, asked->partitions_len, struct list_offsets_response_partition);
		if (partitions == NULL)
			return false;
		for (int32_t p = 0; p < asked->partitions_len; p++)
			fill_partition(&asked->partitions[p], api_partition_error(topic, false, asked->partitions[p].partition_index),
				       &partitions[p]);
		topics[out.topics_len++] = (struct list_offsets_response_topic){asked->name, partitions, asked->partitions_len};
	}
	out.topics = topics;
	request_answer(call->rq, &out, call->now);
	return true;
}
