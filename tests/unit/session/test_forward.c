/*
 * test_forward.c - requests that come to a worker which does not own their group, over the real engine: every API, closes at every point, too much at
 * once, and random interleavings of all of it.
 */
#define _GNU_SOURCE /* memmem */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "coordinator/forward.h"
#include "host.h"

/* ---- requests about a group by name; the answers are read after everything has settled ---- */

static void join_in(int16_t version, struct conn *c, int32_t id, const char *group, struct bytes member, int32_t rebalance_ms)
{
	struct join_group_request_protocol protocol = {BYTES_LITERAL("range"), BYTES_LITERAL("meta")};
	struct join_group_request in;
	join_group_request_init(&in);
	in.group_id = bytes_str(group);
	in.member_id = member;
	in.session_timeout_ms = 10000;
	in.rebalance_timeout_ms = rebalance_ms;
	in.protocol_type = BYTES_LITERAL("consumer");
	in.protocols = &protocol;
	in.protocols_len = 1;
	conn_send(c, api_key_join_group, version, id, &in);
}

static void join_as(struct conn *c, int32_t id, const char *group, struct bytes member, int32_t rebalance_ms)
{
	join_in(7, c, id, group, member, rebalance_ms);
}

static struct join_group_response joined(struct conn *c, int32_t id)
{
	struct join_group_response out;
	conn_read(c, api_key_join_group, 7, id, &out);
	return out;
}

static void sync_as(struct conn *c, int32_t id, const char *group, const struct join_group_response *join)
{
	struct sync_group_request_assignment assignment = {join->member_id, BYTES_LITERAL("all")};
	struct sync_group_request in;
	sync_group_request_init(&in);
	in.group_id = bytes_str(group);
	in.member_id = join->member_id;
	in.generation_id = join->generation_id;
	in.protocol_type = BYTES_LITERAL("consumer");
	in.protocol_name = BYTES_LITERAL("range");
	in.assignments = &assignment;
	in.assignments_len = 1;
	conn_send(c, api_key_sync_group, 5, id, &in);
}

static void beat_as(struct conn *c, int32_t id, const char *group, const struct join_group_response *join)
{
	struct heartbeat_request in;
	heartbeat_request_init(&in);
	in.group_id = bytes_str(group);
	in.member_id = join->member_id;
	in.generation_id = join->generation_id;
	conn_send(c, api_key_heartbeat, 4, id, &in);
}

static int16_t beaten(struct conn *c, int32_t id)
{
	return read_heartbeat(c, 4, id);
}

static void leave_as(struct conn *c, int32_t id, const char *group, struct bytes member)
{
	struct leave_group_request_member who = {member, BYTES_NULL, BYTES_NULL};
	struct leave_group_request in;
	leave_group_request_init(&in);
	in.group_id = bytes_str(group);
	in.members = &who;
	in.members_len = 1;
	conn_send(c, api_key_leave_group, 4, id, &in);
}

/* A simple consumer's commit, of partition 0 of "alpha". */
static void commit_to(struct conn *c, int32_t id, const char *group, int64_t offset)
{
	struct offset_commit_request_partition partition;
	offset_commit_request_partition_init(&partition);
	partition.committed_offset = offset;
	struct offset_commit_request_topic topic = {BYTES_LITERAL("alpha"), UUID_ZERO, &partition, 1};
	struct offset_commit_request in;
	offset_commit_request_init(&in);
	in.group_id = bytes_str(group);
	in.topics = &topic;
	in.topics_len = 1;
	conn_send(c, api_key_offset_commit, 7, id, &in);
}

static void delete_offset(struct conn *c, int32_t id, const char *group)
{
	struct offset_delete_request_partition partition = {0};
	struct offset_delete_request_topic topic = {BYTES_LITERAL("alpha"), &partition, 1};
	struct offset_delete_request in = {bytes_str(group), &topic, 1};
	conn_send(c, api_key_offset_delete, 0, id, &in);
}

