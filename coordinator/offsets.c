/*
 * offsets.c - committed offsets; see offsets.h.
 *
 * A topic's partitions lie in one array, in the order of their first commits, with an index over it once they are more than a few: one commit of
 * many partitions, and the replay of it, stays in a few cache lines. The group and the topic that were asked for last are tried first.
 *
 * Invariants:
 *  1. A topic is in its group's list and in `topics` as long as it has a partition; a group is in `groups` as long as it has a topic.
 *  2. Names and metadata are allocated with, or belong to, exactly one entry.
 *  3. A place of the index holds 0 or 1 + the number of an entry; every number of a partition stands there once, also when its entry is a hole.
 */
#include <sys/queue.h>

#include "coordinator/offsets.h"

#define INDEX_FROM 8u /* fewer entries are searched one by one */
#define ENTRIES_FIRST 2u

struct offset_group {
	struct table_node node;
	TAILQ_HEAD(, offset_topic) topics;
	struct bytes id; /* behind the struct */
};

struct offset_partition {
	int64_t offset;
	int64_t commit_ms;
	int64_t expire_ms;
	int64_t record;	   /* its offset in the log */
	uint8_t *metadata; /* malloc; NULL when empty */
	int32_t metadata_len; /* -1: the entry is a hole */
	int32_t partition;
	int32_t leader_epoch;
};

struct offset_topic {
	struct table_node node;
	struct offset_group *group;
	TAILQ_ENTRY(offset_topic) link;
	struct bytes name; /* behind the struct */
	struct offset_partition *list;
	uint32_t len, cap, holes;
	uint32_t *index; /* NULL: there is none */
	uint32_t index_bits;
};

void offsets_init(struct offsets *o, const struct hash_key *key)
{
	memset(o, 0, sizeof(*o));
	o->key = *key;
}

static void offsets_free_topic(struct table_node *n, void *arg)
{
	struct offset_topic *t = CONTAINER_OF(n, struct offset_topic, node);
	for (uint32_t i = 0; i < t->len; i++)
		free(t->list[i].metadata);
	free(t->list);
	free(t->index);
	free(t);
}

static void offsets_free_group(struct table_node *n, void *arg)
{
	free(CONTAINER_OF(n, struct offset_group, node));
}

void offsets_fini(struct offsets *o)
{
	table_each(&o->topics, offsets_free_topic, NULL);
	table_each(&o->groups, offsets_free_group, NULL);
	table_fini(&o->topics);
	table_fini(&o->groups);
}

/* ---- groups and topics ---- */

static struct offset_group *offsets_group(struct offsets *o, struct bytes id, uint64_t *hash)
{
	if (o->last != NULL && bytes_equal(o->last->group->id, id))
		return o->last->group;
	*hash = hash_bytes(&o->key, 0, id);
	for (struct table_node *n = table_chain(&o->groups, *hash); n != NULL; n = n->next) {
		struct offset_group *g = CONTAINER_OF(n, struct offset_group, node);
		if (n->hash == *hash && bytes_equal(g->id, id))
			return g;
	}
	return NULL;
}

static struct offset_topic *offsets_topic(struct offsets *o, struct offset_group *g, struct bytes name, uint64_t *hash)
{
	if (o->last != NULL && o->last->group == g && bytes_equal(o->last->name, name))
		return o->last;
	*hash = hash_bytes(&o->key, g->node.hash, name);
	for (struct table_node *n = table_chain(&o->topics, *hash); n != NULL; n = n->next) {
		struct offset_topic *t = CONTAINER_OF(n, struct offset_topic, node);
		if (n->hash == *hash && t->group == g && bytes_equal(t->name, name)) {
			o->last = t;
			return t;
		}
	}
	return NULL;
}

/* Drops a topic without partitions and a group without topics (invariant 1). */
static void offsets_trim(struct offsets *o, struct offset_group *g, struct offset_topic *t)
{
	if (t != NULL && t->len == t->holes) {
		if (o->last == t)
			o->last = NULL;
		TAILQ_REMOVE(&g->topics, t, link);
		table_remove(&o->topics, &t->node);
		offsets_free_topic(&t->node, NULL);
	}
	if (TAILQ_EMPTY(&g->topics)) {
		table_remove(&o->groups, &g->node);
		free(g);
	}
}

static struct bytes offsets_copy_behind(void *to, struct bytes b)
{
	size_t len = b.len > 0 ? (size_t)b.len : 0;
	if (len > 0)
		memcpy(to, b.p, len);
	return bytes_of(to, len);
}

