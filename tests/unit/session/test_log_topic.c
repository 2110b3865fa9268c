/*
 * test_log_topic.c - __consumer_offsets for those who read along: Metadata, ListOffsets, Fetch and OffsetForLeaderEpoch over a log that the test fills.
 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "coordinator/api/log_job.h"
#include "coordinator/log/batch.h"

#include "rig.h"
#include "stored_log.h"

#define FETCH_VERSION 12
#define TOPIC BYTES_LITERAL(IMAGE_LOG_TOPIC)

struct stand {
	struct stored_log log;
	struct rig *rig;
	struct conn *c;
};

static struct stand *stand_new(unsigned int nodes)
{
	struct stand *s = calloc(1, sizeof(*s));
	stored_log_init(&s->log);
	s->rig = rig_new_over(&s->log.log, STORED_SHARDS, nodes, 400);
	s->c = rig_open(s->rig);
	return s;
}

static void stand_free(struct stand *s)
{
	conn_free(s->c);
	rig_free(s->rig);
	stored_log_fini(&s->log);
	free(s);
}

struct want {
	int32_t partition;
	int64_t offset;
	int32_t max, epoch;
};

static struct fetch_request_partition partition_of(struct want w)
{
	struct fetch_request_partition p;
	fetch_request_partition_init(&p);
	p.partition = w.partition;
	p.fetch_offset = w.offset;
	p.partition_max_bytes = w.max == 0 ? 1 << 20 : w.max;
	p.current_leader_epoch = w.epoch;
	return p;
}

static void send_fetch(struct conn *c, int16_t version, int32_t id, const struct want *wants, int32_t n, int32_t wait_ms, int32_t min, int32_t max)
{
	struct fetch_request_partition partitions[8];
	struct fetch_request in;
	fetch_request_init(&in);
	for (int32_t i = 0; i < n; i++)
		partitions[i] = partition_of(wants[i]);
	struct fetch_request_topic topic = {.topic = TOPIC, .partitions = partitions, .partitions_len = n};
	topic.topic_id = image_topic(c->rig->image, TOPIC)->id;
	in.topics = &topic;
	in.topics_len = 1;
	in.max_wait_ms = wait_ms;
	in.min_bytes = min;
	in.max_bytes = max;
	conn_send(c, api_key_fetch, version, id, &in);
}

static const struct fetch_response_partition *read_fetch(struct conn *c, int16_t version, int32_t id)
{
	struct fetch_response out;
	conn_read(c, api_key_fetch, version, id, &out);
	cr_assert_eq(out.responses_len, 1);
	cr_assert(version > 12 || bytes_equal(out.responses[0].topic, TOPIC));
	return out.responses[0].partitions;
}

/* One fetch of one partition, answered at once or in the next rounds. */
static const struct fetch_response_partition *fetch(struct stand *s, int16_t version, struct want w)
{
	send_fetch(s->c, version, 1, &w, 1, 0, 1, INT32_MAX);
	for (int i = 0; i < 10 && conn_answers(s->c) == 0; i++)
		rig_round(s->rig);
	return read_fetch(s->c, version, 1);
}

/* The offsets of the batches in the records. */
static unsigned int offsets_in(struct bytes records, int64_t *first, int64_t *last)
{
	unsigned int n = 0;
	for (int32_t at = 0; at < records.len; n++) {
		struct reader r = reader_of(records.p + at + 8, 4);
		int32_t size = (int32_t)reader_u32(&r) + 12;
		struct batch b;
		cr_assert(batch_open(&b, bytes_of(records.p + at, (size_t)size)));
		*first = n == 0 ? b.base_offset : *first;
		*last = b.last_offset;
		at += size;
	}
	return n;
}

/* ---- Metadata ---- */

Test(log_topic, is_internal_and_led_by_the_owner_of_the_shard)
{
	struct stand *s = stand_new(2);
	struct metadata_request in;
	struct metadata_response out;
	s->log.epoch = 7;
	metadata_request_init(&in);
	in.topics_len = -1;
	conn_send(s->c, api_key_metadata, 9, 1, &in);
	conn_read(s->c, api_key_metadata, 9, 1, &out);
	cr_assert_eq(out.topics_len, 4);
	const struct metadata_response_topic *t = &out.topics[0];
	cr_assert(bytes_equal(t->name, TOPIC) && t->is_internal && !out.topics[1].is_internal);
	cr_assert_eq(t->partitions_len, STORED_SHARDS);
	for (int32_t p = 0; p < t->partitions_len; p++) {
		const struct image_node *owner = image_shard_owner(s->rig->image, (unsigned int)p);
		cr_assert_eq(t->partitions[p].leader_id, owner->id);
		cr_assert_eq(t->partitions[p].replica_nodes_len, 1);
		cr_assert_eq(t->partitions[p].leader_epoch, owner->id == 1000 ? 7 : -1);
	}
	stand_free(s);
}

