/*
 * calls.c - the requests of the rig and the record of their answers; see rig.h.
 */
#include <criterion/criterion.h>
#include <stdio.h>

#include "rig.h"

/* ---- answers ---- */

static void text(char *out, struct bytes b)
{
	size_t n = b.len < 0 ? 0 : (size_t)b.len;
	n = n < RIG_TEXT - 1 ? n : RIG_TEXT - 1;
	memcpy(out, b.p == NULL ? (const uint8_t *)"" : b.p, n);
	out[n] = '\0';
}

static void answer_join(struct call *c, const struct join_group_response *r)
{
	c->error = r->error_code;
	c->generation = r->generation_id;
	text(c->id, r->member_id);
	text(c->leader, r->leader);
	text(c->protocol, r->protocol_name);
	text(c->type, r->protocol_type);
	c->protocol_null = bytes_is_null(r->protocol_name);
	c->type_null = bytes_is_null(r->protocol_type);
	c->skip = r->skip_assignment;
	c->len = r->members_len;
	for (int i = 0; i < r->members_len && i < RIG_LIST; i++) {
		text(c->list[i].id, r->members[i].member_id);
		text(c->list[i].instance, r->members[i].group_instance_id);
		text(c->list[i].metadata, r->members[i].metadata);
	}
}

static void answer_leave(struct call *c, const struct leave_group_response *r)
{
	c->error = r->error_code;
	c->len = r->members_len;
	for (int i = 0; i < r->members_len && i < RIG_LIST; i++) {
		c->codes[i] = r->members[i].error_code;
		text(c->list[i].id, r->members[i].member_id);
		text(c->list[i].instance, r->members[i].group_instance_id);
	}
}

static void answer_commit(struct call *c, const struct offset_commit_response *r)
{
	for (int t = 0; t < r->topics_len; t++)
		for (int p = 0; p < r->topics[t].partitions_len && c->len < RIG_LIST; p++)
			c->codes[c->len++] = r->topics[t].partitions[p].error_code;
	c->error = c->len > 0 ? c->codes[0] : -1;
}

static void answer(struct request *rq, const void *response, struct now now)
{
	struct call *c = CONTAINER_OF(rq, struct call, rq);
	cr_assert(!c->answered, "answered twice");
	cr_assert(!c->dropped, "answered although dropped");
	c->answered = true;
	c->answered_us = now.us;
	switch (rq->api_key) {
	case 11:
		answer_join(c, response);
		break;
	case 14: {
		const struct sync_group_response *s = response;
		c->error = s->error_code;
		text(c->assignment, s->assignment);
		text(c->protocol, s->protocol_name);
		text(c->type, s->protocol_type);
		break;
	}
	case 12:
		c->error = ((const struct heartbeat_response *)response)->error_code;
		break;
	case 13:
		answer_leave(c, response);
		break;
	default:
		answer_commit(c, response);
	}
}

static void refuse(struct request *rq, struct now now)
{
	cr_assert(false, "refused");
}

static const struct request_ops call_ops = {answer, refuse};

static struct call *call_new(struct rig *r, int api_key, int version)
{
	struct call *c = calloc(1, sizeof(*c));
	c->rig = r;
	c->next = r->calls;
	r->calls = c;
	c->error = 12345;
	c->rq.ops = &call_ops;
	c->rq.memo = &c->memo;
	c->rq.client_id = bytes_str(r->client);
	c->rq.peer_addr = r->peer;
	c->rq.api_key = (int16_t)api_key;
	c->rq.version = (int16_t)version;
	c->rq.eof = r->eof;
	return c;
}

/* ---- requests ---- */

/* Cuts "a=b,c=d" in place. */
static int split(char *list, char sep, struct bytes *names, struct bytes *values, int max)
{
	int n = 0;
	for (char *save = NULL, *item = strtok_r(list, ",", &save); item != NULL && n < max; item = strtok_r(NULL, ",", &save)) {
		char *at = strchr(item, sep);
		if (at != NULL)
			*at = '\0';
		names[n] = bytes_str(item);
		values[n] = at != NULL ? bytes_str(at + 1) : BYTES_NULL;
		n++;
	}
	return n;
}

