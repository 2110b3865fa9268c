/*
 * test_session.c - order of answers, holding frames back, parked requests and the end of their connection, over a fake engine.
 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "fake_shard.h"
#include "requests.h"

/* ---- order ---- */

Test(session, answers_at_once_leave_at_once_in_order)
{
	struct rig *rig = rig_new(4, 1, 8);
	struct conn *c = rig_open(rig);
	for (int32_t i = 0; i < 100; i++)
		send_heartbeat(c, 4, i, i);
	cr_assert_eq(conn_answers(c), 100);
	for (int32_t i = 0; i < 100; i++)
		cr_assert_eq(read_heartbeat(c, 4, i), i);
	cr_assert_eq(rig->stats.requests, 100);
	cr_assert_eq(rig->stats.responses, 100);
	cr_assert_eq(rig->stats.requests_parked_now, 0);
	conn_free(c);
	rig_free(rig);
}

Test(session, a_steady_heartbeat_ticks_no_shard)
{
	struct rig *rig = rig_new(50, 1, 8);
	struct conn *c = rig_open(rig);
	rig_round(rig);
	unsigned int before = fake.ticks;
	send_heartbeat(c, 4, 1, 0);
	cr_assert_eq(rig_round(rig), TIME_NEVER);
	cr_assert_eq(fake.ticks, before);
	send_join(c, 2);
	rig_round(rig);
	cr_assert_eq(fake.ticks, before + 1, "only the shard that got the join");
	conn_free(c);
	rig_free(rig);
}

Test(session, a_parked_join_holds_what_follows)
{
	struct rig *rig = rig_new(4, 1, 8);
	struct conn *c = rig_open(rig), *other = rig_open(rig);
	send_join(c, 1);
	send_metadata(c, 2);
	send_heartbeat(c, 3, 3, 0);
	rig_advance(rig, 50);
	cr_assert(c->held);
	cr_assert_eq(conn_answers(c), 0);
	cr_assert_eq(fake.heartbeats, 0, "the heartbeat must see the group after the join");
	cr_assert_eq(rig->stats.requests_parked_now, 1);
	send_heartbeat(other, 3, 9, 0);
	cr_assert_eq(read_heartbeat(other, 3, 9), 0, "another connection is not affected");
	fake_answer(0, 0, rig->now);
	cr_assert_not(c->held);
	cr_assert_eq(conn_answers(c), 1);
	cr_assert_eq(read_join(c, 1), 0);
	send_sync(c, 4); /* delivers what was held back, too */
	cr_assert_eq(read_metadata(c, 2), 1);
	cr_assert_eq(read_heartbeat(c, 3, 3), 0);
	cr_assert_eq(conn_answers(c), 0);
	fake_answer(1, ERROR_REBALANCE_IN_PROGRESS, rig->now);
	cr_assert_eq(read_sync(c, 4), ERROR_REBALANCE_IN_PROGRESS);
	cr_assert_eq(rig->stats.requests_parked_now, 0);
	conn_free(c);
	conn_free(other);
	rig_free(rig);
}

Test(session, requests_behind_a_commit_go_on_and_wait_for_their_turn)
{
	struct rig *rig = rig_new(4, 1, 8);
	struct conn *c = rig_open(rig);
	send_commit(c, 1);
	send_heartbeat(c, 0, 2, 22);
	send_commit(c, 3);
	send_metadata(c, 4);
	cr_assert_not(c->held);
	cr_assert_eq(fake.heartbeats, 1, "handled");
	cr_assert_eq(conn_answers(c), 0, "but not answered before the commit");
	fake_answer(1, 0, rig->now);
	cr_assert_eq(conn_answers(c), 0);
	fake_answer(0, ERROR_ILLEGAL_GENERATION, rig->now);
	cr_assert_eq(conn_answers(c), 4);
	cr_assert_eq(read_commit(c, 1), ERROR_ILLEGAL_GENERATION);
	cr_assert_eq(read_heartbeat(c, 0, 2), 22);
	cr_assert_eq(read_commit(c, 3), 0);
	cr_assert_eq(read_metadata(c, 4), 1);
	conn_free(c);
	rig_free(rig);
}

