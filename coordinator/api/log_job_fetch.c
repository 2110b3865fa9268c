/*
 * log_job_fetch.c - the job of a Fetch: whole batches as they are stored, partition after partition, until the answer is full.
 */
#include <stdlib.h>

#include "muster/check.h"

#include "coordinator/api/log_job_kind.h"
#include "coordinator/wire/errors.h"

#define BATCH_LEAST 61 /* no batch is shorter */

/* A response that outlives the request, in one allocation: the head, its topics, their partitions, their names. NULL: no memory. */
static struct fetch_response *copy(const struct fetch_response *in)
{
	size_t partitions = 0, names = 0;
	for (int32_t t = 0; t < in->responses_len; t++) {
		partitions += (size_t)in->responses[t].partitions_len;
		names += in->responses[t].topic.len > 0 ? (size_t)in->responses[t].topic.len : 0;
	}
	size_t topics = (size_t)in->responses_len * sizeof(struct fetch_response_topic);
	struct fetch_response *out = malloc(sizeof(*out) + topics + partitions * sizeof(struct fetch_response_partition) + names);
	if (out == NULL)
		return NULL;
	struct fetch_response_topic *topic = (void *)(out + 1);
	struct fetch_response_partition *partition = (void *)(topic + in->responses_len);
	uint8_t *name = (uint8_t *)(partition + partitions);
	*out = *in;
	out->responses = topic;
	for (int32_t t = 0; t < in->responses_len; t++) {
		const struct fetch_response_topic *from = &in->responses[t];
		topic[t] = *from;
		topic[t].partitions = partition;
		for (int32_t p = 0; p < from->partitions_len; p++)
			*partition++ = from->partitions[p];
		if (from->topic.len <= 0)
			continue;
		memcpy(name, from->topic.p, (size_t)from->topic.len);
		topic[t].topic.p = name;
		name += from->topic.len;
	}
	return out;
}

/* The job owns the response, so it may write to it. */
static struct fetch_response_partition *partition_of(struct log_job *job, const struct log_job_part *part)
{
	const struct fetch_response *out = job->response;
	const struct fetch_response_partition *p = &out->responses[part->topic].partitions[part->partition];
	return (struct fetch_response_partition *)(uintptr_t)p;
}

static bool fetch_begin(struct log_job *job, struct log_job_part *part)
{
	size_t room = job->max - (job->used < job->max ? job->used : job->max), most = part->max < room ? part->max : room;
	part->len = 0;
	if (job->used > 0 && most < BATCH_LEAST)
		return false;
	if (!log_job_room(job, job->used + (most < BATCH_LEAST ? BATCH_LEAST : most)))
		return false;
	job->read.offset = part->offset;
	job->read.buf = job->buf + job->used;
	job->read.cap = most;
	return true;
}

static bool fetch_end(struct log_job *job, struct log_job_part *part)
{
	const struct log_read *read = &job->read;
	if (read->error != 0) {
		struct fetch_response_partition *out = partition_of(job, part);
		out->error_code = read->error;
		out->high_watermark = out->last_stable_offset = out->log_start_offset = -1;
		job->failed = true;
		return true;
	}
	/* the first batch of an answer is given whatever its size, so that a reader gets on */
	if (read->len == 0 && read->need > 0 && job->used == 0 && read->need > job->max) {
		job->max = read->need;
		part->max = read->need;
		return false;
	}
	if (read->len == 0 && read->need > 0 && job->used == 0 && read->need > part->max) {
		part->max = read->need;
		return false;
	}
	part->from = job->used;
	part->len = read->len;
	job->used += read->len;
	return true;
}

static void fetch_answer(struct log_job *job, struct request *rq, struct now now)
{
	for (size_t i = 0; i < job->parts_len; i++) {
		const struct log_job_part *part = &job->parts[i];
		struct fetch_response_partition *out = partition_of(job, part);
		struct log_span span;
		if (out->error_code != ERROR_NONE || !log_span(job->all->log, part->shard, &span))
			continue;
		out->high_watermark = out->last_stable_offset = span.high_watermark;
		out->log_start_offset = span.start;
		if (part->len > 0 && job->used > 0)
			out->records = bytes_of(job->buf + part->from, part->len);
	}
	request_answer(rq, job->response, now);
}

static const struct log_job_kind fetch_kind = {fetch_begin, fetch_end, fetch_answer};

bool log_job_fetch(struct log_jobs *all, struct request *rq, const struct fetch_response *response, const struct log_job_part *parts, size_t n,
		   size_t min, size_t max, uint64_t deadline)
{
	struct log_job *job = log_job_new(all, &fetch_kind, parts, n);
	if (job == NULL)
		return false;
	job->max = max < JOB_BYTES ? max : JOB_BYTES;
	job->min = min < job->max ? min : job->max;
	job->response = copy(response);
	if (job->response == NULL) {
		free(job->parts);
		free(job);
		return false;
	}
	log_job_begin(job, all, rq, deadline);
	return true;
}
