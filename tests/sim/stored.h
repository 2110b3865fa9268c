/*
 * stored.h - the production log on the simulated disk, under the ledger that disk.c keeps. One world in eight, and all that are not clean
 * from seed STORED_SEEDS on.
 */
#ifndef TEST_SIM_STORED_H
#define TEST_SIM_STORED_H

#include "sim.h"

struct stored *stored_new(struct world *w);
void stored_free(struct stored *s);
/* Returns the log's position and sets the entries' offsets; 0 when the disk does not keep up, or
 * the power has been cut. */
uint64_t stored_append(struct stored *s, unsigned int shard, struct log_entry *entries, unsigned int n, int16_t *error, struct now now);
/* `held`: nothing completes; `slow_ms`: now and then nothing completes for so long. Returns the next wish. */
uint64_t stored_poll(struct stored *s, bool held, uint32_t slow_ms, struct now now);
uint64_t stored_durable(const struct stored *s);
void stored_set_owner(struct stored *s, const struct log_owner *owner);
/* The power was cut in the operation that the world names. */
bool stored_is_cut(const struct stored *s);
/* The next write fails. */
void stored_break(struct stored *s, struct now now);
/* Power cut or kill, and starts until one goes through. Checks what is there against the ledger; returns the position up to which it is. */
uint64_t stored_crash(struct stored *s, const struct ledger *d);
/* By position: whether the last start found the record, or cleaning had taken it. */
const bool *stored_there(const struct stored *s);

#endif
