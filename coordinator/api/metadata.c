/*
 * metadata.c - Metadata: the nodes, and the topics that were asked for. Topics are never created here.
 *
 *   topics in the request     version 0          version 1 and later
 *   null                      -                  all
 *   empty                     all                none; the nodes are told all the same
 *   some                      these, in request order, each by name or (10+) by id
 *
 * Partition p of a topic is led by node p mod the number of nodes, at epoch 0, and has no other replica.
 */
#include "coordinator/api/api.h"

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

static bool fill_topic(const struct api_call *call, const struct image_topic *topic, struct metadata_response_topic *out)
{
	const struct image_node *nodes;
	unsigned int n = image_nodes(call->image, &nodes);
	struct metadata_response_partition *partitions =
		API_ALLOC(call, topic->partitions, struct metadata_response_partition);
	if (partitions == NULL)
		return false;
	for (int32_t p = 0; p < topic->partitions; p++) {
		const struct image_node *leader = &nodes[(unsigned int)p % n];
		metadata_response_partition_init(&partitions[p]);
		partitions[p].partition_index = p;
		partitions[p].leader_id = leader->id;
		partitions[p].leader_epoch = LEADER_EPOCH;
		partitions[p].replica_nodes = partitions[p].isr_nodes = &leader->id;
		partitions[p].replica_nodes_len = partitions[p].isr_nodes_len = 1;
	}
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
