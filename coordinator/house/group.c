/*
 * group.c - the operations of admin.h on one group: why, waiting, release, reset-offsets. They go to the shard's owner; `why` of a member whose group is
 * not known goes through all shards.
 */
#include <stdlib.h>

#include "coordinator/house/house_priv.h"
#include "coordinator/wire/errors.h"

static bool read_offset(struct job *job, const json_t *row, struct admin_offset *out)
{
	const json_t *topic = json_object_get(row, "topic"), *partition = json_object_get(row, "partition"), *offset = json_object_get(row, "offset");
	if (!json_is_string(topic) || !json_is_integer(partition) || !json_is_integer(offset) || json_integer_value(offset) < 0) {
		job_done(job, ERROR_INVALID_REQUEST, "offsets: each is {\"topic\":NAME,\"partition\":NUMBER,\"offset\":NUMBER}, the offset from 0");
		return false;
	}
	struct bytes name = bytes_of(json_string_value(topic), json_string_length(topic));
	const struct image_topic *known = image_topic(*job->house->cfg.image, name);
	if (known == NULL || json_integer_value(partition) < 0 || json_integer_value(partition) >= known->partitions) {
		job_done(job, ERROR_UNKNOWN_TOPIC_OR_PARTITION, "offsets: the catalog has no topic %.249s with partition %lld", json_string_value(topic),
			 (long long)json_integer_value(partition));
		return false;
	}
	*out = (struct admin_offset){name, (int32_t)json_integer_value(partition), json_integer_value(offset), -1, BYTES_NULL};
	return true;
}

static bool read_offsets(struct job *job)
{
	const json_t *rows = json_object_get(job->request, "offsets");
	size_t n = json_array_size(rows);
	if (n == 0) {
		job_done(job, ERROR_INVALID_REQUEST, "offsets: none are given");
		return false;
	}
	job->offsets = calloc(n, sizeof(*job->offsets));
	if (job->offsets == NULL) {
		job_done(job, -1, "no memory");
		return false;
	}
	for (size_t i = 0; i < n; i++)
		if (!read_offset(job, json_array_get(rows, i), &job->offsets[i]))
			return false;
	return true;
}

/* False: the job is over. */
static bool read_request(struct job *job, struct question *q)
{
	CHECK(admin_op_of(bytes_str(job->command->name), &q->op));
	if (!job_string(job, "group", &q->group_id) || !job_string(job, "member", &q->member_id) || !job_string(job, "instance", &q->instance_id))
		return false;
	bool one = q->op == ADMIN_WHY && (!bytes_is_null(q->member_id) || !bytes_is_null(q->instance_id));
	if (bytes_is_null(q->group_id) && !one) {
		job_done(job, ERROR_INVALID_REQUEST, "group: is missing");
		return false;
	}
	if (q->op == ADMIN_RELEASE && bytes_is_null(q->instance_id)) {
		job_done(job, ERROR_INVALID_REQUEST, "instance: is missing");
		return false;
	}
	if (q->op == ADMIN_RESET_OFFSETS && job->offsets == NULL && !read_offsets(job))
		return false;
	q->offsets = job->offsets;
	q->offsets_len = (unsigned int)json_array_size(json_object_get(job->request, "offsets"));
	return true;
}

/* Members of no known group: an answer of one shard that knows nothing is not the last word. */
static void take(struct job *job, const struct question *answer, bool all_shards)
{
	if (answer->missed) {
		job->misses++;
		return;
	}
	job->misses = 0;
	if (!all_shards) {
		job_items(job, answer);
		job_done(job, answer->error, "%s", answer->text);
		return;
	}
	if (answer->error == 0) {
		job_items(job, answer);
		job_done(job, 0, "%s", "");
	} else if (++job->shard == image_shards(*job->house->cfg.image)) {
		job_items(job, answer);
		job_done(job, answer->error, "no shard remembers a member of this id or instance");
	}
}

void command_group(struct job *job, struct question *answer)
{
	struct house *house = job->house;
	if (answer != NULL)
		take(job, answer, bytes_is_null(answer->group_id));
	if (job->over)
		return;
	if (job->misses >= 2 * house->workers) {
		job_done(job, -1, "the shard of the group was found at no worker; try again");
		return;
	}
	struct question *q = job_question(job);
	if (q == NULL)
		return;
	if (!read_request(job, q)) {
		free(q);
		return;
	}
	bool changes = q->op == ADMIN_RELEASE || q->op == ADMIN_RESET_OFFSETS;
	uint64_t wait_us = ANSWER_US + (changes ? (uint64_t)house->cfg.cfg->offsets_commit_timeout_ms * US_PER_MS : 0);
	if (!bytes_is_null(q->group_id))
		job->shard = image_shard_of(*house->cfg.image, q->group_id);
	q->run = question_admin;
	q->shard = job->shard;
	job_ask(job, (image_shard_node(*house->cfg.image, job->shard) + job->misses) % house->workers, q, wait_us);
}
