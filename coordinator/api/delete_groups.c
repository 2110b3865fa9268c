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

/* The names without those that have stood in the request before. False: out of arena. */
static bool unique_names(const struct api_call *call, const struct delete_groups_request *in, struct bytes *out, int32_t *len)
{
	struct name *names = API_ALLOC(call, in->groups_names_len, struct name);
	bool *again = API_ALLOC(call, in->groups_names_len, bool);
	if (names == NULL || again == NULL)
		return false;
	for (int32_t i = 0; i < in->groups_names_len; i++)
		names[i] = (struct name){in->groups_names[i], i};
	qsort(names, (size_t)in->groups_names_len, sizeof(*names), order);
	for (int32_t i = 0; i < in->groups_names_len; i++)
		again[names[i].index] = i > 0 && bytes_equal(names[i - 1].id, names[i].id);
	for (int32_t i = 0; i < in->groups_names_len; i++)
		if (!again[i])
			out[(*len)++] = in->groups_names[i];
	return true;
}

static struct bytes split_group(const struct api_split *split, int32_t i)
{
	return ((const struct bytes *)split->of)[i];
}

static const void *split_part(const struct api_call *call, const struct api_split *split, const int32_t *picked, int32_t n)
{
	const struct bytes *in = split->of;
	struct delete_groups_request *out = API_ALLOC(call, 1, struct delete_groups_request);
	struct bytes *names = API_ALLOC(call, n, struct bytes);
	if (out == NULL || names == NULL)
		return NULL;
	for (int32_t i = 0; i < n; i++)
		names[i] = in[picked[i]];
	*out = *(const struct delete_groups_request *)call->in;
	out->groups_names = names;
	out->groups_names_len = n;
	return out;
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
	struct bytes *names = API_ALLOC(call, in->groups_names_len, struct bytes);
	int32_t *cursors = api_cursors(call), place, n = 0;
	if (results == NULL || names == NULL || cursors == NULL || !unique_names(call, in, names, &n))
		return false;
	struct api_split split = {names, n, split_group, split_part};
	enum api_gathered gathered = api_gather(call, &split);
	if (gathered != API_GATHERED)
		return gathered == API_GATHER_LATER;
	for (int32_t i = 0; i < n; i++) {
		const struct delete_groups_response *told = api_told(call, cursors, names[i], &place);
		CHECK(told == NULL || place < told->results_len);
		if (told != NULL)
			results[i] = told->results[place];
		else
			results[i] = (struct delete_groups_response_result){
				names[i], shard_delete_group(node_shard(call->node, names[i]), names[i], call->now)};
	}
	out.results = results;
	out.results_len = n;
	api_answer_durable(call, &out, spoil);
	return true;
}
