/*
 * tcp.h - TCP (RFC 9293) of one worker: connections, segments in and out, timers. No device, no clock, no mbuf.
 *
 * The owner (the worker's network layer) looks up the connection of a segment and hands both to tcp_input; TCP answers
 * through `struct tcp_ops`. Time comes in with each call. All of it runs in a unit test with plain memory.
 *
 * This header is what the rest of the dataplane sees; tcp_priv.h is what the files of this folder share.
 */
#ifndef MUSTER_TCP_H
#define MUSTER_TCP_H

#include "muster/stats.h"
#include "muster/time.h"
#include "muster/wheel.h"

struct tcp;	 /* all connections of one worker */
struct tcp_conn; /* one of them */

/* Addresses and ports in host byte order. */
struct tcp_tuple {
	uint32_t local_addr, remote_addr;
	uint16_t local_port, remote_port;
};

enum tcp_end {
	TCP_END_NORMAL,	  /* both sides closed */
	TCP_END_RESET,	  /* the peer reset it */
	TCP_END_ABORTED,  /* we reset it */
	TCP_END_TIMEOUT,  /* retransmissions, probes or keepalives went unanswered */
	TCP_END_REFUSED,  /* active open was answered with RST */
	TCP_END_NO_MEMORY,
};

struct tcp_ops {
	/*
	 * Room for a TCP segment of `len` bytes (header, options, payload) to the tuple's remote side; NULL when there is none now (TCP tries
	 * again later). What is got is always followed by exactly one tx_send with the same len; the lower layer fills in the TCP
	 * checksum and the IP header.
	 */
	uint8_t *(*tx_get)(void *ctx, const struct tcp_tuple *tuple, size_t len);
	void (*tx_send)(void *ctx, const struct tcp_tuple *tuple, uint8_t *segment, size_t len);
	/*
	 * Keep the lookup of tcp_conn by tuple up to date. flow_add returns false when the table is full or has the tuple already. A
	 * connection that flow_remove took out may still be passed to tcp_input until the next tcp_flush (an earlier lookup of the same
	 * burst); but a lookup that found nothing must be made anew after a tcp_input that may have called flow_add for the same tuple.
	 */
	bool (*flow_add)(void *ctx, struct tcp_conn *conn);
	void (*flow_remove)(void *ctx, struct tcp_conn *conn);
	/* The handshake is complete. False: refuse (RST). */
	bool (*established)(void *ctx, struct tcp_conn *conn, struct now now);
	/*
	 * In-order bytes, valid during the call; the receiver takes all of them. What it keeps undelivered to its user it reports with
	 * tcp_hold / tcp_release, which is what closes and opens the window.
	 */
	void (*data)(void *ctx, struct tcp_conn *conn, const uint8_t *p, size_t len, struct now now);
	/* The peer's FIN is in order. */
	void (*fin)(void *ctx, struct tcp_conn *conn, struct now now);
	/* The send queue has fallen below half of its limit after tcp_send reported it over the limit. */
	void (*sendable)(void *ctx, struct tcp_conn *conn, struct now now);
	/* The connection is gone (or in TIME_WAIT, which nobody above needs to know). Called once after established; `conn` must not be used after. */
	void (*closed)(void *ctx, struct tcp_conn *conn, enum tcp_end how, struct now now);
};

struct tcp_config {
	unsigned int max_connections;
	unsigned int mtu;
	size_t receive_buffer_bytes;  /* largest window offered */
	size_t send_buffer_bytes;     /* limit of one send queue, see tcp_send */
	size_t buffer_memory_bytes;   /* all send queues and out-of-order bytes together */
	uint64_t rto_min_us, rto_max_us;
	uint64_t delayed_ack_us;
	uint64_t keepalive_us;	      /* 0: off */
	uint64_t time_wait_us;
	uint64_t secret[2];	      /* key of initial sequence numbers (RFC 6528) and timestamp offsets */
};

/* NULL when memory is missing. `ops`, `ctx` and `stats` belong to the caller and outlive it. */
struct tcp *tcp_new(const struct tcp_config *cfg, const struct tcp_ops *ops, void *ctx, struct stats *stats, struct now now);
void tcp_free(struct tcp *tcp);
/* Bytes that tcp_new allocates for `cfg`. Buffers beyond the first 128 KiB come later as needed, up to buffer_memory_bytes. */
size_t tcp_memory_needed(const struct tcp_config *cfg);

/* Accept connections to this local port. Returns false when the (small) table of listeners is full. */
bool tcp_listen(struct tcp *tcp, uint16_t port);
/* Refuse new connections from now on (SYNs are answered with RST). */
void tcp_listen_stop(struct tcp *tcp);

/* Active open. NULL when all connections are in use or the tuple is taken. The outcome is `established` or `closed`. */
struct tcp_conn *tcp_connect(struct tcp *tcp, const struct tcp_tuple *tuple, struct now now);

/*
 * One segment that arrived: `segment` is the TCP header on, `len` bytes to the end of the IP payload, checksum already verified.
 * `conn` is what the owner's lookup of the tuple found, or NULL. Any bytes are safe.
 */
void tcp_input(struct tcp *tcp, struct tcp_conn *conn, const struct tcp_tuple *tuple, const uint8_t *segment, size_t len, struct now now);

/* Sends what the round has queued: data, ACKs that must go now, window updates. Once per poll round. */
void tcp_flush(struct tcp *tcp, struct now now);

/* Fires due timers, at most `budget`. */
void tcp_timers(struct tcp *tcp, unsigned int budget, struct now now);
/*
 * Monotonic microsecond at which tcp_timers must be called at the latest; TIME_NEVER when no timer runs, 0 when something waits for tcp_flush (one
 * connection sends at most 64 segments per flush; the lower layer had no room).
 */
uint64_t tcp_deadline(struct tcp *tcp);

/*
 * Copies bytes into the send queue; tcp_flush sends them. Returns false when the connection cannot send any more (closed, no memory: it is
 * then being aborted); nothing is taken in that case. The limit send_buffer_bytes does not refuse bytes: the caller asks tcp_over_limit and stops producing.
 */
bool tcp_send(struct tcp_conn *conn, const void *p, size_t len);
bool tcp_over_limit(const struct tcp_conn *conn);
/* The receiver keeps `n` more / fewer bytes that its user has not taken; the offered window shrinks / grows by them. */
void tcp_hold(struct tcp_conn *conn, size_t n);
void tcp_release(struct tcp_conn *conn, size_t n);
/* FIN after everything queued. Receiving goes on until the peer's FIN, but for at most the orphan time once the user is gone. */
void tcp_close(struct tcp_conn *conn, struct now now);
/* RST; `closed` is called from the next tcp_flush. */
void tcp_abort(struct tcp_conn *conn);

const struct tcp_tuple *tcp_conn_tuple(const struct tcp_conn *conn);
/* The user's pointer; NULL at first. */
void *tcp_conn_user(const struct tcp_conn *conn);
void tcp_conn_set_user(struct tcp_conn *conn, void *user);
/* A dense number below max_connections that is this connection's while it lives. */
unsigned int tcp_conn_index(const struct tcp_conn *conn);
struct tcp_conn *tcp_conn_at(struct tcp *tcp, unsigned int index);
/* Monotonic microsecond of the last segment with data that arrived. */
uint64_t tcp_conn_last_data(const struct tcp_conn *conn);

#endif
