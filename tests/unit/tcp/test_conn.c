/*
 * test_conn.c - states, limits and memory of connections.
 */
#include <criterion/criterion.h>

#include "peer.h"

#define ACK TCP_ACK

static struct peer peer;
static uint8_t bytes[100000];

/* RFC 9293, figure 5 */
Test(conn, legal_transitions)
{
	static const enum tcp_state legal[][2] = {
		{TCP_CLOSED, TCP_SYN_SENT}, {TCP_CLOSED, TCP_SYN_RCVD}, {TCP_SYN_SENT, TCP_SYN_RCVD}, {TCP_SYN_SENT, TCP_ESTABLISHED},
		{TCP_SYN_RCVD, TCP_ESTABLISHED}, {TCP_ESTABLISHED, TCP_FIN_WAIT_1}, {TCP_ESTABLISHED, TCP_CLOSE_WAIT},
		{TCP_FIN_WAIT_1, TCP_FIN_WAIT_2}, {TCP_FIN_WAIT_1, TCP_CLOSING}, {TCP_FIN_WAIT_1, TCP_TIME_WAIT},
		{TCP_FIN_WAIT_2, TCP_TIME_WAIT}, {TCP_CLOSE_WAIT, TCP_LAST_ACK}, {TCP_CLOSING, TCP_TIME_WAIT},
	};
	for (int from = 0; from < TCP_STATES; from++) {
		for (int to = 0; to < TCP_STATES; to++) {
			bool expected = to == TCP_CLOSED && from != TCP_CLOSED;
			for (size_t i = 0; i < sizeof(legal) / sizeof(legal[0]); i++)
				expected |= legal[i][0] == (enum tcp_state)from && legal[i][1] == (enum tcp_state)to;
			cr_expect_eq(tcp_state_may_follow(from, to), expected, "%d to %d", from, to);
		}
	}
}

Test(conn, over_limit_and_sendable)
{
	peer_init(&peer, NULL);
	peer_open(&peer);
	cr_assert(tcp_send(peer.conn, bytes, 64 * 1024));
	cr_expect(!tcp_over_limit(peer.conn));
	cr_assert(tcp_send(peer.conn, bytes, 1));
	cr_expect(tcp_over_limit(peer.conn), "the limit refuses nothing, it only says stop");
	peer_flush(&peer);
	uint32_t acked = 1;
	while (peer.sendables == 0) {
		const struct peer_segment *s = peer_out(&peer);
		if (s == NULL) {
			peer_in(&peer, ACK, 1, acked, 65535, "", 0, NULL);
			peer_flush(&peer);
			continue;
		}
		acked = s->seq + s->len;
		cr_assert_lt(acked, 65537);
	}
	cr_expect_lt(peer.conn->sendq.len, 32 * 1024);
	cr_expect_gt(peer.conn->sendq.len, 0);
	peer_fini(&peer);
}

Test(conn, no_memory_ends_the_connection_in_the_next_flush)
{
	struct tcp_config cfg = peer_default_config();
	cfg.buffer_memory_bytes = 1;
	peer_init(&peer, &cfg);
	peer_open(&peer);
	cr_assert(tcp_send(peer.conn, bytes, 100000));
	cr_expect(!tcp_send(peer.conn, bytes, 100000));
	cr_expect_eq(peer.closeds, 0);
	cr_expect(!tcp_send(peer.conn, bytes, 1), "it is being aborted");
	peer_flush(&peer);
	cr_expect_eq(peer.closeds, 1);
	cr_expect_eq(peer.how, TCP_END_NO_MEMORY);
	cr_expect_eq(peer.stats.tcp_no_memory, 1);
	cr_expect_eq(pool_used(&peer.tcp->pool), 0);
	peer_fini(&peer);
}

Test(conn, out_of_order_bytes_of_all_are_bounded)
{
	struct tcp_config cfg = peer_default_config();
	cfg.buffer_memory_bytes = 1; /* 64 blocks, of which 16 for out-of-order bytes */
	peer_init(&peer, &cfg);
	peer_open(&peer);
	for (uint32_t i = 0; i < 30; i++)
		peer_in(&peer, ACK, 100 + 10 * i, 1, 65535, "x", 1, NULL);
	cr_expect_eq(pool_used(&peer.tcp->pool), 16);
	cr_expect_eq(peer.stats.tcp_out_of_order, 16);
	cr_expect_eq(peer.stats.tcp_out_of_order_dropped, 14);
	cr_expect(tcp_send(peer.conn, bytes, 48 * 2000));
	peer_fini(&peer);
}

Test(conn, index_and_user)
{
	peer_init(&peer, NULL);
	peer_open(&peer);
	cr_expect_null(tcp_conn_user(peer.conn));
	tcp_conn_set_user(peer.conn, &peer);
	cr_expect_eq(tcp_conn_user(peer.conn), &peer);
	unsigned int index = tcp_conn_index(peer.conn);
	cr_expect_lt(index, 4);
	cr_expect_eq(tcp_conn_at(peer.tcp, index), peer.conn);
	cr_expect_eq(tcp_conn_tuple(peer.conn)->remote_port, 40000);
	peer.now.us += 5000;
	peer_in(&peer, ACK, 1, 1, 65535, "x", 1, NULL);
	cr_expect_eq(tcp_conn_last_data(peer.conn), peer.now.us);
	peer_fini(&peer);
}

Test(conn, slots_are_kept_spare_for_new_connections)
{
	/* Connections in TIME_WAIT give way: many short connections never find the table full. */
	peer_init(&peer, NULL);
	peer.close_on_fin = true;
	for (uint16_t port = 1; port <= 50; port++) {
		struct opt opt = {.has_mss = true, .mss = 1460};
		peer.tuple.remote_port = port;
		peer_in(&peer, TCP_SYN, 0, 0, 65535, "", 0, &opt);
		cr_assert_not_null(peer.conn, "connection %u", port);
		peer_in(&peer, ACK, 1, 1, 65535, "", 0, NULL);
		tcp_close(peer.conn, peer.now);
		peer_flush(&peer);
		peer_in(&peer, ACK | TCP_FIN, 1, 2, 65535, "", 0, NULL);
		cr_assert_eq(peer.conn->state, TCP_TIME_WAIT);
		while (peer_out(&peer) != NULL)
			;
		peer.conn = NULL;
		peer_flush(&peer);
	}
	cr_expect_eq(peer.flows, 3);
	cr_expect_eq(peer.stats.tcp_refused_full, 0);
	cr_expect_eq(peer.closeds, 50);
	peer_fini(&peer);
}

Test(conn, reply_of_five_megabytes)
{
	struct tcp_config cfg = peer_default_config();
	cfg.buffer_memory_bytes = 8 << 20;
	peer_init(&peer, &cfg);
	peer_open(&peer);
	for (int i = 0; i < 50; i++)
		cr_assert(tcp_send(peer.conn, bytes, sizeof(bytes)));
	tcp_close(peer.conn, peer.now);
	uint32_t at = 1;
	peer_flush(&peer);
	for (int round = 0; round < 2000 && at < 5000001; round++) {
		for (const struct peer_segment *s; (s = peer_out(&peer)) != NULL;) {
			cr_assert_eq(s->seq, at);
			at += s->len;
		}
		peer.now.us += 100;
		peer_in(&peer, ACK, 1, at, 65535, "", 0, NULL);
		peer_flush(&peer);
	}
	cr_expect_eq(at, 5000001);
	cr_expect_eq(peer.stats.tcp_retransmits, 0);
	cr_expect_eq(peer.stats.tcp_rto, 0);
	peer_fini(&peer);
}
