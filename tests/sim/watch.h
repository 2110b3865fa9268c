/*
 * watch.h - what the files share that look at requests and answers.
 */
#ifndef TEST_SIM_WATCH_H
#define TEST_SIM_WATCH_H

#include "sim.h"

/* Whether the log is the reason for this error: it refused, broke, or took longer than offsets.commit.timeout.ms. */
bool log_explains(struct world *w, const struct asked *a, int32_t code);

/* ---- epoch.c ---- */
void epoch_reset(struct epoch *e);
void epoch_note_assignment(struct conn *c, const struct asked *a, const struct sync_group_request *in);
void epoch_check_sync(struct conn *c, const struct asked *a, const struct sync_group_response *r);
void epoch_check_join(struct conn *c, struct asked *a, const struct join_group_response *r);

/* ---- watch_offsets.c ---- */
void offsets_check_commit(struct conn *c, struct asked *a, const struct offset_commit_response *r);
void offsets_check_fetch(struct conn *c, const struct asked *a, const struct offset_fetch_response *r);

/* ---- facts.c ---- */
struct bytes facts_topic_name(struct world *w, struct bytes name, const struct uuid *id);
void facts_name_in_step(struct world *w, struct bytes id);
struct bytes facts_of(struct conn *c, struct asked *a, const void *in);

#endif