static void describe(struct conn *c, int32_t id, const struct bytes *groups, int32_t n)
{
	struct describe_groups_request in;
	describe_groups_request_init(&in);
	in.groups = groups;
	in.groups_len = n;
	conn_send(c, api_key_describe_groups, 5, id, &in);
}

static void list(struct conn *c, int32_t id)
{
	struct list_groups_request in;
	list_groups_request_init(&in);
	conn_send(c, api_key_list_groups, 4, id, &in);
}

static void delete_groups(struct conn *c, int32_t id, const struct bytes *groups, int32_t n)
{
	struct delete_groups_request in = {groups, n};
	conn_send(c, api_key_delete_groups, 2, id, &in);
}

static void fetch_many(struct conn *c, int32_t id, const struct bytes *groups, int32_t n)
{
	struct offset_fetch_request_group list_of[64];
	struct offset_fetch_request in;
	offset_fetch_request_init(&in);
	cr_assert_leq(n, 64);
	for (int32_t i = 0; i < n; i++) {
		offset_fetch_request_group_init(&list_of[i]);
		list_of[i].group_id = groups[i];
		list_of[i].topics_len = -1;
	}
	in.groups = list_of;
	in.groups_len = n;
	conn_send(c, api_key_offset_fetch, 8, id, &in);
}

/* A member of a group of one, joined and synced over this connection. */
static struct join_group_response live_on(struct host *host, struct conn *c, const char *group)
{
	join_as(c, 1, group, BYTES_EMPTY, 60000);
	host_settle(host);
	struct join_group_response first = joined(c, 1);
	cr_assert_eq(first.error_code, ERROR_MEMBER_ID_REQUIRED);
	join_as(c, 2, group, first.member_id, 60000);
	host_advance(host, 2);
	struct join_group_response join = joined(c, 2);
	cr_assert_eq(join.error_code, 0);
	sync_as(c, 3, group, &join);
	host_settle(host);
	struct sync_group_response sync;
	conn_read(c, api_key_sync_group, 5, 3, &sync);
	cr_assert_eq(sync.error_code, 0);
	cr_assert(bytes_equal(sync.assignment, BYTES_LITERAL("all")));
	return join;
}

/* ---- every API at the wrong worker ---- */

static void consumer_s_life(struct host *host, unsigned int at, unsigned int owner)
{
	char group[32];
	host_group(host, owner, 10 * at, group);
	struct conn *c = rig_open(host->rigs[at]);
	struct join_group_response join = live_on(host, c, group);
	cr_assert_not_null(memmem(join.member_id.p, (size_t)join.member_id.len, "test-client", 11), "the client id came along");
	beat_as(c, 4, group, &join);
	host_settle(host);
	cr_assert_eq(beaten(c, 4), 0);
	commit_to(c, 5, group, 41);
	send_offset_fetch(c, 6, group); /* pipelined: sees the commit */
	host_settle(host);
	cr_assert_eq(read_commit(c, 5), ERROR_UNKNOWN_MEMBER_ID, "nobody may commit past the members");
	cr_assert_eq(read_offset_fetch(c, 6), -1);
	leave_as(c, 7, group, join.member_id);
	commit_to(c, 8, group, 42);
	send_offset_fetch(c, 9, group);
	host_settle(host);
	struct leave_group_response left;
	conn_read(c, api_key_leave_group, 4, 7, &left);
	cr_assert_eq(left.error_code, 0);
	cr_assert_eq(read_commit(c, 8), 0);
	cr_assert_eq(read_offset_fetch(c, 9), 42);
	delete_offset(c, 10, group);
	send_offset_fetch(c, 11, group);
	host_settle(host);
	struct offset_delete_response deleted;
	conn_read(c, api_key_offset_delete, 0, 10, &deleted);
	cr_assert_eq(deleted.error_code, 0);
	cr_assert_eq(read_offset_fetch(c, 11), -1);
	conn_free(c);
}

