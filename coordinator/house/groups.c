/*
 * groups.c - the list of all groups: shard by shard, a bounded piece of one in each question, and none while the client has not taken the last.
 */
#include "coordinator/house/house_priv.h"

static unsigned int owner_to_ask(const struct job *job)
{
	return (image_shard_node(*job->house->cfg.image, job->shard) + job->misses) % job->house->workers;
}

static void next_shard(struct job *job)
{
	job->shard++;
	job->cursor = 0;
	job->misses = 0;
}

static void take(struct job *job, const struct question *answer)
{
	if (answer->missed) {
		job->misses++;
		return;
	}
	job_items(job, answer);
	job->cursor = answer->cursor;
	if (answer->error != 0)
		job_done(job, answer->error, "%s", answer->text);
	else if (!answer->more)
		next_shard(job);
}

void command_groups(struct job *job, struct question *answer)
{
	if (answer != NULL)
		take(job, answer);
	if (job->over || (job->client != NULL && !client_has_room(job->client)))
		return;
	if (job->misses >= 2 * job->house->workers) {
		job_done(job, -1, "shard %u was found at no worker; try again", job->shard);
		return;
	}
	if (job->shard == image_shards(*job->house->cfg.image)) {
		job_done(job, 0, "%s", "");
		return;
	}
	struct question *q = job_question(job);
	if (q == NULL)
		return;
	q->run = question_groups;
	q->shard = job->shard;
	q->cursor = job->cursor;
	job_ask(job, owner_to_ask(job), q, ANSWER_US);
}
