/*
 * reply_service.h - a service that answers each frame as if it were a heartbeat that is well: the same sizes as real
 * heartbeats over the same dataplane, without Kafka. What it reaches is the ceiling for the coordinator.
 */
#ifndef BENCH_REPLY_SERVICE_H
#define BENCH_REPLY_SERVICE_H

#include "muster/service.h"

extern const struct service_ops reply_service_ops; /* service pointer: unused, not NULL */

#endif
