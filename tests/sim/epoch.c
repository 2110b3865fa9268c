/*
 * epoch.c - generations: what all answers of one generation say fits together. One leader, one protocol, and for each member the assignment that one
 * and the same SyncGroup of the leader gave it, durable before anybody hears of it.
 */
#include "watch.h"

/* Same member, or the same static member after a restart: ids are the instance id and 37 more characters. */
static bool same_member(const char *a, const char *b)
{
	size_t n = strlen(a);
	return strcmp(a, b) == 0 || (strncmp(a, "inst", 4) == 0 && n > 37 && n == strlen(b) && strncmp(a, b, n - 37) == 0);
}

static struct epoch *epoch_of(struct world *w, int group, int32_t generation)
{
	struct epoch *e = &w->epochs[group][(uint32_t)generation % EPOCHS];
	return e->generation == generation && generation > 0 ? e : NULL;
}

void epoch_reset(struct epoch *e)
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
void epoch_note_assignment(struct conn *c, const struct asked *a, const struct sync_group_request *in)
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

void epoch_check_sync(struct conn *c, const struct asked *a, const struct sync_group_response *r)
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

void epoch_check_join(struct conn *c, struct asked *a, const struct join_group_response *r)
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
