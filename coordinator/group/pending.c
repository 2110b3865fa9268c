/*
 * pending.c - member ids that were handed out (MEMBER_ID_REQUIRED) and have not come back yet.
 *
 * Such an id is no member: it is not counted, not listed, not stored. It only holds back the early completion of a join phase, until it comes
 * back, is left or outlives the session timeout that its JoinGroup asked for.
 */
#include "coordinator/group/group.h"

struct pending *pending_find(struct group *group, struct bytes id)
{
	if (group->pending_len == 0)
		return NULL;
	uint64_t hash = hash_bytes(&group->shard->key, group->node.hash, id);
	for (struct table_node *n = table_chain(&group->shard->pendings, hash); n != NULL; n = n->next) {
		struct pending *p = CONTAINER_OF(n, struct pending, node);
		if (n->hash == hash && p->group == group && bytes_equal(p->id, id))
			return p;
	}
	return NULL;
}

static void pending_expired(struct purgatory_op *op, struct now now)
{
	struct pending *p = CONTAINER_OF(op, struct pending, session);
	struct group *group = p->group;
	removal_note_id(group, p->id, REMOVAL_ID_EXPIRED, now);
	pending_remove(p);
	rebalance_after_expiry(group, now);
}

static const struct purgatory_kind pending_session = {"pending id", NULL, NULL, pending_expired, true};

struct pending *pending_add(struct group *group, struct bytes id, int32_t session_timeout_ms, struct now now)
{
	struct shard *shard = group->shard;
	struct pending *p = calloc(1, sizeof(*p) + (size_t)id.len);
	if (p == NULL)
		return NULL;
	memcpy(p + 1, id.p, (size_t)id.len);
	p->id = bytes_of(p + 1, (size_t)id.len);
	p->group = group;
	p->since_ms = now.wall_ms;
	if (!table_add(&shard->pendings, &p->node, hash_bytes(&shard->key, group->node.hash, id))) {
		free(p);
		return NULL;
	}
	LIST_INSERT_HEAD(&group->pending, p, link);
	group->pending_len++;
	purgatory_start(&shard->purgatory, &p->session, &pending_session, NULL, deadline_after(now, session_timeout_ms), now);
	return p;
}

void pending_remove(struct pending *p)
{
	struct group *group = p->group;
	purgatory_cancel(&p->session);
	table_remove(&group->shard->pendings, &p->node);
	LIST_REMOVE(p, link);
	CHECK(group->pending_len > 0);
	group->pending_len--;
	free(p);
}
