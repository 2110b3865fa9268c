/* test_purgatory.c - an operation completes once, by event, by force or by deadline. */
#include <criterion/criterion.h>

#include "coordinator/purgatory.h"

struct op {
	struct purgatory_op op;
	struct purgatory *p;
	bool ready;
	int completed, expired, again;
};

static struct op *op_of(struct purgatory_op *op)
{
	return CONTAINER_OF(op, struct op, op);
}

static bool try_op(struct purgatory_op *op)
{
	return op_of(op)->ready;
}

static const struct purgatory_kind kind;

static void complete_op(struct purgatory_op *op, struct now now)
{
	struct op *o = op_of(op);
	cr_expect(!purgatory_waiting(op));
	o->completed++;
	o->ready = false;
	if (o->again > 0) {
		o->again--;
		purgatory_start(o->p, op, &kind, NULL, now.us + 5000, now);
	}
}

static void expire_op(struct purgatory_op *op, struct now now)
{
	op_of(op)->expired++;
}

static const struct purgatory_kind kind = {"test", try_op, complete_op, expire_op};

static struct now at(uint64_t us)
{
	return (struct now){us, 0};
}

static struct purgatory p;

Test(purgatory, completes_at_once_when_satisfied)
{
	struct op o = {.p = &p, .ready = true};
	purgatory_init(&p, at(0));
	cr_expect(purgatory_start(&p, &o.op, &kind, NULL, 1000, at(0)));
	cr_expect_eq(o.completed, 1);
	cr_expect_eq(purgatory_next(&p), TIME_NEVER);
}

Test(purgatory, completes_at_an_event_and_only_once)
{
	struct op o = {.p = &p}, other = {.p = &p};
	struct purgatory_watch watch = {0};
	purgatory_init(&p, at(0));
	cr_expect(!purgatory_start(&p, &o.op, &kind, &watch, 9000, at(0)));
	cr_expect(!purgatory_start(&p, &other.op, &kind, &watch, 9000, at(0)));
	cr_expect_eq(purgatory_check(&watch, at(1)), 0);
	o.ready = true;
	cr_expect_eq(purgatory_check(&watch, at(2)), 1);
	cr_expect_eq(purgatory_check(&watch, at(3)), 0);
	cr_expect(!purgatory_force(&o.op, at(4)));
	cr_expect_eq(o.completed, 1);
	cr_expect_eq(purgatory_advance(&p, 10, at(20000)), 1);
	cr_expect_eq(o.completed, 1);
	cr_expect_eq(o.expired, 0);
	cr_expect_eq(other.completed, 1);
	cr_expect_eq(other.expired, 1);
	cr_expect_null(watch.first);
}

Test(purgatory, never_before_its_deadline)
{
	struct op o = {.p = &p};
	purgatory_init(&p, at(1234567));
	purgatory_start(&p, &o.op, &kind, NULL, 1239001, at(1234567));
	purgatory_advance(&p, 10, at(1239000));
	cr_expect_eq(o.expired, 0);
	cr_expect_leq(purgatory_next(&p), 1240000);
	purgatory_advance(&p, 10, at(1240000));
	cr_expect_eq(o.expired, 1);
	cr_expect_eq(o.completed, 1);
}

Test(purgatory, postponing_is_lazy_and_pulling_in_is_not)
{
	struct op o = {.p = &p};
	purgatory_init(&p, at(0));
	purgatory_start(&p, &o.op, &kind, NULL, 10000, at(0));
	purgatory_postpone(&p, &o.op, 50000);
	cr_expect_eq(o.op.timer.when, 10);
	purgatory_advance(&p, 10, at(20000));
	cr_expect_eq(o.expired, 0);
	cr_expect_eq(o.op.timer.when, 50);
	purgatory_postpone(&p, &o.op, 30000);
	cr_expect_eq(o.op.timer.when, 30);
	purgatory_advance(&p, 10, at(29999));
	cr_expect_eq(o.expired, 0);
	purgatory_advance(&p, 10, at(30000));
	cr_expect_eq(o.expired, 1);
}

Test(purgatory, force_cancel_and_start_again)
{
	struct op o = {.p = &p, .again = 1};
	struct purgatory_watch watch = {0};
	purgatory_init(&p, at(0));
	purgatory_start(&p, &o.op, &kind, &watch, 10000, at(0));
	cr_expect(purgatory_force(&o.op, at(0)));
	cr_expect(purgatory_waiting(&o.op)); /* started anew by its own completion */
	cr_expect_null(watch.first);
	purgatory_advance(&p, 10, at(5000));
	cr_expect_eq(o.completed, 2);
	cr_expect_eq(o.expired, 1);
	purgatory_start(&p, &o.op, &kind, &watch, 10000, at(5000));
	purgatory_cancel(&o.op);
	purgatory_cancel(&o.op);
	purgatory_advance(&p, 10, at(99000));
	cr_expect_eq(o.completed, 2);
	cr_expect_null(watch.first);
}

