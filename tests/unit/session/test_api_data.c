/*
 * test_api_data.c - ListOffsets, Fetch, OffsetForLeaderEpoch and Produce of a server without data, at all their versions.
 */
#include <criterion/criterion.h>

#include "fake_shard.h"
#include "requests.h"

/* ---- ListOffsets ---- */

Test(list_offsets, every_version)
{
	struct rig *rig = rig_new(4, 1, 8);
	struct conn *c = rig_open(rig);
	static const struct {
		int32_t partition;
		int64_t timestamp;
		int16_t error;
		int64_t offset;
	} cases[] = {
		{0, -1, 0, 0},	{1, -2, 0, 0}, {2, 1700000000000, 0, -1}, {2, -3, 0, -1}, {2, 0, 0, -1},
		{3, -1, 3, -1}, {-1, -2, 3, -1},
	};
	const int32_t n = ARRAY_LEN(cases);
	struct list_offsets_request_partition partitions[ARRAY_LEN(cases)];
	for (int32_t i = 0; i < n; i++) {
		list_offsets_request_partition_init(&partitions[i]);
		partitions[i].partition_index = cases[i].partition;
		partitions[i].timestamp = cases[i].timestamp;
	}
	struct list_offsets_request_topic topics[] = {
		{BYTES_LITERAL("alpha"), partitions, 0}, {BYTES_LITERAL("gamma"), partitions, n}, {BYTES_LITERAL("nowhere"), partitions, 1}};
	struct list_offsets_request in;
	list_offsets_request_init(&in);
	in.topics = topics;
	in.topics_len = 3;
	for (int16_t v = 0; v <= 11; v++) {
		struct list_offsets_response out;
		conn_send(c, api_key_list_offsets, v, v, &in);
		conn_read(c, api_key_list_offsets, v, v, &out);
		cr_assert_eq(out.topics_len, 2, "those of which a partition is named");
		cr_assert_eq(out.topics[0].partitions_len, n);
		for (int32_t i = 0; i < n; i++) {
			const struct list_offsets_response_partition *p = &out.topics[0].partitions[i];
			cr_assert_eq(p->partition_index, cases[i].partition);
			cr_assert_eq(p->error_code, cases[i].error);
			if (v == 0) {
				cr_assert_eq(p->old_style_offsets_len, cases[i].offset == 0 ? 1 : 0);
				cr_assert(cases[i].offset != 0 || p->old_style_offsets[0] == 0);
				continue;
			}
			cr_assert_eq(p->offset, cases[i].offset);
			cr_assert_eq(p->timestamp, -1);
			cr_assert_eq(p->leader_epoch, v >= 4 && cases[i].offset == 0 ? 0 : -1);
		}
		cr_assert_eq(out.topics[1].partitions[0].error_code, ERROR_UNKNOWN_TOPIC_OR_PARTITION);
	}
	conn_free(c);
	rig_free(rig);
}

/* ---- Fetch ---- */

static void fetch(struct conn *c, int16_t version, struct bytes name, struct uuid id, int32_t partition, int32_t session_id, int32_t epoch,
		  struct fetch_response *out)
{
	struct fetch_request_partition part;
	fetch_request_partition_init(&part);
	part.partition = partition;
	part.fetch_offset = 1000000; /* far behind the end */
	struct fetch_request_topic topic = {name, id, &part, 1};
	struct fetch_request in;
	fetch_request_init(&in);
	in.max_wait_ms = 500;
	in.min_bytes = 1;
	in.session_id = session_id;
	in.session_epoch = epoch;
	in.topics = &topic;
	in.topics_len = 1;
	conn_send(c, api_key_fetch, version, version, &in);
	if (conn_answers(c) == 0)
		rig_advance(c->rig, 500);
	conn_read(c, api_key_fetch, version, version, out);
	cr_assert_eq(out->error_code, 0);
	cr_assert_eq(out->session_id, 0, "sessions are declined");
	cr_assert_eq(out->responses_len, 1);
	cr_assert_eq(out->responses[0].partitions_len, 1);
	cr_assert(version >= 13 ? uuid_equal(&out->responses[0].topic_id, &id) : bytes_equal(out->responses[0].topic, name));
	cr_assert_eq(out->responses[0].partitions[0].partition_index, partition);
	cr_assert_eq(out->responses[0].partitions[0].records.len, 0, "empty, not null");
}

