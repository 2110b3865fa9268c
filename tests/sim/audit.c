/*
 * audit.c - the state itself, after every step: counts, timers, complete join phases, generations, and a reason for every member that is gone. And
 * now and then the whole: a second shard, made from nothing but the log's bytes, equals the live one.
 */
#include "sim.h"

/* ---- one group, whatever its name ---- */

static void audit_timer(struct world *w, const struct purgatory_op *op, const char *what)
{
	REQUIRE(w, "timer-late", op->deadline + TICK_SLACK_US >= w->now.us || w->now.us < w->stalled_until + TICK_SLACK_US,
		"%s was due %llu us ago", what, (unsigned long long)(w->now.us - op->deadline));
}

static void audit_member(struct world *w, struct group *g, struct member *m, uint32_t i)
{
	REQUIRE(w, "member-broken", m->index == i && m->group == g && m->tag != 0, "member %u", i);
	REQUIRE(w, "parked-in-wrong-state", m->join == NULL || g->state == GROUP_PREPARING, "join parked in %s", group_state_name(g->state));
	REQUIRE(w, "parked-in-wrong-state", m->sync == NULL || g->state == GROUP_COMPLETING, "sync parked in %s", group_state_name(g->state));
	REQUIRE(w, "member-without-timer", purgatory_waiting(&m->session) || m->join != NULL || m->sync != NULL || g->state == GROUP_DEAD,
		"%.*s", m->id.len, m->id.p);
	REQUIRE(w, "member-not-found", member_find(g, m->id) == m, "by id");
	REQUIRE(w, "member-not-found", bytes_is_null(m->instance_id) || member_find_instance(g, m->instance_id) == m, "by instance id");
	REQUIRE(w, "ghost", !m->unnamed || m->join != NULL, "%.*s has neither a connection nor a client that knows its id", m->id.len, m->id.p);
	if (!purgatory_waiting(&m->session))
		return;
	int64_t longest = m->is_new ? MEMBER_NEW_TIMEOUT_MS : g->shard->settings->group_max_session_timeout_ms;
	audit_timer(w, &m->session, "a session");
	REQUIRE(w, "timer-too-far", m->session.deadline <= w->now.us + (uint64_t)longest * US_PER_MS, "a session, %llu us away",
		(unsigned long long)(m->session.deadline - w->now.us));
}

