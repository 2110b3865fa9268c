/*
 * watch.c - what passes the seam: every request is answered at most once, in order, as expect.c says, and in time; and what all answers of one
 * generation say fits together.
 *
 * Bounds. A join waits for the largest rebalance timeout that anybody of its group ever asked for, or the initial delay; a sync for the same
 * (the sync timer has that length); everything may wait for the log once.
 */
#include "sim.h"

#define LOG_WAIT_US 12000000ull /* slowest log of a plan, twice over */
#define SLACK_US 1500000ull	/* a stalled worker; the pause of a join phase that found nobody */

static bool is_member_api(int16_t api)
{
	return api == api_key_join_group || api == api_key_sync_group || api == api_key_fetch;
}

/* Same member, or the same static member after a restart: ids are the instance id and 37 more characters. */
static bool same_member(const char *a, const char *b)
{
	size_t n = strlen(a);
	return strcmp(a, b) == 0 || (strncmp(a, "inst", 4) == 0 && n > 37 && n == strlen(b) && strncmp(a, b, n - 37) == 0);
}

/* ---- generations ---- */

static struct epoch *epoch_of(struct world *w, int group, int32_t generation)
{
	struct epoch *e = &w->epochs[group][(uint32_t)generation % EPOCHS];
	return e->generation == generation && generation > 0 ? e : NULL;
}

static void epoch_reset(struct epoch *e)
{
	for (unsigned int i = 0; i < e->candidates_len; i++) {
		for (unsigned int k = 0; k < e->candidates[i]->len; k++)
			bytes_free(&e->candidates[i]->list[k].bytes);
		free(e->candidates[i]);
	}
	memset(e, 0, sizeof(*e));
}

static struct epoch *epoch_new(struct world *w, int group, int32_t generation)
{
	struct epoch *e = &w->epochs[group][(uint32_t)generation % EPOCHS];
	epoch_reset(e);
	e->generation = generation;
	return e;
}

/* The leader hands in an assignment that the group may take. */
static void note_assignment(struct conn *c, const struct asked *a, const struct sync_group_request *in)
{
	struct world *w = c->w;
	const struct group *g = group_find(world_shard(w, a->group), w->group_id[a->group]);
	if (g == NULL || g->state != GROUP_COMPLETING || a->expect.code != EXPECT_ANY || g->leader == NULL || !bytes_equal(g->leader->id, in->member_id))
		return;
	struct epoch *e = epoch_of(w, a->group, a->generation);
	if (e == NULL) { /* all its joins are still kept behind something; somebody guessed */
		char protocol[TEXT];
		e = epoch_new(w, a->group, a->generation);
		memcpy(e->leader, a->member, TEXT);
		text_of(protocol, g->protocol);
		snprintf(e->protocol, sizeof(e->protocol), "%.31s", protocol);
	}
	REQUIRE(w, "two-leaders", same_member(e->leader, a->member), "generation %d: the engine's leader is %s, answered was %s", a->generation,
		a->member, e->leader);
	if (e->candidates_len == ARRAY_LEN(e->candidates))
		return;
	struct candidate *k = calloc(1, sizeof(*k));
	k->position = w->disk.len;
	for (int32_t i = 0; i < in->assignments_len && k->len < ARRAY_LEN(k->list); i++) {
		text_of(k->list[k->len].id, in->assignments[i].member_id);
		CHECK(bytes_dup(&k->list[k->len++].bytes, in->assignments[i].assignment));
	}
	e->mask |= 1u << e->candidates_len;
	e->candidates[e->candidates_len++] = k;
	c->new_candidate = k;
}

/* The last entry of a member counts; whom the leader forgot gets nothing. */
static struct bytes candidate_bytes(const struct candidate *k, const char *member)
{
	struct bytes out = BYTES_EMPTY;
	for (unsigned int i = 0; i < k->len; i++)
		if (same_member(k->list[i].id, member))
			out = k->list[i].bytes;
	return out;
}

