/*
 * watch.c - what passes the seam: every request is answered at most once, in order, as expect.c says, and in time.
 *
 * Bounds. A join waits for the largest rebalance timeout that anybody of its group ever asked for, or the initial delay; a sync for the same
 * (the sync timer has that length); everything may wait for the log once.
 */
#include "watch.h"

#define LOG_WAIT_US 12000000ull /* slowest log of a plan, twice over */
#define SLACK_US 1500000ull	/* a stalled worker; the pause of a join phase that found nobody */

static bool is_member_api(int16_t api)
{
	return api == api_key_join_group || api == api_key_sync_group || api == api_key_fetch;
}

bool log_explains(struct world *w, const struct asked *a, int32_t code)
{
	uint64_t patience = (uint64_t)w->plan.settings.offsets_commit_timeout_ms * US_PER_MS;
	if ((a->expect.log_may_fail || w->disk.broken != 0) && (code == 15 || code == 16 || code == -1))
		return true;
	return patience > 0 && (code == 15 || code == 16) && served(w).us >= a->at + patience;
}

static uint64_t bound_of(struct world *w, const struct asked *a)
{
	uint64_t now = served(w).us, bound = (now < w->held_until ? w->held_until : now) + LOG_WAIT_US + SLACK_US;
	int64_t group = w->largest_timeout_ms[a->group < 0 ? GROUPS : a->group], delay = w->plan.settings.group_initial_rebalance_delay_ms;
	if (a->api == api_key_join_group || a->api == api_key_sync_group)
		bound += (uint64_t)(group > delay ? group : delay) * US_PER_MS;
	if (a->api == api_key_fetch)
		bound += 5000 * US_PER_MS;
	uint64_t patience = (uint64_t)w->plan.settings.offsets_commit_timeout_ms * US_PER_MS;
	if (a->api == api_key_offset_commit && patience > 0 && patience < LOG_WAIT_US)
		bound -= LOG_WAIT_US + SLACK_US - patience - 2 * TICK_SLACK_US;
	return bound;
}

static void remember_least(struct world *w, struct asked *a)
{
	for (unsigned int p = 0; p < PARTS; p++)
		a->least[p] = a->group >= 0 ? w->appended[a->group][p] : 0;
}

static void ends_with(struct world *w, struct request *rq, int32_t code)
{
	const struct session_request *sr = rq == NULL ? NULL : CONTAINER_OF(rq, struct session_request, rq);
	for (unsigned int i = 0; i < w->conns_len && sr != NULL; i++) {
		struct conn *c = w->conns[i];
		for (unsigned int k = 0; k < c->asked_len && c->session == sr->session; k++) {
			struct asked *a = &c->asked[(c->asked_first + k) % ASKED];
			if (a->correlation_id == rq->correlation_id)
				a->expect.ends = code;
		}
	}
}

/* A static member is about to be replaced: what its old id has parked ends with 82. */
static void fence_parked(struct world *w, const struct asked *join)
{
	struct group *g = group_find(world_shard(w, join->group), w->group_id[join->group]);
	const struct member *old = g == NULL || join->expect.immediate || w->disk.broken != 0 ? NULL : member_find_instance(g, bytes_str(join->instance));
	if (old == NULL)
		return;
	ends_with(w, old->join, 82);
	ends_with(w, old->sync, 82);
}

/* A commit of partitions that do not exist never reaches its group. */
static bool reaches_group(const struct asked *a)
{
	bool any = a->api != api_key_offset_commit;
	for (unsigned int p = 0; p < PARTS; p++)
		any |= a->offsets[p] >= 0;
	return any;
}

void watch_delivered(struct conn *c, const uint8_t *p, size_t len)
{
	struct world *w = c->w;
	struct request_header h;
	struct reader r = reader_of(p, len);
	w->requests++;
	c->in_call = NULL;
	c->new_candidate = NULL;
	c->must_abort = true;
	if (!request_header_decode(&h, &r) || (!h.served && h.api_key != api_key_api_versions))
		return;
	const struct message_type *type = message_request(h.api_key);
	arena_reset(&w->arena);
	void *in = arena_alloc(&w->arena, 1, type->size);
	if (h.served && !type->decode(in, &r, h.version, &w->arena))
		return;
	c->must_abort = false;
	REQUIRE(w, "not-held", c->asked_len < SESSION_PIPELINE + 1 && c->asked_len < ASKED, "connection %u: %u unanswered requests", c->number,
		c->asked_len);
	struct asked *a = &c->asked[(c->asked_first + c->asked_len++) % ASKED];
	memset(a, 0, sizeof(*a));
	a->correlation_id = h.correlation_id;
	a->api = h.api_key;
	a->version = h.served ? h.version : 0;
	a->at = served(w).us;
	a->step = w->steps;
	a->gone = w->topics_gone;
	a->before = w->disk.len;
	c->in_call = a;
	a->group = h.served ? world_group(w, facts_of(c, a, in)) : -1;
	a->loading = a->group >= 0 && shard_is_loading(world_shard(w, a->group));
	a->bound = bound_of(w, a);
	a->expect = expect_request(w, c, a, in);
	if (!a->loading && ((a->api == api_key_heartbeat && (a->expect.code == 0 || a->expect.code == 27)) || (a->api == api_key_offset_commit && a->expect.code == 0 && reaches_group(a))))
		audit_life(w, a->group, a->member);
	w->step.group = a->group;
	w->step.api = a->api;
	w->step.code = a->expect.code; /* until the answer says so itself */
	if (a->group >= 0 && a->api == api_key_join_group && a->has_instance && a->member[0] == '\0')
		fence_parked(w, a);
	if (a->group >= 0 && a->api == api_key_sync_group)
		epoch_note_assignment(c, a, in);
	if (a->group >= 0 && a->api == api_key_offset_fetch)
		remember_least(w, a);
	if (a->api == api_key_join_group) {
		facts_name_in_step(w, bytes_str(a->member));
		if (a->has_instance)
			facts_name_in_step(w, bytes_str(a->instance));
	}
	if (w->trace)
		trace(w, "conn %u <- %s v%d #%d group %d member %.24s %s generation %d", c->number, type->name, a->version, a->correlation_id, a->group,
		      a->member, a->instance, a->generation);
}

