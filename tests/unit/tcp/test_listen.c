/*
 * test_listen.c - how connections begin, are refused, and how few resources a stranger can hold.
 */
#include <criterion/criterion.h>

#include "peer.h"

#define ACK TCP_ACK
#define SYN_ACK (TCP_SYN | TCP_ACK)

static struct peer peer;
static const struct opt mss_only = {.has_mss = true, .mss = 1460};

static void syn_from(uint16_t port)
{
	peer.conn = NULL;
	peer.our_isn = 0;
	peer.tuple.remote_port = port;
	peer_in(&peer, TCP_SYN, 0, 0, 65535, "", 0, &mss_only);
}

Test(listen, syn_ack_answers_only_what_was_offered)
{
	peer_init(&peer, NULL);
	peer_in(&peer, TCP_SYN, 0, 0, 65535, "", 0, &mss_only);
	const struct peer_segment *s = peer_expect(&peer, SYN_ACK, 0, 1, 0);
	cr_expect(s->opt.has_mss && s->opt.mss == 1460);
	cr_expect(!s->opt.has_scale && !s->opt.has_timestamp && !s->opt.sack_permitted);
	cr_expect_eq(s->window, 32768);
	peer_fini(&peer);
}

Test(listen, all_options_are_agreed_on)
{
	struct tcp_config cfg = peer_default_config();
	cfg.receive_buffer_bytes = 1 << 20;
	peer_init(&peer, &cfg);
	struct opt opt = {.has_mss = true, .mss = 9000, .has_scale = true, .scale = 7, .has_timestamp = true, .tsval = 5, .sack_permitted = true};
	peer_in(&peer, TCP_SYN, 0, 0, 1000, "", 0, &opt);
	const struct peer_segment *s = peer_expect(&peer, SYN_ACK, 0, 1, 0);
	cr_expect(s->opt.has_scale && s->opt.has_timestamp && s->opt.sack_permitted);
	cr_expect_eq(s->opt.tsecr, 5);
	cr_expect_eq((size_t)s->window, 65535, "never scaled in a SYN");
	cr_expect_eq((size_t)65535 << s->opt.scale >= 1 << 20, true);
	peer.timestamps = true;
	peer.tsval = 6;
	peer_in(&peer, ACK, 1, 1, 100, "x", 1, NULL);
	cr_assert_eq(peer.established, 1);
	cr_expect_eq(peer.conn->snd_wnd, 100 << 7);
	cr_expect_eq(peer.conn->mss, 1460 - OPT_TIMESTAMP_BYTES, "clamped to our MTU");
	cr_expect_eq(peer.received_len, 1, "data on the handshake's last segment");
	peer_fini(&peer);
}

Test(listen, tiny_mss_is_not_believed)
{
	peer_init(&peer, NULL);
	struct opt opt = {.has_mss = true, .mss = 1};
	peer_in(&peer, TCP_SYN, 0, 0, 65535, "", 0, &opt);
	peer_expect(&peer, SYN_ACK, 0, 1, 0);
	cr_expect_eq(peer.conn->mss, TCP_MIN_MSS);
	peer_fini(&peer);
}

Test(listen, nobody_listens)
{
	peer_init(&peer, NULL);
	peer.tuple.local_port = 1;
	peer_in(&peer, TCP_SYN, 0, 0, 65535, "abc", 3, &mss_only);
	const struct peer_segment *s = peer_expect(&peer, TCP_RST | ACK, 0, 4, 0);
	cr_expect_eq(s->window, 0);
	cr_expect_eq(peer.stats.tcp_refused_port, 1);
	peer_in(&peer, ACK, 50, 7, 65535, "", 0, NULL);
	peer_expect(&peer, TCP_RST, 7, 0, 0);
	peer_in(&peer, TCP_RST | ACK, 50, 7, 65535, "", 0, NULL);
	peer_in(&peer, TCP_RST, 50, 7, 65535, "", 0, NULL);
	peer_expect_none(&peer);
	peer_fini(&peer);
}

Test(listen, stop_refuses_new_and_keeps_old)
{
	peer_init(&peer, NULL);
	peer.echo = true;
	peer_open(&peer);
	tcp_listen_stop(peer.tcp);
	peer_in(&peer, ACK | TCP_PSH, 1, 1, 65535, "hi", 2, NULL);
	peer_flush(&peer);
	peer_expect(&peer, TCP_PSH | ACK, 1, 3, 2);
	syn_from(40001);
	peer_expect(&peer, TCP_RST | ACK, 0, 1, 0);
	cr_expect_eq(peer.stats.tcp_refused_port, 1);
	peer_fini(&peer);
}

