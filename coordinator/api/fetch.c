/*
 * fetch.c - Fetch: the long poll of consumers, on partitions that are always empty.
 *
 * The answer is empty at a high watermark of 0 and comes when the client's max wait is over (at most our limit): answered at once, clients would
 * spin. It comes at once when the client does not want to wait, asks for nothing, or names what does not exist. A position behind the end
 * is no error here: told that it is out of range, clients reset it, and may commit the reset one over the group's offset.
 * No fetch session is ever made (session id 0): a client that believes to have one learns so and sends full requests again. KIP-227.
 */
#include "coordinator/api/api.h"

/* Returns whether the partition exists. */
static bool fill_partition(int32_t partition, int16_t error, struct fetch_response_partition *out)
{
	fetch_response_partition_init(out);
	int64_t end = error == ERROR_NONE ? 0 : -1;
	out->partition_index = partition;
	out->error_code = error;
	out->high_watermark = end;
	out->last_stable_offset = end;
	out->log_start_offset = end;
	out->aborted_transactions_len = -1;
	out->records = BYTES_EMPTY;
	return error == ERROR_NONE;
}

bool api_fetch(const struct api_call *call)
{
	const struct fetch_request *in = call->in;
	bool by_id = call->rq->version >= 13;
	bool wait = in->min_bytes > 0 && in->max_wait_ms > 0 && in->topics_len > 0;
	struct fetch_response out;
	fetch_response_init(&out);
	struct fetch_response_topic *topics = API_ALLOC(call, in->topics_len, struct fetch_response_topic);
	if (topics == NULL)
		return false;
	for (int32_t t = 0; t < in->topics_len; t++) {
		const struct fetch_request_topic *asked = &in->topics[t];
		const struct image_topic *topic = api_topic(call, asked->topic, &asked->topic_id, by_id);
		struct fetch_response_partition *partitions =
			API_ALLOC(call, asked->partitions_len, struct fetch_response_partition);
		if (partitions == NULL)
			return false;
		for (int32_t p = 0; p < asked->partitions_len; p++) {
			int32_t number = asked->partitions[p].partition;
			wait &= fill_partition(number, api_partition_error(topic, by_id, number), &partitions[p]);
		}
		topics[t] = (struct fetch_response_topic){asked->topic, asked->topic_id, partitions, asked->partitions_len};
	}
	out.responses = topics;
	out.responses_len = in->topics_len;
	uint64_t wait_ms = (uint64_t)in->max_wait_ms;
	if (wait_ms > node_max_fetch_wait_ms(call->node))
		wait_ms = node_max_fetch_wait_ms(call->node);
	if (!wait || wait_ms == 0 || call->rq->eof)
		request_answer(call->rq, &out, call->now);
	else
		api_answer_at(call, &out, call->now.us + wait_ms * US_PER_MS);
	return true;
}