Test(forward, a_consumer_s_life_at_every_worker)
{
	struct host *host = host_new(HOST_WORKERS, 16);
	for (unsigned int at = 0; at < HOST_WORKERS; at++)
		for (unsigned int owner = 0; owner < HOST_WORKERS; owner++)
			consumer_s_life(host, at, owner);
	cr_assert_gt(host->kinds[FORWARD_REQUEST], 100);
	for (unsigned int w = 0; w < HOST_WORKERS; w++)
		cr_assert_gt(host->rigs[w]->stats.forward_served, 0);
	host_free(host);
}

Test(forward, own_groups_send_no_mail)
{
	struct host *host = host_new(2, 16);
	consumer_s_life(host, 1, 1);
	cr_assert_eq(host->longest, 0);
	host_free(host);
}

/* ---- groups of several workers in one request ---- */

#define PER_WORKER 3
#define GROUPS (PER_WORKER * HOST_WORKERS)

struct groups {
	char names[GROUPS][32];
	struct bytes ids[GROUPS]; /* the owners in turn */
};

/* Group i has the offset 100 + i committed. */
static void make_groups(struct host *host, struct groups *groups)
{
	struct conn *c = rig_open(host->rigs[0]);
	for (int32_t i = 0; i < GROUPS; i++) {
		groups->ids[i] = bytes_str(host_group(host, (unsigned int)i % HOST_WORKERS, (unsigned int)i / HOST_WORKERS, groups->names[i]));
		commit_to(c, i, groups->names[i], 100 + i);
	}
	host_settle(host);
	for (int32_t i = 0; i < GROUPS; i++)
		cr_assert_eq(read_commit(c, i), 0);
	conn_free(c);
}

Test(forward, several_groups_are_put_together_in_the_order_of_the_request)
{
	struct host *host = host_new(HOST_WORKERS, 16);
	struct groups groups;
	make_groups(host, &groups);
	for (unsigned int at = 0; at < HOST_WORKERS; at++) {
		struct conn *c = rig_open(host->rigs[at]);
		fetch_many(c, 1, groups.ids, GROUPS);
		describe(c, 2, groups.ids, GROUPS);
		list(c, 3);
		host_settle(host);
		struct offset_fetch_response fetched;
		conn_read(c, api_key_offset_fetch, 8, 1, &fetched);
		cr_assert_eq(fetched.groups_len, GROUPS);
		struct describe_groups_response described;
		conn_read(c, api_key_describe_groups, 5, 2, &described);
		cr_assert_eq(described.groups_len, GROUPS);
		for (int32_t i = 0; i < GROUPS; i++) {
			cr_assert(bytes_equal(fetched.groups[i].group_id, groups.ids[i]));
			cr_assert_eq(fetched.groups[i].topics_len, 1);
			cr_assert_eq(fetched.groups[i].topics[0].partitions[0].committed_offset, 100 + i);
			cr_assert(bytes_equal(described.groups[i].group_id, groups.ids[i]));
			cr_assert(bytes_equal(described.groups[i].group_state, BYTES_LITERAL("Empty")));
		}
		struct list_groups_response listed;
		conn_read(c, api_key_list_groups, 4, 3, &listed);
		cr_assert_eq(listed.groups_len, GROUPS, "%d groups", listed.groups_len);
		conn_free(c);
	}
	host_free(host);
}

