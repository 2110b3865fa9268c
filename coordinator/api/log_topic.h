/*
 * log_topic.h - __consumer_offsets as a topic that clients may read: partition n is shard n, as its log holds it.
 *
 * A server that keeps nothing on disk lists the topic all the same, with nothing in it: there is no second store for readers.
 */
#ifndef MUSTER_API_LOG_TOPIC_H
#define MUSTER_API_LOG_TOPIC_H

#include "coordinator/api/api.h"

/* Whether it is that topic; `topic` may be NULL. */
bool log_topic_is(const struct image_topic *topic);

/*
 * Where a partition of it stands. 0, or 6 when another node leads it or it is still being loaded, or what a client's wrong idea of the leader epoch gives: 74 when it is
 * too old, 75 when it is not known here (KIP-320); -1 is no idea. The slices are valid during the call.
 */
int16_t log_topic_span(const struct api_call *call, int32_t partition, int32_t leader_epoch, struct log_span *out);

/* The leader epoch that the record at `offset`, or the next one, has; -1: none is known. */
int32_t log_topic_epoch(const struct log_span *span, int64_t offset);

#endif
