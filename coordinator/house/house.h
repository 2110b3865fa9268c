/*
 * house.h - the housekeeping thread: what has to be done beside the workers and may wait for the kernel. It serves the admin socket (command.h),
 * reads the catalog of topics again, watches the workers and takes samples of their counters.
 *
 * It reaches workers only by the rings of the dataplane (house_link) and reads their counters and signs of life with plain loads. No worker ever waits
 * for it: if it stands still or ends, they go on.
 */
#ifndef MUSTER_HOUSE_H
#define MUSTER_HOUSE_H

#include "muster/mailbox.h"
#include "muster/pulse.h"
#include "muster/stats.h"
#include "muster/time.h"

#include "coordinator/core_map.h"
#include "coordinator/image.h"
#include "coordinator/output.h"

struct house;

/* The dataplane, of which the coordinator sees nothing else. */
struct house_link {
	void *arg;
	int fd; /* readable when a worker has sent something */
	bool (*tell)(void *arg, unsigned int worker, const struct mail *mail);
	unsigned int (*told)(void *arg, unsigned int worker, struct mail out[], unsigned int max);
	const struct stats *(*stats)(void *arg, unsigned int worker);
	void (*pulse)(void *arg, unsigned int worker, struct pulse *out);
	const char *(*stage)(unsigned int stage);
	unsigned int (*depth)(void *arg, unsigned int worker);
};

struct house_config {
	const char *version;
	const struct config *cfg;
	const struct core_map *map;
	const char *host;     /* that clients are told */
	struct output *out;
	struct image **image; /* that all nodes have; replaced when the catalog is read again */
	struct now (*clock)(void);
};

/*
 * Makes the admin socket, if the settings name one; before the dataplane pins the calling thread: the thread keeps the affinity that it has now.
 * Everything that is pointed to outlives it. NULL: one line in err.
 */
struct house *house_new(const struct house_config *cfg, char *err, size_t err_len);
/* Starts the thread; signals stay blocked in it. False: it cannot be started. */
bool house_start(struct house *house, const struct house_link *link);
/* Ends the thread and removes the socket; the workers have ended or never run. */
void house_stop(struct house *house);
/* After the nodes are freed, which may hold questions. */
void house_free(struct house *house);

/* ---- from any thread ---- */

/* The catalog is to be read again. */
void house_reload(struct house *house);
/* What the log promises, one line; before house_start. */
void house_set_log(struct house *house, const char *text);
/* All is loaded; the log broke. */
void house_set_ready(struct house *house);
void house_set_log_broken(struct house *house);

#endif
