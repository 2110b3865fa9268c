/*
 * consumer.h - what the files of the behaving consumer share.
 */
#ifndef TEST_SIM_CONSUMER_H
#define TEST_SIM_CONSUMER_H

#include "sim.h"

#define REQUEST_TIMEOUT_US 20000000ull

/* ---- consumer.c ---- */
uint64_t consumer_soon(struct consumer *c, uint32_t lo_ms, uint32_t hi_ms);
struct bytes consumer_instance(const struct consumer *c);
void consumer_disconnect(struct consumer *c, bool reset);
void consumer_back_off(struct consumer *c, uint32_t lo_ms, uint32_t hi_ms);
void consumer_rediscover(struct consumer *c);
void consumer_send(struct consumer *c, int16_t api, int16_t version, const void *request, uint64_t timeout_us);
bool consumer_waits(const struct consumer *c, int16_t api);

/* ---- consumer_group.c ---- */
void consumer_forget(struct consumer *c);
void consumer_join(struct consumer *c);
void consumer_sync(struct consumer *c);
void consumer_error(struct consumer *c, int16_t api, int16_t code);
void consumer_joined(struct consumer *c, const struct join_group_response *r, int16_t version);
void consumer_synced(struct consumer *c, const struct sync_group_response *r);
void consumer_beat(struct consumer *c);
void consumer_beaten(struct consumer *c, int16_t code, int32_t generation);
void consumer_leave(struct consumer *c);

/* ---- consumer_offsets.c ---- */
void consumer_fetch(struct consumer *c);
void consumer_commit(struct consumer *c);
void consumer_committed(struct consumer *c, const struct offset_commit_response *r, int32_t generation);

/* ---- subscription.c: `parts` has a bit per partition ---- */
void subscription_write_parts(struct writer *w, uint32_t parts);
size_t subscription_write(const struct consumer *c, enum assignor a, uint8_t *out, size_t cap);
uint32_t subscription_read_parts(struct reader *r);
void subscription_read(struct assign_member *m, struct bytes b);

#endif
