/*
 * rig.c - the rig's log, life, checks and usual beginnings; see rig.h. Requests and answers are in calls.c.
 */
#include <criterion/criterion.h>
#include <stdio.h>

#include "rig.h"

/* ---- the log ---- */


static struct bytes keep(struct bytes b)
{
	struct bytes out;
	cr_assert(bytes_dup(&out, b));
	return out;
}

static uint64_t rig_append(struct log *log, unsigned int shard, struct log_entry *entries, unsigned int n, int16_t *error, struct now now)
{
	struct rig_log *l = CONTAINER_OF(log, struct rig_log, log);
	if (l->error != 0) {
		*error = (int16_t)l->error;
		return 0;
	}
	for (unsigned int i = 0; i < n; i++) {
		if (l->len == l->cap) {
			l->cap = l->cap == 0 ? 64 : l->cap * 2;
			l->entries = realloc(l->entries, l->cap * sizeof(*l->entries));
		}
		entries[i].offset = l->len;
		l->entries[l->len++] = (struct log_entry){keep(entries[i].key), keep(entries[i].value), entries[i].offset};
	}
	return l->len;
}

static uint64_t rig_durable(struct log *log)
{
	return CONTAINER_OF(log, struct rig_log, log)->durable;
}

static uint64_t rig_poll(struct log *log, struct now now)
{
	struct rig_log *l = CONTAINER_OF(log, struct rig_log, log);
	if (!l->hold)
		l->durable = l->len;
	return TIME_NEVER;
}

static void rig_log_free(struct log *log)
{
	struct rig_log *l = CONTAINER_OF(log, struct rig_log, log);
	for (unsigned int i = 0; i < l->len; i++) {
		bytes_free(&l->entries[i].key);
		bytes_free(&l->entries[i].value);
	}
	free(l->entries);
	free(l);
}

static int16_t rig_log_failed(struct log *log)
{
	return (int16_t)CONTAINER_OF(log, struct rig_log, log)->broken;
}

static const struct log_ops rig_log_ops = {rig_append, rig_durable, rig_poll, rig_log_free, rig_log_failed};

void rig_log_break(struct rig *r, int error)
{
	r->log->error = r->log->broken = error;
	r->log->hold = true;
}

void rig_log_hold(struct rig *r, bool hold)
{
	r->log->hold = hold;
}

void rig_log_fail(struct rig *r, int error)
{
	r->log->error = error;
}

unsigned int rig_log_records(const struct rig *r)
{
	return r->log->len;
}

struct log_entry rig_log_entry(const struct rig *r, unsigned int i)
{
	return r->log->entries[i];
}

void rig_drop(struct call *c)
{
	cr_assert(!c->answered && !c->dropped);
	c->dropped = true;
	c->rq.on_drop(&c->rq, c->rig->now);
	rig_check(c->rig);
}

/* ---- life ---- */

struct rig *rig_new(void)
{
	struct rig *r = calloc(1, sizeof(*r));
	uint64_t random[2] = {0x0123456789abcdef, 42};
	r->settings = (struct group_settings){6000, 1800000, 3000, INT32_MAX, 4096, 8, 8, 10};
	r->settings.offsets_commit_timeout_ms = 5000;
	r->now = (struct now){1000000, 1700000000000};
	r->log = calloc(1, sizeof(*r->log));
	r->log->log.ops = &rig_log_ops;
	r->shard = shard_new(7, &r->log->log, &r->settings, &r->stats, random, r->now);
	r->client = "client";
	r->peer = 10u << 24 | 1u << 16 | 2u << 8 | 3u;
	return r;
}

void rig_free(struct rig *r)
{
	for (struct call *c = r->calls; c != NULL; c = c->next)
		if (!c->answered && !c->dropped && c->rq.on_drop != NULL) {
			c->dropped = true;
			c->rq.on_drop(&c->rq, r->now);
		}
	shard_free(r->shard);
	cr_assert_eq(r->stats.group_members_now, 0);
	cr_assert_eq(r->stats.group_groups_now, 0);
	log_free(&r->log->log);
	while (r->calls != NULL) {
		struct call *c = r->calls;
		r->calls = c->next;
		free(c);
	}
	free(r);
}