Test(listen, all_slots_in_use)
{
	peer_init(&peer, NULL);
	for (uint16_t port = 1; port <= 4; port++) {
		syn_from(port);
		peer_expect(&peer, SYN_ACK, 0, 1, 0);
		peer_in(&peer, ACK, 1, 1, 65535, "", 0, NULL);
	}
	cr_expect_eq(peer.established, 4);
	syn_from(5);
	peer_expect(&peer, TCP_RST | ACK, 0, 1, 0);
	cr_expect_eq(peer.stats.tcp_refused_full, 1);
	cr_expect_eq(peer.stats.tcp_connections_now, 4);
	struct tcp_tuple tuple = peer.tuple;
	cr_expect_null(tcp_connect(peer.tcp, &tuple, peer.now));
	peer_fini(&peer);
}

Test(listen, half_open_gives_way_and_ends_soon)
{
	struct tcp_config cfg = peer_default_config();
	cfg.max_connections = 64;
	peer_init(&peer, &cfg);
	for (uint16_t port = 1; port <= 20; port++) {
		syn_from(port);
		peer_expect(&peer, SYN_ACK, 0, 1, 0);
	}
	cr_expect_eq(peer.flows, 20);
	peer_flush(&peer);
	cr_expect_eq(peer.flows, 16, "a quarter of the slots");
	peer_in(&peer, ACK, 1, 1, 65535, "", 0, NULL);
	cr_expect_eq(peer.established, 1, "the youngest is still there");
	peer_wait(&peer, 16 * US_PER_S);
	cr_expect_eq(peer.flows, 1);
	cr_expect_eq(peer.tcp->in_use, 1);
	cr_expect_eq(peer.closeds, 0, "the user never saw the others");
	peer_fini(&peer);
}

Test(listen, syn_ack_is_sent_again_and_given_up)
{
	peer_init(&peer, NULL);
	peer_in(&peer, TCP_SYN, 0, 0, 65535, "", 0, &mss_only);
	peer_expect(&peer, SYN_ACK, 0, 1, 0);
	peer_wait(&peer, 150 * US_PER_MS);
	peer_in(&peer, TCP_SYN, 0, 0, 65535, "", 0, &mss_only); /* it did not get there */
	peer_expect(&peer, SYN_ACK, 0, 1, 0);
	peer_expect_none(&peer);
	peer_wait(&peer, 1 * US_PER_S);
	peer_expect(&peer, SYN_ACK, 0, 1, 0);
	peer_wait(&peer, 14 * US_PER_S);
	cr_expect_null(peer.conn);
	cr_expect_eq(peer.tcp->in_use, 0);
	cr_expect_eq(peer.established + peer.closeds, 0);
	peer_fini(&peer);
}

Test(listen, reset_of_a_half_open_connection)
{
	peer_init(&peer, NULL);
	peer_in(&peer, TCP_SYN, 0, 0, 65535, "", 0, &mss_only);
	peer_expect(&peer, SYN_ACK, 0, 1, 0);
	peer_in(&peer, TCP_RST, 1, 0, 0, "", 0, NULL);
	peer_flush(&peer);
	cr_expect_eq(peer.tcp->in_use, 0);
	cr_expect_eq(peer.closeds, 0);
	peer_expect_none(&peer);
	peer_fini(&peer);
}

Test(listen, wrong_ack_in_the_handshake)
{
	peer_init(&peer, NULL);
	peer_in(&peer, TCP_SYN, 0, 0, 65535, "", 0, &mss_only);
	peer_expect(&peer, SYN_ACK, 0, 1, 0);
	peer_in(&peer, ACK, 1, 5, 65535, "", 0, NULL);
	peer_expect(&peer, TCP_RST, 5, 0, 0);
	cr_expect_eq(peer.established, 0);
	peer_fini(&peer);
}

