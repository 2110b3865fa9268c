/*
 * group.c - the life of a group: found, made, changed in its durable fields, written, removed.
 */
#include "coordinator/group/group.h"

bool bytes_dup(struct bytes *out, struct bytes b)
{
	if (b.len <= 0) {
		*out = b.len < 0 ? BYTES_NULL : BYTES_EMPTY;
		return true;
	}
	uint8_t *p = malloc((size_t)b.len);
	if (p == NULL)
		return false;
	memcpy(p, b.p, (size_t)b.len);
	*out = (struct bytes){p, b.len};
	return true;
}

void bytes_free(struct bytes *b)
{
	if (b->len > 0)
		free((void *)(uintptr_t)b->p);
	*b = BYTES_NULL;
}

struct group *group_find(struct shard *shard, struct bytes id)
{
	if (shard->last_found != NULL && bytes_equal(shard->last_found->id, id))
		return shard->last_found;
	uint64_t hash = hash_bytes(&shard->key, 0, id);
	for (struct table_node *n = table_chain(&shard->groups, hash); n != NULL; n = n->next) {
		struct group *g = CONTAINER_OF(n, struct group, node);
		if (n->hash == hash && bytes_equal(g->id, id)) {
			shard->last_found = g;
			return g;
		}
	}
	return NULL;
}

struct group *group_new(struct shard *shard, struct bytes id)
{
	CHECK(id.len >= 0 && id.len <= RECORD_STRING_MAX);
	struct group *g = calloc(1, sizeof(*g) + (size_t)id.len);
	if (g == NULL)
		return NULL;
	if (id.len > 0)
		memcpy(g + 1, id.p, (size_t)id.len);
	g->id = bytes_of(g + 1, (size_t)id.len);
	g->shard = shard;
	g->settings = group_settings_find(shard->settings, g->id, NULL);
	g->state = g->previous_state = GROUP_EMPTY;
	g->state_ms = -1;
	g->record = -1;
	g->protocol_type = BYTES_NULL;
	g->protocol = BYTES_NULL;
	LIST_INIT(&g->pending);
	STAILQ_INIT(&g->released);
	if (!table_add(&shard->groups, &g->node, hash_bytes(&shard->key, 0, id))) {
		free(g);
		return NULL;
	}
	shard->stats->group_groups_now++;
	return g;
}

void group_free(struct group *group)
{
	CHECK(group->members_len == 0 && group->pending_len == 0 && !group->queued);
	parts_free(group);
	CHECK(!purgatory_waiting(&group->join) && !purgatory_waiting(&group->sync));
	journal_fini(&group->journal);
	released_forget(group);
	subscription_clear(&group->subscription);
	bytes_free(&group->protocol_type);
	bytes_free(&group->protocol);
	free(group->members);
	free(group);
}

void group_put(struct group *group)
{
	CHECK(group->refs > 0);
	if (--group->refs == 0 && group->removed)
		group_free(group);
}

void group_remove(struct group *group, struct now now)
{
	struct shard *shard = group->shard;
	purgatory_cancel(&group->join);
	purgatory_cancel(&group->sync);
	slice_leave(group);
	while (group->members_len > 0) {
		struct member *m = group->members[group->members_len - 1];
		removal_note(m, REMOVAL_GROUP_REMOVED, BYTES_NULL, now);
		member_remove(m, ERROR_UNKNOWN_MEMBER_ID, now);
	}
	while (!LIST_EMPTY(&group->pending))
		pending_remove(LIST_FIRST(&group->pending));
	table_remove(&shard->groups, &group->node);
	if (shard->last_found == group)
		shard->last_found = NULL;
	group->removed = true;
	shard->stats->group_groups_now--;
	if (group->state != GROUP_DEAD)
		group_transition(group, GROUP_DEAD, now);
	group->refs++;
	group_put(group);
}

static bool group_set(struct bytes *field, struct bytes value)
{
	struct bytes copy;
	if (bytes_equal(*field, value))
		return true;
	if (!bytes_dup(&copy, value))
		return false;
	bytes_free(field);
	*field = copy;
	return true;
}

bool group_set_protocol_type(struct group *group, struct bytes type)
{
	return group_set(&group->protocol_type, type);
}

bool group_set_protocol(struct group *group, struct bytes name)
{
	return group_set(&group->protocol, name);
}

int64_t group_rebalance_timeout(struct group *group)
{
	if (group->timeout_members == 0) { /* the last one that had it is gone, or asked for less */
		group->timeout_max = INT32_MIN;
		for (uint32_t i = 0; i < group->members_len; i++) {
			int32_t timeout = group->members[i]->rebalance_timeout_ms;
			if (timeout > group->timeout_max) {
				group->timeout_max = timeout;
				group->timeout_members = 0;
			}
			group->timeout_members += timeout == group->timeout_max;
		}
	}
	return group->members_len > 0 && group->timeout_max > 0 ? group->timeout_max : 0;
}

int16_t group_validate(struct group *group, struct bytes member_id, struct bytes instance_id, struct member **out)
{
	if (!bytes_is_null(instance_id)) {
		const struct member *owner = member_find_instance(group, instance_id);
		if (owner == NULL)
			return released_has(group, member_id, instance_id) ? ERROR_FENCED_INSTANCE_ID : ERROR_UNKNOWN_MEMBER_ID;
		if (!bytes_equal(owner->id, member_id))
			return ERROR_FENCED_INSTANCE_ID;
	}
	struct member *m = member_find(group, member_id);
	if (m == NULL)
		return ERROR_UNKNOWN_MEMBER_ID;
	*out = m;
	return 0;
}

bool shard_group_export(struct shard *shard, struct bytes group_id, struct writer *key, struct writer *value)
{
	const struct group *group = shard->loading ? NULL : group_find(shard, group_id);
	if (group == NULL)
		return false;
	record_group_key(key, group_id);
	group_encode(value, group, NULL, group->state_ms);
	return true;
}

void group_write_empty(struct group *group, struct now now)
{
	CHECK(group->members_len == 0);
	int16_t error;
	struct write *w = group_write_new(group, NULL, 0, &error, now);
	group->unsaved = w == NULL || write_submit(group->shard, w, now) != 0;
	if (group->unsaved)
		group->shard->stats->log_append_failed++;
}