void rig_settle(struct rig *r)
{
	for (int i = 0; i < 3; i++) {
		log_poll(&r->log->log, r->now);
		shard_tick(r->shard, 100000, r->now);
	}
	rig_check(r);
}

void rig_pass(struct rig *r, int64_t ms)
{
	uint64_t end = r->now.us + (uint64_t)ms * 1000;
	for (;;) {
		log_poll(&r->log->log, r->now);
		uint64_t next = shard_tick(r->shard, 100000, r->now);
		if (r->now.us >= end)
			break;
		if (next <= r->now.us)
			next = r->now.us + 1000;
		if (next > end)
			next = end;
		r->now.wall_ms += (int64_t)(next / 1000 - r->now.us / 1000);
		r->now.us = next;
	}
	rig_settle(r);
}

/* ---- checks ---- */

static void check_group(struct table_node *n, void *arg)
{
	const struct group *g = CONTAINER_OF(n, struct group, node);
	uint32_t waiting = 0, syncing = 0, unsynced = 0, pending = 0;
	bool leader = g->leader == NULL;
	const struct pending *p;
	for (uint32_t i = 0; i < g->members_len; i++) {
		struct member *m = g->members[i];
		cr_assert_eq(m->index, i);
		cr_assert(m->group == g && m->tag != 0);
		waiting += m->join != NULL;
		unsynced += member_unsynced(m);
		syncing += m->sync != NULL;
		leader |= m == g->leader;
		cr_assert(m->join == NULL || g->state == GROUP_PREPARING || g->answering);
		cr_assert(m->sync == NULL || g->state == GROUP_COMPLETING || (g->queued && (g->state == GROUP_PREPARING || g->state == GROUP_STABLE)));
		cr_assert(m->join == NULL || m->sync == NULL);
		cr_assert(purgatory_waiting(&m->session) || m->join != NULL || m->sync != NULL || g->state == GROUP_DEAD);
		if (!bytes_is_null(m->instance_id))
			cr_assert(member_find_instance(m->group, m->instance_id) == m);
		cr_assert(member_find(m->group, m->id) == m);
	}
	LIST_FOREACH(p, &g->pending, link)
		pending++;
	cr_assert(leader);
	cr_assert_eq(waiting, g->waiting);
	cr_assert_eq(syncing, g->syncing);
	cr_assert(!g->closing || (g->state == GROUP_PREPARING && g->queued));
	cr_assert(!g->answering || (g->state == GROUP_COMPLETING && g->queued));
	cr_assert(g->draft == NULL || (g->state == GROUP_COMPLETING && g->queued && g->assignment_written));
	cr_assert(!g->expelling || ((g->state == GROUP_COMPLETING || g->state == GROUP_STABLE) && g->queued));
	cr_assert(!g->running);
	cr_assert_eq(unsynced, g->unsynced);
	cr_assert_eq(pending, g->pending_len);
	cr_assert_eq(purgatory_waiting(&g->join), g->state == GROUP_PREPARING && !g->closing);
	cr_assert(!purgatory_waiting(&g->sync) || g->state == GROUP_COMPLETING || g->state == GROUP_STABLE);
	cr_assert(g->state != GROUP_EMPTY || g->members_len == 0);
}

/* ---- comparing with a replayed shard ---- */

struct dump {
	char *text[4096];
	int len;
};

static void dump_line(struct dump *d, const char *line)
{
	cr_assert_lt(d->len, (int)ARRAY_LEN(d->text));
	d->text[d->len++] = strdup(line);
}

#define B(b) (int)((b).len > 0 ? (b).len : 0), (const char *)((b).len > 0 ? (b).p : (const uint8_t *)"")

static bool at_rest(const struct group *g)
{
	return (g->state == GROUP_EMPTY || g->state == GROUP_STABLE) && g->writes == 0 && !g->unsaved;
}

