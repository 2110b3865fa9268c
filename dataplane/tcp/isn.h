/*
 * isn.h - numbers that an outsider must not guess: initial sequence numbers (RFC 6528) and timestamp offsets (RFC 7323, 5.4).
 *
 * Both are a keyed hash (SipHash-2-4) of the four-tuple. The sequence number adds a clock that ticks every 4 us, so the
 * numbers of successive connections of one tuple grow; the offset does not, so the timestamps of one tuple only grow, too.
 */
#ifndef MUSTER_TCP_ISN_H
#define MUSTER_TCP_ISN_H

#include "dataplane/tcp/tcp.h"

uint64_t tcp_siphash(const uint64_t key[2], const void *p, size_t len);
uint32_t tcp_isn(const uint64_t secret[2], const struct tcp_tuple *tuple, struct now now);
uint32_t tcp_timestamp_offset(const uint64_t secret[2], const struct tcp_tuple *tuple);

#endif
