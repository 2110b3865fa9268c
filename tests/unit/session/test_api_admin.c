/*
 * test_api_admin.c - the admin APIs at all their versions, over the real engine: ListGroups, DescribeGroups, DeleteGroups, OffsetDelete, DescribeConfigs;
 * and OffsetCommit of odd requests.
 */
#include <criterion/criterion.h>
#include <stdio.h>

#include "coordinator/api/api.h"

#include "rig.h"

static struct rig *rig;
static struct conn *c;

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

TestSuite(api_admin, .init = setup, .fini = teardown);

/* Commits for a simple group, without waiting for the answer. */
static void begin_commit(struct conn *on, const char *group, const char *topic, int32_t partitions)
{
	struct offset_commit_request_partition list[8];
	struct offset_commit_request in;
	offset_commit_request_init(&in);
	for (int32_t i = 0; i < partitions; i++) {
		offset_commit_request_partition_init(&list[i]);
		list[i].partition_index = i;
		list[i].committed_offset = 100 + i;
	}
	struct offset_commit_request_topic t = {bytes_str(topic), UUID_ZERO, list, partitions};
	in.group_id = bytes_str(group);
	in.generation_id_or_member_epoch = -1;
	in.topics = &t;
	in.topics_len = 1;
	conn_send(on, api_key_offset_commit, 8, 77, &in);
}

static void commit(const char *group, const char *topic, int32_t partitions)
{
	struct offset_commit_response out;
	struct conn *d = rig_open(rig);
	begin_commit(d, group, topic, partitions);
	rig_advance(rig, 2);
	conn_read(d, api_key_offset_commit, 8, 77, &out);
	cr_assert_eq(out.topics[0].partitions[0].error_code, 0);
	conn_free(d);
}

/* A group with one member, Preparing: its join is parked on a connection of its own. */
static struct conn *preparing(const char *group)
{
	struct conn *d = rig_open(rig);
	struct join_group_request_protocol protocol = {BYTES_LITERAL("range"), BYTES_LITERAL("meta")};
	struct join_group_request in;
	join_group_request_init(&in);
	rig->settings.group_initial_rebalance_delay_ms = 3000;
	in.group_id = bytes_str(group);
	in.session_timeout_ms = 10000;
	in.rebalance_timeout_ms = 60000;
	in.protocol_type = BYTES_LITERAL("consumer");
	in.protocols = &protocol;
	in.protocols_len = 1;
	conn_send(d, api_key_join_group, 2, 1, &in);
	cr_assert_eq(conn_answers(d), 0);
	return d;
}

/* ---- ListGroups ---- */

static struct list_groups_response list(int16_t version, const char *state, const char *type)
{
	struct bytes states[] = {BYTES_LITERAL("nonsense"), bytes_str(state)}, types[] = {bytes_str(type), BYTES_LITERAL("Consumer")};
	struct list_groups_request in = {states, state == NULL ? 0 : 2, types, type == NULL ? 0 : 2};
	struct list_groups_response out;
	conn_send(c, api_key_list_groups, version, version, &in);
	conn_read(c, api_key_list_groups, version, version, &out);
	cr_assert_eq(out.error_code, 0);
	return out;
}

Test(api_admin, list_at_every_version)
{
	commit("simple", "alpha", 1);
	struct conn *d = preparing("busy");
	for (int16_t v = 0; v <= 5; v++) {
		struct list_groups_response out = list(v, NULL, NULL);
		cr_assert_eq(out.groups_len, 2);
		bool first = bytes_equal(out.groups[0].group_id, BYTES_LITERAL("simple"));
		const struct list_groups_response_group *simple = &out.groups[!first], *busy = &out.groups[first];
		cr_expect(bytes_equal(simple->group_id, BYTES_LITERAL("simple")) && bytes_equal(simple->protocol_type, BYTES_EMPTY));
		cr_expect(bytes_equal(busy->group_id, BYTES_LITERAL("busy")) && bytes_equal(busy->protocol_type, BYTES_LITERAL("consumer")));
		cr_expect(bytes_equal(simple->group_state, v >= 4 ? BYTES_LITERAL("Empty") : BYTES_EMPTY));
		cr_expect(bytes_equal(busy->group_state, v >= 4 ? BYTES_LITERAL("PreparingRebalance") : BYTES_EMPTY));
		cr_expect(bytes_equal(busy->group_type, v >= 5 ? BYTES_LITERAL("classic") : BYTES_EMPTY));
	}
	conn_free(d);
}

