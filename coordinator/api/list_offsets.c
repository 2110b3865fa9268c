/*
 * list_offsets.c - ListOffsets: where a partition begins and ends, and which record is the first of a time.
 *
 *   partition                 earliest (-2, -4)  latest (-1)       largest timestamp (-3)   a time                     other
 *   of a topic, always empty  0                  0                 -                        -                          -
 *   of __consumer_offsets     log start offset   high watermark    that record              the first not older one    -
 *
 * "-": offset -1, timestamp -1, epoch -1. Times are looked for in the log itself, off the hot path (log_job_lookup.c).
 * Topics of which no partition is named are left out of the answer.
 */
#include "coordinator/api/log_job.h"
#include "coordinator/api/log_topic.h"

#define TIME_LATEST (-1)
#define TIME_EARLIEST (-2)
#define TIME_EARLIEST_LOCAL (-4)

struct lookup_fill {
	const struct api_call *call;
	struct list_offsets_response_topic *topics;
	struct log_job_part *parts; /* those that must be looked for */
	size_t parts_len;
};

static bool fill_offset(const struct api_call *call, struct list_offsets_response_partition *out, int64_t offset, int32_t epoch)
{
	int64_t *old_style = API_ALLOC(call, 1, int64_t);
	if (old_style == NULL)
		return false;
	*old_style = offset;
	out->offset = offset;
	out->leader_epoch = epoch;
	out->old_style_offsets = old_style;
	out->old_style_offsets_len = 1;
	return true;
}

static bool is_earliest(int64_t timestamp)
{
	return timestamp == TIME_EARLIEST || timestamp == TIME_EARLIEST_LOCAL;
}

static bool fill_log_partition(struct lookup_fill *fill, int32_t t, int32_t p, const struct list_offsets_request_partition *in,
			       struct list_offsets_response_partition *out)
{
	struct log_span span;
	out->error_code = log_topic_span(fill->call, in->partition_index, in->current_leader_epoch, &span);
	if (out->error_code != ERROR_NONE)
		return true;
	if (is_earliest(in->timestamp))
		return fill_offset(fill->call, out, span.start, log_topic_epoch(&span, span.start));
	if (in->timestamp == TIME_LATEST)
		return fill_offset(fill->call, out, span.high_watermark, span.epoch);
	if ((in->timestamp >= 0 || in->timestamp == JOB_LARGEST_TIME) && span.high_watermark > span.start)
		fill->parts[fill->parts_len++] = (struct log_job_part){
			.topic = t, .partition = p, .shard = (unsigned int)in->partition_index, .offset = span.start, .timestamp = in->timestamp};
	return true;
}

static bool fill_partition(struct lookup_fill *fill, int32_t t, int32_t p, const struct list_offsets_request_partition *in,
			   const struct image_topic *topic, struct list_offsets_response_partition *out)
{
	list_offsets_response_partition_init(out);
	out->partition_index = in->partition_index;
	out->error_code = api_partition_error(topic, false, in->partition_index);
	if (out->error_code != ERROR_NONE)
		return true;
	if (log_topic_is(topic))
		return fill_log_partition(fill, t, p, in, out);
	return (!is_earliest(in->timestamp) && in->timestamp != TIME_LATEST) || fill_offset(fill->call, out, 0, 0);
}

/* `t` is its place in the answer. */
static bool fill_topic(struct lookup_fill *fill, const struct list_offsets_request_topic *asked, int32_t t)
{
	const struct image_topic *topic = image_topic(fill->call->image, asked->name);
	struct list_offsets_response_partition *partitions = API_ALLOC(fill->call, asked->partitions_len, struct list_offsets_response_partition);
	if (partitions == NULL)
		return false;
	for (int32_t p = 0; p < asked->partitions_len; p++)
		if (!fill_partition(fill, t, p, &asked->partitions[p], topic, &partitions[p]))
			return false;
	fill->topics[t] = (struct list_offsets_response_topic){asked->name, partitions, asked->partitions_len};
	return true;
}

static size_t partitions_of(const struct list_offsets_request *in)
{
	size_t n = 0;
	for (int32_t t = 0; t < in->topics_len; t++)
		n += in->topics[t].partitions_len > 0 ? (size_t)in->topics[t].partitions_len : 0;
	return n;
}

bool api_list_offsets(const struct api_call *call)
{
	const struct list_offsets_request *in = call->in;
	struct list_offsets_response out;
	list_offsets_response_init(&out);
	struct lookup_fill fill = {
		.call = call,
		.topics = API_ALLOC(call, in->topics_len, struct list_offsets_response_topic),
		.parts = API_ALLOC(call, partitions_of(in), struct log_job_part),
	};
	if (fill.topics == NULL || fill.parts == NULL)
		return false;
	for (int32_t t = 0; t < in->topics_len; t++)
		if (in->topics[t].partitions_len > 0 && !fill_topic(&fill, &in->topics[t], out.topics_len++))
			return false;
	out.topics = fill.topics;
	/* old_style_offsets lie in the arena, and version 0, which has them, knows no lookup that a job would do */
	if (fill.parts_len == 0 || call->rq->version == 0 || call->rq->eof ||
	    !log_job_lookup(node_log_jobs(call->node), call->rq, &out, fill.parts, fill.parts_len))
		request_answer(call->rq, &out, call->now);
	return true;
}
