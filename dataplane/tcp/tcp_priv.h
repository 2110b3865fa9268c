/*
 * tcp_priv.h - what the files of this folder share: the connection, the stack, and who does what.
 *
 *   conn.c    life of a connection: slots, states, the end, the calls that the user makes
 *   listen.c  listeners, passive and active open, answers to segments without a connection
 *   in.c      a segment that arrived: header, prediction, checks in the order of RFC 9293, 3.10.7
 *   in_ack.c  its acknowledgement
 *   in_data.c its bytes and its FIN
 *   loss.c    what is lost and when to send it again (RFC 6675, RFC 6582, RFC 6298)
 *   out.c     segments that leave
 *   timer.c   everything that happens because of time
 *
 * Invariants:
 *  1. snd_una <= snd_nxt; the send queue starts at snd_una (at snd_una + 1 while the SYN is not acknowledged); the FIN, once queued,
 *     has the number behind the queue.
 *  2. rcv_nxt <= rcv_adv: the right edge of the window that was offered is never taken back.
 *  3. A connection whose state is TCP_CLOSED (but whose slot is not yet free) has no buffers, no timer and no flow entry; it stands
 *     in the dirty list, and the next tcp_flush frees the slot. So a pointer that the owner looked up for a burst stays valid
 *     for that burst.
 *  4. The one timer of a connection hangs at or before the earliest of its deadlines; deadlines move without touching it.
 *  5. Upcalls are made last: after one, the connection is looked at anew.
 */
#ifndef MUSTER_TCP_PRIV_H
#define MUSTER_TCP_PRIV_H

#include <sys/queue.h>

#include "dataplane/tcp/cc.h"
#include "dataplane/tcp/opt.h"
#include "dataplane/tcp/pool.h"
#include "dataplane/tcp/reass.h"
#include "dataplane/tcp/rtt.h"
#include "dataplane/tcp/sack.h"
#include "dataplane/tcp/sendq.h"
#include "dataplane/tcp/seq.h"
#include "dataplane/tcp/tcp.h"
#include "dataplane/tcp/wire.h"
#include "muster/check.h"

#define TCP_HEADER_BYTES 20
#define TCP_IP_HEADER_BYTES 20
#define TCP_DEFAULT_MSS 536 /* of a peer that says nothing (RFC 9293, 3.7.1) */
#define TCP_MIN_MSS 64	    /* a smaller one offered is not believed: it would only make us send headers */
#define TCP_MAX_LISTENERS 16
#define TCP_FLUSH_SEGMENTS 64 /* of one connection in one tcp_flush */
#define TCP_DUP_ACKS 3	      /* RFC 5681, 3.2 */

#define TCP_RETRIES 12		/* RFC 9293, 3.8.3: at least 100 s with our floor of the time-out and doubling */
#define TCP_SYN_RETRIES 5	/* active open */
#define TCP_SYN_RCVD_RETRIES 3	/* half-open connections must not hold slots for long */
#define TCP_KEEPALIVE_PROBES 6	/* spaced by a sixth of keepalive_us */
#define TCP_ORPHAN_US (120ull * US_PER_S) /* without progress after tcp_close; longer than the longest time-out */
#define TCP_CHALLENGE_GAP_US (100u * US_PER_MS) /* between two rate-limited ACKs of one connection (RFC 5961, 7) */
#define TCP_PAWS_IDLE_US (24ull * 24 * 3600 * US_PER_S) /* ts_recent is too old to judge by (RFC 7323, 5.5) */

enum tcp_flag {
	TCP_FIN = 0x01,
	TCP_SYN = 0x02,
	TCP_RST = 0x04,
	TCP_PSH = 0x08,
	TCP_ACK = 0x10,
	TCP_URG = 0x20,
};

enum tcp_state {
	TCP_CLOSED,
	TCP_SYN_SENT,
	TCP_SYN_RCVD,
	TCP_ESTABLISHED,
	TCP_FIN_WAIT_1,
	TCP_FIN_WAIT_2,
	TCP_CLOSE_WAIT,
	TCP_CLOSING,
	TCP_LAST_ACK,
	TCP_TIME_WAIT,
	TCP_STATES,
};

