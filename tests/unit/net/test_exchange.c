/*
 * test_exchange.c - workers as threads that pass each other mail and frames, run out of room, sleep and are woken, or stand still for a while. A plain program, so that it can also
 * be built with ThreadSanitizer.
 *
 * Every worker sleeps without a time limit as soon as it has nothing to do: a bell that is not rung hangs the program, which its alarm ends.
 */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "dataplane/exchange.h"
#include "muster/check.h"

#define WORKERS 4u
#define BATCH 16u
#define SECONDS_MAX 120
#define STANDSTILL_US 3000
#define STANDSTILLS 20 /* of each worker, about */

struct parcel {
	uint64_t number; /* written by the giver, read by the taker */
};

struct side { /* towards one other worker */
	uint64_t mail_sent, mail_read;
	uint64_t given[EXCHANGE_KINDS], taken[EXCHANGE_KINDS];
	struct parcel *parcels; /* ours, given in both kinds */
};

struct worker {
	struct exchange *ex;
	unsigned int index;
	uint64_t each; /* messages, and frames of each kind, to every other worker */
	int bell;
	uint64_t sleeps, full, bells, stills, random;
	struct side sides[WORKERS];
};

static unsigned int give_mail(struct worker *w, unsigned int to)
{
	struct side *s = &w->sides[to];
	unsigned int n = 0;
	for (; n < BATCH && s->mail_sent < w->each; n++) {
		struct mail mail = {&s->parcels[s->mail_sent], w->index, (uint32_t)s->mail_sent};
		s->parcels[s->mail_sent].number = s->mail_sent;
		if (!exchange_send_mail(w->ex, w->index, to, &mail)) {
			w->full++;
			break;
		}
		s->mail_sent++;
	}
	return n;
}

/* Frames are numbers here: the exchange does not look at them. */
static unsigned int give_frames(struct worker *w, enum exchange_frames kind, unsigned int to)
{
	struct side *s = &w->sides[to];
	void *frames[BATCH];
	unsigned int n = 0;
	for (; n < BATCH && s->given[kind] + n < w->each; n++)
		frames[n] = (void *)(uintptr_t)(s->given[kind] + n + 1);
	unsigned int taken = exchange_give(w->ex, kind, w->index, to, frames, n);
	w->full += taken < n;
	s->given[kind] += taken;
	return taken;
}

static unsigned int take(struct worker *w, unsigned int from)
{
	struct side *s = &w->sides[from];
	struct mail mail[BATCH];
	void *frames[BATCH];
	unsigned int n = exchange_read_mail(w->ex, from, w->index, mail, BATCH), work = n;
	for (unsigned int i = 0; i < n; i++, s->mail_read++) {
		const struct parcel *parcel = mail[i].subject;
		CHECK(mail[i].kind == from && mail[i].arg == (uint32_t)s->mail_read && parcel->number == s->mail_read);
	}
	for (unsigned int kind = 0; kind < EXCHANGE_KINDS; kind++) {
		n = exchange_take(w->ex, kind, from, w->index, frames, BATCH);
		for (unsigned int i = 0; i < n; i++)
			CHECK((uintptr_t)frames[i] == ++s->taken[kind]);
		work += n;
	}
	return work;
}

/* Is everything given and taken? */
static bool through(const struct worker *w)
{
	for (unsigned int i = 0; i < WORKERS; i++) {
		const struct side *s = &w->sides[i];
		bool done = s->mail_sent == w->each && s->mail_read == w->each;
		for (unsigned int kind = 0; kind < EXCHANGE_KINDS; kind++)
			done = done && s->given[kind] == w->each && s->taken[kind] == w->each;
		if (i != w->index && !done)
			return false;
	}
	return true;
}

/* Gives until the rings are full, so that what is left waits for the others to take; never sleeps on that, as nobody rings for room. */
static bool has_more_to_give(const struct worker *w)
{
	for (unsigned int i = 0; i < WORKERS; i++) {
		const struct side *s = &w->sides[i];
		if (i != w->index && (s->mail_sent < w->each || s->given[EXCHANGE_RECEIVED] < w->each || s->given[EXCHANGE_TO_SEND] < w->each))
			return true;
	}
	return false;
}

static void sleep_without_limit(struct worker *w)
{
	struct pollfd fd = {w->bell, POLLIN, 0};
	eventfd_t value;
	if (!exchange_lie_down(w->ex, w->index))
		return;
	w->sleeps++;
	CHECK(poll(&fd, 1, -1) == 1);
	exchange_get_up(w->ex, w->index);
	CHECK(eventfd_read(w->bell, &value) == 0);
}

