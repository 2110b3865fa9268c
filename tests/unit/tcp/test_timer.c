/*
 * test_timer.c - what happens when nothing comes: exact times of retransmissions, probes and ends.
 */
#include <criterion/criterion.h>

#include "peer.h"

#define ACK TCP_ACK
#define PSH_ACK (TCP_PSH | TCP_ACK)

static struct peer peer;
static uint8_t full[14600];

/* Milliseconds until the next segment comes out, and that segment. */
static unsigned int ms_until(const struct peer_segment **s, unsigned int max)
{
	for (unsigned int ms = 0; ms <= max; ms++) {
		*s = peer_out(&peer);
		if (*s != NULL)
			return ms;
		peer_wait(&peer, US_PER_MS);
	}
	cr_assert(false, "nothing for %u ms", max);
	return 0;
}

Test(timer, retransmission_backs_off_and_gives_up)
{
	const struct peer_segment *s;
	peer_init(&peer, NULL);
	peer_open(&peer);
	cr_assert(tcp_send(peer.conn, "lost", 4));
	peer_flush(&peer);
	peer_expect(&peer, PSH_ACK, 1, 1, 4);
	/* The handshake took no time at all: the time-out is the floor. */
	unsigned int expected = 50;
	for (int i = 0; i < 10; i++) {
		unsigned int ms = ms_until(&s, 70000);
		cr_expect_eq(s->seq, 1);
		cr_expect_eq(s->len, 4);
		cr_expect(ms >= expected && ms <= expected + 2, "retransmission %d after %u ms, not %u", i, ms, expected);
		expected *= 2;
	}
	cr_expect_eq(peer.stats.tcp_rto, 10);
	peer_wait(&peer, 200 * US_PER_S);
	cr_expect_eq(peer.closeds, 1);
	cr_expect_eq(peer.how, TCP_END_TIMEOUT);
	cr_expect_eq(peer.stats.tcp_timed_out, 1);
	cr_expect_eq(peer.stats.tcp_retransmits, TCP_RETRIES);
	cr_expect_eq(tcp_deadline(peer.tcp), TIME_NEVER);
	peer_fini(&peer);
}

Test(timer, acknowledgement_stops_the_timer)
{
	peer_init(&peer, NULL);
	peer_open(&peer);
	cr_assert(tcp_send(peer.conn, "fine", 4));
	peer_flush(&peer);
	peer_expect(&peer, PSH_ACK, 1, 1, 4);
	peer_wait(&peer, 30 * US_PER_MS);
	peer_in(&peer, ACK, 1, 5, 65535, "", 0, NULL);
	peer_wait(&peer, 1000 * US_PER_MS);
	peer_expect_none(&peer);
	cr_expect_eq(peer.stats.tcp_rto, 0);
	cr_expect_eq(pool_used(&peer.tcp->pool), 0, "an idle connection holds no block");
	peer_fini(&peer);
}

Test(timer, answered_data_ends_no_sleep)
{
	struct tcp_config cfg = peer_default_config();
	cfg.keepalive_us = 60 * US_PER_S;
	peer_init(&peer, &cfg);
	peer_open(&peer);
	cr_assert(tcp_send(peer.conn, "fine", 4));
	peer_flush(&peer);
	peer_expect(&peer, PSH_ACK, 1, 1, 4);
	cr_expect_leq(tcp_deadline(peer.tcp), peer.now.us + 60 * US_PER_MS, "until then a retransmission may be due");
	peer_in(&peer, ACK, 1, 5, 65535, "", 0, NULL);
	/* the next slot of the wheel that holds a keepalive 60 s away begins some seconds earlier */
	cr_expect_gt(tcp_deadline(peer.tcp), peer.now.us + 50 * US_PER_S, "only the keepalive is left");
	cr_expect_leq(tcp_deadline(peer.tcp), peer.now.us + 60 * US_PER_S);
	peer_wait(&peer, 59 * US_PER_S);
	cr_expect_eq(peer.stats.tcp_keepalives, 0);
	peer_wait(&peer, 2 * US_PER_S);
	cr_expect_eq(peer.stats.tcp_keepalives, 1);
	peer_fini(&peer);
}

