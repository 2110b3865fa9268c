/*
 * frame.c - framing, holds and ends of connections.
 *
 * A frame that lies whole in the bytes TCP delivers is handed on in place; what is left is kept in the connection's
 * buffer (frame_buffer.c).
 *
 * Invariants:
 *  1. Frames are delivered in order: while anything complete is kept, new bytes queue up behind it.
 *  2. Outside of this file's functions the kept bytes are either a proper beginning of one frame, or delivery is
 *     stopped, or READY is set.
 *  3. `closed` of the service is called exactly once after `opened`, and only out of TCP's own `closed`; channel calls
 *     only set flags.
 *  4. A connection is in the ready list when READY is set; only frames_poll takes it out, or its end.
 */
#include <stdlib.h>

#include "dataplane/frame_priv.h"

#define FRAMES_PER_TURN 256u /* delivered to one connection before others get their turn */
#define TIMERS_PER_POLL 64u

/* ---- cutting ---- */

/* Counts and ends the connection when no frame may have this length. */
static bool length_ok(struct frame_conn *fc, int32_t n)
{
	struct frames *f = fc->frames;
	if (likely(n > 0 && (size_t)n <= f->cfg.max_frame_bytes))
		return true;
	if (n <= 0)
		f->stats->frame_bad_length++;
	else
		f->stats->frame_too_large++;
	end_with(fc, ABORTING);
	return false;
}

static void deliver(struct frame_conn *fc, const uint8_t *p, size_t len, struct now now)
{
	struct frames *f = fc->frames;
	f->stats->frame_received++;
	fc->flags |= IN_FRAME;
	enum service_verdict verdict = f->ops->frame(fc->session, p, len, now);
	unsigned int resumed = fc->flags & RESUMED;
	fc->flags &= ~(unsigned int)(IN_FRAME | RESUMED);
	if (verdict == SERVICE_ABORT)
		end_with(fc, ABORTING);
	else if (verdict == SERVICE_HOLD && resumed == 0)
		fc->flags |= HELD;
}

/*
 * Delivers whole frames from the `len` bytes at `p` until delivery stops or the budget is used up; returns the bytes
 * they took.
 */
static size_t cut(struct frame_conn *fc, const uint8_t *p, size_t len, unsigned int *budget, struct now now)
{
	size_t used = 0;
	while (len - used >= LENGTH_BYTES && (fc->flags & STOPPED) == 0 && *budget > 0) {
		int32_t n = frame_length_at(p + used);
		if (!length_ok(fc, n) || len - used - LENGTH_BYTES < (size_t)n)
			break;
		(*budget)--;
		const uint8_t *frame = p + used + LENGTH_BYTES;
		used += LENGTH_BYTES + (size_t)n;
		deliver(fc, frame, (size_t)n, now);
	}
	return used;
}

static void cut_kept(struct frame_conn *fc, unsigned int *budget, struct now now)
{
	if (kept(fc) == 0)
		return;
	frame_buffer_advance(fc, cut(fc, fc->buf + fc->start, kept(fc), budget, now));
}

/* Bytes that the frame at the front of the kept ones still lacks: first to know its length, then to be whole. */
static size_t missing(const struct frame_conn *fc)
{
	size_t have = kept(fc);
	if (have < LENGTH_BYTES)
		return LENGTH_BYTES - have;
	return LENGTH_BYTES + (size_t)frame_length_at(fc->buf + fc->start) - have;
}

/* Something is kept that frames_poll could deliver, or must refuse. */
static bool pending(const struct frame_conn *fc)
{
	if (kept(fc) < LENGTH_BYTES)
		return false;
	int32_t n = frame_length_at(fc->buf + fc->start);
	return n <= 0 || (size_t)n > fc->frames->cfg.max_frame_bytes || kept(fc) - LENGTH_BYTES >= (size_t)n;
}

/* ---- TCP's events ---- */

static struct frame_conn *conn_of(struct frames *f, struct tcp_conn *conn)
{
	struct frame_conn *fc = &f->conns[tcp_conn_index(conn)];
	CHECK(fc->conn == conn);
	return fc;
}

void frames_data(struct frames *f, struct tcp_conn *conn, const uint8_t *p, size_t len, struct now now)
{
	struct frame_conn *fc = conn_of(f, conn);
	unsigned int budget = FRAMES_PER_TURN;
	f->now = now;
	if (unlikely((fc->flags & (CLOSING | ABORTING)) != 0))
		return;
	while (unlikely(kept(fc) > 0) && len > 0 && (fc->flags & (STOPPED | READY)) == 0 && budget > 0) {
		size_t take = missing(fc) < len ? missing(fc) : len;
		frame_buffer_keep(fc, p, take);
		p += take;
		len -= take;
		cut_kept(fc, &budget, now);
	}
	if (kept(fc) == 0 && (fc->flags & (STOPPED | READY)) == 0) {
		size_t used = cut(fc, p, len, &budget, now);
		p += used;
		len -= used;
	}
	if (unlikely(len > 0) && (fc->flags & (CLOSING | ABORTING)) == 0) {
		if (budget == 0)
			make_ready(fc);
		frame_buffer_keep(fc, p, len);
	}
}

