/*
 * memory.h - what the configured limits need, what the machine has, and what to say when that does not fit.
 */
#ifndef DATAPLANE_MEMORY_H
#define DATAPLANE_MEMORY_H

#include "dataplane/eal.h"
#include "dataplane/frame.h"

#define MIB ((size_t)1 << 20)

/* TCP's and the framing's shares of the configuration; each gets half of the buffer memory. */
struct tcp_config memory_tcp_config(const struct dataplane_config *cfg);
struct frames_config memory_frames_config(const struct dataplane_config *cfg);

/* All workers together. */
struct eal_memory memory_needed(const struct dataplane_config *cfg);

/*
 * Bytes of free huge pages, all sizes; and of memory that a new process could use, by the kernel's estimate and the
 * control group's limit.
 */
size_t memory_huge_free(void);
size_t memory_available(void);

/*
 * Writes what is missing and which setting to lower, largest consumer first. `have` and `need` in bytes, need > have.
 */
void memory_shortfall(const struct dataplane_config *cfg, size_t need, size_t have, char *out, size_t out_len);

#endif
