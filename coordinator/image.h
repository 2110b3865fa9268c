/*
 * image.h - the metadata image: the nodes, the cluster id and the topics that clients are told about.
 *
 * Immutable once built. Metadata, DescribeCluster, FindCoordinator and the checks of commits read one image, so they never disagree; a change
 * of the catalog (later: of the cluster's metadata log) builds a new image and swaps the pointer.
 */
#ifndef MUSTER_IMAGE_H
#define MUSTER_IMAGE_H

#include "coordinator/wire/types.h"

#define IMAGE_PARTITIONS_MAX 100000
#define IMAGE_LOG_TOPIC "__consumer_offsets" /* a partition for each shard */

struct image_node {
	int32_t id;
	int32_t port;
	struct bytes host;
};

struct image_topic {
	struct bytes name;
	struct uuid id; /* derived from the name, so that it is the same after every restart */
	int32_t partitions;
};

struct image; /* image.c */

/* A legal topic name: 1 to 249 of [a-zA-Z0-9._-], not "." or "..". */
bool image_topic_name_ok(struct bytes name);

/* Builder: image_new, then nodes, owners and topics in any order, then image_seal. Names are copied. */
struct image *image_new(struct bytes cluster_id);
bool image_add_node(struct image *img, int32_t id, struct bytes host, int32_t port);
/* False when the name is taken or not legal, partitions is not in 1..IMAGE_PARTITIONS_MAX, or there is no memory. */
bool image_add_topic(struct image *img, struct bytes name, int32_t partitions);
/* Which node (its place in the list) owns each of `shards` shards; without this it is shard mod nodes. False: no memory. */
bool image_set_owners(struct image *img, const uint8_t *owners, unsigned int shards);
void image_seal(struct image *img, unsigned int shards);
void image_free(struct image *img);

struct bytes image_cluster_id(const struct image *img);
int32_t image_controller_id(const struct image *img);
unsigned int image_nodes(const struct image *img, const struct image_node **out);
/* Topics sorted by name. */
unsigned int image_topics(const struct image *img, const struct image_topic **out);
/* NULL when there is none. */
const struct image_topic *image_topic(const struct image *img, struct bytes name);
const struct image_topic *image_topic_by_id(const struct image *img, const struct uuid *id);
/* The place of the node that owns a shard in the list of nodes; that node; and the shard of a group id (Kafka's rule: Java string hash of the UTF-16 form). */
unsigned int image_shard_node(const struct image *img, unsigned int shard);
const struct image_node *image_shard_owner(const struct image *img, unsigned int shard);
unsigned int image_shard_of(const struct image *img, struct bytes group_id);
unsigned int image_shards(const struct image *img);

#endif