Test(api_admin, list_filters)
{
	cr_expect_eq(list(5, NULL, NULL).groups_len, 0, "nothing is no error");
	commit("simple", "alpha", 1);
	commit("other", "alpha", 1);
	struct conn *d = preparing("busy");
	cr_expect_eq(list(5, "Empty", NULL).groups_len, 2);
	cr_expect_eq(list(5, "eMPTY", "CLASSIC").groups_len, 2);
	cr_expect_eq(list(4, "preparingrebalance", NULL).groups_len, 1);
	cr_expect_eq(list(5, "Stable", "classic").groups_len, 0);
	cr_expect_eq(list(5, "Emptyy", NULL).groups_len, 0);
	cr_expect_eq(list(5, "", NULL).groups_len, 0);
	cr_expect_eq(list(5, NULL, "share").groups_len, 0);
	cr_expect_eq(list(5, NULL, "").groups_len, 0);
	cr_expect_eq(list(5, NULL, "Classic").groups_len, 3);
	conn_free(d);
}

Test(api_admin, list_of_thousands)
{
	for (int i = 0; i < 3000; i++) {
		char name[16];
		snprintf(name, sizeof(name), "g%d", i);
		commit(name, "beta", 1);
	}
	cr_expect_eq(list(5, NULL, NULL).groups_len, 3000);
}

/* ---- DescribeGroups ---- */

Test(api_admin, describe_at_every_version)
{
	commit("simple", "alpha", 1);
	struct conn *d = preparing("busy");
	struct bytes names[] = {BYTES_LITERAL("nowhere"), BYTES_LITERAL("busy"), BYTES_LITERAL("simple"), BYTES_LITERAL("busy")};
	for (int16_t v = 0; v <= 6; v++) {
		struct describe_groups_request in = {names, 4, v == 4};
		struct describe_groups_response out;
		conn_send(c, api_key_describe_groups, v, v, &in);
		conn_read(c, api_key_describe_groups, v, v, &out);
		cr_assert_eq(out.groups_len, 4);
		for (unsigned int i = 0; i < 4; i++) {
			cr_expect(bytes_equal(out.groups[i].group_id, names[i]));
			cr_expect_eq(out.groups[i].authorized_operations, v == 4 ? 3400 : INT32_MIN);
		}
		const struct describe_groups_response_group *nowhere = &out.groups[0], *busy = &out.groups[1], *simple = &out.groups[2];
		cr_expect_eq(nowhere->error_code, v >= 6 ? 69 : 0);
		cr_expect_eq(bytes_is_empty(nowhere->error_message), v < 6);
		cr_expect(bytes_equal(nowhere->group_state, BYTES_LITERAL("Dead")) && nowhere->members_len == 0);
		cr_expect(bytes_equal(busy->group_state, BYTES_LITERAL("PreparingRebalance")) && busy->error_code == 0);
		cr_expect(bytes_is_null(busy->error_message));
		cr_expect(bytes_equal(busy->protocol_type, BYTES_LITERAL("consumer")) && busy->protocol_data.len == 0);
		cr_assert_eq(busy->members_len, 1);
		cr_expect_gt(busy->members[0].member_id.len, 0);
		cr_expect(bytes_equal(busy->members[0].client_id, BYTES_LITERAL("test-client")));
		cr_expect(bytes_equal(busy->members[0].client_host, BYTES_LITERAL("/10.0.0.1")));
		cr_expect(busy->members[0].member_metadata.len == 0 && busy->members[0].member_assignment.len == 0);
		cr_expect(bytes_equal(simple->group_state, BYTES_LITERAL("Empty")) && simple->protocol_type.len == 0);
		cr_expect_eq(out.groups[3].members_len, 1);
	}
	conn_free(d);
}

