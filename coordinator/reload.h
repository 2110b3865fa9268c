/*
 * reload.h - the catalog of topics, read again while the nodes serve.
 *
 * The image is built by the caller's thread, which no worker waits for, and given to each node on its own worker's thread, one after the other; then the old
 * one goes. For a moment nodes may tell different topics.
 */
#ifndef MUSTER_RELOAD_H
#define MUSTER_RELOAD_H

#include "coordinator/config.h"
#include "coordinator/node.h"
#include "coordinator/output.h"

struct reload {
	const struct config *cfg;
	const char *host; /* that clients are told */
	struct output *out;
	struct node **nodes;  /* one per worker */
	struct image **image; /* that all nodes have; replaced */
	/* Runs `fn` on the worker's thread and waits for it; false: it has ended. */
	bool (*call)(void *arg, unsigned int worker, void (*fn)(void *arg, struct now now), void *fn_arg);
	void *call_arg;
};

/* Says on `out` what came of it. A catalog with an error, or shards that are still loading, leave everything as it is. */
void reload_catalog(const struct reload *r);

#endif
