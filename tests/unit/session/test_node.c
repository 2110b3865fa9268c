/*
 * test_node.c - a whole node over the real engine: groups through sessions, and bad input beside a live group.
 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "requests.h"

static struct join_group_response join(struct conn *c, int32_t correlation_id, struct bytes member_id)
{
	struct join_group_response out;
	send_join_as(c, 7, correlation_id, member_id);
	for (unsigned int i = 0; i < 10 && conn_answers(c) == 0; i++)
		rig_advance(c->rig, 1);
	conn_read(c, api_key_join_group, 7, correlation_id, &out);
	return out;
}

/* A member of "g": joined and synced. */
struct live {
	struct bytes id;
	int32_t generation;
};

/* The leader's sync, which gives itself everything. */
static struct live form_group(struct conn *c)
{
	struct join_group_response first = join(c, 1, BYTES_EMPTY);
	cr_assert_eq(first.error_code, ERROR_MEMBER_ID_REQUIRED);
	cr_assert_gt(first.member_id.len, 0);
	struct join_group_response joined = join(c, 2, first.member_id);
	cr_assert_eq(joined.error_code, 0);
	cr_assert(bytes_equal(joined.leader, joined.member_id));
	cr_assert_eq(joined.members_len, 1);
	cr_assert(bytes_equal(joined.members[0].metadata, BYTES_LITERAL("meta")));
	struct sync_group_request_assignment assignment = {joined.member_id, BYTES_LITERAL("all")};
	struct sync_group_request in;
	struct sync_group_response out;
	sync_group_request_init(&in);
	in.group_id = BYTES_LITERAL("g");
	in.member_id = joined.member_id;
	in.generation_id = joined.generation_id;
	in.protocol_type = BYTES_LITERAL("consumer");
	in.protocol_name = BYTES_LITERAL("range");
	in.assignments = &assignment;
	in.assignments_len = 1;
	conn_send(c, api_key_sync_group, 5, 3, &in);
	cr_assert_eq(conn_answers(c), 0, "not before the assignment is durable");
	rig_round(c->rig);
	rig_round(c->rig);
	conn_read(c, api_key_sync_group, 5, 3, &out);
	cr_assert_eq(out.error_code, 0);
	cr_assert(bytes_equal(out.assignment, BYTES_LITERAL("all")));
	return (struct live){joined.member_id, joined.generation_id};
}

static int16_t beat(struct conn *c, const struct live *live)
{
	struct heartbeat_request in;
	struct heartbeat_response out;
	heartbeat_request_init(&in);
	in.group_id = BYTES_LITERAL("g");
	in.member_id = live->id;
	in.generation_id = live->generation;
	conn_send(c, api_key_heartbeat, 4, 1000, &in);
	conn_read(c, api_key_heartbeat, 4, 1000, &out);
	return out.error_code;
}

static void commit(struct conn *c, const struct live *live, int32_t partition, int64_t offset, int16_t expected)
{
	struct offset_commit_request_partition part;
	offset_commit_request_partition_init(&part);
	part.partition_index = partition;
	part.committed_offset = offset;
	struct offset_commit_request_topic topic = {BYTES_EMPTY, image_topic(c->rig->image, BYTES_LITERAL("alpha"))->id, &part, 1};
	struct offset_commit_request in;
	struct offset_commit_response out;
	offset_commit_request_init(&in);
	in.group_id = BYTES_LITERAL("g");
	in.member_id = live->id;
	in.generation_id_or_member_epoch = live->generation;
	in.topics = &topic;
	in.topics_len = 1;
	conn_send(c, api_key_offset_commit, 10, 5, &in);
	/* pipelined: sees the commit although that is not durable yet */
	send_offset_fetch(c, 6, "g");
	rig_round(c->rig);
	rig_round(c->rig);
	conn_read(c, api_key_offset_commit, 10, 5, &out);
	cr_assert_eq(out.topics[0].partitions[0].error_code, expected);
}

