/*
 * list_groups.c - ListGroups: the groups of all shards of all workers, those that pass the filters.
 *
 * States (KIP-518, version 4) and types (KIP-848, version 5) are compared without regard to case; a word that names none matches nothing,
 * no word at all matches everything. The whole answer is 14 while a shard is loading. All our groups are classic ones.
 */
#include <strings.h>

#include "coordinator/api/api.h"

#define TYPE "classic"

/* Filled in by two walks over the same groups: the first counts, the second writes. */
struct list {
	const struct list_groups_request *in;
	struct list_groups_response_group *groups; /* NULL in the first walk */
	int32_t len;
	int16_t error; /* of another worker */
};

static bool filter_has(const struct bytes *filter, int32_t n, const char *word)
{
	size_t len = strlen(word);
	if (n <= 0)
		return true;
	for (int32_t i = 0; i < n; i++)
		if (filter[i].len == (int32_t)len && strncasecmp((const char *)filter[i].p, word, len) == 0)
			return true;
	return false;
}

static void visit(void *arg, const struct shard_group *group)
{
	struct list *list = arg;
	if (!filter_has(list->in->states_filter, list->in->states_filter_len, group->state))
		return;
	if (list->groups != NULL)
		list->groups[list->len] = (struct list_groups_response_group){
			group->id, bytes_is_null(group->protocol_type) ? BYTES_EMPTY : group->protocol_type, bytes_str(group->state),
			BYTES_LITERAL(TYPE)};
	list->len++;
}

static void walk(const struct api_call *call, struct list *list)
{
	struct shard *shard;
	list->len = 0;
	if (!filter_has(list->in->types_filter, list->in->types_filter_len, TYPE))
		return;
	for (unsigned int i = 0; (shard = node_shard_at(call->node, i)) != NULL; i++)
		shard_group_each(shard, visit, list);
}

/* A list that lacks the groups of one shard would look like a whole one. */
static bool is_loading(const struct api_call *call)
{
	struct shard *shard;
	for (unsigned int i = 0; (shard = node_shard_at(call->node, i)) != NULL; i++)
		if (shard_is_loading(shard))
			return true;
	return false;
}

/* Appends what the other workers listed; counts it only where there is no list yet. */
static void add_told(const struct api_call *call, struct list *list)
{
	for (unsigned int w = 0; w < api_workers(call); w++) {
		const struct list_groups_response *told = api_part(call, w);
		if (told == NULL)
			continue;
		if (told->error_code != 0)
			list->error = told->error_code;
		if (list->groups != NULL && told->groups_len > 0)
			memcpy(&list->groups[list->len], told->groups, (size_t)told->groups_len * sizeof(*told->groups));
		list->len += told->groups_len;
	}
}

bool api_list_groups(const struct api_call *call)
{
	struct list list = {.in = call->in};
	enum api_gathered gathered = api_gather(call, NULL);
	if (gathered != API_GATHERED)
		return gathered == API_GATHER_LATER;
	if (is_loading(call)) {
		struct list_groups_response loading;
		list_groups_response_init(&loading);
		loading.error_code = ERROR_COORDINATOR_LOAD_IN_PROGRESS;
		request_answer(call->rq, &loading, call->now);
		return true;
	}
	walk(call, &list);
	add_told(call, &list);
	list.groups = API_ALLOC(call, list.len, struct list_groups_response_group);
	if (list.groups == NULL)
		return false;
	walk(call, &list);
	add_told(call, &list);
	struct list_groups_response out;
	list_groups_response_init(&out);
	out.error_code = list.error;
	out.groups = list.groups;
	out.groups_len = list.error == 0 ? list.len : 0;
	request_answer(call->rq, &out, call->now);
	return true;
}