/* ---- DeleteGroups ---- */

static void send_delete(struct conn *on, int16_t version, const struct bytes *names, int32_t n)
{
	struct delete_groups_request in = {names, n};
	conn_send(on, api_key_delete_groups, version, 42, &in);
}

static struct delete_groups_response read_delete(int16_t version)
{
	struct delete_groups_response out;
	conn_read(c, api_key_delete_groups, version, 42, &out);
	return out;
}

Test(api_admin, delete_at_every_version)
{
	struct conn *d = preparing("busy");
	for (int16_t v = 0; v <= 2; v++) {
		struct bytes names[] = {BYTES_LITERAL("nowhere"), BYTES_LITERAL("one"), BYTES_LITERAL("busy"), BYTES_LITERAL("two"),
					BYTES_LITERAL("one"), BYTES_EMPTY};
		static const int codes[] = {69, 0, 68, 0, 69};
		commit("one", "alpha", 6);
		commit("two", "beta", 1);
		send_delete(c, v, names, 6);
		cr_assert_eq(conn_answers(c), 0, "not before it is durable");
		rig_advance(rig, 1);
		struct delete_groups_response out = read_delete(v);
		cr_assert_eq(out.results_len, 5, "what stands there twice is answered once");
		for (int i = 0; i < 5; i++)
			cr_expect_eq(out.results[i].error_code, codes[i], "%d", i);
		cr_expect(bytes_equal(out.results[1].group_id, names[1]) && bytes_equal(out.results[4].group_id, names[5]));
		cr_expect_eq(list(5, NULL, NULL).groups_len, 1);
	}
	conn_free(d);
}

Test(api_admin, delete_of_nothing)
{
	send_delete(c, 2, NULL, 0);
	cr_expect_eq(read_delete(2).results_len, 0, "at once");
	struct bytes nowhere = BYTES_LITERAL("nowhere");
	send_delete(c, 2, &nowhere, 1);
	cr_expect_eq(read_delete(2).results[0].error_code, 69);
}

Test(api_admin, delete_behind_a_commit_in_one_go)
{
	struct offset_commit_response committed;
	struct bytes one = BYTES_LITERAL("one");
	begin_commit(c, "one", "alpha", 3);
	send_delete(c, 1, &one, 1);
	rig_advance(rig, 1);
	conn_read(c, api_key_offset_commit, 8, 77, &committed);
	cr_expect_eq(committed.topics[0].partitions[2].error_code, 0);
	cr_expect_eq(read_delete(1).results[0].error_code, 0);
	cr_expect_eq(list(5, NULL, NULL).groups_len, 0);
}

Test(api_admin, delete_of_thousands_in_all_shards)
{
	static struct bytes names[3000];
	static char text[3000][8];
	for (int i = 0; i < 3000; i++) {
		snprintf(text[i], sizeof(text[i]), "g%d", i);
		names[i] = bytes_str(text[i]);
		commit(text[i], "beta", 1);
	}
	send_delete(c, 2, names, 3000);
	rig_advance(rig, 1);
	struct delete_groups_response out = read_delete(2);
	cr_assert_eq(out.results_len, 3000);
	for (int i = 0; i < 3000; i++)
		cr_assert(out.results[i].error_code == 0 && bytes_equal(out.results[i].group_id, names[i]));
	cr_expect_eq(list(5, NULL, NULL).groups_len, 0);
	cr_expect_eq(rig->stats.group_deleted, 3000);
}