Test(session, a_bounded_number_of_unanswered_requests)
{
	struct rig *rig = rig_new(4, 1, 8);
	struct conn *c = rig_open(rig);
	for (int32_t i = 0; i < 100; i++)
		send_commit(c, i);
	cr_assert(c->held);
	cr_assert_eq(fake.parked_len, 64);
	fake_answer(0, 0, rig->now);
	cr_assert_not(c->held);
	send_commit(c, 100);
	cr_assert_eq(fake.parked_len, 65, "one left, one came");
	cr_assert(c->held);
	for (unsigned int i = 1; i < fake.parked_len; i++) {
		fake_answer(i, 0, rig->now);
		if (fake.parked_len < 101)
			send_metadata(c, 1000 + (int32_t)i); /* lets the channel deliver */
	}
	cr_assert_eq(fake.parked_len, 101);
	for (int32_t i = 0; i <= 100; i++)
		cr_assert_eq(read_commit(c, i), 0);
	conn_free(c);
	rig_free(rig);
}

Test(session, a_bounded_number_of_bytes_kept)
{
	struct rig *rig = rig_new(4, 1, 8);
	struct conn *c = rig_open(rig);
	struct produce_request_partition partitions[3000] = {{0}};
	struct produce_request_topic topic = {BYTES_LITERAL("alpha"), UUID_ZERO, partitions, 3000};
	struct produce_request in;
	produce_request_init(&in);
	in.acks = 1;
	in.topic_data = &topic;
	in.topic_data_len = 1;
	send_commit(c, 0);
	conn_send(c, api_key_produce, 8, 1, &in); /* its answer has some 400 kB */
	cr_assert(c->held);
	fake_answer(0, 0, rig->now);
	cr_assert_not(c->held);
	cr_assert_eq(read_commit(c, 0), 0);
	struct produce_response out;
	conn_read(c, api_key_produce, 8, 1, &out);
	cr_assert_eq(out.responses[0].partition_responses_len, 3000);
	conn_free(c);
	rig_free(rig);
}

/* The slab has a request per session and some more; whoever finds none waits for its own to be answered. */
Test(session, no_request_left_holds_frames_back)
{
	struct rig *rig = rig_new(4, 1, 2);
	struct conn *c[2] = {rig_open(rig), rig_open(rig)};
	cr_assert_null(rig_open(rig), "as many sessions as configured");
	cr_assert_eq(rig->stats.session_refused, 1);
	struct conn *gone[4];
	/* 4 times 64 commits whose connections go while they wait */
	for (unsigned int i = 0; i < 4; i++) {
		conn_free(c[1]);
		gone[i] = c[1] = rig_open(rig);
		cr_assert_not_null(gone[i]);
		for (int32_t n = 0; n < 63; n++)
			send_commit(c[1], n);
	}
	/* 252 of 260 are taken, one is set aside for each of the two sessions */
	cr_assert_not(c[1]->held);
	for (int32_t n = 0; n < 4 && !c[0]->held; n++)
		send_commit(c[0], n);
	while (!c[0]->held && fake.parked_len < FAKE_PARKED)
		send_commit(c[0], 100);
	cr_assert_eq(fake.parked_len, FAKE_PARKED);
	cr_assert_eq(rig->stats.requests_parked_now, 256);
	conn_reset(c[1]);
	for (unsigned int i = 0; i < FAKE_PARKED; i++)
		fake_answer(i, 0, rig->now);
	cr_assert_eq(rig->stats.requests_parked_now, 0);
	conn_free(c[0]);
	conn_free(c[1]);
	rig_free(rig);
}

/* ---- fetch ---- */

Test(session, a_fetch_waits_its_time_and_holds_what_follows)
{
	struct rig *rig = rig_new(4, 1, 8);
	struct conn *c = rig_open(rig);
	send_fetch(c, 1, "alpha", 500, 1);
	send_heartbeat(c, 3, 2, 0);
	cr_assert_eq(rig->stats.requests_parked_now, 1);
	rig_round(rig);
	uint64_t wish = rig_round(rig);
	cr_assert(wish > rig->now.us && wish <= rig->now.us + 500000, "the worker may sleep until it is due");
	rig_advance(rig, 499);
	cr_assert_eq(conn_answers(c), 0);
	cr_assert(c->held);
	rig_advance(rig, 1);
	cr_assert_eq(conn_answers(c), 1);
	cr_assert_eq(read_fetch(c, 1), 0);
	cr_assert_eq(rig->stats.requests_parked_now, 0);
	cr_assert_not(c->held);
	send_fetch(c, 3, "alpha", 60000, 1);
	cr_assert_eq(read_heartbeat(c, 3, 2), 0);
	rig_advance(rig, 4999);
	cr_assert_eq(conn_answers(c), 0);
	rig_advance(rig, 1);
	cr_assert_eq(read_fetch(c, 3), 0, "no longer than our limit");
	conn_free(c);
	rig_free(rig);
}

