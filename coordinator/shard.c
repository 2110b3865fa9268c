/*
 * shard.c - a shard as a whole: its making, its clock, its barriers, and what others may read from it. The requests are in group/ and commit.c.
 */
#include "coordinator/group/group.h"

/* Of the peers' TCP: the pause before a SYN is sent again (RFC 6298, 2.1), and the longest pause (Linux' TCP_RTO_MAX). */
#define RETRANSMIT_FIRST_US US_PER_S
#define RETRANSMIT_PAUSE_MAX_US (120ull * US_PER_S)

struct shard *shard_new(unsigned int number, struct log *log, const struct group_settings *settings, struct stats *stats,
			const uint64_t random[2], struct now now)
{
	struct shard *s = calloc(1, sizeof(*s));
	if (s == NULL)
		return NULL;
	s->number = number;
	s->made_ms = now.wall_ms;
	s->log = log;
	s->settings = settings;
	s->stats = stats;
	s->key = (struct hash_key){{random[0], random[1] ^ number}};
	purgatory_init(&s->purgatory, now);
	TAILQ_INIT(&s->queue);
	s->slice_left = slice_units(s);
	offsets_init(&s->offsets, &s->key);
	newest_init(&s->newest, &s->key);
	return s;
}

/* Parked requests are forgotten, not answered: the sessions are gone by now (shard.h), or shard_stop has answered. */
static void shard_forget_group(struct table_node *n, void *arg)
{
	struct group *g = CONTAINER_OF(n, struct group, node);
	purgatory_cancel(&g->join);
	purgatory_cancel(&g->sync);
	slice_leave(g);
	while (g->members_len > 0) {
		struct member *m = g->members[g->members_len - 1];
		member_unpark_join(m);
		member_unpark_sync(m);
		member_remove(m, 0, (struct now){0, 0});
	}
	while (!LIST_EMPTY(&g->pending))
		pending_remove(LIST_FIRST(&g->pending));
	g->shard->stats->group_groups_now--;
	group_free(g);
}

void shard_free(struct shard *shard)
{
	writes_free(shard);
	topics_gone_fini(shard);
	table_each(&shard->groups, shard_forget_group, NULL);
	table_fini(&shard->groups);
	assemblies_free(shard);
	table_fini(&shard->members);
	table_fini(&shard->instances);
	table_fini(&shard->pendings);
	table_fini(&shard->protocols);
	offsets_fini(&shard->offsets);
	newest_fini(&shard->newest);
	removals_fini(&shard->removals);
	members_free_slabs(shard);
	free(shard->scratch);
	free(shard);
}

unsigned int shard_number(const struct shard *shard)
{
	return shard->number;
}

void *shard_scratch(struct shard *shard, size_t size)
{
	if (size > shard->scratch_cap) {
		size_t cap = size < 1024 ? 1024 : size;
		void *grown = realloc(shard->scratch, cap);
		if (grown == NULL)
			return NULL;
		shard->scratch = grown;
		shard->scratch_cap = cap;
	}
	return shard->scratch;
}

/* ---- time and durability ---- */

/* Those that wait for no write any more, or for too long; all of them when the log broke (`error`), because then every write they wait for is lost. */
static void shard_run_barriers(struct shard *shard, int16_t error, struct now now)
{
	uint64_t applied = shard->writes.first != NULL ? shard->writes.first->position - 1 : UINT64_MAX;
	struct shard_barrier **at = &shard->barriers;
	struct shard_barrier *due = NULL, **last = &due;
	while (*at != NULL) {
		struct shard_barrier *b = *at;
		if (b->position > applied && b->deadline_us > now.us) {
			at = &b->next;
			continue;
		}
		*at = b->next;
		b->next = NULL;
		*last = b;
		last = &b->next;
	}
	while (due != NULL) {
		struct shard_barrier *b = due;
		due = b->next;
		b->next = NULL;
		b->then(b, error == 0 && b->position > applied ? write_client_error(ERROR_REQUEST_TIMED_OUT) : error, now);
	}
}

uint64_t shard_tick(struct shard *shard, unsigned int budget, struct now now)
{
	if (shard->loading)
		return TIME_NEVER;
	shard->slice_left = slice_units(shard);
	unsigned int completed = writes_complete(shard, &shard->slice_left, now);
	if (shard->barriers != NULL && (completed > 0 || shard->barriers->deadline_us <= now.us))
		shard_run_barriers(shard, 0, now);
	int16_t error = writes_fail(shard, now);
	if (error != 0)
		shard_run_barriers(shard, error, now);
	writes_overdue(shard, now);
	slices_run(shard, now);
	expiry_arm(shard, now);
	purgatory_advance(&shard->purgatory, budget, now);
	shard->stats->group_expiries_held += shard->purgatory.held;
	shard->purgatory.held = 0;
	if (!TAILQ_EMPTY(&shard->queue) || writes_due(shard))
		return now.us;
	uint64_t wish = purgatory_next(&shard->purgatory), late = writes_deadline(shard);
	if (shard->barriers != NULL && shard->barriers->deadline_us < late)
		late = shard->barriers->deadline_us;
	return wish < late ? wish : late;
}

bool shard_writes(const struct shard *shard)
{
	return shard->writes.first != NULL;
}

uint64_t shard_stalled(struct shard *shard, uint64_t lost_us, struct now now)
{
	uint64_t again = lost_us < RETRANSMIT_PAUSE_MAX_US ? lost_us : RETRANSMIT_PAUSE_MAX_US;
	uint64_t until = now.us + again + RETRANSMIT_FIRST_US;
	if (!shard->loading) /* else when it is handed over */
		shard_hold(shard, until);
	return until;
}

