/*
 * exchange.c - rings and bells between workers.
 *
 * The race between a worker that lies down and one that passes something on:
 *
 *   sleeper                      giver
 *   asleep = 1                   puts something into a ring
 *   full fence                   full fence
 *   looks at all its rings       looks at asleep
 *
 * Whichever fence comes second, its worker sees what the other one wrote: the sleeper stays up, or the giver rings. The giver's fence is paid once per
 * round in which something was passed on, and never in others.
 *
 * Invariants:
 *  1. `pairs` does not change after exchange_new. A ring's ends are written by one worker each, `asleep` and `finished` by their own worker.
 *  2. `given` is private to its worker; it stands on a line of its own.
 */
#define RTE_USE_C11_MEM_MODEL /* rte_ring's variant with acquire and release instead of barriers: also ThreadSanitizer understands it */
#include <errno.h>
#include <rte_ring.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>

#include "dataplane/exchange.h"
#include "muster/check.h"

struct pair {
	struct rte_ring *mail;
	struct rte_ring *frames[EXCHANGE_KINDS];
};

struct end {
	/* read by others */
	uint32_t asleep;
	uint32_t finished;
	int bell;
	/* the worker's own */
	uint64_t given CACHE_ALIGNED; /* bit n: worker n was given something in this round */
} CACHE_ALIGNED;

_Static_assert(offsetof(struct end, given) % MUSTER_CACHE_LINE == 0 && sizeof(struct end) % MUSTER_CACHE_LINE == 0, "no line of two workers");
_Static_assert(EXCHANGE_WORKERS_MAX <= 64, "one bit each in `given`");

struct exchange {
	unsigned int workers;
	struct end *ends;
	struct pair pairs[]; /* [from * workers + to] */
};

static struct pair *pair_of(const struct exchange *ex, unsigned int from, unsigned int to)
{
	CHECK(from < ex->workers && to < ex->workers && from != to);
	return (struct pair *)(uintptr_t)&ex->pairs[from * ex->workers + to];
}

/* ---- making ---- */

static size_t ring_bytes(unsigned int elements, unsigned int size)
{
	ssize_t bytes = rte_ring_get_memsize_elem(size, rte_align32pow2(elements + 1));
	CHECK(bytes > 0);
	return (size_t)bytes;
}

static struct rte_ring *ring_new(unsigned int elements, unsigned int size)
{
	struct rte_ring *ring = aligned_alloc(MUSTER_CACHE_LINE, ring_bytes(elements, size));
	if (ring != NULL)
		CHECK(rte_ring_init(ring, "exchange", elements, RING_F_SP_ENQ | RING_F_SC_DEQ | RING_F_EXACT_SZ) == 0);
	return ring;
}

size_t exchange_memory_needed(unsigned int workers)
{
	size_t pair = ring_bytes(EXCHANGE_MAIL, sizeof(struct mail)) + EXCHANGE_KINDS * ring_bytes(EXCHANGE_FRAMES, sizeof(void *));
	return workers < 2 ? 0 : (pair + sizeof(struct pair)) * workers * workers + workers * sizeof(struct end);
}

struct exchange *exchange_new(unsigned int workers)
{
	CHECK(workers <= EXCHANGE_WORKERS_MAX);
	struct exchange *ex = calloc(1, sizeof(*ex) + workers * workers * sizeof(struct pair));
	if (ex == NULL)
		return NULL;
	ex->workers = workers;
	ex->ends = aligned_alloc(MUSTER_CACHE_LINE, workers * sizeof(struct end));
	bool ok = ex->ends != NULL;
	for (unsigned int w = 0; ok && w < workers; w++)
		ex->ends[w] = (struct end){.bell = -1};
	for (unsigned int i = 0; ok && i < workers * workers; i++) {
		if (i / workers == i % workers)
			continue;
		ex->pairs[i].mail = ring_new(EXCHANGE_MAIL, sizeof(struct mail));
		ok = ex->pairs[i].mail != NULL;
		for (unsigned int k = 0; ok && k < EXCHANGE_KINDS; k++)
			ok = (ex->pairs[i].frames[k] = ring_new(EXCHANGE_FRAMES, sizeof(void *))) != NULL;
	}
	if (!ok) {
		exchange_free(ex, NULL);
		return NULL;
	}
	return ex;
}

void exchange_free(struct exchange *ex, void (*drop)(void *frame))
{
	if (ex == NULL)
		return;
	for (unsigned int i = 0; i < ex->workers * ex->workers; i++) {
		void *frame;
		for (unsigned int k = 0; k < EXCHANGE_KINDS; k++) {
			struct rte_ring *ring = ex->pairs[i].frames[k];
			while (ring != NULL && rte_ring_sc_dequeue(ring, &frame) == 0)
				drop(frame);
			free(ring);
		}
		free(ex->pairs[i].mail);
	}
	free(ex->ends);
	free(ex);
}

unsigned int exchange_workers(const struct exchange *ex)
{
	return ex->workers;
}

/* ---- passing on ---- */