Test(session, a_fetch_that_need_not_wait)
{
	struct rig *rig = rig_new(4, 1, 8);
	struct conn *c = rig_open(rig);
	send_fetch(c, 1, "alpha", 0, 1);
	cr_assert_eq(read_fetch(c, 1), 0);
	send_fetch(c, 2, "alpha", 500, 0);
	cr_assert_eq(read_fetch(c, 2), 0);
	send_fetch(c, 3, "alpha", -1, 1);
	cr_assert_eq(read_fetch(c, 3), 0);
	send_fetch(c, 4, "nowhere", 500, 1);
	cr_assert_eq(read_fetch(c, 4), ERROR_UNKNOWN_TOPIC_OR_PARTITION);
	conn_free(c);
	rig_free(rig);
}

/* ---- the end of a connection ---- */

Test(session, a_reset_drops_a_parked_join)
{
	struct rig *rig = rig_new(4, 1, 8);
	struct conn *c = rig_open(rig);
	send_commit(c, 1);
	send_join(c, 2);
	conn_reset(c);
	cr_assert_eq(fake.dropped, 1);
	cr_assert_null(fake.parked[1]);
	cr_assert_eq(rig->stats.session_dropped, 1);
	cr_assert_eq(rig->stats.requests_parked_now, 1, "the commit still waits for its record");
	cr_assert_eq(rig->stats.session_closed, 1);
	fake_answer(0, 0, rig->now);
	cr_assert_eq(rig->stats.requests_parked_now, 0);
	cr_assert_eq(conn_answers(c), 0);
	conn_free(c);
	rig_free(rig);
}

Test(session, a_fin_drops_a_parked_join_and_lets_the_commit_be_answered)
{
	struct rig *rig = rig_new(4, 1, 8);
	struct conn *c = rig_open(rig);
	send_commit(c, 1);
	send_join(c, 2);
	send_heartbeat(c, 4, 3, 33);
	cr_assert(c->held);
	conn_fin(c);
	cr_assert_eq(fake.dropped, 1);
	cr_assert_not(c->held);
	cr_assert_eq(fake.heartbeats, 1, "what came before the FIN is still handled");
	cr_assert_not(c->closed, "the commit is not answered yet");
	fake_answer(0, 0, rig->now);
	cr_assert_eq(read_commit(c, 1), 0);
	cr_assert_eq(read_heartbeat(c, 4, 3), 33);
	cr_assert(c->want_close);
	conn_free(c);
	rig_free(rig);
}

Test(session, a_join_that_comes_before_a_fin_but_is_delivered_after_is_dropped)
{
	struct rig *rig = rig_new(4, 1, 8);
	struct conn *c = rig_open(rig);
	send_join(c, 1);
	send_join(c, 2);
	send_fetch(c, 3, "alpha", 500, 1);
	conn_fin(c);
	cr_assert_eq(fake.dropped, 2);
	cr_assert_eq(read_fetch(c, 3), 0, "a fetch can be answered at once");
	cr_assert(c->closed);
	cr_assert_eq(rig->stats.requests_parked_now, 0);
	conn_free(c);
	rig_free(rig);
}

Test(session, a_fin_of_an_idle_connection_closes_it)
{
	struct rig *rig = rig_new(4, 1, 8);
	struct conn *c = rig_open(rig);
	send_metadata(c, 1);
	conn_fin(c);
	cr_assert(c->closed);
	cr_assert_not(c->aborted);
	cr_assert_eq(read_metadata(c, 1), 1);
	conn_free(c);
	rig_free(rig);
}

