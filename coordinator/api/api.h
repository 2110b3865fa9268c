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

#include "muster/check.h"

#include "coordinator/image.h"
#include "coordinator/node.h"
#include "coordinator/request.h"
#include "coordinator/setting.h"
#include "coordinator/shard.h"
#include "coordinator/wire/api.h"
#include "coordinator/wire/arena.h"
#include "coordinator/wire/errors.h"
#include "coordinator/wire/messages.h"

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

/* ---- groups of other workers of the host (gather.c) ---- */

/*
 * The shard that owns the one group that a request is about. NULL: another worker has it, and the request is on its way there and back, or is refused:
 * the handler returns true.
 */
struct shard *api_shard(const struct api_call *call, struct bytes group_id);
/* The same as node_shard_quiet. */
struct shard *api_shard_quiet(const struct api_call *call, struct bytes group_id);

/* A request about several groups, taken apart by their owners. */
struct api_split {
	const void *of; /* the handler's */
	int32_t len;	/* groups */
	struct bytes (*group)(const struct api_split *split, int32_t i);
	/* The request for some of them, from the call's arena. NULL: out of arena. */
	const void *(*part)(const struct api_call *call, const struct api_split *split, const int32_t *picked, int32_t n);
};

enum api_gathered {
	API_GATHERED,	    /* go on: what others have to say is there */
	API_GATHER_LATER,   /* parked or refused: return true; the handler is called again */
	API_GATHER_NO_ARENA, /* return false */
};

/*
 * Asks all other workers that own one of the groups; `split` NULL: all of them, with the request as it is. The handler is called again with their
 * answers, and only then does its own part.
 */
enum api_gathered api_gather(const struct api_call *call, const struct api_split *split);
/*
 * Then, for the groups one after the other: the decoded response that tells of this one, and its place in there. NULL: the group is ours. `cursors` are
 * from api_cursors, where NULL means out of arena.
 */
int32_t *api_cursors(const struct api_call *call);
const void *api_told(const struct api_call *call, int32_t *cursors, struct bytes group_id, int32_t *place);
/* The decoded response of a worker, of api_workers; NULL: it was not asked. */
const void *api_part(const struct api_call *call, unsigned int worker);
unsigned int api_workers(const struct api_call *call);

/* ---- what the node gives to handlers (node.c) ---- */

/* The worker that owns a group; -1: we ourselves. */
int node_owner(const struct node *node, struct bytes group_id);

/* node_shard (node.h) for a heartbeat, which only moves deadlines further away: the shard need not be looked at in this round. */
struct shard *node_shard_quiet(struct node *node, struct bytes group_id);
/* The i-th of the node's shards; NULL behind the last one. */
struct shard *node_shard_at(struct node *node, unsigned int i);
unsigned int node_max_fetch_wait_ms(const struct node *node);
struct log *node_log(struct node *node);
/* Requests that wait for what stands in the log (log_job.h). */
struct log_jobs *node_log_jobs(struct node *node);
/* The settings to show; returns their number. */
unsigned int node_settings(const struct node *node, const struct setting **out);
/* Settings of the engine, and of groups that have their own. */
const struct group_settings *node_groups(const struct node *node);

#endif
