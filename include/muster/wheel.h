/*
 * wheel.h - a hierarchical timer wheel for one owner: O(1) add and remove, no clock, no lock, no allocation.
 *
 * Six levels of 64 slots; a tick is whatever the caller counts in (Muster: 1 ms). A timer due at tick `when`
 * hangs at the level of the highest 6-bit digit in which `when` differs from the wheel's current tick, in the
 * slot of that digit. When the current tick's digit reaches the slot, its list is moved whole to `ripe`, and
 * each timer of `ripe` either fires or is hung again, closer. One 64-bit map per level says which slots are used.
 *
 *   level    0        1        2         3         4         5
 *   slot     1 tick   64       4,096     262,144   2^24      2^30   ticks
 *
 * Invariants:
 *  1. A timer never fires before its tick, and fires in the first wheel_advance at or after it, unless the
 *     budget is used up; then the rest fires in the next calls and wheel_next says "now".
 *  2. A callback may add and remove any timer of the wheel, also the one that fires (it is already out).
 *  3. Deadlines further away than 2^36 - 1 ticks are clamped to that.
 *
 * Lazy deadlines: an owner that is touched often stores its new deadline beside the timer and leaves the timer
 * where it is; when the old slot fires, it compares and adds itself again. A heartbeat is then one store. Before a sleep,
 * wheel_next_meant moves those that would end it early.
 */
#ifndef MUSTER_WHEEL_H
#define MUSTER_WHEEL_H

#include <string.h>

#include "muster/check.h"

#define WHEEL_LEVELS 6
#define WHEEL_BITS 6
#define WHEEL_SLOTS (1u << WHEEL_BITS)
#define WHEEL_HORIZON ((1ull << (WHEEL_LEVELS * WHEEL_BITS)) - 1)

struct wheel_timer {
	struct wheel_timer *next, *prev; /* circular list with the slot's head; both NULL when not hung */
	uint64_t when;			 /* tick at which it is due */
};

struct wheel {
	uint64_t now;		      /* current tick */
	uint64_t used[WHEEL_LEVELS];  /* bit s set: slot s may have timers */
	struct wheel_timer ripe;      /* head: moved out of passed slots, not yet looked at */
	struct wheel_timer slot[WHEEL_LEVELS][WHEEL_SLOTS]; /* heads */
};

typedef void wheel_fire(struct wheel_timer *timer, void *arg);

static inline void wheel_head_init(struct wheel_timer *head)
{
	head->next = head->prev = head;
}

static inline bool wheel_head_empty(const struct wheel_timer *head)
{
	return head->next == head;
}

static inline void wheel_init(struct wheel *w, uint64_t now)
{
	memset(w, 0, sizeof(*w));
	w->now = now;
	wheel_head_init(&w->ripe);
	for (unsigned int level = 0; level < WHEEL_LEVELS; level++)
		for (unsigned int s = 0; s < WHEEL_SLOTS; s++)
			wheel_head_init(&w->slot[level][s]);
}

static inline void wheel_timer_init(struct wheel_timer *t)
{
	*t = (struct wheel_timer){NULL, NULL, 0};
}

static inline bool wheel_timer_hung(const struct wheel_timer *t)
{
	return t->next != NULL;
}

static inline void wheel_hang(struct wheel_timer *head, struct wheel_timer *t)
{
	t->prev = head->prev;
	t->next = head;
	head->prev->next = t;
	head->prev = t;
}

/* Hangs `t`, which must not be hung, to fire at tick `when` (at the next advance if that is past). */
static inline void wheel_add(struct wheel *w, struct wheel_timer *t, uint64_t when)
{
	CHECK(!wheel_timer_hung(t));
	t->when = when;
	if (when <= w->now) {
		wheel_hang(&w->ripe, t);
		return;
	}
	if (when - w->now > WHEEL_HORIZON / 2)
		t->when = when = w->now + WHEEL_HORIZON / 2;
	unsigned int level = (63u - (unsigned int)__builtin_clzll(when ^ w->now)) / WHEEL_BITS;
	if (level >= WHEEL_LEVELS) /* a carry past the top digit: the top level wraps around */
		level = WHEEL_LEVELS - 1;
	unsigned int s = (unsigned int)(when >> (level * WHEEL_BITS)) & (WHEEL_SLOTS - 1);
	w->used[level] |= 1ull << s;
	wheel_hang(&w->slot[level][s], t);
}

/* Takes `t` out; does nothing when it is not hung. */
static inline void wheel_remove(struct wheel_timer *t)
{
	if (!wheel_timer_hung(t))
		return;
	t->prev->next = t->next;
	t->next->prev = t->prev;
	t->next = t->prev = NULL;
}

static inline void wheel_set(struct wheel *w, struct wheel_timer *t, uint64_t when)
{
	wheel_remove(t);
	wheel_add(w, t, when);
}

