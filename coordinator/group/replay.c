/*
 * replay.c - the one function that changes durable state: a record of __consumer_offsets, from the log or just made durable.
 *
 * A group record is merged into the group: members that it names are made or updated, others go. Applied to a group at rest that is the same as
 * replacing it; applied to the live group that wrote it, it keeps what records do not hold (sessions, all offered protocols, memos).
 *
 * A live group may be ahead of its record: it is joining again, or in another generation, or wrote a newer record since. Then the record
 * is history and changes nothing. The same when the log refused a newer one. A group that is only recovered is never ahead.
 *
 * A group in parts is merged from its assembly (parts.c) when header and parts are all there, whichever comes last. A header of the edition that the
 * group has already changes single members.
 *
 * A merge can be interrupted after any member and goes on with the next call. While the group awaits its assignment, assignments carry the number that
 * group->assigned gets at the end, so nothing of it is seen before. When the group has moved on meanwhile, the rest is history like the rest of the
 * record.
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

static bool replay_update(struct merge *merge, struct member *m, const struct record_member *rec)
{
	if (m->assigned != m->group->assigned || !bytes_equal(m->assignment, rec->assignment)) {
		struct bytes copy;
		if (!bytes_dup(&copy, rec->assignment))
			return false;
		bytes_free(&m->assignment);
		m->assignment = copy;
	}
	m->assigned = merge->assigned;
	if (!bytes_equal(member_metadata(m), rec->subscription)) {
		struct offers *offers = offers_one(m->group, m->group->protocol, rec->subscription);
		if (offers == NULL)
			return false;
		member_set_offers(m, offers);
	}
	member_set_origin(m, rec->client_id, rec->host);
	member_set_timeouts(m, rec->session_timeout_ms, rec->rebalance_timeout_ms);
	if (merge->parts != NULL)
		m->slots |= (uint8_t)(1u << merge->rec.parts.slot);
	merge->seen += m->seen != merge->mark;
	m->seen = merge->mark;
	return true;
}

static void replay_drop(struct merge *merge, struct member *m, int16_t error, struct now now)
{
	merge->seen -= m->seen == merge->mark;
	member_remove(m, error, now);
}

static bool replay_member(struct merge *merge, const struct record_member *rec, struct now now)
{
	struct group *group = merge->group;
	struct member *m = member_find(group, rec->id);
	if (m != NULL && !bytes_equal(m->instance_id, rec->instance_id)) {
		replay_drop(merge, m, ERROR_UNKNOWN_MEMBER_ID, now);
		m = NULL;
	}
	if (m == NULL) {
		struct member *owner = bytes_is_null(rec->instance_id) ? NULL : member_find_instance(group, rec->instance_id);
		if (owner != NULL)
			replay_drop(merge, owner, ERROR_FENCED_INSTANCE_ID, now);
		struct member_text text = {rec->id, rec->instance_id, rec->client_id, rec->host};
		struct offers *offers = offers_one(group, group->protocol, rec->subscription);
		m = offers == NULL ? NULL : member_add(group, &text, offers);
	}
	return m != NULL && replay_update(merge, m, rec);
}

/* ---- a merge ---- */

/* The next member; false behind the last one. A part is freed by replay_taken. */
static bool merge_next(struct merge *merge, struct record_member *out)
{
	if (merge->parts == NULL)
		return record_group_next(&merge->rec, out);
	while (merge->next != NULL && merge->next->edition != merge->rec.parts.edition)
		merge->next = TAILQ_NEXT(merge->next, link);
	if (merge->next == NULL)
		return false;
	struct record_part part;
	bool whole = record_part_decode(&part, merge->next->value);
	CHECK(whole); /* it was read when it came */
	*out = part.member;
	out->id = merge->next->member;
	return true;
}

static void merge_taken(struct shard *shard, struct merge *merge)
{
	if (merge->parts == NULL)
		return;
	struct part *taken = merge->next;
	merge->next = TAILQ_NEXT(taken, link);
	part_free(shard, taken);
}

static void merge_begin(struct shard *shard, struct group *group, const struct record_group *rec, struct assembly *parts, bool same_edition)
{
	shard->merge = (struct merge){
		.group = group,
		.rec = *rec,
		.parts = parts,
		.next = parts == NULL ? NULL : TAILQ_FIRST(&parts->parts),
		.mark = ++shard->merges,
		.assigned = group->assigned + (group->state == GROUP_COMPLETING),
		.same_edition = same_edition,
	};
}

/* The group is as its record says. */
static void merge_end(struct shard *shard, struct merge *merge, bool ok, struct now now)
{
	struct group *group = merge->group;
	const struct record_group *rec = &merge->rec;
	bool completing = group->state == GROUP_COMPLETING;
	for (uint32_t i = group->members_len; ok && !merge->same_edition && merge->seen < group->members_len && i-- > 0;)
		if (group->members[i]->seen != merge->mark)
			member_remove(group->members[i], ERROR_UNKNOWN_MEMBER_ID, now);
	group->leader = bytes_is_null(rec->leader) ? NULL : member_find(group, rec->leader);
	if (ok || !completing)
		group->assigned = merge->assigned;
	if (completing && ok) {
		group_transition(group, GROUP_STABLE, now);
		group->state_ms = rec->state_ms;
	} else if (!completing) {
		if (group->members_len == 0)
			purgatory_cancel(&group->sync);
		group_restore(group, group->members_len == 0 ? GROUP_EMPTY : GROUP_STABLE, rec->state_ms);
	}
	if (rec->parts.edition != 0 ? parts_get(group) != NULL : group->parts != NULL) {
		group->parts->at = rec->parts;
		if (rec->parts.edition > group->parts->last_edition)
			group->parts->last_edition = rec->parts.edition;
	}
	assembly_leave(shard, assembly_find(shard, group->id), group, rec->parts.edition);
	shard->stats->log_replay_bad += !ok || (rec->parts.edition != 0 && rec->parts.members != group->members_len);
	merge->group = NULL;
}