Test(forward, deletion_goes_to_every_owner_once_for_each_name)
{
	struct host *host = host_new(HOST_WORKERS, 16);
	struct groups groups;
	struct bytes names[2 * GROUPS + 1];
	make_groups(host, &groups);
	for (int32_t i = 0; i < GROUPS; i++)
		names[2 * i] = names[2 * i + 1] = groups.ids[i];
	names[2 * GROUPS] = BYTES_LITERAL("nobody's");
	struct conn *c = rig_open(host->rigs[2]);
	delete_groups(c, 1, names, 2 * GROUPS + 1);
	send_heartbeat(c, 4, 2, 5);
	cr_assert(c->held, "what comes behind waits");
	cr_assert_eq(c->last - c->first, 1);
	host_settle(host);
	struct delete_groups_response out;
	conn_read(c, api_key_delete_groups, 2, 1, &out);
	cr_assert_eq(out.results_len, GROUPS + 1);
	for (int32_t i = 0; i < GROUPS; i++) {
		cr_assert(bytes_equal(out.results[i].group_id, groups.ids[i]));
		cr_assert_eq(out.results[i].error_code, 0);
	}
	cr_assert_eq(out.results[GROUPS].error_code, ERROR_GROUP_ID_NOT_FOUND);
	cr_assert_eq(beaten(c, 2), ERROR_UNKNOWN_MEMBER_ID);
	list(c, 3);
	host_settle(host);
	struct list_groups_response listed;
	conn_read(c, api_key_list_groups, 4, 3, &listed);
	cr_assert_eq(listed.groups_len, 0);
	conn_free(c);
	host_free(host);
}

/* An answer that fits into no forward, and one that wants a larger arena at the asker. */
Test(forward, large_answers)
{
	struct host *host = host_new(2, 16);
	struct conn *c = rig_open(host->rigs[0]);
	char metadata[4000], group[32];
	memset(metadata, 'm', sizeof(metadata));
	for (int32_t i = 0; i < 400; i++) {
		struct offset_commit_request_partition partition;
		offset_commit_request_partition_init(&partition);
		partition.committed_offset = i;
		partition.committed_metadata = bytes_of(metadata, sizeof(metadata));
		struct offset_commit_request_topic topic = {BYTES_LITERAL("alpha"), UUID_ZERO, &partition, 1};
		struct offset_commit_request in;
		offset_commit_request_init(&in);
		in.group_id = bytes_str(host_group(host, 1, (unsigned int)i % 60, group));
		in.topics = &topic;
		in.topics_len = 1;
		conn_send(c, api_key_offset_commit, 7, i, &in);
		host_settle(host);
		cr_assert_eq(read_commit(c, i), 0);
	}
	char names[60][32];
	struct bytes ids[60];
	for (unsigned int i = 0; i < 60; i++)
		ids[i] = bytes_str(host_group(host, 1, i, names[i]));
	for (unsigned int i = 0; i < 3; i++) {
		fetch_many(c, 1000, ids, 60);
		host_settle(host);
		struct offset_fetch_response out;
		conn_read(c, api_key_offset_fetch, 8, 1000, &out);
		cr_assert_eq(out.groups_len, 60);
		for (int32_t g = 0; g < 60; g++)
			cr_assert_eq(out.groups[g].topics[0].partitions[0].metadata.len, (int32_t)sizeof(metadata));
	}
	cr_assert_eq(host->kinds[FORWARD_RELEASE], 3);
	conn_free(c);
	host_free(host);
}

/* ---- order ---- */

Test(forward, answers_leave_in_the_order_of_the_requests)
{
	struct host *host = host_new(HOST_WORKERS, 16);
	struct groups groups;
	make_groups(host, &groups);
	struct conn *c = rig_open(host->rigs[0]);
	for (int32_t i = 0; i < GROUPS; i++) {
		send_offset_fetch(c, 2 * i, groups.names[GROUPS - 1 - i]);
		send_metadata(c, 2 * i + 1);
	}
	cr_assert_not(c->held, "single groups are pipelined");
	/* the last owner answers first */
	for (unsigned int w = HOST_WORKERS; w-- > 1;) {
		while (host_deliver(host, 0, w))
			rig_round(host->rigs[w]);
		rig_round(host->rigs[w]);
		while (host_deliver(host, w, 0))
			;
	}
	host_settle(host);
	for (int32_t i = 0; i < GROUPS; i++) {
		cr_assert_eq(read_offset_fetch(c, 2 * i), 100 + GROUPS - 1 - i);
		cr_assert_eq(read_metadata(c, 2 * i + 1), HOST_WORKERS);
	}
	conn_free(c);
	host_free(host);
}

