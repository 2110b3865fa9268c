/*
 * find_coordinator.c - FindCoordinator: the node that owns a group. Versions 4 and later ask for many keys at once (KIP-699).
 *
 * A transactional id is answered with 15, for we coordinate no transactions; any other kind of key with 42.
 */
#include "coordinator/api/api.h"

#define KEY_GROUP 0
#define KEY_TRANSACTION 1

static struct find_coordinator_response_coordinator find(const struct api_call *call, struct bytes key)
{
	const struct find_coordinator_request *in = call->in;
	struct find_coordinator_response_coordinator c;
	find_coordinator_response_coordinator_init(&c);
	c.key = key;
	if (in->key_type != KEY_GROUP) {
		c.error_code = in->key_type == KEY_TRANSACTION ? ERROR_COORDINATOR_NOT_AVAILABLE : ERROR_INVALID_REQUEST;
		c.error_message = bytes_str(error_text(c.error_code));
		c.node_id = -1;
		c.port = -1;
		return c;
	}
	const struct image_node *owner = image_shard_owner(call->image, image_shard_of(call->image, key));
	c.node_id = owner->id;
	c.host = owner->host;
	c.port = owner->port;
	return c;
}

bool api_find_coordinator(const struct api_call *call)
{
	const struct find_coordinator_request *in = call->in;
	struct find_coordinator_response out;
	find_coordinator_response_init(&out);
	if (call->rq->version <= 3) {
		struct find_coordinator_response_coordinator c = find(call, in->key);
		out.error_code = c.error_code;
		out.error_message = c.error_code == ERROR_NONE ? BYTES_LITERAL("NONE") : c.error_message;
		out.node_id = c.node_id;
		out.host = c.host;
		out.port = c.port;
	} else {
		struct find_coordinator_response_coordinator *list =
			API_ALLOC(call, in->coordinator_keys_len, struct find_coordinator_response_coordinator);
		if (list == NULL)
			return false;
		for (int32_t i = 0; i < in->coordinator_keys_len; i++)
			list[i] = find(call, in->coordinator_keys[i]);
		out.coordinators = list;
		out.coordinators_len = in->coordinator_keys_len;
	}
	request_answer(call->rq, &out, call->now);
	return true;
}