Test(fetch, every_version_answers_empty_for_a_position_behind_the_end)
{
	struct rig *rig = rig_new(4, 1, 8);
	struct conn *c = rig_open(rig);
	struct uuid alpha = image_topic(rig->image, BYTES_LITERAL("alpha"))->id;
	for (int16_t v = 0; v <= 18; v++) {
		struct fetch_response out;
		uint64_t start = rig->now.us;
		fetch(c, v, BYTES_LITERAL("alpha"), alpha, 5, 0, v >= 7 ? 0 : -1, &out);
		const struct fetch_response_partition *p = &out.responses[0].partitions[0];
		cr_assert_eq(p->error_code, 0);
		cr_assert_eq(p->high_watermark, 0);
		cr_assert_eq(p->last_stable_offset, v >= 4 ? 0 : -1);
		cr_assert_eq(p->log_start_offset, v >= 5 ? 0 : -1);
		cr_assert_eq(rig->now.us - start, 500000, "v%d waits", v);
	}
	conn_free(c);
	rig_free(rig);
}

Test(fetch, what_does_not_exist_is_told_at_once)
{
	struct rig *rig = rig_new(4, 1, 8);
	struct conn *c = rig_open(rig);
	struct uuid alpha = image_topic(rig->image, BYTES_LITERAL("alpha"))->id;
	for (int16_t v = 0; v <= 18; v++) {
		struct fetch_response out;
		uint64_t start = rig->now.us;
		fetch(c, v, BYTES_LITERAL("alpha"), alpha, 6, 0, -1, &out);
		cr_assert_eq(out.responses[0].partitions[0].error_code, ERROR_UNKNOWN_TOPIC_OR_PARTITION);
		cr_assert_eq(out.responses[0].partitions[0].high_watermark, -1);
		fetch(c, v, BYTES_LITERAL("nowhere"), (struct uuid){{1}}, 0, 0, -1, &out);
		cr_assert_eq(out.responses[0].partitions[0].error_code,
			     v < 13 ? ERROR_UNKNOWN_TOPIC_OR_PARTITION : ERROR_UNKNOWN_TOPIC_ID);
		cr_assert_eq(rig->now.us, start);
	}
	conn_free(c);
	rig_free(rig);
}

Test(fetch, a_client_that_believes_in_a_session)
{
	struct rig *rig = rig_new(4, 1, 8);
	struct conn *c = rig_open(rig);
	struct fetch_response out;
	fetch(c, 12, BYTES_LITERAL("alpha"), UUID_ZERO, 0, 4711, 3, &out);
	cr_assert_eq(out.responses[0].partitions[0].error_code, 0);
	fetch(c, 12, BYTES_LITERAL("alpha"), UUID_ZERO, 0, 4711, -1, &out);
	struct fetch_request none;
	fetch_request_init(&none);
	none.max_wait_ms = 500;
	none.min_bytes = 1;
	none.session_id = 4711;
	none.session_epoch = 4;
	conn_send(c, api_key_fetch, 12, 9, &none);
	conn_read(c, api_key_fetch, 12, 9, &out);
	cr_assert_eq(out.session_id, 0);
	cr_assert_eq(out.error_code, 0);
	cr_assert_eq(out.responses_len, 0);
	conn_free(c);
	rig_free(rig);
}

/* ---- OffsetForLeaderEpoch ---- */