/* RFC 5681, 3.2, and RFC 6582, 3.2: without SACK */
Test(timer, three_duplicates_retransmit_before_the_time_out)
{
	peer_init(&peer, NULL);
	peer_open(&peer);
	cr_assert(tcp_send(peer.conn, full, 14600));
	peer_flush(&peer);
	for (uint32_t i = 0; i < 10; i++)
		peer_expect(&peer, i < 9 ? ACK : PSH_ACK, 1 + 1460 * i, 1, 1460);
	for (int i = 0; i < 2; i++)
		peer_in(&peer, ACK, 1, 1, 65535, "", 0, NULL);
	peer_flush(&peer);
	peer_expect_none(&peer);
	peer_in(&peer, ACK, 1, 1, 65535, "", 0, NULL);
	peer_flush(&peer);
	peer_expect(&peer, ACK, 1, 1, 1460);
	peer_expect_none(&peer);
	cr_expect_eq(peer.stats.tcp_fast_retransmits, 1);
	peer_in(&peer, ACK, 1, 1 + 2 * 1460, 65535, "", 0, NULL); /* partial: the third segment is missing as well */
	peer_flush(&peer);
	peer_expect(&peer, ACK, 1 + 2 * 1460, 1, 1460);
	peer_in(&peer, ACK, 1, 14601, 65535, "", 0, NULL);
	peer_wait(&peer, 300 * US_PER_MS);
	peer_expect_none(&peer);
	cr_expect_eq(peer.stats.tcp_rto, 0);
	cr_expect_eq(peer.conn->cc.cwnd, 7300, "half of what was in flight");
	peer_fini(&peer);
}

/* RFC 6675: only the holes */
Test(timer, sack_retransmits_the_holes)
{
	peer_init(&peer, NULL);
	peer_open_options(&peer);
	cr_assert(tcp_send(peer.conn, full, 14480));
	peer_flush(&peer);
	for (uint32_t i = 0; i < 10; i++)
		peer_expect(&peer, i < 9 ? ACK : PSH_ACK, 1 + 1448 * i, 1, 1448);
	/* the segments 0 and 3 are missing */
	uint32_t base = peer.our_isn + 1;
	struct opt opt = {.sacks = 2, .sack = {{base + 4 * 1448, base + 10 * 1448}, {base + 1448, base + 3 * 1448}}};
	peer_in(&peer, ACK, 1, 1, 65535, "", 0, &opt);
	peer_flush(&peer);
	peer_expect(&peer, ACK, 1, 1, 1448);
	peer_expect(&peer, ACK, 1 + 3 * 1448, 1, 1448);
	peer_expect_none(&peer);
	cr_expect_eq(peer.stats.tcp_fast_retransmits, 1);
	/* a lie: beyond what was sent, and below what is acknowledged */
	opt = (struct opt){.sacks = 2, .sack = {{base + 20 * 1448, base + 21 * 1448}, {base - 100, base - 50}}};
	peer_in(&peer, ACK, 1, 1, 65535, "", 0, &opt);
	cr_expect_eq(peer.conn->sack.bytes, 8 * 1448);
	peer_in(&peer, ACK, 1, 14481, 65535, "", 0, NULL);
	cr_expect_eq(pool_used(&peer.tcp->pool), 0);
	cr_expect_eq(tcp_loss_pipe(peer.conn), 0);
	peer_fini(&peer);
}

/* RFC 9293, 3.8.6.1 */
Test(timer, zero_window_is_probed)
{
	const struct peer_segment *s;
	peer_init(&peer, NULL);
	peer_open(&peer);
	peer_in(&peer, ACK, 1, 1, 0, "", 0, NULL);
	cr_assert(tcp_send(peer.conn, "wait", 4));
	peer_flush(&peer);
	peer_expect_none(&peer);
	unsigned int expected = 50;
	for (int i = 0; i < 20; i++) {
		unsigned int ms = ms_until(&s, 70000);
		cr_expect_eq(s->len, 0);
		cr_expect_eq(s->seq, 0, "a number that is acknowledged already");
		cr_expect(ms >= expected && ms <= expected + 2, "probe %d after %u ms, not %u", i, ms, expected);
		expected = expected * 2 > 60000 ? 60000 : expected * 2;
		peer_in(&peer, ACK, 1, 1, 0, "", 0, NULL);
	}
	cr_expect_eq(peer.closeds, 0, "a peer that answers may keep its window closed");
	cr_expect_eq(peer.stats.tcp_zero_window_probes, 20);
	peer_in(&peer, ACK, 1, 1, 100, "", 0, NULL);
	peer_flush(&peer);
	peer_expect(&peer, PSH_ACK, 1, 1, 4);
	peer_in(&peer, ACK, 1, 5, 100, "", 0, NULL);
	cr_assert(tcp_send(peer.conn, "now", 3));
	peer_flush(&peer);
	peer_expect(&peer, PSH_ACK, 5, 1, 3);
	peer_fini(&peer);
}

Test(timer, silent_peer_with_a_closed_window_is_given_up)
{
	peer_init(&peer, NULL);
	peer_open(&peer);
	peer_in(&peer, ACK, 1, 1, 0, "", 0, NULL);
	cr_assert(tcp_send(peer.conn, "wait", 4));
	peer_wait(&peer, 300 * US_PER_S);
	cr_expect_eq(peer.closeds, 1);
	cr_expect_eq(peer.how, TCP_END_TIMEOUT);
	peer_fini(&peer);
}