/* ---- Fetch ---- */

Test(fetch_log, whole_batches_from_the_one_that_holds_the_offset)
{
	struct stand *s = stand_new(1);
	int64_t first = 0, last = 0;
	for (int i = 0; i < 5; i++)
		stored_log_add(&s->log, 2, 3, 100, 1000 + i);
	for (int16_t v = 4; v <= 18; v++) {
		const struct fetch_response_partition *p = fetch(s, v, (struct want){2, 4, 0, -1});
		cr_assert_eq(p->error_code, 0, "version %d: %d", v, p->error_code);
		cr_assert_eq(p->high_watermark, 15);
		cr_assert(p->last_stable_offset == 15 && (v < 5 || p->log_start_offset == 0));
		cr_assert_eq(offsets_in(p->records, &first, &last), 4);
		cr_assert(first == 3 && last == 14);
	}
	stand_free(s);
}

Test(fetch_log, outside_of_the_log)
{
	struct stand *s = stand_new(2);
	stored_log_add(&s->log, 0, 4, 10, 1);
	s->log.start[0] = 2;
	s->log.epoch = 3;
	static const struct {
		struct want want;
		int16_t version, error;
	} cases[] = {{{0, 1, 0, -1}, 12, ERROR_OFFSET_OUT_OF_RANGE}, {{0, 5, 0, -1}, 12, ERROR_OFFSET_OUT_OF_RANGE}, {{0, 2, 0, 3}, 12, 0}, {{0, 4, 0, -1}, 12, 0},
		     {{0, 2, 0, 2}, 12, ERROR_FENCED_LEADER_EPOCH}, {{0, 2, 0, 4}, 12, ERROR_UNKNOWN_LEADER_EPOCH},
		     {{1, 0, 0, -1}, 12, ERROR_NOT_LEADER_OR_FOLLOWER},	 {{9, 0, 0, -1}, 12, ERROR_UNKNOWN_TOPIC_OR_PARTITION},
		     {{0, 2, 0, -1}, 3, ERROR_UNSUPPORTED_VERSION}};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct fetch_response_partition *p = fetch(s, cases[i].version, cases[i].want);
		cr_assert_eq(p->error_code, cases[i].error, "case %zu: %d", i, p->error_code);
		cr_assert_eq(p->high_watermark, cases[i].error == 0 ? 4 : -1);
		cr_assert_eq(p->records.len > 0, cases[i].error == 0 && cases[i].want.offset < 4);
	}
	stand_free(s);
}

Test(fetch_log, bounds_of_bytes)
{
	struct stand *s = stand_new(1);
	int64_t first = 0, last = 0;
	for (int i = 0; i < 6; i++) {
		stored_log_add(&s->log, 0, 1, 1000, 1);
		stored_log_add(&s->log, 1, 1, 1000, 1);
	}
	/* the partition's bound: two batches, not three */
	const struct fetch_response_partition *p = fetch(s, FETCH_VERSION, (struct want){0, 0, 2500, -1});
	cr_assert_eq(offsets_in(p->records, &first, &last), 2);
	/* the first batch is given although it is larger than any bound */
	p = fetch(s, FETCH_VERSION, (struct want){0, 2, 10, -1});
	cr_assert_eq(offsets_in(p->records, &first, &last), 1);
	/* the request's bound: what the first partition leaves is the second's */
	const struct want both[] = {{0, 0, 0, -1}, {1, 0, 0, -1}};
	send_fetch(s->c, FETCH_VERSION, 5, both, 2, 0, 1, 8000);
	rig_round(s->rig);
	rig_round(s->rig);
	rig_round(s->rig);
	p = read_fetch(s->c, FETCH_VERSION, 5);
	cr_assert_eq(offsets_in(p[0].records, &first, &last), 6);
	cr_assert_eq(offsets_in(p[1].records, &first, &last), 1);
	/* our own bound, and a batch that is larger than it */
	stored_log_add(&s->log, 3, 1, 3 * JOB_BYTES, 1);
	stored_log_add(&s->log, 3, 1, 100, 1);
	p = fetch(s, FETCH_VERSION, (struct want){3, 0, INT32_MAX, -1});
	cr_assert_eq(offsets_in(p->records, &first, &last), 1);
	cr_assert_eq(s->log.reads_now, 0);
	stand_free(s);
}

