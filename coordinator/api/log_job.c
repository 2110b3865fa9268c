/*
 * log_job.c - the life of a job; what a fetch and a lookup do with what was read stands in log_job_fetch.c and log_job_lookup.c.
 */
#include <stdlib.h>

#include "muster/check.h"

#include "coordinator/api/log_job_kind.h"

#define AGAIN_US (10 * US_PER_MS) /* a fetch that wants more than there is looks no more often than that */

void log_jobs_init(struct log_jobs *all, struct log *log)
{
	*all = (struct log_jobs){.log = log, .deadline = TIME_NEVER};
	TAILQ_INIT(&all->list);
}

/* ---- jobs ---- */

static void job_set(struct log_job *job, enum job_state state)
{
	struct log_jobs *all = job->all;
	all->reading -= job->state == JOB_READING;
	all->queued -= job->state == JOB_QUEUED;
	job->state = state;
	all->reading += state == JOB_READING;
	all->queued += state == JOB_QUEUED;
	if (state == JOB_WAITING && job->deadline < all->deadline)
		all->deadline = job->deadline;
}

static void job_free(struct log_job *job)
{
	if (job->all != NULL) {
		job_set(job, JOB_DONE);
		TAILQ_REMOVE(&job->all->list, job, link);
		job->all->len--;
	}
	free(job->buf);
	free(job->response);
	free(job->parts);
	free(job);
}

static void job_drop(struct request *rq, struct now now)
{
	struct log_job *job = rq->holder;
	job->rq = NULL;
	if (!job->busy)
		job_free(job);
}

struct log_job *log_job_new(struct log_jobs *all, const struct log_job_kind *kind, const struct log_job_part *parts, size_t n)
{
	struct log_job *job = all->len < JOBS_MAX ? calloc(1, sizeof(*job)) : NULL;
	if (job == NULL)
		return NULL;
	job->kind = kind;
	job->parts_len = n;
	job->parts = malloc(n * sizeof(*parts));
	if (job->parts == NULL) {
		free(job);
		return NULL;
	}
	memcpy(job->parts, parts, n * sizeof(*parts));
	return job;
}

void log_job_begin(struct log_job *job, struct log_jobs *all, struct request *rq, uint64_t deadline)
{
	job->all = all;
	job->rq = rq;
	job->deadline = deadline;
	TAILQ_INSERT_TAIL(&all->list, job, link);
	all->len++;
	job_set(job, JOB_QUEUED);
	request_park(rq, REQUEST_WAIT_GROUP, job_drop, job);
}

bool log_job_room(struct log_job *job, size_t size)
{
	if (size <= job->cap)
		return true;
	uint8_t *grown = realloc(job->buf, size);
	if (grown == NULL)
		return false;
	job->buf = grown;
	job->cap = size;
	return true;
}

/* ---- reading ---- */

static void job_answer(struct log_job *job, struct now now)
{
	struct request *rq = job->rq;
	job->rq = NULL;
	job->kind->answer(job, rq, now);
	job_free(job);
}

static bool job_has_news(const struct log_job *job)
{
	struct log_span span;
	for (size_t i = 0; i < job->parts_len; i++)
		if (log_span(job->all->log, job->parts[i].shard, &span) && span.high_watermark > job->parts[i].seen)
			return true;
	return false;
}

static void job_wait(struct log_job *job, struct now now)
{
	job->again = job->used > 0 ? now.us + AGAIN_US : now.us;
	free(job->buf);
	job->buf = NULL;
	job->cap = 0;
	job_set(job, job_has_news(job) && job->again <= now.us ? JOB_QUEUED : JOB_WAITING);
}

static void job_read_done(struct log_read *read, struct now now)
{
	struct log_job *job = read->arg;
	job->busy = false;
	if (job->all == NULL)
		job_free(job);
}

/* Starts the next read; when there is none left, the job ends or waits. */
static void job_go_on(struct log_job *job, struct now now)
{
	for (; job->at < job->parts_len; job->at++) {
		struct log_job_part *part = &job->parts[job->at];
		struct log_span span = {0, 0, 0, NULL, 0};
		log_span(job->all->log, part->shard, &span);
		part->seen = span.high_watermark;
		if (span.high_watermark <= part->offset || !job->kind->begin(job, part))
			continue;
		job->busy = true;
		job->read.shard = part->shard;
		job->read.done = job_read_done;
		job->read.arg = job;
		if (log_read_start(job->all->log, &job->read))
			return;
		job->busy = false;
	}
	if (job->used >= job->min || job->failed || job->deadline <= now.us)
		job_answer(job, now);
	else
		job_wait(job, now);
}

static void job_step_reading(struct log_job *job, struct now now)
{
	if (job->busy)
		return;
	if (job->rq == NULL) {
		job_free(job);
		return;
	}
	if (job->kind->end(job, &job->parts[job->at]))
		job->at++;
	job_go_on(job, now);
}

static void job_step_queued(struct log_job *job, struct now now)
{
	if (job->all->reading >= JOBS_READING)
		return;
	job_set(job, JOB_READING);
	job->at = 0;
	job->used = 0;
	job_go_on(job, now);
}

static void job_step_waiting(struct log_job *job, bool moved, struct now now)
{
	bool over = job->deadline <= now.us;
	if (over && job->used == 0)
		job_answer(job, now);
	else if (over || (moved && job->again <= now.us && job_has_news(job)))
		job_set(job, JOB_QUEUED);
	else if (job->deadline < job->all->deadline)
		job->all->deadline = job->deadline;
}

uint64_t log_jobs_tick(struct log_jobs *all, struct now now)
{
	if (all->len == 0)
		return TIME_NEVER;
	uint64_t durable = log_durable(all->log);
	bool moved = durable != all->durable;
	if (moved || all->reading > 0 || all->queued > 0 || all->deadline <= now.us) {
		struct log_job *job, *next;
		all->durable = durable;
		all->deadline = TIME_NEVER;
		for (job = TAILQ_FIRST(&all->list); job != NULL; job = next) {
			next = TAILQ_NEXT(job, link);
			if (job->state == JOB_READING)
				job_step_reading(job, now);
			else if (job->state == JOB_QUEUED)
				job_step_queued(job, now);
			else
				job_step_waiting(job, moved, now);
		}
	}
	/* while the disk reads, it is the log that wants to be polled, or not: its disk may wake the worker */
	return all->queued > 0 && all->reading < JOBS_READING ? now.us : all->deadline;
}

/* ---- the end ---- */

void log_jobs_stop(struct log_jobs *all, struct now now)
{
	struct log_job *job, *next;
	for (job = TAILQ_FIRST(&all->list); job != NULL; job = next) {
		next = TAILQ_NEXT(job, link);
		job->deadline = 0;
		if (job->state == JOB_WAITING)
			job_answer(job, now);
	}
}

void log_jobs_fini(struct log_jobs *all)
{
	struct log_job *job, *next;
	for (job = TAILQ_FIRST(&all->list); job != NULL; job = next) {
		next = TAILQ_NEXT(job, link);
		job->rq = NULL;
		job->all = NULL;
		if (!job->busy)
			job_free(job);
	}
}
