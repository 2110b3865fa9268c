/*
 * fetch.c - Fetch: the long poll of consumers, on topics that are always empty, and on __consumer_offsets, which is the log (log_topic.h).
 *
 * Of an empty partition the answer is empty at a high watermark of 0 and comes when the client's max wait is over (at most our limit): answered at
 * once, clients would spin. It comes at once when the client does not want to wait, asks for nothing, or names what does not exist. A position behind the
 * end is no error there: told that it is out of range, clients reset it, and may commit the reset one over the group's offset.
 *
 * Of the log it gives whole batches as they are stored, up to the high watermark; where there are none yet, it waits for them as for the others.
 * Batches are of format 2, which clients know from version 4 on; older ones are told so (35).
 *
 * No fetch session is ever made (session id 0): a client that believes to have one learns so and sends full requests again. KIP-227.
 */
#include "coordinator/api/log_job.h"
#include "coordinator/api/log_topic.h"

#define VERSION_OF_BATCHES 4

struct fetch_fill {
	const struct api_call *call;
	struct fetch_response_topic *topics;
	struct log_job_part *parts; /* those with something to wait for in the log */
	size_t parts_len;
	bool wait; /* nothing speaks against waiting */
};

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

static int16_t log_error(const struct api_call *call, const struct fetch_request_partition *in, struct log_span *span)
{
	int16_t error = log_topic_span(call, in->partition, in->current_leader_epoch, span);
	if (error != ERROR_NONE)
		return error;
	if (call->rq->version < VERSION_OF_BATCHES)
		return ERROR_UNSUPPORTED_VERSION;
	return in->fetch_offset < span->start || in->fetch_offset > span->high_watermark ? ERROR_OFFSET_OUT_OF_RANGE : ERROR_NONE;
}

static void fill_log_partition(struct fetch_fill *fill, int32_t t, int32_t p, const struct fetch_request_partition *in,
			       struct fetch_response_partition *out)
{
	struct log_span span;
	int16_t error = log_error(fill->call, in, &span);
	fill->wait &= fill_partition(in->partition, error, out);
	if (error != ERROR_NONE)
		return;
	out->high_watermark = out->last_stable_offset = span.high_watermark;
	out->log_start_offset = span.start;
	fill->parts[fill->parts_len++] = (struct log_job_part){
		.topic = t, .partition = p, .shard = (unsigned int)in->partition, .offset = in->fetch_offset,
		.max = in->partition_max_bytes > 0 ? (size_t)in->partition_max_bytes : 0};
}

static bool fill_topic(struct fetch_fill *fill, const struct fetch_request *in, int32_t t)
{
	const struct api_call *call = fill->call;
	const struct fetch_request_topic *asked = &in->topics[t];
	bool by_id = call->rq->version >= 13;
	const struct image_topic *topic = api_topic(call, asked->topic, &asked->topic_id, by_id);
	struct fetch_response_partition *partitions = API_ALLOC(call, asked->partitions_len, struct fetch_response_partition);
	if (partitions == NULL)
		return false;
	for (int32_t p = 0; p < asked->partitions_len; p++) {
		int32_t number = asked->partitions[p].partition;
		int16_t error = api_partition_error(topic, by_id, number);
		if (error == ERROR_NONE && log_topic_is(topic))
			fill_log_partition(fill, t, p, &asked->partitions[p], &partitions[p]);
		else
			fill->wait &= fill_partition(number, error, &partitions[p]);
	}
	fill->topics[t] = (struct fetch_response_topic){asked->topic, asked->topic_id, partitions, asked->partitions_len};
	return true;
}

static size_t partitions_of(const struct fetch_request *in)
{
	size_t n = 0;
	for (int32_t t = 0; t < in->topics_len; t++)
		n += in->topics[t].partitions_len > 0 ? (size_t)in->topics[t].partitions_len : 0;
	return n;
}

static uint64_t wait_us(const struct api_call *call, const struct fetch_request *in, bool wait)
{
	if (!wait || in->min_bytes <= 0 || in->max_wait_ms <= 0 || in->topics_len == 0)
		return 0;
	uint64_t ms = (uint64_t)in->max_wait_ms, most = node_max_fetch_wait_ms(call->node);
	return (ms < most ? ms : most) * US_PER_MS;
}

bool api_fetch(const struct api_call *call)
{
	const struct fetch_request *in = call->in;
	struct fetch_response out;
	fetch_response_init(&out);
	struct fetch_fill fill = {
		.call = call,
		.topics = API_ALLOC(call, in->topics_len, struct fetch_response_topic),
		.parts = API_ALLOC(call, partitions_of(in), struct log_job_part),
		.wait = true,
	};
	if (fill.topics == NULL || fill.parts == NULL)
		return false;
	for (int32_t t = 0; t < in->topics_len; t++)
		if (!fill_topic(&fill, in, t))
			return false;
	out.responses = fill.topics;
	out.responses_len = in->topics_len;
	uint64_t wait = wait_us(call, in, fill.wait);
	size_t min = in->min_bytes > 0 ? (size_t)in->min_bytes : 0, max = in->max_bytes > 0 ? (size_t)in->max_bytes : 0;
	if (fill.parts_len > 0 && !call->rq->eof &&
	    log_job_fetch(node_log_jobs(call->node), call->rq, &out, fill.parts, fill.parts_len, min, max, call->now.us + wait))
		return true;
	if (wait == 0 || call->rq->eof)
		request_answer(call->rq, &out, call->now);
	else
		api_answer_at(call, &out, call->now.us + wait);
	return true;
}