Test(fetch_log, waits_at_the_end_for_data_or_the_time)
{
	struct stand *s = stand_new(1);
	struct want w = {1, 0, 0, -1};
	send_fetch(s->c, FETCH_VERSION, 1, &w, 1, 500, 1, INT32_MAX);
	rig_advance(s->rig, 499);
	cr_assert_eq(conn_answers(s->c), 0);
	rig_advance(s->rig, 2);
	const struct fetch_response_partition *p = read_fetch(s->c, FETCH_VERSION, 1);
	cr_assert(p->error_code == 0 && p->records.len == 0 && p->high_watermark == 0);
	send_fetch(s->c, FETCH_VERSION, 2, &w, 1, 500, 1, INT32_MAX);
	rig_advance(s->rig, 100);
	stored_log_add(&s->log, 2, 1, 10, 1); /* another partition: nothing for this one */
	rig_advance(s->rig, 10);
	cr_assert_eq(conn_answers(s->c), 0);
	stored_log_add(&s->log, 1, 1, 10, 1);
	rig_advance(s->rig, 3);
	p = read_fetch(s->c, FETCH_VERSION, 2);
	cr_assert(p->records.len > 0 && p->high_watermark == 1);
	stand_free(s);
}

/* What becomes durable while the disk reads is not overlooked. */
Test(fetch_log, data_that_comes_while_reading)
{
	struct stand *s = stand_new(1);
	struct want w[] = {{0, 0, 0, -1}, {1, 0, 0, -1}};
	stored_log_add(&s->log, 1, 1, 10, 1);
	s->log.slow = true;
	send_fetch(s->c, FETCH_VERSION, 1, w, 2, 5000, 150, INT32_MAX); /* more than that one batch has */
	rig_advance(s->rig, 5);
	cr_assert_eq(s->log.reads_now, 1);
	stored_log_add(&s->log, 0, 1, 200, 1);
	s->log.slow = false;
	rig_advance(s->rig, 20);
	stored_log_add(&s->log, 2, 1, 10, 1); /* something moves */
	rig_advance(s->rig, 5);
	const struct fetch_response_partition *p = read_fetch(s->c, FETCH_VERSION, 1);
	cr_assert(p[0].records.len > 200);
	stand_free(s);
}

Test(fetch_log, less_than_the_least_comes_when_the_time_is_over)
{
	struct stand *s = stand_new(1);
	struct want w = {1, 0, 0, -1};
	stored_log_add(&s->log, 1, 1, 10, 1);
	send_fetch(s->c, FETCH_VERSION, 1, &w, 1, 300, 100000, INT32_MAX);
	rig_advance(s->rig, 299);
	cr_assert_eq(conn_answers(s->c), 0);
	cr_assert_leq(s->log.reads_all, 2);
	rig_advance(s->rig, 4);
	cr_assert_gt(read_fetch(s->c, FETCH_VERSION, 1)->records.len, 0);
	stand_free(s);
}

Test(fetch_log, an_error_waits_for_nothing)
{
	struct stand *s = stand_new(1);
	struct want w[] = {{1, 0, 0, -1}, {0, 99, 0, -1}};
	send_fetch(s->c, FETCH_VERSION, 1, w, 2, 5000, 1, INT32_MAX);
	rig_round(s->rig);
	rig_round(s->rig);
	const struct fetch_response_partition *p = read_fetch(s->c, FETCH_VERSION, 1);
	cr_assert(p[0].error_code == 0 && p[1].error_code == ERROR_OFFSET_OUT_OF_RANGE);
	stored_log_add(&s->log, 1, 1, 10, 1);
	s->log.error = 56;
	send_fetch(s->c, FETCH_VERSION, 2, w, 1, 5000, 100000, INT32_MAX);
	rig_advance(s->rig, 3);
	cr_assert_eq(read_fetch(s->c, FETCH_VERSION, 2)->error_code, 56);
	stand_free(s);
}

