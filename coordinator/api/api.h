/*
 * api.h - private to coordinator/api: what a handler of a Kafka API is given, what it may use, and the table of them.
 *
 * A handler gets one decoded request and answers it with request_answer, hands it on to a shard, or parks it. It keeps nothing between calls.
 *
 * Invariants:
 *  1. A handler that returns false has had no effect: it ran out of arena. It is called again with a larger one.
 *  2. A handler that returns true has answered, parked or refused the request.
 *  3. Whatever a handler allocates comes from the call's arena and is gone after the call.
 */
#ifndef MUSTER_API_H
#define MUSTER_API_H

#include "coordinator/image.h"
#include "coordinator/request.h"
#include "coordinator/setting.h"
#include "coordinator/shard.h"
#include "coordinator/wire/api.h"
#include "coordinator/wire/arena.h"
#include "coordinator/wire/errors.h"
#include "coordinator/wire/messages.h"

struct node;
struct log_jobs;

/* One call of a handler. */
struct api_call {
	struct node *node;
	const struct image *image;
	struct stats *stats;
	struct request *rq;
	const void *in;	    /* the decoded request; NULL only for ApiVersions of a version that we do not serve */
	struct bytes body;  /* its bytes */
	struct arena *arena; /* the decoded request lies in it; room for the response */
	struct now now;
};

/* ---- the handlers, one file each; indexed by enum api_index ---- */

#define API(name, kafka, key, lowest, highest) bool api_##name(const struct api_call *call);
#include "coordinator/wire/api.def"
#undef API

extern bool (*const api_handlers[API_COUNT])(const struct api_call *call);

/* ---- what handlers share (api.c) ---- */

/* `n` elements of `type` from the call's arena, or NULL; zero elements give a pointer that is not NULL. */
#define API_ALLOC(call, n, type) ((type *)arena_alloc((call)->arena, (size_t)(n), sizeof(type)))

/* The topic that a request names by name, or by id where the version has ids. NULL: there is none. */
const struct image_topic *api_topic(const struct api_call *call, struct bytes name, const struct uuid *id, bool by_id);

/* 0, or why there is no such partition: 100 for an unknown id, else 3. */
int16_t api_partition_error(const struct image_topic *topic, bool by_id, int32_t partition);

/* ---- what the session gives to handlers (answer.c) ---- */

/*
 * Answers at the microsecond `when`, or as soon as the server stops; until then the request is parked like one that waits for its group.
 * The response is encoded at once.
 */
void api_answer_at(const struct api_call *call, const void *response, uint64_t when);

/*
 * Whether everything appended to `shard` before the request's `n`-th wait is durable. If false the request is parked, and
 * its handler is called again when it is; the handler must return true. Waits are counted from 0 and taken in that order.
 * When the log broke the waits are over, and api_log_error says what the client is told.
 */
bool api_durable(const struct api_call *call, unsigned int n, struct shard *shard);
/* 0, or the error for the client because the log broke during one of the request's waits. */
int16_t api_log_error(const struct api_call *call);

/*
 * Answers when everything that any shard of the node has appended so far is durable. The response is encoded at once. When the log breaks before
 * that, `spoil` is given the decoded response and puts `error` in the place of whatever would acknowledge a change.
 */
void api_answer_durable(const struct api_call *call, const void *response, void (*spoil)(void *response, int16_t error));

/* ---- what the node gives to handlers (node.c) ---- */

/* The shard that owns a group. */
struct shard *node_shard(struct node *node, struct bytes group_id);
/* The same for a heartbeat, which only moves deadlines further away: the shard need not be looked at in this round. */
struct shard *node_shard_quiet(struct node *node, struct bytes group_id);
/* The i-th of the node's shards; NULL behind the last one. */
struct shard *node_shard_at(struct node *node, unsigned int i);
unsigned int node_max_fetch_wait_ms(const struct node *node);
int32_t node_id(const struct node *node);
struct log *node_log(struct node *node);
/* Requests that wait for what stands in the log (log_job.h). */
struct log_jobs *node_log_jobs(struct node *node);
/* The settings to show; returns their number. */
unsigned int node_settings(const struct node *node, const struct setting **out);
/* Settings of the engine, and of groups that have their own. */
const struct group_settings *node_groups(const struct node *node);

#endif
