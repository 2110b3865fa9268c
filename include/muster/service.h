/*
 * service.h - the seam between the two halves.
 *
 * The dataplane owns connections and cuts their byte streams into frames (int32 length, then that many bytes).
 * It calls a *service* (the coordinator; an echo in benchmarks) through `struct service_ops`. The service answers through
 * a `struct channel`, the dataplane's end of one connection. Neither side sees more of the other than this file.
 *
 * Rules:
 *  1. One worker, one service: all calls of both directions happen on the worker's core, never concurrently.
 *  2. Bytes passed to either side are valid only during the call.
 *  3. After `opened` returned a session, `closed` is called exactly once, whoever ended the connection. From then on
 *     the channel must not be used. No call of the service ever frees a channel at once: channel_close and
 *     channel_abort only mark it, and `closed` follows later from the worker's own loop, never from inside a call
 *     that the service makes.
 *  4. `frame` may answer SERVICE_HOLD: no further frame is delivered until channel_resume. Bytes wait in the receive
 *     buffer, whose window closes. channel_resume only marks the channel: frames follow from the worker's loop.
 *  5. `eof` comes as soon as the peer's FIN is in order, once, even while frames are held back; frames that arrived before
 *     the FIN are still delivered afterwards. The service then drops parked work (architecture rule 7), answers what can be answered at once, and
 *     calls channel_close when nothing is left to say. `drained` tells it that no further frame will come.
 */
#ifndef MUSTER_SERVICE_H
#define MUSTER_SERVICE_H

#include "muster/mailbox.h"
#include "muster/time.h"

struct channel;

/* Who is at the other end. Addresses and ports in host byte order. */
struct channel_peer {
	uint32_t addr;
	uint32_t local_addr;
	uint16_t port;
	uint16_t local_port;
};

enum service_verdict {
	SERVICE_NEXT, /* deliver the next frame when there is one */
	SERVICE_HOLD, /* hold frames back until channel_resume */
	SERVICE_ABORT, /* the peer broke the protocol: reset the connection (the service has counted why) */
};

struct service_ops {
	/* A connection is established. Returns the session, or NULL to refuse it (it is reset, `closed` is not called). */
	void *(*opened)(void *service, struct channel *ch, const struct channel_peer *peer, struct now now);
	/* One whole frame, without its length field; len >= 1. */
	enum service_verdict (*frame)(void *session, const uint8_t *p, size_t len, struct now now);
	/* The peer sent FIN (rule 5). */
	void (*eof)(void *session, struct now now);
	/* After eof: every frame that arrived before the FIN has been delivered. */
	void (*drained)(void *session, struct now now);
	/* The connection is gone; frees the session. */
	void (*closed)(void *session, struct now now);
	/*
	 * Does the service's timed and sliced work; called in every poll round. Returns the monotonic microsecond at which it wants to
	 * be called again at the latest (now.us or less: at once; TIME_NEVER: only after other calls).
	 */
	uint64_t (*tick)(void *service, struct now now);
	/*
	 * The worker stood still for `lost_us`, which now.us does not count (time.h); called before the frames of that round. What peers sent
	 * meanwhile may still wait in the receive queue, or come only when their TCP sends it again. May be NULL.
	 */
	void (*stalled)(void *service, uint64_t lost_us, struct now now);
	/* An active open (dataplane_connect) failed; may be NULL for a service that opens none. */
	void (*connect_failed)(void *service, struct now now);
	/*
	 * The program is stopping: answer what can be answered. Returns true when nothing is parked any more. Mail and ticks go on afterwards until no
	 * worker has anything left to do.
	 */
	bool (*stop)(void *service, struct now now);
	/* A message from another worker's service (mailbox.h); may be NULL for a service that is sent none. */
	void (*mail)(void *service, unsigned int from, const struct mail *mail, struct now now);
	/* A message from the housekeeping thread (dataplane_tell); may be NULL for a service that is sent none. */
	void (*told)(void *service, const struct mail *mail, struct now now);
};

/* What the dataplane implements. A channel starts with a pointer to it, so that both sides can inline the calls. */
struct channel_ops {
	/* Queues bytes for sending; copies them. They leave at the end of the poll round, in order. */
	void (*send)(struct channel *ch, const void *p, size_t len);
	/* Ends a hold (rule 4). */
	void (*resume)(struct channel *ch);
	/* Sends FIN after everything queued. */
	void (*close)(struct channel *ch);
	/* Sends RST. */
	void (*abort)(struct channel *ch);
};

struct channel {
	const struct channel_ops *ops;
};

static inline void channel_send(struct channel *ch, const void *p, size_t len)
{
	ch->ops->send(ch, p, len);
}

static inline void channel_resume(struct channel *ch)
{
	ch->ops->resume(ch);
}

static inline void channel_close(struct channel *ch)
{
	ch->ops->close(ch);
}

static inline void channel_abort(struct channel *ch)
{
	ch->ops->abort(ch);
}

#endif
