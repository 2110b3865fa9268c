/*
 * two.h - two stacks joined by a simulated link: seeded loss, duplication, reordering, delay and a rate; time jumps from event to event.
 *
 * Each connection has an application at both ends that sends `to_send` bytes of a known pattern and checks every byte that it gets. All
 * randomness comes from the seed, so a failure repeats.
 */
#ifndef MUSTER_TESTS_TCP_TWO_H
#define MUSTER_TESTS_TCP_TWO_H

#include "dataplane/tcp/tcp.h"

#define TWO_MAX_FLOWS 64
#define TWO_PORT 9092

struct two_link {
	unsigned int loss_pm, duplicate_pm, reorder_pm; /* per mille of the segments of each direction */
	uint64_t delay_us;				 /* one way */
	uint64_t segment_us;				 /* time on the wire of one segment */
	bool cut;					 /* everything is lost */
	unsigned int tx_fail_pm;			 /* tx_get returns NULL */
};

/* One end of one connection. */
struct two_app {
	struct two_end *end;
	struct tcp_conn *conn; /* NULL: none yet, or closed */
	uint64_t to_send, sent, received;
	uint64_t held;
	bool stalled;	     /* keeps everything it receives: the window closes */
	bool close_when_sent; /* tcp_close after to_send bytes */
	bool close_on_fin;
	bool refuse;
	bool established, fin, closed;
	enum tcp_end how;
	bool wrong_byte, out_of_order_upcall;
	unsigned int sendables;
};

struct two_end {
	struct two *two;
	unsigned int id;
	struct tcp *tcp;
	struct stats stats;
	struct {
		struct tcp_tuple tuple;
		struct tcp_conn *conn;
	} flow[TWO_MAX_FLOWS];
	unsigned int flows;
	struct two_app app[TWO_MAX_FLOWS];
	unsigned int apps;
	struct two_app accept; /* settings that accepted connections start with */
	struct tcp_tuple tx_tuple;
	uint64_t wire_free_us;
};

struct two_segment {
	uint64_t at, order;
	unsigned int to;
	size_t len;
	uint8_t *bytes;
};

struct two {
	struct now now;
	struct two_link link;
	struct two_end end[2];
	uint64_t random, order;
	struct two_segment *heap;
	size_t heap_len, heap_cap;
	uint64_t lost;
	bool strip_options; /* of every SYN, but for MSS */
	/* Drops a segment when it returns true; NULL: none. */
	bool (*drop)(struct two *two, unsigned int from, const uint8_t *segment, size_t len);
	uint64_t drop_state;
};

struct tcp_config two_default_config(void);
/* The end 1 listens on TWO_PORT. */
void two_init(struct two *two, const struct tcp_config *client, const struct tcp_config *server, uint64_t seed);
void two_fini(struct two *two);
/* Opens a connection from end 0; `port` is its own port. */
struct two_app *two_connect(struct two *two, uint16_t port);
/* One event: advances to the earliest and handles it; false when nothing will ever happen again before `until_us`. */
bool two_step(struct two *two, uint64_t until_us);
/* Runs until simulated time `until_us`. */
void two_run(struct two *two, uint64_t until_us);
/* Runs until `done` or `until_us`; returns whether done. */
bool two_run_until(struct two *two, bool (*done)(struct two *two), uint64_t until_us);
uint64_t two_random(struct two *two);
/* The app of the server that is the peer of the client's app `i`. */
struct two_app *two_peer(struct two *two, struct two_app *client);
/* Lets a stalled app take everything. */
void two_resume(struct two_app *app);

#endif