static void tell_drained(struct frame_conn *fc, struct now now)
{
	if ((fc->flags & (EOF_SEEN | DRAINED | CLOSING | ABORTING)) != EOF_SEEN || pending(fc))
		return;
	fc->flags |= DRAINED;
	fc->frames->ops->drained(fc->session, now);
}

void frames_fin(struct frames *f, struct tcp_conn *conn, struct now now)
{
	struct frame_conn *fc = conn_of(f, conn);
	f->now = now;
	if ((fc->flags & (CLOSING | ABORTING)) != 0)
		return;
	fc->flags |= EOF_SEEN;
	f->ops->eof(fc->session, now);
	tell_drained(fc, now);
}

void frames_sendable(struct frames *f, struct tcp_conn *conn, struct now now)
{
	struct frame_conn *fc = conn_of(f, conn);
	f->now = now;
	fc->flags &= ~(unsigned int)OVER;
	make_ready(fc);
}

/* ---- what the service asks ---- */

static void arm(struct frame_conn *fc, uint64_t at_us)
{
	wheel_set(&fc->frames->wheel, &fc->timer, at_us / US_PER_MS + 1);
}

static void channel_op_send(struct channel *ch, const void *p, size_t len)
{
	struct frame_conn *fc = CONTAINER_OF(ch, struct frame_conn, channel);
	struct frames *f = fc->frames;
	if ((fc->flags & (CLOSING | ABORTING)) != 0 || !tcp_send(fc->conn, p, len))
		return;
	f->sends++;
	fc->sent_us = f->now.us;
	if (unlikely((fc->flags & OVER) == 0 && tcp_over_limit(fc->conn))) {
		fc->flags |= OVER;
		fc->over_us = f->now.us;
		arm(fc, fc->over_us + FRAME_SLOW_READER_US);
	}
}

static void channel_op_resume(struct channel *ch)
{
	struct frame_conn *fc = CONTAINER_OF(ch, struct frame_conn, channel);
	if ((fc->flags & IN_FRAME) != 0) /* the frame's own verdict, still to come, is settled already */
		fc->flags |= RESUMED;
	if ((fc->flags & HELD) == 0)
		return;
	fc->flags &= ~(unsigned int)HELD;
	make_ready(fc);
}

static void channel_op_close(struct channel *ch)
{
	end_with(CONTAINER_OF(ch, struct frame_conn, channel), CLOSING);
}

static void channel_op_abort(struct channel *ch)
{
	end_with(CONTAINER_OF(ch, struct frame_conn, channel), ABORTING);
}

static const struct channel_ops channel_ops = {
	.send = channel_op_send,
	.resume = channel_op_resume,
	.close = channel_op_close,
	.abort = channel_op_abort,
};

/* ---- begin and end ---- */

bool frames_established(struct frames *f, struct tcp_conn *conn, struct now now)
{
	struct frame_conn *fc = &f->conns[tcp_conn_index(conn)];
	const struct tcp_tuple *t = tcp_conn_tuple(conn);
	struct channel_peer peer = {t->remote_addr, t->local_addr, t->remote_port, t->local_port};
	CHECK(fc->conn == NULL);
	f->now = now;
	*fc = (struct frame_conn){.channel = {&channel_ops}, .frames = f, .conn = conn, .sent_us = now.us};
	f->open++;
	if (f->cfg.idle_timeout_us != 0)
		arm(fc, now.us + f->cfg.idle_timeout_us);
	fc->session = f->ops->opened(f->service, &fc->channel, &peer, now);
	if (fc->session != NULL)
		return true;
	if ((fc->flags & READY) != 0)
		TAILQ_REMOVE(&f->ready, fc, ready);
	wheel_remove(&fc->timer);
	fc->conn = NULL;
	f->open--;
	return false;
}

void frames_closed(struct frames *f, struct tcp_conn *conn, enum tcp_end how, struct now now)
{
	struct frame_conn *fc = &f->conns[tcp_conn_index(conn)];
	f->now = now;
	if (fc->conn == NULL) { /* never established: an active open that failed */
		if (f->ops->connect_failed != NULL)
			f->ops->connect_failed(f->service, now);
		return;
	}
	CHECK(fc->conn == conn);
	if ((fc->flags & READY) != 0)
		TAILQ_REMOVE(&f->ready, fc, ready);
	wheel_remove(&fc->timer);
	frame_buffer_drop(fc);
	fc->conn = NULL;
	f->open--;
	f->ops->closed(fc->session, now);
}

