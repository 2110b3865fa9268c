/*
 * test_steady.c - the same heartbeat again and again, while everything that could change its answer changes in between: the short way (steady.c) must
 * answer what a connection without memo is answered. Over the real engine.
 */
#include <criterion/criterion.h>

#include "requests.h"

static struct rig *rig;
static struct conn *c;

struct live {
	struct bytes id, instance;
	int32_t generation;
};

static struct join_group_response join_as(struct conn *conn, struct bytes id, struct bytes instance)
{
	struct join_group_request_protocol protocol = {BYTES_LITERAL("range"), BYTES_LITERAL("meta")};
	struct join_group_request in;
	struct join_group_response out;
	join_group_request_init(&in);
	in.group_id = BYTES_LITERAL("g");
	in.member_id = id;
	in.group_instance_id = instance;
	in.session_timeout_ms = 10000;
	in.rebalance_timeout_ms = 60000;
	in.protocol_type = BYTES_LITERAL("consumer");
	in.protocols = &protocol;
	in.protocols_len = 1;
	conn_send(conn, api_key_join_group, 5, 2, &in);
	for (unsigned int i = 0; i < 10 && conn_answers(conn) == 0; i++)
		rig_advance(rig, 1);
	conn_read(conn, api_key_join_group, 5, 2, &out);
	return out;
}

static void sync(struct conn *conn, const struct live *live)
{
	struct sync_group_request_assignment assignment = {live->id, BYTES_LITERAL("all")};
	struct sync_group_request in;
	struct sync_group_response out;
	sync_group_request_init(&in);
	in.group_id = BYTES_LITERAL("g");
	in.member_id = live->id;
	in.group_instance_id = live->instance;
	in.generation_id = live->generation;
	in.assignments = &assignment;
	in.assignments_len = 1;
	conn_send(conn, api_key_sync_group, 3, 3, &in);
	rig_advance(rig, 2);
	conn_read(conn, api_key_sync_group, 3, 3, &out);
	cr_assert_eq(out.error_code, 0);
}

/* A Stable group of one. */
static struct live form(struct conn *conn, struct bytes instance)
{
	struct join_group_response joined = join_as(conn, BYTES_EMPTY, instance);
	if (joined.error_code == ERROR_MEMBER_ID_REQUIRED)
		joined = join_as(conn, joined.member_id, instance);
	cr_assert_eq(joined.error_code, 0);
	struct live live = {joined.member_id, instance, joined.generation_id};
	sync(conn, &live);
	return live;
}

static int16_t beat(struct conn *conn, int16_t version, const struct live *live)
{
	struct heartbeat_request in = {BYTES_LITERAL("g"), live->generation, live->id, live->instance};
	struct heartbeat_response out;
	conn_send(conn, api_key_heartbeat, version, 77, &in);
	conn_read(conn, api_key_heartbeat, version, 77, &out);
	return out.error_code;
}

/* The connection's answer, which must be that of a connection that knows nothing. In both versions that go the short way. */
static int16_t both(const struct live *live)
{
	int16_t error = beat(c, 4, live);
	cr_assert_eq(beat(c, 3, live), error);
	struct conn *stranger = rig_open(rig);
	cr_assert_eq(beat(stranger, 4, live), error);
	conn_free(stranger);
	return error;
}

/* Makes the connection's memo, and proves that the heartbeat then goes by it. */
static void settle(const struct live *live)
{
	cr_assert_eq(both(live), 0);
	uint64_t before = rig->stats.group_heartbeats_memo;
	cr_assert_eq(beat(c, 4, live), 0);
	cr_assert_eq(beat(c, 3, live), 0);
	cr_assert_eq(rig->stats.group_heartbeats_memo, before + 2);
}

static void leave(const struct live *live)
{
	struct conn *d = rig_open(rig);
	struct leave_group_request in;
	struct leave_group_response out;
	leave_group_request_init(&in);
	in.group_id = BYTES_LITERAL("g");
	in.member_id = live->id;
	conn_send(d, api_key_leave_group, 1, 9, &in);
	conn_read(d, api_key_leave_group, 1, 9, &out);
	cr_assert_eq(out.error_code, 0);
	conn_free(d);
}

static void commit(const struct live *live, int32_t correlation_id)
{
	struct offset_commit_request_partition partition;
	offset_commit_request_partition_init(&partition);
	struct offset_commit_request_topic topic = {BYTES_LITERAL("alpha"), UUID_ZERO, &partition, 1};
	struct offset_commit_request in;
	offset_commit_request_init(&in);
	in.group_id = BYTES_LITERAL("g");
	in.member_id = live->id;
	in.generation_id_or_member_epoch = live->generation;
	in.topics = &topic;
	in.topics_len = 1;
	conn_send(c, api_key_offset_commit, 7, correlation_id, &in);
}

