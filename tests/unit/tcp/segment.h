/*
 * segment.h - segments made by hand, as the remote end of a tuple would send them.
 */
#ifndef MUSTER_TESTS_TCP_SEGMENT_H
#define MUSTER_TESTS_TCP_SEGMENT_H

#include <stdlib.h>

#include "dataplane/tcp/tcp_priv.h"

struct segment_head {
	uint32_t seq, ack;
	uint16_t window;
	uint8_t flags;
	size_t options; /* bytes, a multiple of 4; the caller writes them behind the header */
};

/* Writes the header; checksum 0, as the stack expects it from whoever checked it. Returns where the options begin. */
static inline uint8_t *segment_put_head(uint8_t *p, const struct tcp_tuple *tuple, const struct segment_head *head)
{
	wire_put16(p, tuple->remote_port);
	wire_put16(p + 2, tuple->local_port);
	wire_put32(p + 4, head->seq);
	wire_put32(p + 8, head->ack);
	p[12] = (uint8_t)((TCP_HEADER_BYTES + head->options) / 4 << 4);
	p[13] = head->flags;
	wire_put16(p + 14, head->window);
	wire_put32(p + 16, 0);
	return p + TCP_HEADER_BYTES;
}

/* Hands a segment in as a copy of exact size, so that AddressSanitizer sees the first byte read behind it. */
static inline void segment_input(struct tcp *tcp, struct tcp_conn *conn, const struct tcp_tuple *tuple, const uint8_t *p, size_t len, struct now now)
{
	uint8_t *copy = malloc(len > 0 ? len : 1);
	CHECK(copy != NULL);
	memcpy(copy, p, len);
	tcp_input(tcp, conn, tuple, copy, len, now);
	free(copy);
}

#endif