struct bytes rig_subscription(char *buf, size_t size, const char *topics)
{
	char copy[256];
	struct writer w = writer_of(buf, size);
	uint32_t n = topics[0] != '\0';
	snprintf(copy, sizeof(copy), "%s", topics);
	for (const char *p = copy; *p != '\0'; p++)
		n += *p == '+';
	writer_u16(&w, 1);
	writer_u32(&w, n);
	for (char *save = NULL, *topic = strtok_r(copy, "+", &save); topic != NULL; topic = strtok_r(NULL, "+", &save)) {
		writer_u16(&w, (uint16_t)strlen(topic));
		writer_raw(&w, topic, strlen(topic));
	}
	writer_u32(&w, UINT32_MAX);
	cr_assert_leq(w.need, size);
	return bytes_of(buf, writer_len(&w));
}

struct call *rig_join_to(struct rig *r, const char *group, int version, const char *id, const char *instance, int session_ms, int rebalance_ms,
			 const char *type, const char *protocols)
{
	struct call *c = call_new(r, 11, version);
	struct join_group_request_protocol list[RIG_LIST];
	struct bytes names[RIG_LIST], values[RIG_LIST];
	char copy[512], subscriptions[RIG_LIST][RIG_TEXT];
	struct join_group_request in;
	join_group_request_init(&in);
	snprintf(copy, sizeof(copy), "%s", protocols);
	in.group_id = bytes_str(group);
	in.session_timeout_ms = session_ms;
	in.rebalance_timeout_ms = rebalance_ms;
	in.member_id = bytes_str(id);
	in.group_instance_id = bytes_str(instance);
	in.protocol_type = bytes_str(type);
	in.protocols_len = split(copy, '=', names, values, RIG_LIST);
	for (int i = 0; i < in.protocols_len; i++) {
		struct bytes value = bytes_is_null(values[i]) ? BYTES_LITERAL("sub") : values[i];
		bool topics = value.len > 0 && value.p[0] == '@';
		list[i] = (struct join_group_request_protocol){
			names[i], topics ? rig_subscription(subscriptions[i], RIG_TEXT, (const char *)value.p + 1) : value};
	}
	in.protocols = list;
	shard_join_group(r->shard, &c->rq, &in, r->now);
	rig_check(r);
	return c;
}

struct call *rig_join(struct rig *r, int version, const char *id, const char *instance, int session_ms, int rebalance_ms, const char *protocols)
{
	return rig_join_to(r, "g", version, id, instance, session_ms, rebalance_ms, "consumer", protocols);
}

struct call *rig_sync_as(struct rig *r, const char *group, int version, const char *id, const char *instance, int generation, const char *type,
			 const char *protocol, const char *assignments)
{
	struct call *c = call_new(r, 14, version);
	struct sync_group_request_assignment list[RIG_LIST];
	struct bytes names[RIG_LIST], values[RIG_LIST];
	char copy[4096];
	struct sync_group_request in;
	sync_group_request_init(&in);
	snprintf(copy, sizeof(copy), "%s", assignments);
	in.group_id = bytes_str(group);
	in.generation_id = generation;
	in.member_id = bytes_str(id);
	in.group_instance_id = bytes_str(instance);
	in.protocol_type = bytes_str(type);
	in.protocol_name = bytes_str(protocol);
	in.assignments_len = split(copy, '=', names, values, RIG_LIST);
	for (int i = 0; i < in.assignments_len; i++)
		list[i] = (struct sync_group_request_assignment){names[i], values[i]};
	in.assignments = list;
	shard_sync_group(r->shard, &c->rq, &in, r->now);
	rig_check(r);
	return c;
}

struct call *rig_sync(struct rig *r, int version, const char *id, const char *instance, int generation, const char *assignments)
{
	return rig_sync_as(r, "g", version, id, instance, generation, version >= 5 ? "consumer" : NULL, version >= 5 ? "range" : NULL, assignments);
}

