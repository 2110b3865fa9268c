/*
 * test_desk.c - the housekeeping thread and three workers as threads: questions there, answers back, up to the limit; workers that sleep without a time limit,
 * that stand still for a while and go on; and their pulses, read meanwhile. A plain program, so that it can also be built with ThreadSanitizer.
 */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "dataplane/desk.h"
#include "muster/check.h"
#include "muster/pulse.h"

#define WORKERS 3u
#define OUT_MAX 32u /* questions with one worker at once */
#define BATCH 8u
#define SECONDS_MAX 120
#define STANDSTILL_US 2000

struct question {
	uint64_t asked, answered; /* written by one side each, while it has the question */
	bool gone;
};

struct worker {
	struct desk desk;
	struct pulse pulse;
	int bell;
	uint64_t each, sleeps, stills, skipped;
	struct question questions[OUT_MAX];
	struct question *free[OUT_MAX];
	unsigned int free_len;
	uint64_t asked, back;
};

static unsigned int answer(struct worker *w)
{
	struct mail mail[BATCH];
	unsigned int n = desk_waits(&w->desk) ? desk_read(&w->desk, mail, BATCH) : 0;
	for (unsigned int i = 0; i < n; i++) {
		struct question *q = mail[i].subject;
		CHECK(mail[i].kind == 1 && (uint32_t)q->asked == mail[i].arg);
		w->skipped += __atomic_load_n(&q->gone, __ATOMIC_RELAXED);
		q->answered = q->asked + 1;
		mail[i].kind = 2;
		CHECK(desk_answer(&w->desk, &mail[i]));
	}
	return n;
}

static void *run_worker(void *arg)
{
	struct worker *w = arg;
	uint64_t read = 0, rounds = 0;
	while (read < w->each) {
		__atomic_store_n(&w->pulse.lost_us, w->stills * STANDSTILL_US, __ATOMIC_RELAXED);
		__atomic_store_n(&w->pulse.raw_us, ++rounds, __ATOMIC_RELEASE);
		unsigned int n = answer(w);
		read += n;
		if (n > 0 && read / 1000 != (read - n) / 1000) {
			w->stills++;
			usleep(STANDSTILL_US);
		}
		if (n > 0 || read == w->each)
			continue;
		struct pollfd fd = {w->bell, POLLIN, 0};
		eventfd_t value;
		w->sleeps++;
		CHECK(poll(&fd, 1, -1) == 1 && eventfd_read(w->bell, &value) == 0);
	}
	__atomic_store_n(&w->pulse.ended, 1, __ATOMIC_RELAXED);
	return NULL;
}

static unsigned int ask(struct worker *w)
{
	unsigned int n = 0;
	for (; w->free_len > 0 && w->asked < w->each; n++) {
		struct question *q = w->free[--w->free_len];
		q->asked = w->asked;
		__atomic_store_n(&q->gone, false, __ATOMIC_RELAXED);
		struct mail mail = {q, 1, (uint32_t)w->asked++};
		CHECK(desk_tell(&w->desk, &mail)); /* no more than OUT_MAX are out */
		CHECK(eventfd_write(w->bell, 1) == 0);
		if (w->asked % 7 == 0) /* nobody wants to know any more */
			__atomic_store_n(&q->gone, true, __ATOMIC_RELAXED);
	}
	return n;
}

static unsigned int collect(struct worker *w)
{
	struct mail mail[BATCH];
	unsigned int n = desk_told(&w->desk, mail, BATCH);
	for (unsigned int i = 0; i < n; i++) {
		struct question *q = mail[i].subject;
		CHECK(mail[i].kind == 2 && q->answered == q->asked + 1 && q->asked == w->back);
		w->back++;
		w->free[w->free_len++] = q;
	}
	return n;
}

/* What is read is never older than what was read before, and lost time is seen at the latest with the round behind it. */
static void look(const struct worker *w, struct pulse *before)
{
	struct pulse now;
	pulse_read(&w->pulse, &now);
	CHECK(now.raw_us >= before->raw_us && now.lost_us >= before->lost_us && now.ended >= before->ended);
	*before = now;
}

static void house(struct worker workers[], int bell)
{
	struct pulse seen[WORKERS] = {{0}};
	for (bool through = false; !through;) {
		unsigned int work = 0;
		through = true;
		for (unsigned int w = 0; w < WORKERS; w++) {
			work += ask(&workers[w]) + collect(&workers[w]);
			look(&workers[w], &seen[w]);
			through = through && workers[w].back == workers[w].each;
		}
		struct pollfd fd = {bell, POLLIN, 0};
		eventfd_t value;
		if (work == 0 && !through)
			CHECK(poll(&fd, 1, -1) == 1 && eventfd_read(bell, &value) == 0);
	}
}

static void fixed_room(void)
{
	struct desk desk;
	struct mail mail = {NULL, 0, 0}, got;
	unsigned int n = 0;
	CHECK(desk_init(&desk, -1) && !desk_waits(&desk));
	for (; desk_tell(&desk, &mail); n++)
		mail.arg++;
	CHECK(n == DESK_MAIL && desk_waits(&desk));
	for (unsigned int i = 0; i < n; i++)
		CHECK(desk_read(&desk, &got, 1) == 1 && got.arg == i);
	CHECK(desk_read(&desk, &got, 1) == 0 && !desk_waits(&desk) && desk_told(&desk, &got, 1) == 0);
	desk_fini(&desk);
}

int main(int argc, char **argv)
{
	struct worker *workers = aligned_alloc(MUSTER_CACHE_LINE, WORKERS * sizeof(struct worker));
	pthread_t threads[WORKERS];
	uint64_t each = argc > 1 ? strtoull(argv[1], NULL, 10) : 100000, sleeps = 0, stills = 0, skipped = 0;
	int bell = eventfd(0, EFD_CLOEXEC);
	alarm(SECONDS_MAX);
	fixed_room();
	CHECK(workers != NULL && each > 0);
	for (unsigned int w = 0; w < WORKERS; w++) {
		workers[w] = (struct worker){.bell = eventfd(0, EFD_CLOEXEC), .each = each, .free_len = OUT_MAX};
		for (unsigned int i = 0; i < OUT_MAX; i++)
			workers[w].free[i] = &workers[w].questions[i];
		CHECK(desk_init(&workers[w].desk, bell));
	}
	for (unsigned int w = 0; w < WORKERS; w++)
		CHECK(pthread_create(&threads[w], NULL, run_worker, &workers[w]) == 0);
	house(workers, bell);
	for (unsigned int w = 0; w < WORKERS; w++) {
		CHECK(pthread_join(threads[w], NULL) == 0);
		sleeps += workers[w].sleeps;
		stills += workers[w].stills;
		skipped += workers[w].skipped;
		desk_fini(&workers[w].desk);
		close(workers[w].bell);
	}
	close(bell);
	free(workers);
	printf("%llu questions to each of %u workers: %llu sleeps, %llu standstills, %llu found to be wanted by nobody\n", (unsigned long long)each, WORKERS,
	       (unsigned long long)sleeps, (unsigned long long)stills, (unsigned long long)skipped);
	return sleeps > 0 && stills > 0 ? 0 : 1;
}
