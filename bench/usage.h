/*
 * usage.h - what a server process has used so far, as the kernel counts it.
 */
#ifndef BENCH_USAGE_H
#define BENCH_USAGE_H

#include <sys/types.h>

#include "muster/base.h"

struct usage {
	double cpu_s;	 /* user and system time of the whole process, in clock ticks' precision */
	uint64_t cpu_ns; /* of its main thread, which is the worker; 0 where the kernel does not say */
	uint64_t rss;	 /* resident memory, bytes */
};

/* All zero for pid 0 or a process that is gone. */
struct usage usage_read(pid_t pid);
/* The same, and asks the server for its counters at this moment (SIGUSR1). */
struct usage usage_mark(pid_t pid);

#endif
