/*
 * produce.c - Produce: listed, because old clients do not start without it, and refused, because we keep no data.
 *
 * With acks 0 there is no answer that could say so; the connection is closed instead, as Kafka does on an error.
 */
#include "coordinator/api/api.h"

#define REFUSAL "This server keeps consumer groups and their offsets, and no records. Produce to the brokers of the cluster."

bool api_produce(const struct api_call *call)
{
	const struct produce_request *in = call->in;
	if (in->acks == 0) {
		call->rq->ops->refuse(call->rq, call->now);
		return true;
	}
	struct produce_response out;
	produce_response_init(&out);
	struct produce_response_topic *topics = API_ALLOC(call, in->topic_data_len, struct produce_response_topic);
	if (topics == NULL)
		return false;
	for (int32_t t = 0; t < in->topic_data_len; t++) {
		const struct produce_request_topic *asked = &in->topic_data[t];
		struct produce_response_partition *partitions =
			API_ALLOC(call, asked->partition_data_len, struct produce_response_partition);
		if (partitions == NULL)
			return false;
		for (int32_t p = 0; p < asked->partition_data_len; p++) {
			produce_response_partition_init(&partitions[p]);
			partitions[p].index = asked->partition_data[p].index;
			partitions[p].error_code = ERROR_POLICY_VIOLATION;
			partitions[p].base_offset = -1;
			partitions[p].error_message = BYTES_LITERAL(REFUSAL);
		}
		topics[t] = (struct produce_response_topic){asked->name, asked->topic_id, partitions, asked->partition_data_len};
	}
	out.responses = topics;
	out.responses_len = in->topic_data_len;
	request_answer(call->rq, &out, call->now);
	return true;
}
