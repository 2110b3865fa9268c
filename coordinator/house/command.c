/*
 * command.c - the table of commands, and jobs: a request under way; see command.h.
 *
 * Invariants:
 *  1. job->asked is set exactly while its question is with a worker. The question points into the job, which therefore stays until it is back, over or
 *     not.
 *  2. No more than QUESTIONS_MAX questions are with one worker, so that its rings have room for each and for its answer.
 *  3. A job that is over has told its last line, or has nobody to tell it to.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "coordinator/house/house_priv.h"
#include "coordinator/wire/errors.h"

static const struct command commands[] = {
	{"status", command_status, false}, {"cores", command_cores, false},   {"groups", command_groups, false},
	{"why", command_group, false},	   {"waiting", command_group, false}, {"release", command_group, false},
	{"reset-offsets", command_group, false}, {"reload", command_reload, true},
};

/* ---- telling ---- */

static void tell(struct client *client, json_t *object)
{
	char *line = object == NULL ? NULL : json_dumps(object, JSON_COMPACT);
	json_decref(object);
	if (client != NULL && line != NULL)
		client_line(client, line, strlen(line));
	free(line);
}

static void tell_done(struct client *client, int error, unsigned int cut, const char *text)
{
	json_t *object = json_pack("{s:b,s:i,s:s}", "done", 1, "error", error, "text", text);
	if (cut > 0)
		json_object_set_new(object, "cut", json_integer(cut));
	tell(client, object);
}

void job_item(struct job *job, const struct admin_item *item)
{
	tell(job->client, item_json(item));
}

void job_items(struct job *job, const struct question *answer)
{
	struct reader r = reader_of(answer->items.start, writer_len(&answer->items));
	struct admin_item item;
	while (question_item(&r, &item))
		job_item(job, &item);
	job->cut += answer->cut;
}

void job_done(struct job *job, int error, const char *format, ...)
{
	char text[1100];
	va_list ap;
	CHECK(!job->over);
	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	job->over = true;
	if (job->client == NULL)
		return;
	tell_done(job->client, error, job->cut, text);
	client_busy(job->client, false);
	job->client = NULL;
}

bool job_string(struct job *job, const char *name, struct bytes *out)
{
	const json_t *value = json_object_get(job->request, name);
	*out = BYTES_NULL;
	if (value == NULL || json_is_null(value))
		return true;
	if (!json_is_string(value) || json_string_length(value) > INT16_MAX) {
		job_done(job, ERROR_INVALID_REQUEST, "%s: is no string, or too long", name);
		return false;
	}
	*out = bytes_of(json_string_value(value), json_string_length(value));
	return true;
}

/* ---- asking ---- */

struct question *job_question(struct job *job)
{
	struct question *q = malloc(sizeof(*q));
	if (q == NULL) {
		job_done(job, -1, "no memory");
		return NULL;
	}
	memset(q, 0, offsetof(struct question, bytes));
	q->group_id = q->member_id = q->instance_id = BYTES_NULL;
	q->items = writer_of(q->bytes, 0);
	q->asker = job;
	return q;
}

void job_ask(struct job *job, unsigned int worker, struct question *q, uint64_t us)
{
	struct house *house = job->house;
	struct mail mail = {q, 0, 0};
	char text[200];
	CHECK(worker < house->workers && job->asked == NULL);
	if (house->wards[worker].asked >= QUESTIONS_MAX - (us != TIME_NEVER)) { /* the last place is for what must not be left in the middle */
		free(q);
		watch_describe(house, worker, text, sizeof(text));
		job_done(job, -1, "worker %u has too many questions to answer already: %s", worker, text);
		return;
	}
	CHECK(house->link.tell(house->link.arg, worker, &mail));
	house->wards[worker].asked++;
	job->asked = q;
	job->worker = worker;
	job->deadline_us = us == TIME_NEVER ? TIME_NEVER : house->cfg.clock().us + us;
}

static void job_late(struct job *job)
{
	char text[200];
	watch_describe(job->house, job->worker, text, sizeof(text));
	__atomic_store_n(&job->asked->gone, true, __ATOMIC_RELAXED);
	job_done(job, ERROR_REQUEST_TIMED_OUT, "worker %u has not answered in time: %s; what it has begun may still happen", job->worker, text);
}

/* ---- jobs ---- */

struct job *job_start(struct house *house, struct client *client, const struct command *command, json_t *request)
{
	struct job *job = calloc(1, sizeof(*job));
	if (job == NULL) {
		tell_done(client, -1, 0, "no memory");
		json_decref(request);
		return NULL;
	}
	*job = (struct job){.house = house, .client = client, .command = command, .request = request, .next = house->jobs};
	house->jobs = job;
	if (client != NULL)
		client_busy(client, true);
	return job;
}

static void job_free(struct job *job)
{
	json_decref(job->request);
	free(job->offsets);
	free(job);
}

void jobs_answer(struct house *house, struct question *q)
{
	struct job *job = q->asker;
	CHECK(job != NULL && job->asked == q);
	job->asked = NULL;
	if (!job->over)
		job->command->step(job, q);
	free(q);
}

/* Its client is gone, or takes nothing at present. */
static bool may_step(const struct job *job)
{
	return job->asked == NULL && !job->over && (job->client == NULL || client_has_room(job->client));
}

bool jobs_due(const struct house *house)
{
	for (const struct job *job = house->jobs; job != NULL; job = job->next)
		if (may_step(job))
			return true;
	return false;
}

void jobs_step(struct house *house, struct now now)
{
	for (struct job **at = &house->jobs; *at != NULL;) {
		struct job *job = *at;
		if (may_step(job))
			job->command->step(job, NULL);
		if (job->asked != NULL && !job->over && job->deadline_us <= now.us)
			job_late(job);
		if (!job->over || job->asked != NULL) {
			at = &job->next;
			continue;
		}
		*at = job->next;
		job_free(job);
	}
}

void jobs_leave(struct house *house, struct client *client)
{
	for (struct job *job = house->jobs; job != NULL; job = job->next) {
		if (job->client != client)
			continue;
		job->client = NULL;
		job->over |= !job->command->to_the_end;
		if (job->over && job->asked != NULL)
			__atomic_store_n(&job->asked->gone, true, __ATOMIC_RELAXED);
	}
}

void jobs_free(struct house *house)
{
	while (house->jobs != NULL) {
		struct job *job = house->jobs;
		house->jobs = job->next;
		free(job->asked);
		job_free(job);
	}
}

/* ---- requests ---- */

static const struct command *command_of(const json_t *request)
{
	const char *name = json_string_value(json_object_get(request, "command"));
	for (size_t i = 0; name != NULL && i < ARRAY_LEN(commands); i++)
		if (strcmp(name, commands[i].name) == 0)
			return &commands[i];
	return NULL;
}

void command_take(struct house *house, struct client *client, const char *line, size_t len)
{
	json_error_t error;
	char text[300];
	json_t *request = json_loadb(line, len, JSON_REJECT_DUPLICATES, &error);
	const struct command *command = request == NULL ? NULL : command_of(request);
	if (command != NULL) {
		job_start(house, client, command, request);
		return;
	}
	if (request == NULL)
		snprintf(text, sizeof(text), "the request is no JSON object: %.200s, at byte %d", error.text, error.position);
	else
		snprintf(text, sizeof(text), "the request names no command that there is: \"command\":\"status\", cores, groups, why, waiting, release, "
					     "reset-offsets or reload");
	json_decref(request);
	tell_done(client, ERROR_INVALID_REQUEST, 0, text);
}
