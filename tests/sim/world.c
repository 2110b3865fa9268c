/*
 * world.c - the world of one seed: who lives in it, what happens next, and its end.
 *
 * A step is one thing that happens at one place: a frame, a FIN or a reset arrives, the worker's loop turns, an answer reaches its client, a client's
 * timer fires, an action of the plan. What is due first comes first; the order among equals is fixed. The service is ticked after every
 * step that touched it and when it wished to be, never in between: a wish that is too late shows as a late timer.
 */
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "sim.h"

#include "coordinator/api/api.h"

/* ---- failing and telling ---- */

void fail(struct world *w, const char *name, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	printf("VIOLATION %s: ", name);
	vprintf(format, args);
	printf(" (seed %llu, step %llu, %.6f s)\n", (unsigned long long)w->plan.seed, (unsigned long long)w->steps, (double)w->now.us / 1e6);
	va_end(args);
	fflush(stdout);
	_exit(SIM_VIOLATION);
}

void trace(struct world *w, const char *format, ...)
{
	va_list args;
	if (!w->trace)
		return;
	va_start(args, format);
	printf("%12.6f %6llu ", (double)w->now.us / 1e6, (unsigned long long)w->steps);
	vprintf(format, args);
	printf("\n");
	va_end(args);
}

void text_of(char out[TEXT], struct bytes b)
{
	size_t n = b.len > 0 ? (size_t)b.len : 0;
	n = n < TEXT - 1 ? n : TEXT - 1;
	if (n > 0)
		memcpy(out, b.p, n);
	out[n] = '\0';
}

void world_set_clock(struct world *w, uint64_t us)
{
	w->now = (struct now){us, 1700000000000 + (int64_t)(us / US_PER_MS)};
}

/* ---- names ---- */

struct shard *world_shard(struct world *w, int group)
{
	return node_shard_quiet(w->node, w->group_id[group]);
}

struct shard *world_shard_number(struct world *w, unsigned int number)
{
	return node_shard_quiet(w->node, bytes_str(w->probes[number]));
}

int world_group(const struct world *w, struct bytes id)
{
	for (int g = 0; g < GROUPS; g++)
		if (bytes_equal(w->group_id[g], id))
			return g;
	return -1;
}

static void name_probes(struct world *w)
{
	for (unsigned int n = 0, found = 0; found < SHARDS; n++) {
		char name[16];
		snprintf(name, sizeof(name), "probe-%u", n);
		unsigned int shard = image_shard_of(w->image, bytes_str(name));
		if (w->probes[shard][0] != '\0')
			continue;
		memcpy(w->probes[shard], name, sizeof(name));
		found++;
	}
}

/* ---- who lives in it ---- */

static void make_consumer(struct world *w, int i, struct rng *r)
{
	struct consumer *c = &w->consumers[i];
	*c = (struct consumer){.w = w, .index = i, .state = OFF, .wake = TIME_NEVER, .generation = -1};
	c->group = (int)rng_below(r, rng_one_in(r, 3) ? GROUPS : 2);
	c->is_static = rng_one_in(r, 3);
	snprintf(c->client_id, sizeof(c->client_id), "client%d", i);
	snprintf(c->instance, sizeof(c->instance), "inst-%d", i);
	c->impatient = rng_one_in(r, 3);
	c->leaves = !rng_one_in(r, 4);
	c->commits_before_join = rng_one_in(r, 2);
	c->beats_while_joining = rng_one_in(r, 5);
	c->session_ms = (int32_t)rng_between(r, 6000, 12000);
	c->rebalance_ms = (int32_t)rng_between(r, 3000, 20000);
	c->beat_ms = c->session_ms / 4;
	c->commit_ms = (int32_t)rng_between(r, 1000, 6000);
	c->v_join = (int16_t)(c->is_static ? rng_between(r, 5, 9) : rng_between(r, 0, 9));
	c->v_sync = (int16_t)(c->is_static ? rng_between(r, 3, 5) : rng_between(r, 0, 5));
	c->v_beat = (int16_t)(c->is_static ? rng_between(r, 3, 4) : rng_between(r, 0, 4));
	c->v_leave = (int16_t)rng_below(r, 6);
	c->v_commit = (int16_t)(c->is_static ? rng_between(r, 7, 10) : rng_between(r, 1, 10));
	c->v_fetch = (int16_t)rng_below(r, 11);
	c->v_find = (int16_t)rng_below(r, 7);
	c->topics = rng_one_in(r, 3) ? 1 + rng_below(r, 7) : 7;
	/* all of a group have one assignor in common */
	c->assignors[c->assignors_len++] = (enum assignor)((w->plan.seed + (uint64_t)c->group) % ASSIGNORS);
	enum assignor other = (enum assignor)rng_below(r, ASSIGNORS);
	if (other != c->assignors[0] && rng_one_in(r, 2))
		c->assignors[c->assignors_len++] = other;
}

