/*
 * stream.c - see stream.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "muster/check.h"

#include "coordinator/log/stream.h"

void stream_init(struct stream *s, struct disk *disk)
{
	*s = (struct stream){.disk = disk};
}

void stream_fini(struct stream *s)
{
	CHECK(!stream_busy(s));
	free(s->buf);
	s->buf = NULL;
}

static void stream_submit(struct stream *s, enum stream_state state, enum disk_verb verb)
{
	s->state = state;
	s->op.verb = verb;
	s->op.file = s->file;
	disk_submit(s->disk, &s->op);
}

void stream_open(struct stream *s, const char *name, uint64_t salt, uint64_t at, uint64_t limit)
{
	CHECK(s->state == STREAM_IDLE);
	s->salt = salt;
	s->at = s->buf_at = at;
	s->limit = limit;
	s->len = 0;
	s->error = 0;
	s->opened = false;
	s->op = (struct disk_op){.background = true};
	snprintf(s->op.name, sizeof(s->op.name), "%s", name);
	stream_submit(s, STREAM_OPENING, DISK_OPEN);
}

static bool stream_grow(struct stream *s, size_t need)
{
	void *p;
	if (need <= s->cap)
		return true;
	need = (need + STREAM_SLICE - 1) / STREAM_SLICE * STREAM_SLICE;
	if (posix_memalign(&p, FORMAT_ALIGN, need) != 0)
		return false;
	free(s->buf);
	s->buf = p;
	s->cap = need;
	s->len = 0;
	return true;
}

/* Reads on from the next block; a longer one than the buffer holds makes it longer. */
static enum stream_got stream_read(struct stream *s, size_t need)
{
	if (!stream_grow(s, need < STREAM_SLICE ? STREAM_SLICE : need)) {
		s->error = ENOMEM;
		return STREAM_FAILED;
	}
	s->buf_at = s->op.offset = s->at;
	s->op.len = s->limit - s->at < s->cap ? (size_t)(s->limit - s->at) : s->cap;
	s->op.buf = s->buf;
	s->len = 0;
	stream_submit(s, STREAM_READING, DISK_READ);
	return STREAM_WAIT;
}

static enum stream_got stream_bad(struct stream *s)
{
	s->error = EBADMSG;
	return STREAM_FAILED;
}

/* Length that the next block claims to have; 0: its head is not good. */
static size_t stream_claim(const struct stream *s, const uint8_t *p)
{
	struct reader r = reader_of(p, BLOCK_HEAD);
	uint32_t magic = reader_u32(&r);
	reader_u32(&r);
	uint64_t salt = reader_u64(&r);
	reader_take(&r, 20);
	uint32_t len = reader_u32(&r);
	return magic != BLOCK_MAGIC || salt != s->salt || len > s->limit - s->at ? 0 : block_bytes(len);
}

static enum stream_got stream_take(struct stream *s, struct bytes *payload, uint64_t *at)
{
	for (;;) {
		struct block b;
		if (s->at >= s->limit)
			return STREAM_END;
		size_t skip = (size_t)(s->at - s->buf_at), left = s->len - skip;
		bool fresh = skip == 0 && left > 0; /* read for this very block */
		if (left < FORMAT_ALIGN)
			return fresh ? stream_bad(s) : stream_read(s, 0);
		size_t claim = stream_claim(s, s->buf + skip);
		if (claim == 0 || claim > s->limit - s->at)
			return stream_bad(s);
		if (claim > left)
			return fresh && s->cap >= claim ? stream_bad(s) : stream_read(s, claim);
		if (!block_open(&b, s->buf + skip, left) || b.salt != s->salt)
			return stream_bad(s);
		*at = s->at;
		*payload = bytes_of(s->buf + skip + BLOCK_HEAD, b.length);
		s->at += block_bytes(b.length);
		if (b.type == BLOCK_END)
			return STREAM_END;
		if (b.type == BLOCK_BATCHES)
			return STREAM_BLOCK;
	}
}

enum stream_got stream_next(struct stream *s, struct bytes *payload, uint64_t *at)
{
	CHECK(s->state != STREAM_IDLE && s->state != STREAM_CLOSING);
	if (s->op.pending)
		return STREAM_WAIT;
	if (s->error != 0)
		return STREAM_FAILED;
	if (s->state != STREAM_HOLDING && s->op.result < 0) {
		s->error = (int)-s->op.result;
		return s->state == STREAM_OPENING && s->error == ENOENT ? STREAM_GONE : STREAM_FAILED;
	}
	if (s->state == STREAM_OPENING) {
		s->file = s->op.file;
		s->opened = true;
	}
	if (s->state == STREAM_READING) {
		s->len = (size_t)s->op.result;
		if (s->len == 0)
			return stream_bad(s);
	}
	s->state = STREAM_HOLDING;
	return stream_take(s, payload, at);
}

void stream_close(struct stream *s)
{
	CHECK(!s->op.pending && s->state != STREAM_IDLE && s->state != STREAM_CLOSING);
	s->state = STREAM_IDLE;
	if (s->opened)
		stream_submit(s, STREAM_CLOSING, DISK_CLOSE);
}

bool stream_busy(struct stream *s)
{
	if (s->state == STREAM_CLOSING && !s->op.pending)
		s->state = STREAM_IDLE;
	return s->state != STREAM_IDLE;
}