static void audit_group(struct table_node *n, void *arg)
{
	struct world *w = arg;
	struct group *g = CONTAINER_OF(n, struct group, node);
	uint32_t waiting = 0, unsynced = 0, pending = 0;
	const struct pending *p;
	bool leader = false;
	for (uint32_t i = 0; i < g->members_len; i++) {
		struct member *m = g->members[i];
		audit_member(w, g, m, i);
		waiting += m->join != NULL;
		unsynced += m->unsynced;
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
	REQUIRE(w, "count-wrong", waiting == g->waiting && unsynced == g->unsynced && pending == g->pending_len, "waiting %u/%u unsynced %u/%u pending %u/%u",
		g->waiting, waiting, g->unsynced, unsynced, g->pending_len, pending);
	REQUIRE(w, "group-timer", purgatory_waiting(&g->join) == (g->state == GROUP_PREPARING), "join timer in %s", group_state_name(g->state));
	REQUIRE(w, "group-timer", !purgatory_waiting(&g->sync) || g->state == GROUP_COMPLETING || g->state == GROUP_STABLE, "sync timer in %s",
		group_state_name(g->state));
	REQUIRE(w, "group-timer", g->state != GROUP_COMPLETING || unsynced == 0 || purgatory_waiting(&g->sync), "members without sync and no timer");
	if (purgatory_waiting(&g->join))
		audit_timer(w, &g->join, "a join phase");
	if (purgatory_waiting(&g->sync))
		audit_timer(w, &g->sync, "a sync phase");
	REQUIRE(w, "members-in-empty", g->state != GROUP_EMPTY || g->members_len == 0, "an empty group has members");
	REQUIRE(w, "join-not-completed", g->state != GROUP_PREPARING || g->previous_state == GROUP_EMPTY || waiting < g->members_len || pending > 0 ||
		waiting == 0, "everybody joined, nobody is missing, and nothing happens");
}

/* ---- our groups: from step to step ---- */

static bool named(const struct step *s, const struct shadow *m)
{
	for (unsigned int i = 0; i < s->named_len; i++)
		if (strcmp(s->named[i], m->id) == 0 || (m->is_static && strcmp(s->named[i], m->instance) == 0))
			return true;
	return false;
}

static int64_t least_timeout(const struct group *g)
{
	int64_t least = INT64_MAX;
	for (uint32_t i = 0; i < g->members_len; i++)
		least = g->members[i]->rebalance_timeout_ms < least ? g->members[i]->rebalance_timeout_ms : least;
	return least;
}

/* May this member be gone? */
static bool removal_allowed(struct world *w, const struct shadows *s, const struct shadow *m)
{
	uint64_t now = w->now.us;
	if (s->timeout_before <= 1 && s->generation != s->generation_before) /* formed, and whoever is left has no time to sync */
		return true;
	if (w->step.api == api_key_leave_group && named(&w->step, m))
		return true;
	if (w->step.api == api_key_join_group && w->step.code == 81 && named(&w->step, m))
		return true;
	if (m->is_new && m->unnamed && w->step.closes)
		return true;
	if (m->is_new && now >= m->since + (uint64_t)MEMBER_NEW_TIMEOUT_MS * US_PER_MS)
		return true;
	if (!m->parked_join && !m->parked_sync && now >= m->life_until)
		return true;
	if (s->state == GROUP_PREPARING && !m->parked_join && !m->is_static && (s->initial || now >= s->preparing_until))
		return true;
	return (s->state == GROUP_COMPLETING || s->state == GROUP_STABLE) && m->unsynced &&
	       now >= s->completing_since + (uint64_t)s->timeout_at_completing * US_PER_MS;
}

static struct shadow *shadow_find(struct shadows *s, const struct member *m)
{
	for (unsigned int i = 0; i < s->len; i++)
		if (s->list[i].tag == m->tag)
			return &s->list[i];
	return NULL;
}

static void shadow_take(struct world *w, struct shadows *s, const struct member *m, bool formed)
{
	struct shadow *k = shadow_find(s, m);
	if (k == NULL) {
		if (s->len == ARRAY_LEN(s->list))
			return;
		k = &s->list[s->len++];
		memset(k, 0, sizeof(*k));
		k->tag = m->tag;
		k->since = w->now.us;
		text_of(k->id, m->id);
		text_of(k->instance, m->instance_id);
		k->is_static = !bytes_is_null(m->instance_id);
	}
	if (m->is_new && k->parked_join && m->join == NULL) /* its connection closed: it has one session to come back */
		k->life_until = w->now.us + (uint64_t)m->session_timeout_ms * US_PER_MS;
	k->seen = true;
	k->is_new = m->is_new;
	k->unnamed = m->unnamed;
	k->parked_join = m->join != NULL;
	k->parked_sync = m->sync != NULL;
	k->unsynced = m->unsynced;
	if (m->session_timeout_ms < k->session_ms) /* asked for a shorter one: the next sign of life counts anew */
		k->life_until = 0;
	k->session_ms = m->session_timeout_ms;
	if (formed)
		k->life_until = w->now.us + (uint64_t)m->session_timeout_ms * US_PER_MS;
	if (m->join == NULL && purgatory_waiting(&m->session))
		REQUIRE(w, "session-too-short", m->session.deadline >= k->life_until, "%s: session ends %llu us too early", k->id,
			(unsigned long long)(k->life_until - m->session.deadline));
}

static bool instance_lives(const struct group *g, const struct shadow *m)
{
	for (uint32_t i = 0; m->is_static && i < g->members_len; i++)
		if (bytes_equal(g->members[i]->instance_id, bytes_str(m->instance)))
			return true;
	return false;
}

static void audit_removals(struct world *w, struct shadows *s, const struct group *g)
{
	unsigned int kept = 0;
	for (unsigned int i = 0; i < s->len; i++) {
		struct shadow *m = &s->list[i];
		if (m->seen) {
			m->seen = false;
			if (kept != i)
				s->list[kept] = *m;
			kept++;
			continue;
		}
		REQUIRE(w, "removed-without-reason", removal_allowed(w, s, m) || instance_lives(g, m), "group %s: %s%s%s%s%s, life until %llu", group_state_name(s->state),
			m->id, m->is_new ? " new" : "", m->parked_join ? " joining" : "", m->parked_sync ? " syncing" : "",
			m->unsynced ? " unsynced" : "", (unsigned long long)m->life_until);
		memcpy(w->stale[w->stale_next++ % ARRAY_LEN(w->stale)], m->id, TEXT);
	}
	s->len = kept;
}

static void audit_phases(struct world *w, struct shadows *s, const struct group *g)
{
	uint64_t now = w->now.us;
	int64_t timeout = 0, delay = w->plan.settings.group_initial_rebalance_delay_ms;
	for (uint32_t i = 0; i < g->members_len; i++)
		if (g->members[i]->rebalance_timeout_ms > timeout)
			timeout = g->members[i]->rebalance_timeout_ms;
	bool formed = g->generation != s->generation;
	if (formed && s->state == GROUP_PREPARING && s->initial && g->members_len > 0)
		REQUIRE(w, "initial-delay", now >= s->preparing_since + (uint64_t)delay * US_PER_MS || s->pending_before > g->pending_len || s->len != g->members_len,
			"formed after %llu us", (unsigned long long)(now - s->preparing_since));
	if (formed && s->state == GROUP_PREPARING && g->state == GROUP_COMPLETING) {
		const struct shadow *leader = shadow_find(s, g->leader);
		REQUIRE(w, "absent-leader", leader == NULL || leader->parked_join || w->step.api == api_key_join_group, "%s leads and did not join", leader->id);
		REQUIRE(w, "pending-ignored", s->initial || now >= s->preparing_until || s->pending_before == 0 || g->pending_len == 0,
			"formed while %u ids that were handed out are missing", g->pending_len);
	}
	if (g->state == GROUP_PREPARING && (s->state != GROUP_PREPARING || formed)) {
		s->preparing_since = now;
		s->initial = g->previous_state == GROUP_EMPTY;
		s->preparing_until = now + (uint64_t)timeout * US_PER_MS;
		/* whoever began this may have left in the same step: the timer is older than the count of timeouts */
		if (!s->initial && purgatory_waiting(&g->join))
			s->preparing_until = g->join.deadline < s->preparing_until ? s->preparing_until : g->join.deadline;
		int64_t longest = w->largest_timeout_ms[w->step.group >= 0 ? w->step.group : GROUPS];
		if (purgatory_waiting(&g->join) && w->step.group >= 0)
			REQUIRE(w, "timer-too-far", g->join.deadline <= now + (uint64_t)(longest > delay ? longest : delay) * US_PER_MS + US_PER_MS, "a join phase");
	}
	if ((g->state == GROUP_COMPLETING || g->state == GROUP_STABLE) && formed) {
		s->completing_since = now;
		s->timeout_at_completing = timeout;
		if (purgatory_waiting(&g->sync))
			REQUIRE(w, "timer-too-far", g->sync.deadline == now + (uint64_t)timeout * US_PER_MS, "a sync phase: %lld us",
				(long long)(g->sync.deadline - now));
	}
}

static void audit_ours(struct world *w, int number)
{
	struct shadows *s = &w->shadows[number];
	struct group *g = group_find(world_shard(w, number), w->group_id[number]);
	if (g != s->group && s->group != NULL) {
		REQUIRE(w, "group-lost", w->group_tombstone[number] && s->len == 0, "group %d with %u members is gone", number, s->len);
		memset(s, 0, sizeof(*s));
		watch_group_gone(w, number);
		w->group_tombstone[number] = false;
	}
	if (g == NULL)
		return;
	if (g->state == GROUP_DEAD)
		return;
	REQUIRE(w, "generation-fell", g->generation >= s->generation, "group %d: from %d to %d", number, s->generation, g->generation);
	bool formed = g->generation != s->generation;
	struct shadows before;
	before.state = s->state;
	audit_phases(w, s, g);
	if (formed && before.state == GROUP_PREPARING)
		s->state = GROUP_PREPARING;
	for (uint32_t i = 0; i < g->members_len; i++)
		shadow_take(w, s, g->members[i], formed && g->state == GROUP_COMPLETING);
	s->generation = g->generation;
	audit_removals(w, s, g);
	s->group = g;
	s->state = g->state;
	s->generation_before = s->generation;
	s->timeout_before = least_timeout(g);
	s->pending_before = g->pending_len;
}

/* The member gave a sign of life that the rules count, in this step. */
void audit_life(struct world *w, int group, const char *member)
{
	struct shadows *s = &w->shadows[group];
	struct group *g = group_find(world_shard(w, group), w->group_id[group]);
	struct member *m = g == NULL ? NULL : member_find(g, bytes_str(member));
	struct shadow *k = m == NULL ? NULL : shadow_find(s, m);
	if (k != NULL && !m->is_new)
		k->life_until = w->now.us + (uint64_t)m->session_timeout_ms * US_PER_MS;
}

void audit_step(struct world *w)
{
	uint64_t parked = 0, waiting = 0;
	w->in_members = 0;
	for (unsigned int i = 0; i < SHARDS; i++) {
		struct shard *s = world_shard_number(w, i);
		table_each(&s->groups, audit_group, w);
	}
	for (int g = 0; g < GROUPS; g++)
		audit_ours(w, g);
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

/* ---- live == replayed ---- */

static bool at_rest(const struct group *g)
{
	return (g->state == GROUP_EMPTY || g->state == GROUP_STABLE) && g->writes == 0 && !g->unsaved;
}

static void compare_member(struct world *w, const struct member *m, struct group *replayed)
{
	const struct member *r = member_find(replayed, m->id);
	REQUIRE(w, "replay-differs", r != NULL, "member %.*s is not in the log", m->id.len, m->id.p);
	REQUIRE(w, "replay-differs", bytes_equal(m->instance_id, r->instance_id) && bytes_equal(m->client_id, r->client_id) && bytes_equal(m->host, r->host),
		"identity of %.*s", m->id.len, m->id.p);
	REQUIRE(w, "replay-differs", m->session_timeout_ms == r->session_timeout_ms && m->rebalance_timeout_ms == r->rebalance_timeout_ms,
		"timeouts of %.*s", m->id.len, m->id.p);
	REQUIRE(w, "replay-differs", bytes_equal(member_metadata(m), member_metadata(r)), "subscription of %.*s", m->id.len, m->id.p);
	REQUIRE(w, "replay-differs", bytes_equal(m->assignment, r->assignment), "assignment of %.*s", m->id.len, m->id.p);
}

struct pair {
	struct world *w;
	struct shard *live, *replica;
	struct bytes group;
	unsigned int offsets;
};

static void compare_group(struct table_node *n, void *arg)
{
	struct pair *pair = arg;
	struct world *w = pair->w;
	const struct group *g = CONTAINER_OF(n, struct group, node);
	struct group *r = group_find(pair->replica, g->id);
	if (!at_rest(g))
		return;
	REQUIRE(w, "replay-differs", r != NULL, "group %.*s is not in the log", g->id.len, g->id.p);
	REQUIRE(w, "replay-differs", g->state == r->state && g->generation == r->generation && g->members_len == r->members_len,
		"group %.*s: %s %d with %u members, in the log %s %d with %u", g->id.len, g->id.p, group_state_name(g->state), g->generation,
		g->members_len, group_state_name(r->state), r->generation, r->members_len);
	REQUIRE(w, "replay-differs", bytes_equal(g->protocol_type, r->protocol_type) && bytes_equal(g->protocol, r->protocol), "protocol of %.*s",
		g->id.len, g->id.p);
	REQUIRE(w, "replay-differs", g->state_ms == r->state_ms, "time of state of %.*s: %lld and %lld", g->id.len, g->id.p, (long long)g->state_ms,
		(long long)r->state_ms);
	REQUIRE(w, "replay-differs", bytes_equal(g->leader == NULL ? BYTES_NULL : g->leader->id, r->leader == NULL ? BYTES_NULL : r->leader->id),
		"leader of %.*s", g->id.len, g->id.p);
	for (uint32_t i = 0; i < g->members_len; i++)
		compare_member(w, g->members[i], r);
}

static void compare_offset(void *arg, struct bytes topic, int32_t partition, const struct record_offset *v)
{
	struct pair *pair = arg;
	struct record_offset r;
	pair->offsets++;
	REQUIRE(pair->w, "replay-differs", offsets_get(&pair->replica->offsets, pair->group, topic, partition, &r) && r.offset == v->offset &&
		r.leader_epoch == v->leader_epoch && r.commit_ms == v->commit_ms && r.expire_ms == v->expire_ms && bytes_equal(r.metadata, v->metadata),
		"offset of %.*s %.*s %d", pair->group.len, pair->group.p, topic.len, topic.p, partition);
}

static void compare_offsets(void *arg, struct bytes group)
{
	struct pair *pair = arg;
	pair->group = group;
	offsets_each(&pair->live->offsets, group, compare_offset, pair);
}

static struct shard *replica_new(struct world *w, unsigned int number)
{
	uint64_t random[2] = {number + 5, 6};
	struct shard *s = shard_new(number, &w->disk.log, &w->plan.settings, &w->replica_stats, random, w->now);
	CHECK(s != NULL);
	return s;
}

static void audit_replay(struct world *w)
{
	for (; w->replayed < w->disk.durable; w->replayed++) {
		const struct disk_entry *e = &w->disk.entries[w->replayed];
		if (w->replicas[e->shard] == NULL)
			w->replicas[e->shard] = replica_new(w, e->shard);
		REQUIRE(w, "record-unreadable", shard_replay(w->replicas[e->shard], &e->e, w->now), "record %llu", (unsigned long long)w->replayed);
	}
}

void audit_deep(struct world *w)
{
	audit_replay(w);
	for (unsigned int i = 0; i < SHARDS; i++) {
		struct shard *live = world_shard_number(w, i);
		struct pair pair = {w, live, w->replicas[i], BYTES_NULL, 0}, back = {w, w->replicas[i], live, BYTES_NULL, 0};
		if (live->writes.first != NULL || w->disk.durable < live->writes.appended || w->replicas[i] == NULL)
			continue;
		table_each(&live->groups, compare_group, &pair);
		offsets_each_group(&live->offsets, compare_offsets, &pair);
		offsets_each_group(&w->replicas[i]->offsets, compare_offsets, &back);
		REQUIRE(w, "replay-differs", pair.offsets == back.offsets, "%u offsets, %u in the log", pair.offsets, back.offsets);
		REQUIRE(w, "replay-differs", live->groups.count == w->replicas[i]->groups.count || w->disk.fail_code != 0, "%zu groups, %zu in the log",
			(size_t)live->groups.count, (size_t)w->replicas[i]->groups.count);
	}
}

void audit_restart(struct world *w)
{
	memset(w->shadows, 0, sizeof(w->shadows));
	for (int g = 0; g < GROUPS; g++) {
		struct group *live = group_find(world_shard(w, g), w->group_id[g]);
		if (live == NULL)
			continue;
		struct shadows *s = &w->shadows[g];
		s->group = live;
		s->state = live->state;
		s->generation = live->generation;
		s->completing_since = s->preparing_since = w->now.us;
		for (uint32_t i = 0; i < live->members_len; i++) {
			shadow_take(w, s, live->members[i], true);
			REQUIRE(w, "member-without-timer", purgatory_waiting(&live->members[i]->session), "after recovery");
		}
		s->generation_before = s->generation;
		s->timeout_before = least_timeout(live);
	}
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
		REQUIRE(w, "timer-leak", timers(&s->purgatory.wheel) <= (w->plan.settings.offsets_retention_check_interval_ms > 0), "shard %u still has %u timers", i, timers(&s->purgatory.wheel));
		REQUIRE(w, "write-leak", s->writes.first == NULL && s->barriers == NULL, "shard %u still waits for the log", i);
	}
}

void audit_fini(struct world *w)
{
	for (unsigned int i = 0; i < SHARDS; i++)
		if (w->replicas[i] != NULL)
			shard_free(w->replicas[i]);
}
