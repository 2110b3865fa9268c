/*
 * house.c - the housekeeping thread: one poll loop over the admin socket, its clients, the workers' answers and the calls of other threads.
 *
 * Questions that are still under way when the thread ends are never read by a worker again: the workers have ended before (house_stop).
 */
#define _GNU_SOURCE /* cpu_set_t, pthread_setname_np */
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "coordinator/house/house_priv.h"

#define ROUND_MS 100
#define ANSWERS 32u

/* ---- making ---- */

static void take_line(void *arg, struct client *client, const char *line, size_t len)
{
	command_take(arg, client, line, len);
}

static void client_gone(void *arg, struct client *client)
{
	jobs_leave(arg, client);
}

struct house *house_new(const struct house_config *cfg, char *err, size_t err_len)
{
	struct house *house = calloc(1, sizeof(*house));
	if (house == NULL) {
		snprintf(err, err_len, "no memory for housekeeping");
		return NULL;
	}
	house->cfg = *cfg;
	house->workers = (unsigned int)cfg->cfg->workers;
	house->wards = aligned_alloc(MUSTER_CACHE_LINE, house->workers * sizeof(struct ward));
	house->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	house->started = cfg->clock();
	sched_getaffinity(0, sizeof(house->cpus), &house->cpus);
	if (cfg->map->housekeeping >= 0) {
		CPU_ZERO(&house->cpus);
		CPU_SET((size_t)cfg->map->housekeeping, &house->cpus);
	}
	bool ok = house->wards != NULL && house->bell >= 0;
	snprintf(err, err_len, "no memory or no file descriptor for housekeeping");
	if (house->wards != NULL)
		memset(house->wards, 0, house->workers * sizeof(struct ward));
	if (ok && cfg->cfg->admin_socket[0] != '\0')
		ok = (house->clients = clients_new(cfg->cfg, take_line, client_gone, house, err, err_len)) != NULL;
	if (ok)
		return house;
	house_free(house);
	return NULL;
}

void house_free(struct house *house)
{
	if (house == NULL)
		return;
	clients_free(house->clients);
	jobs_free(house);
	if (house->bell >= 0)
		close(house->bell);
	free(house->wards);
	free(house);
}

/* ---- the loop ---- */

static void read_answers(struct house *house)
{
	struct mail mail[ANSWERS];
	eventfd_t value;
	eventfd_read(house->link.fd, &value);
	for (unsigned int w = 0; w < house->workers; w++) {
		unsigned int n;
		while ((n = house->link.told(house->link.arg, w, mail, ANSWERS)) > 0) {
			house->wards[w].asked -= n;
			for (unsigned int i = 0; i < n; i++)
				jobs_answer(house, mail[i].subject);
		}
	}
}

static void reload_begin(struct house *house)
{
	static const struct command reload = {"reload", command_reload, true};
	if (!atomic_exchange(&house->reload, false))
		return;
	job_start(house, NULL, &reload, NULL);
}

static void *house_run(void *arg)
{
	struct house *house = arg;
	struct pollfd fds[CLIENTS_MAX + 3];
	pthread_setaffinity_np(pthread_self(), sizeof(house->cpus), &house->cpus);
	pthread_setname_np(pthread_self(), "muster-house");
	while (!atomic_load(&house->stop)) {
		unsigned int n = house->clients != NULL ? clients_poll(house->clients, fds) : 0;
		fds[n] = (struct pollfd){.fd = house->bell, .events = POLLIN};
		fds[n + 1] = (struct pollfd){.fd = house->link.fd, .events = POLLIN};
		poll(fds, n + 2, jobs_due(house) ? 0 : ROUND_MS);
		struct now now = house->cfg.clock();
		eventfd_t value;
		eventfd_read(house->bell, &value);
		watch_round(house, now);
		read_answers(house);
		reload_begin(house);
		jobs_step(house, now);
		if (house->clients != NULL)
			clients_serve(house->clients, fds, n, now);
	}
	return NULL;
}

bool house_start(struct house *house, const struct house_link *link)
{
	house->link = *link;
	house->running = pthread_create(&house->thread, NULL, house_run, house) == 0;
	return house->running;
}

void house_stop(struct house *house)
{
	atomic_store(&house->stop, true);
	eventfd_write(house->bell, 1);
	if (house->running)
		pthread_join(house->thread, NULL);
	house->running = false;
	clients_free(house->clients);
	house->clients = NULL;
}

/* ---- from any thread ---- */

void house_reload(struct house *house)
{
	atomic_store(&house->reload, true);
	eventfd_write(house->bell, 1);
}

void house_set_log(struct house *house, const char *text)
{
	snprintf(house->log, sizeof(house->log), "%s", text);
}

void house_set_ready(struct house *house)
{
	atomic_store(&house->ready, true);
}

void house_set_log_broken(struct house *house)
{
	atomic_store(&house->log_broken, true);
}
