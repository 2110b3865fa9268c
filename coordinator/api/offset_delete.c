/*
 * offset_delete.c - OffsetDelete: committed offsets of a group go, unless a member subscribes to their topic (KIP-496).
 *
 * Partitions that do not exist are answered with 3 here. The group is looked at even when none is left, as in Kafka: an error of the group wins.
 * A topic that exists is left out of the answer when none of its partitions is named. The answer waits for the tombstones to be durable.
 */
#include "coordinator/api/api.h"

static int32_t count(const struct offset_delete_request *in)
{
	int32_t n = 0;
	for (int32_t t = 0; t < in->topics_len; t++)
		n += in->topics[t].partitions_len;
	return n;
}

static void screen(const struct api_call *call, const struct offset_delete_request *in, int16_t *code)
{
	for (int32_t t = 0; t < in->topics_len; t++) {
		const struct image_topic *topic = image_topic(call->image, in->topics[t].name);
		for (int32_t p = 0; p < in->topics[t].partitions_len; p++, code++)
			*code = api_partition_error(topic, false, in->topics[t].partitions[p].partition_index);
	}
}

/* Returns the number of topics. */
static int32_t fill(const struct api_call *call, const struct offset_delete_request *in, const int16_t *code,
		    struct offset_delete_response_topic *topics, struct offset_delete_response_partition *partition)
{
	int32_t n = 0;
	for (int32_t t = 0; t < in->topics_len; t++) {
		if (in->topics[t].partitions_len <= 0 && image_topic(call->image, in->topics[t].name) != NULL)
			continue;
		topics[n++] = (struct offset_delete_response_topic){in->topics[t].name, partition, in->topics[t].partitions_len};
		for (int32_t p = 0; p < in->topics[t].partitions_len; p++)
			*partition++ = (struct offset_delete_response_partition){in->topics[t].partitions[p].partition_index, *code++};
	}
	return n;
}

/* One error says it for all partitions. */
static void spoil(void *response, int16_t error)
{
	struct offset_delete_response *out = response;
	if (out->error_code != ERROR_NONE)
		return;
	offset_delete_response_init(out);
	out->error_code = error;
}

bool api_offset_delete(const struct api_call *call)
{
	const struct offset_delete_request *in = call->in;
	struct offset_delete_response out;
	offset_delete_response_init(&out);
	int32_t n = count(in);
	int16_t *codes = API_ALLOC(call, n, int16_t);
	struct offset_delete_response_topic *topics = API_ALLOC(call, in->topics_len, struct offset_delete_response_topic);
	struct offset_delete_response_partition *partitions = API_ALLOC(call, n, struct offset_delete_response_partition);
	if (codes == NULL || topics == NULL || partitions == NULL)
		return false;
	struct shard *shard = api_shard(call, in->group_id);
	if (shard == NULL)
		return true;
	screen(call, in, codes);
	out.error_code = shard_offset_delete(shard, in, codes, call->now);
	if (out.error_code == ERROR_NONE) {
		out.topics = topics;
		out.topics_len = fill(call, in, codes, topics, partitions);
	}
	api_answer_durable(call, &out, spoil);
	return true;
}
