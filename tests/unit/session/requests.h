/*
 * requests.h - short requests for tests, sent with one call each.
 */
#ifndef TEST_REQUESTS_H
#define TEST_REQUESTS_H

#include "rig.h"

static inline void send_heartbeat(struct conn *c, int16_t version, int32_t correlation_id, int32_t generation)
{
	struct heartbeat_request in;
	heartbeat_request_init(&in);
	in.group_id = BYTES_LITERAL("g");
	in.member_id = BYTES_LITERAL("m");
	in.generation_id = generation;
	conn_send(c, api_key_heartbeat, version, correlation_id, &in);
}

/* The answer's error code. */
static inline int16_t read_heartbeat(struct conn *c, int16_t version, int32_t correlation_id)
{
	struct heartbeat_response out;
	conn_read(c, api_key_heartbeat, version, correlation_id, &out);
	return out.error_code;
}

/* JoinGroup of "g" with one protocol, session timeout 10 s, rebalance timeout 60 s. */
static inline void send_join_as(struct conn *c, int16_t version, int32_t correlation_id, struct bytes member_id)
{
	struct join_group_request_protocol protocol = {BYTES_LITERAL("range"), BYTES_LITERAL("meta")};
	struct join_group_request in;
	join_group_request_init(&in);
	in.group_id = BYTES_LITERAL("g");
	in.member_id = member_id;
	in.session_timeout_ms = 10000;
	in.rebalance_timeout_ms = 60000;
	in.protocol_type = BYTES_LITERAL("consumer");
	in.protocols = &protocol;
	in.protocols_len = 1;
	conn_send(c, api_key_join_group, version, correlation_id, &in);
}

static inline void send_join(struct conn *c, int32_t correlation_id)
{
	send_join_as(c, 5, correlation_id, BYTES_EMPTY);
}

static inline int16_t read_join(struct conn *c, int32_t correlation_id)
{
	struct join_group_response out;
	conn_read(c, api_key_join_group, 5, correlation_id, &out);
	return out.error_code;
}

static inline void send_sync(struct conn *c, int32_t correlation_id)
{
	struct sync_group_request in;
	sync_group_request_init(&in);
	in.group_id = BYTES_LITERAL("g");
	in.member_id = BYTES_LITERAL("m");
	conn_send(c, api_key_sync_group, 3, correlation_id, &in);
}

static inline int16_t read_sync(struct conn *c, int32_t correlation_id)
{
	struct sync_group_response out;
	conn_read(c, api_key_sync_group, 3, correlation_id, &out);
	return out.error_code;
}

static inline void send_commit(struct conn *c, int32_t correlation_id)
{
	struct offset_commit_request_partition partition;
	offset_commit_request_partition_init(&partition);
	partition.committed_offset = correlation_id;
	struct offset_commit_request_topic topic = {BYTES_LITERAL("alpha"), UUID_ZERO, &partition, 1};
	struct offset_commit_request in;
	offset_commit_request_init(&in);
	in.group_id = BYTES_LITERAL("g");
	in.topics = &topic;
	in.topics_len = 1;
	conn_send(c, api_key_offset_commit, 7, correlation_id, &in);
}

static inline int16_t read_commit(struct conn *c, int32_t correlation_id)
{
	struct offset_commit_response out;
	conn_read(c, api_key_offset_commit, 7, correlation_id, &out);
	return out.topics[0].partitions[0].error_code;
}

/* Fetches partition 0 of a topic from an offset. */
static inline void send_fetch(struct conn *c, int32_t correlation_id, const char *topic_name, int32_t max_wait_ms, int32_t min_bytes)
{
	struct fetch_request_partition partition;
	fetch_request_partition_init(&partition);
	partition.fetch_offset = 1234;
	struct fetch_request_topic topic = {bytes_str(topic_name), UUID_ZERO, &partition, 1};
	struct fetch_request in;
	fetch_request_init(&in);
	in.max_wait_ms = max_wait_ms;
	in.min_bytes = min_bytes;
	in.topics = &topic;
	in.topics_len = 1;
	conn_send(c, api_key_fetch, 11, correlation_id, &in);
}

static inline int16_t read_fetch(struct conn *c, int32_t correlation_id)
{
	struct fetch_response out;
	conn_read(c, api_key_fetch, 11, correlation_id, &out);
	return out.responses[0].partitions[0].error_code;
}

/* OffsetFetch version 7 of partitions 0 and 1 of "alpha". */
static inline void send_offset_fetch(struct conn *c, int32_t correlation_id, const char *group)
{
	static const int32_t partitions[] = {0, 1};
	struct offset_fetch_request_topic topic = {BYTES_LITERAL("alpha"), partitions, 2};
	struct offset_fetch_request in;
	offset_fetch_request_init(&in);
	in.group_id = bytes_str(group);
	in.topics = &topic;
	in.topics_len = 1;
	conn_send(c, api_key_offset_fetch, 7, correlation_id, &in);
}

/* The committed offset of partition 0. */
static inline int64_t read_offset_fetch(struct conn *c, int32_t correlation_id)
{
	struct offset_fetch_response out;
	conn_read(c, api_key_offset_fetch, 7, correlation_id, &out);
	return out.topics[0].partitions[0].committed_offset;
}

/* Metadata of no topics: only the nodes. */
static inline void send_metadata(struct conn *c, int32_t correlation_id)
{
	struct metadata_request in;
	metadata_request_init(&in);
	conn_send(c, api_key_metadata, 8, correlation_id, &in);
}

static inline int32_t read_metadata(struct conn *c, int32_t correlation_id)
{
	struct metadata_response out;
	conn_read(c, api_key_metadata, 8, correlation_id, &out);
	return out.brokers_len;
}

#endif
