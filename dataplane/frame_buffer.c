/*
 * frame_buffer.c - the bytes of a connection that are not delivered yet.
 *
 *   buf   |  delivered  |  kept: a partial frame, or frames that were held back  |  free  |
 *         0             start                                                    end      cap
 *
 * Invariants:
 *  1. It grows with the bytes that have arrived, at most to double of them, never by a claimed length alone; all
 *     buffers together stay below memory_bytes, and a connection that would need more is aborted.
 *  2. `held` is what was reported with tcp_hold and not released: bytes that arrived while delivery was stopped, so the
 *     window bounds them. Bytes of a partial frame that may go on are not held, or a frame longer than the window could
 *     never complete.
 */
#include <stdlib.h>

#include "dataplane/frame_priv.h"

#define BUFFER_MIN 256u

void frame_buffer_drop(struct frame_conn *fc)
{
	fc->frames->memory_used -= fc->cap;
	free(fc->buf);
	fc->buf = NULL;
	fc->cap = fc->start = fc->end = 0;
}

/*
 * Capacity for `need` bytes: double, so that growing stays cheap, but not beyond the frame that is being put together.
 */
static size_t buffer_size(const struct frame_conn *fc, size_t need)
{
	size_t cap = need * 2 < BUFFER_MIN ? BUFFER_MIN : need * 2;
	if (kept(fc) < LENGTH_BYTES)
		return cap;
	size_t frame = LENGTH_BYTES + (size_t)(uint32_t)frame_length_at(fc->buf + fc->start);
	return frame >= need && frame < cap ? frame : cap;
}

static bool buffer_room(struct frame_conn *fc, size_t more)
{
	struct frames *f = fc->frames;
	size_t have = kept(fc), need = have + more;
	if (fc->cap - fc->end >= more)
		return true;
	if (fc->start > 0) {
		memmove(fc->buf, fc->buf + fc->start, have);
		fc->start = 0;
		fc->end = have;
		if (need <= fc->cap)
			return true;
	}
	size_t cap = buffer_size(fc, need);
	if (f->memory_used - fc->cap + cap > f->cfg.memory_bytes)
		return false;
	uint8_t *buf = realloc(fc->buf, cap);
	if (buf == NULL)
		return false;
	f->memory_used += cap - fc->cap;
	fc->buf = buf;
	fc->cap = cap;
	return true;
}

void frame_buffer_keep(struct frame_conn *fc, const uint8_t *p, size_t len)
{
	if (!buffer_room(fc, len)) {
		fc->frames->stats->frame_no_memory++;
		end_with(fc, ABORTING);
		return;
	}
	memcpy(fc->buf + fc->end, p, len);
	fc->end += len;
	if ((fc->flags & (STOPPED | READY)) != 0) {
		fc->held += len;
		tcp_hold(fc->conn, len);
	}
}

void frame_buffer_release(struct frame_conn *fc, size_t n)
{
	n = n < fc->held ? n : fc->held;
	if (n == 0)
		return;
	fc->held -= n;
	tcp_release(fc->conn, n);
}

void frame_buffer_advance(struct frame_conn *fc, size_t n)
{
	fc->start += n;
	frame_buffer_release(fc, n);
	if (kept(fc) == 0 && fc->cap > 0)
		frame_buffer_drop(fc);
}
