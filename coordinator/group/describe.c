/*
 * describe.c - groups and members as the admin APIs show them (group-protocol 1.15).
 *
 * The chosen protocol and the members' subscriptions are shown of a Stable group only: in every other state they are about to change. Assignments are
 * shown as they are stored. Ids that were handed out but have not come back are no members.
 */
#include "coordinator/group/group.h"

static struct shard_group describe_group(const struct group *g)
{
	return (struct shard_group){
		.id = g->id,
		.state = group_state_name(g->state),
		.protocol_type = g->protocol_type,
		.protocol = g->protocol,
		.leader = g->leader != NULL ? g->leader->id : BYTES_NULL,
		.generation = g->generation,
		.members = g->members_len,
		.pending = g->pending_len,
		.stable = g->state == GROUP_STABLE,
	};
}

int16_t shard_group_get(struct shard *shard, struct bytes group_id, struct shard_group *out)
{
	if (shard->loading)
		return ERROR_COORDINATOR_LOAD_IN_PROGRESS;
	const struct group *g = group_find(shard, group_id);
	if (g == NULL)
		return ERROR_GROUP_ID_NOT_FOUND;
	if (g->state == GROUP_DEAD)
		return ERROR_COORDINATOR_NOT_AVAILABLE;
	*out = describe_group(g);
	return ERROR_NONE;
}

struct describe_walk {
	void (*visit)(void *arg, const struct shard_group *group);
	void *arg;
};

static void describe_visit(struct table_node *n, void *arg)
{
	const struct describe_walk *walk = arg;
	struct shard_group view = describe_group(CONTAINER_OF(n, struct group, node));
	walk->visit(walk->arg, &view);
}

void shard_group_each(struct shard *shard, void (*visit)(void *arg, const struct shard_group *group), void *arg)
{
	struct describe_walk walk = {visit, arg};
	if (!shard->loading)
		table_each(&shard->groups, describe_visit, &walk);
}

bool shard_group_walk(struct shard *shard, uint32_t *bucket, void (*visit)(void *arg, const struct shard_group *group), void *arg)
{
	struct describe_walk walk = {visit, arg};
	if (shard->loading || *bucket >= shard->groups.buckets)
		return false;
	for (struct table_node *n = *table_slot(&shard->groups, *bucket); n != NULL; n = n->next)
		describe_visit(n, &walk);
	return ++*bucket < shard->groups.buckets;
}

void shard_member_each(struct shard *shard, struct bytes group_id, void (*visit)(void *arg, const struct shard_member *member), void *arg)
{
	const struct group *g = shard->loading ? NULL : group_find(shard, group_id);
	if (g == NULL)
		return;
	for (uint32_t i = 0; i < g->members_len; i++) {
		const struct member *m = g->members[i];
		struct shard_member view = {
			.id = m->id,
			.instance_id = m->instance_id,
			.client_id = m->client_id,
			.host = m->host,
			.metadata = g->state == GROUP_STABLE ? member_metadata(m) : BYTES_EMPTY,
			.assignment = member_assignment(m),
		};
		visit(arg, &view);
	}
}
