/*
 * expect.c - what a request must be answered, worked out from the rules (group-protocol 1.4 to 1.11) and the state of the group just before the
 * request is delivered. Written apart from the engine: it walks over the members instead of asking tables.
 */
#include "sim.h"

static const struct expect anything = {.code = EXPECT_ANY, .generation_exact = -1};

static struct expect code(int32_t c)
{
	struct expect e = anything;
	e.code = c;
	e.immediate = true;
	return e;
}

static struct expect parked(int32_t generation_least)
{
	struct expect e = anything;
	e.code = EXPECT_PARK;
	e.generation_least = generation_least;
	return e;
}

static struct expect success(int32_t generation)
{
	struct expect e = code(0);
	e.generation_exact = generation;
	return e;
}

static struct member *with_id(const struct group *g, struct bytes id)
{
	for (uint32_t i = 0; i < g->members_len; i++)
		if (bytes_equal(g->members[i]->id, id))
			return g->members[i];
	return NULL;
}

static struct member *with_instance(const struct group *g, struct bytes instance)
{
	for (uint32_t i = 0; i < g->members_len && !bytes_is_null(instance); i++)
		if (bytes_equal(g->members[i]->instance_id, instance))
			return g->members[i];
	return NULL;
}

static bool is_pending(const struct group *g, struct bytes id)
{
	const struct pending *p;
	LIST_FOREACH(p, &g->pending, link)
		if (bytes_equal(p->id, id))
			return true;
	return false;
}

/* Member validation: 0, 25 or 82. */
static int32_t identity(const struct group *g, struct bytes id, struct bytes instance)
{
	if (!bytes_is_null(instance)) {
		const struct member *owner = with_instance(g, instance);
		if (owner == NULL)
			return 25;
		if (!bytes_equal(owner->id, id))
			return 82;
	}
	return with_id(g, id) == NULL ? 25 : 0;
}

/* ---- Heartbeat ---- */

static int32_t heartbeat_code(const struct group *g, const struct heartbeat_request *in)
{
	if (g == NULL)
		return 25;
	if (g->state == GROUP_DEAD)
		return 15;
	int32_t error = identity(g, in->member_id, in->group_instance_id);
	if (error != 0)
		return error;
	if (in->generation_id != g->generation)
		return 22;
	return g->state == GROUP_EMPTY ? 25 : g->state == GROUP_PREPARING ? 27 : 0;
}

/* ---- OffsetCommit: the group's code ---- */

static struct expect commit_code(struct world *w, const struct group *g, const struct asked *a, const struct offset_commit_request *in)
{
	int32_t generation = in->generation_id_or_member_epoch;
	struct expect ok = anything;
	ok.code = 0;
	ok.log_may_fail = disk_may_refuse(&w->disk);
	if (g == NULL && w->stopping)
		return code(15);
	if (g == NULL)
		return generation < 0 ? ok : code(a->version >= 9 ? 69 : 22);
	if (g->state == GROUP_DEAD)
		return code(15);
	if (generation < 0 && g->state == GROUP_EMPTY)
		return ok;
	if (generation < 0 && bytes_is_empty(in->member_id) && bytes_is_null(in->group_instance_id))
		return code(25);
	int32_t error = identity(g, in->member_id, in->group_instance_id);
	if (error != 0)
		return code(error);
	if (generation != g->generation)
		return code(22);
	return g->state == GROUP_COMPLETING ? code(27) : ok;
}

/* ---- SyncGroup ---- */

static bool differs(struct bytes asked, struct bytes have)
{
	return !bytes_is_null(asked) && !bytes_is_null(have) && !bytes_equal(asked, have);
}

