/*
 * offsets.c - committed offsets; see offsets.h.
 *
 * Invariants:
 *  1. A topic is in its group's list and in `topics` as long as it has a partition; a group is in `groups` as long as it has a topic.
 *  2. Names and metadata are allocated with, or belong to, exactly one entry.
 */
#include <sys/queue.h>

#include "coordinator/offsets.h"

struct offset_group {
	struct table_node node;
	TAILQ_HEAD(, offset_topic) topics;
	struct bytes id; /* behind the struct */
};

struct offset_topic {
	struct table_node node;
	struct offset_group *group;
	TAILQ_ENTRY(offset_topic) link;
	TAILQ_HEAD(, offset_partition) partitions;
	struct bytes name; /* behind the struct */
};

struct offset_partition {
	struct table_node node;
	struct offset_topic *topic;
	TAILQ_ENTRY(offset_partition) link;
	int64_t offset;
	int64_t commit_ms;
	int64_t expire_ms;
	int32_t partition;
	int32_t leader_epoch;
	uint8_t *metadata; /* malloc; NULL when empty */
	int32_t metadata_len;
};

void offsets_init(struct offsets *o, const struct hash_key *key)
{
	memset(o, 0, sizeof(*o));
	o->key = *key;
}

static void offsets_free_partition(struct table_node *n, void *arg)
{
	struct offset_partition *p = CONTAINER_OF(n, struct offset_partition, node);
	free(p->metadata);
	free(p);
}

static void offsets_free_topic(struct table_node *n, void *arg)
{
	free(CONTAINER_OF(n, struct offset_topic, node));
}

static void offsets_free_group(struct table_node *n, void *arg)
{
	free(CONTAINER_OF(n, struct offset_group, node));
}

void offsets_fini(struct offsets *o)
{
	table_each(&o->partitions, offsets_free_partition, NULL);
	table_each(&o->topics, offsets_free_topic, NULL);
	table_each(&o->groups, offsets_free_group, NULL);
	table_fini(&o->partitions);
	table_fini(&o->topics);
	table_fini(&o->groups);
}

static struct offset_group *offsets_group(struct offsets *o, struct bytes id, uint64_t *hash)
{
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
	*hash = hash_bytes(&o->key, g->node.hash, name);
	for (struct table_node *n = table_chain(&o->topics, *hash); n != NULL; n = n->next) {
		struct offset_topic *t = CONTAINER_OF(n, struct offset_topic, node);
		if (n->hash == *hash && t->group == g && bytes_equal(t->name, name))
			return t;
	}
	return NULL;
}

static struct offset_partition *offsets_partition(struct offsets *o, struct offset_topic *t, int32_t partition, uint64_t *hash)
{
	*hash = hash_bytes(&o->key, t->node.hash, bytes_of(&partition, sizeof(partition)));
	for (struct table_node *n = table_chain(&o->partitions, *hash); n != NULL; n = n->next) {
		struct offset_partition *p = CONTAINER_OF(n, struct offset_partition, node);
		if (n->hash == *hash && p->topic == t && p->partition == partition)
			return p;
	}
	return NULL;
}

/* Drops a topic without partitions and a group without topics (invariant 1). */
static void offsets_trim(struct offsets *o, struct offset_group *g, struct offset_topic *t)
{
	if (t != NULL && TAILQ_EMPTY(&t->partitions)) {
		TAILQ_REMOVE(&g->topics, t, link);
		table_remove(&o->topics, &t->node);
		free(t);
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
	TAILQ_INIT(&t->partitions);
	if (!table_add(&o->topics, &t->node, hash)) {
		free(t);
		return NULL;
	}
	TAILQ_INSERT_TAIL(&g->topics, t, link);
	return t;
}

static struct offset_partition *offsets_add_partition(struct offsets *o, struct offset_topic *t, int32_t partition, uint64_t hash)
{
	struct offset_partition *p = calloc(1, sizeof(*p));
	if (p == NULL)
		return NULL;
	p->topic = t;
	p->partition = partition;
	if (!table_add(&o->partitions, &p->node, hash)) {
		free(p);
		return NULL;
	}
	TAILQ_INSERT_TAIL(&t->partitions, p, link);
	return p;
}

bool offsets_put(struct offsets *o, struct bytes group, struct bytes topic, int32_t partition, const struct record_offset *value)
{
	uint64_t hash;
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
	struct offset_partition *p = t == NULL ? NULL : offsets_partition(o, t, partition, &hash);
	if (t != NULL && p == NULL)
		p = offsets_add_partition(o, t, partition, hash);
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
	return true;
}

static struct offset_partition *offsets_find(struct offsets *o, struct bytes group, struct bytes topic, int32_t partition)
{
	uint64_t hash;
	struct offset_group *g = offsets_group(o, group, &hash);
	struct offset_topic *t = g == NULL ? NULL : offsets_topic(o, g, topic, &hash);
	return t == NULL ? NULL : offsets_partition(o, t, partition, &hash);
}

void offsets_remove(struct offsets *o, struct bytes group, struct bytes topic, int32_t partition)
{
	struct offset_partition *p = offsets_find(o, group, topic, partition);
	if (p == NULL)
		return;
	struct offset_topic *t = p->topic;
	TAILQ_REMOVE(&t->partitions, p, link);
	table_remove(&o->partitions, &p->node);
	offsets_free_partition(&p->node, NULL);
	offsets_trim(o, t->group, t);
}

static void offsets_fill(const struct offset_partition *p, struct record_offset *value)
{
	struct bytes metadata = p->metadata_len > 0 ? bytes_of(p->metadata, (size_t)p->metadata_len) : BYTES_EMPTY;
	*value = (struct record_offset){p->offset, p->leader_epoch, metadata, p->commit_ms, p->expire_ms};
}

bool offsets_get(struct offsets *o, struct bytes group, struct bytes topic, int32_t partition, struct record_offset *value)
{
	const struct offset_partition *p = offsets_find(o, group, topic, partition);
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
	struct offset_partition *p;
	struct record_offset value;
	if (g == NULL)
		return;
	TAILQ_FOREACH(t, &g->topics, link) {
		TAILQ_FOREACH(p, &t->partitions, link) {
			offsets_fill(p, &value);
			visit(arg, t->name, p->partition, &value);
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
