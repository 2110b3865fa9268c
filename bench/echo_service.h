/*
 * echo_service.h - a service that sends every frame back as it came: the ceiling that benchmarks compare with, and what the
 * dataplane's own tests talk to.
 */
#ifndef BENCH_ECHO_SERVICE_H
#define BENCH_ECHO_SERVICE_H

#include "muster/service.h"

extern const struct service_ops echo_service_ops;

struct echo_service {
	unsigned int open; /* sessions */
	uint64_t frames;
};

#endif
