/*
 * purgatory.c - starting, trying, completing and expiring of waiting operations; see purgatory.h.
 */
#include "coordinator/purgatory.h"

static uint64_t purgatory_tick(uint64_t us)
{
	return us / US_PER_MS + (us % US_PER_MS != 0);
}

void purgatory_init(struct purgatory *p, struct now now)
{
	wheel_init(&p->wheel, now_ms(now));
	p->held_us = p->held = 0;
}

void purgatory_hold(struct purgatory *p, uint64_t until)
{
	if (until > p->held_us)
		p->held_us = until;
}

static void purgatory_unlink(struct purgatory_op *op)
{
	wheel_remove(&op->timer);
	if (op->watch == NULL)
		return;
	struct purgatory_op **at = &op->watch->first;
	while (*at != op) {
		CHECK(*at != NULL);
		at = &(*at)->next;
	}
	*at = op->next;
	op->watch = NULL;
	op->next = NULL;
}

static void purgatory_complete(struct purgatory_op *op, struct now now)
{
	CHECK(!purgatory_waiting(op));
	if (op->kind->on_complete != NULL)
		op->kind->on_complete(op, now);
}

bool purgatory_start(struct purgatory *p, struct purgatory_op *op, const struct purgatory_kind *kind, struct purgatory_watch *watch,
		     uint64_t deadline, struct now now)
{
	CHECK(!purgatory_waiting(op) && op->watch == NULL);
	op->kind = kind;
	op->deadline = deadline;
	if (kind->try_complete != NULL && kind->try_complete(op)) {
		purgatory_complete(op, now);
		return true;
	}
	if (watch != NULL) {
		op->watch = watch;
		op->next = watch->first;
		watch->first = op;
	}
	wheel_add(&p->wheel, &op->timer, purgatory_tick(deadline));
	return false;
}

bool purgatory_force(struct purgatory_op *op, struct now now)
{
	if (!purgatory_waiting(op))
		return false;
	purgatory_unlink(op);
	purgatory_complete(op, now);
	return true;
}

unsigned int purgatory_check(struct purgatory_watch *watch, struct now now)
{
	unsigned int completed = 0;
	struct purgatory_op *op = watch->first;
	while (op != NULL) {
		if (op->kind->try_complete == NULL || !op->kind->try_complete(op)) {
			op = op->next;
			continue;
		}
		purgatory_force(op, now);
		completed++;
		/* what completed may have changed the list: begin again, an operation that was tried in vain is only tried once more */
		op = completed < 8 ? watch->first : NULL;
	}
	return completed;
}

void purgatory_cancel(struct purgatory_op *op)
{
	if (purgatory_waiting(op))
		purgatory_unlink(op);
}

void purgatory_rehang(struct purgatory *p, struct purgatory_op *op)
{
	CHECK(purgatory_waiting(op));
	wheel_set(&p->wheel, &op->timer, purgatory_tick(op->deadline));
}

struct purgatory_clock {
	struct purgatory *p;
	struct now now;
};

static void purgatory_fire(struct wheel_timer *timer, void *arg)
{
	const struct purgatory_clock *clock = arg;
	struct purgatory_op *op = CONTAINER_OF(timer, struct purgatory_op, timer);
	const struct purgatory_kind *kind = op->kind;
	uint64_t due = op->deadline;

	if (unlikely(kind->patient && due <= clock->now.us && clock->p->held_us > clock->now.us)) {
		due = clock->p->held_us;
		clock->p->held++;
	}
	if (due > clock->now.us) {
		wheel_add(&clock->p->wheel, timer, purgatory_tick(due));
		return;
	}
	purgatory_unlink(op);
	purgatory_complete(op, clock->now);
	if (kind->on_expire != NULL)
		kind->on_expire(op, clock->now);
}

unsigned int purgatory_advance(struct purgatory *p, unsigned int budget, struct now now)
{
	struct purgatory_clock clock = {p, now};
	return wheel_advance(&p->wheel, now_ms(now), budget, purgatory_fire, &clock);
}

uint64_t purgatory_next(struct purgatory *p)
{
	uint64_t tick = wheel_next(&p->wheel);
	return tick >= UINT64_MAX / US_PER_MS ? TIME_NEVER : tick * US_PER_MS;
}
