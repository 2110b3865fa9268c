/*
 * exchange.h - what workers pass to each other: for each ordered pair of them one ring of mail and two of frames; and the bells that wake a worker
 * that sleeps.
 *
 * All rings have one producer and one consumer (rte_ring), so that nobody waits for anybody and no memory is written by two workers. A bell costs
 * nothing while its worker polls: whoever passed something on looks at one word once per round, and only a worker that is about to sleep writes it.
 */
#ifndef DATAPLANE_EXCHANGE_H
#define DATAPLANE_EXCHANGE_H

#include "muster/mailbox.h"

#define EXCHANGE_WORKERS_MAX 64u
#define EXCHANGE_MAIL 2048u  /* messages from one worker to another that may lie unread */
#define EXCHANGE_FRAMES 256u /* frames likewise, of each kind */

enum exchange_frames {
	EXCHANGE_RECEIVED, /* by a worker that they are not for */
	EXCHANGE_TO_SEND,  /* by a worker that has a queue */
	EXCHANGE_KINDS,
};

struct exchange;

/* For up to EXCHANGE_WORKERS_MAX workers. NULL: no memory. */
struct exchange *exchange_new(unsigned int workers);
/* `drop` gets every frame that nobody took. */
void exchange_free(struct exchange *ex, void (*drop)(void *frame));
size_t exchange_memory_needed(unsigned int workers);

unsigned int exchange_workers(const struct exchange *ex);

/* Called by worker `from`. False: the ring is full. */
bool exchange_send_mail(struct exchange *ex, unsigned int from, unsigned int to, const struct mail *mail);
/* Returns how many of the `n` frames were taken: the first ones. */
unsigned int exchange_give(struct exchange *ex, enum exchange_frames kind, unsigned int from, unsigned int to, void *const frames[], unsigned int n);

/* Whether a ring is at least half empty: for what must not be in the way of the rest. */
bool exchange_has_much_room(const struct exchange *ex, enum exchange_frames kind, unsigned int from, unsigned int to);

/* How much lies in all rings to a worker; a glance from any thread. */
unsigned int exchange_depth(const struct exchange *ex, unsigned int to);

/* Called by worker `to`. Return how many there were, at most `max`. */
unsigned int exchange_read_mail(struct exchange *ex, unsigned int from, unsigned int to, struct mail out[], unsigned int max);
unsigned int exchange_take(struct exchange *ex, enum exchange_frames kind, unsigned int from, unsigned int to, void *frames[], unsigned int max);

/* ---- sleeping and waking ---- */

/* `fd` is an eventfd that the worker's sleep ends by. */
void exchange_set_bell(struct exchange *ex, unsigned int worker, int fd);
/*
 * Once per round, after everything was passed on: rings for those neighbours that were given something since the last call and sleep. Returns how many.
 */
unsigned int exchange_ring_bells(struct exchange *ex, unsigned int worker);
/* Before a sleep. False: something came in meanwhile, do not sleep. */
bool exchange_lie_down(struct exchange *ex, unsigned int worker);
void exchange_get_up(struct exchange *ex, unsigned int worker);

/* ---- the end ---- */

/* The worker needs nobody any more; wakes the others, who may be waiting for that. */
void exchange_finish(struct exchange *ex, unsigned int worker);
bool exchange_all_finished(const struct exchange *ex);

#endif
