/*
 * offset_fetch.c - OffsetFetch: the committed offsets of one group (versions 0 to 7) or of several (8 and later).
 *
 * All versions are answered through the form of version 8: older requests are turned into one group, the result is turned back. Before a group is
 * read, everything appended to its shard must be durable, so that a fetch sees the commits that were sent before it.
 * Every requested partition is in the answer, in request order, with offset -1 where nothing is committed. Null topics mean all that have an
 * offset. Member ids and epochs say nothing about a classic group and are not looked at. When the log breaks while a fetch waits, nobody knows what
 * those commits became: the group gets an error. Groups of other workers are asked for there.
 */
#include "coordinator/api/api.h"

#define TOPIC_IDS_FROM 10
#define GROUPS_FROM 8
#define GROUP_ERROR_FROM 2

static void fill_partition(struct offset_fetch_response_partitions *out, int32_t partition, const struct offset_value *value)
{
	offset_fetch_response_partitions_init(out);
	out->partition_index = partition;
	out->committed_offset = value == NULL ? -1 : value->offset;
	out->committed_leader_epoch = value == NULL ? -1 : value->leader_epoch;
	out->metadata = value == NULL || bytes_is_null(value->metadata) ? BYTES_EMPTY : value->metadata;
}

/* ---- the partitions that were asked for ---- */

static bool fill_asked(const struct api_call *call, struct shard *shard, const struct offset_fetch_request_group *in,
		       struct offset_fetch_response_group *out)
{
	bool by_id = call->rq->version >= TOPIC_IDS_FROM;
	struct offset_fetch_response_topics *topics = API_ALLOC(call, in->topics_len, struct offset_fetch_response_topics);
	if (topics == NULL)
		return false;
	for (int32_t t = 0; t < in->topics_len; t++) {
		const struct offset_fetch_request_topics *asked = &in->topics[t];
		const struct image_topic *topic = by_id ? image_topic_by_id(call->image, &asked->topic_id) : NULL;
		struct bytes name = topic != NULL ? topic->name : asked->name;
		struct offset_fetch_response_partitions *partitions =
			API_ALLOC(call, asked->partition_indexes_len, struct offset_fetch_response_partitions);
		if (partitions == NULL)
			return false;
		for (int32_t p = 0; p < asked->partition_indexes_len; p++) {
			struct offset_value value;
			int32_t index = asked->partition_indexes[p];
			bool known = (!by_id || topic != NULL) && shard_offset_get(shard, in->group_id, name, index, &value);
			fill_partition(&partitions[p], index, known ? &value : NULL);
			if (by_id && topic == NULL)
				partitions[p].error_code = ERROR_UNKNOWN_TOPIC_ID;
		}
		topics[t] = (struct offset_fetch_response_topics){name, asked->topic_id, partitions, asked->partition_indexes_len};
	}
	out->topics = topics;
	out->topics_len = in->topics_len;
	return true;
}

/* ---- all partitions that have an offset ---- */

/* Filled in by two walks over the same offsets: the first counts, the second writes. */
struct all {
	const struct api_call *call;
	struct offset_fetch_response_topics *topics; /* NULL in the first walk */
	struct offset_fetch_response_partitions *partitions;
	int32_t topics_len, partitions_len;
	struct bytes name; /* of the topic that the walk is in */
	bool left_out;	   /* that topic has no id to be named by */
};

static void visit(void *arg, struct bytes name, int32_t partition, const struct offset_value *value)
{
	struct all *all = arg;
	if (!bytes_equal(name, all->name)) {
		const struct image_topic *topic = image_topic(all->call->image, name);
		all->name = name;
		all->left_out = topic == NULL && all->call->rq->version >= TOPIC_IDS_FROM;
		if (!all->left_out && all->topics != NULL)
			all->topics[all->topics_len] = (struct offset_fetch_response_topics){
				name, topic != NULL ? topic->id : UUID_ZERO, &all->partitions[all->partitions_len], 0};
		all->topics_len += !all->left_out;
	}
	if (all->left_out)
		return;
	if (all->topics != NULL) {
		fill_partition(&all->partitions[all->partitions_len], partition, value);
		all->topics[all->topics_len - 1].partitions_len++;
	}
	all->partitions_len++;
}

