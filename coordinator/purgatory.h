/*
 * purgatory.h - operations that wait: for an event, or for their deadline, whichever comes first.
 *
 * An operation is embedded in what it belongs to (a group, a member, an id handed out) and has a kind: three functions. Its life:
 *
 *     idle --purgatory_start--> try at once --no--> waiting: watched under its key, deadline on the wheel
 *       ^                          | yes              | purgatory_check of the key says yes, or purgatory_force
 *       |                          v                  v                                  | deadline
 *       +------------- on_complete, exactly once <----+<------ then on_expire -----------+
 *
 * One core owns everything watched here, so nothing can happen between the try and the watching, and no lock is needed.
 *
 * Invariants:
 *  1. From one start, on_complete runs at most once, and not at all when the operation was cancelled.
 *  2. An operation is idle before its on_complete runs, so on_complete may start it anew.
 *  3. on_expire runs after on_complete and only when the deadline completed it; it may free what embeds the operation.
 *  4. Postponing is a store (lazy deadline): the timer stays where it hangs and re-files itself when it fires too early.
 *  5. No operation expires before its deadline. Deadlines are microseconds, the wheel ticks in milliseconds, rounded up.
 *  6. While the purgatory is held, no operation of a patient kind expires; it still completes by events.
 */
#ifndef MUSTER_PURGATORY_H
#define MUSTER_PURGATORY_H

#include "muster/time.h"
#include "muster/wheel.h"

struct purgatory_op;

struct purgatory_kind {
	const char *name;
	/* Is the operation satisfied? NULL: only its deadline or a force ends it. */
	bool (*try_complete)(struct purgatory_op *op);
	void (*on_complete)(struct purgatory_op *op, struct now now); /* may be NULL */
	void (*on_expire)(struct purgatory_op *op, struct now now);   /* may be NULL */
	bool patient; /* its deadline says that somebody is gone, who may only not have been heard yet (purgatory_hold) */
};

/* A key under which operations are watched. All zero: none. */
struct purgatory_watch {
	struct purgatory_op *first;
};

/* All zero: idle. */
struct purgatory_op {
	struct wheel_timer timer; /* hung while the operation waits */
	uint64_t deadline;	  /* us; may be later than where the timer hangs */
	const struct purgatory_kind *kind;
	struct purgatory_watch *watch;
	struct purgatory_op *next; /* watched under the same key */
};

struct purgatory {
	struct wheel wheel; /* tick: 1 ms */
	uint64_t held_us;   /* patient kinds do not expire before */
	uint64_t held;	    /* expiries put off; whoever counts them sets it back */
};

void purgatory_init(struct purgatory *p, struct now now);

/* Starts an idle operation; returns true when it completed at once. `watch` may be NULL. */
bool purgatory_start(struct purgatory *p, struct purgatory_op *op, const struct purgatory_kind *kind, struct purgatory_watch *watch,
		     uint64_t deadline, struct now now);

static inline bool purgatory_waiting(const struct purgatory_op *op)
{
	return wheel_timer_hung(&op->timer);
}

/* An event happened at the key: tries its operations. Returns how many completed. */
unsigned int purgatory_check(struct purgatory_watch *watch, struct now now);

/* Completes the operation now. False: it was not waiting. */
bool purgatory_force(struct purgatory_op *op, struct now now);

/* Ends the waiting without completing; does nothing to an idle operation. */
void purgatory_cancel(struct purgatory_op *op);

/* Moves the deadline of a waiting operation, usually away. */
void purgatory_rehang(struct purgatory *p, struct purgatory_op *op);
static inline void purgatory_postpone(struct purgatory *p, struct purgatory_op *op, uint64_t deadline)
{
	op->deadline = deadline;
	if (unlikely(deadline < op->timer.when * US_PER_MS - (US_PER_MS - 1)))
		purgatory_rehang(p, op);
}

/* Nothing patient expires before `until`, microseconds; an earlier hold that lasts longer stays. */
void purgatory_hold(struct purgatory *p, uint64_t until);

/* Expires what is due, looking at no more than `budget` timers. Returns how many expired. */
unsigned int purgatory_advance(struct purgatory *p, unsigned int budget, struct now now);

/* The microsecond before which nothing expires; TIME_NEVER: nothing waits. */
uint64_t purgatory_next(struct purgatory *p);

#endif