static struct offset_group *offsets_add_group(struct offsets *o, struct bytes id, uint64_t hash)
{
	struct offset_group *g = calloc(1, sizeof(*g) + (size_t)id.len);
	if (g == NULL)
		return NULL;
	g->id = offsets_copy_behind(g + 1, id);
	TAILQ_INIT(&g->topics);
	if (table_add(&o->groups, &g->node, hash))
		return g;
	free(g);
	return NULL;
}

static struct offset_topic *offsets_add_topic(struct offsets *o, struct offset_group *g, struct bytes name, uint64_t hash)
{
	struct offset_topic *t = calloc(1, sizeof(*t) + (size_t)name.len);
	if (t == NULL)
		return NULL;
	t->group = g;
	t->name = offsets_copy_behind(t + 1, name);
	if (!table_add(&o->topics, &t->node, hash)) {
		free(t);
		return NULL;
	}
	TAILQ_INSERT_TAIL(&g->topics, t, link);
	o->last = t;
	return t;
}

/* ---- the partitions of a topic ---- */

/* The place of the index where the partition stands, or where it belongs. */
static uint32_t *topic_place(const struct offset_topic *t, int32_t partition)
{
	uint32_t mask = (1u << t->index_bits) - 1;
	uint32_t at = (uint32_t)partition * 0x9e3779b1u >> (32 - t->index_bits);
	while (t->index[at] != 0 && t->list[t->index[at] - 1].partition != partition)
		at = (at + 1) & mask;
	return &t->index[at];
}

static struct offset_partition *topic_find(const struct offset_topic *t, int32_t partition)
{
	struct offset_partition *found = NULL;
	if (t->index != NULL) {
		uint32_t place = *topic_place(t, partition);
		found = place == 0 ? NULL : &t->list[place - 1];
	} else {
		for (uint32_t i = 0; found == NULL && i < t->len; i++)
			if (t->list[i].partition == partition && t->list[i].metadata_len >= 0)
				found = &t->list[i];
	}
	return found == NULL || found->metadata_len < 0 ? NULL : found;
}

/* An entry behind a hole of the same partition takes its place. */
static void topic_fill_index(struct offset_topic *t)
{
	for (uint32_t i = 0; i < t->len; i++)
		*topic_place(t, t->list[i].partition) = i + 1;
}

/* An index over the entries as they are, with room for `cap` of them. False: no memory; the old one stays. */
static bool topic_index(struct offset_topic *t, uint32_t cap)
{
	uint32_t bits = 4;
	while (1u << bits < cap + cap / 2)
		bits++;
	uint32_t *index = calloc(1u << bits, sizeof(*index));
	if (index == NULL)
		return false;
	free(t->index);
	t->index = index;
	t->index_bits = bits;
	topic_fill_index(t);
	return true;
}

static void topic_close_holes(struct offset_topic *t)
{
	uint32_t len = 0;
	for (uint32_t i = 0; i < t->len; i++)
		if (t->list[i].metadata_len >= 0)
			t->list[len++] = t->list[i];
	t->len = len;
	t->holes = 0;
	if (t->index == NULL)
		return;
	memset(t->index, 0, sizeof(*t->index) << t->index_bits);
	topic_fill_index(t);
}

/* Room for one more entry. False: no memory. */
static bool topic_reserve(struct offset_topic *t)
{
	uint32_t cap = t->cap == 0 ? ENTRIES_FIRST : t->cap * 2;
	if (t->len < t->cap)
		return true;
	if (t->holes > 0) {
		topic_close_holes(t);
		return true;
	}
	struct offset_partition *grown = realloc(t->list, cap * sizeof(*grown));
	if (grown == NULL)
		return false;
	t->list = grown;
	if (cap > INDEX_FROM && !topic_index(t, cap))
		return false;
	t->cap = cap;
	return true;
}

static struct offset_partition *topic_add(struct offset_topic *t, int32_t partition)
{
	if (!topic_reserve(t))
		return NULL;
	struct offset_partition *p = &t->list[t->len++];
	*p = (struct offset_partition){.partition = partition};
	if (t->index != NULL)
		*topic_place(t, partition) = t->len;
	return p;
}

static void topic_remove(struct offset_topic *t, struct offset_partition *p)
{
	free(p->metadata);
	p->metadata = NULL;
	p->metadata_len = -1;
	t->holes++;
}