Test(purgatory, budget_leaves_the_rest_for_the_next_call)
{
	static struct op ops[10];
	purgatory_init(&p, at(0));
	for (int i = 0; i < 10; i++)
		purgatory_start(&p, &ops[i].op, &kind, NULL, 1000, at(0));
	cr_expect_eq(purgatory_advance(&p, 4, at(2000)), 4);
	cr_expect_leq(purgatory_next(&p), 2000);
	cr_expect_eq(purgatory_advance(&p, 100, at(2000)), 6);
	cr_expect_eq(purgatory_next(&p), TIME_NEVER);
}

static const struct purgatory_kind patient = {"patient", try_op, complete_op, expire_op, true};

Test(purgatory, held_patient_kinds_wait_and_the_others_do_not)
{
	struct op o = {.p = &p}, other = {.p = &p}, soon = {.p = &p};
	struct purgatory_watch watch = {0};
	purgatory_init(&p, at(0));
	purgatory_start(&p, &o.op, &patient, NULL, 10000, at(0));
	purgatory_start(&p, &other.op, &kind, NULL, 10000, at(0));
	purgatory_start(&p, &soon.op, &patient, &watch, 10000, at(0));
	purgatory_hold(&p, 50000);
	purgatory_hold(&p, 30000); /* the longer hold stays */
	purgatory_advance(&p, 10, at(20000));
	cr_expect_eq(o.expired, 0);
	cr_expect_eq(other.expired, 1);
	cr_expect_eq(p.held, 2);
	soon.ready = true;
	cr_expect_eq(purgatory_check(&watch, at(21000)), 1);
	cr_expect_eq(soon.completed, 1);
	purgatory_advance(&p, 10, at(49999));
	cr_expect_eq(o.expired, 0);
	purgatory_advance(&p, 10, at(50000));
	cr_expect_eq(o.expired, 1);
	cr_expect_eq(soon.completed, 1);
}

Test(purgatory, a_sign_of_life_during_the_hold_counts)
{
	struct op o = {.p = &p};
	purgatory_init(&p, at(0));
	purgatory_start(&p, &o.op, &patient, NULL, 10000, at(0));
	purgatory_hold(&p, 50000);
	purgatory_advance(&p, 10, at(20000));
	purgatory_postpone(&p, &o.op, 35000); /* before the end of the hold */
	purgatory_advance(&p, 10, at(40000));
	cr_expect_eq(o.expired, 0);
	purgatory_postpone(&p, &o.op, 70000);
	purgatory_advance(&p, 10, at(69999));
	cr_expect_eq(o.expired, 0);
	purgatory_advance(&p, 10, at(70000));
	cr_expect_eq(o.expired, 1);
}

/*
 * A million sessions of 10 s with a heartbeat about every 3 s; some fall silent at any time. A round has the budget of a shard and takes 60 us, and the
 * next one follows at once while timers are waiting to be looked at, as the worker's loop does it. Nobody expires early, nobody later than 50 ms.
 */
#define MANY 1000000u
#define MANY_SESSION_US 10000000ull
#define MANY_BUDGET 256
#define MANY_ROUND_US 60

static uint64_t many_expired, many_worst_us;

static void many_gone(struct purgatory_op *op, struct now now)
{
	many_expired++;
	cr_assert_geq(now.us, op->deadline);
	if (now.us - op->deadline > many_worst_us)
		many_worst_us = now.us - op->deadline;
}

static const struct purgatory_kind many_kind = {"many", NULL, NULL, many_gone, false};

Test(purgatory, a_million_sessions_expire_in_time)
{
	struct purgatory *wheel = malloc(sizeof(*wheel));
	struct purgatory_op *ops = calloc(MANY, sizeof(*ops));
	bool *silent = calloc(MANY, sizeof(*silent));
	struct now now = {1000000, 0};
	uint64_t seed = 1, silenced = 0;
	uint32_t next = 0;
	cr_assert(wheel != NULL && ops != NULL && silent != NULL);
	purgatory_init(wheel, now);
	for (uint32_t i = 0; i < MANY; i++)
		purgatory_start(wheel, &ops[i], &many_kind, NULL, now.us + i % 3000 * 1000 + MANY_SESSION_US, now);
	for (unsigned int ms = 0; ms < 30000; ms++) {
		now.us = 1000000 + 1000 * (ms + 1ull);
		for (unsigned int k = 0; k < 334; k++, next = (next + 1) % MANY) {
			seed = seed * 6364136223846793005ull + 1442695040888963407ull;
			if (silent[next])
				continue;
			purgatory_postpone(wheel, &ops[next], now.us + MANY_SESSION_US - (seed >> 40) % 1000);
			silent[next] = ms < 19000 && seed >> 54 == 0; /* its last one */
			silenced += silent[next];
		}
		for (unsigned int round = 0; round < 1000 / MANY_ROUND_US && purgatory_next(wheel) <= now.us; round++) {
			purgatory_advance(wheel, MANY_BUDGET, now);
			now.us += MANY_ROUND_US;
		}
	}
	cr_expect_gt(silenced, 5000);
	cr_expect_eq(many_expired, silenced);
	cr_expect_leq(many_worst_us, 50000, "%llu us", (unsigned long long)many_worst_us);
	free(silent);
	free(ops);
	free(wheel);
}