static bool fill_all(const struct api_call *call, struct shard *shard, const struct offset_fetch_request_group *in,
		     struct offset_fetch_response_group *out)
{
	struct all all = {.call = call, .name = BYTES_NULL};
	shard_offset_each(shard, in->group_id, visit, &all);
	struct offset_fetch_response_topics *topics = API_ALLOC(call, all.topics_len, struct offset_fetch_response_topics);
	struct offset_fetch_response_partitions *partitions = API_ALLOC(call, all.partitions_len, struct offset_fetch_response_partitions);
	if (topics == NULL || partitions == NULL)
		return false;
	all = (struct all){.call = call, .topics = topics, .partitions = partitions, .name = BYTES_NULL};
	shard_offset_each(shard, in->group_id, visit, &all);
	out->topics = topics;
	out->topics_len = all.topics_len;
	return true;
}

/* ---- an error of the group ---- */

/* Versions below 2 have a place for it only in each partition (KAFKA-19246). */
static bool fill_error(const struct api_call *call, const struct offset_fetch_request_group *in, int16_t error,
		       struct offset_fetch_response_group *out)
{
	out->error_code = error;
	if (call->rq->version >= GROUP_ERROR_FROM)
		return true;
	struct offset_fetch_response_topics *topics = API_ALLOC(call, in->topics_len, struct offset_fetch_response_topics);
	if (topics == NULL)
		return false;
	for (int32_t t = 0; t < in->topics_len; t++) {
		const struct offset_fetch_request_topics *asked = &in->topics[t];
		struct offset_fetch_response_partitions *partitions =
			API_ALLOC(call, asked->partition_indexes_len, struct offset_fetch_response_partitions);
		if (partitions == NULL)
			return false;
		for (int32_t p = 0; p < asked->partition_indexes_len; p++) {
			fill_partition(&partitions[p], asked->partition_indexes[p], NULL);
			partitions[p].error_code = error;
		}
		topics[t] = (struct offset_fetch_response_topics){asked->name, UUID_ZERO, partitions, asked->partition_indexes_len};
	}
	out->topics = topics;
	out->topics_len = in->topics_len;
	return true;
}

static bool fill(const struct api_call *call, const struct offset_fetch_request_group *in, struct offset_fetch_response_group *out)
{
	struct shard *shard = node_shard(call->node, in->group_id);
	int16_t error = api_log_error(call);
	if (error == ERROR_COORDINATOR_NOT_AVAILABLE)
		error = ERROR_NOT_COORDINATOR; /* clients know this one here (KAFKA-17267) */
	offset_fetch_response_group_init(out);
	out->group_id = in->group_id;
	if (error == ERROR_NONE && shard_is_loading(shard))
		error = ERROR_COORDINATOR_LOAD_IN_PROGRESS;
	if (error != ERROR_NONE)
		return fill_error(call, in, error, out);
	return (in->topics_len < 0 ? fill_all : fill_asked)(call, shard, in, out);
}

/* ---- the two forms of the request ---- */

static bool groups_of(const struct api_call *call, const struct offset_fetch_request_group **groups, int32_t *groups_len)
{
	const struct offset_fetch_request *in = call->in;
	*groups = in->groups;
	*groups_len = in->groups_len;
	if (call->rq->version >= GROUPS_FROM)
		return true;
	struct offset_fetch_request_group *one = API_ALLOC(call, 1, struct offset_fetch_request_group);
	struct offset_fetch_request_topics *topics =
		API_ALLOC(call, in->topics_len < 0 ? 0 : in->topics_len, struct offset_fetch_request_topics);
	if (one == NULL || topics == NULL)
		return false;
	for (int32_t t = 0; t < in->topics_len; t++)
		topics[t] = (struct offset_fetch_request_topics){in->topics[t].name, UUID_ZERO, in->topics[t].partition_indexes,
								 in->topics[t].partition_indexes_len};
	*one = (struct offset_fetch_request_group){in->group_id, BYTES_NULL, -1, topics, in->topics_len};
	*groups = one;
	*groups_len = 1;
	return true;
}

