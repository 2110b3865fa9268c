/*
 * frame.h - cuts the byte streams of a worker's connections into frames (int32 length, then that many bytes) and hands
 * them to the service; the dataplane's side of the seam in muster/service.h.
 *
 * Knows TCP by dataplane/tcp/tcp.h alone: no device, no clock. The worker forwards TCP's events here and calls
 * frames_poll once per round; what the service asks of a channel is marked at once and done there.
 */
#ifndef DATAPLANE_FRAME_H
#define DATAPLANE_FRAME_H

#include "dataplane/tcp/tcp.h"
#include "muster/service.h"

/* A peer that leaves more than its send buffer unread for this long is closed. */
#define FRAME_SLOW_READER_US (30u * US_PER_S)

struct frames; /* all connections of one worker */

struct frames_config {
	unsigned int max_connections;
	size_t max_frame_bytes;
	size_t memory_bytes;	  /* bytes of incomplete and held-back frames of all connections together */
	uint64_t idle_timeout_us; /* 0: never */
};

/* NULL when memory is missing. `stats` belongs to the caller. */
struct frames *frames_new(const struct frames_config *cfg, struct stats *stats, struct now now);
/* Calls nobody: the connections must be gone, or their sessions are lost. */
void frames_free(struct frames *frames);
size_t frames_memory_needed(const struct frames_config *cfg);

void frames_set_service(struct frames *frames, const struct service_ops *ops, void *service);

/* TCP's events, see struct tcp_ops. */
bool frames_established(struct frames *frames, struct tcp_conn *conn, struct now now);
void frames_data(struct frames *frames, struct tcp_conn *conn, const uint8_t *p, size_t len, struct now now);
void frames_fin(struct frames *frames, struct tcp_conn *conn, struct now now);
void frames_sendable(struct frames *frames, struct tcp_conn *conn, struct now now);
void frames_closed(struct frames *frames, struct tcp_conn *conn, enum tcp_end how, struct now now);

/*
 * Does what was marked: ends of holds, closes and aborts, and closes idle and slow peers; looks at no more than
 * `budget` connections. Returns the number looked at. The answers that the service gives wait for the next tcp_flush.
 */
unsigned int frames_poll(struct frames *frames, unsigned int budget, struct now now);
/* Monotonic microsecond at which frames_poll must be called at the latest: 0 when work is marked. */
uint64_t frames_deadline(struct frames *frames);

unsigned int frames_open(const struct frames *frames);
/* Counts channel_send calls; a change tells the worker that tcp_flush has something to do. */
uint64_t frames_sends(const struct frames *frames);
/* Bytes that all assembly buffers occupy now. */
size_t frames_memory_used(const struct frames *frames);

/* For the stop of the program: close (FIN) or abort (RST) every connection; takes effect in the next frames_poll. */
void frames_close_all(struct frames *frames);
void frames_abort_all(struct frames *frames);

#endif
