/*
 * fake_tcp.h - TCP without TCP: the functions of dataplane/tcp/tcp.h that framing calls, recording what they were
 * asked.
 *
 * Definitions, not only declarations: exactly one file of a program includes it (the frame test, the frame fuzz
 * target). Like the real one, it calls nobody back from inside a call.
 */
#ifndef TESTS_FAKE_TCP_H
#define TESTS_FAKE_TCP_H

#include "dataplane/tcp/tcp.h"
#include "muster/check.h"

#define FAKE_SENT_MAX (1u << 16)

struct tcp_conn {
	unsigned int index;
	struct tcp_tuple tuple;
	uint64_t last_data;
	size_t held;	    /* tcp_hold minus tcp_release */
	size_t held_most;
	unsigned int closes, aborts;
	bool over;	    /* what tcp_over_limit answers */
	bool broken;	    /* tcp_send refuses */
	size_t sent_len;
	uint8_t sent[FAKE_SENT_MAX];
};

bool tcp_send(struct tcp_conn *conn, const void *p, size_t len)
{
	if (conn->broken)
		return false;
	for (size_t i = 0; i < len && conn->sent_len < FAKE_SENT_MAX; i++)
		conn->sent[conn->sent_len++] = ((const uint8_t *)p)[i];
	return true;
}

bool tcp_over_limit(const struct tcp_conn *conn)
{
	return conn->over;
}

void tcp_hold(struct tcp_conn *conn, size_t n)
{
	conn->held += n;
	if (conn->held > conn->held_most)
		conn->held_most = conn->held;
}

void tcp_release(struct tcp_conn *conn, size_t n)
{
	CHECK(n <= conn->held);
	conn->held -= n;
}

void tcp_close(struct tcp_conn *conn, struct now now)
{
	conn->closes++;
}

void tcp_abort(struct tcp_conn *conn)
{
	conn->aborts++;
}

const struct tcp_tuple *tcp_conn_tuple(const struct tcp_conn *conn)
{
	return &conn->tuple;
}

unsigned int tcp_conn_index(const struct tcp_conn *conn)
{
	return conn->index;
}

uint64_t tcp_conn_last_data(const struct tcp_conn *conn)
{
	return conn->last_data;
}

#endif