/* ---- all together ---- */

bool offsets_put(struct offsets *o, struct bytes group, struct bytes topic, int32_t partition, const struct record_offset *value, int64_t record)
{
	uint64_t hash = 0;
	size_t len = value->metadata.len > 0 ? (size_t)value->metadata.len : 0;
	uint8_t *metadata = NULL;
	if (len > 0) {
		metadata = malloc(len);
		if (metadata == NULL)
			return false;
		memcpy(metadata, value->metadata.p, len);
	}

	struct offset_group *g = offsets_group(o, group, &hash);
	if (g == NULL)
		g = offsets_add_group(o, group, hash);
	struct offset_topic *t = g == NULL ? NULL : offsets_topic(o, g, topic, &hash);
	if (g != NULL && t == NULL)
		t = offsets_add_topic(o, g, topic, hash);
	struct offset_partition *p = t == NULL ? NULL : topic_find(t, partition);
	if (t != NULL && p == NULL) {
		p = topic_add(t, partition);
		o->count += p != NULL;
	}
	if (p == NULL) {
		if (g != NULL)
			offsets_trim(o, g, t);
		free(metadata);
		return false;
	}
	free(p->metadata);
	p->metadata = metadata;
	p->metadata_len = (int32_t)len;
	p->offset = value->offset;
	p->leader_epoch = value->leader_epoch;
	p->commit_ms = value->commit_ms;
	p->expire_ms = value->expire_ms;
	p->record = record;
	return true;
}

static struct offset_partition *offsets_find(struct offsets *o, struct bytes group, struct bytes topic, int32_t partition, struct offset_topic **of)
{
	uint64_t hash;
	struct offset_group *g = offsets_group(o, group, &hash);
	*of = g == NULL ? NULL : offsets_topic(o, g, topic, &hash);
	return *of == NULL ? NULL : topic_find(*of, partition);
}

int64_t offsets_record(struct offsets *o, struct bytes group, struct bytes topic, int32_t partition)
{
	struct offset_topic *t;
	const struct offset_partition *p = offsets_find(o, group, topic, partition, &t);
	return p == NULL ? -1 : p->record;
}

void offsets_remove(struct offsets *o, struct bytes group, struct bytes topic, int32_t partition)
{
	struct offset_topic *t;
	struct offset_partition *p = offsets_find(o, group, topic, partition, &t);
	if (p == NULL)
		return;
	topic_remove(t, p);
	o->count--;
	offsets_trim(o, t->group, t);
}

static void offsets_fill(const struct offset_partition *p, struct record_offset *value)
{
	struct bytes metadata = p->metadata_len > 0 ? bytes_of(p->metadata, (size_t)p->metadata_len) : BYTES_EMPTY;
	*value = (struct record_offset){p->offset, p->leader_epoch, metadata, p->commit_ms, p->expire_ms};
}

bool offsets_get(struct offsets *o, struct bytes group, struct bytes topic, int32_t partition, struct record_offset *value)
{
	struct offset_topic *t;
	const struct offset_partition *p = offsets_find(o, group, topic, partition, &t);
	if (p == NULL)
		return false;
	offsets_fill(p, value);
	return true;
}

void offsets_each(struct offsets *o, struct bytes group,
		  void (*visit)(void *arg, struct bytes topic, int32_t partition, const struct record_offset *value), void *arg)
{
	uint64_t hash;
	struct offset_group *g = offsets_group(o, group, &hash);
	struct offset_topic *t;
	struct record_offset value;
	if (g == NULL)
		return;
	TAILQ_FOREACH(t, &g->topics, link) {
		for (uint32_t i = 0; i < t->len; i++) {
			if (t->list[i].metadata_len < 0)
				continue;
			offsets_fill(&t->list[i], &value);
			visit(arg, t->name, t->list[i].partition, &value);
		}
	}
}

struct offsets_walk {
	void (*visit)(void *arg, struct bytes group);
	void *arg;
};

static void offsets_visit_group(struct table_node *n, void *arg)
{
	const struct offsets_walk *walk = arg;
	walk->visit(walk->arg, CONTAINER_OF(n, struct offset_group, node)->id);
}

void offsets_each_group(struct offsets *o, void (*visit)(void *arg, struct bytes group), void *arg)
{
	struct offsets_walk walk = {visit, arg};
	table_each(&o->groups, offsets_visit_group, &walk);
}
