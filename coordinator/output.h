/*
 * output.h - lines to a descriptor that must not hold up the worker that writes them.
 *
 * A line that the descriptor does not take at once is dropped and counted; the next line that goes through is preceded by one that
 * says how many are missing. Several threads may write: lines are never mixed.
 */
#ifndef MUSTER_OUTPUT_H
#define MUSTER_OUTPUT_H

#include <stdatomic.h>

#include "muster/base.h"

#define OUTPUT_LINE_MAX 4096 /* bytes with the line feed; longer lines are cut */

struct output {
	int fd;
	atomic_uint dropped; /* lines since the last one that went through */
};

void output_init(struct output *out, int fd);

/* Writes one line; `format` has no line feed. Never waits. */
PRINTF_LIKE(2, 3) void output_line(struct output *out, const char *format, ...);

#endif
