/*
 * replay.c - the one function that changes durable state: a record of __consumer_offsets, from the log or just made durable.
 *
 * A group record is merged into the group: members that it names are made or updated, others go. Applied to a group at rest that is the same as
 * replacing it; applied to the live group that wrote it, it keeps what records do not hold (sessions, all offered protocols, memos).
 *
 * A live group may be ahead of its record: it is joining again, or in another generation, or wrote a newer record since. Then the record
 * is history and changes nothing. The same when the log refused a newer one. A group that is only recovered is never ahead.
 *
 * Replay is total: any bytes in any order leave a valid state. A record that cannot be read is counted and skipped whole.
 */
#include "coordinator/group/group.h"

static bool replay_ahead(const struct group *group, const struct record_group *rec)
{
	if (group->writes > 0 || group->unsaved)
		return true;
	switch (group->state) {
	case GROUP_EMPTY:
	case GROUP_STABLE:
		return false;
	case GROUP_COMPLETING:
		return !group->assignment_written || rec->generation != group->generation;
	default:
		return true;
	}
}

static bool replay_update(struct member *m, const struct record_member *rec)
{
	if (!bytes_equal(m->assignment, rec->assignment)) {
		struct bytes copy;
		if (!bytes_dup(&copy, rec->assignment))
			return false;
		bytes_free(&m->assignment);
		m->assignment = copy;
	}
	if (!bytes_equal(member_metadata(m), rec->subscription)) {
		struct offers *offers = offers_one(m->group, m->group->protocol, rec->subscription);
		if (offers == NULL)
			return false;
		member_set_offers(m, offers);
	}
	member_set_origin(m, rec->client_id, rec->host);
	m->session_timeout_ms = rec->session_timeout_ms;
	m->rebalance_timeout_ms = rec->rebalance_timeout_ms;
	m->seen = true;
	return true;
}

static bool replay_member(struct group *group, const struct record_member *rec, struct now now)
{
	struct member *m = member_find(group, rec->id);
	if (m != NULL && !bytes_equal(m->instance_id, rec->instance_id)) {
		member_remove(m, ERROR_UNKNOWN_MEMBER_ID, now);
		m = NULL;
	}
	if (m == NULL) {
		struct member *owner = bytes_is_null(rec->instance_id) ? NULL : member_find_instance(group, rec->instance_id);
		if (owner != NULL)
			member_remove(owner, ERROR_FENCED_INSTANCE_ID, now);
		struct member_text text = {rec->id, rec->instance_id, rec->client_id, rec->host};
		struct offers *offers = offers_one(group, group->protocol, rec->subscription);
		m = offers == NULL ? NULL : member_add(group, &text, offers);
	}
	return m != NULL && replay_update(m, rec);
}

static bool replay_merge(struct group *group, struct record_group *rec, struct now now)
{
	struct record_member member;
	bool ok = group_set_protocol_type(group, bytes_is_empty(rec->protocol_type) ? BYTES_NULL : rec->protocol_type) &&
		  group_set_protocol(group, rec->protocol);
	group->generation = rec->generation;
	for (uint32_t i = 0; i < group->members_len; i++)
		group->members[i]->seen = false;
	while (ok && record_group_next(rec, &member))
		ok = replay_member(group, &member, now);
	for (uint32_t i = group->members_len; ok && i-- > 0;)
		if (!group->members[i]->seen)
			member_remove(group->members[i], ERROR_UNKNOWN_MEMBER_ID, now);
	group->leader = bytes_is_null(rec->leader) ? NULL : member_find(group, rec->leader);
	return ok;
}

static bool replay_group(struct shard *shard, struct bytes id, struct record_group *rec, struct now now)
{
	struct group *group = group_find(shard, id);
	if (group == NULL)
		group = group_new(shard, id);
	if (group == NULL)
		return false;
	if (replay_ahead(group, rec))
		return true;
	bool completing = group->state == GROUP_COMPLETING;
	bool ok = replay_merge(group, rec, now);
	if (completing) {
		if (ok) {
			group_transition(group, GROUP_STABLE, now);
			group->state_ms = rec->state_ms;
		}
		return ok;
	}
	if (group->members_len == 0)
		purgatory_cancel(&group->sync);
	group_restore(group, group->members_len == 0 ? GROUP_EMPTY : GROUP_STABLE, rec->state_ms);
	return ok;
}

static void replay_group_gone(struct shard *shard, struct bytes id, struct now now)
{
	struct group *group = group_find(shard, id);
	if (group != NULL && group->writes == 0 && (group->state == GROUP_EMPTY || group->state == GROUP_STABLE))
		group_remove(group, now);
}

static bool replay_offset(struct shard *shard, const struct record_key *key, struct bytes bytes)
{
	struct record_offset value;
	if (bytes_is_null(bytes)) {
		offsets_remove(&shard->offsets, key->group, key->topic, key->partition);
		return true;
	}
	if (!record_offset_decode(&value, bytes))
		return false;
	if (group_find(shard, key->group) == NULL && group_new(shard, key->group) == NULL)
		return false;
	return offsets_put(&shard->offsets, key->group, key->topic, key->partition, &value);
}

bool shard_replay(struct shard *shard, const struct log_entry *entry, struct now now)
{
	struct record_key key;
	struct record_group group;
	bool ok = record_key_decode(&key, entry->key);
	if (ok && key.kind == RECORD_OFFSET)
		ok = replay_offset(shard, &key, entry->value);
	else if (ok && key.kind == RECORD_GROUP && bytes_is_null(entry->value))
		replay_group_gone(shard, key.group, now);
	else if (ok && key.kind == RECORD_GROUP)
		ok = record_group_decode(&group, entry->value) && replay_group(shard, key.group, &group, now);
	if (!ok)
		shard->stats->log_replay_bad++;
	return ok;
}