Test(forward, nothing_is_read_behind_a_join_that_waits_elsewhere)
{
	struct host *host = host_new(2, 16);
	char group[32];
	host_group(host, 1, 0, group);
	struct conn *c = rig_open(host->rigs[1]), *d = rig_open(host->rigs[0]);
	struct join_group_response join = live_on(host, c, group);
	join_as(d, 1, group, BYTES_EMPTY, 60000);
	host_settle(host);
	struct bytes id = joined(d, 1).member_id;
	join_as(d, 2, group, id, 60000);
	send_metadata(d, 3);
	cr_assert(d->held);
	host_settle(host);
	cr_assert_eq(conn_answers(d), 0, "the other member has not joined again");
	join_as(c, 9, group, join.member_id, 60000);
	host_advance(host, 2);
	cr_assert_eq(joined(c, 9).members_len, 2);
	cr_assert_eq(joined(d, 2).error_code, 0);
	cr_assert_eq(read_metadata(d, 3), 2);
	conn_free(c);
	conn_free(d);
	host_free(host);
}

/* ---- closes ---- */

/* A join that waits at the owner is forgotten there when its connection goes, by reset or by FIN. */
Test(forward, a_parked_join_goes_with_its_connection)
{
	for (unsigned int fin = 0; fin < 2; fin++) {
		struct host *host = host_new(2, 16);
		char group[32];
		host_group(host, 1, 0, group);
		struct conn *c = rig_open(host->rigs[1]), *d = rig_open(host->rigs[0]);
		struct join_group_response join = live_on(host, c, group);
		join_in(2, d, 1, group, BYTES_EMPTY, 60000); /* an old client: member at once, and nobody has told it its id */
		host_settle(host);
		beat_as(c, 8, group, &join);
		host_settle(host);
		cr_assert_eq(beaten(c, 8), ERROR_REBALANCE_IN_PROGRESS);
		if (fin)
			conn_fin(d);
		else
			conn_reset(d);
		host_settle(host);
		cr_assert_eq(host->rigs[1]->stats.forward_cancelled, 1);
		join_as(c, 9, group, join.member_id, 60000);
		host_advance(host, 2);
		cr_assert_eq(joined(c, 9).members_len, 1, "it is not waited for");
		conn_free(c);
		conn_free(d);
		host_free(host);
	}
}

/* B36 between workers: the owner gets to the join of a client that is gone only after that client's next one, which came by another worker. */
Test(forward, a_join_whose_connection_has_gone_is_not_run)
{
	for (unsigned int fin = 0; fin < 2; fin++) {
		struct host *host = host_new(2, 16);
		char group[32];
		host_group(host, 1, 0, group);
		struct conn *c = rig_open(host->rigs[1]), *d = rig_open(host->rigs[0]);
		struct join_group_response join = live_on(host, c, group);
		join_in(2, d, 1, group, BYTES_EMPTY, 60000);
		if (fin)
			conn_fin(d);
		else
			conn_reset(d);
		host_settle(host);
		beat_as(c, 8, group, &join);
		host_settle(host);
		cr_expect_eq(beaten(c, 8), ERROR_NONE, "nobody noticed it");
		conn_free(c);
		conn_free(d);
		host_free(host);
	}
}

/* What needs no event is answered after the client's FIN, as at its own worker. */
Test(forward, a_commit_is_answered_after_fin)
{
	struct host *host = host_new(2, 16);
	char group[32];
	struct conn *c = rig_open(host->rigs[0]);
	commit_to(c, 1, host_group(host, 1, 0, group), 7);
	conn_fin(c);
	cr_assert_not(c->closed);
	host_settle(host);
	cr_assert_eq(read_commit(c, 1), 0);
	cr_assert(c->closed && !c->aborted);
	conn_free(c);
	host_free(host);
}

