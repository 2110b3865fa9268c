/*
 * metadata.c - Metadata: the nodes, and the topics that were asked for. Topics are never created here.
 *
 *   topics in the request     version 0          version 1 and later
 *   null                      -                  all
 *   empty                     all                none; the nodes are told all the same
 *   some                      these, in request order, each by name or (10+) by id
 *
 * Partition p of a topic is led by node p mod the number of nodes, at epoch 0, and has no other replica. Partitions of __consumer_offsets are led by
 * the node that owns the shard, at the epoch of its log; of another node's shard the epoch is not known (-1).
 */
#include "coordinator/api/log_topic.h"

#define LEADER_EPOCH 0

static bool fill_brokers(const struct api_call *call, struct metadata_response *out)
{
	const struct image_node *nodes;
	unsigned int n = image_nodes(call->image, &nodes);
	struct metadata_response_broker *brokers = API_ALLOC(call, n, struct metadata_response_broker);
	if (brokers == NULL)
		return false;
	for (unsigned int i = 0; i < n; i++) {
		metadata_response_broker_init(&brokers[i]);
		brokers[i].node_id = nodes[i].id;
		brokers[i].host = nodes[i].host;
		brokers[i].port = nodes[i].port;
	}
	out->brokers = brokers;
	out->brokers_len = (int32_t)n;
	return true;
}

static void fill_leader(const struct api_call *call, const struct image_topic *topic, int32_t p, const struct image_node *leader,
			struct metadata_response_partition *out)
{
	struct log_span span;
	metadata_response_partition_init(out);
	out->partition_index = p;
	out->leader_id = leader->id;
	out->leader_epoch = LEADER_EPOCH;
	if (log_topic_is(topic))
		out->leader_epoch = log_topic_span(call, p, -1, &span) == ERROR_NONE ? span.epoch : -1;
	out->replica_nodes = out->isr_nodes = &leader->id;
	out->replica_nodes_len = out->isr_nodes_len = 1;
}

static bool fill_topic(const struct api_call *call, const struct image_topic *topic, struct metadata_response_topic *out)
{
	const struct image_node *nodes;
	unsigned int n = image_nodes(call->image, &nodes);
	struct metadata_response_partition *partitions =
		API_ALLOC(call, topic->partitions, struct metadata_response_partition);
	if (partitions == NULL)
		return false;
	for (int32_t p = 0; p < topic->partitions; p++) {
		const struct image_node *leader = log_topic_is(topic) ? image_shard_owner(call->image, (unsigned int)p) : &nodes[(unsigned int)p % n];
		fill_leader(call, topic, p, leader, &partitions[p]);
	}
	out->is_internal = log_topic_is(topic);
	out->name = topic->name;
	out->topic_id = topic->id;
	out->partitions = partitions;
	out->partitions_len = topic->partitions;
	return true;
}

static bool fill_asked(const struct api_call *call, const struct metadata_request_topic *asked, struct metadata_response_topic *out)
{
	bool by_id = !uuid_is_zero(&asked->topic_id) || bytes_is_null(asked->name);
	const struct image_topic *topic = api_topic(call, asked->name, &asked->topic_id, by_id);
	if (topic != NULL)
		return fill_topic(call, topic, out);
	out->topic_id = asked->topic_id;
	if (by_id) {
		out->error_code = ERROR_UNKNOWN_TOPIC_ID;
		out->name = call->rq->version >= 12 ? BYTES_NULL : BYTES_EMPTY;
	} else {
		out->error_code = image_topic_name_ok(asked->name) ? ERROR_UNKNOWN_TOPIC_OR_PARTITION : ERROR_INVALID_TOPIC_EXCEPTION;
		out->name = asked->name;
	}
	return true;
}

static bool fill_topics(const struct api_call *call, const struct metadata_request *in, struct metadata_response *out)
{
	const struct image_topic *topics = NULL;
	bool all = in->topics_len < 0 || (call->rq->version == 0 && in->topics_len == 0);
	unsigned int n = all ? image_topics(call->image, &topics) : (unsigned int)in->topics_len;
	struct metadata_response_topic *list = API_ALLOC(call, n, struct metadata_response_topic);
	if (list == NULL)
		return false;
	for (unsigned int i = 0; i < n; i++) {
		metadata_response_topic_init(&list[i]);
		if (!(all ? fill_topic(call, &topics[i], &list[i]) : fill_asked(call, &in->topics[i], &list[i])))
			return false;
	}
	out->topics = list;
	out->topics_len = (int32_t)n;
	return true;
}

bool api_metadata(const struct api_call *call)
{
	struct metadata_response out;
	metadata_response_init(&out);
	if (!fill_brokers(call, &out) || !fill_topics(call, call->in, &out))
		return false;
	out.cluster_id = image_cluster_id(call->image);
	out.controller_id = image_controller_id(call->image);
	request_answer(call->rq, &out, call->now);
	return true;
}