/* Bits of conn->flags. */
enum {
	CONN_DIRTY = 1 << 0,	   /* in the dirty list */
	CONN_ACK_NOW = 1 << 1,	   /* the next flush must acknowledge */
	CONN_ACK_SOON = 1 << 2,	   /* a delayed ACK is due some time */
	CONN_TIMESTAMPS = 1 << 3,  /* agreed on in the handshake */
	CONN_SACK = 1 << 4,	   /* so is this */
	CONN_ACTIVE = 1 << 5,	   /* opened by tcp_connect */
	CONN_OWED = 1 << 6,	   /* the user has seen the connection and not yet `closed` */
	CONN_FIN_QUEUED = 1 << 7,  /* our FIN follows the send queue and is not yet acknowledged */
	CONN_USER_CLOSED = 1 << 8, /* tcp_close was called */
	CONN_ABORT = 1 << 9,	   /* RST at the next flush */
	CONN_NO_MEMORY = 1 << 10,  /* and this is why */
	CONN_OVER_LIMIT = 1 << 11, /* tcp_send reported it; `sendable` is owed */
	CONN_TIMING = 1 << 12,	   /* rtt_seq is being timed */
	CONN_REASS = 1 << 13,	   /* the reassembly queue is not empty */
	CONN_FIN_AHEAD = 1 << 14,  /* a FIN at fin_seq has arrived ahead of a gap */
	CONN_PERSIST = 1 << 15,	   /* rexmit_at is the next zero-window probe */
	CONN_RECOVERY = 1 << 16,   /* fast recovery */
	CONN_LOSS = 1 << 17,	   /* after a time-out, until `recover` is acknowledged */
	CONN_LOSS_FIRST = 1 << 18, /* the next retransmission goes out whatever cwnd says */
	CONN_SACKED = 1 << 19,	   /* the scoreboard is not empty */
	CONN_DUP_ACKS = 1 << 20,   /* dup_acks is not 0 */
	CONN_AGED = 1 << 21,	   /* in a list of struct tcp: half_open or time_wait */
	CONN_SCALE = 1 << 22,	   /* window scaling agreed on */
	CONN_PROBED = 1 << 23,	   /* probes is not 0 */
};

/* With one of these set, header prediction does not apply. */
#define CONN_SLOW                                                                                                          \
	(CONN_ABORT | CONN_REASS | CONN_FIN_AHEAD | CONN_PERSIST | CONN_RECOVERY | CONN_LOSS | CONN_SACKED | CONN_DUP_ACKS |   \
	 CONN_PROBED)

struct tcp_conn {
	/* line 0: every segment */
	struct tcp *tcp;
	void *user;
	uint32_t rcv_nxt;
	uint32_t rcv_adv; /* right edge of the window offered so far */
	uint32_t snd_una;
	uint32_t snd_nxt; /* the highest sent; retransmissions do not move it */
	uint32_t snd_wnd; /* in bytes */
	uint32_t ts_recent;
	uint32_t ts_offset;
	uint32_t held;	/* bytes that the receiver keeps undelivered */
	uint32_t flags;
	uint8_t state;	/* enum tcp_state; set by tcp_conn_set_state */
	uint8_t snd_scale, rcv_scale;
	uint8_t dup_acks;
	uint16_t mss;	  /* payload of a full segment that we send, options deducted */
	uint16_t rcv_mss; /* the largest payload that has arrived */
	uint32_t last_ack; /* acknowledgement number that we sent last */

	/* line 1: data and acknowledgements */
	struct sendq sendq;
	struct tcp_conn *dirty_next;
	uint64_t rexmit_at; /* retransmission, or probe with CONN_PERSIST; TIME_NEVER: off */
	uint64_t last_data_us;
	uint32_t snd_wl1, snd_wl2; /* sequence and acknowledgement number of the last window update */

	/* line 2 */
	struct tcp_tuple tuple;
	struct rtt rtt;
	struct wheel_timer timer;
	uint64_t last_rx_us;
	uint32_t rtt_seq; /* acknowledging this ends the measurement */
	uint32_t snd_wnd_max;

	/* line 3 */
	struct cc cc;
	uint32_t fin_seq; /* of the peer's FIN, with CONN_FIN_AHEAD */
	uint64_t rtt_sent_us;
	uint64_t last_tx_us; /* of data */
	uint64_t delack_at;
	uint64_t life_at; /* end of TIME_WAIT, or orphan time-out */
	uint64_t challenge_us; /* time of the last rate-limited ACK */