Test(node, a_consumer_s_life)
{
	struct rig *rig = rig_new(50, 1, 16);
	struct conn *c = rig_open(rig);
	struct live live = form_group(c);
	for (unsigned int i = 0; i < 10; i++) {
		rig_advance(rig, 3000);
		cr_assert_eq(beat(c, &live), 0);
	}
	cr_assert_eq(rig->stats.group_heartbeats, 10);
	cr_assert_eq(rig->stats.group_heartbeats_memo, 9, "all but the first need no lookup");
	commit(c, &live, 0, 41, 0);
	cr_assert_eq(read_offset_fetch(c, 6), 41);
	commit(c, &live, 0, 42, 0);
	cr_assert_eq(read_offset_fetch(c, 6), 42);
	commit(c, &live, 6, 43, ERROR_UNKNOWN_TOPIC_OR_PARTITION);
	cr_assert_eq(read_offset_fetch(c, 6), 42);
	struct leave_group_request_member member = {live.id, BYTES_NULL, BYTES_NULL};
	struct leave_group_request leave;
	struct leave_group_response left;
	leave_group_request_init(&leave);
	leave.group_id = BYTES_LITERAL("g");
	leave.members = &member;
	leave.members_len = 1;
	conn_send(c, api_key_leave_group, 4, 7, &leave);
	rig_round(rig);
	rig_round(rig);
	conn_read(c, api_key_leave_group, 4, 7, &left);
	cr_assert_eq(left.error_code, 0);
	cr_assert_eq(left.members[0].error_code, 0);
	cr_assert_eq(beat(c, &live), ERROR_UNKNOWN_MEMBER_ID);
	send_offset_fetch(c, 8, "g");
	cr_assert_eq(read_offset_fetch(c, 8), 42, "the successor finds it");
	cr_assert_eq(rig->stats.requests_parked_now, 0);
	conn_free(c);
	rig_free(rig);
}

/* A member's session ends at its timeout although nothing but the clock moves. */
Test(node, a_silent_member_expires_on_time)
{
	struct rig *rig = rig_new(50, 1, 16);
	struct conn *c = rig_open(rig);
	struct live live = form_group(c);
	rig_advance(rig, 5000);
	cr_assert_eq(beat(c, &live), 0);
	rig_advance(rig, 9990);
	cr_assert_eq(rig->stats.group_expired, 0);
	rig_advance(rig, 20);
	cr_assert_eq(rig->stats.group_expired, 1);
	cr_assert_eq(beat(c, &live), ERROR_UNKNOWN_MEMBER_ID);
	conn_free(c);
	rig_free(rig);
}

/* The wish of a round is kept: whoever sleeps until then misses nothing. */
Test(node, nobody_expires_because_the_worker_stood_still)
{
	struct rig *r = rig_new(50, 1, 8);
	struct conn *c = rig_open(r);
	r->settings.group_initial_rebalance_delay_ms = 0;
	struct live live = form_group(c);
	rig_advance(r, 3000);
	node_service_ops.stalled(r->node, 20 * US_PER_S, r->now);
	rig_advance(r, 20999);
	cr_expect_eq(beat(c, &live), 0);
	node_service_ops.stalled(r->node, 20 * US_PER_S, r->now);
	rig_advance(r, 21000);
	cr_expect_eq(r->stats.group_expired, 1);
	conn_free(c);
	rig_free(r);
}

Test(node, sleeping_until_the_wish_is_enough)
{
	struct rig *rig = rig_new(50, 1, 16);
	struct conn *c = rig_open(rig);
	form_group(c);
	uint64_t start = rig->now.us;
	unsigned int rounds = 0;
	while (rig->stats.group_expired == 0) {
		uint64_t wish = rig_round(rig);
		cr_assert_neq(wish, TIME_NEVER);
		if (wish > rig->now.us)
			rig->now.us = wish;
		cr_assert_lt(++rounds, 1000);
	}
	cr_assert_geq(rig->now.us - start, 9999000);
	cr_assert_leq(rig->now.us - start, 10010000);
	conn_free(c);
	rig_free(rig);
}

