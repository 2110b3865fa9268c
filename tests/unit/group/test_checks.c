/*
 * test_checks.c - walks the tables of checks.h: a good request passes; each check alone gives its own answer; of each pair that can fail together the
 * earlier one decides. So the order that stands in a table is the order in force, also where a heartbeat has it inline.
 */
#include <criterion/criterion.h>

#include "coordinator/group/checks.h"
#include "rig.h"

/*
 * Groups, each of a leader and a static follower "i1", in generation 1, but for "empty":
 *   stable   joining (the leader has joined again)   awaiting (the assignment is awaited)   dead   empty
 */
enum { STABLE, JOINING, AWAITING, DEAD, EMPTY, GROUPS };
static const char *const group_names[GROUPS] = {"stable", "joining", "awaiting", "dead", "empty"};

struct world {
	struct rig *r;
	char leader[GROUPS][RIG_TEXT], follower[GROUPS][RIG_TEXT];
	char handed_out[RIG_TEXT];
};

/* A request, good as it begins. */
struct ask {
	int group;		/* of group_names */
	const char *group_text; /* another id */
	bool group_set;
	bool stranger, fenced, nobody, handed_out, instance_only, by_nothing;
	int generation, version;
	const char *type, *protocol, *protocols;
	int session_ms, max_size;
	bool loading, log_broken;
	bool needs_generation; /* what is broken so far would be good without one */
};

struct breaker {
	const char *check;
	int code; /* of the answer; 0: passed for good */
	bool (*apply)(struct ask *a); /* false: not together with what is broken already */
};

static char long_text[RECORD_STRING_MAX + 10];

static bool in_group(struct ask *a, int group, const char *text)
{
	if (a->group_set)
		return false;
	a->group_set = true;
	a->group = group;
	a->group_text = text;
	return true;
}

static bool who(struct ask *a, bool *flag)
{
	if (a->stranger || a->fenced || a->nobody || a->handed_out || a->instance_only || a->by_nothing)
		return false;
	return *flag = true;
}

static bool no_group_id(struct ask *a) { return in_group(a, STABLE, ""); }
static bool null_group_id(struct ask *a) { return in_group(a, STABLE, NULL); }
static bool unknown_group(struct ask *a) { return in_group(a, STABLE, "unknown"); }
static bool dead_group(struct ask *a) { return in_group(a, DEAD, group_names[DEAD]); }
static bool empty_group(struct ask *a) { return in_group(a, EMPTY, group_names[EMPTY]); }
static bool joining_group(struct ask *a) { return in_group(a, JOINING, group_names[JOINING]); }
static bool awaiting_group(struct ask *a) { return in_group(a, AWAITING, group_names[AWAITING]); }
static bool loading(struct ask *a) { return a->loading = true; }
static bool log_broken(struct ask *a) { return a->log_broken = true; }
static bool stranger(struct ask *a) { return who(a, &a->stranger); }
static bool fenced(struct ask *a) { return a->max_size != 1 && who(a, &a->fenced); } /* who has joined already has room */
static bool handed_out(struct ask *a) { return who(a, &a->handed_out); }
static bool instance_only(struct ask *a) { return who(a, &a->instance_only); }
static bool by_nothing(struct ask *a) { return who(a, &a->by_nothing); }
static bool long_type(struct ask *a) { a->type = long_text; return true; }
static bool no_type(struct ask *a) { a->type = NULL; return true; }
static bool short_session(struct ask *a) { a->session_ms = 5; return true; }

static bool other_protocol(struct ask *a)
{
	a->protocol = a->protocols = "other";
	return true;
}

static bool old_generation(struct ask *a)
{
	if (a->generation != 1)
		return false;
	a->generation = 99;
	return true;
}

static bool no_generation(struct ask *a)
{
	if (a->generation != 1 || a->needs_generation)
		return false;
	a->generation = -1;
	return true;
}

static bool unknown_group_of_a_generation(struct ask *a)
{
	a->needs_generation = true;
	return a->generation >= 0 && unknown_group(a);
}

static bool nobody(struct ask *a) { return no_generation(a) && who(a, &a->nobody); }
static bool simple_commit(struct ask *a) { return no_generation(a) && empty_group(a); }

static bool no_room(struct ask *a)
{
	a->max_size = 1;
	return !a->fenced && joining_group(a);
}

/* ---- the breakers of each table, in its order ---- */

