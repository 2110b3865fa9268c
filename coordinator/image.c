/*
 * image.c - the metadata image: arrays of nodes and topics, and two hash tables over the topics, by name and by id.
 *
 * The tables hold places in the array of topics (place + 1; 0 is empty), are probed linearly and kept at most half full. While the image is built,
 * topics stand in the order of their arrival; sealing sorts them by name and builds the tables anew.
 */
#include <stdlib.h>

#include "muster/check.h"

#include "coordinator/image.h"
#include "coordinator/java_hash.h"
#include "coordinator/topic_id.h"

#define TOPIC_NAME_MAX 249
#define TABLE_MIN 64

struct image {
	struct bytes cluster_id;
	struct image_node *nodes;
	unsigned int nodes_len;
	struct image_topic *topics;
	unsigned int topics_len, topics_cap;
	uint32_t *by_name, *by_id;
	uint32_t table_len; /* of each, a power of two */
	unsigned int shards; /* 0: not sealed */
	uint8_t *owners;     /* by shard; NULL: shard mod nodes */
	unsigned int owners_len;
};

/* ---- the tables ---- */

/* FNV-1a; the names in the table are the operator's own. */
static uint32_t name_hash(struct bytes name)
{
	uint32_t h = 2166136261u;
	for (int32_t i = 0; i < name.len; i++)
		h = (h ^ name.p[i]) * 16777619u;
	return h;
}

static uint32_t id_hash(const struct uuid *id)
{
	uint32_t h;
	memcpy(&h, id->b, sizeof(h));
	return h;
}

static void table_put(uint32_t *table, uint32_t len, uint32_t hash, uint32_t place)
{
	uint32_t i = hash & (len - 1);
	while (table[i] != 0)
		i = (i + 1) & (len - 1);
	table[i] = place + 1;
}

static void tables_fill(const struct image *img, uint32_t *by_name, uint32_t *by_id, uint32_t len)
{
	for (uint32_t i = 0; i < img->topics_len; i++) {
		table_put(by_name, len, name_hash(img->topics[i].name), i);
		table_put(by_id, len, id_hash(&img->topics[i].id), i);
	}
}

/* Larger tables, at most half full with one topic more. */
static bool tables_build(struct image *img)
{
	uint32_t len = TABLE_MIN;
	while (len < 2 * (img->topics_len + 1))
		len *= 2;
	uint32_t *by_name = calloc(len, sizeof(uint32_t)), *by_id = calloc(len, sizeof(uint32_t));
	if (by_name == NULL || by_id == NULL) {
		free(by_name);
		free(by_id);
		return false;
	}
	tables_fill(img, by_name, by_id, len);
	free(img->by_name);
	free(img->by_id);
	img->by_name = by_name;
	img->by_id = by_id;
	img->table_len = len;
	return true;
}

const struct image_topic *image_topic(const struct image *img, struct bytes name)
{
	uint32_t mask = img->table_len - 1;
	for (uint32_t i = name_hash(name) & mask; img->by_name[i] != 0; i = (i + 1) & mask) {
		const struct image_topic *t = &img->topics[img->by_name[i] - 1];
		if (bytes_equal(t->name, name))
			return t;
	}
	return NULL;
}

const struct image_topic *image_topic_by_id(const struct image *img, const struct uuid *id)
{
	uint32_t mask = img->table_len - 1;
	for (uint32_t i = id_hash(id) & mask; img->by_id[i] != 0; i = (i + 1) & mask) {
		const struct image_topic *t = &img->topics[img->by_id[i] - 1];
		if (uuid_equal(&t->id, id))
			return t;
	}
	return NULL;
}

/* ---- building ---- */

static bool copy(struct bytes from, struct bytes *to)
{
	uint8_t *p = malloc((size_t)from.len + 1);
	if (p == NULL)
		return false;
	memcpy(p, from.p, (size_t)from.len);
	*to = (struct bytes){p, from.len};
	return true;
}

static void copy_free(struct bytes b)
{
	free((void *)(uintptr_t)b.p);
}

struct image *image_new(struct bytes cluster_id)
{
	struct image *img = calloc(1, sizeof(*img));
	if (img == NULL)
		return NULL;
	if (!copy(cluster_id, &img->cluster_id) || !tables_build(img)) {
		image_free(img);
		return NULL;
	}
	return img;
}

void image_free(struct image *img)
{
	if (img == NULL)
		return;
	for (unsigned int i = 0; i < img->nodes_len; i++)
		copy_free(img->nodes[i].host);
	for (unsigned int i = 0; i < img->topics_len; i++)
		copy_free(img->topics[i].name);
	copy_free(img->cluster_id);
	free(img->nodes);
	free(img->topics);
	free(img->by_name);
	free(img->by_id);
	free(img->owners);
	free(img);
}