Test(fetch_log, the_client_goes_away)
{
	struct stand *s = stand_new(1);
	struct want w = {1, 0, 0, -1};
	stored_log_add(&s->log, 1, 1, 10, 1);
	s->log.slow = true;
	struct conn *reading = rig_open(s->rig), *half = rig_open(s->rig), *waiting = rig_open(s->rig), *left = rig_open(s->rig);
	send_fetch(reading, FETCH_VERSION, 1, &w, 1, 5000, 1, INT32_MAX);
	send_fetch(half, FETCH_VERSION, 1, &w, 1, 5000, 1, INT32_MAX);
	w.offset = 1;
	send_fetch(waiting, FETCH_VERSION, 1, &w, 1, 5000, 1, INT32_MAX);
	rig_advance(s->rig, 2);
	cr_assert_eq(s->log.reads_now, 2);
	conn_reset(reading);
	conn_reset(waiting);
	conn_fin(half);
	rig_advance(s->rig, 2);
	s->log.slow = false;
	rig_advance(s->rig, 2);
	cr_assert_eq(s->rig->stats.requests_parked_now, 0);
	conn_free(reading);
	conn_free(half);
	conn_free(waiting);
	/* and the whole node, while the disk reads */
	s->log.slow = true;
	w.offset = 0;
	send_fetch(left, FETCH_VERSION, 1, &w, 1, 5000, 1, INT32_MAX);
	rig_advance(s->rig, 2);
	conn_free(left);
	conn_free(s->c);
	node_free(s->rig->node);
	s->log.slow = false;
	log_poll(&s->log.log, s->rig->now);
	s->rig->node = NULL;
	rig_free(s->rig);
	stored_log_fini(&s->log);
	free(s);
}

Test(fetch_log, few_read_at_a_time_and_all_get_their_turn)
{
	enum { READERS = 300 };
	struct stand *s = stand_new(1);
	struct want w = {1, 0, 0, -1};
	struct conn *readers[READERS];
	stored_log_add(&s->log, 1, 1, 10, 1);
	s->log.slow = true;
	for (int i = 0; i < READERS; i++) {
		readers[i] = rig_open(s->rig);
		send_fetch(readers[i], FETCH_VERSION, 1, &w, 1, 2000, 1, INT32_MAX);
	}
	rig_advance(s->rig, 3);
	cr_assert_eq(s->log.reads_now, JOBS_READING);
	s->log.slow = false;
	rig_advance(s->rig, 200);
	cr_assert_eq(s->log.reads_most, JOBS_READING);
	unsigned int answered = 0;
	for (int i = 0; i < READERS; i++)
		answered += conn_answers(readers[i]);
	cr_assert_eq(answered, JOBS_MAX);
	rig_advance(s->rig, 2000); /* those beyond the bound are told that there is nothing yet, in time */
	for (int i = 0; i < READERS; i++) {
		cr_assert_eq(conn_answers(readers[i]), 1);
		conn_free(readers[i]);
	}
	stand_free(s);
}

Test(fetch_log, stopping_waits_for_nobody)
{
	struct stand *s = stand_new(1);
	struct want w = {1, 0, 0, -1};
	send_fetch(s->c, FETCH_VERSION, 1, &w, 1, 5000, 1, INT32_MAX);
	rig_advance(s->rig, 2);
	cr_assert(node_service_ops.stop(s->rig->node, s->rig->now));
	cr_assert_eq(read_fetch(s->c, FETCH_VERSION, 1)->error_code, 0);
	stand_free(s);
}

Test(fetch_log, beside_an_ordinary_topic)
{
	struct stand *s = stand_new(1);
	stored_log_add(&s->log, 1, 1, 10, 1);
	struct fetch_request_partition mine = partition_of((struct want){1, 0, 0, -1}), other = partition_of((struct want){0, 0, 0, -1});
	struct fetch_request_topic topics[] = {{.topic = BYTES_LITERAL("alpha"), .partitions = &other, .partitions_len = 1},
					       {.topic = TOPIC, .partitions = &mine, .partitions_len = 1}};
	struct fetch_request in;
	struct fetch_response out;
	fetch_request_init(&in);
	in.topics = topics;
	in.topics_len = 2;
	in.max_wait_ms = 1000;
	in.min_bytes = 1;
	conn_send(s->c, api_key_fetch, FETCH_VERSION, 1, &in);
	rig_advance(s->rig, 3);
	conn_read(s->c, api_key_fetch, FETCH_VERSION, 1, &out);
	cr_assert_eq(out.responses_len, 2);
	cr_assert(bytes_equal(out.responses[0].topic, BYTES_LITERAL("alpha")) && out.responses[0].partitions[0].records.len == 0);
	cr_assert_gt(out.responses[1].partitions[0].records.len, 0);
	stand_free(s);
}

/* ---- ListOffsets ---- */

