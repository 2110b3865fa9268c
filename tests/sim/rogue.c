/*
 * rogue.c - clients that misbehave: requests made of what others own, or owned once, on connections of their own; and bytes that are no requests.
 *
 * Rogues name the same groups as the consumers. Bytes with damage name groups of their own, because one flipped bit in a timeout would keep a
 * group waiting for weeks, here as in Kafka.
 */
#include "sim.h"

static struct bytes rogue_client = {(const uint8_t *)"rogue", 5};

static struct conn *rogue_conn(struct world *w, struct rng *r)
{
	unsigned int i = rng_below(r, ARRAY_LEN(w->rogues));
	if (w->rogues[i] == NULL || !w->rogues[i]->client_open)
		w->rogues[i] = conn_open(w, -1, rng_next(r));
	return w->rogues[i];
}

/* An id to abuse: of a member, of a former one, handed out, made up, or none. */
static void victim(struct world *w, struct rng *r, int group, char id[TEXT], char instance[TEXT], int32_t *generation)
{
	const struct group *g = group_find(world_shard(w, group), w->group_id[group]);
	id[0] = instance[0] = '\0';
	*generation = g == NULL ? 0 : g->generation;
	uint32_t what = rng_below(r, 10);
	if (what < 6 && g != NULL && g->members_len > 0) {
		const struct member *m = g->members[rng_below(r, g->members_len)];
		text_of(id, m->id);
		text_of(instance, m->instance_id);
	} else if (what == 6 && g != NULL && !LIST_EMPTY(&g->pending)) {
		text_of(id, LIST_FIRST(&g->pending)->id);
	} else if (what < 8) {
		memcpy(id, w->stale[rng_below(r, ARRAY_LEN(w->stale))], TEXT);
	} else if (what == 8) {
		snprintf(id, TEXT, "nobody-%u", rng_below(r, 5));
	}
	if (rng_one_in(r, 6))
		snprintf(instance, TEXT, "inst-%u", rng_below(r, CONSUMERS + 2));
	else if (rng_one_in(r, 4))
		instance[0] = '\0';
	if (rng_one_in(r, 4))
		*generation += (int32_t)rng_below(r, 5) - 2;
}

static void rogue_join(struct world *w, struct rng *r, int group)
{
	static const char *const names[] = {"range", "roundrobin", "sticky", "cooperative-sticky", "alien"};
	struct join_group_request in;
	struct join_group_request_protocol list[5];
	char id[TEXT], instance[TEXT];
	int32_t generation;
	struct conn *c = rogue_conn(w, r);
	if (c == NULL)
		return;
	victim(w, r, group, id, instance, &generation);
	join_group_request_init(&in);
	in.group_id = w->group_id[group];
	in.session_timeout_ms = rng_one_in(r, 12) ? (int32_t)rng_below(r, 5000) : (int32_t)rng_between(r, 6000, 20000);
	in.rebalance_timeout_ms = rng_one_in(r, 12) ? (int32_t)rng_below(r, 3) - 1 : (int32_t)rng_between(r, 1000, 40000);
	in.member_id = bytes_str(rng_one_in(r, 3) ? "" : id);
	in.group_instance_id = instance[0] != '\0' ? bytes_str(instance) : BYTES_NULL;
	in.protocol_type = rng_one_in(r, 15) ? BYTES_LITERAL("connect") : rng_one_in(r, 20) ? BYTES_EMPTY : BYTES_LITERAL("consumer");
	bool alien = rng_one_in(r, 12);
	bool single = !alien && rng_one_in(r, 4);
	unsigned int n = alien ? rng_below(r, 2) : single ? 1 : 4, only = rng_below(r, 4);
	for (unsigned int i = 0; i < n; i++)
		list[i] = (struct join_group_request_protocol){bytes_str(names[alien ? 4 : single ? only : i]), bytes_of(&in.session_timeout_ms, rng_below(r, 5))};
	in.protocols = list;
	in.protocols_len = (int32_t)n;
	conn_request(c, api_key_join_group, (int16_t)rng_below(r, 10), rogue_client, &in);
}

