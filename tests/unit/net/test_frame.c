/*
 * test_frame.c - framing on a fake TCP: one connection, a service that records.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "dataplane/frame.h"
#include "tests/unit/net/fake_tcp.h"

#define MAX_FRAME 1000
#define SECONDS(n) ((uint64_t)(n) * US_PER_S)

static struct frames *frames;
static struct stats stats;
static struct tcp_conn conn;
static struct now now = {SECONDS(1000), 0};

/* what the service saw, and how it behaves */
static struct channel *channel;
static struct channel_peer seen_peer;
static const uint8_t *last_p; /* where the last frame lay */
static uint8_t seen[1 << 16];
static size_t seen_len;
static unsigned int seen_frames, seen_eof, seen_drained, seen_closed, seen_connect_failed;
static bool refuse, resume_inside, close_inside;
static enum service_verdict verdict;
static unsigned int verdict_from; /* frames answered SERVICE_NEXT before `verdict` counts */

static void *on_opened(void *service, struct channel *ch, const struct channel_peer *peer, struct now at)
{
	channel = ch;
	seen_peer = *peer;
	return refuse ? NULL : &channel;
}

static enum service_verdict on_frame(void *session, const uint8_t *p, size_t len, struct now at)
{
	cr_assert_eq(session, &channel);
	memcpy(seen + seen_len, p, len);
	seen_len += len;
	last_p = p;
	if (resume_inside)
		channel_resume(channel);
	if (close_inside)
		channel_close(channel);
	return seen_frames++ < verdict_from ? SERVICE_NEXT : verdict;
}

static void on_eof(void *session, struct now at)
{
	cr_assert_eq(seen_drained, 0);
	seen_eof++;
}

static void on_drained(void *session, struct now at)
{
	seen_drained++;
}

static void on_closed(void *session, struct now at)
{
	cr_assert_eq(session, &channel);
	seen_closed++;
}

static uint64_t on_tick(void *service, struct now at)
{
	return TIME_NEVER;
}

static void on_connect_failed(void *service, struct now at)
{
	seen_connect_failed++;
}

static bool on_stop(void *service, struct now at)
{
	return true;
}

static const struct service_ops ops = {
	.opened = on_opened, .frame = on_frame, .eof = on_eof, .drained = on_drained, .closed = on_closed,
	.tick = on_tick, .connect_failed = on_connect_failed, .stop = on_stop,
};

static void start_with(size_t memory, uint64_t idle_us)
{
	struct frames_config cfg = {.max_connections = 4, .max_frame_bytes = MAX_FRAME, .memory_bytes = memory, .idle_timeout_us = idle_us};
	frames = frames_new(&cfg, &stats, now);
	frames_set_service(frames, &ops, NULL);
	conn.index = 2;
	conn.tuple = (struct tcp_tuple){.local_addr = 1, .remote_addr = 2, .local_port = 3, .remote_port = 4};
	cr_assert_eq(frames_established(frames, &conn, now), !refuse);
}

static void start(void)
{
	start_with(1 << 20, 0);
}

static void stop(void)
{
	frames_free(frames);
}

TestSuite(frame, .init = start, .fini = stop);
TestSuite(frame_special, .fini = stop);

static void feed(const void *p, size_t len)
{
	frames_data(frames, &conn, p, len, now);
}

/* A frame of `len` bytes `c` at `out`; returns its whole size. */
static size_t put(uint8_t *out, uint32_t len, char c)
{
	out[0] = (uint8_t)(len >> 24);
	out[1] = (uint8_t)(len >> 16);
	out[2] = (uint8_t)(len >> 8);
	out[3] = (uint8_t)len;
	memset(out + 4, c, len);
	return 4 + len;
}

static void poll_once(void)
{
	frames_poll(frames, 16, now);
}

/* ---- cutting ---- */

Test(frame, whole_frame_is_delivered_in_place)
{
	uint8_t b[64];
	feed(b, put(b, 10, 'a'));
	cr_assert_eq(seen_frames, 1);
	cr_assert_eq(last_p, b + 4);
	cr_assert_eq(seen_len, 10);
	cr_assert_eq(frames_memory_used(frames), 0);
	cr_assert_eq(stats.frame_received, 1);
}