static const struct breaker join_breakers[] = {
	{"group id is given", 24, no_group_id},
	{"session timeout is allowed", 26, short_session},
	{"shard is loaded", 14, loading},
	{"log works", 16, log_broken},
	{"names and protocols can be stored", 42, long_type},
	{"group is known, or is made", 25, unknown_group},
	{"shard is served here", 15, dead_group},
	{"group has room", 81, no_room},
	{"protocols fit the group's", 23, other_protocol},
	{"member is known and not fenced", 25, stranger},
	{"member is known and not fenced", 82, fenced},
	{NULL},
};
static const struct breaker sync_breakers[] = {
	{"protocol is named from version 5 on", 23, no_type},
	{"group id is given", 24, no_group_id},
	{"shard is loaded", 27, loading},
	{"group is known", 25, unknown_group},
	{"group has members", 25, empty_group},
	{"shard is served here", 15, dead_group},
	{"member is known and not fenced", 25, stranger},
	{"member is known and not fenced", 82, fenced},
	{"generation is the group's", 22, old_generation},
	{"protocol is the group's", 23, other_protocol},
	{"join phase is over", 27, joining_group},
	{NULL},
};
static const struct breaker heartbeat_breakers[] = {
	{"group id is given", 24, no_group_id},
	{"shard is loaded", 0, loading},
	{"group is known", 25, unknown_group},
	{"shard is served here", 15, dead_group},
	{"member is known and not fenced", 25, stranger},
	{"member is known and not fenced", 82, fenced},
	{"generation is the group's", 22, old_generation},
	{"no join phase is open", 27, joining_group},
	{NULL},
};
static const struct breaker commit_breakers[] = {
	{"group id is not null", 24, null_group_id},
	{"shard is loaded", 14, loading},
	{"group is known, or is made", 22, unknown_group_of_a_generation},
	{"shard is served here", 15, dead_group},
	{"without a generation to an empty group", 0, simple_commit},
	{"member is named", 25, nobody},
	{"member is known and not fenced", 25, stranger},
	{"member is known and not fenced", 82, fenced},
	{"generation is the group's", 22, old_generation},
	{"generation is the group's", 22, no_generation},
	{"assignment is there", 27, awaiting_group},
	{NULL},
};
static const struct breaker leave_breakers[] = {
	{"group id is given", 24, no_group_id},
	{"shard is loaded", 14, loading},
	{"shard is served here", 15, dead_group},
	{NULL},
};
static const struct breaker leave_member_breakers[] = {
	{"group is known", 25, unknown_group},
	{"instance id alone is a member's", 25, by_nothing},
	{"instance id alone is a member's", 0, instance_only},
	{"id was handed out", 0, handed_out},
	{"member is known and not fenced", 25, stranger},
	{"member is known and not fenced", 82, fenced},
	{NULL},
};

/* ---- the world, new for each request ---- */

static void make_group(struct world *w, int group)
{
	const char *name = group_names[group];
	struct call *c[2] = {
		rig_join_to(w->r, name, 3, "", NULL, 30000, 60000, "consumer", "range"),
		rig_join_to(w->r, name, 5, "", "i1", 30000, 60000, "consumer", "range"),
	};
	rig_pass(w->r, 6000);
	cr_assert_eq(c[1]->error, 0);
	cr_assert_eq(c[1]->generation, 1);
	snprintf(w->leader[group], RIG_TEXT, "%s", c[0]->id);
	snprintf(w->follower[group], RIG_TEXT, "%s", c[1]->id);
	if (group == AWAITING)
		return;
	rig_sync_as(w->r, name, 3, c[0]->id, NULL, 1, NULL, NULL, "");
	rig_sync_as(w->r, name, 3, c[1]->id, "i1", 1, NULL, NULL, "");
	rig_settle(w->r);
	struct group *g = group_find(w->r->shard, bytes_str(name));
	cr_assert_eq(g->state, GROUP_STABLE);
	if (group == JOINING)
		cr_assert(!rig_join_to(w->r, name, 9, c[0]->id, NULL, 30000, 60000, "consumer", "range")->answered);
	if (group == DEAD)
		group_transition(g, GROUP_DEAD, w->r->now);
}

static struct world world_new(void)
{
	struct world w = {.r = rig_new()};
	w.r->unchecked = true;
	for (int group = 0; group < EMPTY; group++)
		make_group(&w, group);
	rig_commit_full(w.r, group_names[EMPTY], 8, "", NULL, -1, "t:0=5", -1, -1);
	struct call *p = rig_join_to(w.r, group_names[STABLE], 4, "", NULL, 30000, 60000, "consumer", "range");
	cr_assert_eq(p->error, 79);
	snprintf(w.handed_out, RIG_TEXT, "%s", p->id);
	rig_settle(w.r);
	return w;
}

static const struct ask good = {.group_text = "stable", .generation = 1, .version = 5, .type = "consumer", .protocol = "range",
				.protocols = "range", .session_ms = 30000, .max_size = INT32_MAX};