static void rogue_sync(struct world *w, struct rng *r, int group)
{
	struct sync_group_request in;
	struct sync_group_request_assignment list[8];
	char id[TEXT], instance[TEXT];
	struct conn *c = rogue_conn(w, r);
	const struct group *g = group_find(world_shard(w, group), w->group_id[group]);
	if (c == NULL)
		return;
	sync_group_request_init(&in);
	victim(w, r, group, id, instance, &in.generation_id);
	in.group_id = w->group_id[group];
	in.member_id = bytes_str(id);
	in.group_instance_id = instance[0] != '\0' ? bytes_str(instance) : BYTES_NULL;
	in.protocol_type = BYTES_LITERAL("consumer");
	in.protocol_name = g != NULL && !rng_one_in(r, 8) ? g->protocol : rng_one_in(r, 2) ? BYTES_NULL : BYTES_LITERAL("alien");
	for (uint32_t i = 0; g != NULL && i < g->members_len && i < ARRAY_LEN(list); i++)
		list[in.assignments_len++] = (struct sync_group_request_assignment){rng_one_in(r, 5) ? BYTES_LITERAL("nobody") : g->members[i]->id,
										     bytes_of(&in.generation_id, rng_below(r, 5))};
	in.assignments = list;
	conn_request(c, api_key_sync_group, (int16_t)rng_below(r, 6), rogue_client, &in);
}

static void rogue_heartbeat(struct world *w, struct rng *r, int group)
{
	struct heartbeat_request in;
	char id[TEXT], instance[TEXT];
	struct conn *c = rogue_conn(w, r);
	if (c == NULL)
		return;
	heartbeat_request_init(&in);
	victim(w, r, group, id, instance, &in.generation_id);
	in.group_id = w->group_id[group];
	in.member_id = bytes_str(id);
	in.group_instance_id = instance[0] != '\0' ? bytes_str(instance) : BYTES_NULL;
	for (uint32_t i = rng_one_in(r, 10) ? 90 : 1; i > 0; i--) /* sometimes a pipeline */
		conn_request(c, api_key_heartbeat, (int16_t)rng_below(r, 5), rogue_client, &in);
}

static void rogue_leave(struct world *w, struct rng *r, int group)
{
	struct leave_group_request in;
	struct leave_group_request_member list[3];
	char id[3][TEXT], instance[3][TEXT];
	int32_t generation;
	struct conn *c = rogue_conn(w, r);
	if (c == NULL)
		return;
	leave_group_request_init(&in);
	in.group_id = w->group_id[group];
	in.members_len = (int32_t)rng_below(r, 4);
	for (int32_t i = 0; i < in.members_len; i++) {
		victim(w, r, group, id[i], instance[i], &generation);
		bool by_instance = instance[i][0] != '\0' && rng_one_in(r, 2);
		list[i] = (struct leave_group_request_member){by_instance ? BYTES_EMPTY : bytes_str(id[i]),
							      instance[i][0] != '\0' ? bytes_str(instance[i]) : BYTES_NULL, BYTES_NULL};
	}
	int16_t version = (int16_t)rng_below(r, 6);
	if (version <= 2) {
		const struct group *g = group_find(world_shard(w, group), w->group_id[group]);
		victim(w, r, group, id[0], instance[0], &generation);
		if (g != NULL && !LIST_EMPTY(&g->pending)) /* an id that was handed out is given back */
			text_of(id[0], LIST_FIRST(&g->pending)->id);
		in.member_id = bytes_str(id[0]);
	}
	in.members = list;
	conn_request(c, api_key_leave_group, version, rogue_client, &in);
}