Test(frame, several_frames_and_a_tail_in_one_piece)
{
	uint8_t b[256];
	size_t n = put(b, 3, 'a');
	n += put(b + n, 1, 'b');
	n += put(b + n, 20, 'c');
	feed(b, n - 5);
	cr_assert_eq(seen_frames, 2);
	cr_assert_eq(memcmp(seen, "aaab", 4), 0);
	feed(b + n - 5, 5);
	cr_assert_eq(seen_frames, 3);
	cr_assert_eq(seen_len, 24);
	cr_assert_eq(frames_memory_used(frames), 0);
}

Test(frame, byte_by_byte)
{
	uint8_t b[256];
	size_t n = put(b, 7, 'x');
	n += put(b + n, 100, 'y');
	for (size_t i = 0; i < n; i++)
		feed(b + i, 1);
	cr_assert_eq(seen_frames, 2);
	cr_assert_eq(seen_len, 107);
	cr_assert_eq(seen[6], 'x');
	cr_assert_eq(seen[7], 'y');
	cr_assert_eq(conn.held_most, 0, "bytes of a frame that may go on must not close the window");
}

Test(frame, length_limits)
{
	static uint8_t b[MAX_FRAME + 8];
	feed(b, put(b, MAX_FRAME, 'm'));
	cr_assert_eq(seen_frames, 1);
	put(b, MAX_FRAME + 1, 'm');
	feed(b, 4);
	cr_assert_eq(stats.frame_too_large, 1);
	cr_assert_eq(conn.aborts, 0, "marked only; nothing ends inside a callback");
	poll_once();
	cr_assert_eq(conn.aborts, 1);
	feed(b, 4);
	cr_assert_eq(seen_frames, 1);
}

Test(frame, zero_length_aborts_after_the_frames_before_it)
{
	uint8_t b[64];
	size_t n = put(b, 2, 'a');
	n += put(b + n, 0, 'z');
	feed(b, n);
	poll_once();
	cr_assert_eq(seen_frames, 1);
	cr_assert_eq(stats.frame_bad_length, 1);
	cr_assert_eq(conn.aborts, 1);
}

Test(frame, negative_length_cut_in_two)
{
	uint8_t b[4] = {0xff, 0xff, 0xff, 0xff};
	feed(b, 3);
	cr_assert_eq(stats.frame_bad_length, 0);
	feed(b + 3, 1);
	poll_once();
	cr_assert_eq(stats.frame_bad_length, 1);
	cr_assert_eq(conn.aborts, 1);
	cr_assert_eq(frames_memory_used(frames), 0);
}

/* ---- memory ---- */

Test(frame, buffer_grows_with_what_arrived_not_with_what_is_claimed)
{
	uint8_t b[MAX_FRAME + 4];
	put(b, MAX_FRAME, 'q');
	feed(b, 14);
	cr_assert_leq(frames_memory_used(frames), 256);
	feed(b + 14, 386);
	cr_assert_leq(frames_memory_used(frames), 800);
	feed(b + 400, MAX_FRAME + 4 - 400);
	cr_assert_eq(seen_frames, 1);
	cr_assert_eq(seen_len, MAX_FRAME);
	cr_assert_eq(frames_memory_used(frames), 0);
}

Test(frame_special, memory_limit_aborts)
{
	uint8_t b[MAX_FRAME + 4];
	start_with(300, 0);
	put(b, MAX_FRAME, 'q');
	feed(b, 100);
	cr_assert_eq(stats.frame_no_memory, 0);
	feed(b + 100, 400);
	poll_once();
	cr_assert_eq(stats.frame_no_memory, 1);
	cr_assert_eq(conn.aborts, 1);
	cr_assert_eq(frames_memory_used(frames), 0);
}

/* ---- hold ---- */

