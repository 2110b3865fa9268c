/*
 * log_job_lookup.c - the job of a ListOffsets by timestamp: there is no index of times, so the partition is read from its start, in slices, until
 * a record is found that is not older. Batches whose largest timestamp is older are not looked into.
 */
#include <stdlib.h>

#include "coordinator/api/log_job_kind.h"
#include "coordinator/log/batch.h"
#include "coordinator/wire/errors.h"

#define AT_LARGEST_TIME 35

static struct list_offsets_response *copy(const struct list_offsets_response *in)
{
	size_t partitions = 0, names = 0;
	for (int32_t t = 0; t < in->topics_len; t++) {
		partitions += (size_t)in->topics[t].partitions_len;
		names += in->topics[t].name.len > 0 ? (size_t)in->topics[t].name.len : 0;
	}
	size_t topics = (size_t)in->topics_len * sizeof(struct list_offsets_response_topic);
	struct list_offsets_response *out = malloc(sizeof(*out) + topics + partitions * sizeof(struct list_offsets_response_partition) + names);
	if (out == NULL)
		return NULL;
	struct list_offsets_response_topic *topic = (void *)(out + 1);
	struct list_offsets_response_partition *partition = (void *)(topic + in->topics_len);
	uint8_t *name = (uint8_t *)(partition + partitions);
	*out = *in;
	out->topics = topic;
	for (int32_t t = 0; t < in->topics_len; t++) {
		const struct list_offsets_response_topic *from = &in->topics[t];
		topic[t] = *from;
		topic[t].partitions = partition;
		for (int32_t p = 0; p < from->partitions_len; p++)
			*partition++ = from->partitions[p];
		if (from->name.len <= 0)
			continue;
		memcpy(name, from->name.p, (size_t)from->name.len);
		topic[t].name.p = name;
		name += from->name.len;
	}
	return out;
}

static struct list_offsets_response_partition *partition_of(struct log_job *job, const struct log_job_part *part)
{
	const struct list_offsets_response *out = job->response;
	const struct list_offsets_response_partition *p = &out->topics[part->topic].partitions[part->partition];
	return (struct list_offsets_response_partition *)(uintptr_t)p;
}

static bool lookup_begin(struct log_job *job, struct log_job_part *part)
{
	if (!log_job_room(job, JOB_BYTES))
		return false;
	job->read.offset = part->offset;
	job->read.buf = job->buf;
	job->read.cap = job->cap;
	return true;
}

static void note(struct list_offsets_response_partition *out, const struct batch *batch, const struct batch_record *record)
{
	out->offset = record->offset;
	out->timestamp = record->timestamp_ms;
	out->leader_epoch = batch->leader_epoch;
}

/* True: found for good. */
static bool look_into(struct list_offsets_response_partition *out, struct batch *batch, int64_t timestamp)
{
	struct batch_record record;
	while (batch_next(batch, &record)) {
		if (timestamp == JOB_LARGEST_TIME) {
			if (record.timestamp_ms > out->timestamp)
				note(out, batch, &record);
		} else if (record.timestamp_ms >= timestamp) {
			note(out, batch, &record);
			return true;
		}
	}
	return false;
}

static bool look_through(struct list_offsets_response_partition *out, const struct log_read *read, int64_t timestamp)
{
	size_t at = 0;
	while (read->len - at >= BATCH_HEAD) {
		struct reader r = reader_of(read->buf + at + 8, 4);
		size_t size = (size_t)reader_u32(&r) + 12;
		struct batch batch;
		if (size > read->len - at || !batch_open(&batch, bytes_of(read->buf + at, size)))
			return false;
		r = reader_of(read->buf + at + AT_LARGEST_TIME, 8);
		int64_t largest = (int64_t)reader_u64(&r);
		int64_t wanted = timestamp == JOB_LARGEST_TIME ? out->timestamp : timestamp;
		if (largest >= wanted && (batch.attributes & (BATCH_CONTROL | BATCH_COMPRESSION)) == 0 && look_into(out, &batch, timestamp))
			return true;
		at += size;
	}
	return false;
}

static bool lookup_end(struct log_job *job, struct log_job_part *part)
{
	const struct log_read *read = &job->read;
	struct list_offsets_response_partition *out = partition_of(job, part);
	if (read->error != 0) {
		out->error_code = read->error;
		return true;
	}
	if (read->len == 0 && read->need > job->cap)
		return !log_job_room(job, read->need);
	if (read->len == 0 || look_through(out, read, part->timestamp))
		return true;
	part->offset = read->next_offset;
	return false;
}

static void lookup_answer(struct log_job *job, struct request *rq, struct now now)
{
	request_answer(rq, job->response, now);
}

static const struct log_job_kind lookup_kind = {lookup_begin, lookup_end, lookup_answer};

bool log_job_lookup(struct log_jobs *all, struct request *rq, const struct list_offsets_response *response, const struct log_job_part *parts, size_t n)
{
	struct log_job *job = log_job_new(all, &lookup_kind, parts, n);
	if (job == NULL)
		return false;
	job->response = copy(response);
	if (job->response == NULL) {
		free(job->parts);
		free(job);
		return false;
	}
	log_job_begin(job, all, rq, 0);
	return true;
}
