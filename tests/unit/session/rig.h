/*
 * rig.h - a node with its service calls, driven by a test as the dataplane would: fake channels, frames that wait while they are held back,
 * closes that follow later, and time that only the test moves.
 */
#ifndef TEST_RIG_H
#define TEST_RIG_H

#include "coordinator/node.h"
#include "coordinator/wire/api.h"
#include "coordinator/wire/arena.h"
#include "coordinator/wire/errors.h"
#include "coordinator/wire/header.h"
#include "coordinator/wire/messages.h"

#define RIG_FRAMES 512

/* Keeps nothing, like log_memory.c, but becomes durable and breaks when the test says so. */
struct rig_log {
	struct log log;
	uint64_t appended, durable;
	uint64_t limit; /* nothing behind this position becomes durable */
	int16_t broken; /* the error after which nothing becomes durable at all; 0: it works */
};

struct rig {
	struct group_settings settings;
	struct image *image;
	struct rig_log log;
	struct stats stats;
	struct node *node;
	struct now now;
	struct arena arena; /* of decoded answers; never reset */
	struct conn *conns; /* that are not freed yet */
};

/* One connection. */
struct conn {
	struct channel ch;
	struct rig *rig;
	struct conn *next;
	void *session;
	uint8_t *out; /* everything that was sent to the client */
	size_t out_len, out_cap, out_read;
	struct {
		uint8_t *p;
		size_t len;
	} frames[RIG_FRAMES]; /* not yet delivered */
	unsigned int first, last;
	bool held, want_close, want_abort, closed, aborted, fin;
};

/* Two nodes are listed, 1000 at "muster.test":19092 and, with `nodes` 2, 1001 at port 19093. Topics: "alpha" 6, "beta" 1, "gamma" 3 partitions. */
struct rig *rig_new(unsigned int shards, unsigned int nodes, unsigned int max_sessions);
/* The same over another log, which outlives the rig, and with the topic of the log (api/log_topic.h). */
struct rig *rig_new_over(struct log *log, unsigned int shards, unsigned int nodes, unsigned int max_sessions);
/* One worker of several (host.h). */
struct rig *rig_new_worker(unsigned int shards, unsigned int nodes, unsigned int max_sessions, struct mailbox *mailbox);
void rig_free(struct rig *rig);

struct conn *rig_open(struct rig *rig);	     /* NULL: refused */
void rig_advance(struct rig *rig, uint64_t ms); /* moves time in steps of 1 ms, a round each */
uint64_t rig_round(struct rig *rig);	     /* one tick at the present time */

/* Delivers what waited for a hold to end, and closes what is to be closed; also done by every call for the connection. */
void conn_pump(struct conn *c);
void conn_raw(struct conn *c, const void *frame, size_t len);
/* A request of the test's client "test-client"; the correlation id is the caller's. */
void conn_send(struct conn *c, int16_t key, int16_t version, int32_t correlation_id, const void *request);
void conn_fin(struct conn *c);	 /* the client closes its half */
void conn_reset(struct conn *c); /* the connection is gone */
void conn_free(struct conn *c);	 /* resets it if it still is open */

/* The number of whole answers not read yet. */
unsigned int conn_answers(const struct conn *c);
/* Reads the next answer into `response`; asserts that there is one, that its correlation id is the given one, and that nothing is left behind its body. */
void conn_read(struct conn *c, int16_t key, int16_t version, int32_t correlation_id, void *response);
/* The bytes of the next answer, without its length. */
struct bytes conn_read_raw(struct conn *c);

#endif