/* Turns the result for one group into the form of versions 0 to 7. */
static bool old_form(const struct api_call *call, const struct offset_fetch_response_group *group, struct offset_fetch_response *out)
{
	struct offset_fetch_response_topic *topics = API_ALLOC(call, group->topics_len, struct offset_fetch_response_topic);
	if (topics == NULL)
		return false;
	for (int32_t t = 0; t < group->topics_len; t++) {
		const struct offset_fetch_response_topics *from = &group->topics[t];
		struct offset_fetch_response_partition *to = API_ALLOC(call, from->partitions_len, struct offset_fetch_response_partition);
		if (to == NULL)
			return false;
		for (int32_t p = 0; p < from->partitions_len; p++)
			to[p] = (struct offset_fetch_response_partition){
				from->partitions[p].partition_index, from->partitions[p].committed_offset,
				from->partitions[p].committed_leader_epoch, from->partitions[p].metadata, from->partitions[p].error_code};
		topics[t] = (struct offset_fetch_response_topic){from->name, to, from->partitions_len};
	}
	out->topics = topics;
	out->topics_len = group->topics_len;
	out->error_code = group->error_code;
	return true;
}

/* ---- groups of other workers ---- */

static struct bytes split_group(const struct api_split *split, int32_t i)
{
	return ((const struct offset_fetch_request_group *)split->of)[i].group_id;
}

static const void *split_part(const struct api_call *call, const struct api_split *split, const int32_t *picked, int32_t n)
{
	const struct offset_fetch_request_group *in = split->of;
	struct offset_fetch_request *out = API_ALLOC(call, 1, struct offset_fetch_request);
	struct offset_fetch_request_group *groups = API_ALLOC(call, n, struct offset_fetch_request_group);
	if (out == NULL || groups == NULL)
		return NULL;
	for (int32_t i = 0; i < n; i++)
		groups[i] = in[picked[i]];
	*out = *(const struct offset_fetch_request *)call->in;
	out->groups = groups;
	out->groups_len = n;
	return out;
}

/* Whether all commits that were sent before are durable in our own shards. False: parked. */
static bool settled(const struct api_call *call, const struct offset_fetch_request_group *in, int32_t n)
{
	unsigned int waits = 0;
	for (int32_t g = 0; g < n; g++) {
		struct shard *shard = node_shard(call->node, in[g].group_id);
		if (shard != NULL && !api_durable(call, waits++, shard))
			return false;
	}
	return true;
}

static bool fill_groups(const struct api_call *call, const struct offset_fetch_request_group *in, struct offset_fetch_response_group *groups, int32_t n)
{
	int32_t *cursors = api_cursors(call), place;
	if (cursors == NULL)
		return false;
	for (int32_t g = 0; g < n; g++) {
		const struct offset_fetch_response *told = api_told(call, cursors, in[g].group_id, &place);
		CHECK(told == NULL || place < told->groups_len);
		if (told != NULL)
			groups[g] = told->groups[place];
		else if (!fill(call, &in[g], &groups[g]))
			return false;
	}
	return true;
}

static void count(const struct api_call *call, const struct offset_fetch_response_group *groups, int32_t n)
{
	for (int32_t g = 0; g < n; g++)
		for (int32_t t = 0; node_owner(call->node, groups[g].group_id) < 0 && t < groups[g].topics_len; t++)
			call->stats->offset_fetches += (uint64_t)groups[g].topics[t].partitions_len;
}

bool api_offset_fetch(const struct api_call *call)
{
	const struct offset_fetch_request_group *in;
	int32_t n;
	if (!groups_of(call, &in, &n))
		return false;
	bool many = call->rq->version >= GROUPS_FROM;
	struct api_split split = {in, n, split_group, split_part};
	enum api_gathered gathered = many ? api_gather(call, &split) : API_GATHERED;
	if (gathered != API_GATHERED)
		return gathered == API_GATHER_LATER;
	if ((!many && api_shard(call, in[0].group_id) == NULL) || !settled(call, in, n))
		return true;
	struct offset_fetch_response_group *groups = API_ALLOC(call, n, struct offset_fetch_response_group);
	if (groups == NULL || !fill_groups(call, in, groups, n))
		return false;
	count(call, groups, n);
	struct offset_fetch_response out;
	offset_fetch_response_init(&out);
	if (many) {
		out.groups = groups;
		out.groups_len = n;
	} else if (!old_form(call, &groups[0], &out)) {
		return false;
	}
	request_answer(call->rq, &out, call->now);
	return true;
}
