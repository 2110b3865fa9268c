/*
 * test_api_offsets.c - OffsetCommit and OffsetFetch at all their versions, over a fake engine.
 */
#include <criterion/criterion.h>

#include "fake_shard.h"
#include "requests.h"

#define IDS_FROM 10 /* the first version that names topics by id */

/* ---- OffsetCommit ---- */

/* Commits offset 5 for two partitions of a topic. */
static void commit(struct conn *c, int16_t version, struct bytes name, struct uuid id, int32_t first, int32_t second)
{
	struct offset_commit_request_partition partitions[2];
	for (unsigned int i = 0; i < 2; i++) {
		offset_commit_request_partition_init(&partitions[i]);
		partitions[i].committed_offset = 5;
	}
	partitions[0].partition_index = first;
	partitions[1].partition_index = second;
	struct offset_commit_request_topic topic = {version < IDS_FROM ? name : BYTES_EMPTY, version < IDS_FROM ? UUID_ZERO : id, partitions, 2};
	struct offset_commit_request in;
	offset_commit_request_init(&in);
	in.group_id = BYTES_LITERAL("g");
	in.topics = &topic;
	in.topics_len = 1;
	conn_send(c, api_key_offset_commit, version, version, &in);
}

Test(offset_commit, what_exists_goes_to_the_shard)
{
	struct rig *rig = rig_new(4, 1, 8);
	struct conn *c = rig_open(rig);
	struct uuid alpha = image_topic(rig->image, BYTES_LITERAL("alpha"))->id;
	for (int16_t v = 0; v <= 10; v++) {
		struct offset_commit_response out;
		commit(c, v, BYTES_LITERAL("alpha"), alpha, 5, 6); /* 6 is one too many */
		cr_assert_eq(fake.parked_len, (unsigned int)v + 1);
		cr_assert_str_eq(fake.commit_topic, "alpha", "also where it was named by id");
		cr_assert_eq(fake.commit_left, 1);
		cr_assert_eq(fake.commit_offset, 5);
		cr_assert_eq(conn_answers(c), 0);
		fake_answer((unsigned int)v, 0, rig->now);
		conn_read(c, api_key_offset_commit, v, v, &out);
	}
	conn_free(c);
	rig_free(rig);
}

Test(offset_commit, what_does_not_exist_is_answered_without_the_shard)
{
	struct rig *rig = rig_new(4, 1, 8);
	struct conn *c = rig_open(rig);
	struct uuid beta = image_topic(rig->image, BYTES_LITERAL("beta"))->id;
	for (int16_t v = 0; v <= 10; v++) {
		struct offset_commit_response out;
		commit(c, v, BYTES_LITERAL("beta"), beta, 1, -1);
		conn_read(c, api_key_offset_commit, v, v, &out);
		cr_assert_eq(out.topics_len, 1);
		cr_assert_eq(out.topics[0].partitions_len, 2);
		cr_assert_eq(out.topics[0].partitions[0].partition_index, 1);
		cr_assert_eq(out.topics[0].partitions[0].error_code, ERROR_UNKNOWN_TOPIC_OR_PARTITION);
		cr_assert_eq(out.topics[0].partitions[1].error_code, ERROR_UNKNOWN_TOPIC_OR_PARTITION);
		const struct uuid strange[] = {UUID_ZERO, {{9}}};
		for (unsigned int i = 0; i < 2; i++) {
			commit(c, v, BYTES_LITERAL("nowhere"), strange[i], 0, 1);
			conn_read(c, api_key_offset_commit, v, v, &out);
			cr_assert_eq(out.topics[0].partitions[1].error_code,
				     v < IDS_FROM ? ERROR_UNKNOWN_TOPIC_OR_PARTITION : ERROR_UNKNOWN_TOPIC_ID);
			cr_assert(uuid_equal(&out.topics[0].topic_id, v < IDS_FROM ? &UUID_ZERO : &strange[i]));
		}
		struct offset_commit_request none;
		offset_commit_request_init(&none);
		conn_send(c, api_key_offset_commit, v, 50, &none);
		conn_read(c, api_key_offset_commit, v, 50, &out);
		cr_assert_eq(out.topics_len, 0);
	}
	cr_assert_eq(fake.parked_len, 0);
	conn_free(c);
	rig_free(rig);
}

/* ---- OffsetFetch ---- */

/* One partition of an answer in either form. */
struct fetched {
	struct bytes topic;
	struct uuid id;
	int32_t partition, epoch;
	int64_t offset;
	struct bytes metadata;
	int16_t error;
};

/* Flattens the answer's `group`-th group; returns the number of partitions. */
static unsigned int flatten(const struct offset_fetch_response *out, int16_t version, int32_t group, struct fetched list[16])
{
	unsigned int n = 0;
	if (version < 8) {
		for (int32_t t = 0; t < out->topics_len; t++)
			for (int32_t p = 0; p < out->topics[t].partitions_len; p++) {
				const struct offset_fetch_response_partition *part = &out->topics[t].partitions[p];
				list[n++] = (struct fetched){out->topics[t].name, UUID_ZERO, part->partition_index, part->committed_leader_epoch,
							     part->committed_offset, part->metadata, part->error_code};
			}
		return n;
	}
	for (int32_t t = 0; t < out->groups[group].topics_len; t++)
		for (int32_t p = 0; p < out->groups[group].topics[t].partitions_len; p++) {
			const struct offset_fetch_response_topics *topic = &out->groups[group].topics[t];
			const struct offset_fetch_response_partitions *part = &topic->partitions[p];
			list[n++] = (struct fetched){topic->name, topic->topic_id, part->partition_index, part->committed_leader_epoch,
						     part->committed_offset, part->metadata, part->error_code};
		}
	return n;
}