void shard_hold(struct shard *shard, uint64_t until)
{
	purgatory_hold(&shard->purgatory, until);
}

uint64_t shard_write_deadline(const struct shard *shard, struct now now)
{
	int32_t ms = shard->settings->offsets_commit_timeout_ms;
	return ms == 0 ? TIME_NEVER : deadline_after(now, ms);
}

uint64_t shard_appended(const struct shard *shard)
{
	return shard->writes.appended;
}

void shard_barrier(struct shard *shard, struct shard_barrier *barrier, struct now now)
{
	shard_barrier_at(shard, barrier, shard->writes.appended, now);
}

void shard_barrier_at(struct shard *shard, struct shard_barrier *barrier, uint64_t position, struct now now)
{
	barrier->next = NULL;
	barrier->position = position;
	barrier->deadline_us = shard_write_deadline(shard, now);
	if (shard->writes.first == NULL || shard->writes.first->position > position) {
		/* no write of ours is missing, but one of another shard may be lost */
		barrier->then(barrier, position > log_durable(shard->log) ? write_client_error(log_failed(shard->log)) : 0, now);
		return;
	}
	struct shard_barrier **at = &shard->barriers;
	while (*at != NULL)
		at = &(*at)->next;
	*at = barrier;
}

void shard_barrier_cancel(struct shard *shard, struct shard_barrier *barrier)
{
	for (struct shard_barrier **at = &shard->barriers; *at != NULL; at = &(*at)->next) {
		if (*at == barrier) {
			*at = barrier->next;
			barrier->next = NULL;
			return;
		}
	}
}

/* ---- recovery and stopping ---- */

static void shard_loaded_group(struct table_node *n, void *arg)
{
	struct group *g = CONTAINER_OF(n, struct group, node);
	const struct now *now = arg;
	int32_t max = g->settings->group_max_size;
	group_subscribe(g);
	slice_start(g, *now);
	for (uint32_t i = 0; i < g->members_len; i++)
		member_touch(g->members[i], *now);
	if (g->state == GROUP_STABLE && max > 0 && g->members_len > (uint32_t)max)
		rebalance_prepare(g, JOURNAL_OVER_SIZE, NULL, *now);
}

void shard_load_begin(struct shard *shard, struct stats *own)
{
	CHECK(!shard->loading);
	shard->stats_after = shard->stats;
	shard->stats = own;
	shard->loading = true;
}

void shard_load_end(struct shard *shard)
{
	CHECK(shard->loading);
	stats_add(shard->stats_after, shard->stats);
	shard->stats = shard->stats_after;
	shard->loading = false;
}

bool shard_is_loading(const struct shard *shard)
{
	return shard->loading;
}

void shard_loaded(struct shard *shard, struct now now)
{
	assemblies_loaded(shard);
	table_each(&shard->groups, shard_loaded_group, &now);
}

static void shard_stop_group(struct table_node *n, void *arg)
{
	struct group *g = CONTAINER_OF(n, struct group, node);
	const struct now *now = arg;
	if (g->state == GROUP_DEAD)
		return;
	purgatory_cancel(&g->join);
	purgatory_cancel(&g->sync);
	slice_leave(g);
	group_transition(g, GROUP_DEAD, *now);
	for (uint32_t i = 0; i < g->members_len; i++) {
		struct member *m = g->members[i];
		struct request *join = member_unpark_join(m);
		struct request *sync = member_unpark_sync(m);
		purgatory_cancel(&m->session);
		if (join != NULL)
			join_answer_error(join, ERROR_NOT_COORDINATOR, m->id, *now);
		if (sync != NULL)
			sync_answer_error(sync, ERROR_NOT_COORDINATOR, *now);
	}
	while (!LIST_EMPTY(&g->pending))
		pending_remove(LIST_FIRST(&g->pending));
}

void shard_stop(struct shard *shard, struct now now)
{
	shard->stopped = true;
	if (shard->loading)
		return;
	table_each(&shard->groups, shard_stop_group, &now);
}

/* ---- reading ---- */

bool shard_offset_get(struct shard *shard, struct bytes group_id, struct bytes topic, int32_t partition, struct offset_value *out)
{
	struct record_offset v;
	if (shard->loading || !offsets_get(&shard->offsets, group_id, topic, partition, &v))
		return false;
	*out = (struct offset_value){v.offset, v.leader_epoch, v.metadata};
	return true;
}

struct shard_offset_walk {
	void (*visit)(void *arg, struct bytes topic, int32_t partition, const struct offset_value *value);
	void *arg;
};

static void shard_visit_offset(void *arg, struct bytes topic, int32_t partition, const struct record_offset *v)
{
	const struct shard_offset_walk *walk = arg;
	struct offset_value value = {v->offset, v->leader_epoch, v->metadata};
	walk->visit(walk->arg, topic, partition, &value);
}

void shard_offset_each(struct shard *shard, struct bytes group_id,
		       void (*visit)(void *arg, struct bytes topic, int32_t partition, const struct offset_value *value), void *arg)
{
	struct shard_offset_walk walk = {visit, arg};
	if (!shard->loading)
		offsets_each(&shard->offsets, group_id, shard_visit_offset, &walk);
}

void shard_set_journal(struct shard *shard, void (*line)(void *arg, const char *line), void *arg)
{
	shard->line = line;
	shard->line_arg = arg;
}

bool shard_journal_each(struct shard *shard, struct bytes group_id, void (*visit)(void *arg, const struct journal_event *event), void *arg)
{
	struct group *g = shard->loading ? NULL : group_find(shard, group_id);
	if (g == NULL)
		return false;
	journal_each(&g->journal, visit, arg);
	return true;
}