Test(frame, hold_keeps_bytes_and_closes_the_window)
{
	uint8_t b[256];
	size_t n = put(b, 5, 'a');
	size_t first = n;
	n += put(b + n, 6, 'b');
	n += put(b + n, 7, 'c');
	verdict = SERVICE_HOLD;
	feed(b, n);
	cr_assert_eq(seen_frames, 1);
	cr_assert_eq(conn.held, n - first);
	poll_once();
	cr_assert_eq(seen_frames, 1, "a poll alone does not end a hold");
	channel_resume(channel);
	cr_assert_eq(seen_frames, 1, "resume only marks");
	cr_assert_eq(frames_deadline(frames), 0);
	poll_once();
	cr_assert_eq(seen_frames, 2, "the next frame holds again");
	cr_assert_eq(conn.held, 4 + 7);
	feed(b, 2);
	cr_assert_eq(conn.held, 4 + 7 + 2);
	verdict = SERVICE_NEXT;
	channel_resume(channel);
	poll_once();
	cr_assert_eq(seen_frames, 3);
	cr_assert_eq(conn.held, 0, "the partial frame behind is not held");
	feed(b + 2, first - 2);
	cr_assert_eq(seen_frames, 4);
	cr_assert_eq(memcmp(seen, "aaaaabbbbbbcccccccaaaaa", 23), 0);
}

Test(frame, resume_inside_the_frame_outweighs_its_hold)
{
	uint8_t b[64];
	size_t n = put(b, 5, 'a');
	n += put(b + n, 5, 'b');
	verdict = SERVICE_HOLD;
	resume_inside = true;
	feed(b, n);
	cr_assert_eq(seen_frames, 2);
	cr_assert_eq(conn.held, 0);
}

Test(frame, one_turn_is_bounded)
{
	uint8_t b[400 * 5];
	size_t n = 0;
	for (int i = 0; i < 400; i++)
		n += put(b + n, 1, (char)i);
	feed(b, n);
	cr_assert_eq(seen_frames, 256);
	poll_once();
	cr_assert_eq(seen_frames, 400);
	for (int i = 0; i < 400; i++)
		cr_assert_eq(seen[i], (uint8_t)i);
	cr_assert_eq(conn.held, 0);
}

/* ---- ends ---- */

Test(frame, eof_comes_at_once_and_drained_after_the_held_frames)
{
	uint8_t b[64];
	size_t n = put(b, 5, 'a');
	n += put(b + n, 5, 'b');
	verdict = SERVICE_HOLD;
	feed(b, n);
	frames_fin(frames, &conn, now);
	cr_assert_eq(seen_eof, 1);
	cr_assert_eq(seen_drained, 0);
	channel_resume(channel);
	poll_once();
	cr_assert_eq(seen_frames, 2);
	cr_assert_eq(seen_drained, 1, "no frame is left, even though the last one holds");
	channel_resume(channel);
	poll_once();
	cr_assert_eq(seen_drained, 1);
	cr_assert_eq(seen_eof, 1);
}

Test(frame, eof_behind_a_partial_frame)
{
	uint8_t b[64];
	put(b, 50, 'a');
	feed(b, 20);
	frames_fin(frames, &conn, now);
	cr_assert_eq(seen_eof, 1);
	cr_assert_eq(seen_drained, 1);
	cr_assert_eq(seen_frames, 0);
}

Test(frame, close_inside_a_frame_stops_delivery)
{
	uint8_t b[64];
	size_t n = put(b, 5, 'a');
	n += put(b + n, 5, 'b');
	close_inside = true;
	feed(b, n);
	cr_assert_eq(seen_frames, 1);
	cr_assert_eq(conn.closes, 0);
	poll_once();
	cr_assert_eq(conn.closes, 1);
	cr_assert_eq(conn.held, 0);
	channel_send(channel, "late", 4);
	cr_assert_eq(conn.sent_len, 0, "nothing is sent after the close");
	frames_fin(frames, &conn, now);
	cr_assert_eq(seen_eof, 0);
	channel_close(channel);
	poll_once();
	cr_assert_eq(conn.closes, 1);
	channel_abort(channel);
	poll_once();
	cr_assert_eq(conn.aborts, 1, "an abort may follow a close");
	channel_abort(channel);
	channel_close(channel);
	poll_once();
	cr_assert_eq(conn.aborts, 1);
	cr_assert_eq(conn.closes, 1);
}