Test(session, a_parked_fetch_is_forgotten_with_its_connection)
{
	struct rig *rig = rig_new(4, 1, 8);
	struct conn *c = rig_open(rig), *d = rig_open(rig);
	send_fetch(c, 1, "alpha", 500, 1);
	send_fetch(d, 1, "alpha", 500, 1);
	conn_reset(c);
	conn_fin(d);
	cr_assert(d->closed);
	cr_assert_eq(rig->stats.requests_parked_now, 0);
	rig_advance(rig, 600);
	cr_assert_eq(conn_answers(d), 0);
	conn_free(c);
	conn_free(d);
	rig_free(rig);
}

/* ---- durability ---- */

Test(session, an_offset_fetch_sees_the_commits_before_it)
{
	struct rig *rig = rig_new(4, 1, 8);
	struct conn *c = rig_open(rig);
	send_offset_fetch(c, 1, "g");
	send_heartbeat(c, 3, 2, 0);
	cr_assert_eq(fake.heartbeats, 1, "later requests go on");
	cr_assert_eq(conn_answers(c), 0);
	cr_assert_eq(rig->stats.requests_parked_now, 1);
	fake_offset("g", "alpha", 0, 42, "m");
	fake_pass(rig->now);
	cr_assert_eq(conn_answers(c), 0, "not inside of the shard's work");
	rig_round(rig);
	cr_assert_eq(read_offset_fetch(c, 1), 42);
	cr_assert_eq(read_heartbeat(c, 3, 2), 0);
	fake.durable = true;
	send_offset_fetch(c, 3, "g");
	cr_assert_eq(read_offset_fetch(c, 3), 42, "at once when nothing is on its way");
	conn_free(c);
	rig_free(rig);
}

Test(session, an_offset_fetch_of_many_groups_waits_for_each)
{
	struct rig *rig = rig_new(4, 1, 8);
	struct conn *c = rig_open(rig);
	int32_t partition = 0;
	struct offset_fetch_request_topics topics = {BYTES_LITERAL("alpha"), UUID_ZERO, &partition, 1};
	struct offset_fetch_request_group groups[3];
	for (unsigned int i = 0; i < 3; i++) {
		offset_fetch_request_group_init(&groups[i]);
		groups[i].topics = &topics;
		groups[i].topics_len = 1;
	}
	groups[0].group_id = BYTES_LITERAL("g0");
	groups[1].group_id = BYTES_LITERAL("g1");
	groups[2].group_id = BYTES_LITERAL("g2");
	struct offset_fetch_request in;
	offset_fetch_request_init(&in);
	in.groups = groups;
	in.groups_len = 3;
	conn_send(c, api_key_offset_fetch, 8, 5, &in);
	fake_offset("g2", "alpha", 0, 9, "");
	for (unsigned int i = 0; i < 3; i++) {
		cr_assert_eq(conn_answers(c), 0);
		cr_assert_not_null(fake.barriers);
		fake_pass(rig->now);
		rig_round(rig);
	}
	struct offset_fetch_response out;
	conn_read(c, api_key_offset_fetch, 8, 5, &out);
	cr_assert_eq(out.groups_len, 3);
	cr_assert_eq(out.groups[1].topics[0].partitions[0].committed_offset, -1);
	cr_assert_eq(out.groups[2].topics[0].partitions[0].committed_offset, 9);
	cr_assert_eq(rig->stats.requests_parked_now, 0);
	conn_free(c);
	rig_free(rig);
}

Test(session, a_waiting_offset_fetch_survives_a_fin_and_not_a_reset)
{
	struct rig *rig = rig_new(4, 1, 8);
	struct conn *c = rig_open(rig), *d = rig_open(rig), *e = rig_open(rig);
	send_offset_fetch(c, 1, "g");
	send_offset_fetch(d, 1, "g");
	send_offset_fetch(e, 1, "g");
	conn_reset(c);
	cr_assert_eq(fake.cancelled, 1);
	conn_fin(d);
	cr_assert_not(d->closed);
	fake_pass(rig->now);
	conn_reset(e); /* passed, but not run again yet */
	rig_round(rig);
	cr_assert_eq(read_offset_fetch(d, 1), -1);
	cr_assert(d->want_close);
	cr_assert_eq(rig->stats.requests_parked_now, 0);
	conn_free(c);
	conn_free(d);
	conn_free(e);
	rig_free(rig);
}