static void setup(void)
{
	rig = rig_new(50, 1, 16);
	c = rig_open(rig);
}

static void teardown(void)
{
	conn_free(c);
	rig_free(rig);
}

TestSuite(steady, .init = setup, .fini = teardown);

Test(steady, sees_a_rebalance_begin_and_a_new_generation)
{
	struct live live = form(c, BYTES_NULL);
	settle(&live);
	struct conn *d = rig_open(rig);
	send_join_as(d, 1, 2, BYTES_EMPTY); /* parked: a rebalance begins */
	cr_expect_eq(both(&live), ERROR_REBALANCE_IN_PROGRESS);
	conn_reset(d);
	struct join_group_response again = join_as(c, live.id, BYTES_NULL);
	cr_assert_eq(again.generation_id, live.generation + 1);
	cr_expect_eq(both(&live), ERROR_ILLEGAL_GENERATION);
	live.generation++;
	cr_expect_eq(both(&live), 0, "CompletingRebalance");
	sync(c, &live);
	settle(&live);
	conn_free(d);
}

Test(steady, sees_its_member_leave_and_the_slot_taken)
{
	struct live live = form(c, BYTES_NULL);
	settle(&live);
	leave(&live);
	cr_expect_eq(both(&live), ERROR_UNKNOWN_MEMBER_ID);
	struct conn *d = rig_open(rig);
	struct live next = form(d, BYTES_NULL); /* in the same slot */
	live.generation = next.generation;
	cr_expect_eq(both(&live), ERROR_UNKNOWN_MEMBER_ID);
	cr_expect_eq(both(&next), 0);
	cr_expect_eq(both(&live), ERROR_UNKNOWN_MEMBER_ID, "the memo is the other member's now");
	conn_free(d);
}

Test(steady, sees_its_member_expire)
{
	struct live live = form(c, BYTES_NULL);
	settle(&live);
	rig_advance(rig, 9990);
	cr_expect_eq(both(&live), 0, "and the session starts anew");
	rig_advance(rig, 9990);
	cr_expect_eq(both(&live), 0);
	rig_advance(rig, 10010);
	cr_expect_eq(both(&live), ERROR_UNKNOWN_MEMBER_ID);
}

Test(steady, sees_its_static_member_replaced)
{
	struct live live = form(c, BYTES_LITERAL("instance"));
	settle(&live);
	struct conn *d = rig_open(rig);
	struct live next = {join_as(d, BYTES_EMPTY, live.instance).member_id, live.instance, live.generation};
	cr_expect_eq(both(&live), ERROR_FENCED_INSTANCE_ID);
	cr_expect_eq(both(&next), 0);
	next.instance = BYTES_LITERAL("another");
	cr_expect_eq(both(&next), ERROR_UNKNOWN_MEMBER_ID);
	conn_free(d);
}

Test(steady, sees_the_server_stop)
{
	struct live live = form(c, BYTES_NULL);
	settle(&live);
	node_service_ops.stop(rig->node, rig->now);
	struct heartbeat_request in = {BYTES_LITERAL("g"), live.generation, live.id, BYTES_NULL};
	struct heartbeat_response out;
	conn_send(c, api_key_heartbeat, 4, 78, &in);
	conn_read(c, api_key_heartbeat, 4, 78, &out);
	cr_expect_eq(out.error_code, ERROR_COORDINATOR_NOT_AVAILABLE);
}

Test(steady, does_not_overtake_an_answer_that_is_owed)
{
	struct live live = form(c, BYTES_NULL);
	settle(&live);
	commit(&live, 5);
	struct heartbeat_request in = {BYTES_LITERAL("g"), live.generation, live.id, BYTES_NULL};
	struct heartbeat_response out;
	conn_send(c, api_key_heartbeat, 4, 6, &in);
	cr_expect_eq(conn_answers(c), 0, "the commit waits for the log");
	rig_advance(rig, 2);
	cr_expect_eq(read_commit(c, 5), 0);
	conn_read(c, api_key_heartbeat, 4, 6, &out);
	cr_expect_eq(out.error_code, 0);
}

Test(steady, counts_as_any_request)
{
	struct live live = form(c, BYTES_NULL);
	settle(&live);
	uint64_t requests = rig->stats.requests, responses = rig->stats.responses, heartbeats = rig->stats.group_heartbeats;
	cr_expect_eq(beat(c, 4, &live), 0);
	cr_expect_eq(rig->stats.requests, requests + 1);
	cr_expect_eq(rig->stats.responses, responses + 1);
	cr_expect_eq(rig->stats.group_heartbeats, heartbeats + 1);
}
