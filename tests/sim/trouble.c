/*
 * trouble.c - the actions that happen to the world: the log, the network, the worker, the topics, crash and recovery. Those of clients go to them.
 */
#include "sim.h"

#define STALL_LIMIT_US 200000 /* worker.stall.limit.ms */
/* The longest that a deletion's tombstones may take without trouble: the walk, and the slowest log. */
#define TOPIC_WALK_US 20000000ull

/* ---- crash and recovery: sessions and what was not durable are gone ---- */

/* From the log as it is, or compacted: both must come to the same, and to what a replay in step with the log came to. */
static void world_recover(struct world *w, struct rng *r)
{
	bool *keep = rng_one_in(r, 2) && !w->plan.stored ? disk_compacted(&w->disk, rng_one_in(r, 2)) : disk_left(&w->disk);
	for (uint64_t i = 0; i < w->disk.len; i++)
		if (keep == NULL || keep[i])
			REQUIRE(w, "record-unreadable", shard_replay(world_shard_number(w, w->disk.entries[i].shard), &w->disk.entries[i].e, served(w)),
				"record %llu, at recovery", (unsigned long long)i);
	audit_deep(w);
	if (w->plan.stored) /* from here on the log's bytes are what a start would find */
		audit_replay_again(w, keep);
	free(keep);
}

/* The loader is through with a shard: it starts the members' sessions, then the worker takes it. */
static bool ready(void *arg, unsigned int shard)
{
	struct world *w = arg;
	if (w->now.us < w->ready_at[shard])
		return false;
	shard_loaded(world_shard_number(w, shard), served(w));
	for (int g = 0; g < GROUPS; g++)
		if (image_shard_of(w->image, w->group_id[g]) == shard)
			audit_recovered(w, g);
	return true;
}

bool world_loading(struct world *w)
{
	bool loading = false;
	for (unsigned int i = 0; i < SHARDS; i++)
		loading |= shard_is_loading(world_shard_number(w, i));
	return loading;
}

/* The node serves from the start; its shards follow one by one. */
static void begin_loading(struct world *w, struct rng *r)
{
	free(w->loading);
	w->loading = aligned_alloc(MUSTER_CACHE_LINE, SHARDS * sizeof(*w->loading));
	memset(w->loading, 0, SHARDS * sizeof(*w->loading));
	node_load(w->node, w->loading, ready, w);
	for (unsigned int i = 0; i < SHARDS; i++)
		w->ready_at[i] = w->now.us + rng_below(r, 4000000);
}

static void world_restart(struct world *w, struct rng r)
{
	if (w->stalled) { /* killed while it stood still: worker time begins anew */
		w->lost_us += w->now.us - w->stall_began;
		w->stalled = false;
	}
	w->held_until = 0;
	for (unsigned int i = 0; i < w->conns_len; i++)
		conn_server_lost(w->conns[i]);
	node_free(w->node);
	REQUIRE(w, "member-leak", w->stats.group_members_now == 0 && w->stats.group_groups_now == 0, "%llu members survive their node",
		(unsigned long long)w->stats.group_members_now);
	w->stats.requests_parked_now = 0;
	w->stats.session_closed = w->stats.session_opened;
	disk_crash(&w->disk, &r);
	w->restarts++;
	w->later[LATER_BREAK].at = w->later[LATER_REPAIR].at = TIME_NEVER;
	memset(w->topic_gone_at, 0, sizeof(w->topic_gone_at));
	world_set_clock(w, w->now.us + rng_below(&r, 3000000));
	w->node = world_node(w);
	bool loads = rng_one_in(&r, 2);
	if (loads)
		begin_loading(w, &r);
	world_recover(w, &r);
	for (unsigned int i = 0; i < SHARDS && !loads; i++)
		shard_loaded(world_shard_number(w, i), served(w));
	watch_restart(w);
	audit_restart(w);
	w->tick_at = w->now.us;
}

/* ---- the log ---- */

static void log_slow(struct world *w, const struct action *a)
{
	w->disk.slow_until = w->now.us + (1 + a->random % 5) * 1000000;
	w->disk.slow_ms = (uint32_t)(a->random / 8 % 900);
}

static void log_fail(struct world *w, const struct action *a)
{
	static const int16_t codes[] = {3, 7, 19, 20, 6, 56, 10, 18};
	struct consumer *c = &w->consumers[a->who];
	w->disk.fail_until = w->now.us + a->random % 3000000;
	w->disk.fail_code = codes[a->random / 7 % ARRAY_LEN(codes)];
	if (c->is_static && c->state == STABLE) { /* restarts just now: its replacement cannot be stored */
		consumer_act(c, &(struct action){.kind = ACT_KILL});
		consumer_act(c, &(struct action){.kind = ACT_START, .random = a->random});
	}
}

/* Requests for two groups that may be on their way to the log, or behind it, when the trouble comes. */
static void traffic(struct world *w, const struct action *a)
{
	static const enum action_kind kinds[] = {ACT_ROGUE_COMMIT, ACT_ROGUE_FETCH, ACT_ADMIN, ACT_ADMIN, ACT_ROGUE_COMMIT, ACT_ROGUE_FETCH};
	struct rng r = rng_of(a->random, 8);
	for (unsigned int i = 0; i < ARRAY_LEN(kinds); i++)
		rogue_act(w, &(struct action){.kind = kinds[i], .who = a->who + i % 2, .random = rng_next(&r)});
}