struct image *world_image(uint32_t topics_gone)
{
	struct image *image = image_new(BYTES_LITERAL("sim"));
	CHECK(image != NULL && image_add_node(image, 1000, BYTES_LITERAL("muster.test"), 19092));
	for (unsigned int t = 0; t < TOPICS; t++)
		CHECK(topics_gone >> t & 1 || image_add_topic(image, bytes_str(topic_names[t]), topic_sizes[t]));
	image_seal(image, SHARDS);
	return image;
}

struct node *world_node(struct world *w)
{
	struct node_config cfg = {.node_id = 1000, .groups = &w->plan.settings, .max_sessions = 200, .max_fetch_wait_ms = 5000,
				  .random = {w->plan.seed, w->restarts}};
	struct node *node = node_new(&cfg, w->image, &w->disk.log, &w->stats, served(w));
	CHECK(node != NULL);
	node_own_log(node, &w->disk.log);
	return node;
}

static void world_begin(struct world *w)
{
	world_set_clock(w, 1000000);
	w->all_topics = world_image(0);
	w->image = world_image(0);
	name_probes(w);
	for (int g = 0; g < GROUPS; g++) {
		snprintf(w->group_ids[g], sizeof(w->group_ids[g]), "group-%d", g);
		w->group_id[g] = bytes_str(w->group_ids[g]);
		for (unsigned int p = 0; p < PARTS; p++)
			w->acked[g][p] = -1;
	}
	w->offset_cap = 1 << 16;
	w->offset_position = calloc(w->offset_cap, sizeof(*w->offset_position));
	w->offset_epoch = calloc(w->offset_cap, 1);
	w->next_offset = 1;
	w->hash = 0xcbf29ce484222325ull;
	w->tick_at = w->now.us;
	for (unsigned int i = 0; i < LATER_KINDS; i++)
		w->later[i].at = TIME_NEVER;
	w->arena = arena_of(w->arena_block, sizeof(w->arena_block));
	disk_init(&w->disk, w);
	w->node = world_node(w);
	for (int i = 0; i < CONSUMERS; i++) {
		struct rng r = rng_of(w->plan.seed, 1000 + (uint64_t)i);
		make_consumer(w, i, &r);
	}
}

/* ---- what happens ---- */

/* A wish of "at once" is another poll round; rounds that find nothing get longer, as nothing is lost by it but steps. */
static void world_tick(struct world *w)
{
	uint64_t wish = node_service_ops.tick(w->node, served(w));
	if (wish > served(w).us) {
		w->idle_rounds = 0;
		w->tick_at = wish == TIME_NEVER ? wish : wish + w->lost_us;
	} else {
		w->idle_rounds = w->idle_rounds < 6 ? w->idle_rounds + 1 : 6;
		w->tick_at = w->now.us + (10ull << w->idle_rounds);
	}
	if (world_ambush(w))
		w->tick_at = w->now.us + AMBUSH_US;
}

enum due_kind { DUE_NOTHING, DUE_TICK, DUE_ACTION, DUE_LATER, DUE_CONN, DUE_CONSUMER };

struct due {
	enum due_kind kind;
	uint64_t at;
	unsigned int index;
};

static void due_better(struct due *d, enum due_kind kind, uint64_t at, unsigned int index)
{
	if (at < d->at)
		*d = (struct due){kind, at, index};
}

static struct due world_next(struct world *w)
{
	struct due d = {DUE_NOTHING, TIME_NEVER, 0};
	uint64_t tick = w->stalled ? w->stalled_until : w->tick_at;
	while (w->next_action < w->plan.len && w->keep != NULL && !w->keep[w->next_action])
		w->next_action++;
	due_better(&d, DUE_TICK, tick, 0);
	if (w->next_action < w->plan.len && !w->draining)
		due_better(&d, DUE_ACTION, w->plan.actions[w->next_action].at, w->next_action);
	for (unsigned int i = 0; i < LATER_KINDS && !w->stopping; i++)
		due_better(&d, DUE_LATER, w->later[i].at, i);
	for (unsigned int i = 0; i < w->conns_len; i++)
		due_better(&d, DUE_CONN, conn_due(w->conns[i]), i);
	for (unsigned int i = 0; i < CONSUMERS; i++)
		due_better(&d, DUE_CONSUMER, consumer_due(&w->consumers[i]), i);
	return d;
}

static void world_bury(struct world *w)
{
	for (unsigned int i = 0; i < w->conns_len;) {
		struct conn *c = w->conns[i];
		if (!conn_finished(c)) {
			i++;
			continue;
		}
		for (unsigned int k = 0; k < ARRAY_LEN(w->rogues); k++)
			if (w->rogues[k] == c)
				w->rogues[k] = NULL;
		conn_free(c);
		w->conns[i] = w->conns[--w->conns_len];
	}
}

