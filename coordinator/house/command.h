/*
 * command.h - what the admin socket understands. This is the protocol; the table of commands is in command.c.
 *
 * The socket (admin.socket) is a Unix stream socket. Who may connect is said by its file permissions: by default its owner alone; nothing else is asked.
 * A client sends a request, one JSON object on one line of at most REQUEST_MAX bytes, and gets lines back, each one JSON object:
 *
 *   > {"command":"why","group":"orders"}
 *   < {"item":"group","group":"orders","state":"Stable","since_ms":1700000000000,"generation":4,...}     any number of items
 *   < {"item":"rebalance","cause":"member-joined",...}
 *   < {"done":true,"error":0,"text":""}                                                                  exactly one, the last
 *
 * `error` is 0 or a Kafka error number (-1: none of Kafka's fits); `text` says what is wrong and what to do. "cut":N in the last line: N items found no room.
 * Times are milliseconds since 1970 in members whose name ends in _ms, unless they are durations (running_ms, took_ms, ..._timeout_ms). Names
 * that are no UTF-8 have the wrong bytes as \xNN. Items and members may be added in later versions; a client skips what it does not know.
 * After the last line the client may send the next request. Requests of one client are served one after the other.
 *
 *   command        members of the request                          items
 *   status         -                                               server, worker
 *   cores          -                                               core
 *   groups         -                                               group
 *   why            group; or member or instance; or both            group, member, waiting, rebalance-open, rebalance, removed, unknown
 *   waiting        group                                           waiting
 *   release        group, instance                                 -
 *   reset-offsets  group, offsets: [{topic, partition, offset}]    offset
 *   reload         -                                               -
 *
 * A slow or hostile client is bounded: CLIENTS_MAX at once (the one that has been idle longest makes room for a new one), REQUEST_MAX bytes a request, which
 * must be whole within CLIENT_SLOW_US of its first byte; what it does not read within that time ends it, and nothing more is asked of workers for
 * it meanwhile. A question that a worker does not answer in time ends the command with an error that names the worker and what it does.
 *
 * A command is a job: `step` is called once at the beginning, then for each answer to its question, and again whenever there is room for output
 * (answer NULL). It asks at most one question at a time (job_ask), or is over (job_done). To add one, write its step and add a row in command.c.
 */
#ifndef MUSTER_COMMAND_H
#define MUSTER_COMMAND_H

#include <jansson.h>

#include "coordinator/house/house.h"
#include "coordinator/house/question.h"

#define REQUEST_MAX (1u << 20)
#define CLIENTS_MAX 16u
#define CLIENT_SLOW_US (5u * US_PER_S)
#define CLIENT_IDLE_US (300u * US_PER_S)
#define ANSWER_US (3u * US_PER_S) /* for what a worker does at once */

struct client;
struct job;

struct command {
	const char *name;
	void (*step)(struct job *job, struct question *answer);
	bool to_the_end; /* also when its client has gone */
};

struct job {
	struct house *house;
	struct client *client; /* NULL: nobody reads the answer */
	const struct command *command;
	json_t *request;
	struct question *asked;	  /* NULL: none is under way */
	unsigned int worker;	  /* that it is under way to */
	uint64_t deadline_us;	  /* of its answer */
	bool over;
	unsigned int cut;	  /* items that found no room */
	struct job *next;	  /* of the house */
	/* ---- the command's own ---- */
	bool begun;
	unsigned int shard;	  /* a walk over all of them */
	unsigned int misses;	  /* workers in a row that did not own it */
	uint32_t cursor;
	struct admin_offset *offsets; /* malloc */
	struct image *image;
	bool loaded;
	unsigned int failures;
};

/* A request's line; starts a job, or answers at once that it cannot be. `client` is told by client_line (clients.h). */
void command_take(struct house *house, struct client *client, const char *line, size_t len);

/* ---- for commands ---- */

/* A new question for this job; NULL: no memory, and the job is over. */
struct question *job_question(struct job *job);
/* Sends it; consumes it. The answer comes to `step`, unless the worker does not answer within `us` (TIME_NEVER: it may take for ever): the job is over then. */
void job_ask(struct job *job, unsigned int worker, struct question *q, uint64_t us);
void job_item(struct job *job, const struct admin_item *item);
/* All items of an answer. */
void job_items(struct job *job, const struct question *answer);
/* The last line. */
PRINTF_LIKE(3, 4) void job_done(struct job *job, int error, const char *format, ...);
/* The string `name` of the request; null if it is not there. False: it is no string, and the job is over. */
bool job_string(struct job *job, const char *name, struct bytes *out);

/* ---- the commands ---- */

void command_status(struct job *job, struct question *answer);
void command_cores(struct job *job, struct question *answer);
void command_groups(struct job *job, struct question *answer);
void command_group(struct job *job, struct question *answer); /* why, waiting, release, reset-offsets */
void command_reload(struct job *job, struct question *answer);

/* An object of an item; never NULL unless memory is out. */
json_t *item_json(const struct admin_item *item);
/* A string, with what is no UTF-8 as \xNN. */
json_t *bytes_json(struct bytes b);

#endif
