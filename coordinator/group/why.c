/*
 * why.c - what happened to a group and its members, for an administrator: the last rebalances, whom the group waits for, who is gone and for what
 * reason. Where nothing is known, it says since when it would be.
 */
#include "coordinator/group/operate.h"

struct why {
	struct admin *a;
	struct shard *shard;
	struct now now;
	unsigned int told; /* items about the member that was asked for */
};

static void why_put_who(struct admin_item *item, struct bytes member, struct bytes instance, struct bytes client, struct bytes host)
{
	admin_put(item, "member", member);
	admin_put(item, "instance", instance);
	admin_put(item, "client", client);
	admin_put(item, "host", host);
}

static void why_put_member(struct admin_item *item, const struct member *m, struct now now)
{
	why_put_who(item, m->id, m->instance_id, m->client_id, m->host);
	admin_put_time(item, "seen_ms", member_seen_ms(m, now));
}

/* ---- the group, and its rebalances ---- */

static void why_group(struct why *why, const struct group *g)
{
	struct admin_item item = admin_item_of("group");
	admin_put(&item, "group", g->id);
	admin_put(&item, "state", bytes_str(group_state_name(g->state)));
	admin_put_time(&item, "since_ms", g->state_ms);
	admin_put_number(&item, "generation", g->generation);
	admin_put_number(&item, "members", g->members_len);
	admin_put(&item, "protocol", g->protocol);
	if (g->leader != NULL)
		admin_put(&item, "leader", g->leader->id);
	why->a->item(why->a, &item);
}

static void why_put_rebalance(struct admin_item *item, const struct journal_event *e)
{
	admin_put(item, "cause", bytes_str(journal_cause_text(e->cause)));
	why_put_who(item, e->member_id, e->instance_id, e->client_id, e->host);
	admin_put_time(item, "start_ms", e->start_ms);
}

static void why_open(struct why *why, const struct group *g)
{
	const struct journal_event *e = g->journal.open;
	struct admin_item item = admin_item_of("rebalance-open");
	if (e == NULL)
		return;
	why_put_rebalance(&item, e);
	admin_put_number(&item, "running_ms", (int64_t)(why->now.us - e->start_us) / US_PER_MS);
	admin_put_number(&item, "members", g->members_len);
	admin_put_number(&item, "joined", g->waiting);
	why->a->item(why->a, &item);
}

static void why_rebalance(void *arg, const struct journal_event *e)
{
	struct why *why = arg;
	struct admin_item item = admin_item_of("rebalance");
	why_put_rebalance(&item, e);
	admin_put_time(&item, "end_ms", e->start_ms + (int64_t)(e->duration_us / US_PER_MS));
	admin_put_number(&item, "took_ms", (int64_t)(e->duration_us / US_PER_MS));
	admin_put_number(&item, "generation", e->generation);
	admin_put_number(&item, "members", e->members);
	admin_put_number(&item, "late", e->late);
	admin_put(&item, "waited_for", e->waited_for);
	admin_put_time(&item, "waited_since_ms", bytes_is_empty(e->waited_for) ? -1 : e->start_ms);
	admin_put(&item, "protocol", e->protocol);
	admin_put(&item, "leader", e->leader);
	why->a->item(why->a, &item);
}

/* ---- whom it waits for ---- */

static struct admin_item why_waiting_item(const struct group *g, const char *what, int64_t since_ms)
{
	struct admin_item item = admin_item_of("waiting");
	admin_put(&item, "group", g->id);
	admin_put(&item, "for", bytes_str(what));
	admin_put_time(&item, "since_ms", since_ms);
	return item;
}

static void why_waiting(struct why *why, const struct group *g)
{
	const struct journal_event *open = g->journal.open;
	int64_t since_ms = g->state == GROUP_PREPARING && open != NULL ? open->start_ms : g->state_ms;
	for (uint32_t i = 0; i < g->members_len; i++) {
		const struct member *m = g->members[i];
		bool joins = g->state == GROUP_PREPARING && m->join == NULL;
		bool leads = g->state == GROUP_COMPLETING && g->leader == m && !g->assignment_written;
		if (!joins && !leads && !member_unsynced(m))
			continue;
		struct admin_item item = why_waiting_item(g, joins ? "join" : leads ? "assignment" : "sync", since_ms);
		why_put_member(&item, m, why->now);
		why->a->item(why->a, &item);
	}
	const struct pending *p;
	LIST_FOREACH(p, &g->pending, link) {
		struct admin_item item = why_waiting_item(g, "handed-out-id", p->since_ms);
		admin_put(&item, "member", p->id);
		why->a->item(why->a, &item);
	}
}