/* RFC 9293, 3.8.6.2.1 */
Test(timer, no_silly_segments_into_a_small_window)
{
	peer_init(&peer, NULL);
	peer_open(&peer);
	peer_in(&peer, ACK, 1, 1, 10, "", 0, NULL);
	cr_assert(tcp_send(peer.conn, full, 5000));
	peer_flush(&peer);
	peer_expect_none(&peer);
	peer_in(&peer, ACK, 1, 1, 1460, "", 0, NULL);
	peer_flush(&peer);
	peer_expect(&peer, ACK, 1, 1, 1460);
	peer_expect_none(&peer);
	peer_in(&peer, ACK, 1, 1461, 10, "", 0, NULL);
	peer_flush(&peer);
	peer_expect_none(&peer);
	peer_wait(&peer, 60 * US_PER_MS); /* but rather than wait for ever, it sends what fits */
	peer_expect(&peer, ACK, 1461, 1, 10);
	peer_fini(&peer);
}

Test(timer, keepalive)
{
	const struct peer_segment *s;
	struct tcp_config cfg = peer_default_config();
	cfg.keepalive_us = 60 * US_PER_S;
	peer_init(&peer, &cfg);
	peer_open(&peer);
	peer_wait(&peer, 30 * US_PER_S);
	peer_in(&peer, ACK, 1, 1, 65535, "x", 1, NULL);
	peer_flush(&peer);
	peer_wait(&peer, 30 * US_PER_MS);
	peer_expect(&peer, ACK, 1, 2, 0);
	unsigned int ms = ms_until(&s, 70000);
	cr_expect(ms >= 59900 && ms <= 60001, "%u", ms);
	cr_expect_eq(s->seq, 0);
	cr_expect_eq(s->len, 0);
	peer_in(&peer, ACK, 2, 1, 65535, "", 0, NULL); /* still there */
	ms = ms_until(&s, 70000);
	cr_expect(ms >= 59990 && ms <= 60001, "%u", ms);
	for (int i = 1; i < TCP_KEEPALIVE_PROBES; i++) {
		ms = ms_until(&s, 20000);
		cr_expect(ms >= 9999 && ms <= 10001, "%u", ms);
	}
	cr_expect_eq(peer.closeds, 0);
	peer_wait(&peer, 10 * US_PER_S + US_PER_MS);
	cr_expect_eq(peer.closeds, 1);
	cr_expect_eq(peer.how, TCP_END_TIMEOUT);
	cr_expect_eq(peer.stats.tcp_keepalives, 1 + TCP_KEEPALIVE_PROBES);
	peer_fini(&peer);
}

Test(timer, gap_in_our_own_time_ends_nothing)
{
	struct tcp_config cfg = peer_default_config();
	cfg.keepalive_us = 60 * US_PER_S;
	peer_init(&peer, &cfg);
	peer_open(&peer);
	cr_assert(tcp_send(peer.conn, "fine", 4));
	peer_flush(&peer);
	peer_expect(&peer, PSH_ACK, 1, 1, 4);
	peer.now.us += 1000 * US_PER_S; /* the machine was suspended */
	peer_wait(&peer, US_PER_MS);
	cr_expect_eq(peer.closeds, 0);
	peer_expect(&peer, PSH_ACK, 1, 1, 4);
	peer_in(&peer, ACK, 1, 5, 65535, "", 0, NULL);
	peer.now.us += 1000 * US_PER_S;
	peer_wait(&peer, US_PER_MS);
	cr_expect_eq(peer.closeds, 0);
	peer_expect(&peer, ACK, 4, 1, 0);
	peer_expect_none(&peer);
	peer_fini(&peer);
}

Test(timer, orphan_is_given_up)
{
	peer_init(&peer, NULL);
	peer_open(&peer);
	tcp_close(peer.conn, peer.now);
	peer_flush(&peer);
	peer_in(&peer, ACK, 1, 2, 65535, "", 0, NULL);
	cr_assert_eq(peer.conn->state, TCP_FIN_WAIT_2);
	peer_wait(&peer, TCP_ORPHAN_US - US_PER_S);
	peer_in(&peer, ACK, 1, 2, 65535, "progress", 8, NULL);
	peer_wait(&peer, TCP_ORPHAN_US - US_PER_S);
	cr_expect_eq(peer.closeds, 0);
	peer_wait(&peer, 2 * US_PER_S);
	cr_expect_eq(peer.closeds, 1);
	cr_expect_eq(peer.how, TCP_END_TIMEOUT);
	peer_fini(&peer);
}

Test(timer, tx_room_comes_back)
{
	peer_init(&peer, NULL);
	peer_open(&peer);
	cr_assert(tcp_send(peer.conn, "later", 5));
	peer.tx_full = true;
	peer_flush(&peer);
	cr_expect_eq(tcp_deadline(peer.tcp), 0, "wants the next flush at once");
	peer.tx_full = false;
	peer_flush(&peer);
	peer_expect(&peer, PSH_ACK, 1, 1, 5);
	cr_expect_eq(peer.stats.tcp_rto, 0);
	peer_fini(&peer);
}