void watch_returned(struct conn *c, enum service_verdict verdict)
{
	struct world *w = c->w;
	if (c->must_abort) {
		REQUIRE(w, "garbage-taken", verdict == SERVICE_ABORT, "connection %u: malformed bytes got the verdict %d", c->number, verdict);
		w->step.closes = true;
		return;
	}
	REQUIRE(w, "good-request-aborted", verdict != SERVICE_ABORT && !c->want_abort, "connection %u was aborted on a request that decodes", c->number);
	if (c->new_candidate != NULL && w->disk.len > c->new_candidate->position)
		c->new_candidate->position = w->disk.len;
	struct asked *a = c->in_call;
	if (a == NULL)
		return;
	c->in_call = NULL;
	a->position = w->disk.len;
	REQUIRE(w, "not-answered", !a->expect.immediate || c->asked_len > 1 || c->eof, "api %d v%d of %s was not answered at once, should get %d", a->api,
		a->version, a->member, a->expect.code);
}

static int32_t code_of(const struct asked *a, const void *out)
{
	switch (a->api) {
	case api_key_join_group:
		return ((const struct join_group_response *)out)->error_code;
	case api_key_sync_group:
		return ((const struct sync_group_response *)out)->error_code;
	case api_key_heartbeat:
		return ((const struct heartbeat_response *)out)->error_code;
	case api_key_leave_group:
		return ((const struct leave_group_response *)out)->error_code;
	case api_key_delete_groups: {
		const struct delete_groups_response *d = out;
		return d->results_len > 0 ? d->results[0].error_code : EXPECT_ANY;
	}
	case api_key_offset_delete:
		return ((const struct offset_delete_response *)out)->error_code;
	default:
		return EXPECT_ANY;
	}
}

/* Codes that a parked join or sync may end with; any other means that a rule was broken. */
static bool parked_end(int32_t code)
{
	return code == 0 || code == 25 || code == 27 || code == 82 || code == 16 || code == 15;
}

/* What a deletion has appended is durable when it is acknowledged. */
static void check_deletion(struct conn *c, const struct asked *a, int32_t code)
{
	struct world *w = c->w;
	uint64_t end = c->in_call == a ? w->disk.len : a->position;
	bool deletes = a->api == api_key_delete_groups || a->api == api_key_offset_delete;
	if (deletes && code == 0 && end > a->before)
		REQUIRE(w, "answered-before-durable", w->disk.durable >= end, "deletion of group %d", a->group);
}

static void check_answer(struct conn *c, struct asked *a, const void *out)
{
	struct world *w = c->w;
	int32_t code = code_of(a, out), want = a->expect.code;
	if (c->in_call == a && code != EXPECT_ANY)
		w->step.code = code;
	if (w->trace)
		trace(w, "conn %u -> api %d v%d #%d error %d", c->number, a->api, a->version, a->correlation_id, code);
	if (a->api == api_key_offset_commit)
		offsets_check_commit(c, a, out);
	if (a->api == api_key_offset_fetch)
		offsets_check_fetch(c, a, out);
	if (a->group < 0)
		return;
	if (want >= -1 && code != EXPECT_ANY)
		REQUIRE(w, "unexpected-code", code == want || log_explains(w, a, code), "api %d v%d of %s generation %d got %d instead of %d", a->api, a->version, a->member,
			a->generation, code, want);
	REQUIRE(w, "not-fenced", a->expect.ends == 0 || code == a->expect.ends, "api %d of %s ended with %d instead of %d", a->api, a->member, code,
		a->expect.ends);
	if (want == EXPECT_PARK)
		REQUIRE(w, "unexpected-code", parked_end(code), "parked api %d of %s ended with %d", a->api, a->member, code);
	if (a->expect.durable && code == 0 && c->in_call != a)
		REQUIRE(w, "answered-before-durable", w->disk.durable >= a->position, "static replacement of %s", a->instance);
	if (a->expect.durable && c->in_call == a) {
		const struct join_group_response *r = out;
		REQUIRE(w, "answered-before-durable", code != 0 || r->generation_id > a->expect.generation_least, "static replacement of %s", a->instance);
	}
	check_deletion(c, a, code);
	if (a->api == api_key_join_group)
		epoch_check_join(c, a, out);
	if (a->api == api_key_sync_group)
		epoch_check_sync(c, a, out);
	/* behind another answer it may have waited for that one, and the sign of life is older */
	if (a->api == api_key_sync_group && code == 0 && want == EXPECT_ANY && c->in_call != a && c->answered_in != w->steps)
		audit_life(w, a->group, a->member);
	c->answered_in = w->steps;
}

