/*
 * test_in.c - single segments against one stack: what goes up, what comes out, what is counted. Each test names its rule.
 */
#include <criterion/criterion.h>

#include "peer.h"

#define ACK TCP_ACK
#define PSH_ACK (TCP_PSH | TCP_ACK)
#define FIN_ACK (TCP_FIN | TCP_ACK)

static struct peer peer;

static void expect_received(const char *bytes)
{
	cr_assert_eq(peer.received_len, strlen(bytes), "%zu bytes", peer.received_len);
	cr_assert_eq(memcmp(peer.received, bytes, strlen(bytes)), 0);
}

Test(in, request_and_reply_share_one_segment)
{
	peer_init(&peer, NULL);
	peer.echo = true;
	peer_open_options(&peer);
	peer_in(&peer, PSH_ACK, 1, 1, 65535, "hello", 5, NULL);
	peer_expect_none(&peer); /* tcp_input only marks */
	peer_flush(&peer);
	const struct peer_segment *s = peer_expect(&peer, PSH_ACK, 1, 6, 5);
	cr_expect_eq(memcmp(s->data, "hello", 5), 0);
	cr_expect(s->opt.has_timestamp);
	cr_expect_eq(s->opt.tsecr, peer.tsval);
	peer_wait(&peer, 40 * US_PER_MS);
	peer_expect_none(&peer);
	cr_expect_eq(peer.stats.tcp_predicted, 1);
	peer_in(&peer, PSH_ACK, 6, 6, 65535, "again", 5, NULL);
	cr_expect_eq(peer.stats.tcp_predicted, 2);
	expect_received("helloagain");
	peer_fini(&peer);
}

Test(in, ack_is_delayed_and_every_second_full_segment_is_not)
{
	static uint8_t full[1460];
	peer_init(&peer, NULL);
	peer_open(&peer);
	peer_in(&peer, ACK, 1, 1, 65535, full, 1460, NULL);
	peer_wait(&peer, 18 * US_PER_MS);
	peer_expect_none(&peer);
	peer_wait(&peer, 3 * US_PER_MS);
	peer_expect(&peer, ACK, 1, 1461, 0);
	peer_in(&peer, ACK, 1461, 1, 65535, full, 1460, NULL);
	peer_flush(&peer);
	peer_expect_none(&peer);
	peer_in(&peer, ACK, 2921, 1, 65535, full, 1460, NULL);
	peer_flush(&peer);
	peer_expect(&peer, ACK, 1, 4381, 0);
	peer_fini(&peer);
}

Test(in, out_of_order_is_kept_and_reported)
{
	peer_init(&peer, NULL);
	peer_open_options(&peer);
	peer_in(&peer, ACK, 4, 1, 65535, "def", 3, NULL);
	const struct peer_segment *s = peer_expect(&peer, ACK, 1, 1, 0); /* at once, before the flush */
	cr_expect_eq(s->opt.sacks, 1);
	cr_expect_eq(s->opt.sack[0].start, PEER_ISN + 4);
	cr_expect_eq(s->opt.sack[0].end, PEER_ISN + 7);
	peer_in(&peer, ACK, 10, 1, 65535, "jkl", 3, NULL);
	s = peer_expect(&peer, ACK, 1, 1, 0);
	cr_expect_eq(s->opt.sacks, 2);
	cr_expect_eq(s->opt.sack[0].start, PEER_ISN + 10); /* the latest first (RFC 2018, 4) */
	cr_expect_eq(s->opt.sack[1].start, PEER_ISN + 4);
	cr_expect_eq(peer.stats.tcp_out_of_order, 2);
	peer_in(&peer, ACK, 1, 1, 65535, "abc", 3, NULL);
	expect_received("abcdef");
	peer_flush(&peer);
	s = peer_expect(&peer, ACK, 1, 7, 0); /* a filled gap is acknowledged at once (RFC 5681, 4.2) */
	cr_expect_eq(s->opt.sacks, 1);
	peer_in(&peer, ACK, 5, 1, 65535, "efghi", 5, NULL); /* overlaps both sides */
	expect_received("abcdefghijkl");
	cr_expect_eq(pool_used(&peer.tcp->pool), 0);
	peer_fini(&peer);
}