/* A second member's join makes the first one's heartbeat say so; its connection's end makes it leave the purgatory. */
Test(node, a_joiner_whose_connection_goes_is_forgotten)
{
	struct rig *rig = rig_new(50, 1, 16);
	struct conn *c = rig_open(rig), *d = rig_open(rig);
	struct live live = form_group(c);
	send_join_as(d, 1, 2, BYTES_EMPTY); /* an old client: member at once */
	cr_assert(d->held);
	cr_assert_eq(beat(c, &live), ERROR_REBALANCE_IN_PROGRESS);
	conn_reset(d);
	cr_assert_eq(rig->stats.session_dropped, 1);
	struct join_group_response again = join(c, 4, live.id);
	cr_assert_eq(again.error_code, 0);
	cr_assert_eq(again.members_len, 1);
	cr_assert_eq(rig->stats.requests_parked_now, 0);
	conn_free(c);
	conn_free(d);
	rig_free(rig);
}

Test(node, stop_answers_a_parked_join)
{
	struct rig *rig = rig_new(50, 1, 16);
	struct conn *c = rig_open(rig);
	struct live live = form_group(c);
	struct conn *d = rig_open(rig);
	send_join_as(d, 2, 2, BYTES_EMPTY);
	cr_assert(d->held);
	cr_assert(node_service_ops.stop(rig->node, rig->now));
	struct join_group_response out;
	conn_read(d, api_key_join_group, 2, 2, &out);
	cr_assert_eq(out.error_code, ERROR_NOT_COORDINATOR);
	cr_assert_eq(beat(c, &live), ERROR_COORDINATOR_NOT_AVAILABLE);
	conn_free(c);
	conn_free(d);
	rig_free(rig);
}

Test(node, a_new_image_is_told_from_then_on)
{
	struct rig *rig = rig_new(50, 1, 16);
	struct conn *c = rig_open(rig);
	struct image *next = image_new(BYTES_LITERAL("rig-cluster"));
	cr_assert(image_add_node(next, 1000, BYTES_LITERAL("muster.test"), 19092));
	cr_assert(image_add_topic(next, BYTES_LITERAL("delta"), 2));
	image_seal(next, 50);
	send_commit(c, 9);
	rig_round(rig);
	rig_round(rig);
	cr_assert_eq(read_commit(c, 9), 0);
	cr_assert(node_set_image(rig->node, next, rig->now));
	image_free(rig->image);
	rig->image = next;
	struct metadata_request in;
	struct metadata_response out;
	metadata_request_init(&in);
	in.topics_len = -1;
	conn_send(c, api_key_metadata, 9, 1, &in);
	conn_read(c, api_key_metadata, 9, 1, &out);
	cr_assert_eq(out.topics_len, 1);
	cr_assert(bytes_equal(out.topics[0].name, BYTES_LITERAL("delta")));
	send_commit(c, 2);
	cr_assert_eq(read_commit(c, 2), ERROR_UNKNOWN_TOPIC_OR_PARTITION, "alpha is gone");
	rig_advance(rig, 2);
	cr_assert_eq(rig->stats.offset_topic_gone, 1, "and its committed offset with it");
	conn_free(c);
	rig_free(rig);
}

/* ---- bad input beside a live group ---- */

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