static void watch_one(struct conn *c, const uint8_t *p, size_t len)
{
	struct world *w = c->w;
	struct asked *a = NULL;
	struct reader r;
	int32_t correlation_id = 0;
	for (;;) {
		REQUIRE(w, "answer-unasked", c->asked_len > 0, "connection %u: an answer to nothing", c->number);
		a = &c->asked[c->asked_first];
		r = reader_of(p, len);
		REQUIRE(w, "answer-malformed", response_header_decode(&correlation_id, &r, a->api, a->version), "connection %u", c->number);
		if (correlation_id == a->correlation_id || !c->eof || !is_member_api(a->api))
			break;
		c->asked_first = (c->asked_first + 1) % ASKED; /* dropped when the client closed its half */
		c->asked_len--;
	}
	REQUIRE(w, "answer-order", correlation_id == a->correlation_id, "connection %u: answer %d when %d was due", c->number, correlation_id,
		a->correlation_id);
	const struct message_type *type = message_response(a->api);
	arena_reset(&w->arena);
	void *out = arena_alloc(&w->arena, 1, type->size);
	REQUIRE(w, "answer-malformed", type->decode(out, &r, a->version, &w->arena) && reader_left(&r) == 0, "%s v%d does not decode", type->name, a->version);
	check_answer(c, a, out);
	if (c->in_call == a)
		c->in_call = NULL;
	c->asked_first = (c->asked_first + 1) % ASKED;
	c->asked_len--;
}

static void hash_bytes_in(struct world *w, const uint8_t *p, size_t len)
{
	uint64_t h = w->hash;
	for (size_t i = 0; i < len; i++)
		h = (h ^ p[i]) * 0x100000001b3ull;
	w->hash = h;
}

void watch_answer(struct conn *c, const uint8_t *p, size_t len)
{
	struct world *w = c->w;
	struct reader all = reader_of(p, len);
	uint64_t stamp[2] = {w->now.us, c->number};
	hash_bytes_in(w, (const uint8_t *)stamp, sizeof(stamp));
	hash_bytes_in(w, p, len);
	while (reader_left(&all) > 0) {
		uint32_t n = reader_u32(&all);
		const uint8_t *body = reader_take(&all, n);
		REQUIRE(w, "answer-malformed", !all.bad, "connection %u: a torn answer", c->number);
		w->answers++;
		watch_one(c, body, n);
	}
}

void watch_closed(struct conn *c)
{
	c->asked_len = 0;
	c->in_call = NULL;
}

void watch_bounds(struct world *w)
{
	for (unsigned int i = 0; i < w->conns_len; i++) {
		const struct conn *c = w->conns[i];
		const struct asked *a = &c->asked[c->asked_first];
		if (c->asked_len > 0 && !c->eof)
			REQUIRE(w, "answer-late", served(w).us <= a->bound, "connection %u: api %d v%d of %s waits since %llu us", c->number, a->api,
				a->version, a->member, (unsigned long long)(served(w).us - a->at));
	}
}

/* Whoever waits may wait until the end of the hold, and then for whatever it waited for. */
void watch_stalled(struct world *w, uint64_t held_us)
{
	for (unsigned int i = 0; i < w->conns_len; i++)
		for (unsigned int k = 0; k < w->conns[i]->asked_len; k++)
			w->conns[i]->asked[(w->conns[i]->asked_first + k) % ASKED].bound += held_us + LOG_WAIT_US;
}

/* Generations behind the recovered one were never stored, and may come again with other leaders. */
void watch_restart(struct world *w)
{
	for (int g = 0; g < GROUPS; g++) {
		const struct group *live = group_find(world_shard(w, g), w->group_id[g]);
		for (unsigned int i = 0; i < EPOCHS; i++)
			if (live == NULL || w->epochs[g][i].generation > live->generation)
				epoch_reset(&w->epochs[g][i]);
	}
	disk_survey(&w->disk, w->disk.len);
	for (size_t v = 0; v < w->offset_cap; v++)
		if (w->offset_position[v] > w->disk.len)
			w->offset_position[v] = 0;
}

void watch_group_gone(struct world *w, int group)
{
	for (unsigned int i = 0; i < EPOCHS; i++)
		epoch_reset(&w->epochs[group][i]);
}

void watch_fini(struct world *w)
{
	for (int g = 0; g < GROUPS; g++)
		for (unsigned int i = 0; i < EPOCHS; i++)
			epoch_reset(&w->epochs[g][i]);
}