static void check_sync(struct conn *c, const struct asked *a, const struct sync_group_response *r)
{
	struct world *w = c->w;
	if (r->error_code != 0 || a->group < 0)
		return;
	struct epoch *e = epoch_of(w, a->group, a->generation);
	REQUIRE(w, "generation-unknown", e != NULL, "sync of generation %d, which was never answered", a->generation);
	bool durable = false;
	uint32_t fitting = 0;
	for (unsigned int i = 0; i < e->candidates_len; i++) {
		if (bytes_equal(candidate_bytes(e->candidates[i], a->member), r->assignment))
			fitting |= 1u << i;
		durable |= e->candidates[i]->position <= w->disk.durable;
	}
	REQUIRE(w, "wrong-assignment", (e->mask & fitting) != 0, "%s of group %d generation %d got an assignment that the leader did not send",
		a->member, a->group, a->generation);
	e->mask &= fitting;
	REQUIRE(w, "answered-before-durable", durable, "assignment of group %d generation %d", a->group, a->generation);
	if (a->version >= 5)
		REQUIRE(w, "sync-protocol", bytes_equal(r->protocol_name, bytes_str(e->protocol)), "sync names another protocol than join: %.*s",
			(int)r->protocol_name.len, r->protocol_name.p);
}

static void check_join_list(struct conn *c, const char *self, const struct join_group_response *r)
{
	bool found = false;
	for (int32_t i = 0; i < r->members_len; i++) {
		char id[TEXT];
		text_of(id, r->members[i].member_id);
		found |= strcmp(id, self) == 0;
		for (int32_t k = 0; k < i; k++)
			REQUIRE(c->w, "listed-twice", !bytes_equal(r->members[k].member_id, r->members[i].member_id), "%s", id);
	}
	REQUIRE(c->w, "leader-not-listed", found, "%s leads and is not in its list", self);
}

static void check_join(struct conn *c, struct asked *a, const struct join_group_response *r)
{
	struct world *w = c->w;
	char id[TEXT], leader[TEXT], protocol[TEXT];
	if (r->error_code != 0 || a->group < 0) {
		REQUIRE(w, "failed-join-with-generation", r->error_code == 0 || r->generation_id == -1, "error %d, generation %d", r->error_code,
			r->generation_id);
		return;
	}
	text_of(id, r->member_id);
	text_of(leader, r->leader);
	text_of(protocol, r->protocol_name);
	REQUIRE(w, "join-generation", r->generation_id >= a->expect.generation_least &&
		(a->expect.generation_exact < 0 || a->expect.generation_exact == r->generation_id),
		"%s got generation %d, least %d, exact %d", id, r->generation_id, a->expect.generation_least, a->expect.generation_exact);
	REQUIRE(w, "join-other-id", a->member[0] == '\0' || strcmp(a->member, id) == 0, "%s joined and was answered as %s", a->member, id);
	REQUIRE(w, "join-no-protocol", protocol[0] != '\0', "%s got no protocol", id);
	struct epoch *e = epoch_of(w, a->group, r->generation_id);
	if (e == NULL) {
		e = epoch_new(w, a->group, r->generation_id);
		memcpy(e->leader, leader, TEXT);
		snprintf(e->protocol, sizeof(e->protocol), "%.31s", protocol);
	}
	REQUIRE(w, "two-leaders", same_member(e->leader, leader), "generation %d: %s and %s", r->generation_id, e->leader, leader);
	REQUIRE(w, "two-protocols", strcmp(e->protocol, protocol) == 0, "generation %d: %s and %s", r->generation_id, e->protocol, protocol);
	if (strcmp(leader, id) == 0)
		check_join_list(c, id, r);
	else
		REQUIRE(w, "follower-gets-list", r->members_len == 0, "%s follows and got %d members", id, r->members_len);
}

/* ---- offsets ---- */

/* What goes with an offset follows from it, so that a fetch can be checked whole. Versions below 6 have no leader epoch. */
int32_t commit_epoch(struct world *w, int64_t offset, int16_t version)
{
	w->offset_epoch[offset] = version >= 6 ? (int8_t)(offset % 5) : -1;
	return (int32_t)(offset % 5);
}

struct bytes commit_metadata(int64_t offset)
{
	return offset % 3 == 0 ? BYTES_NULL : BYTES_LITERAL("sim");
}

int part_of(struct bytes topic, int32_t index)
{
	for (unsigned int p = 0; p < PARTS; p++)
		if (bytes_equal(bytes_str(topic_names[part_topic(p)]), topic) && part_index(p) == index)
			return (int)p;
	return -1;
}

static struct bytes topic_name(struct world *w, struct bytes name, const struct uuid *id)
{
	const struct image_topic *t = uuid_is_zero(id) ? NULL : image_topic_by_id(w->image, id);
	return t != NULL ? t->name : name;
}

static bool log_mapped(int32_t code)
{
	return code == 15 || code == 16 || code == -1;
}