bool exchange_send_mail(struct exchange *ex, unsigned int from, unsigned int to, const struct mail *mail)
{
	if (rte_ring_sp_enqueue_elem(pair_of(ex, from, to)->mail, (void *)(uintptr_t)mail, sizeof(*mail)) != 0)
		return false;
	ex->ends[from].given |= 1ull << to;
	return true;
}

unsigned int exchange_give(struct exchange *ex, enum exchange_frames kind, unsigned int from, unsigned int to, void *const frames[], unsigned int n)
{
	unsigned int taken = rte_ring_sp_enqueue_burst(pair_of(ex, from, to)->frames[kind], frames, n, NULL);
	if (taken > 0)
		ex->ends[from].given |= 1ull << to;
	return taken;
}

bool exchange_has_much_room(const struct exchange *ex, enum exchange_frames kind, unsigned int from, unsigned int to)
{
	return rte_ring_free_count(pair_of(ex, from, to)->frames[kind]) >= EXCHANGE_FRAMES / 2;
}

unsigned int exchange_read_mail(struct exchange *ex, unsigned int from, unsigned int to, struct mail out[], unsigned int max)
{
	return rte_ring_sc_dequeue_burst_elem(pair_of(ex, from, to)->mail, out, sizeof(out[0]), max, NULL);
}

unsigned int exchange_take(struct exchange *ex, enum exchange_frames kind, unsigned int from, unsigned int to, void *frames[], unsigned int max)
{
	return rte_ring_sc_dequeue_burst(pair_of(ex, from, to)->frames[kind], frames, max, NULL);
}

/* ---- bells ---- */

void exchange_set_bell(struct exchange *ex, unsigned int worker, int fd)
{
	ex->ends[worker].bell = fd;
}

static void ring_bell(const struct end *end)
{
	int saved = errno;
	if (end->bell >= 0)
		eventfd_write(end->bell, 1);
	errno = saved;
}

unsigned int exchange_ring_bells(struct exchange *ex, unsigned int worker)
{
	uint64_t given = ex->ends[worker].given;
	unsigned int n = 0;
	if (likely(given == 0))
		return 0;
	ex->ends[worker].given = 0;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (; given != 0; given &= given - 1) {
		const struct end *end = &ex->ends[__builtin_ctzll(given)];
		if (__atomic_load_n(&end->asleep, __ATOMIC_RELAXED) != 0) {
			ring_bell(end);
			n++;
		}
	}
	return n;
}

/* rte_ring_empty with the load that the language asks for between threads. */
static bool ring_holds(const struct rte_ring *ring)
{
	return __atomic_load_n(&ring->prod.tail, __ATOMIC_RELAXED) != ring->cons.tail;
}

/* The ends are read one after the other while others move them. */
static unsigned int ring_depth(const struct rte_ring *ring)
{
	uint32_t taken = __atomic_load_n(&ring->cons.tail, __ATOMIC_ACQUIRE), given = __atomic_load_n(&ring->prod.tail, __ATOMIC_RELAXED);
	uint32_t depth = given - taken;
	return depth < ring->capacity ? depth : ring->capacity;
}

unsigned int exchange_depth(const struct exchange *ex, unsigned int to)
{
	unsigned int depth = 0;
	for (unsigned int from = 0; from < ex->workers; from++) {
		if (from == to)
			continue;
		const struct pair *pair = pair_of(ex, from, to);
		depth += ring_depth(pair->mail) + ring_depth(pair->frames[EXCHANGE_RECEIVED]) + ring_depth(pair->frames[EXCHANGE_TO_SEND]);
	}
	return depth;
}

static bool something_waits(const struct exchange *ex, unsigned int worker)
{
	for (unsigned int from = 0; from < ex->workers; from++) {
		if (from == worker)
			continue;
		const struct pair *pair = pair_of(ex, from, worker);
		if (ring_holds(pair->mail) || ring_holds(pair->frames[EXCHANGE_RECEIVED]) || ring_holds(pair->frames[EXCHANGE_TO_SEND]))
			return true;
	}
	return false;
}

bool exchange_lie_down(struct exchange *ex, unsigned int worker)
{
	__atomic_store_n(&ex->ends[worker].asleep, 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (!something_waits(ex, worker))
		return true;
	exchange_get_up(ex, worker);
	return false;
}

void exchange_get_up(struct exchange *ex, unsigned int worker)
{
	__atomic_store_n(&ex->ends[worker].asleep, 0, __ATOMIC_RELAXED);
}

/* ---- the end ---- */

void exchange_finish(struct exchange *ex, unsigned int worker)
{
	__atomic_store_n(&ex->ends[worker].finished, 1, __ATOMIC_RELEASE);
	for (unsigned int w = 0; w < ex->workers; w++)
		if (w != worker)
			ring_bell(&ex->ends[w]);
}

bool exchange_all_finished(const struct exchange *ex)
{
	for (unsigned int w = 0; w < ex->workers; w++)
		if (__atomic_load_n(&ex->ends[w].finished, __ATOMIC_ACQUIRE) == 0)
			return false;
	return true;
}
