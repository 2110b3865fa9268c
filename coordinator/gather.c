/*
 * gather.c - what handlers see of forward.h: the shard of a group or the way to its owner, and requests about several groups, taken apart for their
 * owners and put together again.
 *
 * A request that is taken apart is asked at the others first; its own part is done when they have answered, in the same call of the handler that
 * makes the answer. Each worker gets an ordinary request of the same API and version, with its groups in the order of the whole.
 */
#include "coordinator/forward.h"
#include "coordinator/wire/header.h"

static struct session_request *request_of(const struct api_call *call)
{
	return CONTAINER_OF(call->rq, struct session_request, rq);
}

/* ---- one group ---- */

static void forward_one(const struct api_call *call, struct bytes group_id)
{
	struct session_request *sr = request_of(call);
	int owner = node_owner(call->node, group_id);
	CHECK(owner >= 0 && sr->all->forwards != NULL);
	if (!forward_has_room(sr, (unsigned int)owner))
		forward_wait_for_room(call, (unsigned int)owner);
	else if (forward_send(call, (unsigned int)owner, NULL))
		forward_park(call, HOLD_FORWARD);
	else
		answer_refuse(call->rq, call->now);
}

struct shard *api_shard(const struct api_call *call, struct bytes group_id)
{
	struct shard *shard = node_shard(call->node, group_id);
	if (unlikely(shard == NULL))
		forward_one(call, group_id);
	return shard;
}

struct shard *api_shard_quiet(const struct api_call *call, struct bytes group_id)
{
	struct shard *shard = node_shard_quiet(call->node, group_id);
	if (unlikely(shard == NULL))
		forward_one(call, group_id);
	return shard;
}

/* ---- several groups ---- */

unsigned int api_workers(const struct api_call *call)
{
	const struct mailbox *mailbox = forward_mailbox(request_of(call)->all);
	return mailbox == NULL ? 1 : mailbox->workers;
}

/* What one worker is asked. */
struct asked {
	bool wanted;
	const void *message; /* NULL: the whole request */
};

/* False: out of arena. */
static bool split_for(const struct api_call *call, const struct api_split *split, unsigned int worker, int32_t *picked, struct asked *out)
{
	int32_t n = 0;
	*out = (struct asked){split == NULL && worker != forward_mailbox(request_of(call)->all)->self, NULL};
	for (int32_t i = 0; split != NULL && i < split->len; i++)
		if (node_owner(call->node, split->group(split, i)) == (int)worker)
			picked[n++] = i;
	if (n == 0)
		return true;
	*out = (struct asked){true, split->part(call, split, picked, n)};
	return out->message != NULL;
}

static enum api_gathered ask(const struct api_call *call, const struct asked *asked, unsigned int workers)
{
	struct session_request *sr = request_of(call);
	bool any = false;
	for (unsigned int w = 0; w < workers; w++) {
		any |= asked[w].wanted;
		if (asked[w].wanted && !forward_has_room(sr, w)) {
			forward_wait_for_room(call, w);
			return API_GATHER_LATER;
		}
	}
	if (!any)
		return API_GATHERED;
	if (!answer_keep_request(call)) {
		answer_refuse(call->rq, call->now);
		return API_GATHER_LATER;
	}
	for (unsigned int w = 0; w < workers; w++) {
		if (asked[w].wanted && !forward_send(call, w, asked[w].message)) {
			answer_refuse(call->rq, call->now);
			return API_GATHER_LATER;
		}
	}
	forward_park(call, HOLD_GATHER);
	return API_GATHER_LATER;
}

/* Decodes the answers; where they stand is the session's for this call. */
static enum api_gathered decode_parts(const struct api_call *call, unsigned int workers)
{
	struct session_request *sr = request_of(call);
	const struct message_type *type = message_response(call->rq->api_key);
	const void **told = API_ALLOC(call, workers, const void *);
	if (told == NULL)
		return API_GATHER_NO_ARENA;
	memset(told, 0, workers * sizeof(*told));
	for (const struct forward *f = sr->parts; f != NULL; f = f->next) {
		struct bytes answer = forward_answer(f);
		struct reader r = reader_of(answer.p, (size_t)answer.len);
		int32_t correlation_id;
		void *response = arena_alloc(call->arena, 1, type->size);
		reader_u32(&r); /* the frame's length */
		CHECK(response == NULL || response_header_decode(&correlation_id, &r, call->rq->api_key, call->rq->version));
		if (response == NULL || !type->decode(response, &r, call->rq->version, call->arena))
			return API_GATHER_NO_ARENA;
		told[f->to] = response;
	}
	sr->all->told = told;
	return API_GATHERED;
}

enum api_gathered api_gather(const struct api_call *call, const struct api_split *split)
{
	struct session_request *sr = request_of(call);
	unsigned int workers = api_workers(call);
	sr->all->told = NULL;
	if (workers == 1 || sr->session->guest) /* a guest brings only what is ours */
		return API_GATHERED;
	if (sr->gathered)
		return decode_parts(call, workers);
	struct asked *asked = API_ALLOC(call, workers, struct asked);
	int32_t *picked = API_ALLOC(call, split == NULL ? 0 : split->len, int32_t);
	if (asked == NULL || picked == NULL)
		return API_GATHER_NO_ARENA;
	for (unsigned int w = 0; w < workers; w++)
		if (!split_for(call, split, w, picked, &asked[w]))
			return API_GATHER_NO_ARENA;
	return ask(call, asked, workers);
}

int32_t *api_cursors(const struct api_call *call)
{
	unsigned int workers = api_workers(call);
	int32_t *cursors = API_ALLOC(call, workers, int32_t);
	if (cursors != NULL)
		memset(cursors, 0, workers * sizeof(*cursors));
	return cursors;
}

const void *api_part(const struct api_call *call, unsigned int worker)
{
	const void **told = request_of(call)->all->told;
	return told == NULL ? NULL : told[worker];
}

const void *api_told(const struct api_call *call, int32_t *cursors, struct bytes group_id, int32_t *place)
{
	int owner = node_owner(call->node, group_id);
	if (owner < 0)
		return NULL;
	const void *part = api_part(call, (unsigned int)owner);
	CHECK(part != NULL);
	*place = cursors[owner]++;
	return part;
}