static void rogue_commit(struct world *w, struct rng *r, int group)
{
	static char long_text[5000];
	struct offset_commit_request in;
	struct offset_commit_request_partition parts[2];
	char id[TEXT], instance[TEXT];
	struct conn *c = rogue_conn(w, r);
	unsigned int t = rng_below(r, TOPICS);
	const struct image_topic *known = image_topic(w->all_topics, bytes_str(topic_names[t]));
	struct offset_commit_request_topic topic = {rng_one_in(r, 10) ? BYTES_LITERAL("nothing") : known->name, known->id, parts, 2};
	if (c == NULL || (uint64_t)w->next_offset + 2 >= w->offset_cap)
		return;
	memset(long_text, 'x', sizeof(long_text));
	offset_commit_request_init(&in);
	victim(w, r, group, id, instance, &in.generation_id_or_member_epoch);
	if (rng_one_in(r, 4)) { /* an admin tool */
		in.generation_id_or_member_epoch = -1;
		id[0] = '\0';
	}
	in.group_id = w->group_id[group];
	in.member_id = bytes_str(id);
	in.group_instance_id = instance[0] != '\0' ? bytes_str(instance) : BYTES_NULL;
	in.retention_time_ms = rng_one_in(r, 3) ? 100000 : -1;
	int16_t version = (int16_t)rng_below(r, 11);
	for (unsigned int i = 0; i < 2; i++) {
		offset_commit_request_partition_init(&parts[i]);
		parts[i].partition_index = (int32_t)rng_below(r, 2) + (int32_t)i * (topic_sizes[t] - 2 + (int32_t)rng_below(r, 2));
		parts[i].committed_offset = w->next_offset++;
		parts[i].committed_leader_epoch = commit_epoch(w, parts[i].committed_offset, version);
		parts[i].committed_metadata = rng_one_in(r, 6) ? bytes_of(long_text, sizeof(long_text)) : commit_metadata(parts[i].committed_offset);
	}
	if (parts[0].partition_index == parts[1].partition_index)
		topic.partitions_len = 1;
	in.topics = &topic;
	in.topics_len = 1;
	conn_request(c, api_key_offset_commit, version, rogue_client, &in);
}

static void rogue_fetch(struct world *w, struct rng *r, int group)
{
	static const int32_t indexes[] = {0, 1, 2};
	struct offset_fetch_request in;
	struct offset_fetch_request_group one;
	struct conn *c = rogue_conn(w, r);
	const struct image_topic *known = image_topic(w->all_topics, bytes_str(topic_names[rng_below(r, TOPICS)]));
	struct offset_fetch_request_topic old = {known->name, indexes, 3};
	struct offset_fetch_request_topics topic = {known->name, known->id, indexes, 3};
	int16_t version = (int16_t)rng_below(r, 11);
	if (c == NULL)
		return;
	offset_fetch_request_init(&in);
	offset_fetch_request_group_init(&one);
	in.group_id = one.group_id = w->group_id[group];
	in.topics = &old;
	one.topics = &topic;
	in.topics_len = one.topics_len = version >= 2 && rng_one_in(r, 3) ? -1 : 1;
	in.groups = &one;
	in.groups_len = 1;
	in.require_stable = rng_one_in(r, 2);
	conn_request(c, api_key_offset_fetch, version, rogue_client, &in);
}

static void rogue_other(struct world *w, struct rng *r)
{
	static union {
		uint8_t bytes[512];
		uint64_t align;
	} in;
	const struct api_range *api = &api_ranges[rng_below(r, API_COUNT)];
	const struct message_type *type = message_request(api->key);
	struct conn *c = rogue_conn(w, r);
	if (c == NULL || type->size > sizeof(in.bytes) || (api->key >= 8 && api->key <= 14) || api->key == api_key_delete_groups ||
	    api->key == api_key_offset_delete)
		return;
	type->init(in.bytes);
	if (api->key == api_key_fetch)
		((struct fetch_request *)(void *)in.bytes)->max_wait_ms = (int32_t)rng_below(r, 4000);
	conn_request(c, api->key, (int16_t)(api->lowest + (int16_t)rng_below(r, (uint32_t)(api->highest - api->lowest + 1))), rogue_client, in.bytes);
}