static void *run(void *arg)
{
	struct worker *w = arg;
	bool finished = false;
	while (!finished || !exchange_all_finished(w->ex)) {
		unsigned int work = 0;
		for (unsigned int i = 0; i < WORKERS; i++) {
			w->random = w->random * 6364136223846793005ull + 1442695040888963407ull;
			if (i == w->index || w->random >> 62 == 0) /* now and then a neighbour gets nothing and lies down */
				continue;
			work += give_mail(w, i) + give_frames(w, EXCHANGE_RECEIVED, i) + give_frames(w, EXCHANGE_TO_SEND, i);
		}
		for (unsigned int i = 0; i < WORKERS; i++)
			work += i == w->index ? 0 : take(w, i);
		w->bells += exchange_ring_bells(w->ex, w->index);
		if (w->sides[w->index == 0].mail_read * STANDSTILLS / w->each > w->stills) { /* the others run into full rings meanwhile */
			w->stills++;
			usleep(STANDSTILL_US);
		}
		if (!finished && through(w)) {
			finished = true;
			exchange_finish(w->ex, w->index);
		} else if (work == 0 && !has_more_to_give(w)) {
			sleep_without_limit(w);
		} else if (work == 0) {
			sched_yield();
		}
	}
	return NULL;
}

/* Fixed room, and nothing is lost at its limit. One thread. */
static void fixed_room(void)
{
	struct exchange *ex = exchange_new(2);
	struct mail mail = {NULL, 1, 0}, got;
	void *frame = &mail;
	unsigned int n = 0;
	CHECK(ex != NULL && exchange_workers(ex) == 2 && exchange_memory_needed(2) > 0 && exchange_memory_needed(1) == 0);
	for (; exchange_send_mail(ex, 0, 1, &mail); n++)
		mail.arg++;
	CHECK(n == EXCHANGE_MAIL);
	CHECK(exchange_read_mail(ex, 1, 0, &got, 1) == 0); /* the other way is another ring */
	for (unsigned int i = 0; i < n; i++)
		CHECK(exchange_read_mail(ex, 0, 1, &got, 1) == 1 && got.arg == i);
	CHECK(exchange_read_mail(ex, 0, 1, &got, 1) == 0);
	for (n = 0; exchange_give(ex, EXCHANGE_RECEIVED, 1, 0, &frame, 1) == 1;)
		n++;
	CHECK(n == EXCHANGE_FRAMES);
	CHECK(!exchange_lie_down(ex, 0)); /* something waits */
	CHECK(exchange_ring_bells(ex, 1) == 0); /* it is up */
	while (exchange_take(ex, EXCHANGE_RECEIVED, 1, 0, &frame, 1) == 1)
		CHECK(frame == &mail);
	CHECK(exchange_lie_down(ex, 0));
	CHECK(exchange_ring_bells(ex, 1) == 0); /* asleep, but nothing was given since */
	exchange_get_up(ex, 0);
	exchange_free(ex, NULL);
}

static unsigned int dropped;

static void drop(void *frame)
{
	dropped++;
}

static void frames_left_behind_are_dropped(void)
{
	struct exchange *ex = exchange_new(3);
	void *frames[2] = {&dropped, &dropped};
	CHECK(exchange_give(ex, EXCHANGE_RECEIVED, 0, 2, frames, 2) == 2 && exchange_give(ex, EXCHANGE_TO_SEND, 1, 0, frames, 1) == 1);
	exchange_free(ex, drop);
	CHECK(dropped == 3);
}

int main(int argc, char **argv)
{
	struct worker workers[WORKERS] = {0};
	pthread_t threads[WORKERS];
	uint64_t each = argc > 1 ? strtoull(argv[1], NULL, 10) : 200000, sleeps = 0, full = 0, bells = 0, stills = 0;
	alarm(SECONDS_MAX);
	fixed_room();
	frames_left_behind_are_dropped();
	struct exchange *ex = exchange_new(WORKERS);
	CHECK(ex != NULL && each > 0);
	for (unsigned int w = 0; w < WORKERS; w++) {
		workers[w] = (struct worker){.ex = ex, .index = w, .each = each, .bell = eventfd(0, EFD_CLOEXEC), .random = w + 1};
		exchange_set_bell(ex, w, workers[w].bell);
		for (unsigned int i = 0; i < WORKERS; i++)
			CHECK((workers[w].sides[i].parcels = calloc(each, sizeof(struct parcel))) != NULL);
	}
	for (unsigned int w = 0; w < WORKERS; w++)
		CHECK(pthread_create(&threads[w], NULL, run, &workers[w]) == 0);
	for (unsigned int w = 0; w < WORKERS; w++)
		CHECK(pthread_join(threads[w], NULL) == 0);
	for (unsigned int w = 0; w < WORKERS; w++) {
		CHECK(through(&workers[w]));
		sleeps += workers[w].sleeps;
		full += workers[w].full;
		bells += workers[w].bells;
		stills += workers[w].stills;
		for (unsigned int i = 0; i < WORKERS; i++)
			free(workers[w].sides[i].parcels);
		close(workers[w].bell);
	}
	exchange_free(ex, NULL);
	printf("%u workers, %llu messages and frames each way: %llu times a ring was full, %llu sleeps, %llu bells, %llu standstills\n", WORKERS,
	       (unsigned long long)each, (unsigned long long)full, (unsigned long long)sleeps, (unsigned long long)bells, (unsigned long long)stills);
	return sleeps > 0 && full > 0 && stills >= STANDSTILLS ? 0 : 1;
}
