/*
 * peer.h - one stack and a hand-made peer: the test writes each segment itself and looks at each one that comes out.
 *
 * The peer's sequence numbers are relative: `at` 0 is its SYN, 1 its first byte; `ack` counts ours the same way.
 */
#ifndef MUSTER_TESTS_TCP_PEER_H
#define MUSTER_TESTS_TCP_PEER_H

#include "dataplane/tcp/tcp_priv.h"

#define PEER_PORT 9092
#define PEER_ISN 0xfffffff0u /* wraps around within the first bytes */
#define PEER_MAX_OUT 256

struct peer_segment {
	uint32_t seq, ack; /* relative */
	uint16_t window;
	uint8_t flags;
	uint32_t len;
	struct opt opt;
	bool bad_option;
	uint8_t data[1500];
};

struct peer {
	struct now now;
	struct tcp *tcp;
	struct stats stats;
	struct tcp_tuple tuple;
	struct tcp_conn *conn;	   /* what flow_add added last; NULL after flow_remove. Segments go to this one. */
	unsigned int flows;	   /* added and not removed */
	uint32_t our_isn;	   /* learnt from the SYN that came out */
	bool timestamps;	   /* put a timestamp option into every segment */
	uint32_t tsval;
	struct peer_segment out[PEER_MAX_OUT];
	unsigned int outs, taken;
	bool tx_full; /* tx_get returns NULL */
	/* what the user saw */
	unsigned int established, fins, closeds, sendables;
	enum tcp_end how;
	bool refuse;
	uint8_t received[65536];
	size_t received_len;
	/* what the user does */
	bool echo;	    /* tcp_send everything back, from inside the upcall */
	bool abort_on_data; /* tcp_abort from inside the upcall */
	bool close_on_fin;
	bool hold;
};

struct tcp_config peer_default_config(void);
void peer_init(struct peer *peer, const struct tcp_config *cfg);
void peer_fini(struct peer *peer);
/* A segment of the peer: options from `opt` when not NULL. */
void peer_in(struct peer *peer, uint8_t flags, uint32_t at, uint32_t ack, uint32_t window, const void *data, size_t len, const struct opt *opt);
/* Raw bytes of a whole segment. */
void peer_raw(struct peer *peer, const uint8_t *segment, size_t len);
/* Passes time in steps of 1 ms, with timers and flushes. */
void peer_wait(struct peer *peer, uint64_t us);
void peer_flush(struct peer *peer);
/* The next segment that came out, or NULL. */
const struct peer_segment *peer_out(struct peer *peer);
/* The same, which must be there. */
const struct peer_segment *peer_expect(struct peer *peer, uint8_t flags, uint32_t seq, uint32_t ack, uint32_t len);
void peer_expect_none(struct peer *peer);
/* Passive open, no options but MSS 1460. */
void peer_open(struct peer *peer);
/* Passive open with timestamps, SACK and window scale 0. */
void peer_open_options(struct peer *peer);

#endif
