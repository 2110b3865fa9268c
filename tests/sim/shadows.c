/*
 * shadows.c - our groups from step to step: what was known of each member before is compared with what is there now. A member that is gone has a reason,
 * phases have their lengths, generations only grow, and a session lasts from the last sign of life.
 */
#include "sim.h"

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
	uint64_t now = served(w).us;
	if (s->timeout_before <= 1 && s->generation != s->generation_before) /* formed, and whoever is left has no time to sync */
		return true;
	if (w->step.api == api_key_leave_group && named(&w->step, m))
		return true;
	if (w->step.api == api_key_join_group && w->step.code == 81 && named(&w->step, m))
		return true;
	if (m->is_new && m->unnamed && w->step.closes)
		return true;
	if (now < w->held_until && !(s->state == GROUP_PREPARING && s->initial) && !s->removing)
		return false;
	if (m->is_new && now >= m->since + (uint64_t)MEMBER_NEW_TIMEOUT_MS * US_PER_MS)
		return true;
	if (!m->parked_join && !m->parked_sync && now >= m->life_until)
		return true;
	bool over = now >= s->preparing_until || (s->generation != s->generation_before && now >= s->preparing_before);
	if (s->state == GROUP_PREPARING && !m->parked_join && !m->is_static && (s->initial || over))
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
		k->since = served(w).us;
		text_of(k->id, m->id);
		text_of(k->instance, m->instance_id);
		k->is_static = !bytes_is_null(m->instance_id);
	}
	if (m->is_new && k->parked_join && m->join == NULL) /* its connection closed: it has one session to come back */
		k->life_until = served(w).us + (uint64_t)m->session_timeout_ms * US_PER_MS;
	k->had_joined = m->group->closing && (k->had_joined || k->parked_join);
	k->seen = true;
	k->is_new = m->is_new;
	k->unnamed = m->unnamed;
	k->parked_join = m->join != NULL;
	k->parked_sync = m->sync != NULL;
	k->unsynced = member_unsynced(m);
	if (m->session_timeout_ms < k->session_ms) /* asked for a shorter one: the next sign of life counts anew */
		k->life_until = 0;
	k->session_ms = m->session_timeout_ms;
	if (formed && k->life_until < s->completing_since + (uint64_t)m->session_timeout_ms * US_PER_MS)
		k->life_until = s->completing_since + (uint64_t)m->session_timeout_ms * US_PER_MS;
	if (m->join == NULL && purgatory_waiting(&m->session) && !m->group->answering)
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

static void note_seek(void *arg, const struct removal *r)
{
	struct shadow *m = arg;
	m->noted |= bytes_equal(r->member_id, bytes_str(m->id));
}

/* Why it went can be asked for a while. Of a static member whose instance stays, the id may be one that a refusing log took back untold. */
static void audit_note(struct world *w, const struct group *g, struct shadow *m)
{
	removals_each(g->shard, g->id, note_seek, m, served(w));
	REQUIRE(w, "removal-untold", m->noted, "%s of group %.*s", m->id, g->id.len, g->id.p);
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
		REQUIRE(w, "removed-without-reason", removal_allowed(w, s, m) || instance_lives(g, m),
			"group %s: %s%s%s%s%s at %llu, life until %llu, phase until %llu, held until %llu", group_state_name(s->state), m->id,
			m->is_new ? " new" : "", m->parked_join ? " joining" : "", m->parked_sync ? " syncing" : "", m->unsynced ? " unsynced" : "",
			(unsigned long long)served(w).us, (unsigned long long)m->life_until, (unsigned long long)s->preparing_until,
			(unsigned long long)w->held_until);
		if (!instance_lives(g, m))
			audit_note(w, g, m);
		memcpy(w->stale[w->stale_next++ % ARRAY_LEN(w->stale)], m->id, TEXT);
	}
	s->len = kept;
}

/* Of a generation that was just formed: dynamic members that did not join are not in it. One may have joined in this
 * step; whoever's connection went while the others were being removed is as one that does not hear the answer. */
static void audit_present(struct world *w, const struct shadows *s, const struct group *g)
{
	unsigned int absent = 0;
	for (uint32_t i = 0; i < g->members_len; i++) {
		const struct shadow *k = shadow_find((struct shadows *)(uintptr_t)s, g->members[i]);
		absent += k != NULL && !k->is_static && !k->parked_join && !k->had_joined;
	}
	REQUIRE(w, "absent-member", absent <= (w->step.api == api_key_join_group), "%u members of generation %d did not join it", absent, g->generation);
}

static void audit_phases(struct world *w, struct shadows *s, const struct group *g)
{
	uint64_t now = served(w).us;
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
		audit_present(w, s, g);
		REQUIRE(w, "pending-ignored", s->initial || s->removing || now >= s->preparing_until || s->pending_before == 0 || g->pending_len == 0,
			"formed while %u ids that were handed out are missing", g->pending_len);
	}
	if (g->state == GROUP_PREPARING && (s->state != GROUP_PREPARING || formed)) {
		s->preparing_since = now;
		trace(w, "%.*s prepares, generation %d, timeout %lld ms", g->id.len, g->id.p, g->generation, (long long)timeout);
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

void audit_ours(struct world *w, int number)
{
	struct shadows *s = &w->shadows[number];
	if (shard_is_loading(world_shard(w, number)))
		return;
	struct group *g = group_find(world_shard(w, number), w->group_id[number]);
	bool other = g != s->group || (g != NULL && g->generation < s->generation); /* a new one may lie where the old one lay */
	if (other && s->group != NULL) {
		REQUIRE(w, "group-lost", w->group_removals[number] < w->group_tombstones[number] && s->len == 0, "group %d with %u members is gone", number, s->len);
		memset(s, 0, sizeof(*s));
		watch_group_gone(w, number);
		w->group_removals[number]++;
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
		shadow_take(w, s, g->members[i], (formed || s->answering) && g->state == GROUP_COMPLETING && !g->answering);
	s->generation = g->generation;
	audit_removals(w, s, g);
	s->answering = g->answering;
	s->removing = g->closing || g->expelling;
	s->group = g;
	s->state = g->state;
	s->generation_before = s->generation;
	s->timeout_before = least_timeout(g);
	s->preparing_before = s->preparing_until;
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
		k->life_until = served(w).us + (uint64_t)m->session_timeout_ms * US_PER_MS;
}

/* Its shard is handed over: all members have their whole session before them. */
void audit_recovered(struct world *w, int group)
{
	struct group *live = group_find(world_shard(w, group), w->group_id[group]);
	struct shadows *s = &w->shadows[group];
	if (live == NULL)
		return;
	s->group = live;
	s->state = live->state;
	s->generation = live->generation;
	s->completing_since = s->preparing_since = served(w).us;
	for (uint32_t i = 0; i < live->members_len; i++) {
		shadow_take(w, s, live->members[i], true);
		REQUIRE(w, "member-without-timer", purgatory_waiting(&live->members[i]->session), "after recovery");
	}
	s->generation_before = s->generation;
	s->timeout_before = least_timeout(live);
}

void audit_restart(struct world *w)
{
	memset(w->shadows, 0, sizeof(w->shadows));
	memcpy(w->group_removals, w->group_tombstones, sizeof(w->group_removals));
	for (int g = 0; g < GROUPS; g++)
		if (!shard_is_loading(world_shard(w, g)))
			audit_recovered(w, g);
}