Test(in, fin_ahead_of_data_waits_for_it)
{
	peer_init(&peer, NULL);
	peer_open(&peer);
	peer_in(&peer, FIN_ACK, 4, 1, 65535, "def", 3, NULL);
	peer_expect(&peer, ACK, 1, 1, 0);
	cr_expect_eq(peer.fins, 0);
	peer_in(&peer, ACK, 1, 1, 65535, "abc", 3, NULL);
	expect_received("abcdef");
	cr_expect_eq(peer.fins, 1);
	peer_flush(&peer);
	peer_expect(&peer, ACK, 1, 8, 0);
	cr_expect_eq(peer.conn->state, TCP_CLOSE_WAIT);
	cr_expect_eq(peer.closeds, 0);
	peer_fini(&peer);
}

Test(in, half_close_still_sends)
{
	peer_init(&peer, NULL);
	peer_open(&peer);
	peer_in(&peer, FIN_ACK, 1, 1, 65535, "", 0, NULL);
	peer_flush(&peer);
	peer_expect(&peer, ACK, 1, 2, 0);
	cr_assert(tcp_send(peer.conn, "answer", 6));
	peer_flush(&peer);
	peer_expect(&peer, PSH_ACK, 1, 2, 6);
	tcp_close(peer.conn, peer.now);
	cr_expect(!tcp_send(peer.conn, "late", 4));
	peer_flush(&peer);
	peer_expect(&peer, FIN_ACK, 7, 2, 0);
	cr_expect_eq(peer.conn->state, TCP_LAST_ACK);
	peer_in(&peer, ACK, 2, 8, 65535, "", 0, NULL);
	cr_expect_eq(peer.closeds, 1);
	cr_expect_eq(peer.how, TCP_END_NORMAL);
	cr_expect_null(peer.conn);
	peer_flush(&peer);
	peer_expect_none(&peer);
	cr_expect_eq(peer.stats.tcp_connections_now, 0);
	peer_fini(&peer);
}

Test(in, we_close_first_and_wait)
{
	peer_init(&peer, NULL);
	peer_open(&peer);
	cr_assert(tcp_send(peer.conn, "bye", 3));
	tcp_close(peer.conn, peer.now);
	cr_expect_eq(peer.closeds, 0);
	peer_flush(&peer);
	peer_expect(&peer, FIN_ACK | TCP_PSH, 1, 1, 3); /* data and FIN in one segment */
	peer_in(&peer, ACK, 1, 5, 65535, "", 0, NULL);
	cr_expect_eq(peer.conn->state, TCP_FIN_WAIT_2);
	peer_in(&peer, ACK, 1, 5, 65535, "more", 4, NULL); /* receiving goes on */
	expect_received("more");
	peer_in(&peer, FIN_ACK, 5, 5, 65535, "", 0, NULL);
	cr_expect_eq(peer.conn->state, TCP_TIME_WAIT);
	cr_expect_eq(peer.fins, 1);
	cr_expect_eq(peer.closeds, 1);
	peer_flush(&peer);
	peer_expect(&peer, ACK, 5, 6, 0);
	peer_wait(&peer, 10 * US_PER_S);
	peer_in(&peer, FIN_ACK, 5, 5, 65535, "", 0, NULL); /* our ACK was lost: answered, and the time starts anew */
	peer_flush(&peer);
	peer_expect(&peer, ACK, 5, 6, 0);
	peer_wait(&peer, 29 * US_PER_S);
	cr_expect_not_null(peer.conn);
	peer_wait(&peer, 2 * US_PER_S);
	cr_expect_null(peer.conn);
	cr_expect_eq(peer.closeds, 1);
	peer_fini(&peer);
}

Test(in, simultaneous_close)
{
	peer_init(&peer, NULL);
	peer_open(&peer);
	tcp_close(peer.conn, peer.now);
	peer_flush(&peer);
	peer_expect(&peer, FIN_ACK, 1, 1, 0);
	peer_in(&peer, FIN_ACK, 1, 1, 65535, "", 0, NULL);
	cr_expect_eq(peer.conn->state, TCP_CLOSING);
	peer_flush(&peer);
	peer_expect(&peer, ACK, 2, 2, 0);
	cr_expect_eq(peer.closeds, 0);
	peer_in(&peer, ACK, 2, 2, 65535, "", 0, NULL);
	cr_expect_eq(peer.conn->state, TCP_TIME_WAIT);
	cr_expect_eq(peer.closeds, 1);
	peer_fini(&peer);
}