Test(api_admin, delete_whose_client_goes)
{
	struct bytes one = BYTES_LITERAL("one"), two = BYTES_LITERAL("two");
	commit("one", "alpha", 1);
	commit("two", "alpha", 1);
	struct conn *reset = rig_open(rig), *fin = rig_open(rig);
	send_delete(reset, 1, &one, 1);
	send_delete(fin, 1, &two, 1);
	conn_reset(reset);
	conn_fin(fin);
	cr_expect_eq(rig->stats.requests_parked_now, 1, "who only closed his half still gets his answer");
	rig_advance(rig, 2);
	struct delete_groups_response out;
	conn_read(fin, api_key_delete_groups, 1, 42, &out);
	cr_expect_eq(out.results[0].error_code, 0);
	cr_expect_eq(rig->stats.requests_parked_now, 0);
	cr_expect_eq(list(5, NULL, NULL).groups_len, 0, "both went");
	conn_free(reset);
	conn_free(fin);
}

/* ---- OffsetDelete ---- */

static struct offset_delete_response offset_delete(const char *group, const char *topic, int32_t first, int32_t second)
{
	struct offset_delete_request_partition p[] = {{first}, {second}};
	struct offset_delete_request_topic t[] = {{bytes_str(topic), p, 2}, {BYTES_LITERAL("nowhere"), p, 1}};
	struct offset_delete_request in = {bytes_str(group), t, 2};
	struct offset_delete_response out;
	conn_send(c, api_key_offset_delete, 0, 9, &in);
	rig_advance(rig, 1);
	conn_read(c, api_key_offset_delete, 0, 9, &out);
	return out;
}

Test(api_admin, offset_delete)
{
	commit("one", "alpha", 3);
	struct offset_delete_response out = offset_delete("one", "alpha", 1, 6);
	cr_assert(out.error_code == 0 && out.topics_len == 2);
	cr_expect(bytes_equal(out.topics[0].name, BYTES_LITERAL("alpha")) && out.topics[0].partitions_len == 2);
	cr_expect(out.topics[0].partitions[0].partition_index == 1 && out.topics[0].partitions[0].error_code == 0);
	cr_expect(out.topics[0].partitions[1].partition_index == 6 && out.topics[0].partitions[1].error_code == 3);
	cr_expect(out.topics[1].partitions_len == 1 && out.topics[1].partitions[0].error_code == 3);
	cr_expect_eq(list(5, "Empty", NULL).groups_len, 1);
	struct offset_value v;
	struct shard *shard = node_shard(rig->node, BYTES_LITERAL("one"));
	cr_expect(!shard_offset_get(shard, BYTES_LITERAL("one"), BYTES_LITERAL("alpha"), 1, &v));
	cr_expect(shard_offset_get(shard, BYTES_LITERAL("one"), BYTES_LITERAL("alpha"), 2, &v));
}

Test(api_admin, offset_delete_errors_of_the_whole_request)
{
	struct offset_delete_response out = offset_delete("none", "alpha", 0, 1);
	cr_expect(out.error_code == 69 && out.topics_len == 0);
	out = offset_delete("", "alpha", 0, 1);
	cr_expect(out.error_code == 24 && out.topics_len == 0);
	out = offset_delete("none", "unknown", 0, 1);
	cr_expect(out.error_code == ERROR_GROUP_ID_NOT_FOUND && out.topics_len == 0, "no partition is left, the group is asked all the same");
	commit("one", "alpha", 3);
	out = offset_delete("one", "unknown", 0, 1);
	cr_assert(out.error_code == 0 && out.topics_len == 2);
	cr_expect_eq(out.topics[0].partitions[1].error_code, 3);
}

Test(api_admin, offset_delete_of_topics_without_partitions)
{
	struct offset_delete_request_partition p = {0};
	struct offset_delete_request_topic t[] = {{BYTES_LITERAL("beta"), &p, 0}, {BYTES_LITERAL("nowhere"), &p, 0}, {BYTES_LITERAL("alpha"), &p, 1}};
	struct offset_delete_request in = {BYTES_LITERAL("one"), t, 3};
	struct offset_delete_response out;
	commit("one", "alpha", 1);
	conn_send(c, api_key_offset_delete, 0, 9, &in);
	rig_advance(rig, 1);
	conn_read(c, api_key_offset_delete, 0, 9, &out);
	cr_assert_eq(out.topics_len, 2, "what exists is left out, what does not is not");
	cr_expect(bytes_equal(out.topics[0].name, t[1].name) && out.topics[0].partitions_len == 0);
	cr_expect(bytes_equal(out.topics[1].name, t[2].name) && out.topics[1].partitions_len == 1);
}

