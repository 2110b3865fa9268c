/*
 * worker.h - one worker: everything that one core owns. Private to the dataplane.
 *
 * Passed first everywhere; nothing of it is touched by another thread, except the stop flag, the wake-up, and plain
 * reads of the counters and the pulse, which have cache lines of their own. All workers of a program lie in one array, by index.
 */
#ifndef DATAPLANE_WORKER_H
#define DATAPLANE_WORKER_H

#include "dataplane/arp.h"
#include "dataplane/desk.h"
#include "dataplane/exchange.h"
#include "dataplane/flow.h"
#include "dataplane/frame.h"
#include "dataplane/icmp.h"
#include "dataplane/idle.h"
#include "dataplane/inject.h"
#include "dataplane/ipv4.h"
#include "dataplane/port.h"
#include "dataplane/steer.h"
#include "dataplane/tx.h"
#include "muster/pulse.h"

#define WORKER_RX_BURST 32u

enum worker_phase {
	WORKER_RUNNING,
	WORKER_ANSWERING, /* no new connections; the service answers what is parked */
	WORKER_CLOSING,	  /* FIN sent, waiting for the peers */
	WORKER_ABORTING,  /* RST marked for those who did not */
	WORKER_DONE,
};

struct worker_mailbox {
	struct mailbox mailbox; /* first */
	struct exchange *exchange;
};

/* To the housekeeping thread. */
struct worker_desk {
	struct mailbox mailbox; /* first */
	struct desk desk;
};

struct worker {
	/* the hot path */
	struct now now; /* of this round */
	uint16_t port_id, queue;
	bool rx_ip_checksum, rx_tcp_checksum;
	uint8_t mac[6];
	struct ipv4_self self;
	struct flow *flow;
	struct tcp *tcp;
	struct frames *frames;
	struct arp *arp;
	const struct service_ops *ops;
	void *service;
	uint64_t service_deadline_us;
	struct exchange *exchange; /* with the other workers; NULL: there are none */
	struct steer steer;
	bool has_queue; /* else all its frames come from and go to others */
	bool shares_queue; /* others send through its queue */
	struct rte_mbuf *segment; /* between TCP's tx_get and tx_send */
	uint64_t sends_flushed;	  /* frames_sends at the start of the last tcp_flush */

	/* the rest */
	enum worker_phase phase;
	uint64_t stop_us, grace_us;
	const uint32_t *stopping; /* set by dataplane_stop */
	const struct dataplane_config *cfg;
	unsigned int index;
	uint16_t next_port; /* ephemeral, see worker_connect */
	struct icmp icmp;
	struct idle idle;
	struct inject *inject;
	struct rte_mempool *pool;
	uint64_t rest_us; /* the sleep before this round was meant to be no longer */
	struct pace pace;
	bool worked; /* the round before found work */
	struct worker_mailbox mailbox;
	struct worker_desk desk;

	struct tx tx;
	struct stats stats;
	struct pulse pulse; /* read by others */
} CACHE_ALIGNED;

_Static_assert(offsetof(struct worker, stats) % MUSTER_CACHE_LINE == 0 && offsetof(struct worker, pulse) % MUSTER_CACHE_LINE == 0 &&
		       sizeof(struct stats) % MUSTER_CACHE_LINE == 0 && sizeof(struct worker) % MUSTER_CACHE_LINE == 0,
	       "what others read shares no line with what only the worker needs");

/*
 * Allocates what the worker owns for the rest of its life; `exchange` is NULL for an only worker. False: one line in err; worker_fini cleans up in any case.
 */
bool worker_init(struct worker *w, unsigned int index, const struct dataplane_config *cfg, const struct port *port,
		 struct exchange *exchange, struct rte_mempool *pool, const uint32_t *stopping, int desk_bell, char *err, size_t err_len);
/* The port must be stopped. */
void worker_fini(struct worker *w);

/* The loop; returns after the stop, within grace_us of it. */
void worker_run(struct worker *w);

bool worker_connect(struct worker *w, uint32_t addr, uint16_t port);

struct now worker_clock(void);
/* The name of a stage (struct pulse). */
const char *worker_stage(unsigned int stage);

/* input.c: one receive burst, all the way to TCP or to the worker that a frame is for; returns the number of frames. */
unsigned int worker_receive(struct worker *w);
/* Frames that other workers received for this one, or want to be sent through its queue. */
unsigned int worker_take_over(struct worker *w);

/* output.c: what the lower layers send through. */
extern const struct tcp_ops worker_tcp_ops;
extern const struct arp_ops worker_arp_ops;
/* Answers an echo request that icmp_input accepted. */
void worker_send_echo(struct worker *w, const struct ipv4_packet *request);

#endif