/* It hangs first, so that writes gather. Few are never repaired: nothing forms any more then. */
static void log_break(struct world *w, const struct action *a)
{
	if (w->disk.broken != 0 || w->disk.held)
		return;
	w->disk.held = true;
	w->later[LATER_BREAK].at = w->now.us + a->random % 2000000;
	if (a->random % 12 != 0)
		w->later[LATER_REPAIR].at = w->later[LATER_BREAK].at + a->random / 12 % 8000000;
	traffic(w, a);
}

static void log_broken(struct world *w)
{
	disk_break(&w->disk);
	disk_survey(&w->disk, w->disk.durable); /* what is not durable now may never be: a fetch need not see it */
	w->tick_at = w->now.us;
}

/* ---- the worker ---- */

static void stall(struct world *w, const struct action *a)
{
	if (w->stalled)
		return;
	w->stalled = true;
	w->stall_began = w->now.us;
	w->stalled_until = w->now.us + a->random % (a->random / 1000000 % 2 == 0 ? 400000 : 30000000);
}

/* The worker runs again. The rule of muster/time.h and the hold of shard_stalled, worked out anew. */
void world_resume(struct world *w)
{
	uint64_t stood = w->stalled_until - w->stall_began, lost = stood > STALL_LIMIT_US ? stood : 0;
	w->stalled = false;
	w->lost_us += lost;
	for (unsigned int i = 0; i < w->conns_len; i++)
		conn_stalled(w->conns[i], lost);
	if (lost == 0)
		return;
	uint64_t held = lost + 1000000, until = served(w).us + held;
	w->held_until = until > w->held_until ? until : w->held_until;
	node_service_ops.stalled(w->node, lost, served(w));
	watch_stalled(w, held);
}

/* ---- topics ---- */

static void topic_flip(struct world *w, unsigned int t)
{
	if (w->stalled || world_loading(w))
		return;
	w->topics_gone ^= 1u << t;
	struct image *next = world_image(w->topics_gone);
	CHECK(node_set_image(w->node, next, served(w)));
	image_free(w->image);
	w->image = next;
	w->topic_gone_at[t] = w->topics_gone >> t & 1 && !disk_may_refuse(&w->disk) && !w->disk.held ? served(w).us : 0;
	w->tick_at = w->now.us;
}

/* With commits on their way, if the log is slow. */
static void topic(struct world *w, const struct action *a)
{
	if (w->later[LATER_TOPIC].at != TIME_NEVER)
		return;
	if (a->random % 2 == 0)
		log_slow(w, a);
	traffic(w, a);
	w->later[LATER_TOPIC].at = w->now.us + a->random % 60000;
	w->later[LATER_TOPIC].who = a->who % TOPICS;
}

/* When no trouble came in between, nothing is left of a topic that went. */
void audit_topics(struct world *w)
{
	for (unsigned int p = 0; p < PARTS; p++) {
		unsigned int t = part_topic(p);
		if (w->topic_gone_at[t] == 0 || served(w).us < w->topic_gone_at[t] + TOPIC_WALK_US)
			continue;
		for (int g = 0; g < GROUPS; g++) {
			struct offset_value value;
			REQUIRE(w, "offset-of-deleted-topic", !shard_offset_get(world_shard(w, g), w->group_id[g], bytes_str(topic_names[t]), part_index(p), &value),
				"group %d, %s %d", g, topic_names[t], part_index(p));
		}
	}
}

/* ---- all ---- */

void world_later(struct world *w, enum later_kind kind)
{
	static const char *const texts[LATER_KINDS] = {"the log is broken", "the broken log is replaced: restart", "a topic goes or comes back"};
	uint64_t at = w->later[kind].at;
	w->later[kind].at = TIME_NEVER;
	trace(w, "%s", texts[kind]);
	switch (kind) {
	case LATER_BREAK:
		log_broken(w);
		break;
	case LATER_REPAIR:
		world_restart(w, rng_of(at, 4));
		break;
	default:
		topic_flip(w, w->later[kind].who);
	}
}

void world_act(struct world *w, const struct action *a)
{
	trace(w, "ACTION %s (%u)", action_text(a->kind), a->who);
	if (a->kind == ACT_LOG_FAIL || a->kind == ACT_LOG_BREAK) /* tombstones may be lost */
		memset(w->topic_gone_at, 0, sizeof(w->topic_gone_at));
	switch (a->kind) {
	case ACT_LOG_SLOW:
		log_slow(w, a);
		break;
	case ACT_LOG_FAIL:
		log_fail(w, a);
		break;
	case ACT_LOG_BREAK:
		log_break(w, a);
		break;
	case ACT_TOPIC:
		topic(w, a);
		break;
	case ACT_NET_SLOW:
		w->net_slow_until = w->now.us + (1 + a->random % 5) * 1000000;
		w->net_slow_ms = (uint32_t)(a->random / 8 % 1500) + 1;
		break;
	case ACT_STALL:
		stall(w, a);
		break;
	case ACT_RESTART:
		world_restart(w, rng_of(a->random, 3));
		break;
	default:
		if (a->kind >= ACT_ROGUE_JOIN)
			rogue_act(w, a);
		else
			consumer_act(&w->consumers[a->who], a);
	}
}
