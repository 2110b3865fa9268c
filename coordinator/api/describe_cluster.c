/*
 * describe_cluster.c - DescribeCluster: the nodes. KIP-700; endpoint types KIP-919.
 */
#include "coordinator/api/api.h"

#define ENDPOINT_BROKERS 1
#define ENDPOINT_CONTROLLERS 2

bool api_describe_cluster(const struct api_call *call)
{
	const struct describe_cluster_request *in = call->in;
	struct describe_cluster_response out;
	describe_cluster_response_init(&out);
	out.endpoint_type = in->endpoint_type;
	if (in->endpoint_type != ENDPOINT_BROKERS) {
		out.error_code = in->endpoint_type == ENDPOINT_CONTROLLERS ? ERROR_MISMATCHED_ENDPOINT_TYPE : ERROR_UNSUPPORTED_ENDPOINT_TYPE;
		out.error_message = bytes_str(error_text(out.error_code));
		request_answer(call->rq, &out, call->now);
		return true;
	}
	const struct image_node *nodes;
	unsigned int n = image_nodes(call->image, &nodes);
	struct describe_cluster_response_broker *brokers = API_ALLOC(call, n, struct describe_cluster_response_broker);
	if (brokers == NULL)
		return false;
	for (unsigned int i = 0; i < n; i++) {
		describe_cluster_response_broker_init(&brokers[i]);
		brokers[i].broker_id = nodes[i].id;
		brokers[i].host = nodes[i].host;
		brokers[i].port = nodes[i].port;
	}
	out.cluster_id = image_cluster_id(call->image);
	out.controller_id = image_controller_id(call->image);
	out.brokers = brokers;
	out.brokers_len = (int32_t)n;
	request_answer(call->rq, &out, call->now);
	return true;
}
