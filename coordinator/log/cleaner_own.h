/*
 * cleaner_own.h - what cleaner.c (passes and steps) and cleaner_run.c (one run) share.
 */
#ifndef MUSTER_LOG_CLEANER_OWN_H
#define MUSTER_LOG_CLEANER_OWN_H

#include "coordinator/log/cleaner.h"

#define CLEANER_RETRY_US (10 * US_PER_S)

void cleaner_say(const struct cleaner *c, const char *what, const char *name, int error);

/* What is reserved for a run that begins with the file at `at`, which may be joined with others, or of a time when segments were longer. */
uint64_t cleaner_run_capacity(const struct cleaner *c, size_t at);
/* Begins a run with the files from c->at on; the new file is reserved. */
bool cleaner_run_begin(struct cleaner *c);
/* One slice of reading and judging. True: there is more to do at once. */
bool cleaner_run_read(struct cleaner *c, struct now now);
/* The new file has its name: it takes the place of its inputs. */
void cleaner_run_done(struct cleaner *c);
/* The run is given up, its inputs stay; the new file is thrown away. */
void cleaner_run_abandon(struct cleaner *c, struct now now);

#endif
