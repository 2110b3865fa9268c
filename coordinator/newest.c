/*
 * newest.c - see newest.h.
 */
#include "coordinator/group/group.h"

struct other {
	struct table_node node;
	uint64_t check; /* the second half of the hash */
	int64_t record;
};

void newest_init(struct newest *n, const struct hash_key *key)
{
	memset(n, 0, sizeof(*n));
	n->key = *key;
}

static void other_free(struct table_node *node, void *arg)
{
	free(CONTAINER_OF(node, struct other, node));
}

void newest_fini(struct newest *n)
{
	table_each(&n->others, other_free, NULL);
	table_fini(&n->others);
}

/* ---- all other keys ---- */

static struct other *other_find(struct newest *n, struct bytes key, uint64_t *hash, uint64_t *check)
{
	*hash = hash_bytes(&n->key, 1, key);
	*check = hash_bytes(&n->key, 2, key);
	for (struct table_node *t = table_chain(&n->others, *hash); t != NULL; t = t->next) {
		struct other *o = CONTAINER_OF(t, struct other, node);
		if (t->hash == *hash && o->check == *check)
			return o;
	}
	return NULL;
}

static void other_note(struct newest *n, const struct log_entry *entry)
{
	uint64_t hash, check;
	struct other *o = other_find(n, entry->key, &hash, &check);
	if (bytes_is_null(entry->value)) {
		if (o != NULL) {
			table_remove(&n->others, &o->node);
			free(o);
		}
		return;
	}
	if (o == NULL) {
		o = calloc(1, sizeof(*o));
		if (o == NULL || !table_add(&n->others, &o->node, hash)) {
			free(o);
			n->unsure = true;
			return;
		}
		o->check = check;
	}
	o->record = entry->offset;
}

static int64_t other_record(struct newest *n, struct bytes key)
{
	uint64_t hash, check;
	const struct other *o = other_find(n, key, &hash, &check);
	return o == NULL ? -1 : o->record;
}

/* ---- of a shard ---- */

/* A value that could be read but was not applied: there was no memory for it. */
static bool value_is_good(const struct record_key *key, struct bytes value)
{
	struct record_offset offset;
	struct record_group group;
	struct record_part part;
	switch (key->kind) {
	case RECORD_OFFSET:
		return record_offset_decode(&offset, value);
	case RECORD_GROUP:
		return record_group_decode(&group, value);
	case RECORD_PART:
		return record_part_decode(&part, value);
	default:
		return true;
	}
}

void newest_note(struct shard *shard, const struct record_key *key, const struct log_entry *entry, bool ok)
{
	struct newest *n = &shard->newest;
	struct group *group;
	if (entry->offset >= n->applied)
		n->applied = entry->offset + 1;
	if (key == NULL)
		return;
	if (!ok) {
		n->unsure |= value_is_good(key, entry->value);
		return;
	}
	switch (key->kind) {
	case RECORD_OFFSET: /* offsets_put has it */
		break;
	case RECORD_GROUP:
		group = group_find(shard, key->group);
		if (group != NULL)
			group->record = entry->offset;
		break;
	default:
		other_note(n, entry);
	}
}

/* Its parts are not all here yet. */
static bool group_header_waits(struct shard *shard, struct bytes id)
{
	const struct assembly *a = assembly_find(shard, id);
	return a != NULL && !bytes_is_empty(a->header);
}

/* The one at `offset` itself when nothing better is known. */
static int64_t newest_record(struct shard *shard, const struct record_key *key, struct bytes bytes, int64_t offset)
{
	const struct group *group;
	switch (key->kind) {
	case RECORD_OFFSET:
		return offsets_record(&shard->offsets, key->group, key->topic, key->partition);
	case RECORD_GROUP:
		group = group_find(shard, key->group);
		if (group == NULL && group_header_waits(shard, key->group))
			return offset;
		return group == NULL ? -1 : group->record;
	default:
		return other_record(&shard->newest, bytes);
	}
}

enum log_verdict shard_judge(struct shard *shard, const struct log_entry *entry)
{
	struct record_key key;
	if (entry->offset >= shard->newest.applied || !record_key_decode(&key, entry->key))
		return LOG_LIVE;
	int64_t newest = newest_record(shard, &key, entry->key, entry->offset);
	if (newest > entry->offset)
		return LOG_DEAD;
	if (newest >= 0 && newest < entry->offset) /* it could not be read: the one before it is in force */
		return LOG_LIVE;
	if (bytes_is_null(entry->value))
		return shard->newest.unsure ? LOG_LIVE : LOG_GONE;
	if (newest == entry->offset)
		return LOG_LIVE;
	return shard->newest.unsure || !value_is_good(&key, entry->value) ? LOG_LIVE : LOG_DEAD;
}

int64_t shard_applied(const struct shard *shard)
{
	return shard->newest.applied;
}
