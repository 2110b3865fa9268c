/*
 * audit.c - the state itself, after every step: counts, timers, complete join phases, parked requests; and at the end that nothing is left.
 */
#include "sim.h"

static void audit_timer(struct world *w, const struct purgatory_op *op, const char *what)
{
	uint64_t due = op->kind->patient && op->deadline < w->held_until ? w->held_until : op->deadline;
	REQUIRE(w, "timer-late", due + TICK_SLACK_US >= served(w).us || w->now.us < w->stalled_until + TICK_SLACK_US,
		"%s was due %llu us ago", what, (unsigned long long)(served(w).us - op->deadline));
}

static void audit_member(struct world *w, struct group *g, struct member *m, uint32_t i)
{
	REQUIRE(w, "member-broken", m->index == i && m->group == g && m->tag != 0, "member %u", i);
	REQUIRE(w, "parked-in-wrong-state", m->join == NULL || g->state == GROUP_PREPARING || g->answering, "join parked in %s", group_state_name(g->state));
	REQUIRE(w, "parked-in-wrong-state", m->sync == NULL || g->state == GROUP_COMPLETING || (g->queued && g->state != GROUP_EMPTY), "sync parked in %s",
		group_state_name(g->state));
	REQUIRE(w, "parked-twice", m->join == NULL || m->sync == NULL, "%.*s", m->id.len, m->id.p);
	REQUIRE(w, "member-without-timer", purgatory_waiting(&m->session) || m->join != NULL || m->sync != NULL || g->state == GROUP_DEAD,
		"%.*s", m->id.len, m->id.p);
	REQUIRE(w, "member-not-found", member_find(g, m->id) == m, "by id");
	REQUIRE(w, "member-not-found", bytes_is_null(m->instance_id) || member_find_instance(g, m->instance_id) == m, "by instance id");
	REQUIRE(w, "ghost", !m->unnamed || m->join != NULL, "%.*s has neither a connection nor a client that knows its id", m->id.len, m->id.p);
	if (!purgatory_waiting(&m->session))
		return;
	int64_t longest = m->is_new ? MEMBER_NEW_TIMEOUT_MS : g->shard->settings->group_max_session_timeout_ms;
	audit_timer(w, &m->session, "a session");
	REQUIRE(w, "timer-too-far", m->session.deadline <= served(w).us + (uint64_t)longest * US_PER_MS, "a session, %llu us away",
		(unsigned long long)(m->session.deadline - served(w).us));
}

static void audit_group(struct table_node *n, void *arg)
{
	struct world *w = arg;
	struct group *g = CONTAINER_OF(n, struct group, node);
	uint32_t waiting = 0, syncing = 0, unsynced = 0, pending = 0;
	const struct pending *p;
	bool leader = false;
	for (uint32_t i = 0; i < g->members_len; i++) {
		struct member *m = g->members[i];
		audit_member(w, g, m, i);
		waiting += m->join != NULL;
		syncing += m->sync != NULL;
		unsynced += member_unsynced(m);
		leader |= m == g->leader;
		w->in_members += (m->join != NULL) + (m->sync != NULL);
	}
	LIST_FOREACH(p, &g->pending, link) {
		pending++;
		audit_timer(w, &p->session, "a pending id");
		REQUIRE(w, "member-without-timer", purgatory_waiting(&p->session), "pending id");
	}
	REQUIRE(w, "leader-not-member", leader || g->leader == NULL, "the leader is no member");
	REQUIRE(w, "no-leader", g->leader != NULL || g->members_len == 0 || g->state == GROUP_DEAD || w->restarts > 0, "members but no leader");
	REQUIRE(w, "count-wrong", waiting == g->waiting && syncing == g->syncing && unsynced == g->unsynced && pending == g->pending_len, "waiting %u/%u unsynced %u/%u pending %u/%u",
		g->waiting, waiting, g->unsynced, unsynced, g->pending_len, pending);
	REQUIRE(w, "slices", !g->running && (!g->closing || g->state == GROUP_PREPARING) && ((!g->answering && g->draft == NULL) || g->state == GROUP_COMPLETING) &&
		(!g->expelling || g->state == GROUP_COMPLETING || g->state == GROUP_STABLE), "work that does not belong to %s", group_state_name(g->state));
	REQUIRE(w, "slices", g->queued || !(g->closing || g->answering || g->expelling || g->draft != NULL), "work that nobody does");
	REQUIRE(w, "group-timer", purgatory_waiting(&g->join) == (g->state == GROUP_PREPARING && !g->closing), "join timer in %s", group_state_name(g->state));
	REQUIRE(w, "group-timer", !purgatory_waiting(&g->sync) || g->state == GROUP_COMPLETING || g->state == GROUP_STABLE, "sync timer in %s",
		group_state_name(g->state));
	REQUIRE(w, "group-timer", g->state != GROUP_COMPLETING || unsynced == 0 || g->expelling || purgatory_waiting(&g->sync), "members without sync and no timer");
	if (purgatory_waiting(&g->join))
		audit_timer(w, &g->join, "a join phase");
	if (purgatory_waiting(&g->sync))
		audit_timer(w, &g->sync, "a sync phase");
	REQUIRE(w, "members-in-empty", g->state != GROUP_EMPTY || g->members_len == 0, "an empty group has members");
	REQUIRE(w, "join-not-completed", g->state != GROUP_PREPARING || g->previous_state == GROUP_EMPTY || g->closing || strcmp(g->join.kind->name, "join window") == 0 ||
		waiting < g->members_len || pending > 0 || waiting == 0, "everybody joined, nobody is missing, and nothing happens");
}