struct dump_pair {
	struct dump *out;
	struct shard *live; /* decides which groups are comparable */
	bool cleaned;
};

static void note_offset(void *arg, struct bytes topic, int32_t partition, const struct record_offset *v)
{
	*(bool *)arg = true;
}

/* An Empty group that stands there only because it once had an offset: no record tells of it, so cleaning forgets it. */
static bool is_shade(struct group *g)
{
	bool has_offsets = false;
	offsets_each(&g->shard->offsets, g->id, note_offset, &has_offsets);
	return g->record < 0 && !has_offsets;
}

static void dump_group(struct table_node *n, void *arg)
{
	struct dump_pair *pair = arg;
	struct group *g = CONTAINER_OF(n, struct group, node);
	struct group *live = group_find(pair->live, g->id);
	char line[2048];
	if (live == NULL || !at_rest(live) || (pair->cleaned && is_shade(live)))
		return;
	snprintf(line, sizeof(line), "group %.*s %s gen %d at %lld type %.*s/%d protocol %.*s/%d leader %.*s", B(g->id), group_state_name(g->state),
		 g->generation, (long long)g->state_ms, B(g->protocol_type), g->protocol_type.len, B(g->protocol), g->protocol.len,
		 B(g->leader == NULL ? BYTES_NULL : g->leader->id));
	dump_line(pair->out, line);
	for (uint32_t i = 0; i < g->members_len; i++) {
		const struct member *m = g->members[i];
		snprintf(line, sizeof(line), "member %.*s of %.*s instance %.*s/%d client %.*s host %.*s times %d %d metadata %.*s assignment %.*s",
			 B(m->id), B(g->id), B(m->instance_id), m->instance_id.len, B(m->client_id), B(m->host), m->session_timeout_ms,
			 m->rebalance_timeout_ms, B(member_metadata(m)), B(member_assignment(m)));
		dump_line(pair->out, line);
	}
}

struct dump_offsets {
	struct dump *out;
	struct shard *shard;
	struct bytes group;
};

static void dump_offset(void *arg, struct bytes topic, int32_t partition, const struct record_offset *v)
{
	struct dump_offsets *o = arg;
	char line[2048];
	snprintf(line, sizeof(line), "offset %.*s %.*s %d = %lld %d %.*s %lld %lld", B(o->group), B(topic), partition, (long long)v->offset,
		 v->leader_epoch, B(v->metadata), (long long)v->commit_ms, (long long)v->expire_ms);
	dump_line(o->out, line);
}

static void dump_offset_group(void *arg, struct bytes group)
{
	struct dump_offsets *o = arg;
	o->group = group;
	offsets_each(&o->shard->offsets, group, dump_offset, o);
}

static int dump_compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void dump_shard(struct dump *d, struct shard *shard, struct shard *live, bool cleaned)
{
	struct dump_pair pair = {d, live, cleaned};
	struct dump_offsets offsets = {d, shard, BYTES_NULL};
	d->len = 0;
	table_each(&shard->groups, dump_group, &pair);
	offsets_each_group(&shard->offsets, dump_offset_group, &offsets);
	qsort(d->text, (size_t)d->len, sizeof(d->text[0]), dump_compare);
}

/* Cleaning drops what does not count, at once or some of it later; tombstones may go only when nothing older of their key is left. */
enum cleaning { CLEANED_NEVER, CLEANED_IN_PART, CLEANED_WHOLLY };

static bool still_there(struct rig *r, const struct log_entry *e, enum cleaning how)
{
	enum log_verdict verdict = how == CLEANED_NEVER ? LOG_LIVE : shard_judge(r->shard, e);
	bool later = how == CLEANED_IN_PART && (e->offset * 7 + r->log->len) % 3 == 0;
	return verdict == LOG_LIVE || later || (verdict == LOG_GONE && how == CLEANED_IN_PART);
}