Test(in, time_wait_gives_way_to_a_newer_syn)
{
	peer_init(&peer, NULL);
	peer_open(&peer);
	tcp_close(peer.conn, peer.now);
	peer_flush(&peer);
	peer_expect(&peer, FIN_ACK, 1, 1, 0);
	peer_in(&peer, FIN_ACK, 1, 2, 65535, "", 0, NULL);
	peer_flush(&peer);
	peer_expect(&peer, ACK, 2, 2, 0);
	cr_assert_eq(peer.conn->state, TCP_TIME_WAIT);
	uint32_t old_isn = peer.our_isn;
	struct opt opt = {.has_mss = true, .mss = 1460};
	peer_in(&peer, TCP_SYN, 1, 0, 65535, "", 0, &opt); /* not newer */
	cr_expect_eq(peer.conn->state, TCP_TIME_WAIT);
	peer_flush(&peer);
	peer_expect(&peer, ACK, 2, 2, 0);
	peer_in(&peer, TCP_SYN, 1000, 0, 65535, "", 0, &opt);
	peer_expect(&peer, TCP_SYN | ACK, 0, 1001, 0);
	cr_expect_gt((int32_t)(peer.our_isn - old_isn), 65535);
	peer_in(&peer, ACK, 1001, 1, 65535, "", 0, NULL);
	cr_expect_eq(peer.established, 2);
	peer_flush(&peer);
	cr_expect_eq(peer.tcp->in_use, 1);
	peer_fini(&peer);
}

/* RFC 5961, 3.2 */
Test(in, reset_needs_the_exact_number)
{
	peer_init(&peer, NULL);
	peer_open(&peer);
	peer_in(&peer, TCP_RST, 100, 0, 0, "", 0, NULL);
	cr_expect_eq(peer.closeds, 0);
	peer_flush(&peer);
	peer_expect(&peer, ACK, 1, 1, 0);
	peer_in(&peer, TCP_RST, 101, 0, 0, "", 0, NULL); /* the challenge is rate-limited */
	peer_flush(&peer);
	peer_expect_none(&peer);
	peer_in(&peer, TCP_RST, 40000, 0, 0, "", 0, NULL);
	peer_in(&peer, TCP_RST, 0, 0, 0, "", 0, NULL);
	peer_flush(&peer);
	peer_expect_none(&peer);
	cr_expect_eq(peer.stats.tcp_challenge_acks, 1);
	peer_in(&peer, TCP_RST, 1, 0, 0, "", 0, NULL);
	cr_expect_eq(peer.closeds, 1);
	cr_expect_eq(peer.how, TCP_END_RESET);
	peer_flush(&peer);
	peer_expect_none(&peer);
	peer_fini(&peer);
}

/* RFC 5961, 4.2 and 5.2 */
Test(in, blind_syn_and_blind_ack_are_challenged)
{
	peer_init(&peer, NULL);
	peer_open(&peer);
	peer_in(&peer, TCP_SYN, 500, 0, 1000, "", 0, NULL);
	peer_flush(&peer);
	peer_expect(&peer, ACK, 1, 1, 0);
	peer_wait(&peer, 200 * US_PER_MS);
	peer_in(&peer, ACK, 1, 5000, 1000, "evil", 4, NULL);
	peer_flush(&peer);
	peer_expect(&peer, ACK, 1, 1, 0);
	cr_expect_eq(peer.received_len, 0);
	cr_expect_eq(peer.stats.tcp_challenge_acks, 2);
	peer_fini(&peer);
}

/* RFC 7323, 5.3 */
Test(in, paws_drops_what_is_old)
{
	peer_init(&peer, NULL);
	peer_open_options(&peer);
	peer.tsval = 2000;
	peer_in(&peer, ACK, 1, 1, 65535, "a", 1, NULL);
	peer.tsval = 1999;
	peer_in(&peer, ACK, 2, 1, 65535, "b", 1, NULL);
	expect_received("a");
	cr_expect_eq(peer.stats.tcp_paws, 1);
	peer.tsval = 2001;
	peer_in(&peer, ACK, 2, 1, 65535, "c", 1, NULL);
	expect_received("ac");
	peer.timestamps = false; /* agreed on, so it must be there */
	peer_in(&peer, ACK, 3, 1, 65535, "d", 1, NULL);
	expect_received("ac");
	cr_expect_eq(peer.stats.tcp_paws, 2);
	peer_fini(&peer);
}

