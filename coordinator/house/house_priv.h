/*
 * house_priv.h - what the files of the housekeeping thread share.
 */
#ifndef MUSTER_HOUSE_PRIV_H
#define MUSTER_HOUSE_PRIV_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "coordinator/house/clients.h"
#include "coordinator/house/command.h"

#define HOUSE_LOG_TEXT (CONFIG_TEXT_MAX + 300)

/* What is known of one worker. */
struct ward {
	/* watch.c */
	uint64_t raw_us;    /* of its pulse, when it last changed */
	uint64_t silent_us; /* for how long it has not, as far as we could see */
	bool still;
	uint64_t stalls;    /* times it was found so */
	/* the last second */
	struct stats before;
	uint64_t requests_rate; /* a second */
	unsigned int busy_permille;
	/* questions under way */
	unsigned int asked;
};

struct house {
	struct house_config cfg;
	struct house_link link;
	struct clients *clients; /* NULL: no socket */
	unsigned int workers;
	struct ward *wards;
	struct job *jobs;
	bool reloading;
	uint64_t looked_us, sampled_us;
	struct now started;
	char log[HOUSE_LOG_TEXT];
	cpu_set_t cpus;
	pthread_t thread;
	bool running;
	int bell; /* eventfd */
	/* written by other threads */
	atomic_bool stop, reload, ready, log_broken;
};

/* command.c */
struct job *job_start(struct house *house, struct client *client, const struct command *command, json_t *request);
/* Whether a job can go on without waiting for anything. */
bool jobs_due(const struct house *house);
void jobs_step(struct house *house, struct now now);
void jobs_answer(struct house *house, struct question *answer);
void jobs_leave(struct house *house, struct client *client);
void jobs_free(struct house *house);

/* watch.c: once per round of the thread. */
void watch_round(struct house *house, struct now now);
/* "it does X, its thread Y". */
void watch_describe(const struct house *house, unsigned int worker, char *out, size_t len);

#endif
