/*
 * facts.c - what a decoded request says, kept until its answer comes.
 */
#include "watch.h"

struct bytes facts_topic_name(struct world *w, struct bytes name, const struct uuid *id)
{
	const struct image_topic *t = uuid_is_zero(id) ? NULL : image_topic_by_id(w->all_topics, id);
	return t != NULL ? t->name : name;
}

void facts_name_in_step(struct world *w, struct bytes id)
{
	if (w->step.named_len < ARRAY_LEN(w->step.named))
		text_of(w->step.named[w->step.named_len++], id);
}

static void facts_of_member(struct asked *a, struct bytes member, struct bytes instance, int32_t generation)
{
	text_of(a->member, member);
	text_of(a->instance, instance);
	a->has_instance = !bytes_is_null(instance);
	a->generation = generation;
}

static struct bytes facts_commit(struct conn *c, struct asked *a, const struct offset_commit_request *in)
{
	facts_of_member(a, in->member_id, in->group_instance_id, in->generation_id_or_member_epoch);
	for (unsigned int p = 0; p < PARTS; p++)
		a->offsets[p] = -1;
	for (int32_t t = 0; t < in->topics_len; t++)
		for (int32_t i = 0; i < in->topics[t].partitions_len; i++) {
			const struct offset_commit_request_partition *part = &in->topics[t].partitions[i];
			int p = part_of(facts_topic_name(c->w, in->topics[t].name, &in->topics[t].topic_id), part->partition_index);
			if (p >= 0 && !(a->gone >> part_topic((unsigned int)p) & 1))
				a->offsets[p] = (uint64_t)part->committed_offset < c->w->offset_cap ? part->committed_offset : -1;
		}
	return in->group_id;
}

static struct bytes facts_leave(struct conn *c, struct asked *a, const struct leave_group_request *in)
{
	if (a->version <= 2)
		facts_name_in_step(c->w, in->member_id);
	for (int32_t i = 0; a->version >= 3 && i < in->members_len; i++) {
		facts_name_in_step(c->w, in->members[i].member_id);
		if (!bytes_is_null(in->members[i].group_instance_id))
			facts_name_in_step(c->w, in->members[i].group_instance_id);
	}
	return in->group_id;
}

/* The facts of a decoded request; returns its group id. */
struct bytes facts_of(struct conn *c, struct asked *a, const void *in)
{
	switch (a->api) {
	case api_key_join_group: {
		const struct join_group_request *j = in;
		facts_of_member(a, j->member_id, j->group_instance_id, -1);
		int64_t timeout = a->version == 0 ? j->session_timeout_ms : j->rebalance_timeout_ms;
		int group = world_group(c->w, j->group_id);
		int64_t *largest = &c->w->largest_timeout_ms[group < 0 ? GROUPS : group];
		*largest = timeout > *largest ? timeout : *largest;
		return j->group_id;
	}
	case api_key_sync_group: {
		const struct sync_group_request *s = in;
		facts_of_member(a, s->member_id, s->group_instance_id, s->generation_id);
		return s->group_id;
	}
	case api_key_heartbeat: {
		const struct heartbeat_request *h = in;
		facts_of_member(a, h->member_id, h->group_instance_id, h->generation_id);
		return h->group_id;
	}
	case api_key_leave_group:
		return facts_leave(c, a, in);
	case api_key_delete_groups: {
		const struct delete_groups_request *d = in;
		return d->groups_names_len > 0 ? d->groups_names[0] : BYTES_NULL;
	}
	case api_key_offset_delete:
		return ((const struct offset_delete_request *)in)->group_id;
	case api_key_offset_commit:
		return facts_commit(c, a, in);
	case api_key_offset_fetch: {
		const struct offset_fetch_request *f = in;
		return a->version < 8 ? f->group_id : f->groups_len > 0 ? f->groups[0].group_id : BYTES_NULL;
	}
	default:
		return BYTES_NULL;
	}
}
