/*
 * offset_commit.c - OffsetCommit: partitions that do not exist are screened out here, the shard decides about the rest.
 *
 * Version 10 names topics by id (an unknown or zero id: 100), the others by name; an unknown partition: 3. If none is left, the
 * shard is not asked, so that a member that was removed hears of the topics first, as in Kafka. A topic that exists is left out of the answer
 * when none of its partitions is named.
 */
#include "coordinator/api/api.h"

/* Screens one topic; `asked` gets its name from the image where it was named by id. Adds the number of partitions left to *left. */
static bool screen(const struct api_call *call, struct offset_commit_request_topic *asked, struct offset_commit_response_topic *out,
		   unsigned int *left)
{
	bool by_id = call->rq->version >= 10;
	const struct image_topic *topic = api_topic(call, asked->name, &asked->topic_id, by_id);
	struct offset_commit_response_partition *partitions =
		API_ALLOC(call, asked->partitions_len, struct offset_commit_response_partition);
	if (partitions == NULL)
		return false;
	for (int32_t p = 0; p < asked->partitions_len; p++) {
		int32_t index = asked->partitions[p].partition_index;
		int16_t error = api_partition_error(topic, by_id, index);
		partitions[p] = (struct offset_commit_response_partition){index, error};
		*left += error == ERROR_NONE;
	}
	if (topic != NULL)
		asked->name = topic->name;
	*out = (struct offset_commit_response_topic){asked->name, asked->topic_id, partitions, asked->partitions_len};
	return true;
}

static bool left_out(const struct api_call *call, const struct offset_commit_request_topic *asked)
{
	return asked->partitions_len <= 0 && api_topic(call, asked->name, &asked->topic_id, call->rq->version >= 10) != NULL;
}

bool api_offset_commit(const struct api_call *call)
{
	struct offset_commit_request in = *(const struct offset_commit_request *)call->in;
	struct offset_commit_response out;
	offset_commit_response_init(&out);
	struct offset_commit_request_topic *asked = API_ALLOC(call, in.topics_len, struct offset_commit_request_topic);
	struct offset_commit_response_topic *topics = API_ALLOC(call, in.topics_len, struct offset_commit_response_topic);
	if (asked == NULL || topics == NULL)
		return false;
	unsigned int left = 0;
	int32_t n = 0;
	for (int32_t t = 0; t < in.topics_len; t++) {
		if (left_out(call, &in.topics[t]))
			continue;
		asked[n] = in.topics[t];
		if (!screen(call, &asked[n], &topics[n], &left))
			return false;
		n++;
	}
	in.topics = asked;
	in.topics_len = n;
	out.topics = topics;
	out.topics_len = n;
	if (left == 0) {
		request_answer(call->rq, &out, call->now);
		return true;
	}
	struct shard *shard = api_shard(call, in.group_id);
	if (shard != NULL)
		shard_offset_commit(shard, call->rq, &in, &out, call->now);
	return true;
}