Test(listen, user_refuses)
{
	peer_init(&peer, NULL);
	peer.refuse = true;
	peer_in(&peer, TCP_SYN, 0, 0, 65535, "", 0, &mss_only);
	peer_expect(&peer, SYN_ACK, 0, 1, 0);
	peer_in(&peer, ACK, 1, 1, 65535, "abc", 3, NULL);
	peer_expect(&peer, TCP_RST | ACK, 1, 1, 0);
	cr_expect_eq(peer.closeds, 0);
	cr_expect_eq(peer.received_len, 0);
	peer_flush(&peer);
	cr_expect_eq(peer.tcp->in_use, 0);
	peer_fini(&peer);
}

Test(listen, syn_with_fin_is_dropped)
{
	peer_init(&peer, NULL);
	peer_in(&peer, TCP_SYN | TCP_FIN, 0, 0, 65535, "", 0, &mss_only);
	peer_expect_none(&peer);
	cr_expect_null(peer.conn);
	peer_fini(&peer);
}

Test(listen, active_open)
{
	peer_init(&peer, NULL);
	struct tcp_conn *conn = tcp_connect(peer.tcp, &peer.tuple, peer.now);
	cr_assert_eq(conn, peer.conn);
	cr_expect_null(tcp_connect(peer.tcp, &peer.tuple, peer.now), "the tuple is taken");
	cr_assert(tcp_send(conn, "early", 5));
	const struct peer_segment *s = peer_out(&peer);
	cr_assert_not_null(s);
	cr_expect_eq(s->flags, TCP_SYN);
	cr_expect(s->opt.has_mss && s->opt.has_scale && s->opt.has_timestamp && s->opt.sack_permitted);
	peer_flush(&peer);
	peer_expect_none(&peer);
	peer_in(&peer, SYN_ACK, 0, 77, 65535, "", 0, &mss_only); /* acknowledges what was not sent (RFC 9293, 3.10.7.3) */
	peer_expect(&peer, TCP_RST, 77, 0, 0);
	peer_in(&peer, SYN_ACK, 0, 1, 65535, "", 0, &mss_only);
	cr_expect_eq(peer.established, 1);
	peer_flush(&peer);
	peer_expect(&peer, TCP_PSH | ACK, 1, 1, 5);
	peer_expect_none(&peer);
	peer_fini(&peer);
}

Test(listen, active_open_refused_and_timed_out)
{
	peer_init(&peer, NULL);
	cr_assert_not_null(tcp_connect(peer.tcp, &peer.tuple, peer.now));
	peer_in(&peer, TCP_RST, 0, 0, 0, "", 0, NULL); /* without ACK it proves nothing */
	cr_expect_eq(peer.closeds, 0);
	peer_in(&peer, TCP_RST | ACK, 0, 1, 0, "", 0, NULL);
	cr_expect_eq(peer.closeds, 1);
	cr_expect_eq(peer.how, TCP_END_REFUSED);
	peer_flush(&peer);
	cr_assert_not_null(tcp_connect(peer.tcp, &peer.tuple, peer.now));
	peer_wait(&peer, 62 * US_PER_S);
	cr_expect_eq(peer.closeds, 1);
	peer_wait(&peer, 2 * US_PER_S);
	cr_expect_eq(peer.closeds, 2);
	cr_expect_eq(peer.how, TCP_END_TIMEOUT);
	cr_expect_eq(peer.outs, 2 + TCP_SYN_RETRIES);
	peer_fini(&peer);
}

/* RFC 9293, figure 8 */
Test(listen, simultaneous_open)
{
	peer_init(&peer, NULL);
	cr_assert_not_null(tcp_connect(peer.tcp, &peer.tuple, peer.now));
	peer_out(&peer);
	peer_in(&peer, TCP_SYN, 0, 0, 65535, "", 0, &mss_only);
	peer_expect(&peer, SYN_ACK, 0, 1, 0);
	cr_expect_eq(peer.conn->state, TCP_SYN_RCVD);
	peer_in(&peer, ACK, 1, 1, 65535, "", 0, NULL);
	cr_expect_eq(peer.established, 1);
	cr_expect_eq(peer.conn->state, TCP_ESTABLISHED);
	peer_fini(&peer);
}

Test(listen, table_of_listeners_is_bounded)
{
	peer_init(&peer, NULL);
	for (uint16_t port = 1; port < TCP_MAX_LISTENERS; port++)
		cr_expect(tcp_listen(peer.tcp, port));
	cr_expect(tcp_listen(peer.tcp, PEER_PORT), "already there");
	cr_expect(!tcp_listen(peer.tcp, 999));
	peer_fini(&peer);
}
