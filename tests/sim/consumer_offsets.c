/*
 * consumer_offsets.c - a consumer's offsets: fetched for what it was assigned, committed by interval, each commit with a value of its own.
 */
#include "consumer.h"

void consumer_fetch(struct consumer *c)
{
	static int32_t indexes[PARTS];
	struct offset_fetch_request in;
	struct offset_fetch_request_topic old[TOPICS];
	struct offset_fetch_request_topics topics[TOPICS];
	struct offset_fetch_request_group group;
	unsigned int n = 0;
	for (unsigned int t = 0; t < TOPICS; t++) {
		uint32_t parts = c->owned & topic_parts(t);
		unsigned int first = (unsigned int)__builtin_ctz(topic_parts(t)), len = 0;
		if (parts == 0)
			continue;
		for (; parts != 0; parts &= parts - 1)
			indexes[first + len++] = part_index((unsigned int)__builtin_ctz(parts));
		const struct image_topic *topic = image_topic(c->w->all_topics, bytes_str(topic_names[t]));
		old[n] = (struct offset_fetch_request_topic){topic->name, indexes + first, (int32_t)len};
		topics[n++] = (struct offset_fetch_request_topics){topic->name, topic->id, indexes + first, (int32_t)len};
	}
	offset_fetch_request_init(&in);
	offset_fetch_request_group_init(&group);
	in.group_id = group.group_id = c->w->group_id[c->group];
	in.topics = old;
	group.topics = topics;
	in.topics_len = group.topics_len = (int32_t)n;
	in.groups = &group;
	in.groups_len = 1;
	consumer_send(c, api_key_offset_fetch, c->v_fetch, &in, REQUEST_TIMEOUT_US);
}

void consumer_commit(struct consumer *c)
{
	struct world *w = c->w;
	struct offset_commit_request in;
	static struct offset_commit_request_topic topics[TOPICS];
	static struct offset_commit_request_partition parts[PARTS];
	unsigned int n = 0;
	c->commit_at = w->now.us + (uint64_t)c->commit_ms * US_PER_MS;
	if (c->owned == 0 || consumer_waits(c, api_key_offset_commit) || (uint64_t)w->next_offset + PARTS >= w->offset_cap)
		return;
	for (unsigned int t = 0; t < TOPICS; t++) {
		const struct image_topic *topic = image_topic(w->all_topics, bytes_str(topic_names[t]));
		unsigned int first = (unsigned int)__builtin_ctz(topic_parts(t)), len = 0;
		for (uint32_t of = c->owned & topic_parts(t); of != 0; of &= of - 1) {
			struct offset_commit_request_partition *p = &parts[first + len++];
			offset_commit_request_partition_init(p);
			p->partition_index = part_index((unsigned int)__builtin_ctz(of));
			p->committed_offset = w->next_offset++;
			p->committed_leader_epoch = commit_epoch(w, p->committed_offset, c->v_commit);
			p->committed_metadata = commit_metadata(p->committed_offset);
		}
		if (len > 0)
			topics[n++] = (struct offset_commit_request_topic){topic->name, topic->id, &parts[first], (int32_t)len};
	}
	offset_commit_request_init(&in);
	in.group_id = w->group_id[c->group];
	in.generation_id_or_member_epoch = c->generation;
	in.member_id = bytes_str(c->member);
	in.group_instance_id = consumer_instance(c);
	in.topics = topics;
	in.topics_len = (int32_t)n;
	consumer_send(c, api_key_offset_commit, c->v_commit, &in, REQUEST_TIMEOUT_US);
}

void consumer_committed(struct consumer *c, const struct offset_commit_response *r, int32_t generation)
{
	int16_t code = 0;
	for (int32_t t = 0; t < r->topics_len; t++)
		for (int32_t p = 0; p < r->topics[t].partitions_len; p++)
			code = r->topics[t].partitions[p].error_code != 0 ? r->topics[t].partitions[p].error_code : code;
	if (code == 0 || c->state != STABLE || generation != c->generation || c->v_commit == 0)
		return;
	if (code == -1 || code == 69 || code == 3 || code == 100)
		return;
	consumer_error(c, api_key_offset_commit, code);
}