/* No position may look cut off, whatever epoch was committed with it. */
Test(offset_for_leader_epoch, every_version)
{
	struct rig *rig = rig_new(4, 1, 8);
	struct conn *c = rig_open(rig);
	static const struct {
		int32_t partition, epoch;
	} cases[] = {{0, 0}, {2, 17}, {3, 0}, {1, -1}};
	struct offset_for_leader_epoch_request_partition partitions[ARRAY_LEN(cases)];
	for (unsigned int i = 0; i < ARRAY_LEN(cases); i++) {
		offset_for_leader_epoch_request_partition_init(&partitions[i]);
		partitions[i].partition = cases[i].partition;
		partitions[i].leader_epoch = cases[i].epoch;
	}
	struct offset_for_leader_epoch_request_topic topics[] = {{BYTES_LITERAL("gamma"), partitions, 4}, {BYTES_LITERAL("nowhere"), partitions, 1}};
	struct offset_for_leader_epoch_request in;
	offset_for_leader_epoch_request_init(&in);
	in.topics = topics;
	in.topics_len = 2;
	for (int16_t v = 0; v <= 4; v++) {
		struct offset_for_leader_epoch_response out;
		conn_send(c, api_key_offset_for_leader_epoch, v, v, &in);
		conn_read(c, api_key_offset_for_leader_epoch, v, v, &out);
		cr_assert_eq(out.topics_len, 2);
		const struct offset_for_leader_epoch_response_partition *p = out.topics[0].partitions;
		for (unsigned int i = 0; i < 2; i++) {
			cr_assert_eq(p[i].error_code, 0);
			cr_assert_eq(p[i].partition, cases[i].partition);
			cr_assert_eq(p[i].leader_epoch, v >= 1 ? cases[i].epoch : -1);
			cr_assert_eq(p[i].end_offset, INT64_MAX);
		}
		cr_assert_eq(p[2].error_code, ERROR_UNKNOWN_TOPIC_OR_PARTITION);
		cr_assert_eq(p[2].end_offset, -1);
		cr_assert_eq(p[3].error_code, 0);
		cr_assert_eq(p[3].end_offset, -1);
		cr_assert_eq(out.topics[1].partitions[0].error_code, ERROR_UNKNOWN_TOPIC_OR_PARTITION);
	}
	conn_free(c);
	rig_free(rig);
}

/* ---- Produce ---- */

Test(produce, is_refused_in_every_version)
{
	struct rig *rig = rig_new(4, 1, 8);
	struct conn *c = rig_open(rig);
	struct produce_request_partition partitions[] = {{0, BYTES_LITERAL("records")}, {9, BYTES_NULL}};
	struct produce_request_topic topic = {BYTES_LITERAL("alpha"), {{5}}, partitions, 2};
	struct produce_request in;
	produce_request_init(&in);
	in.topic_data = &topic;
	in.topic_data_len = 1;
	for (int16_t v = 0; v <= 13; v++) {
		struct produce_response out;
		in.acks = v % 2 == 0 ? 1 : -1;
		conn_send(c, api_key_produce, v, v, &in);
		conn_read(c, api_key_produce, v, v, &out);
		cr_assert_eq(out.responses_len, 1);
		cr_assert(v >= 13 ? out.responses[0].topic_id.b[0] == 5 : bytes_equal(out.responses[0].name, topic.name));
		for (int32_t p = 0; p < 2; p++) {
			const struct produce_response_partition *part = &out.responses[0].partition_responses[p];
			cr_assert_eq(part->index, partitions[p].index);
			cr_assert_eq(part->error_code, ERROR_POLICY_VIOLATION);
			cr_assert_eq(part->base_offset, -1);
			cr_assert_eq(part->error_message.len > 0, v >= 8);
		}
	}
	cr_assert_not(c->closed);
	in.acks = 0;
	conn_send(c, api_key_produce, 9, 99, &in);
	cr_assert(c->closed);
	cr_assert_not(c->aborted);
	cr_assert_eq(conn_answers(c), 0);
	conn_free(c);
	rig_free(rig);
}