/* ---- OffsetCommit ---- */

Test(api_admin, offset_commit_of_topics_without_partitions)
{
	struct offset_commit_request_partition one;
	offset_commit_request_partition_init(&one);
	struct offset_commit_request_topic topics[] = {{BYTES_LITERAL("alpha"), image_topic(rig->image, BYTES_LITERAL("alpha"))->id, &one, 0},
						       {BYTES_LITERAL("nowhere"), {{9}}, &one, 0},
						       {BYTES_LITERAL("beta"), image_topic(rig->image, BYTES_LITERAL("beta"))->id, &one, 1}};
	struct offset_commit_request in;
	struct offset_commit_response out;
	offset_commit_request_init(&in);
	in.group_id = BYTES_LITERAL("one");
	in.generation_id_or_member_epoch = -1;
	in.topics = topics;
	for (int16_t v = 9; v <= 10; v++) {
		in.topics_len = 3;
		conn_send(c, api_key_offset_commit, v, v, &in);
		rig_advance(rig, 2);
		conn_read(c, api_key_offset_commit, v, v, &out);
		cr_assert_eq(out.topics_len, 2, "what exists is left out, what does not is not");
		cr_expect(uuid_equal(&out.topics[0].topic_id, v < 10 ? &UUID_ZERO : &topics[1].topic_id) && out.topics[0].partitions_len == 0);
		cr_expect(out.topics[1].partitions_len == 1 && out.topics[1].partitions[0].error_code == 0);
		in.topics_len = 1;
		conn_send(c, api_key_offset_commit, v, 40 + v, &in);
		conn_read(c, api_key_offset_commit, v, 40 + v, &out);
		cr_expect_eq(out.topics_len, 0);
	}
}

/* ---- DescribeConfigs ---- */

static struct describe_configs_response_result configs(int16_t version, int8_t type, const char *name, const char *key, bool synonyms)
{
	struct bytes keys[] = {bytes_str(key), BYTES_LITERAL("no.such.setting")};
	struct describe_configs_request_resource r = {type, bytes_str(name), keys, key == NULL ? -1 : 2};
	struct describe_configs_request in = {&r, 1, synonyms, synonyms};
	struct describe_configs_response out;
	conn_send(c, api_key_describe_configs, version, 5, &in);
	conn_read(c, api_key_describe_configs, version, 5, &out);
	cr_assert_eq(out.results_len, 1);
	cr_expect(out.results[0].resource_type == type && bytes_equal(out.results[0].resource_name, bytes_str(name)));
	return out.results[0];
}

Test(api_admin, describe_configs_of_the_node)
{
	for (int16_t v = 0; v <= 4; v++) {
		struct describe_configs_response_result all = configs(v, 4, "1000", NULL, false);
		cr_assert_eq(all.configs_len, 2);
		cr_expect_eq(all.error_code, 0);
		struct describe_configs_response_result out = configs(v, 4, "1000", "group.max.size", v >= 3);
		cr_assert_eq(out.configs_len, 1);
		const struct describe_configs_response_config *s = &out.configs[0];
		cr_expect(bytes_equal(s->name, BYTES_LITERAL("group.max.size")) && bytes_equal(s->value, BYTES_LITERAL("7")));
		cr_expect(s->read_only && !s->is_sensitive && !s->is_default);
		cr_expect_eq(s->config_source, v >= 1 ? 4 : -1);
		cr_expect_eq(s->config_type, v >= 3 ? 3 : 0);
		cr_assert_eq(s->synonyms_len, v >= 3 ? 2 : 0);
		cr_expect_eq(bytes_is_empty(s->documentation), v < 3);
		if (v >= 3) {
			cr_expect(s->synonyms[0].source == 4 && bytes_equal(s->synonyms[0].value, BYTES_LITERAL("7")));
			cr_expect(s->synonyms[1].source == 5 && bytes_equal(s->synonyms[1].value, BYTES_LITERAL("2147483647")));
		}
		out = configs(v, 4, "1000", "offset.metadata.max.bytes", v >= 3);
		cr_assert_eq(out.configs_len, 1);
		cr_expect_eq(out.configs[0].is_default, v == 0);
		cr_expect_eq(out.configs[0].config_source, v >= 1 ? 5 : -1);
		cr_expect_eq(out.configs[0].synonyms_len, v >= 3 ? 1 : 0);
		cr_expect_eq(configs(v, 4, "1000", "other", false).configs_len, 0);
	}
}