static void check_commit(struct conn *c, struct asked *a, const struct offset_commit_response *r)
{
	struct world *w = c->w;
	for (int32_t t = 0; t < r->topics_len; t++) {
		for (int32_t i = 0; i < r->topics[t].partitions_len; i++) {
			int p = part_of(topic_name(w, r->topics[t].name, &r->topics[t].topic_id), r->topics[t].partitions[i].partition_index);
			int32_t code = r->topics[t].partitions[i].error_code, want = a->expect.code;
			if (p < 0) {
				REQUIRE(w, "commit-to-nothing", code == 3 || code == 100, "a partition that does not exist got %d", code);
				continue;
			}
			c->w->step.code = code;
			if (a->group < 0 || code == 12)
				continue;
			REQUIRE(w, "unexpected-code", want == EXPECT_ANY || code == want || (a->expect.log_may_fail && log_mapped(code)),
				"OffsetCommit of %s generation %d got %d instead of %d", a->member, a->generation, code, want);
			if (code != 0 || a->offsets[p] < 0)
				continue;
			uint64_t at = w->offset_position[a->offsets[p]];
			REQUIRE(w, "answered-before-durable", at != 0 && at <= w->disk.durable, "commit of offset %lld", (long long)a->offsets[p]);
			int64_t before = w->acked[a->group][p];
			if (before < 0 || w->offset_position[before] < at)
				w->acked[a->group][p] = a->offsets[p];
		}
	}
}

static void check_fetched(struct world *w, const struct asked *a, struct bytes topic, int32_t index, int64_t offset, int32_t epoch, struct bytes metadata)
{
	int p = part_of(topic, index);
	if (p < 0 || a->group < 0)
		return;
	uint64_t at = offset >= 0 && (uint64_t)offset < w->offset_cap ? w->offset_position[offset] : 0;
	REQUIRE(w, "offset-lost", at >= a->least[p] || (at == 0 && w->tombstones[a->group][p] >= a->least[p]), "group %d partition %d: fetched %lld, older than what was appended before", a->group, p,
		(long long)offset);
	if (at == 0) {
		REQUIRE(w, "offset-invented", offset == -1, "group %d partition %d: %lld", a->group, p, (long long)offset);
		return;
	}
	REQUIRE(w, "offset-epoch", a->version < 5 || epoch == w->offset_epoch[offset], "%lld: leader epoch %d", (long long)offset, epoch);
	REQUIRE(w, "offset-metadata", bytes_equal(metadata, offset % 3 == 0 ? BYTES_EMPTY : BYTES_LITERAL("sim")), "%lld: %.*s", (long long)offset, metadata.len, metadata.p);
	struct record_key key;
	REQUIRE(w, "offset-not-durable", at <= w->disk.durable, "%lld", (long long)offset);
	CHECK(record_key_decode(&key, w->disk.entries[at - 1].e.key));
	REQUIRE(w, "offset-of-another", bytes_equal(key.group, w->group_id[a->group]) && bytes_equal(key.topic, topic) && key.partition == index,
		"group %d partition %d got the offset of another one", a->group, p);
}

static void check_fetch(struct conn *c, const struct asked *a, const struct offset_fetch_response *r)
{
	struct world *w = c->w;
	for (int32_t t = 0; a->version < 8 && t < r->topics_len; t++)
		for (int32_t i = 0; i < r->topics[t].partitions_len; i++)
			check_fetched(w, a, r->topics[t].name, r->topics[t].partitions[i].partition_index, r->topics[t].partitions[i].committed_offset,
				      r->topics[t].partitions[i].committed_leader_epoch, r->topics[t].partitions[i].metadata);
	for (int32_t t = 0; r->groups_len > 0 && t < r->groups[0].topics_len; t++) {
		const struct offset_fetch_response_topics *topic = &r->groups[0].topics[t];
		for (int32_t i = 0; i < topic->partitions_len; i++)
			check_fetched(w, a, topic_name(w, topic->name, &topic->topic_id), topic->partitions[i].partition_index,
				      topic->partitions[i].committed_offset, topic->partitions[i].committed_leader_epoch, topic->partitions[i].metadata);
	}
}

/* ---- in ---- */

static void name_in_step(struct world *w, struct bytes id)
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
			int p = part_of(topic_name(c->w, in->topics[t].name, &in->topics[t].topic_id), part->partition_index);
			if (p >= 0)
				a->offsets[p] = (uint64_t)part->committed_offset < c->w->offset_cap ? part->committed_offset : -1;
		}
	return in->group_id;
}