void audit_step(struct world *w)
{
	uint64_t parked = 0, waiting = 0;
	w->in_members = 0;
	for (unsigned int i = 0; i < SHARDS; i++) {
		struct shard *s = world_shard_number(w, i);
		if (!shard_is_loading(s))
			table_each(&s->groups, audit_group, w);
	}
	for (int g = 0; g < GROUPS; g++)
		audit_ours(w, g);
	audit_topics(w);
	for (unsigned int i = 0; i < w->conns_len; i++) {
		const struct session *s = w->conns[i]->session;
		if (s == NULL || w->conns[i]->want_abort)
			continue;
		for (const struct session_request *sr = s->oldest; sr != NULL; sr = sr->next)
			parked += sr->parked;
		waiting += s->waiting_group;
		REQUIRE(w, "hold-forgotten", w->conns[i]->held || !session_must_hold(s) || s->closing || w->conns[i]->want_close, "connection %u", w->conns[i]->number);
		REQUIRE(w, "hold-for-nothing", !w->conns[i]->held || session_must_hold(s) || s->closing || w->conns[i]->want_close, "connection %u", w->conns[i]->number);
	}
	REQUIRE(w, "parked-count", parked <= w->stats.requests_parked_now, "sessions hold %llu, counted are %llu", (unsigned long long)parked,
		(unsigned long long)w->stats.requests_parked_now);
	REQUIRE(w, "parked-leak", w->in_members <= waiting, "groups hold %llu requests, sessions %llu", (unsigned long long)w->in_members,
		(unsigned long long)waiting);
}

static unsigned int timers(const struct wheel *wheel)
{
	unsigned int n = 0;
	for (const struct wheel_timer *t = wheel->ripe.next; t != &wheel->ripe; t = t->next)
		n++;
	for (unsigned int level = 0; level < WHEEL_LEVELS; level++)
		for (unsigned int s = 0; s < WHEEL_SLOTS; s++)
			for (const struct wheel_timer *t = wheel->slot[level][s].next; t != &wheel->slot[level][s]; t = t->next)
				n++;
	return n;
}

/* Everybody was silent for longer than any timeout. */
void audit_end(struct world *w)
{
	audit_deep(w);
	REQUIRE(w, "parked-leak", w->stats.requests_parked_now == 0, "%llu requests are still parked", (unsigned long long)w->stats.requests_parked_now);
	REQUIRE(w, "member-leak", w->stats.group_members_now == 0, "%llu members are left", (unsigned long long)w->stats.group_members_now);
	for (unsigned int i = 0; i < SHARDS; i++) {
		struct shard *s = world_shard_number(w, i);
		REQUIRE(w, "member-leak", s->members.count == 0 && s->instances.count == 0 && s->pendings.count == 0 && s->protocols.count == 0,
			"shard %u: %zu members, %zu instances, %zu pending, %zu protocols", i, (size_t)s->members.count, (size_t)s->instances.count,
			(size_t)s->pendings.count, (size_t)s->protocols.count);
		unsigned int walks = (w->plan.settings.offsets_retention_check_interval_ms > 0) + (s->gone.len > 0 && disk_may_refuse(&w->disk));
		REQUIRE(w, "timer-leak", timers(&s->purgatory.wheel) <= walks, "shard %u still has %u timers", i, timers(&s->purgatory.wheel));
		REQUIRE(w, "write-leak", s->writes.first == NULL && s->barriers == NULL, "shard %u still waits for the log", i);
	}
}