static const char *ask_member(const struct world *w, const struct ask *a)
{
	int group = a->group == EMPTY ? STABLE : a->group;
	if (a->nobody || a->instance_only || a->by_nothing)
		return "";
	if (a->stranger)
		return "stranger";
	return a->handed_out ? w->handed_out : a->fenced ? w->leader[group] : w->follower[group];
}

static const char *ask_instance(const struct ask *a)
{
	return a->stranger || a->nobody || a->by_nothing || a->handed_out ? NULL : "i1";
}

static struct call *send(const struct checks *checks, struct world *w, const struct ask *a)
{
	const char *id = ask_member(w, a), *instance = ask_instance(a);
	char member[2 * RIG_TEXT];
	if (checks == &join_checks)
		return rig_join_to(w->r, a->group_text, 9, id, instance, a->session_ms, 60000, a->type, a->protocols);
	if (checks == &sync_checks)
		return rig_sync_as(w->r, a->group_text, a->version, id, instance, a->generation, a->type, a->protocol, "");
	if (checks == &heartbeat_checks)
		return rig_heartbeat_to(w->r, a->group_text, id, instance, a->generation);
	if (checks == &commit_checks)
		return rig_commit_full(w->r, a->group_text, 8, id, instance, a->generation, "t:0=6", -1, -1);
	snprintf(member, sizeof(member), "%s%s%s", id, instance != NULL || *id == '\0' ? "|" : "", instance != NULL ? instance : "");
	return rig_leave_many(w->r, a->group_text, member);
}

/* What the request is answered in a new world. */
static int code_of(const struct checks *checks, const struct ask *a)
{
	struct world w = world_new();
	w.r->settings.group_max_size = a->max_size;
	w.r->shard->loading = a->loading;
	if (a->log_broken)
		rig_log_break(w.r, 56);
	struct call *c = send(checks, &w, a);
	w.r->shard->loading = false;
	rig_settle(w.r);
	cr_assert(c->answered);
	int code = c->error;
	if (code == 0 && (checks == &leave_member_checks || checks == &leave_checks))
		code = checks == &leave_member_checks ? c->codes[0] : 0;
	w.r->settings.group_max_size = INT32_MAX;
	rig_free(w.r);
	return code;
}

/* ---- the walk ---- */

static int check_index(const struct checks *checks, const char *name)
{
	for (unsigned int i = 0; i < checks->len; i++)
		if (strcmp(checks->list[i].name, name) == 0)
			return (int)i;
	cr_assert_fail("%s has no check \"%s\"", checks->api, name);
	return -1;
}

static void walk(const struct checks *checks, const struct breaker *breakers, int pairs_least)
{
	uint32_t seen = 0;
	int pairs = 0, last = -1;
	memset(long_text, 'x', sizeof(long_text) - 1);
	cr_expect_eq(code_of(checks, &good), 0, "%s: a good request", checks->api);
	for (const struct breaker *b = breakers; b->check != NULL; b++) {
		struct ask a = good;
		int index = check_index(checks, b->check);
		cr_expect_geq(index, last, "%s: \"%s\" stands elsewhere in the table", checks->api, b->check);
		last = index;
		seen |= 1u << index;
		cr_assert(b->apply(&a));
		cr_expect_eq(code_of(checks, &a), b->code, "%s: \"%s\" alone", checks->api, b->check);
		for (const struct breaker *other = b + 1; other->check != NULL; other++) {
			struct ask both = a;
			if (strcmp(other->check, b->check) == 0 || !other->apply(&both))
				continue;
			pairs++;
			cr_expect_eq(code_of(checks, &both), b->code, "%s: \"%s\" before \"%s\"", checks->api, b->check, other->check);
		}
	}
	cr_expect_eq(seen, (1u << checks->len) - 1, "%s: a check that nothing breaks", checks->api);
	cr_expect_geq(pairs, pairs_least, "%s: only %d pairs", checks->api, pairs);
	for (unsigned int i = 0; i < checks->len; i++)
		cr_expect_gt(strlen(checks->list[i].reference), 2);
}

Test(checks, join)
{
	walk(&join_checks, join_breakers, 30);
}

Test(checks, sync)
{
	walk(&sync_checks, sync_breakers, 35);
}

Test(checks, heartbeat)
{
	walk(&heartbeat_checks, heartbeat_breakers, 18);
}

Test(checks, commit)
{
	walk(&commit_checks, commit_breakers, 25);
}

Test(checks, leave)
{
	walk(&leave_checks, leave_breakers, 2);
	walk(&leave_member_checks, leave_member_breakers, 5);
}