/* ---- stopping ---- */

Test(session, stop_answers_what_waits)
{
	struct rig *rig = rig_new(4, 1, 8);
	struct conn *join = rig_open(rig), *sync = rig_open(rig), *fetch = rig_open(rig), *commit = rig_open(rig);
	send_join(join, 1);
	send_sync(sync, 2);
	send_fetch(fetch, 3, "alpha", 500, 1);
	send_commit(commit, 4);
	cr_assert_not(node_service_ops.stop(rig->node, rig->now), "the commit waits for its record");
	cr_assert_eq(read_join(join, 1), ERROR_NOT_COORDINATOR);
	cr_assert_eq(read_sync(sync, 2), ERROR_NOT_COORDINATOR);
	cr_assert_eq(read_fetch(fetch, 3), 0);
	cr_assert_null(rig_open(rig), "no new connection");
	fake_answer(2, 0, rig->now);
	cr_assert_eq(read_commit(commit, 4), 0);
	cr_assert(node_service_ops.stop(rig->node, rig->now));
	send_join(join, 5);
	cr_assert(node_service_ops.stop(rig->node, rig->now));
	cr_assert_eq(read_join(join, 5), ERROR_NOT_COORDINATOR);
	send_fetch(fetch, 6, "alpha", 500, 1);
	cr_assert_eq(read_fetch(fetch, 6), 0);
	cr_assert(node_service_ops.stop(rig->node, rig->now));
	conn_free(join);
	conn_free(sync);
	conn_free(fetch);
	conn_free(commit);
	rig_free(rig);
}

/* ---- bad input ---- */

/* Sends a frame on a fresh connection that must be reset for it, counted once in `counter`. */
static void reset_for(struct rig *rig, const void *frame, size_t len, const uint64_t *counter)
{
	uint64_t before = *counter;
	struct conn *c = rig_open(rig);
	conn_raw(c, frame, len);
	cr_assert(c->closed && c->aborted);
	cr_assert_eq(conn_answers(c), 0);
	cr_assert_eq(*counter, before + 1);
	conn_free(c);
}

#define RESET_FOR(rig, counter, ...)                                           \
	do {                                                                   \
		const uint8_t frame[] = {__VA_ARGS__};                         \
		reset_for(rig, frame, sizeof(frame), &(rig)->stats.counter); \
	} while (0)

Test(session, malformed_frames_reset_their_connection)
{
	struct rig *rig = rig_new(4, 1, 8);
	RESET_FOR(rig, session_bad_header, 0);
	RESET_FOR(rig, session_bad_header, 0, 12, 0, 4, 0, 0, 0);		     /* cut off in the correlation id */
	RESET_FOR(rig, session_bad_header, 0, 12, 0, 3, 0, 0, 0, 1, 0, 5, 'a');      /* client id cut off */
	RESET_FOR(rig, session_bad_header, 0, 12, 0, 4, 0, 0, 0, 1, 0xff, 0xff, 0x80); /* tagged fields cut off */
	RESET_FOR(rig, session_unknown_api, 0, 99, 0, 0, 0, 0, 0, 1, 0xff, 0xff);
	RESET_FOR(rig, session_unknown_api, 0xff, 0xff, 0, 0, 0, 0, 0, 1, 0xff, 0xff);
	RESET_FOR(rig, session_bad_version, 0, 12, 0, 5, 0, 0, 0, 1, 0xff, 0xff);
	RESET_FOR(rig, session_bad_version, 0, 12, 0xff, 0xff, 0, 0, 0, 1, 0xff, 0xff);
	RESET_FOR(rig, session_bad_request, 0, 12, 0, 0, 0, 0, 0, 1, 0xff, 0xff);    /* no body */
	RESET_FOR(rig, session_bad_request, 0, 12, 0, 0, 0, 0, 0, 1, 0xff, 0xff, 0, 9, 'g');
	/* Metadata v1 with 2^31 - 1 topics */
	RESET_FOR(rig, session_bad_request, 0, 3, 0, 1, 0, 0, 0, 1, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff);
	/* Metadata v0 with null topics, which it cannot have */
	RESET_FOR(rig, session_bad_request, 0, 3, 0, 0, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff);
	cr_assert_eq(rig->stats.requests, 12);
	cr_assert_eq(rig->stats.responses, 0);
	cr_assert_eq(rig->stats.session_opened, rig->stats.session_closed);
	rig_free(rig);
}

