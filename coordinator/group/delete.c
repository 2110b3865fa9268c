/*
 * delete.c - DeleteGroups and OffsetDelete: what may be deleted, and its tombstones (group-protocol 1.14).
 *
 * A deletion is decided by what the log will hold when everything that is on its way has arrived, so that a commit that was appended
 * before it does not survive it: records in flight count as if they were there. All tombstones of one group are one atomic batch. Nothing
 * changes here before they are durable; then replay takes offsets and group away, unless the group has come to life in between.
 */
#include "coordinator/group/group.h"

/* ---- records on their way ---- */

/* All records of a write belong to one group. */
static bool write_is_of(const struct write *w, struct bytes group_id, struct record_key *key)
{
	return record_key_decode(key, w->entries[0].key) && key->kind != RECORD_OTHER && bytes_equal(key->group, group_id);
}

bool writes_of_group(const struct shard *shard, struct bytes group_id)
{
	struct record_key key;
	for (const struct write *w = shard->writes.first; w != NULL; w = w->next)
		if (write_is_of(w, group_id, &key))
			return true;
	return false;
}

/* Calls `visit` for each of them, in the order of the log. */
static void writes_each_of_group(const struct shard *shard, struct bytes group_id,
				 void (*visit)(void *arg, const struct record_key *key, bool tombstone), void *arg)
{
	struct record_key key;
	for (const struct write *w = shard->writes.first; w != NULL; w = w->next) {
		if (!write_is_of(w, group_id, &key))
			continue;
		for (unsigned int i = 0; i < w->len; i++)
			if (record_key_decode(&key, w->entries[i].key))
				visit(arg, &key, bytes_is_null(w->entries[i].value));
	}
}

static void delete_exists(void *arg, const struct record_key *key, bool tombstone)
{
	bool *exists = arg;
	if (key->kind == RECORD_PART) /* nothing by itself */
		return;
	if (!tombstone)
		*exists = true;
	else if (key->kind == RECORD_GROUP)
		*exists = false;
}

/* What may be done to the group: 0, or why not. *out may be NULL with 0: a simple group whose first commit is on its way. */
static int16_t delete_find(struct shard *shard, struct bytes group_id, struct group **out)
{
	if (shard->loading)
		return ERROR_COORDINATOR_LOAD_IN_PROGRESS;
	struct group *g = group_find(shard, group_id);
	bool exists = g != NULL;
	*out = g;
	if (g != NULL && g->state == GROUP_DEAD)
		return ERROR_COORDINATOR_NOT_AVAILABLE;
	if (g == NULL || g->state == GROUP_EMPTY)
		writes_each_of_group(shard, group_id, delete_exists, &exists);
	return exists ? 0 : ERROR_GROUP_ID_NOT_FOUND;
}

/* ---- tombstones, in two passes over the same offsets: the first measures, the second writes ---- */

void tombstone_offset(struct tombstones *t, struct bytes topic, int32_t partition)
{
	if (t->w == NULL) {
		t->records++;
		record_offset_key(&t->size, t->group_id, topic, partition);
		return;
	}
	write_key(t->w);
	record_offset_key(&t->w->bytes, t->group_id, topic, partition);
	write_value(t->w);
	write_end(t->w, true);
}

void tombstone_group(struct tombstones *t)
{
	if (t->w == NULL) {
		t->records++;
		record_group_key(&t->size, t->group_id);
		return;
	}
	write_key(t->w);
	record_group_key(&t->w->bytes, t->group_id);
	write_value(t->w);
	write_end(t->w, true);
}

void tombstone_part(struct tombstones *t, uint8_t slot, struct bytes member)
{
	if (t->w == NULL) {
		t->records++;
		record_part_key(&t->size, t->group_id, slot, member);
		return;
	}
	write_key(t->w);
	record_part_key(&t->w->bytes, t->group_id, slot, member);
	write_value(t->w);
	write_end(t->w, true);
}

struct tombstones tombstones_of(struct bytes group_id)
{
	return (struct tombstones){.group_id = group_id, .size = writer_of(NULL, 0)};
}

int16_t tombstones_write(struct tombstones *t, struct shard *shard, void (*put)(struct tombstones *t, void *arg), void *arg, struct now now)
{
	put(t, arg);
	if (t->records == 0)
		return 0;
	t->w = write_new(t->records, t->size.need, 0);
	if (t->w == NULL)
		return ERROR_COORDINATOR_NOT_AVAILABLE;
	put(t, arg);
	return write_submit(shard, t->w, now);
}

