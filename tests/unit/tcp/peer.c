/*
 * peer.c - one stack and a hand-made peer, see peer.h.
 */
#include "peer.h"
#include "segment.h"

#include <criterion/criterion.h>

static uint8_t tx_room[65536];

static uint8_t *on_tx_get(void *ctx, const struct tcp_tuple *tuple, size_t len)
{
	struct peer *peer = ctx;
	return peer->tx_full ? NULL : tx_room;
}

static void on_tx_send(void *ctx, const struct tcp_tuple *tuple, uint8_t *p, size_t len)
{
	struct peer *peer = ctx;
	CHECK(peer->outs < PEER_MAX_OUT);
	struct peer_segment *s = &peer->out[peer->outs++];
	size_t header_len = (p[12] >> 4) * 4u;
	CHECK(len >= header_len && len - header_len <= sizeof(s->data));
	s->flags = p[13];
	if ((s->flags & TCP_SYN) && !(s->flags & TCP_RST))
		peer->our_isn = wire_get32(p + 4);
	s->seq = wire_get32(p + 4) - peer->our_isn;
	s->ack = wire_get32(p + 8) - PEER_ISN;
	s->window = wire_get16(p + 14);
	s->len = (uint32_t)(len - header_len);
	memcpy(s->data, p + header_len, s->len);
	s->bad_option = !opt_parse(&s->opt, p + TCP_HEADER_BYTES, header_len - TCP_HEADER_BYTES);
}

static bool on_flow_add(void *ctx, struct tcp_conn *conn)
{
	struct peer *peer = ctx;
	if (peer->conn != NULL && memcmp(tcp_conn_tuple(peer->conn), tcp_conn_tuple(conn), sizeof(struct tcp_tuple)) == 0)
		return false;
	peer->conn = conn;
	peer->flows++;
	return true;
}

static void on_flow_remove(void *ctx, struct tcp_conn *conn)
{
	struct peer *peer = ctx;
	CHECK(peer->flows > 0);
	peer->flows--;
	if (peer->conn == conn)
		peer->conn = NULL;
}

static bool on_established(void *ctx, struct tcp_conn *conn, struct now now)
{
	struct peer *peer = ctx;
	peer->established++;
	return !peer->refuse;
}

static void on_data(void *ctx, struct tcp_conn *conn, const uint8_t *p, size_t len, struct now now)
{
	struct peer *peer = ctx;
	CHECK(peer->received_len + len <= sizeof(peer->received));
	memcpy(peer->received + peer->received_len, p, len);
	peer->received_len += len;
	if (peer->hold)
		tcp_hold(conn, len);
	if (peer->echo)
		cr_assert(tcp_send(conn, p, len));
	if (peer->abort_on_data)
		tcp_abort(conn);
}

static void on_fin(void *ctx, struct tcp_conn *conn, struct now now)
{
	struct peer *peer = ctx;
	peer->fins++;
	if (peer->close_on_fin)
		tcp_close(conn, now);
}

static void on_sendable(void *ctx, struct tcp_conn *conn, struct now now)
{
	struct peer *peer = ctx;
	peer->sendables++;
}

static void on_closed(void *ctx, struct tcp_conn *conn, enum tcp_end how, struct now now)
{
	struct peer *peer = ctx;
	peer->closeds++;
	peer->how = how;
}

static const struct tcp_ops ops = {
	.tx_get = on_tx_get,
	.tx_send = on_tx_send,
	.flow_add = on_flow_add,
	.flow_remove = on_flow_remove,
	.established = on_established,
	.data = on_data,
	.fin = on_fin,
	.sendable = on_sendable,
	.closed = on_closed,
};

struct tcp_config peer_default_config(void)
{
	return (struct tcp_config){
		.max_connections = 4,
		.mtu = 1500,
		.receive_buffer_bytes = 32 * 1024,
		.send_buffer_bytes = 64 * 1024,
		.buffer_memory_bytes = 4 * 1024 * 1024,
		.rto_min_us = 50 * US_PER_MS,
		.rto_max_us = 60 * US_PER_S,
		.delayed_ack_us = 20 * US_PER_MS,
		.keepalive_us = 0,
		.time_wait_us = 30 * US_PER_S,
		.secret = {1, 2},
	};
}