bool image_add_node(struct image *img, int32_t id, struct bytes host, int32_t port)
{
	CHECK(img->shards == 0);
	struct image_node *nodes = realloc(img->nodes, (img->nodes_len + 1) * sizeof(*nodes));
	if (nodes == NULL)
		return false;
	img->nodes = nodes;
	struct image_node *node = &nodes[img->nodes_len];
	*node = (struct image_node){id, port, BYTES_NULL};
	if (!copy(host, &node->host))
		return false;
	img->nodes_len++;
	return true;
}

bool image_set_owners(struct image *img, const uint8_t *owners, unsigned int shards)
{
	CHECK(img->shards == 0 && shards > 0);
	uint8_t *copied = malloc(shards);
	if (copied == NULL)
		return false;
	memcpy(copied, owners, shards);
	free(img->owners);
	img->owners = copied;
	img->owners_len = shards;
	return true;
}

bool image_topic_name_ok(struct bytes name)
{
	if (name.len < 1 || name.len > TOPIC_NAME_MAX || bytes_equal(name, BYTES_LITERAL(".")) || bytes_equal(name, BYTES_LITERAL("..")))
		return false;
	for (int32_t i = 0; i < name.len; i++) {
		uint8_t c = name.p[i];
		bool ok = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
		if (!ok)
			return false;
	}
	return true;
}

bool image_add_topic(struct image *img, struct bytes name, int32_t partitions)
{
	CHECK(img->shards == 0);
	if (!image_topic_name_ok(name) || partitions < 1 || partitions > IMAGE_PARTITIONS_MAX || image_topic(img, name) != NULL)
		return false;
	if (img->topics_len == img->topics_cap) {
		unsigned int cap = img->topics_cap == 0 ? 16 : img->topics_cap * 2;
		struct image_topic *topics = realloc(img->topics, cap * sizeof(*topics));
		if (topics == NULL)
			return false;
		img->topics = topics;
		img->topics_cap = cap;
	}
	struct image_topic *topic = &img->topics[img->topics_len];
	*topic = (struct image_topic){BYTES_NULL, topic_id_of(name), partitions};
	if (2 * (img->topics_len + 1) > img->table_len && !tables_build(img))
		return false;
	if (!copy(name, &topic->name))
		return false;
	table_put(img->by_name, img->table_len, name_hash(name), img->topics_len);
	table_put(img->by_id, img->table_len, id_hash(&topic->id), img->topics_len);
	img->topics_len++;
	return true;
}

static int compare_names(const void *a, const void *b)
{
	const struct image_topic *x = a, *y = b;
	int32_t len = x->name.len < y->name.len ? x->name.len : y->name.len;
	int order = memcmp(x->name.p, y->name.p, (size_t)len);
	return order != 0 ? order : x->name.len - y->name.len;
}

void image_seal(struct image *img, unsigned int shards)
{
	CHECK(img->shards == 0 && shards > 0 && img->nodes_len > 0);
	CHECK(img->owners == NULL || img->owners_len == shards);
	for (unsigned int i = 0; i < img->owners_len; i++)
		CHECK(img->owners[i] < img->nodes_len);
	if (img->topics_len > 0)
		qsort(img->topics, img->topics_len, sizeof(*img->topics), compare_names);
	memset(img->by_name, 0, img->table_len * sizeof(uint32_t));
	memset(img->by_id, 0, img->table_len * sizeof(uint32_t));
	tables_fill(img, img->by_name, img->by_id, img->table_len);
	img->shards = shards;
}

/* ---- reading ---- */

struct bytes image_cluster_id(const struct image *img)
{
	return img->cluster_id;
}

int32_t image_controller_id(const struct image *img)
{
	return img->nodes[0].id;
}

unsigned int image_nodes(const struct image *img, const struct image_node **out)
{
	*out = img->nodes;
	return img->nodes_len;
}

unsigned int image_topics(const struct image *img, const struct image_topic **out)
{
	*out = img->topics;
	return img->topics_len;
}

unsigned int image_shard_node(const struct image *img, unsigned int shard)
{
	return img->owners != NULL ? img->owners[shard] : shard % img->nodes_len;
}

const struct image_node *image_shard_owner(const struct image *img, unsigned int shard)
{
	return &img->nodes[image_shard_node(img, shard)];
}

unsigned int image_shard_of(const struct image *img, struct bytes group_id)
{
	return java_hash_abs(group_id) % img->shards;
}

unsigned int image_shards(const struct image *img)
{
	return img->shards;
}
