/*
 * delete_groups.c - DeleteGroups: each group that is named and has no member goes, with its offsets (KIP-229).
 *
 * The results are known when the tombstones are appended, and answered when these are durable in all shards. A name that stands in the
 * request twice is answered once.
 */
#include <stdlib.h>

#include "coordinator/api/api.h"

struct name {
	struct bytes id;
	int32_t index; /* in the request */
};

static int order(const void *a, const void *b)
{
	const struct name *x = a, *y = b;
	int by_id = x->id.len != y->id.len ? (x->id.len < y->id.len ? -1 : 1)
		    : x->id.len > 0	    ? memcmp(x->id.p, y->id.p, (size_t)x->id.len)
					    : 0;
	return by_id != 0 ? by_id : x->index < y->index ? -1 : 1;
}

/* Marks in `again` what has stood in the request before. False: out of arena. */
static bool find_repeated(const struct api_call *call, const struct delete_groups_request *in, bool *again)
{
	struct name *names = API_ALLOC(call, in->groups_names_len, struct name);
	if (names == NULL)
		return false;
	for (int32_t i = 0; i < in->groups_names_len; i++)
		names[i] = (struct name){in->groups_names[i], i};
	qsort(names, (size_t)in->groups_names_len, sizeof(*names), order);
	for (int32_t i = 0; i < in->groups_names_len; i++)
		again[names[i].index] = i > 0 && bytes_equal(names[i - 1].id, names[i].id);
	return true;
}

static void spoil(void *response, int16_t error)
{
	const struct delete_groups_response *out = response;
	struct delete_groups_response_result *results = (void *)(uintptr_t)out->results; /* decoded: writable */
	for (int32_t i = 0; i < out->results_len; i++)
		if (results[i].error_code == ERROR_NONE)
			results[i].error_code = error;
}

bool api_delete_groups(const struct api_call *call)
{
	const struct delete_groups_request *in = call->in;
	struct delete_groups_response out;
	delete_groups_response_init(&out);
	struct delete_groups_response_result *results = API_ALLOC(call, in->groups_names_len, struct delete_groups_response_result);
	bool *again = API_ALLOC(call, in->groups_names_len, bool);
	if (results == NULL || again == NULL || !find_repeated(call, in, again))
		return false;
	for (int32_t i = 0; i < in->groups_names_len; i++) {
		struct bytes id = in->groups_names[i];
		if (!again[i])
			results[out.results_len++] = (struct delete_groups_response_result){
				id, shard_delete_group(node_shard(call->node, id), id, call->now)};
	}
	out.results = results;
	api_answer_durable(call, &out, spoil);
	return true;
}