/* One step; false when nothing is due before `until`. */
static bool world_step(struct world *w, uint64_t until)
{
	struct due d = world_next(w);
	if (d.kind == DUE_NOTHING || d.at > until)
		return false;
	if (d.at > w->now.us)
		world_set_clock(w, d.at);
	if (w->stalled && w->now.us >= w->stalled_until)
		world_resume(w);
	w->steps++;
	w->events += d.kind != DUE_TICK;
	w->step = (struct step){.group = -1, .api = -1, .code = EXPECT_ANY};
	switch (d.kind) {
	case DUE_TICK:
		world_tick(w);
		break;
	case DUE_ACTION:
		world_act(w, &w->plan.actions[w->next_action++]);
		break;
	case DUE_LATER:
		world_later(w, (enum later_kind)d.index);
		break;
	case DUE_CONN:
		w->idle_rounds = 0;
		conn_step(w->conns[d.index]);
		break;
	default:
		consumer_wake(&w->consumers[d.index]);
	}
	if (!w->stopping)
		audit_step(w);
	watch_bounds(w);
	if (!w->stopping)
		audit_deep(w);
	world_bury(w);
	return true;
}

static void world_pass(struct world *w, uint64_t us)
{
	uint64_t until = w->now.us + us;
	while (world_step(w, until))
		;
	world_set_clock(w, until);
}

/* ---- the end ---- */

/* Everybody goes, some in good order, and nobody comes back; then every timer there is runs out. */
static void end_in_silence(struct world *w)
{
	static const enum action_kind ways[] = {ACT_STOP, ACT_KILL, ACT_RESET, ACT_VANISH};
	struct rng r = rng_of(w->plan.seed, 99);
	w->draining = true;
	w->disk.fail_until = 0;
	for (unsigned int i = 0; i < CONSUMERS; i++) {
		struct action a = {.kind = ways[rng_below(&r, 4)]};
		consumer_act(&w->consumers[i], &a);
	}
	for (unsigned int i = 0; i < ARRAY_LEN(w->rogues); i++)
		if (w->rogues[i] != NULL && w->rogues[i]->client_open)
			conn_vanish(w->rogues[i]);
	/* new-member timers, the longest session twice, the slowest log */
	world_pass(w, 4500000000ull);
	REQUIRE(w, "connection-leak", w->conns_len == 0 && w->stats.session_opened == w->stats.session_closed, "%u connections, %llu sessions", w->conns_len,
		(unsigned long long)(w->stats.session_opened - w->stats.session_closed));
	audit_end(w);
}

/* The server stops in the middle of everything: whatever is parked is answered. */
static void end_by_stop(struct world *w)
{
	if (w->stalled) {
		w->stalled_until = w->now.us;
		world_resume(w);
	}
	w->draining = w->stopping = true;
	bool done = node_service_ops.stop(w->node, served(w));
	for (unsigned int i = 0; i < 4000 && !done; i++) {
		world_pass(w, 1000);
		done = node_service_ops.stop(w->node, served(w)); /* asked again: what came in between may be parked */
	}
	REQUIRE(w, "stop-hangs", done && w->stats.requests_parked_now == 0, "%llu requests are still parked", (unsigned long long)w->stats.requests_parked_now);
	for (unsigned int i = 0; i < w->conns_len; i++)
		REQUIRE(w, "stop-unanswered", w->conns[i]->asked_len == 0 || w->conns[i]->eof, "connection %u: %u requests, the first of api %d",
			w->conns[i]->number, w->conns[i]->asked_len, w->conns[i]->asked[w->conns[i]->asked_first].api);
	for (unsigned int i = 0; i < w->conns_len; i++)
		if (w->conns[i]->session != NULL)
			node_service_ops.closed(w->conns[i]->session, served(w));
}

void world_run(struct world *w, uint64_t seed, const bool *keep, bool tracing)
{
	plan_make(&w->plan, seed);
	w->keep = keep;
	w->trace = tracing;
	world_begin(w);
	world_pass(w, w->plan.actions[w->plan.len - 1].at + 5000000);
	if (w->plan.end == END_STOP)
		end_by_stop(w);
	else
		end_in_silence(w);
	for (unsigned int i = 0; i < w->conns_len; i++)
		conn_free(w->conns[i]);
	node_free(w->node);
	REQUIRE(w, "member-leak", w->stats.group_members_now == 0 && w->stats.group_groups_now == 0, "%llu members, %llu groups survive their node",
		(unsigned long long)w->stats.group_members_now, (unsigned long long)w->stats.group_groups_now);
	audit_fini(w);
	watch_fini(w);
	disk_fini(&w->disk);
	image_free(w->image);
	image_free(w->all_topics);
	free(w->loading);
	free(w->offset_position);
	free(w->offset_epoch);
}
