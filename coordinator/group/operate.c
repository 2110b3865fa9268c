/*
 * operate.c - the administrator's operations that change a group: release of an instance id, reset of offsets.
 *
 * A group at rest is written as it is from then on, before it moves: after a crash it stands without the released member, or in the generation that
 * fences all commits of the one before. A group in the middle of a rebalance is written by the end of that.
 */
#include "coordinator/group/operate.h"

/* The group as it is now, if it is at rest. 0, or the error for the client. */
static int16_t operate_write(struct group *group, struct now now)
{
	if (group->state != GROUP_STABLE || group->members_len == 0)
		return 0;
	int16_t error;
	struct write *w = group_write_new(group, NULL, 0, &error, now);
	return w == NULL ? error : write_submit(group->shard, w, now);
}

/* ---- release of an instance id ---- */

void admin_release(struct shard *shard, struct admin *a, struct now now)
{
	struct group *group = group_find(shard, a->group_id);
	struct member *m = group == NULL || bytes_is_null(a->instance_id) ? NULL : member_find_instance(group, a->instance_id);
	if (group == NULL || group->state == GROUP_DEAD) {
		admin_finish(a, ERROR_GROUP_ID_NOT_FOUND, now, "no such group");
		return;
	}
	if (m == NULL) {
		admin_finish(a, ERROR_UNKNOWN_MEMBER_ID, now, "no member of the group has this instance id");
		return;
	}
	if (!released_add(group, m)) {
		admin_finish(a, ERROR_COORDINATOR_NOT_AVAILABLE, now, "no memory");
		return;
	}
	removal_note(m, REMOVAL_RELEASED, BYTES_NULL, now);
	journal_open(group, JOURNAL_MEMBER_RELEASED, m, now);
	struct request *sync = member_unpark_sync(m);
	if (sync != NULL)
		sync_answer_error(sync, ERROR_FENCED_INSTANCE_ID, now);
	member_remove(m, ERROR_FENCED_INSTANCE_ID, now);
	int16_t error = operate_write(group, now);
	rebalance_after_removal(group, JOURNAL_MEMBER_RELEASED, now);
	if (error != 0)
		admin_finish(a, error, now, "released, but the log did not take it: a restart brings the member back");
	else
		admin_finish_durable(a, shard, "released", now);
}

/* ---- reset of offsets ---- */

static void reset_put(struct admin_item *item, const struct group *group, const struct admin_offset *o)
{
	struct record_offset before;
	admin_put(item, "group", group->id);
	admin_put(item, "topic", o->topic);
	admin_put_number(item, "partition", o->partition);
	if (offsets_get(&group->shard->offsets, group->id, o->topic, o->partition, &before))
		admin_put_number(item, "before", before.offset);
	admin_put_number(item, "offset", o->offset);
}

static struct record_offset reset_value(const struct admin_offset *o, struct now now)
{
	return (struct record_offset){
		.offset = o->offset,
		.leader_epoch = o->leader_epoch,
		.metadata = bytes_is_null(o->metadata) ? BYTES_EMPTY : o->metadata,
		.commit_ms = now.wall_ms,
		.expire_ms = RECORD_NO_EXPIRY,
	};
}

/* All offsets in one batch. 0, or the error for the client. */
static int16_t reset_write(struct group *group, const struct admin *a, struct now now)
{
	struct writer size = writer_of(NULL, 0);
	for (unsigned int i = 0; i < a->offsets_len; i++) {
		struct record_offset v = reset_value(&a->offsets[i], now);
		record_offset_key(&size, group->id, a->offsets[i].topic, a->offsets[i].partition);
		record_offset_value(&size, &v);
	}
	struct write *w = write_new(a->offsets_len, size.need, 0);
	if (w == NULL)
		return ERROR_COORDINATOR_NOT_AVAILABLE;
	for (unsigned int i = 0; i < a->offsets_len; i++) {
		struct record_offset v = reset_value(&a->offsets[i], now);
		write_key(w);
		record_offset_key(&w->bytes, group->id, a->offsets[i].topic, a->offsets[i].partition);
		write_value(w);
		record_offset_value(&w->bytes, &v);
		write_end(w, false);
	}
	return write_submit(group->shard, w, now);
}

/*
 * The generation that all members know is over at once: their commits are refused with ILLEGAL_GENERATION, where a rebalance alone would still take them
 * (group-protocol 1.11). The log holds the new one before it holds the offsets.
 */
static int16_t reset_fence(struct group *group, struct now now)
{
	int32_t before = group->generation;
	if (group->members_len == 0)
		return 0;
	group->generation = rebalance_next(before);
	int16_t error = operate_write(group, now);
	if (error != 0) {
		group->generation = before;
		return error;
	}
	if (group->state == GROUP_STABLE || group->state == GROUP_COMPLETING)
		rebalance_prepare(group, JOURNAL_OFFSETS_RESET, NULL, now);
	return 0;
}

void admin_reset_offsets(struct shard *shard, struct admin *a, struct now now)
{
	struct group *group = group_find(shard, a->group_id);
	if (group == NULL || group->state == GROUP_DEAD) {
		admin_finish(a, ERROR_GROUP_ID_NOT_FOUND, now, "no such group");
		return;
	}
	for (unsigned int i = 0; i < a->offsets_len; i++) {
		if (a->offsets[i].topic.len > 0 && a->offsets[i].topic.len <= RECORD_STRING_MAX && a->offsets[i].metadata.len <= RECORD_STRING_MAX)
			continue;
		admin_finish(a, ERROR_INVALID_REQUEST, now, "offset %u has no topic, or a text that is too long", i);
		return;
	}
	if (a->offsets_len == 0) {
		admin_finish(a, ERROR_INVALID_REQUEST, now, "no offsets are given");
		return;
	}
	int16_t error = reset_fence(group, now);
	if (error != 0) {
		admin_finish(a, error, now, "the log did not take it: nothing is changed");
		return;
	}
	for (unsigned int i = 0; i < a->offsets_len; i++) {
		struct admin_item item = admin_item_of("offset");
		reset_put(&item, group, &a->offsets[i]);
		a->item(a, &item);
	}
	error = reset_write(group, a, now);
	if (error != 0)
		admin_finish(a, error, now, "the group rebalances, but the log did not take the offsets: they are as they were");
	else
		admin_finish_durable(a, shard, "set", now);
}

/* ---- the table ---- */

void shard_admin(struct shard *shard, struct admin *a, struct now now)
{
	static void (*const ops[ADMIN_OP_COUNT])(struct shard *shard, struct admin *a, struct now now) = {
		[ADMIN_WHY] = admin_why,
		[ADMIN_WAITING] = admin_waiting,
		[ADMIN_RELEASE] = admin_release,
		[ADMIN_RESET_OFFSETS] = admin_reset_offsets,
	};
	CHECK(a->op < ADMIN_OP_COUNT);
	if (shard->loading) {
		admin_finish(a, ERROR_COORDINATOR_LOAD_IN_PROGRESS, now, "the group's shard is still being loaded");
		return;
	}
	ops[a->op](shard, a, now);
}