static struct expect sync_code(const struct conn *c, const struct group *g, const struct asked *a, const struct sync_group_request *in)
{
	if (a->version >= 5 && (bytes_is_null(in->protocol_type) || bytes_is_null(in->protocol_name)))
		return code(23);
	if (g == NULL || g->state == GROUP_EMPTY)
		return code(25);
	if (g->state == GROUP_DEAD)
		return code(15);
	int32_t error = identity(g, in->member_id, in->group_instance_id);
	if (error != 0)
		return code(error);
	if (in->generation_id != g->generation)
		return code(22);
	if (differs(in->protocol_type, g->protocol_type) || differs(in->protocol_name, g->protocol))
		return code(23);
	if (g->state == GROUP_PREPARING || (g->state == GROUP_COMPLETING && c->eof))
		return code(27);
	return g->state == GROUP_STABLE ? code(0) : anything;
}

/* ---- JoinGroup ---- */

/* At least one name is offered by every member; the type is the group's. */
static bool fits(const struct group *g, const struct join_group_request *in)
{
	if (g == NULL || (g->state == GROUP_EMPTY && g->members_len == 0))
		return !bytes_is_empty(in->protocol_type) && in->protocols_len > 0;
	if (bytes_is_null(g->protocol_type) || !bytes_equal(g->protocol_type, in->protocol_type))
		return false;
	for (int32_t i = 0; i < in->protocols_len; i++) {
		uint32_t offering = 0;
		for (uint32_t m = 0; m < g->members_len; m++)
			for (uint32_t o = 0; o < g->members[m]->offers->len; o++)
				offering += bytes_equal(g->members[m]->offers->list[o].protocol->name, in->protocols[i].name);
		if (offering == g->members_len)
			return true;
	}
	return false;
}

static bool same_offers(const struct member *m, const struct join_group_request *in)
{
	if (m->offers->len != (uint32_t)in->protocols_len)
		return false;
	for (uint32_t i = 0; i < m->offers->len; i++)
		if (!bytes_equal(m->offers->list[i].protocol->name, in->protocols[i].name) ||
		    !bytes_equal(m->offers->list[i].metadata, in->protocols[i].metadata))
			return false;
	return true;
}

static bool room(const struct world *w, const struct group *g, const struct member *m)
{
	uint32_t max = (uint32_t)w->plan.settings.group_max_size, waiting = 0;
	if (g == NULL || g->state == GROUP_EMPTY || g->state == GROUP_DEAD)
		return true;
	for (uint32_t i = 0; i < g->members_len; i++)
		waiting += g->members[i]->join != NULL;
	if (g->state == GROUP_PREPARING)
		return (m != NULL && m->join != NULL) || waiting < max;
	return m != NULL || g->members_len < max;
}

static bool ids_are_out(const struct world *w, const struct group *g)
{
	int32_t max = w->plan.settings.group_max_pending_members, out = 0;
	const struct pending *p;
	if (g != NULL)
		LIST_FOREACH(p, &g->pending, link)
			out++;
	return max > 0 && out >= max;
}

static struct expect join_new(const struct world *w, const struct conn *c, const struct group *g, const struct asked *a, const struct join_group_request *in)
{
	if (!fits(g, in))
		return code(23);
	bool is_static = !bytes_is_null(in->group_instance_id);
	if (!is_static && a->version >= 4)
		return code(ids_are_out(w, g) ? 15 : 79);
	if (c->eof)
		return code(27);
	const struct member *owner = g != NULL && is_static ? with_instance(g, in->group_instance_id) : NULL;
	if (owner == NULL || g->state != GROUP_STABLE)
		return parked(g == NULL ? 1 : g->generation + 1);
	/* replaced in Stable: with or without a rebalance, which depends on the vote; without one the record comes first */
	struct expect e = anything;
	e.generation_least = g->generation;
	e.durable = true;
	return e;
}

static struct expect join_named(const struct conn *c, const struct group *g, const struct join_group_request *in)
{
	if (!fits(g, in))
		return code(23);
	if (is_pending(g, in->member_id))
		return !bytes_is_null(in->group_instance_id) ? code(-1) : c->eof ? code(27) : parked(g->generation + 1);
	int32_t error = identity(g, in->member_id, in->group_instance_id);
	if (error != 0)
		return code(error);
	const struct member *m = with_id(g, in->member_id);
	bool same = same_offers(m, in);
	if (g->state == GROUP_EMPTY)
		return code(25);
	if (same && (g->state == GROUP_COMPLETING || (g->state == GROUP_STABLE && g->leader != m)))
		return success(g->generation);
	return c->eof ? code(27) : parked(g->generation + 1);
}

