/*
 * opt.h - TCP options: parsing what a peer sends, writing ours.
 *
 *   kind 0 end | 1 no-op | 2 MSS, len 4 | 3 window scale, len 3 | 4 SACK permitted, len 2 | 5 SACK, len 2 + 8 n | 8 timestamps, len 10
 *
 * Unknown kinds are skipped by their length. The first malformed option (length below 2, or past the end, or not the one of
 * its kind) ends the parsing; what was read before it counts.
 */
#ifndef MUSTER_TCP_OPT_H
#define MUSTER_TCP_OPT_H

#include "muster/bytes.h"

#define OPT_MAX_SACK 4
#define OPT_MAX_BYTES 40
#define OPT_TIMESTAMP_BYTES 12 /* two no-ops in front, so that the values are aligned */
#define OPT_MAX_SCALE 14       /* RFC 7323, 2.3 */

/* The first four bytes of the layout in which everybody sends timestamps: no-op, no-op, kind 8, length 10. */
#define OPT_TIMESTAMP_HEAD 0x0101080au

struct opt_sack {
	uint32_t start, end; /* [start, end) has arrived */
};

struct opt {
	bool has_mss, has_scale, has_timestamp, sack_permitted;
	uint8_t scale; /* at most OPT_MAX_SCALE */
	uint8_t sacks;
	uint16_t mss;
	uint32_t tsval, tsecr;
	struct opt_sack sack[OPT_MAX_SACK];
};

/* Returns false when an option was malformed; `opt` is filled in all cases. */
bool opt_parse(struct opt *opt, const uint8_t *p, size_t len);

/* Options of a SYN; `opt` says which. All writers return the number of bytes written, a multiple of 4. */
size_t opt_write_syn(uint8_t p[OPT_MAX_BYTES], const struct opt *opt);
size_t opt_write_timestamp(uint8_t *p, uint32_t tsval, uint32_t tsecr);
static inline size_t opt_sack_bytes(unsigned int n)
{
	return n == 0 ? 0 : 4 + 8 * (size_t)n;
}
size_t opt_write_sack(uint8_t *p, const struct opt_sack *sack, unsigned int n);

#endif