typedef void send_fn(struct host *host, struct conn *c, const struct groups *groups);

static void send_one_join(struct host *host, struct conn *c, const struct groups *groups)
{
	join_as(c, 1, groups->names[1], BYTES_EMPTY, 60000);
}

static void send_one_commit(struct host *host, struct conn *c, const struct groups *groups)
{
	commit_to(c, 1, groups->names[2], 5);
}

static void send_a_fetch(struct host *host, struct conn *c, const struct groups *groups)
{
	fetch_many(c, 1, groups->ids, GROUPS);
}

static void send_a_list(struct host *host, struct conn *c, const struct groups *groups)
{
	list(c, 1);
}

static void send_a_deletion(struct host *host, struct conn *c, const struct groups *groups)
{
	delete_groups(c, 1, groups->ids, GROUPS);
}

static void send_all_at_once(struct host *host, struct conn *c, const struct groups *groups)
{
	for (int32_t i = 0; i < GROUPS; i++)
		send_offset_fetch(c, i, groups->names[i]);
	send_one_commit(host, c, groups);
	send_a_fetch(host, c, groups);
	send_one_join(host, c, groups);
	send_metadata(c, 9);
}

/* After each number of steps (messages and rounds, one worker after the other), by reset and by FIN. What is left must serve on. */
static void close_at_every_point(send_fn *send)
{
	bool more = true;
	for (unsigned int steps = 0; more; steps++) {
		for (unsigned int fin = 0; fin < 2; fin++) {
			struct host *host = host_new(HOST_WORKERS, 16);
			struct groups groups;
			make_groups(host, &groups);
			struct conn *c = rig_open(host->rigs[0]);
			send(host, c, &groups);
			unsigned int idle = 0;
			for (unsigned int i = 0; i < steps && idle < 2 * HOST_WORKERS * HOST_WORKERS; i++) {
				unsigned int from = i % HOST_WORKERS, to = i / HOST_WORKERS % HOST_WORKERS;
				bool moved = from != to && host_deliver(host, from, to);
				if (!moved)
					rig_round(host->rigs[to]);
				idle = moved ? 0 : idle + 1;
			}
			more = steps < 16 || idle < 2 * HOST_WORKERS * HOST_WORKERS;
			if (fin)
				conn_fin(c);
			else
				conn_reset(c);
			host_settle(host);
			struct conn *d = rig_open(host->rigs[0]);
			for (unsigned int w = 0; w < HOST_WORKERS; w++)
				send_offset_fetch(d, (int32_t)w, groups.names[w]);
			host_settle(host);
			for (unsigned int w = 0; w < HOST_WORKERS; w++)
				read_offset_fetch(d, (int32_t)w);
			conn_free(c);
			conn_free(d);
			host_free(host);
		}
	}
}

Test(forward, closes_at_every_point_of_one_request)
{
	close_at_every_point(send_one_join);
	close_at_every_point(send_one_commit);
}

Test(forward, closes_at_every_point_of_several)
{
	close_at_every_point(send_a_fetch);
	close_at_every_point(send_a_list);
	close_at_every_point(send_a_deletion);
	close_at_every_point(send_all_at_once);
}

/* ---- too much at once ---- */

