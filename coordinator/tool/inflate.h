/*
 * inflate.h - the records of a compressed batch as they were before: gzip, snappy, lz4 and zstd, by Debian's libraries.
 */
#ifndef MUSTER_TOOL_INFLATE_H
#define MUSTER_TOOL_INFLATE_H

#include "muster/bytes.h"

#define INFLATE_MAX ((size_t)128 << 20) /* bytes of one batch; more is taken for damage */

/* All zero is empty; the owner frees `p`. */
struct inflate_buffer {
	uint8_t *p;
	size_t len, cap;
};

/* Kafka's name of a codec (1 to 4), or NULL. */
const char *inflate_name(unsigned int codec);
/* Fills `out` anew. False: these bytes cannot be what the codec made, or there are more than INFLATE_MAX of them. */
bool inflate_records(unsigned int codec, struct bytes in, struct inflate_buffer *out);

#endif