/* Asks for partitions of "g", or for all with n -1; the topics by id where the version has ids. */
static unsigned int ask(struct conn *c, int16_t version, const struct bytes *names, const struct uuid *ids, int32_t n, struct fetched list[16])
{
	static const int32_t partitions[] = {2, 0};
	struct offset_fetch_request_topic old[4];
	struct offset_fetch_request_topics topics[4];
	for (int32_t i = 0; i < n; i++) {
		old[i] = (struct offset_fetch_request_topic){names[i], partitions, 2};
		topics[i] = (struct offset_fetch_request_topics){names[i], ids[i], partitions, 2};
	}
	struct offset_fetch_request_group group = {BYTES_LITERAL("g"), BYTES_LITERAL("m"), 77, topics, n};
	struct offset_fetch_request in;
	struct offset_fetch_response out;
	offset_fetch_request_init(&in);
	in.require_stable = version >= 7;
	if (version < 8) {
		in.group_id = BYTES_LITERAL("g");
		in.topics = old;
		in.topics_len = n;
	} else {
		in.groups = &group;
		in.groups_len = 1;
	}
	conn_send(c, api_key_offset_fetch, version, version, &in);
	conn_read(c, api_key_offset_fetch, version, version, &out);
	cr_assert_eq(out.error_code, 0);
	if (version >= 8) {
		cr_assert_eq(out.groups_len, 1);
		cr_assert(bytes_equal(out.groups[0].group_id, BYTES_LITERAL("g")));
		cr_assert_eq(out.groups[0].error_code, 0);
	}
	return flatten(&out, version, 0, list);
}

static void check(const struct fetched *f, int32_t partition, int64_t offset, int32_t epoch, const char *metadata, int16_t error)
{
	cr_assert_eq(f->partition, partition);
	cr_assert_eq(f->offset, offset);
	cr_assert_eq(f->epoch, epoch);
	cr_assert(bytes_equal(f->metadata, bytes_str(metadata)));
	cr_assert_eq(f->error, error);
}

Test(offset_fetch, every_requested_partition_in_order_in_every_version)
{
	struct rig *rig = rig_new(4, 1, 8);
	struct conn *c = rig_open(rig);
	fake.durable = true;
	fake_offset("g", "alpha", 0, 42, "note");
	fake_offset("other", "alpha", 2, 1, "");
	struct bytes names[] = {BYTES_LITERAL("beta"), BYTES_LITERAL("alpha"), BYTES_LITERAL("nowhere")};
	struct uuid ids[] = {image_topic(rig->image, names[0])->id, image_topic(rig->image, names[1])->id, {{7}}};
	for (int16_t v = 0; v <= 10; v++) {
		struct fetched list[16];
		cr_assert_eq(ask(c, v, names, ids, 3, list), 6);
		for (unsigned int i = 0; i < 6; i++) {
			cr_assert(v >= IDS_FROM || bytes_equal(list[i].topic, names[i / 2]));
			cr_assert(v < IDS_FROM || uuid_equal(&list[i].id, &ids[i / 2]));
		}
		check(&list[0], 2, -1, -1, "", 0);
		check(&list[1], 0, -1, -1, "", 0);
		check(&list[2], 2, -1, -1, "", 0);
		check(&list[3], 0, 42, v >= 5 ? 3 : -1, "note", 0);
		check(&list[4], 2, -1, -1, "", v < IDS_FROM ? 0 : ERROR_UNKNOWN_TOPIC_ID);
		check(&list[5], 0, -1, -1, "", v < IDS_FROM ? 0 : ERROR_UNKNOWN_TOPIC_ID);
	}
	conn_free(c);
	rig_free(rig);
}

Test(offset_fetch, null_topics_are_all_that_have_an_offset)
{
	struct rig *rig = rig_new(4, 1, 8);
	struct conn *c = rig_open(rig);
	fake.durable = true;
	fake_offset("g", "alpha", 3, 30, "");
	fake_offset("g", "alpha", 1, 10, NULL);
	fake_offset("g", "removed", 0, 99, "");
	fake_offset("g", "gamma", 2, 20, "x");
	for (int16_t v = 2; v <= 10; v++) {
		struct fetched list[16];
		unsigned int n = ask(c, v, NULL, NULL, -1, list);
		cr_assert_eq(n, v < IDS_FROM ? 4 : 3, "a topic that has no id any more cannot be named in version 10");
		check(&list[0], 3, 30, v >= 5 ? 3 : -1, "", 0);
		check(&list[1], 1, 10, v >= 5 ? 3 : -1, "", 0);
		check(&list[n - 1], 2, 20, v >= 5 ? 3 : -1, "x", 0);
		if (v < IDS_FROM)
			cr_assert(bytes_equal(list[n - 1].topic, BYTES_LITERAL("gamma")));
		else
			cr_assert(uuid_equal(&list[n - 1].id, &image_topic(rig->image, BYTES_LITERAL("gamma"))->id));
	}
	conn_free(c);
	rig_free(rig);
}

Test(offset_fetch, no_topics_and_no_groups)
{
	struct rig *rig = rig_new(4, 1, 8);
	struct conn *c = rig_open(rig);
	fake.durable = true;
	fake_offset("g", "alpha", 3, 30, "");
	for (int16_t v = 0; v <= 10; v++) {
		struct fetched list[16];
		cr_assert_eq(ask(c, v, NULL, NULL, 0, list), 0, "an empty list is none, not all");
	}
	struct offset_fetch_request in;
	struct offset_fetch_response out;
	offset_fetch_request_init(&in);
	conn_send(c, api_key_offset_fetch, 9, 1, &in);
	conn_read(c, api_key_offset_fetch, 9, 1, &out);
	cr_assert_eq(out.groups_len, 0);
	conn_free(c);
	rig_free(rig);
}