struct call *rig_heartbeat_to(struct rig *r, const char *group, const char *id, const char *instance, int generation)
{
	struct call *c = call_new(r, 12, 4);
	struct heartbeat_request in = {bytes_str(group), generation, bytes_str(id), bytes_str(instance)};
	shard_heartbeat(r->shard, &c->rq, &in, r->now);
	rig_check(r);
	return c;
}

struct call *rig_heartbeat(struct rig *r, const char *id, const char *instance, int generation)
{
	return rig_heartbeat_to(r, "g", id, instance, generation);
}

struct call *rig_leave(struct rig *r, int version, const char *id)
{
	struct call *c = call_new(r, 13, version);
	struct leave_group_request in;
	leave_group_request_init(&in);
	in.group_id = bytes_str("g");
	in.member_id = bytes_str(id);
	shard_leave_group(r->shard, &c->rq, &in, r->now);
	rig_check(r);
	return c;
}

struct call *rig_leave_many(struct rig *r, const char *group, const char *members)
{
	struct call *c = call_new(r, 13, 5);
	struct leave_group_request_member list[RIG_LIST];
	struct bytes names[RIG_LIST], values[RIG_LIST];
	char copy[2048];
	struct leave_group_request in;
	leave_group_request_init(&in);
	snprintf(copy, sizeof(copy), "%s", members);
	in.group_id = bytes_str(group);
	in.members_len = split(copy, '|', names, values, RIG_LIST);
	for (int i = 0; i < in.members_len; i++)
		list[i] = (struct leave_group_request_member){names[i], values[i], BYTES_NULL};
	in.members = list;
	shard_leave_group(r->shard, &c->rq, &in, r->now);
	rig_check(r);
	return c;
}

struct call *rig_commit_full(struct rig *r, const char *group, int version, const char *id, const char *instance, int generation,
			     const char *list, int64_t timestamp, int64_t retention)
{
	struct call *c = call_new(r, 8, version);
	struct offset_commit_request_topic topics[RIG_LIST];
	struct offset_commit_request_partition parts[RIG_LIST];
	struct offset_commit_response_topic out_topics[RIG_LIST];
	struct offset_commit_response_partition out_parts[RIG_LIST];
	struct bytes names[RIG_LIST], values[RIG_LIST];
	static char copy[20000];
	struct offset_commit_request in;
	struct offset_commit_response out;
	offset_commit_request_init(&in);
	offset_commit_response_init(&out);
	snprintf(copy, sizeof(copy), "%s", list);
	int n = split(copy, '=', names, values, RIG_LIST);
	for (int i = 0; i < n; i++) {
		const char *name = (const char *)names[i].p, *value = (const char *)values[i].p;
		bool refused = name[0] == '!';
		const char *colon = strchr(name, ':'), *slash = strchr(value, '/');
		struct bytes topic = bytes_of(name + refused, (size_t)(colon - name) - refused);
		parts[i] = (struct offset_commit_request_partition){.partition_index = atoi(colon + 1), .committed_offset = atoll(value),
			.committed_leader_epoch = 3, .commit_timestamp = timestamp, .committed_metadata = slash ? bytes_str(slash + 1) : BYTES_NULL};
		out_parts[i] = (struct offset_commit_response_partition){parts[i].partition_index, refused ? 3 : 0};
		topics[i] = (struct offset_commit_request_topic){topic, UUID_ZERO, &parts[i], 1};
		out_topics[i] = (struct offset_commit_response_topic){topic, UUID_ZERO, &out_parts[i], 1};
	}
	in.group_id = bytes_str(group);
	in.generation_id_or_member_epoch = generation;
	in.member_id = bytes_str(id);
	in.group_instance_id = bytes_str(instance);
	in.retention_time_ms = retention;
	in.topics = topics;
	out.topics = out_topics;
	in.topics_len = out.topics_len = n;
	shard_offset_commit(r->shard, &c->rq, &in, &out, r->now);
	rig_check(r);
	return c;
}

struct call *rig_commit(struct rig *r, int version, const char *id, const char *instance, int generation, const char *list)
{
	return rig_commit_full(r, "g", version, id, instance, generation, list, -1, -1);
}
