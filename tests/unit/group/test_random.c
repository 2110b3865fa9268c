/*
 * test_random.c - long random lives: members come, go, lose connections, restart, commit; the log stalls and fails; the shard is reloaded.
 *
 * Checked after every step: the invariants of group.h, and live state == state replayed from the log. At the end everybody is gone and
 * nothing is left. A failure prints the seed of its run.
 */
#include <criterion/criterion.h>
#include <stdio.h>

#include "rig.h"

enum { PEOPLE = 6 };

struct person {
	char id[RIG_TEXT];
	const char *instance;
	int generation;
	bool leads;
	struct call *join, *sync;
};

struct life {
	struct rig *r;
	struct person people[PEOPLE];
	uint64_t seed;
};

static uint32_t dice(struct life *l, uint32_t n)
{
	l->seed = l->seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(l->seed >> 33) % n;
}

static void take_answers(struct person *p)
{
	struct call *c = p->join;
	if (c != NULL && c->answered) {
		if (c->error == 0) {
			p->generation = c->generation;
			p->leads = strcmp(c->leader, c->id) == 0;
		}
		if (c->error == 0 || c->error == 79)
			snprintf(p->id, sizeof(p->id), "%s", c->id);
		else if (c->error == 25 || c->error == 82)
			p->id[0] = '\0';
		p->join = NULL;
	}
	if (p->sync != NULL && p->sync->answered)
		p->sync = NULL;
}

static void lose(struct call **c)
{
	if (*c != NULL && !(*c)->answered)
		rig_drop(*c);
	*c = NULL;
}

static void step_join(struct life *l, struct person *p)
{
	static const char *const offers[] = {"range", "range=x,sticky", "sticky,range=y", "range=z"};
	static const int versions[] = {0, 3, 4, 5, 8, 9};
	int version = p->instance != NULL ? (dice(l, 2) ? 5 : 9) : versions[dice(l, 6)];
	const char *id = p->instance != NULL && dice(l, 3) == 0 ? "" : p->id;
	if (p->join != NULL && dice(l, 2) == 0)
		lose(&p->join);
	p->join = rig_join(l->r, version, id, p->instance, 6000 + (int)dice(l, 4000), 5000 + (int)dice(l, 20000), offers[dice(l, 4)]);
}

static void step_sync(struct life *l, struct person *p)
{
	char list[4096] = "";
	for (int i = 0; i < PEOPLE && p->leads; i++)
		if (l->people[i].id[0] != '\0' && dice(l, 8) != 0)
			snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s=a%u,", l->people[i].id, dice(l, 100));
	p->sync = rig_sync(l->r, 3, p->id, p->instance, p->generation, list);
}

static void step_commit(struct life *l, struct person *p)
{
	char list[128];
	snprintf(list, sizeof(list), "t:%u=%u/m%u,u:%u=%u", dice(l, 3), dice(l, 1000), dice(l, 10), dice(l, 3), dice(l, 1000));
	bool simple = dice(l, 3) == 0;
	rig_commit_full(l->r, dice(l, 4) ? "g" : "h", dice(l, 2) ? 8 : 3, simple ? "" : p->id, simple ? NULL : p->instance,
			simple ? -1 : p->generation, list, -1, dice(l, 2) ? -1 : 1000);
}

static void step(struct life *l)
{
	struct person *p = &l->people[dice(l, PEOPLE)];
	for (int i = 0; i < PEOPLE; i++)
		take_answers(&l->people[i]);
	switch (dice(l, 16)) {
	case 0: case 1: case 2: case 3:
		step_join(l, p);
		break;
	case 4: case 5: case 6:
		step_sync(l, p);
		break;
	case 7:
		rig_heartbeat(l->r, p->id, p->instance, p->generation);
		break;
	case 8:
		step_commit(l, p);
		break;
	case 9:
		if (dice(l, 3) == 0)
			rig_leave_many(l->r, "g", p->id);
		break;
	case 10:
		lose(dice(l, 2) ? &p->join : &p->sync);
		break;
	case 11:
		if (dice(l, 6) == 0)
			rig_log_hold(l->r, dice(l, 2));
		if (dice(l, 6) == 0)
			rig_log_fail(l->r, dice(l, 2) ? 0 : 7);
		break;
	case 12:
		if (dice(l, 20) == 0) {
			rig_log_hold(l->r, false);
			rig_settle(l->r);
			rig_reload(l->r);
			for (int i = 0; i < PEOPLE; i++)
				l->people[i].join = l->people[i].sync = NULL;
		}
		break;
	default:
		rig_pass(l->r, dice(l, 4) ? dice(l, 500) : dice(l, 8000));
	}
}

static void live(uint64_t seed, int steps)
{
	static const char *const instances[PEOPLE] = {NULL, NULL, NULL, "ia", "ib", NULL};
	struct life l = {.r = rig_new(), .seed = seed};
	fprintf(stderr, "seed %llu\n", (unsigned long long)seed);
	for (int i = 0; i < PEOPLE; i++)
		l.people[i].instance = instances[i];
	l.r->settings.group_initial_rebalance_delay_ms = (int32_t)dice(&l, 2) * 3000;
	l.r->settings.group_max_size = dice(&l, 3) == 0 ? 3 : INT32_MAX;
	for (int i = 0; i < steps; i++)
		step(&l);
	cr_expect_gt(l.r->stats.group_rebalances, 0);
	rig_log_fail(l.r, 0);
	rig_log_hold(l.r, false);
	rig_pass(l.r, 3000000); /* everybody is silent from now on */
	cr_assert_str_eq(rig_state(l.r), "Empty");
	cr_assert_eq(l.r->stats.group_members_now, 0);
	cr_assert_eq(l.r->shard->members.count, 0);
	cr_assert_eq(l.r->shard->instances.count, 0);
	cr_assert_eq(l.r->shard->pendings.count, 0);
	cr_assert_eq(l.r->shard->protocols.count, 0);
	for (struct call *c = l.r->calls; c != NULL; c = c->next)
		cr_assert(c->answered || c->dropped, "a request was never answered");
	rig_free(l.r);
}

Test(random, lives)
{
	for (uint64_t seed = 1; seed <= 60; seed++)
		live(seed, 600);
}