Test(node, random_bodies_of_every_api_and_version_disturb_nobody)
{
	struct rig *rig = rig_new(50, 1, 16);
	struct conn *c = rig_open(rig);
	struct live live = form_group(c);
	uint64_t random = 88172645463325252ull;
	uint64_t refused = 0;
	for (unsigned int api = 0; api < API_COUNT; api++) {
		for (int16_t v = 0; v <= api_ranges[api].highest; v++) {
			for (unsigned int i = 0; i < 100; i++) {
				uint8_t frame[200];
				size_t len = 10 + next_random(&random) % (sizeof(frame) - 10);
				struct writer w = writer_of(frame, sizeof(frame));
				writer_u16(&w, (uint16_t)api_ranges[api].key);
				writer_u16(&w, (uint16_t)v);
				writer_u32(&w, i);
				writer_u16(&w, 0xffff);
				/* small numbers are likely, so that lengths and counts often fit */
				for (size_t at = 10; at < len; at++)
					frame[at] = (uint8_t)(next_random(&random) % 4 == 0 ? next_random(&random) : next_random(&random) % 3);
				struct conn *d = rig_open(rig);
				conn_raw(d, frame, len);
				rig_round(rig);
				refused += d->aborted;
				cr_assert(d->aborted || d->closed || d->held || conn_answers(d) == 1, "api %d v%d", api_ranges[api].key, v);
				conn_free(d);
			}
			rig_advance(rig, 10);
			cr_assert_eq(beat(c, &live), 0);
		}
	}
	cr_assert_gt(refused, 1000);
	cr_assert_eq(rig->stats.session_bad_request + rig->stats.session_bad_header, refused);
	cr_assert_eq(rig->stats.requests_parked_now, 0);
	conn_free(c);
	rig_free(rig);
}

Test(node, random_frames_disturb_nobody)
{
	struct rig *rig = rig_new(50, 1, 16);
	struct conn *c = rig_open(rig);
	struct live live = form_group(c);
	uint64_t random = 4101842887655102017ull;
	for (unsigned int i = 0; i < 5000; i++) {
		uint8_t frame[9000];
		size_t len = 1 + next_random(&random) % (i % 10 == 0 ? sizeof(frame) : 40);
		for (size_t at = 0; at < len; at++)
			frame[at] = (uint8_t)next_random(&random);
		if (len > 2 && i % 2 == 0) {
			frame[0] = 0;
			frame[1] %= 64;
		}
		struct conn *d = rig_open(rig);
		conn_raw(d, frame, len);
		conn_free(d);
		if (i % 100 == 0) {
			rig_advance(rig, 10);
			cr_assert_eq(beat(c, &live), 0);
		}
	}
	cr_assert_eq(rig->stats.session_opened, rig->stats.session_closed + 1);
	cr_assert_gt(rig->stats.session_unknown_api, 0);
	cr_assert_gt(rig->stats.session_bad_version, 0);
	cr_assert_gt(rig->stats.session_bad_header, 0);
	conn_free(c);
	rig_free(rig);
}

/* ---- loading ---- */

struct fill {
	unsigned int ready; /* shards below this number are */
	struct stats *own;
};

static bool fill_ready(void *arg, unsigned int shard)
{
	const struct fill *f = arg;
	return shard < f->ready;
}

static int16_t fetch_error(struct conn *c, int16_t version, int16_t *partition_error)
{
	int32_t partition = 0;
	struct offset_fetch_request_topic old = {BYTES_LITERAL("alpha"), &partition, 1};
	struct offset_fetch_request_topics topic = {BYTES_LITERAL("alpha"), image_topic(c->rig->image, BYTES_LITERAL("alpha"))->id, &partition, 1};
	struct offset_fetch_request_group group = {BYTES_LITERAL("g"), BYTES_NULL, -1, &topic, 1};
	struct offset_fetch_request in;
	struct offset_fetch_response out;
	offset_fetch_request_init(&in);
	in.group_id = BYTES_LITERAL("g");
	in.topics = &old;
	in.topics_len = 1;
	in.groups = &group;
	in.groups_len = 1;
	conn_send(c, api_key_offset_fetch, version, 9, &in);
	conn_read(c, api_key_offset_fetch, version, 9, &out);
	if (version >= 8) {
		*partition_error = out.groups[0].topics_len > 0 ? out.groups[0].topics[0].partitions[0].error_code : 0;
		return out.groups[0].error_code;
	}
	*partition_error = out.topics_len > 0 ? out.topics[0].partitions[0].error_code : 0;
	return out.error_code;
}