	/* cold: loss, opening and closing */
	struct reass reass;
	struct sack sack;
	uint32_t recover;    /* snd_nxt when loss was noticed */
	uint32_t lost_end;   /* everything missing before this is lost */
	uint32_t high_rxt;   /* everything missing before this has been sent again */
	uint32_t dup_bytes;  /* without SACK: bytes that duplicate ACKs say have left the network */
	uint32_t iss, irs;
	uint64_t loss_us;    /* time of the last time-out */
	uint8_t backoff;     /* doublings of the time-out, until a round trip is measured (Karn) */
	uint8_t retries;     /* time-outs since the peer last acknowledged something new */
	uint8_t probes;	     /* keepalive and zero-window probes since the peer last said anything */
	TAILQ_ENTRY(tcp_conn) age;
	LIST_ENTRY(tcp_conn) free;
} CACHE_ALIGNED;

_Static_assert(offsetof(struct tcp_conn, sendq) == 1 * MUSTER_CACHE_LINE, "line 1");
_Static_assert(offsetof(struct tcp_conn, tuple) == 2 * MUSTER_CACHE_LINE, "line 2");
_Static_assert(offsetof(struct tcp_conn, cc) == 3 * MUSTER_CACHE_LINE, "line 3");
_Static_assert(sizeof(struct tcp_conn) <= 6 * MUSTER_CACHE_LINE, "size of a connection");

TAILQ_HEAD(tcp_age_list, tcp_conn);

struct tcp {
	struct tcp_config cfg;
	const struct tcp_ops *ops;
	void *ctx;
	struct stats *stats;
	const struct cc_ops *cc;
	struct tcp_conn *dirty, **dirty_end; /* connections with something for tcp_flush, in the order of marking */
	struct tcp_conn *conns;		     /* max_connections of them */
	LIST_HEAD(, tcp_conn) free;
	unsigned int in_use;
	unsigned int spare_min; /* slots that TIME_WAIT must leave free */
	unsigned int half_open_now, half_open_max;
	struct tcp_age_list half_open; /* SYN_RCVD by passive open, oldest first */
	struct tcp_age_list time_wait; /* oldest first */
	uint32_t reass_max_blocks;     /* of one connection */
	uint32_t reass_blocks, reass_blocks_max; /* of all */
	uint16_t mss;		       /* what we announce */
	uint8_t rcv_scale;
	bool stopped;
	unsigned int listeners;
	uint16_t listener[TCP_MAX_LISTENERS];
	struct pool pool;
	struct wheel wheel; /* ticks of 1 ms */
};

/* A segment, decoded. */
struct segment {
	uint32_t seq, ack;
	uint32_t len; /* of the payload */
	uint16_t window;
	uint8_t flags;
	const uint8_t *payload;
	struct opt opt;
};

/* ---- conn.c ---- */

/* A new connection in TCP_CLOSED with its flow entry made, or NULL. */
struct tcp_conn *tcp_conn_new(struct tcp *tcp, const struct tcp_tuple *tuple, struct now now);
void tcp_conn_set_state(struct tcp_conn *conn, enum tcp_state state);
bool tcp_state_may_follow(enum tcp_state from, enum tcp_state to);
/* Everything ends now: buffers, timer, flow entry; calls `closed` when that is owed. */
void tcp_conn_end(struct tcp_conn *conn, enum tcp_end how, struct now now);
/* Both directions are finished and we closed first. Calls `closed`. */
void tcp_conn_time_wait(struct tcp_conn *conn, struct now now);
/* Frees the slot of a closed connection that left the dirty list. */
void tcp_conn_reclaim(struct tcp_conn *conn);
void tcp_conn_dirty(struct tcp_conn *conn);
/* Ends connections that are worth less than new ones, see conn.c; their slots are free after the flush. */
void tcp_conn_make_room(struct tcp *tcp, struct now now);
void tcp_conn_age(struct tcp_conn *conn, struct tcp_age_list *list);
void tcp_conn_unage(struct tcp_conn *conn);

static inline void tcp_conn_ack_now(struct tcp_conn *conn)
{
	conn->flags |= CONN_ACK_NOW;
	tcp_conn_dirty(conn);
}

/* The user has aborted it, or it has ended, in an upcall: touch it no more. */
static inline bool tcp_conn_gone(const struct tcp_conn *conn)
{
	return conn->state == TCP_CLOSED || (conn->flags & CONN_ABORT) != 0;
}

/* Our timestamp (RFC 7323, 5.4): milliseconds. */
static inline uint32_t tcp_conn_timestamp(const struct tcp_conn *conn, struct now now)
{
	return (uint32_t)now_ms(now) + conn->ts_offset;
}

