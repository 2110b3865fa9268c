/*
 * check.h - assertions about ourselves, kept in release builds.
 *
 * CHECK is for our own bugs only: a broken invariant stops the program before it can answer wrongly.
 * What a peer, a disk or an operator can cause is never CHECKed; it is an error code and a counter.
 */
#ifndef MUSTER_CHECK_H
#define MUSTER_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#include "muster/base.h"

static __attribute__((noreturn, cold, noinline, unused)) void check_failed(const char *expr,
								  const char *file, int line)
{
	fprintf(stderr, "muster: broken invariant: %s (%s:%d)\n", expr, file, line);
	abort();
}

#define CHECK(expr)                                                  \
	do {                                                         \
		if (unlikely(!(expr)))                               \
			check_failed(#expr, __FILE__, __LINE__);     \
	} while (0)

#endif
