/*
 * node.h - the coordinator of one worker: one Kafka node with its shards and sessions. Implements the service of muster/service.h.
 */
#ifndef MUSTER_NODE_H
#define MUSTER_NODE_H

#include "muster/service.h"
#include "muster/stats.h"

#include "coordinator/image.h"
#include "coordinator/setting.h"
#include "coordinator/shard.h"

struct node;

struct node_config {
	int32_t node_id;
	/*
	 * To the other workers of the host; worker n is the n-th node of every image. NULL: there are none, and all shards are ours, whatever nodes the
	 * image lists.
	 */
	struct mailbox *mailbox;
	struct mailbox *desk; /* to the housekeeping thread, its number 0; NULL: there is none */
	const struct group_settings *groups; /* outlives the node */
	unsigned int max_sessions;
	unsigned int max_fetch_wait_ms;	     /* a Fetch is never parked longer */
	uint64_t random[2];		     /* keys and ids; from the system's random source */
	/* Rebalance journal: called for each finished event with one line of text; may be NULL. */
	void (*journal)(void *arg, const char *line);
	void *journal_arg;
	/* Called once when the log broke: nothing becomes durable any more (log.h); may be NULL. */
	void (*log_failed)(void *arg);
	void *log_failed_arg;
	const struct setting *settings; /* that DescribeConfigs shows of this node; outlive it */
	unsigned int settings_len;
};

/* `image`, `log` and `stats` outlive the node. NULL: no memory. */
struct node *node_new(const struct node_config *cfg, const struct image *image, struct log *log, struct stats *stats, struct now now);
void node_free(struct node *node);

/*
 * Recovery while the node serves: before the first connection its shards are given to a loader (loader.h), which fills them by node_loading_shard.
 * From then on each of them answers as loading until `ready`, which is asked in every round, says that the loader is through with it. The log is left
 * alone until the first is ready. `own`: counters for each shard of the host, by number, as for `ready`.
 */
void node_load(struct node *node, struct stats *own, bool (*ready)(void *arg, unsigned int shard), void *arg);
struct shard *node_loading_shard(struct node *node, unsigned int shard);
/* Whether the node has this shard. */
bool node_has_shard(const struct node *node, unsigned int shard);

/* ---- for handlers (api.h) and questions of the housekeeping thread (house/question.c), on the worker's thread ---- */

struct mailbox *node_desk(const struct node *node);
int32_t node_id(const struct node *node);
/* The shard of a group, about to be changed, or of a number; NULL: another worker's. */
struct shard *node_shard(struct node *node, struct bytes group_id);
struct shard *node_shard_by_number(struct node *node, unsigned int number);
/* service_ops.told */
void node_told(void *service, const struct mail *mail, struct now now);

/* Whether a shard is still loading. */
bool node_is_loading(const struct node *node);

/* Replaces the image; the old one may be freed after the call. Offsets of topics that the new one lacks are removed. False: no memory, they stay. While
 * shards are loading nothing is done, false. */
bool node_set_image(struct node *node, const struct image *image, struct now now);

/* From now on the node answers what its log asks about records (log.h, struct log_owner); no shard is loading. It stays until the log is freed. */
void node_own_log(struct node *node, struct log *log);

extern const struct service_ops node_service_ops; /* service pointer: struct node * */

#endif