Test(frame, abort_verdict)
{
	uint8_t b[64];
	verdict = SERVICE_ABORT;
	feed(b, put(b, 5, 'a'));
	poll_once();
	cr_assert_eq(conn.aborts, 1);
	frames_closed(frames, &conn, TCP_END_ABORTED, now);
	cr_assert_eq(seen_closed, 1);
	cr_assert_eq(frames_open(frames), 0);
}

Test(frame, peer_and_count)
{
	cr_assert_eq(seen_peer.addr, 2);
	cr_assert_eq(seen_peer.local_addr, 1);
	cr_assert_eq(seen_peer.port, 4);
	cr_assert_eq(seen_peer.local_port, 3);
	cr_assert_eq(frames_open(frames), 1);
	channel_resume(channel); /* leaves nothing in the list behind */
	channel_close(channel);
	frames_closed(frames, &conn, TCP_END_RESET, now);
	cr_assert_eq(seen_closed, 1);
	cr_assert_eq(frames_poll(frames, 16, now), 0);
	cr_assert_eq(conn.closes, 0);
}

Test(frame_special, refused_session)
{
	refuse = true;
	start();
	cr_assert_eq(frames_open(frames), 0);
	refuse = false;
	cr_assert(frames_established(frames, &conn, now), "its place can be used again");
}

Test(frame, failed_active_open)
{
	static struct tcp_conn other = {.index = 3};
	frames_closed(frames, &other, TCP_END_REFUSED, now);
	cr_assert_eq(seen_connect_failed, 1);
	cr_assert_eq(seen_closed, 0);
}

Test(frame, close_all_and_abort_all)
{
	frames_close_all(frames);
	poll_once();
	cr_assert_eq(conn.closes, 1);
	frames_abort_all(frames);
	poll_once();
	cr_assert_eq(conn.aborts, 1);
}

/* ---- peers that do not read, or say nothing ---- */

Test(frame, over_the_limit_no_request_is_read)
{
	uint8_t b[64];
	size_t n = put(b, 5, 'a');
	conn.over = true;
	channel_send(channel, "answer", 6);
	cr_assert_eq(conn.sent_len, 6);
	feed(b, n);
	cr_assert_eq(seen_frames, 0);
	cr_assert_eq(conn.held, n);
	conn.over = false;
	frames_sendable(frames, &conn, now);
	poll_once();
	cr_assert_eq(seen_frames, 1);
	cr_assert_eq(conn.held, 0);
	now.us += 2 * FRAME_SLOW_READER_US;
	poll_once();
	cr_assert_eq(stats.frame_slow_reader, 0);
}

Test(frame, slow_reader_is_given_up)
{
	conn.over = true;
	channel_send(channel, "answer", 6);
	now.us += FRAME_SLOW_READER_US - 2 * US_PER_MS;
	poll_once();
	cr_assert_eq(conn.aborts, 0);
	now.us += 5 * US_PER_MS;
	poll_once();
	cr_assert_eq(stats.frame_slow_reader, 1);
	cr_assert_eq(conn.aborts, 1);
}

Test(frame_special, idle_timeout_counts_from_the_last_byte_either_way)
{
	start_with(1 << 20, SECONDS(10));
	now.us += SECONDS(6);
	conn.last_data = now.us;
	now.us += SECONDS(6);
	poll_once();
	cr_assert_eq(conn.closes, 0);
	channel_send(channel, "x", 1);
	now.us += SECONDS(9);
	poll_once();
	cr_assert_eq(conn.closes, 0);
	cr_assert_leq(frames_deadline(frames), now.us + SECONDS(1) + 2 * US_PER_MS);
	now.us += SECONDS(1) + 2 * US_PER_MS;
	poll_once();
	poll_once();
	cr_assert_eq(conn.closes, 1);
	cr_assert_eq(stats.frame_idle, 1);
}

Test(frame, sends_are_counted_for_the_flush)
{
	uint64_t before = frames_sends(frames);
	channel_send(channel, "x", 1);
	cr_assert_eq(frames_sends(frames), before + 1);
	conn.broken = true;
	channel_send(channel, "x", 1);
	cr_assert_eq(frames_sends(frames), before + 1);
}