/* False: not through yet. */
static bool merge_go(struct shard *shard, unsigned int *units, struct now now)
{
	struct merge *merge = &shard->merge;
	struct group *group = merge->group;
	struct record_member member;
	if (group->removed || replay_ahead(group, &merge->rec)) {
		merge->group = NULL;
		return true;
	}
	bool ok = group_set_protocol_type(group, bytes_is_empty(merge->rec.protocol_type) ? BYTES_NULL : merge->rec.protocol_type) &&
		  group_set_protocol(group, merge->rec.protocol);
	group->generation = merge->rec.generation;
	while (ok) {
		if (*units == 0)
			return false;
		if (!merge_next(merge, &member))
			break;
		ok = replay_member(merge, &member, now);
		merge_taken(shard, merge);
		--*units;
	}
	merge_end(shard, merge, ok, now);
	return true;
}

/* ---- records ---- */

/* The header came before its parts. */
static bool replay_keep_header(struct shard *shard, struct bytes id, struct bytes value)
{
	struct assembly *a = assembly_get(shard, id);
	struct bytes copy;
	if (a == NULL || !bytes_dup(&copy, value))
		return false;
	bytes_free(&a->header);
	a->header = copy;
	return true;
}

/* Begins the merge, unless the record is history or not complete. False: no memory. */
static bool replay_group(struct shard *shard, struct bytes id, const struct record_group *rec, struct bytes value)
{
	struct group *group = group_find(shard, id);
	bool same_edition = false;
	struct assembly *a = NULL;
	if (group != NULL && replay_ahead(group, rec))
		return true;
	if (rec->parts.edition != 0) {
		a = assembly_find(shard, id);
		same_edition = group != NULL && group->parts != NULL && group->parts->at.edition == rec->parts.edition && !assembly_complete(a, &rec->parts) &&
			       group->state == GROUP_STABLE;
		if (!same_edition && !assembly_complete(a, &rec->parts))
			return replay_keep_header(shard, id, value);
		if (a == NULL)
			a = assembly_get(shard, id);
	}
	if (group == NULL)
		group = group_new(shard, id);
	if (group == NULL || (rec->parts.edition != 0 && a == NULL))
		return false;
	merge_begin(shard, group, rec, a, same_edition);
	return true;
}

static bool replay_part(struct shard *shard, const struct record_key *key, struct bytes value)
{
	struct record_part part;
	struct record_group rec;
	if (bytes_is_null(value)) {
		struct group *group = group_find(shard, key->group);
		struct member *m = group == NULL ? NULL : member_find(group, key->member);
		if (m != NULL)
			m->slots &= (uint8_t)~(1u << key->slot);
		assembly_remove(shard, key);
		return true;
	}
	if (!record_part_decode(&part, value) || !assembly_put(shard, key, part.edition, value))
		return false;
	const struct assembly *a = assembly_find(shard, key->group);
	if (bytes_is_null(a->header) || !record_group_decode(&rec, a->header) || !assembly_complete(a, &rec.parts))
		return true;
	return replay_group(shard, key->group, &rec, a->header);
}

static void replay_group_gone(struct shard *shard, struct bytes id, struct now now)
{
	struct group *group = group_find(shard, id);
	struct assembly *a = assembly_find(shard, id);
	if (group != NULL && group->writes == 0 && (group->state == GROUP_EMPTY || group->state == GROUP_STABLE))
		group_remove(group, now);
	if (a != NULL)
		bytes_free(&a->header);
}

static bool replay_offset(struct shard *shard, const struct record_key *key, const struct log_entry *entry)
{
	struct bytes bytes = entry->value;
	struct record_offset value;
	if (bytes_is_null(bytes)) {
		offsets_remove(&shard->offsets, key->group, key->topic, key->partition);
		return true;
	}
	if (!record_offset_decode(&value, bytes))
		return false;
	if (group_find(shard, key->group) == NULL && group_new(shard, key->group) == NULL)
		return false;
	return offsets_put(&shard->offsets, key->group, key->topic, key->partition, &value, entry->offset);
}

bool replay_some(struct shard *shard, const struct log_entry *entry, unsigned int *units, struct now now)
{
	struct record_key key;
	struct record_group group;
	if (shard->merge.group == NULL) {
		bool known = record_key_decode(&key, entry->key), ok = known;
		if (ok && key.kind == RECORD_OFFSET)
			ok = replay_offset(shard, &key, entry);
		else if (ok && key.kind == RECORD_PART)
			ok = replay_part(shard, &key, entry->value);
		else if (ok && key.kind == RECORD_GROUP && bytes_is_null(entry->value))
			replay_group_gone(shard, key.group, now);
		else if (ok && key.kind == RECORD_GROUP)
			ok = record_group_decode(&group, entry->value) && replay_group(shard, key.group, &group, entry->value);
		if (!ok)
			shard->stats->log_replay_bad++;
		newest_note(shard, known ? &key : NULL, entry, ok);
		if (ok && key.kind == RECORD_PART && *units > 0)
			--*units;
	}
	return shard->merge.group == NULL || merge_go(shard, units, now);
}

bool shard_replay(struct shard *shard, const struct log_entry *entry, struct now now)
{
	uint64_t bad = shard->stats->log_replay_bad;
	unsigned int units = UINT32_MAX;
	while (!replay_some(shard, entry, &units, now))
		units = UINT32_MAX;
	return shard->stats->log_replay_bad == bad;
}