Test(session, bytes_behind_a_request_are_ignored)
{
	struct rig *rig = rig_new(4, 1, 8);
	struct conn *c = rig_open(rig);
	const uint8_t frame[] = {0, 12, 0, 0, 0, 0, 0, 7, 0xff, 0xff, 0, 1, 'g', 0, 0, 0, 5, 0, 1, 'm', 'x', 'x', 'x'};
	conn_raw(c, frame, sizeof(frame));
	cr_assert_eq(read_heartbeat(c, 0, 7), 5);
	conn_free(c);
	rig_free(rig);
}

Test(session, a_reset_for_a_bad_frame_drops_what_was_parked)
{
	struct rig *rig = rig_new(4, 1, 8);
	struct conn *c = rig_open(rig);
	send_commit(c, 1);
	const uint8_t frame[] = {0, 99, 0, 0, 0, 0, 0, 1, 0xff, 0xff};
	conn_raw(c, frame, sizeof(frame));
	cr_assert(c->closed && c->aborted);
	fake_answer(0, 0, rig->now);
	cr_assert_eq(conn_answers(c), 0);
	cr_assert_eq(rig->stats.requests_parked_now, 0);
	conn_free(c);
	rig_free(rig);
}

/* A request whose arrays do not fit the usual arena: decoded again with a larger one. */
Test(session, a_large_request_is_served)
{
	struct rig *rig = rig_new(4, 1, 8);
	struct conn *c = rig_open(rig);
	const int32_t n = 100000;
	struct bytes *keys = calloc((size_t)n, sizeof(*keys));
	for (int32_t i = 0; i < n; i++)
		keys[i] = BYTES_LITERAL("k");
	struct find_coordinator_request in;
	find_coordinator_request_init(&in);
	in.coordinator_keys = keys;
	in.coordinator_keys_len = n;
	conn_send(c, api_key_find_coordinator, 4, 1, &in);
	struct find_coordinator_response out;
	conn_read(c, api_key_find_coordinator, 4, 1, &out);
	cr_assert_eq(out.coordinators_len, n);
	cr_assert_eq(out.coordinators[n - 1].port, 19092);
	rig_round(rig);
	send_heartbeat(c, 4, 2, 0);
	cr_assert_eq(read_heartbeat(c, 4, 2), 0);
	free(keys);
	conn_free(c);
	rig_free(rig);
}

/* Some 130 MB of answer for a request of 3 MB. */
Test(session, a_request_that_needs_too_much_memory_is_refused)
{
	struct rig *rig = rig_new(4, 1, 8);
	struct conn *c = rig_open(rig), *other = rig_open(rig);
	const int32_t n = 300000;
	struct metadata_request_topic *topics = calloc((size_t)n, sizeof(*topics));
	for (int32_t i = 0; i < n; i++)
		topics[i].name = BYTES_LITERAL("alpha");
	struct metadata_request in;
	metadata_request_init(&in);
	in.topics = topics;
	in.topics_len = n;
	conn_send(c, api_key_metadata, 8, 1, &in);
	cr_assert(c->closed && c->aborted);
	cr_assert_eq(rig->stats.session_no_memory, 1);
	send_metadata(other, 2);
	cr_assert_eq(read_metadata(other, 2), 1);
	free(topics);
	conn_free(c);
	conn_free(other);
	rig_free(rig);
}

/* Produce without acks has no answer; the connection is closed, after the earlier answers. */
Test(session, a_refused_request_closes_in_its_turn)
{
	struct rig *rig = rig_new(4, 1, 8);
	struct conn *c = rig_open(rig);
	struct produce_request in;
	produce_request_init(&in);
	send_commit(c, 1);
	conn_send(c, api_key_produce, 8, 2, &in);
	cr_assert_not(c->want_close);
	send_heartbeat(c, 3, 3, 0);
	fake_answer(0, 0, rig->now);
	cr_assert(c->want_close);
	cr_assert_eq(read_commit(c, 1), 0);
	cr_assert_eq(conn_answers(c), 0, "nothing behind the refusal");
	conn_free(c);
	rig_free(rig);
}