Test(in, window_closes_and_opens)
{
	static uint8_t full[1024];
	peer_init(&peer, NULL);
	peer.hold = true;
	peer_open(&peer);
	for (uint32_t i = 0; i < 32; i++)
		peer_in(&peer, ACK, 1 + i * 1024, 1, 65535, full, 1024, NULL);
	peer_flush(&peer);
	const struct peer_segment *s = peer_expect(&peer, ACK, 1, 32769, 0);
	cr_expect_eq(s->window, 0);
	peer_in(&peer, ACK, 32769, 1, 65535, full, 1, NULL); /* a probe: not taken, answered */
	cr_expect_eq(peer.received_len, 32768);
	peer_flush(&peer);
	s = peer_expect(&peer, ACK, 1, 32769, 0);
	cr_expect_eq(s->window, 0);
	tcp_release(peer.conn, 1000); /* too little to mention */
	peer_flush(&peer);
	peer_expect_none(&peer);
	tcp_release(peer.conn, 2000);
	peer_flush(&peer);
	s = peer_expect(&peer, ACK, 1, 32769, 0);
	cr_expect_eq(s->window, 3000);
	peer_fini(&peer);
}

Test(in, urgent_and_odd_flags_are_harmless)
{
	peer_init(&peer, NULL);
	peer_open(&peer);
	peer_in(&peer, ACK | TCP_URG, 1, 1, 65535, "abc", 3, NULL);
	expect_received("abc");
	peer_in(&peer, 0, 4, 1, 65535, "def", 3, NULL); /* no ACK: dropped (RFC 9293, 3.10.7.4) */
	expect_received("abc");
	peer_in(&peer, 0xff & ~TCP_RST, 4, 1, 65535, "def", 3, NULL);
	cr_expect_eq(peer.closeds, 0);
	peer_fini(&peer);
}

Test(in, user_aborts_from_inside_the_upcall)
{
	peer_init(&peer, NULL);
	peer.abort_on_data = true;
	peer_open(&peer);
	peer_in(&peer, ACK, 4, 1, 65535, "def", 3, NULL);
	peer_expect(&peer, ACK, 1, 1, 0);
	peer_in(&peer, ACK, 1, 1, 65535, "abc", 3, NULL);
	expect_received("abc");
	cr_expect_eq(peer.closeds, 0); /* never from inside a call that the user makes */
	peer_flush(&peer);
	cr_expect_eq(peer.closeds, 1);
	cr_expect_eq(peer.how, TCP_END_ABORTED);
	peer_expect(&peer, TCP_RST | ACK, 1, 4, 0);
	cr_expect_eq(pool_used(&peer.tcp->pool), 0);
	peer_fini(&peer);
}

Test(in, malformed_segments_are_counted_and_dropped)
{
	peer_init(&peer, NULL);
	peer_open(&peer);
	uint8_t p[60] = {0};
	for (size_t len = 0; len < 20; len++)
		peer_raw(&peer, p, len);
	cr_expect_eq(peer.stats.tcp_bad_header, 20);
	p[12] = 4 << 4; /* header shorter than a header */
	peer_raw(&peer, p, 60);
	p[12] = 15 << 4; /* header longer than the segment */
	peer_raw(&peer, p, 59);
	cr_expect_eq(peer.stats.tcp_bad_header, 22);
	peer_expect_none(&peer);
	cr_expect_eq(peer.closeds, 0);
	peer_fini(&peer);
}

Test(in, closed_connection_in_one_burst)
{
	/* The owner looked both segments up before the first one ended the connection. */
	peer_init(&peer, NULL);
	peer_open(&peer);
	struct tcp_conn *conn = peer.conn;
	peer_in(&peer, TCP_RST, 1, 0, 0, "", 0, NULL);
	cr_assert_null(peer.conn);
	peer.conn = conn;
	peer_in(&peer, ACK, 1, 1, 65535, "abc", 3, NULL);
	peer_expect(&peer, TCP_RST, 1, 0, 0);
	cr_expect_eq(peer.received_len, 0);
	cr_expect_eq(peer.closeds, 1);
	peer.conn = NULL;
	peer_flush(&peer);
	cr_expect_eq(peer.tcp->in_use, 0);
	peer_fini(&peer);
}
