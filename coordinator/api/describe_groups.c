/*
 * describe_groups.c - DescribeGroups: state, protocol and members of each group that is named, in request order.
 *
 * A group that does not exist is Dead and no error up to version 5; from version 6 on it is error 69 (KIP-1043).
 * Nobody is refused anything yet: who asks for the authorized operations is told all that Kafka has for groups.
 */
#include "coordinator/api/api.h"

#define NOT_FOUND_FROM 6
/* One bit for each of Kafka's operation numbers READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS. */
#define GROUP_OPERATIONS (1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11)

struct members {
	struct describe_groups_response_member *list;
	int32_t len;
};

static void visit(void *arg, const struct shard_member *m)
{
	struct members *members = arg;
	members->list[members->len++] = (struct describe_groups_response_member){m->id, m->instance_id, m->client_id, m->host, m->metadata,
										   m->assignment};
}

static bool fill(const struct api_call *call, struct bytes id, struct describe_groups_response_group *out)
{
	const struct describe_groups_request *in = call->in;
	struct shard *shard = node_shard_quiet(call->node, id);
	struct shard_group group;
	describe_groups_response_group_init(out);
	out->group_id = id;
	out->error_code = shard_group_get(shard, id, &group);
	if (out->error_code == ERROR_NONE) {
		struct members members = {API_ALLOC(call, group.members, struct describe_groups_response_member), 0};
		if (members.list == NULL)
			return false;
		shard_member_each(shard, id, visit, &members);
		out->group_state = bytes_str(group.state);
		out->protocol_type = bytes_is_null(group.protocol_type) ? BYTES_EMPTY : group.protocol_type;
		out->protocol_data = group.stable && !bytes_is_null(group.protocol) ? group.protocol : BYTES_EMPTY;
		out->members = members.list;
		out->members_len = members.len;
	} else if (out->error_code == ERROR_GROUP_ID_NOT_FOUND) {
		out->group_state = BYTES_LITERAL("Dead");
		if (call->rq->version < NOT_FOUND_FROM)
			out->error_code = ERROR_NONE;
	}
	if (out->error_code != ERROR_NONE)
		out->error_message = bytes_str(error_text(out->error_code));
	else if (in->include_authorized_operations)
		out->authorized_operations = GROUP_OPERATIONS;
	return true;
}

static struct bytes split_group(const struct api_split *split, int32_t i)
{
	return ((const struct bytes *)split->of)[i];
}

static const void *split_part(const struct api_call *call, const struct api_split *split, const int32_t *picked, int32_t n)
{
	const struct bytes *in = split->of;
	struct describe_groups_request *out = API_ALLOC(call, 1, struct describe_groups_request);
	struct bytes *groups = API_ALLOC(call, n, struct bytes);
	if (out == NULL || groups == NULL)
		return NULL;
	for (int32_t i = 0; i < n; i++)
		groups[i] = in[picked[i]];
	*out = *(const struct describe_groups_request *)call->in;
	out->groups = groups;
	out->groups_len = n;
	return out;
}

bool api_describe_groups(const struct api_call *call)
{
	const struct describe_groups_request *in = call->in;
	struct api_split split = {in->groups, in->groups_len, split_group, split_part};
	enum api_gathered gathered = api_gather(call, &split);
	if (gathered != API_GATHERED)
		return gathered == API_GATHER_LATER;
	struct describe_groups_response out;
	describe_groups_response_init(&out);
	struct describe_groups_response_group *groups = API_ALLOC(call, in->groups_len, struct describe_groups_response_group);
	int32_t *cursors = api_cursors(call), place;
	if (groups == NULL || cursors == NULL)
		return false;
	for (int32_t i = 0; i < in->groups_len; i++) {
		const struct describe_groups_response *told = api_told(call, cursors, in->groups[i], &place);
		CHECK(told == NULL || place < told->groups_len);
		if (told != NULL)
			groups[i] = told->groups[place];
		else if (!fill(call, in->groups[i], &groups[i]))
			return false;
	}
	out.groups = groups;
	out.groups_len = in->groups_len;
	request_answer(call->rq, &out, call->now);
	return true;
}
