/*
 * cores.h - muster cores --auto and --check: a core map made for a machine, and what is wrong or costly in one. Neither asks a server.
 */
#ifndef MUSTER_CORES_H
#define MUSTER_CORES_H

#include <stdio.h>

#include "coordinator/core_map.h"
#include "coordinator/cores/machine.h"

/* Whether this command line (argv[0] is "cores") is one of these two; --show and --apply ask a server (ctl/ctl.h). */
bool cores_knows(int argc, char **argv);
/* Returns the exit status: for --check 0 good, 1 it costs, 2 it is wrong; for --auto 0. 2 for a wrong command line. */
int cores_main(int argc, char **argv);

/*
 * A map for this machine. `workers` 0: as many as there are good places. The settings give the card, node ids, ports and the number of shards. Every
 * worker's `line` is CORES_LINE + its number, for what core_map_check finds of it.
 */
#define CORES_LINE 1000
void cores_plan(struct core_map *map, const struct machine *m, const struct config *cfg, unsigned int workers);

/* The map as a file, with a comment for each choice and for what it costs. */
void cores_write(const struct core_map *map, const struct machine *m, FILE *out);

#endif