Test(api_admin, describe_configs_of_no_name_in_particular)
{
	struct describe_configs_request_resource r = {4, BYTES_LITERAL("1000"), NULL, 0};
	struct describe_configs_request in = {&r, 1, false, false};
	struct describe_configs_response out;
	conn_send(c, api_key_describe_configs, 4, 5, &in);
	conn_read(c, api_key_describe_configs, 4, 5, &out);
	cr_expect_eq(out.results[0].configs_len, 2, "an empty list of names means all, like none");
}

Test(api_admin, describe_configs_of_groups)
{
	struct group_rules *rules = group_rules_new();
	struct group_override_values own = {.set = 1u << GROUP_OVERRIDE_group_max_size};
	own.values[GROUP_OVERRIDE_group_max_size] = 40;
	cr_assert(group_rules_add(rules, BYTES_LITERAL("orders-"), true, &own));
	group_rules_seal(rules, &c->rig->settings);
	c->rig->settings.rules = rules;
	for (int16_t v = 1; v <= 4; v++) {
		struct describe_configs_response_result out = configs(v, 32, "orders-eu", NULL, true);
		cr_expect_eq(out.error_code, 0);
		cr_assert_eq(out.configs_len, 1, "the rig's node has one setting that groups can have for themselves");
		const struct describe_configs_response_config *s = &out.configs[0];
		cr_expect(bytes_equal(s->name, BYTES_LITERAL("group.max.size")) && bytes_equal(s->value, BYTES_LITERAL("40")));
		cr_expect_eq(s->config_source, 8); /* DYNAMIC_GROUP_CONFIG */
		cr_assert_eq(s->synonyms_len, 3);
		cr_expect(s->synonyms[0].source == 8 && bytes_equal(s->synonyms[0].value, BYTES_LITERAL("40")));
		cr_expect_eq(s->synonyms[1].source, 4);
		cr_expect_eq(s->synonyms[2].source, 5);
		out = configs(v, 32, "other", "group.max.size", true);
		cr_assert_eq(out.configs_len, 1);
		cr_expect(bytes_equal(out.configs[0].value, BYTES_LITERAL("7")));
		cr_expect_eq(out.configs[0].config_source, 4);
		cr_expect_eq(out.configs[0].synonyms_len, 2);
		cr_expect_eq(configs(v, 32, "other", "offset.metadata.max.bytes", true).configs_len, 0);
	}
	c->rig->settings.rules = NULL;
	group_rules_free(rules);
}

Test(api_admin, describe_configs_of_others)
{
	static const struct {
		int8_t type;
		const char *name;
		int error;
	} cases[] = {
		{4, "", 0}, {4, "1001", 42}, {4, "x", 42}, {2, "alpha", 0}, {2, "none", 3}, {2, "a b", 17}, {32, "g", 0}, {32, "", 42}, {8, "1000", 42},
		{16, "m", 42}, {0, "", 42}, {-1, "", 42},
	};
	for (unsigned int i = 0; i < ARRAY_LEN(cases); i++) {
		struct describe_configs_response_result out = configs(4, cases[i].type, cases[i].name, NULL, true);
		cr_expect_eq(out.error_code, cases[i].error, "%d %s", cases[i].type, cases[i].name);
		cr_expect_eq(out.configs_len, cases[i].type == 32 && cases[i].error == 0 ? 1 : 0);
		cr_expect_eq(out.error_message.len > 0, cases[i].error != 0);
	}
}