/* More requests than may be under way, to an owner that does not read: their connections wait, and all of them are answered in the end. */
Test(forward, too_many_wait_and_none_is_lost)
{
	enum { CONNS = 40, EACH = 20 };
	struct host *host = host_new(2, CONNS);
	struct conn *conns[CONNS];
	char group[32];
	host_group(host, 1, 0, group);
	for (unsigned int i = 0; i < CONNS; i++) {
		conns[i] = rig_open(host->rigs[0]);
		for (int32_t n = 0; n < EACH; n++)
			commit_to(conns[i], n, group, n);
	}
	unsigned int held = 0;
	for (unsigned int i = 0; i < CONNS; i++)
		held += conns[i]->held;
	cr_assert_gt(held, 0);
	cr_assert_eq(host->rigs[0]->stats.forward_requests, FORWARD_MAX);
	cr_assert_eq(host->longest, FORWARD_MAX);
	rig_round(host->rigs[0]);
	cr_assert_eq(host->rigs[0]->stats.forward_requests, FORWARD_MAX, "no more until something is answered");
	host_settle(host);
	for (unsigned int i = 0; i < CONNS; i++) {
		for (int32_t n = 0; n < EACH; n++)
			cr_assert_eq(read_commit(conns[i], n), 0);
		cr_assert_not(conns[i]->held);
		conn_free(conns[i]);
	}
	cr_assert_gt(host->rigs[0]->stats.forward_waits, 0);
	host_free(host);
}

/* The client id survives the waiting, and a connection that goes while it waits leaves room for the next. */
Test(forward, waiting_for_room)
{
	enum { CONNS = FORWARD_MAX + 8 };
	struct host *host = host_new(2, CONNS);
	struct conn *conns[CONNS];
	char group[32];
	host_group(host, 1, 0, group);
	for (unsigned int i = 0; i < CONNS; i++) {
		conns[i] = rig_open(host->rigs[0]);
		join_as(conns[i], 1, group, BYTES_EMPTY, 60000);
	}
	for (unsigned int i = FORWARD_MAX; i < FORWARD_MAX + 4; i++)
		conn_reset(conns[i]);
	conn_fin(conns[FORWARD_MAX + 4]);
	host_settle(host);
	for (unsigned int i = FORWARD_MAX + 4; i < CONNS; i++) {
		struct join_group_response out = joined(conns[i], 1);
		cr_assert_eq(out.error_code, ERROR_MEMBER_ID_REQUIRED);
		cr_assert_not_null(memmem(out.member_id.p, (size_t)out.member_id.len, "test-client", 11));
	}
	for (unsigned int i = 0; i < CONNS; i++)
		conn_free(conns[i]);
	host_free(host);
}

/* A deletion that must wait for room at one owner has asked none. */
Test(forward, several_owners_are_asked_when_all_have_room)
{
	struct host *host = host_new(HOST_WORKERS, 64);
	struct groups groups;
	make_groups(host, &groups);
	struct conn *fill[8], *c = rig_open(host->rigs[0]);
	for (unsigned int i = 0; i < ARRAY_LEN(fill); i++) {
		fill[i] = rig_open(host->rigs[0]);
		for (int32_t n = 0; n < SESSION_PIPELINE - 1; n++)
			send_offset_fetch(fill[i], n, groups.names[3]);
	}
	uint64_t before = host->rigs[0]->stats.forward_requests;
	delete_groups(c, 1, groups.ids, GROUPS);
	cr_assert(c->held);
	cr_assert_eq(host->rigs[0]->stats.forward_requests, before);
	host_settle(host);
	struct delete_groups_response out;
	conn_read(c, api_key_delete_groups, 2, 1, &out);
	cr_assert_eq(out.results_len, GROUPS);
	for (int32_t i = 0; i < GROUPS; i++)
		cr_assert_eq(out.results[i].error_code, 0);
	for (unsigned int i = 0; i < ARRAY_LEN(fill); i++)
		conn_free(fill[i]);
	conn_free(c);
	host_free(host);
}

/* ---- the end ---- */

Test(forward, stop_answers_what_is_parked_elsewhere)
{
	struct host *host = host_new(2, 16);
	char group[32];
	host_group(host, 1, 0, group);
	struct conn *c = rig_open(host->rigs[1]), *d = rig_open(host->rigs[0]);
	live_on(host, c, group);
	join_as(d, 1, group, BYTES_EMPTY, 60000);
	host_settle(host);
	struct bytes id = joined(d, 1).member_id;
	join_as(d, 2, group, id, 60000);
	host_settle(host);
	cr_assert_not(node_service_ops.stop(host->rigs[0]->node, host->rigs[0]->now), "the other worker still has it");
	cr_assert(node_service_ops.stop(host->rigs[1]->node, host->rigs[1]->now));
	host_settle(host);
	cr_assert_eq(joined(d, 2).error_code, ERROR_NOT_COORDINATOR);
	cr_assert(node_service_ops.stop(host->rigs[0]->node, host->rigs[0]->now));
	conn_free(c);
	conn_free(d);
	host_free(host);
}

