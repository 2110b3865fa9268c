/*
 * setup.h - what the benchmark programs on our dataplane have in common: options, start, and the counters at the end.
 */
#ifndef BENCH_SETUP_H
#define BENCH_SETUP_H

#include "muster/dataplane.h"

struct setup {
	struct dataplane_config dataplane;
	uint32_t server; /* address to connect to, host byte order; 0: none given */
};

/* The dataplane as `muster` has it by default. */
void setup_init(struct setup *setup);
/* Takes --device --address A.B.C.D/LEN --port --cpu --idle spin|adaptive --server A.B.C.D; false: not an option, or a wrong value. */
bool setup_option(void *setup, const char *name, const char *value);
/* The counters that are not zero on stdout, in the lines that muster prints on SIGUSR1. */
void setup_print_stats(struct dataplane *dp);

#endif
