/*
 * load.h - the load generator without its transport: members that join for real, settle, and then heartbeat while it measures.
 *
 * Phases: for closed loops, a moment without any request, which tells what a spinning server's empty rounds cost; all
 * connections open; all members join and sync, and those that are told of a rebalance join again, until one whole pass of
 * heartbeats was answered without error; a warm-up; the measured time; done. Every answer is checked (correlation id, error 0).
 *
 * Two shapes of load. Closed loop: each member sends its next heartbeat when the last one is answered, which finds the rate
 * that a server reaches, and says nothing about latency under a given load. Sparse: each member sends one per interval,
 * spread evenly, whatever the answers do.
 *
 * A run ends by itself: each phase has a bounded time.
 */
#ifndef BENCH_LOAD_H
#define BENCH_LOAD_H

#include <sys/types.h>

#include "muster/base.h"

struct load_config {
	unsigned int connections;
	unsigned int group_size; /* members per group; 0: the server only answers, nobody joins */
	uint64_t interval_us;	 /* sparse: between two heartbeats of a member; 0: closed loop */
	uint64_t measure_us;
	/*
	 * Whose CPU time and memory is read, and who is asked for its counters (SIGUSR1) at both ends of the moment of rest
	 * and of the measured time; 0: nobody.
	 */
	pid_t server;
};

struct load;
struct load_member;

/* Sends bytes over the connection that load_opened was given. */
typedef void load_send(void *connection, const uint8_t *p, size_t len);

/*
 * Reads --connections --group-size --interval-ms --seconds --server-pid; other options are left to `other`, which returns
 * false to refuse.
 */
bool load_options(struct load_config *cfg, int argc, char **argv, bool (*other)(void *arg, const char *name, const char *value), void *arg);

/* NULL: no memory. */
struct load *load_new(const struct load_config *cfg, load_send *send, uint64_t now_us);
void load_free(struct load *load);

/* How many more connections the transport should open. */
unsigned int load_missing(const struct load *load);
/* A connection is open: the member that uses it. */
struct load_member *load_opened(struct load *load, void *connection);
/* A connection could not be opened, or ended: the run has failed. */
void load_lost(struct load *load, const char *why);
/* A frame, without its length field. */
void load_answer(struct load *load, struct load_member *member, const uint8_t *p, size_t len, uint64_t now_us);

/* Does what is due. Returns the microsecond of the next wish; load_ended says whether it is over. */
uint64_t load_tick(struct load *load, uint64_t now_us);
bool load_ended(const struct load *load);

/* Prints the figures as one line of JSON on stdout, or what went wrong on stderr. Returns the exit status. */
int load_report(const struct load *load);

#endif