/* ---- the worker's turn ---- */

/* Lazy: most often the deadline has moved on, and the timer is only hung again. */
static void timer_fire(struct wheel_timer *timer, void *arg)
{
	struct frames *f = arg;
	struct frame_conn *fc = CONTAINER_OF(timer, struct frame_conn, timer);
	uint64_t next = TIME_NEVER, now_us = f->now.us;
	if ((fc->flags & (CLOSING | ABORTING)) != 0)
		return;
	if ((fc->flags & OVER) != 0) {
		next = fc->over_us + FRAME_SLOW_READER_US;
		if (next <= now_us) {
			f->stats->frame_slow_reader++;
			end_with(fc, ABORTING);
			return;
		}
	}
	if (f->cfg.idle_timeout_us != 0) {
		uint64_t data_us = tcp_conn_last_data(fc->conn);
		uint64_t idle = (data_us > fc->sent_us ? data_us : fc->sent_us) + f->cfg.idle_timeout_us;
		if (idle <= now_us) {
			f->stats->frame_idle++;
			end_with(fc, CLOSING);
			return;
		}
		next = idle < next ? idle : next;
	}
	if (next != TIME_NEVER)
		arm(fc, next);
}

/* Once each: an abort may still follow a close. */
static void finish(struct frame_conn *fc, struct now now)
{
	unsigned int end = (fc->flags & ABORTING) != 0 ? RST_ASKED : FIN_ASKED;
	if ((fc->flags & (end | RST_ASKED)) != 0)
		return;
	fc->flags |= end;
	frame_buffer_release(fc, fc->held);
	frame_buffer_drop(fc);
	wheel_remove(&fc->timer);
	if (end == RST_ASKED)
		tcp_abort(fc->conn);
	else
		tcp_close(fc->conn, now);
}

static void turn(struct frame_conn *fc, struct now now)
{
	unsigned int budget = FRAMES_PER_TURN;
	if ((fc->flags & STOPPED) == 0)
		cut_kept(fc, &budget, now);
	if ((fc->flags & (CLOSING | ABORTING)) != 0) {
		finish(fc, now);
		return;
	}
	if ((fc->flags & STOPPED) == 0) {
		if (budget == 0 && pending(fc)) {
			make_ready(fc);
			return;
		}
		frame_buffer_release(fc, fc->held);
	}
	tell_drained(fc, now);
}

unsigned int frames_poll(struct frames *f, unsigned int budget, struct now now)
{
	unsigned int n = 0;
	struct frame_conn *fc;
	f->now = now;
	wheel_advance(&f->wheel, now_ms(now), TIMERS_PER_POLL, timer_fire, f);
	for (; n < budget && (fc = TAILQ_FIRST(&f->ready)) != NULL; n++) {
		TAILQ_REMOVE(&f->ready, fc, ready);
		fc->flags &= ~(unsigned int)READY;
		turn(fc, now);
	}
	return n;
}

uint64_t frames_deadline(struct frames *f)
{
	if (!TAILQ_EMPTY(&f->ready))
		return 0;
	uint64_t tick = wheel_next(&f->wheel);
	return tick == UINT64_MAX ? TIME_NEVER : tick * US_PER_MS;
}

/* ---- the whole ---- */

size_t frames_memory_needed(const struct frames_config *cfg)
{
	return sizeof(struct frames) + cfg->max_connections * sizeof(struct frame_conn) + cfg->memory_bytes;
}

struct frames *frames_new(const struct frames_config *cfg, struct stats *stats, struct now now)
{
	struct frames *f = calloc(1, sizeof(*f) + cfg->max_connections * sizeof(struct frame_conn));
	if (f == NULL)
		return NULL;
	f->cfg = *cfg;
	f->stats = stats;
	f->now = now;
	TAILQ_INIT(&f->ready);
	wheel_init(&f->wheel, now_ms(now));
	return f;
}

void frames_free(struct frames *f)
{
	for (unsigned int i = 0; f != NULL && i < f->cfg.max_connections; i++)
		free(f->conns[i].buf);
	free(f);
}

void frames_set_service(struct frames *f, const struct service_ops *ops, void *service)
{
	f->ops = ops;
	f->service = service;
}

unsigned int frames_open(const struct frames *f)
{
	return f->open;
}

uint64_t frames_sends(const struct frames *f)
{
	return f->sends;
}

size_t frames_memory_used(const struct frames *f)
{
	return f->memory_used;
}

static void end_all(struct frames *f, unsigned int flag)
{
	for (unsigned int i = 0; i < f->cfg.max_connections; i++)
		if (f->conns[i].conn != NULL)
			end_with(&f->conns[i], flag);
}

void frames_close_all(struct frames *f)
{
	end_all(f, CLOSING);
}

void frames_abort_all(struct frames *f)
{
	end_all(f, ABORTING);
}