static void rogue_admin(struct world *w, struct rng *r, int group)
{
	struct conn *c = rogue_conn(w, r);
	struct bytes id = w->group_id[group];
	if (c == NULL)
		return;
	switch (rng_below(r, 4)) {
	case 0: {
		struct describe_groups_request in = {.groups = &id, .groups_len = 1};
		conn_request(c, api_key_describe_groups, (int16_t)rng_below(r, 7), rogue_client, &in);
		break;
	}
	case 1: {
		struct list_groups_request in = {0};
		conn_request(c, api_key_list_groups, (int16_t)rng_below(r, 6), rogue_client, &in);
		break;
	}
	case 2: {
		struct delete_groups_request in = {.groups_names = &id, .groups_names_len = 1};
		conn_request(c, api_key_delete_groups, (int16_t)rng_below(r, 3), rogue_client, &in);
		break;
	}
	default: {
		struct offset_delete_request_partition parts[2] = {{0}, {1}};
		struct offset_delete_request_topic topic = {bytes_str(topic_names[rng_below(r, TOPICS)]), parts, 2};
		struct offset_delete_request in = {.group_id = id, .topics = &topic, .topics_len = 1};
		conn_request(c, api_key_offset_delete, 0, rogue_client, &in);
	}
	}
}

/* ---- bytes ---- */

static size_t almost_a_join(struct rng *r, uint8_t *out, size_t cap)
{
	static const char *const groups[] = {"zzzzzzzz0", "zzzzzzzz1"};
	struct writer w = writer_of(out, cap);
	struct request_header h = {api_key_join_group, (int16_t)rng_below(r, 10), (int32_t)rng_below(r, 1000), rogue_client, true};
	struct join_group_request_protocol protocol = {BYTES_LITERAL("range"), BYTES_LITERAL("meta")};
	struct join_group_request in;
	join_group_request_init(&in);
	in.group_id = bytes_str(groups[rng_below(r, 2)]);
	in.session_timeout_ms = 10000;
	in.rebalance_timeout_ms = 10000;
	in.protocol_type = BYTES_LITERAL("consumer");
	in.protocols = &protocol;
	in.protocols_len = 1;
	request_header_encode(&w, &h);
	message_request(api_key_join_group)->encode(&in, &w, h.version);
	return writer_len(&w);
}

static void rogue_garbage(struct world *w, struct rng *r)
{
	uint8_t bytes[600];
	size_t len = rng_between(r, 1, 120);
	struct conn *c = rogue_conn(w, r);
	if (c == NULL)
		return;
	for (size_t i = 0; i < len; i++)
		bytes[i] = (uint8_t)rng_next(r);
	if (!rng_one_in(r, 3)) {
		len = almost_a_join(r, bytes, sizeof(bytes));
		for (uint32_t flips = rng_below(r, 4); flips > 0; flips--)
			bytes[rng_below(r, (uint32_t)len)] ^= (uint8_t)(1u << rng_below(r, 8));
		if (rng_one_in(r, 3))
			len = 1 + rng_below(r, (uint32_t)len);
	}
	conn_bytes(c, bytes, len);
}

static void rogue_close(struct world *w, struct rng *r)
{
	struct conn *c = w->rogues[rng_below(r, ARRAY_LEN(w->rogues))];
	if (c == NULL || !c->client_open)
		return;
	switch (rng_below(r, 3)) {
	case 0:
		conn_fin(c);
		break;
	case 1:
		conn_rst(c);
		break;
	default:
		conn_vanish(c);
	}
}

void rogue_act(struct world *w, const struct action *a)
{
	struct rng r = rng_of(a->random, 1);
	int group = (int)(a->who % GROUPS);
	switch (a->kind) {
	case ACT_ROGUE_JOIN:
		rogue_join(w, &r, group);
		break;
	case ACT_ROGUE_SYNC:
		rogue_sync(w, &r, group);
		break;
	case ACT_ROGUE_HEARTBEAT:
		rogue_heartbeat(w, &r, group);
		break;
	case ACT_ROGUE_LEAVE:
		rogue_leave(w, &r, group);
		break;
	case ACT_ROGUE_COMMIT:
		rogue_commit(w, &r, group);
		break;
	case ACT_ROGUE_FETCH:
		rogue_fetch(w, &r, group);
		break;
	case ACT_ROGUE_OTHER:
		rogue_other(w, &r);
		break;
	case ACT_ADMIN:
		rogue_admin(w, &r, group);
		break;
	case ACT_ROGUE_CLOSE:
		rogue_close(w, &r);
		break;
	default:
		rogue_garbage(w, &r);
	}
}