static void check_replay(struct rig *r, enum cleaning how)
{
	static struct dump live, replayed;
	struct stats stats = {0};
	uint64_t random[2] = {5, 6};
	struct shard *second = shard_new(7, &r->log->log, &r->settings, &stats, random, r->now);
	for (unsigned int i = 0; i < r->log->durable; i++)
		if (still_there(r, &r->log->entries[i], how))
			cr_assert(shard_replay(second, &r->log->entries[i], r->now));
	dump_shard(&live, r->shard, r->shard, how != CLEANED_NEVER);
	dump_shard(&replayed, second, r->shard, how != CLEANED_NEVER);
	for (int i = 0; i < live.len && i < replayed.len; i++)
		cr_assert_str_eq(live.text[i], replayed.text[i]);
	cr_assert_eq(live.len, replayed.len);
	for (int i = 0; i < live.len; i++)
		free(live.text[i]);
	for (int i = 0; i < replayed.len; i++)
		free(replayed.text[i]);
	shard_free(second);
}

void rig_check(struct rig *r)
{
	table_each(&r->shard->groups, check_group, NULL);
	bool checked = !r->unchecked && r->shard->writes.first == NULL && r->log->durable == r->log->len;
	for (enum cleaning how = CLEANED_NEVER; checked && how <= CLEANED_WHOLLY; how++)
		check_replay(r, how);
}

void rig_reload(struct rig *r)
{
	uint64_t random[2] = {r->now.us, 1};
	struct shard *old = r->shard;
	r->shard = shard_new(7, &r->log->log, &r->settings, &r->stats, random, r->now);
	for (unsigned int i = 0; i < r->log->durable; i++)
		cr_assert(shard_replay(r->shard, &r->log->entries[i], r->now));
	shard_loaded(r->shard, r->now);
	for (struct call *c = r->calls; c != NULL; c = c->next)
		c->dropped |= !c->answered;
	shard_free(old);
}

/* ---- usual beginnings ---- */

struct call *rig_join_twice(struct rig *r, int session_ms, int rebalance_ms, const char *protocols)
{
	struct call *ask = rig_join(r, 9, "", NULL, session_ms, rebalance_ms, protocols);
	cr_assert(ask->answered);
	cr_assert_eq(ask->error, 79);
	return rig_join(r, 9, ask->id, NULL, session_ms, rebalance_ms, protocols);
}

void rig_sync_all(struct rig *r, struct call **joins, int n, int generation)
{
	char list[4096] = "";
	struct call *syncs[RIG_LIST];
	for (int i = 0; i < n; i++)
		snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s=%d,", joins[i]->id, i);
	for (int i = n; i-- > 0;)
		syncs[i] = rig_sync(r, 5, joins[i]->id, NULL, generation, i == 0 ? list : "");
	rig_settle(r);
	for (int i = 0; i < n; i++) {
		cr_assert(syncs[i]->answered);
		cr_assert_eq(syncs[i]->error, 0);
		cr_assert_eq(atoi(syncs[i]->assignment), i);
	}
}

void rig_stable(struct rig *r, struct call **joins, int n)
{
	for (int i = 0; i < n; i++)
		joins[i] = rig_join_twice(r, 10000, 60000, "range");
	rig_pass(r, 6000);
	for (int i = 0; i < n; i++) {
		cr_assert(joins[i]->answered);
		cr_assert_eq(joins[i]->error, 0);
	}
	cr_assert_str_eq(joins[0]->leader, joins[0]->id);
	rig_sync_all(r, joins, n, joins[0]->generation);
	cr_assert_str_eq(rig_state(r), "Stable");
}

struct group *rig_group(struct rig *r)
{
	return group_find(r->shard, bytes_str("g"));
}

const char *rig_state(struct rig *r)
{
	struct group *g = rig_group(r);
	return g == NULL ? "none" : group_state_name(g->state);
}

int64_t rig_offset(struct rig *r, const char *topic, int partition)
{
	struct offset_value v;
	return shard_offset_get(r->shard, bytes_str("g"), bytes_str(topic), partition, &v) ? v.offset : -999;
}