static int16_t list_error(struct conn *c)
{
	struct list_groups_request in = {NULL, 0, NULL, 0};
	struct list_groups_response out;
	conn_send(c, api_key_list_groups, 4, 10, &in);
	conn_read(c, api_key_list_groups, 4, 10, &out);
	return out.error_code;
}

static int16_t describe_error(struct conn *c)
{
	struct bytes name = BYTES_LITERAL("g");
	struct describe_groups_request in = {&name, 1, false};
	struct describe_groups_response out;
	conn_send(c, api_key_describe_groups, 5, 11, &in);
	conn_read(c, api_key_describe_groups, 5, 11, &out);
	return out.groups[0].error_code;
}

/* Connections are served from the start; a shard from the round on in which its loader is through with it. */
Test(node, serves_while_it_loads)
{
	struct rig *rig = rig_new(50, 1, 16);
	unsigned int own = image_shard_of(rig->image, BYTES_LITERAL("g"));
	struct fill f = {0, aligned_alloc(MUSTER_CACHE_LINE, 50 * sizeof(struct stats))};
	int16_t partition;
	memset(f.own, 0, 50 * sizeof(struct stats));
	node_load(rig->node, f.own, fill_ready, &f);
	struct conn *c = rig_open(rig);
	struct live claimed = {BYTES_LITERAL("m"), 5};
	for (unsigned int i = 0; i <= own; i++) {
		f.ready = i;
		rig_round(rig);
		cr_expect_eq(beat(c, &claimed), 0);
		for (int16_t version = 1; version <= 10; version++) {
			cr_expect_eq(fetch_error(c, version, &partition), version < 2 ? 0 : ERROR_COORDINATOR_LOAD_IN_PROGRESS, "%d", version);
			cr_expect_eq(partition, version < 2 ? ERROR_COORDINATOR_LOAD_IN_PROGRESS : 0);
		}
		cr_expect_eq(list_error(c), ERROR_COORDINATOR_LOAD_IN_PROGRESS);
		cr_expect_eq(describe_error(c), ERROR_COORDINATOR_LOAD_IN_PROGRESS);
		cr_expect_eq(join(c, 2, BYTES_EMPTY).error_code, ERROR_COORDINATOR_LOAD_IN_PROGRESS);
	}
	f.ready = own + 1;
	rig_round(rig);
	cr_expect_eq(fetch_error(c, 9, &partition), 0);
	cr_expect_eq(list_error(c), own + 1 == 50 ? 0 : ERROR_COORDINATOR_LOAD_IN_PROGRESS, "a part of the list would look whole");
	form_group(c);
	f.ready = 50;
	rig_round(rig);
	cr_expect_eq(list_error(c), 0);
	conn_free(c);
	rig_free(rig);
	free(f.own);
}

static bool fill_all_ready(void *arg, unsigned int shard)
{
	return *(const bool *)arg;
}

/* The worker stands still while a shard is loading: whoever is in it has the time to be heard as well. */
Test(node, a_standstill_counts_for_shards_that_are_handed_over_later)
{
	struct rig *rig = rig_new(50, 1, 16);
	struct conn *c = rig_open(rig);
	struct stats *own = aligned_alloc(MUSTER_CACHE_LINE, 50 * sizeof(*own));
	bool ready = false;
	memset(own, 0, 50 * sizeof(*own));
	form_group(c);
	node_load(rig->node, own, fill_all_ready, &ready);
	node_service_ops.stalled(rig->node, 20 * US_PER_S, rig->now);
	ready = true;
	rig_advance(rig, 20000);
	cr_expect_eq(rig->stats.group_expired, 0, "its session was 10 s, the standstill 20");
	rig_advance(rig, 1500);
	cr_expect_eq(rig->stats.group_expired, 1);
	conn_free(c);
	rig_free(rig);
	free(own);
}