static struct expect join_code(struct world *w, const struct conn *c, const struct group *g, const struct asked *a, const struct join_group_request *in)
{
	const struct group_settings *s = &w->plan.settings;
	bool named = !bytes_is_empty(in->member_id);
	if (in->session_timeout_ms < s->group_min_session_timeout_ms || in->session_timeout_ms > s->group_max_session_timeout_ms)
		return code(26);
	if (g == NULL && named)
		return code(25);
	if (g == NULL && w->stopping)
		return code(15);
	if (g != NULL && !room(w, g, named ? with_id(g, in->member_id) : with_instance(g, in->group_instance_id)))
		return code(81);
	if (g != NULL && g->state == GROUP_DEAD)
		return code(15);
	return named ? join_named(c, g, in) : join_new(w, c, g, a, in);
}

/* ---- LeaveGroup, single form ---- */

static struct expect leave_code(const struct group *g, const struct asked *a, const struct leave_group_request *in)
{
	if (g != NULL && g->state == GROUP_DEAD)
		return code(15);
	if (a->version >= 3)
		return code(0);
	if (g == NULL || bytes_is_empty(in->member_id))
		return code(25);
	return code(is_pending(g, in->member_id) || with_id(g, in->member_id) != NULL ? 0 : 25);
}

/* ---- DeleteGroups, OffsetDelete ---- */

static struct expect delete_code(struct world *w, const struct asked *a, const struct group *g)
{
	struct expect e = anything;
	if (world_shard(w, a->group)->writes.first != NULL) /* what is on its way counts too */
		return e;
	e.log_may_fail = disk_may_refuse(&w->disk);
	e.code = g == NULL ? 69 : g->state == GROUP_DEAD ? 15 : a->api == api_key_delete_groups && g->state != GROUP_EMPTY ? 68 : 0;
	if (a->api == api_key_offset_delete && g != NULL && g->state != GROUP_EMPTY && g->state != GROUP_DEAD)
		e.code = bytes_equal(g->protocol_type, BYTES_LITERAL("consumer")) ? 0 : 68;
	return e;
}

/* Its shard is loading: nothing is known of the group. */
static struct expect loading_code(const struct world *w, const struct asked *a, const void *in)
{
	const struct group_settings *s = &w->plan.settings;
	const struct join_group_request *join = in;
	const struct sync_group_request *sync = in;
	switch (a->api) {
	case api_key_heartbeat:
		return code(0);
	case api_key_sync_group:
		return code(a->version >= 5 && (bytes_is_null(sync->protocol_type) || bytes_is_null(sync->protocol_name)) ? 23 : 27);
	case api_key_join_group:
		return code(join->session_timeout_ms < s->group_min_session_timeout_ms || join->session_timeout_ms > s->group_max_session_timeout_ms ? 26 : 14);
	case api_key_leave_group:
	case api_key_offset_commit:
		return code(14);
	case api_key_delete_groups:
	case api_key_offset_delete: {
		struct expect e = anything; /* what other shards have on its way comes first */
		e.code = 14;
		return e;
	}
	default:
		return anything;
	}
}

struct expect expect_request(struct world *w, const struct conn *c, const struct asked *a, const void *in)
{
	if (a->group < 0)
		return anything;
	if (a->loading)
		return loading_code(w, a, in);
	const struct group *g = group_find(world_shard(w, a->group), w->group_id[a->group]);
	switch (a->api) {
	case api_key_heartbeat:
		return code(heartbeat_code(g, in));
	case api_key_offset_commit:
		return commit_code(w, g, a, in);
	case api_key_sync_group:
		return sync_code(c, g, a, in);
	case api_key_join_group:
		return join_code(w, c, g, a, in);
	case api_key_leave_group:
		return leave_code(g, a, in);
	case api_key_delete_groups:
	case api_key_offset_delete:
		return delete_code(w, a, g);
	default:
		return anything;
	}
}
