/*
 * host.h - several workers in one thread: a rig each, and mailboxes whose messages move only when the test says so.
 */
#ifndef TEST_HOST_H
#define TEST_HOST_H

#include "requests.h"

#define HOST_WORKERS 4
#define HOST_MAIL 2048 /* capacity of a mailbox, as the dataplane's */

struct host;

struct host_box {
	struct mailbox mailbox; /* first */
	struct host *host;
};

struct host_ring {
	struct mail mail[HOST_MAIL];
	unsigned int first, len;
};

struct host {
	unsigned int workers;
	struct rig *rigs[HOST_WORKERS];
	struct host_box boxes[HOST_WORKERS];
	struct host_ring *rings; /* [from * HOST_WORKERS + to] */
	unsigned int kinds[8];	 /* messages delivered, by kind */
	unsigned int taken_back; /* FORWARD_CANCELLED that said that no answer comes */
	unsigned int longest;	 /* most that ever lay unread in one ring */
	uint64_t random;
};

struct host *host_new(unsigned int workers, unsigned int max_sessions);
/* Asserts before that for each request one answer came, or word that none will, and that nothing is parked: all connections must be gone. */
void host_free(struct host *host);

uint64_t host_random(struct host *host);
/* Delivers the oldest message from one worker to another; false: there is none. */
bool host_deliver(struct host *host, unsigned int from, unsigned int to);
/* One random step: a message somewhere, or a tick. */
void host_step(struct host *host);
/* Until no message is left and a few rounds have gone by. Time stands still. */
void host_settle(struct host *host);
void host_advance(struct host *host, uint64_t ms);

/* The worker that owns a group. */
unsigned int host_owner(const struct host *host, const char *group);
/* Writes the i-th name of a group that this worker owns. */
const char *host_group(const struct host *host, unsigned int worker, unsigned int i, char out[32]);

#endif
