/*
 * fuzz_frame.c - the input is a byte stream with orders in between: pieces of any length, holds and resumes, closes, a
 * peer that stops reading, FIN. Framing runs on the fake TCP; the service checks that it gets exactly the frames of the
 * stream, in order.
 *
 * Input: one byte steers (low 3 bits: what to do; high 5 bits: how), then its bytes.
 */
#include <stdlib.h>
#include <string.h>

#include "dataplane/frame.h"
#include "tests/unit/net/fake_tcp.h"

#define MAX_FRAME 300
#define MEMORY 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* All that one run knows; the service gets it as its session. */
struct run {
	struct frames *frames;
	struct tcp_conn conn;
	struct stats stats;
	struct now now;
	struct channel *channel;
	uint8_t *stream; /* what was fed, as the oracle reads it */
	size_t fed, delivered; /* bytes of it */
	bool held, eof, drained, gone, ending;
};

static void *on_opened(void *service, struct channel *ch, const struct channel_peer *peer, struct now now)
{
	((struct run *)service)->channel = ch;
	return service;
}

static enum service_verdict on_frame(void *session, const uint8_t *p, size_t len, struct now now)
{
	struct run *r = session;
	const uint8_t *want = r->stream + r->delivered;
	CHECK(!r->held && !r->drained && !r->gone && !r->ending && len >= 1 && len <= MAX_FRAME);
	CHECK(r->fed - r->delivered >= 4 + len);
	CHECK(want[0] == 0 && want[1] == 0 && (size_t)(want[2] << 8 | want[3]) == len && memcmp(want + 4, p, len) == 0);
	r->delivered += 4 + len;
	channel_send(r->channel, p, len);
	switch (p[0] % 8) {
	case 0:
		r->held = true;
		return SERVICE_HOLD;
	case 1:
		channel_resume(r->channel);
		return SERVICE_HOLD;
	case 2:
		r->ending = p[len - 1] == 'c';
		if (r->ending)
			channel_close(r->channel);
		return SERVICE_NEXT;
	case 3:
		r->ending = p[len - 1] == 'a';
		return r->ending ? SERVICE_ABORT : SERVICE_NEXT;
	default:
		return SERVICE_NEXT;
	}
}

static void on_eof(void *session, struct now now)
{
	struct run *r = session;
	CHECK(!r->eof && !r->drained);
	r->eof = true;
}

static void on_drained(void *session, struct now now)
{
	struct run *r = session;
	CHECK(r->eof && !r->drained);
	r->drained = true;
}

static void on_closed(void *session, struct now now)
{
	struct run *r = session;
	CHECK(!r->gone);
	r->gone = true;
}

static uint64_t on_tick(void *service, struct now now)
{
	return TIME_NEVER;
}

static bool on_stop(void *service, struct now now)
{
	return true;
}

static const struct service_ops ops = {
	.opened = on_opened, .frame = on_frame, .eof = on_eof, .drained = on_drained, .closed = on_closed, .tick = on_tick, .stop = on_stop,
};

static void feed(struct run *r, const uint8_t *p, size_t len)
{
	uint8_t *copy = malloc(len); /* its own allocation, so that a read beyond it is seen */
	CHECK(copy != NULL);
	memcpy(copy, p, len);
	memcpy(r->stream + r->fed, p, len);
	r->fed += len;
	frames_data(r->frames, &r->conn, copy, len, r->now);
	free(copy);
}

static size_t step(struct run *r, const uint8_t *p, size_t size)
{
	size_t len = (size_t)(p[0] >> 3) + 1;
	switch (p[0] & 7) {
	case 0:
		r->held = false;
		channel_resume(r->channel);
		return 1;
	case 1:
		frames_poll(r->frames, 1, r->now);
		return 1;
	case 2:
		r->now.us += len * US_PER_S;
		frames_poll(r->frames, 4, r->now);
		return 1;
	case 3:
		r->conn.over = !r->conn.over;
		if (!r->conn.over)
			frames_sendable(r->frames, &r->conn, r->now);
		return 1;
	case 4:
		len *= 16;
		break;
	default:
		break;
	}
	len = len < size - 1 ? len : size - 1;
	if (len > 0 && !r->eof)
		feed(r, p + 1, len);
	return 1 + len;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct frames_config cfg = {.max_connections = 1, .max_frame_bytes = MAX_FRAME, .memory_bytes = MEMORY, .idle_timeout_us = 60u * US_PER_S};
	struct run *r = calloc(1, sizeof(*r));
	CHECK(r != NULL);
	r->now.us = US_PER_S;
	r->stream = malloc(size + 1);
	r->frames = frames_new(&cfg, &r->stats, r->now);
	CHECK(r->stream != NULL && r->frames != NULL);
	frames_set_service(r->frames, &ops, r);
	CHECK(frames_established(r->frames, &r->conn, r->now));
	for (size_t at = 0; at < size && r->conn.aborts == 0;) {
		at += step(r, data + at, size - at);
		CHECK(frames_memory_used(r->frames) <= MEMORY && r->conn.held <= r->fed - r->delivered);
	}
	frames_fin(r->frames, &r->conn, r->now);
	for (int i = 0; i < 1000 && r->conn.aborts == 0; i++) { /* let everything out */
		r->held = false;
		r->conn.over = false;
		frames_sendable(r->frames, &r->conn, r->now);
		channel_resume(r->channel);
		frames_poll(r->frames, 4, r->now);
	}
	CHECK(r->drained || r->conn.aborts > 0 || r->conn.closes > 0);
	CHECK(r->conn.held == 0);
	frames_closed(r->frames, &r->conn, TCP_END_NORMAL, r->now);
	CHECK(r->gone && frames_memory_used(r->frames) == 0);
	frames_free(r->frames);
	free(r->stream);
	free(r);
	return 0;
}