/* ---- everything at random ---- */

#define CONNS 12
#define NAMES 16

static void send_random(struct host *host, struct conn *c, int32_t id, char names[NAMES][32])
{
	uint64_t r = host_random(host);
	const char *group = names[r / 64 % NAMES];
	struct bytes some[3] = {bytes_str(group), bytes_str(names[r / 1024 % NAMES]), bytes_str(names[r / 16384 % NAMES])};
	struct join_group_response nobody = {.member_id = BYTES_LITERAL("nobody"), .generation_id = 1};
	switch (r % 10) {
	case 0:
		join_as(c, id, group, BYTES_EMPTY, 60000);
		break;
	case 1:
		sync_as(c, id, group, &nobody);
		break;
	case 2:
		beat_as(c, id, group, &nobody);
		break;
	case 3:
		leave_as(c, id, group, BYTES_LITERAL("nobody"));
		break;
	case 4:
		describe(c, id, some, 3);
		break;
	case 5:
		list(c, id);
		break;
	case 6:
		delete_groups(c, id, some, 3);
		break;
	case 7:
		fetch_many(c, id, some, 3);
		break;
	case 8:
		send_metadata(c, id);
		break;
	default:
		commit_to(c, id, group, id);
	}
}

/* All answers have come, and in order: their correlation ids count up. */
static void read_all(struct conn *c, int32_t sent)
{
	for (int32_t i = 0; i < sent; i++) {
		struct bytes b = conn_read_raw(c);
		struct reader r = reader_of(b.p, (size_t)b.len);
		cr_assert_eq((int32_t)reader_u32(&r), i);
	}
	cr_assert_eq(conn_answers(c), 0);
}

static void random_run(uint64_t seed)
{
	struct host *host = host_new(HOST_WORKERS, CONNS);
	struct conn *conns[CONNS];
	int32_t sent[CONNS];
	char names[NAMES][32];
	host->random += seed * 0x9e3779b97f4a7c15ull;
	for (unsigned int i = 0; i < NAMES; i++)
		snprintf(names[i], sizeof(names[i]), "random-%u", i);
	for (unsigned int i = 0; i < CONNS; i++)
		conns[i] = NULL;
	for (unsigned int step = 0; step < 3000; step++) {
		unsigned int i = (unsigned int)(host_random(host) % CONNS);
		if (conns[i] == NULL) {
			conns[i] = rig_open(host->rigs[host_random(host) % HOST_WORKERS]);
			sent[i] = 0;
		}
		if (host_random(host) % 200 == 0) {
			conn_free(conns[i]);
			conns[i] = NULL;
		} else if (host_random(host) % 3 == 0 && conns[i]->last < RIG_FRAMES) {
			send_random(host, conns[i], sent[i]++, names);
		}
		host_step(host);
	}
	for (unsigned int i = 0; i < CONNS; i++) {
		host_settle(host);
		if (conns[i] == NULL)
			continue;
		cr_assert(!conns[i]->closed && !conns[i]->want_abort && !conns[i]->want_close);
		cr_assert_eq(conns[i]->first, conns[i]->last);
		read_all(conns[i], sent[i]);
		conn_free(conns[i]);
	}
	cr_assert_gt(host->kinds[FORWARD_REQUEST], 100);
	host_free(host);
}

Test(forward, random_requests_closes_and_interleavings, .timeout = 60)
{
	for (uint64_t seed = 1; seed <= 20; seed++)
		random_run(seed);
}