/* Sequence number behind the last byte queued: that of the FIN, if there is one. */
static inline uint32_t tcp_conn_queue_end(const struct tcp_conn *conn)
{
	return conn->snd_una + conn->sendq.len;
}

/* ---- listen.c ---- */

/* A segment that belongs to no connection. */
void tcp_listen_input(struct tcp *tcp, const struct tcp_tuple *tuple, const struct segment *seg, struct now now);
/* Passive open for an acceptable SYN; the initial sequence number lies behind `iss_floor` when `use_floor`. */
void tcp_listen_accept(struct tcp *tcp, const struct tcp_tuple *tuple, const struct segment *seg, const uint32_t *iss_floor,
		       struct now now);
bool tcp_listening(const struct tcp *tcp, uint16_t port);
/* Takes over what the peer's SYN says. */
void tcp_listen_learn_syn(struct tcp_conn *conn, const struct segment *seg, struct now now);
/* SYN_SENT or SYN_RCVD becomes ESTABLISHED; asks the user. False: the connection is gone. */
bool tcp_listen_established(struct tcp_conn *conn, const struct segment *seg, struct now now);

/* ---- in_ack.c ---- */

/* False: drop the segment, the acknowledgement is not acceptable (or the connection has ended). */
bool tcp_in_ack(struct tcp_conn *conn, const struct segment *seg, struct now now);
/* `ack` lies in (snd_una, snd_nxt]: frees what it covers and grows the congestion window. */
void tcp_in_acked(struct tcp_conn *conn, uint32_t ack, bool has_tsecr, uint32_t tsecr, struct now now);

/* ---- in_data.c ---- */

/* The acceptable part of the payload, and the FIN. */
void tcp_in_data(struct tcp_conn *conn, const struct segment *seg, struct now now);
/* In-order bytes: moves rcv_nxt, marks the ACK, delivers. */
void tcp_in_deliver(struct tcp_conn *conn, const uint8_t *p, uint32_t len, struct now now);

/* ---- loss.c ---- */

/* Bytes in flight by the best estimate (RFC 6675, SetPipe). */
uint32_t tcp_loss_pipe(const struct tcp_conn *conn);
/* The next missing range to send again, [*seq, *end); false when there is none. */
bool tcp_loss_next(const struct tcp_conn *conn, uint32_t *seq, uint32_t *end);
/* A duplicate acknowledgement, or one with news in its SACK option. */
void tcp_loss_duplicate(struct tcp_conn *conn, struct now now);
/* snd_una has moved by `acked` bytes. */
void tcp_loss_advance(struct tcp_conn *conn, uint32_t acked, struct now now);
void tcp_loss_timeout(struct tcp_conn *conn, struct now now);
/* Takes in the SACK option; true when it reports bytes that were not known to have arrived. */
bool tcp_loss_sack(struct tcp_conn *conn, const struct segment *seg);

/* ---- out.c ---- */

/* Data, FIN and ACK as far as windows allow. Returns false when the lower layer has no room: try again. */
bool tcp_out_flush(struct tcp_conn *conn, struct now now);
/* One segment without data that starts at `seq`. */
bool tcp_out_bare(struct tcp_conn *conn, uint32_t seq, uint8_t flags, struct now now);
/* Asks about a closed window with a number that the peer has already acknowledged; sends what fits when it is not quite closed. */
void tcp_out_probe(struct tcp_conn *conn, struct now now);
/* SYN or SYN-ACK. */
bool tcp_out_syn(struct tcp_conn *conn, struct now now);
void tcp_out_reset(struct tcp_conn *conn, struct now now);
/* RST for a segment that has no connection (RFC 9293, 3.10.7.1). */
void tcp_out_reset_stray(struct tcp *tcp, const struct tcp_tuple *tuple, const struct segment *seg);
/* An ACK that an attacker could provoke at will: at most one per TCP_CHALLENGE_GAP_US. Returns whether it goes out. */
bool tcp_out_limited_ack(struct tcp_conn *conn, struct now now);
/* Window that may be offered now beyond rcv_nxt. */
uint32_t tcp_out_window(const struct tcp_conn *conn);

/* ---- timer.c ---- */

/* Makes sure that the timer fires at `at` or before. */
void tcp_timer_arm(struct tcp_conn *conn, uint64_t at);
void tcp_timer_rexmit(struct tcp_conn *conn, struct now now);
/* The keepalive deadline, TIME_NEVER when off. */
uint64_t tcp_timer_keepalive_at(const struct tcp_conn *conn);

#endif