static struct list_offsets_response_partition list_offset(struct stand *s, int16_t version, int32_t partition, int64_t timestamp)
{
	struct list_offsets_request_partition p;
	struct list_offsets_request in;
	struct list_offsets_response out;
	list_offsets_request_partition_init(&p);
	p.partition_index = partition;
	p.timestamp = timestamp;
	struct list_offsets_request_topic topic = {TOPIC, &p, 1};
	list_offsets_request_init(&in);
	in.topics = &topic;
	in.topics_len = 1;
	conn_send(s->c, api_key_list_offsets, version, 1, &in);
	for (int i = 0; i < 200 && conn_answers(s->c) == 0; i++)
		rig_round(s->rig);
	conn_read(s->c, api_key_list_offsets, version, 1, &out);
	cr_assert(bytes_equal(out.topics[0].name, TOPIC));
	return out.topics[0].partitions[0];
}

Test(list_log_offsets, ends_and_times)
{
	struct stand *s = stand_new(1);
	for (int i = 0; i < 100; i++) { /* more than one slice; two epochs */
		s->log.epoch = i < 50 ? 1 : 2;
		stored_log_add(&s->log, 0, 2, 3000, i == 70 ? 1000000 : 1000 + 10 * i);
	}
	static const struct {
		int64_t timestamp, offset, found;
		int32_t epoch;
	} cases[] = {{-1, 200, -1, 2}, {-2, 0, -1, 1},	{-4, 0, -1, 1},	 {-5, -1, -1, -1},   {0, 0, 1000, 1},	  {1000, 0, 1000, 1},
		     {1001, 2, 1010, 1}, {1490, 98, 1490, 1}, {1491, 100, 1500, 2}, {1701, 140, 1000000, 2}, {2000000, -1, -1, -1}, {-3, 140, 1000000, 2}};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct list_offsets_response_partition p = list_offset(s, 8, 0, cases[i].timestamp);
		cr_assert_eq(p.error_code, 0);
		cr_assert(p.offset == cases[i].offset && p.timestamp == cases[i].found && p.leader_epoch == cases[i].epoch, "case %zu: %ld %ld %d", i,
			  (long)p.offset, (long)p.timestamp, p.leader_epoch);
	}
	struct list_offsets_response_partition p = list_offset(s, 0, 0, -1);
	cr_assert(p.old_style_offsets_len == 1 && p.old_style_offsets[0] == 200);
	cr_assert_eq(list_offset(s, 5, 3, -1).offset, 0);
	cr_assert_eq(list_offset(s, 5, 3, 5).offset, -1);
	s->log.error = 56;
	cr_assert_eq(list_offset(s, 5, 0, 5).error_code, 56);
	stored_log_add(&s->log, 1, 1, 2 * JOB_BYTES, 77);
	cr_assert_eq(list_offset(s, 5, 1, 5).timestamp, 77);
	stand_free(s);
}

/* ---- OffsetForLeaderEpoch ---- */

Test(log_epochs, where_each_ended)
{
	struct stand *s = stand_new(1);
	static const int32_t epochs[] = {2, 2, 4, 5};
	for (size_t i = 0; i < ARRAY_LEN(epochs); i++) {
		s->log.epoch = epochs[i];
		stored_log_add(&s->log, 0, 5, 10, 1);
	}
	s->log.epoch = 6;
	static const struct {
		int32_t asked, epoch;
		int64_t end;
	} cases[] = {{2, 2, 10}, {3, 2, 10}, {4, 4, 15}, {5, 5, 20}, {6, 5, 20}, {7, -1, -1}, {1, 1, 0}};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct offset_for_leader_epoch_request_partition p;
		struct offset_for_leader_epoch_request in;
		struct offset_for_leader_epoch_response out;
		offset_for_leader_epoch_request_partition_init(&p);
		p.leader_epoch = cases[i].asked;
		struct offset_for_leader_epoch_request_topic topic = {TOPIC, &p, 1};
		offset_for_leader_epoch_request_init(&in);
		in.topics = &topic;
		in.topics_len = 1;
		conn_send(s->c, api_key_offset_for_leader_epoch, 4, 1, &in);
		conn_read(s->c, api_key_offset_for_leader_epoch, 4, 1, &out);
		const struct offset_for_leader_epoch_response_partition *got = &out.topics[0].partitions[0];
		cr_assert(got->error_code == 0 && got->leader_epoch == cases[i].epoch && got->end_offset == cases[i].end, "case %zu: %d %ld", i,
			  got->leader_epoch, (long)got->end_offset);
	}
	stand_free(s);
}