static struct bytes facts_leave(struct conn *c, struct asked *a, const struct leave_group_request *in)
{
	if (a->version <= 2)
		name_in_step(c->w, in->member_id);
	for (int32_t i = 0; a->version >= 3 && i < in->members_len; i++) {
		name_in_step(c->w, in->members[i].member_id);
		if (!bytes_is_null(in->members[i].group_instance_id))
			name_in_step(c->w, in->members[i].group_instance_id);
	}
	return in->group_id;
}

/* The facts of a decoded request; returns its group id. */
static struct bytes facts_of(struct conn *c, struct asked *a, const void *in)
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

static uint64_t bound_of(struct world *w, const struct asked *a)
{
	uint64_t bound = w->now.us + LOG_WAIT_US + SLACK_US;
	int64_t group = w->largest_timeout_ms[a->group < 0 ? GROUPS : a->group], delay = w->plan.settings.group_initial_rebalance_delay_ms;
	if (a->api == api_key_join_group || a->api == api_key_sync_group)
		bound += (uint64_t)(group > delay ? group : delay) * US_PER_MS;
	if (a->api == api_key_fetch)
		bound += 5000 * US_PER_MS;
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
	const struct member *old = g == NULL || join->expect.immediate ? NULL : member_find_instance(g, bytes_str(join->instance));
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
	a->at = w->now.us;
	a->step = w->steps;
	c->in_call = a;
	a->group = h.served ? world_group(w, facts_of(c, a, in)) : -1;
	a->bound = bound_of(w, a);
	a->expect = expect_request(w, c, a, in);
	if ((a->api == api_key_heartbeat && (a->expect.code == 0 || a->expect.code == 27)) || (a->api == api_key_offset_commit && a->expect.code == 0 && reaches_group(a)))
		audit_life(w, a->group, a->member);
	w->step.group = a->group;
	w->step.api = a->api;
	w->step.code = a->expect.code; /* until the answer says so itself */
	if (a->group >= 0 && a->api == api_key_join_group && a->has_instance && a->member[0] == '\0')
		fence_parked(w, a);
	if (a->group >= 0 && a->api == api_key_sync_group)
		note_assignment(c, a, in);
	if (a->group >= 0 && a->api == api_key_offset_fetch)
		remember_least(w, a);
	if (a->api == api_key_join_group) {
		name_in_step(w, bytes_str(a->member));
		if (a->has_instance)
			name_in_step(w, bytes_str(a->instance));
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

/* ---- out ---- */

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

static void check_answer(struct conn *c, struct asked *a, const void *out)
{
	struct world *w = c->w;
	int32_t code = code_of(a, out), want = a->expect.code;
	if (c->in_call == a && code != EXPECT_ANY)
		w->step.code = code;
	if (w->trace)
		trace(w, "conn %u -> api %d v%d #%d error %d", c->number, a->api, a->version, a->correlation_id, code);
	if (a->api == api_key_offset_commit)
		check_commit(c, a, out);
	if (a->api == api_key_offset_fetch)
		check_fetch(c, a, out);
	if (a->group < 0)
		return;
	if (want >= -1 && code != EXPECT_ANY)
		REQUIRE(w, "unexpected-code", code == want || (a->expect.log_may_fail && log_mapped(code)), "api %d v%d of %s generation %d got %d instead of %d", a->api, a->version, a->member,
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
	if (a->api == api_key_join_group)
		check_join(c, a, out);
	if (a->api == api_key_sync_group)
		check_sync(c, a, out);
	if (a->api == api_key_sync_group && code == 0 && want == EXPECT_ANY && c->in_call != a)
		audit_life(w, a->group, a->member);
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
			REQUIRE(w, "answer-late", w->now.us <= a->bound, "connection %u: api %d v%d of %s waits since %llu us", c->number, a->api,
				a->version, a->member, (unsigned long long)(w->now.us - a->at));
	}
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
	for (int g = 0; g < GROUPS; g++) {
		for (unsigned int p = 0; p < PARTS; p++) {
			uint64_t acked = w->acked[g][p] >= 0 ? w->offset_position[w->acked[g][p]] : 0;
			if (w->tombstones[g][p] > w->disk.len)
				w->tombstones[g][p] = 0;
			if (w->appended[g][p] > w->disk.len)
				w->appended[g][p] = acked > w->tombstones[g][p] ? acked : w->tombstones[g][p];
		}
	}
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