/* ---- one member ---- */

static bool why_is_asked(const struct admin *a, struct bytes member_id, struct bytes instance_id)
{
	struct bytes id = {a->member_id.p, a->member_id.len < REMOVAL_TEXT_MAX ? a->member_id.len : REMOVAL_TEXT_MAX};
	if (!bytes_is_null(a->member_id))
		return bytes_equal(member_id, id);
	return bytes_is_null(a->instance_id) || bytes_equal(instance_id, a->instance_id);
}

static void why_removed(void *arg, const struct removal *r)
{
	struct why *why = arg;
	struct admin_item item = admin_item_of("removed");
	if (!why_is_asked(why->a, r->member_id, r->instance_id))
		return;
	admin_put(&item, "group", r->group_id);
	why_put_who(&item, r->member_id, r->instance_id, r->client_id, r->host);
	admin_put_time(&item, "at_ms", r->at_ms);
	admin_put_time(&item, "seen_ms", r->seen_ms);
	admin_put_number(&item, "generation", r->generation);
	admin_put(&item, "reason", bytes_str(removal_event(r->reason)));
	admin_put(&item, "because", bytes_str(removal_text(r->reason)));
	admin_put_number(&item, "answered", removal_code(r->reason));
	if (!bytes_is_empty(r->detail))
		admin_put(&item, r->reason == REMOVAL_REPLACED ? "successor" : "detail", r->detail);
	why->told++;
	why->a->item(why->a, &item);
}

static void why_live(struct why *why, struct group *g)
{
	const struct admin *a = why->a;
	const struct member *m = !bytes_is_null(a->member_id) ? member_find(g, a->member_id) : member_find_instance(g, a->instance_id);
	const struct pending *p = bytes_is_null(a->member_id) ? NULL : pending_find(g, a->member_id);
	struct admin_item item = admin_item_of("member");
	if (m == NULL && p == NULL)
		return;
	admin_put(&item, "group", g->id);
	if (m != NULL) {
		why_put_member(&item, m, why->now);
		admin_put_number(&item, "session_timeout_ms", m->session_timeout_ms);
		admin_put_number(&item, "rebalance_timeout_ms", m->rebalance_timeout_ms);
		admin_put(&item, "parked", m->join != NULL ? BYTES_LITERAL("join") : m->sync != NULL ? BYTES_LITERAL("sync") : BYTES_NULL);
	} else {
		admin_put(&item, "member", p->id);
		admin_put_time(&item, "handed_out_ms", p->since_ms);
	}
	why->told++;
	why->a->item(why->a, &item);
}

/* Nothing is known: since when it would be. */
static void why_unknown(struct why *why)
{
	const struct shard *shard = why->shard;
	int64_t since_ms = why->now.wall_ms - (int64_t)shard->settings->journal_removed_minutes * 60000;
	struct admin_item item = admin_item_of("unknown");
	since_ms = shard->removals.since_ms > since_ms ? shard->removals.since_ms : since_ms;
	since_ms = shard->made_ms > since_ms ? shard->made_ms : since_ms;
	admin_put(&item, "member", why->a->member_id);
	admin_put(&item, "instance", why->a->instance_id);
	admin_put_time(&item, "known_since_ms", since_ms);
	why->a->item(why->a, &item);
}

void admin_why(struct shard *shard, struct admin *a, struct now now)
{
	struct why why = {a, shard, now, 0};
	struct group *g = bytes_is_null(a->group_id) ? NULL : group_find(shard, a->group_id);
	bool one = !bytes_is_null(a->member_id) || !bytes_is_null(a->instance_id);
	if (g != NULL && one)
		why_live(&why, g);
	removals_each(shard, a->group_id, why_removed, &why, now);
	if (one && why.told == 0)
		why_unknown(&why);
	if (g != NULL) {
		why_group(&why, g);
		why_open(&why, g);
		why_waiting(&why, g);
		journal_each(&g->journal, why_rebalance, &why);
	}
	bool known = g != NULL || why.told > 0;
	admin_finish(a, known ? ERROR_NONE : ERROR_GROUP_ID_NOT_FOUND, now, "%s", known ? "" : "no such group, and none of its members is remembered");
}

void admin_waiting(struct shard *shard, struct admin *a, struct now now)
{
	struct why why = {a, shard, now, 0};
	const struct group *g = group_find(shard, a->group_id);
	if (g != NULL)
		why_waiting(&why, g);
	admin_finish(a, g != NULL ? ERROR_NONE : ERROR_GROUP_ID_NOT_FOUND, now, "%s", g != NULL ? "" : "no such group");
}