void peer_init(struct peer *peer, const struct tcp_config *cfg)
{
	struct tcp_config def = peer_default_config();
	*peer = (struct peer){
		.now = {.us = 100 * US_PER_S},
		.tuple = {.local_addr = 0x0a000002, .remote_addr = 0x0a000001, .local_port = PEER_PORT, .remote_port = 40000},
		.tsval = 1000,
	};
	peer->tcp = tcp_new(cfg != NULL ? cfg : &def, &ops, peer, &peer->stats, peer->now);
	cr_assert_not_null(peer->tcp);
	cr_assert(tcp_listen(peer->tcp, PEER_PORT));
}

void peer_fini(struct peer *peer)
{
	tcp_free(peer->tcp);
}

void peer_raw(struct peer *peer, const uint8_t *segment, size_t len)
{
	segment_input(peer->tcp, peer->conn, &peer->tuple, segment, len, peer->now);
}

static size_t put_options(struct peer *peer, uint8_t *p, uint8_t flags, const struct opt *opt)
{
	size_t n = 0;
	if (opt != NULL && opt->has_mss)
		return opt_write_syn(p, opt);
	if (peer->timestamps) {
		uint32_t echo = peer->outs > 0 ? peer->out[peer->outs - 1].opt.tsval : 0;
		n += opt_write_timestamp(p, peer->tsval, echo);
	}
	if (opt != NULL)
		n += opt_write_sack(p + n, opt->sack, opt->sacks);
	return n;
}

void peer_in(struct peer *peer, uint8_t flags, uint32_t at, uint32_t ack, uint32_t window, const void *data, size_t len, const struct opt *opt)
{
	uint8_t p[TCP_HEADER_BYTES + OPT_MAX_BYTES + 65536];
	struct segment_head head = {at + PEER_ISN, flags & TCP_ACK ? ack + peer->our_isn : 0, (uint16_t)window, flags,
				    put_options(peer, p + TCP_HEADER_BYTES, flags, opt)};
	memcpy(segment_put_head(p, &peer->tuple, &head) + head.options, data, len);
	peer_raw(peer, p, TCP_HEADER_BYTES + head.options + len);
}

void peer_flush(struct peer *peer)
{
	tcp_flush(peer->tcp, peer->now);
}

void peer_wait(struct peer *peer, uint64_t us)
{
	for (uint64_t end = peer->now.us + us; peer->now.us < end;) {
		peer->now.us += US_PER_MS;
		tcp_timers(peer->tcp, 100, peer->now);
		tcp_flush(peer->tcp, peer->now);
	}
}

const struct peer_segment *peer_out(struct peer *peer)
{
	if (peer->taken == peer->outs) {
		peer->taken = peer->outs = 0;
		return NULL;
	}
	return &peer->out[peer->taken++];
}

const struct peer_segment *peer_expect(struct peer *peer, uint8_t flags, uint32_t seq, uint32_t ack, uint32_t len)
{
	const struct peer_segment *s = peer_out(peer);
	cr_assert_not_null(s, "no segment; expected flags %02x seq %u ack %u len %u", flags, seq, ack, len);
	cr_assert(s->flags == flags && s->seq == seq && (s->ack == ack || !(flags & TCP_ACK)) && s->len == len && !s->bad_option,
		  "flags %02x seq %u ack %u len %u; expected flags %02x seq %u ack %u len %u", s->flags, s->seq, s->ack, s->len, flags, seq,
		  ack, len);
	return s;
}

void peer_expect_none(struct peer *peer)
{
	const struct peer_segment *s = peer_out(peer);
	if (s != NULL)
		cr_assert(false, "unexpected segment: flags %02x seq %u ack %u len %u", s->flags, s->seq, s->ack, s->len);
}

static void open_with(struct peer *peer, const struct opt *opt)
{
	peer_in(peer, TCP_SYN, 0, 0, 65535, "", 0, opt);
	peer_expect(peer, TCP_SYN | TCP_ACK, 0, 1, 0);
	peer->timestamps = opt->has_timestamp;
	peer_in(peer, TCP_ACK, 1, 1, 65535, "", 0, NULL);
	cr_assert_eq(peer->established, 1);
	peer_flush(peer);
	peer_expect_none(peer);
}

void peer_open(struct peer *peer)
{
	struct opt opt = {.has_mss = true, .mss = 1460};
	open_with(peer, &opt);
}

void peer_open_options(struct peer *peer)
{
	struct opt opt = {
		.has_mss = true, .mss = 1460, .has_scale = true, .has_timestamp = true, .tsval = peer->tsval, .sack_permitted = true,
	};
	open_with(peer, &opt);
}
