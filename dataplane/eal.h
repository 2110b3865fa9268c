/*
 * eal.h - DPDK's environment: its arguments out of the configuration, memory, a quiet log, one-line errors.
 */
#ifndef DATAPLANE_EAL_H
#define DATAPLANE_EAL_H

#include <stdio.h>

#include "muster/dataplane.h"

#define EAL_ARGS_MAX 64u

struct eal {
	char *argv[EAL_ARGS_MAX + 1]; /* EAL keeps pointers into it and moves them around, so `text` owns the bytes */
	int argc;
	char text[4096];
	size_t text_used;
	bool huge;    /* runs on huge pages */
	bool started;
	FILE *log;    /* NULL: EAL logs where it likes, because eal_extra asks for log levels */
	char heard[1024]; /* what EAL and the drivers said while `quiet` */
	size_t heard_len;
	bool quiet;
};

/* What must be there before anything starts, in bytes. */
struct eal_memory {
	size_t dpdk; /* from EAL: mbufs, connection table */
	size_t heap; /* from the allocator: TCP, frames, buffers */
};

/*
 * Writes the argument list for `cfg` into eal->argv, as eal_start does. `huge`: run on huge pages; otherwise EAL gets
 * `dpdk_bytes` of small ones. False: it does not fit.
 */
bool eal_arguments(struct eal *eal, const struct dataplane_config *cfg, bool huge, size_t dpdk_bytes);

/*
 * Whether this thread takes the process's real-time signals. net_tap announces frames by one; taken by any other thread than the one that polls, it
 * costs a wake-up there and wakes nobody here. eal_start refuses them for its caller and for EAL's own threads.
 */
void eal_take_signals(bool take);

/* Starts EAL with the device. False: one line in err. At most one warning line (no huge pages) goes to stderr. */
bool eal_start(struct eal *eal, const struct dataplane_config *cfg, const struct eal_memory *need, char *err, size_t err_len);

/*
 * The first thing that EAL or a driver complained about since the start or eal_forget, as ": text"; empty when nothing.
 */
void eal_complaint(const struct eal *eal, char *out, size_t out_len);
void eal_forget(struct eal *eal);

/* From here on what DPDK complains about goes to stderr, line by line. */
void eal_running(struct eal *eal);

void eal_stop(struct eal *eal);

#endif