/* Moves the lists of the slots in `mask` to the end of `ripe`: O(1) per slot, however long the list. */
static inline void wheel_ripen(struct wheel *w, unsigned int level, uint64_t mask)
{
	mask &= w->used[level];
	w->used[level] &= ~mask;
	for (; mask != 0; mask &= mask - 1) {
		struct wheel_timer *head = &w->slot[level][__builtin_ctzll(mask)];
		if (wheel_head_empty(head))
			continue;
		head->next->prev = w->ripe.prev;
		w->ripe.prev->next = head->next;
		head->prev->next = &w->ripe;
		w->ripe.prev = head->prev;
		wheel_head_init(head);
	}
}

/* Hanging a timer closer costs so much less than firing it. */
#define WHEEL_MOVES_PER_FIRE 8u

/*
 * Moves the wheel to tick `now` (never backwards) and fires what is due: no more than `budget` timers, or WHEEL_MOVES_PER_FIRE times as many that
 * are only hung closer. Returns the number fired.
 */
static inline unsigned int wheel_advance(struct wheel *w, uint64_t now, unsigned int budget,
					 wheel_fire *fire, void *arg)
{
	if (now > w->now) {
		for (unsigned int level = 0; level < WHEEL_LEVELS; level++) {
			unsigned int shift = level * WHEEL_BITS;
			uint64_t from = w->now >> shift, to = now >> shift;
			if (from == to)
				break;
			if (to - from >= WHEEL_SLOTS) {
				wheel_ripen(w, level, UINT64_MAX);
				continue;
			}
			/* the slots (from, to], modulo 64, as a mask */
			uint64_t mask = to - from == 63 ? ~(1ull << (from & 63)) : 0;
			if (mask == 0) {
				mask = (1ull << (to - from)) - 1;
				unsigned int first = (unsigned int)(from + 1) & 63;
				mask = mask << first | (first != 0 ? mask >> (64 - first) : 0);
			}
			wheel_ripen(w, level, mask);
		}
		w->now = now;
	}
	unsigned int fired = 0;
	uint64_t left = (uint64_t)budget * WHEEL_MOVES_PER_FIRE;
	while (!wheel_head_empty(&w->ripe) && left > 0) {
		struct wheel_timer *t = w->ripe.next;
		wheel_remove(t);
		if (t->when > w->now) {
			wheel_add(w, t, t->when);
			left--;
			continue;
		}
		left -= WHEEL_MOVES_PER_FIRE <= left ? WHEEL_MOVES_PER_FIRE : left;
		fired++;
		fire(t, arg);
	}
	return fired;
}

/* The used slot that is reached first, and the tick at which that is. False: none is used. */
static inline bool wheel_first(const struct wheel *w, unsigned int *level, unsigned int *slot, uint64_t *tick)
{
	for (unsigned int l = 0; l < WHEEL_LEVELS; l++) {
		unsigned int shift = l * WHEEL_BITS;
		uint64_t base = w->now >> shift;
		uint64_t map = w->used[l];
		if (map == 0)
			continue;
		unsigned int digit = (unsigned int)base & 63;
		uint64_t later = digit == 63 ? 0 : map & (UINT64_MAX << (digit + 1));
		uint64_t ahead = later != 0 ? (uint64_t)__builtin_ctzll(later) - digit
					    : 64 - digit + (uint64_t)__builtin_ctzll(map);
		*level = l;
		*tick = (base + ahead) << shift;
		*slot = (unsigned int)(base + ahead) & (WHEEL_SLOTS - 1);
		return true;
	}
	return false;
}

/* No timer fires before this tick: a lower bound to sleep until, or UINT64_MAX when there is none. */
static inline uint64_t wheel_next(const struct wheel *w)
{
	unsigned int level, slot;
	uint64_t tick;
	if (!wheel_head_empty(&w->ripe))
		return w->now;
	return wheel_first(w, &level, &slot, &tick) ? tick : UINT64_MAX;
}

/* The tick that the owner of a lazy timer now means; UINT64_MAX: none, the timer may be taken out. */
typedef uint64_t wheel_means(struct wheel_timer *timer);

/*
 * The same for an owner of lazy timers that is about to sleep: timers of the first slots that mean a later slot are hung there, at most `budget`
 * of them, so that the sleep does not end for nothing. It stops at the first timer that means what its slot says.
 */
static inline uint64_t wheel_next_meant(struct wheel *w, unsigned int budget, wheel_means *means)
{
	unsigned int level, slot;
	uint64_t tick;
	if (!wheel_head_empty(&w->ripe))
		return w->now;
	while (wheel_first(w, &level, &slot, &tick)) {
		struct wheel_timer *head = &w->slot[level][slot], *t = head->next;
		if (wheel_head_empty(head)) {
			w->used[level] &= ~(1ull << slot);
			continue;
		}
		uint64_t when = means(t);
		if (budget-- == 0 || when >> (level * WHEEL_BITS) <= tick >> (level * WHEEL_BITS))
			return tick;
		wheel_remove(t);
		if (when != UINT64_MAX)
			wheel_add(w, t, when);
	}
	return UINT64_MAX;
}

#endif