/* ---- DeleteGroups ---- */

struct delete_walk {
	struct shard *shard;
	struct tombstones *t;
};

static void delete_committed(void *arg, struct bytes topic, int32_t partition, const struct record_offset *value)
{
	tombstone_offset(arg, topic, partition);
}

static void delete_in_flight(void *arg, const struct record_key *key, bool tombstone)
{
	const struct delete_walk *walk = arg;
	struct record_offset value;
	if (key->kind == RECORD_OFFSET && !tombstone &&
	    !offsets_get(&walk->shard->offsets, key->group, key->topic, key->partition, &value))
		tombstone_offset(walk->t, key->topic, key->partition);
}

static void delete_all(struct tombstones *t, void *arg)
{
	struct delete_walk walk = {arg, t};
	offsets_each(&walk.shard->offsets, t->group_id, delete_committed, t);
	writes_each_of_group(walk.shard, t->group_id, delete_in_flight, &walk);
	parts_tombstones(t, group_find(walk.shard, t->group_id));
	tombstone_group(t);
}

int16_t shard_delete_group(struct shard *shard, struct bytes group_id, struct now now)
{
	struct group *g;
	if (bytes_is_null(group_id))
		return ERROR_INVALID_GROUP_ID;
	int16_t error = delete_find(shard, group_id, &g);
	if (error != 0)
		return error;
	if (g != NULL && g->state != GROUP_EMPTY)
		return ERROR_NON_EMPTY_GROUP;
	struct tombstones t = tombstones_of(group_id);
	error = tombstones_write(&t, shard, delete_all, shard, now);
	shard->stats->group_deleted += error == 0;
	return error;
}

/* ---- OffsetDelete ---- */

struct delete_offsets {
	struct shard *shard;
	const struct offset_delete_request *in;
	int16_t *codes;
	const struct group *group; /* NULL: nobody subscribes to anything */
};

/* A look-up among the records in flight. */
struct delete_sought {
	struct bytes topic;
	int32_t partition;
	bool found;
};

static void delete_seek(void *arg, const struct record_key *key, bool tombstone)
{
	struct delete_sought *s = arg;
	s->found |= key->kind == RECORD_OFFSET && !tombstone && key->partition == s->partition && bytes_equal(key->topic, s->topic);
}

static bool delete_has(const struct delete_offsets *d, struct bytes topic, int32_t partition)
{
	struct delete_sought sought = {topic, partition, false};
	struct record_offset value;
	if (offsets_get(&d->shard->offsets, d->in->group_id, topic, partition, &value))
		return true;
	writes_each_of_group(d->shard, d->in->group_id, delete_seek, &sought);
	return sought.found;
}

/* Decides about every partition that passed the screening, and deletes. */
static void delete_listed(struct tombstones *t, void *arg)
{
	const struct delete_offsets *d = arg;
	int16_t *code = d->codes;
	for (int32_t i = 0; i < d->in->topics_len; i++) {
		const struct offset_delete_request_topic *topic = &d->in->topics[i];
		bool subscribed = d->group != NULL && group_is_subscribed(d->group, topic->name);
		for (int32_t p = 0; p < topic->partitions_len; p++, code++) {
			if (*code == 0 && subscribed)
				*code = ERROR_GROUP_SUBSCRIBED_TO_TOPIC;
			else if (*code == 0 && delete_has(d, topic->name, topic->partitions[p].partition_index))
				tombstone_offset(t, topic->name, topic->partitions[p].partition_index);
		}
	}
}

int16_t shard_offset_delete(struct shard *shard, const struct offset_delete_request *in, int16_t *codes, struct now now)
{
	struct group *g;
	if (bytes_is_empty(in->group_id))
		return ERROR_INVALID_GROUP_ID;
	int16_t error = delete_find(shard, in->group_id, &g);
	if (error != 0)
		return error;
	bool members = g != NULL && g->state != GROUP_EMPTY;
	if (members && !bytes_equal(g->protocol_type, BYTES_LITERAL("consumer")))
		return ERROR_NON_EMPTY_GROUP;
	struct delete_offsets d = {shard, in, codes, members ? g : NULL};
	struct tombstones t = tombstones_of(in->group_id);
	return tombstones_write(&t, shard, delete_listed, &d, now);
}
