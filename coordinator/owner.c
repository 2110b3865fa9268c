/*
 * owner.c - what the log asks about the records of a node's shards (log.h, struct log_owner).
 */
#include "coordinator/api/api.h"
#include "coordinator/node.h"

static enum log_verdict owner_judge(void *arg, unsigned int shard, const struct log_entry *entry)
{
	return shard_judge(node_shard_by_number(arg, shard), entry);
}

static bool owner_owns(void *arg, unsigned int shard)
{
	return node_shard_by_number(arg, shard) != NULL;
}

static int64_t owner_applied(void *arg, unsigned int shard)
{
	const struct shard *s = node_shard_by_number(arg, shard);
	return s == NULL ? 0 : shard_applied(s);
}

void node_own_log(struct node *node, struct log *log)
{
	struct log_owner owner = {owner_judge, owner_owns, owner_applied, node};
	log_set_owner(log, &owner);
}
