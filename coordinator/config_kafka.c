/*
 * config_kafka.c - see config_kafka.h. Only what is in force here stands in the table; the names come from config.def.
 */
#include <stdio.h>

#include "coordinator/config_kafka.h"
#include "coordinator/config_value.h"
#include "muster/check.h"

static const struct {
	enum config_id id;
	enum setting_type type;
	bool of_groups_only; /* not Kafka's: shown of groups */
} kafka_rows[] = {
	{CONFIG_ID_node_id, SETTING_INT},
	{CONFIG_ID_max_connections, SETTING_INT},
	{CONFIG_ID_connections_max_idle_ms, SETTING_LONG},
	{CONFIG_ID_socket_request_max_bytes, SETTING_INT},
	{CONFIG_ID_socket_receive_buffer_bytes, SETTING_INT},
	{CONFIG_ID_socket_send_buffer_bytes, SETTING_INT},
	{CONFIG_ID_group_min_session_timeout_ms, SETTING_INT},
	{CONFIG_ID_group_max_session_timeout_ms, SETTING_INT},
	{CONFIG_ID_group_initial_rebalance_delay_ms, SETTING_INT},
	{CONFIG_ID_group_max_size, SETTING_INT},
	{CONFIG_ID_group_join_window_ms, SETTING_INT, true},
	{CONFIG_ID_group_join_window_max_ms, SETTING_INT, true},
	{CONFIG_ID_group_max_pending_members, SETTING_INT, true},
	{CONFIG_ID_offset_metadata_max_bytes, SETTING_INT},
	{CONFIG_ID_offsets_commit_timeout_ms, SETTING_INT},
	{CONFIG_ID_offsets_retention_minutes, SETTING_INT},
	{CONFIG_ID_offsets_retention_check_interval_ms, SETTING_LONG},
	{CONFIG_ID_offsets_topic_num_partitions, SETTING_INT},
};
_Static_assert(ARRAY_LEN(kafka_rows) <= CONFIG_KAFKA_MAX, "");

void config_kafka(struct config_kafka *out, const struct config *cfg, int32_t node)
{
	out->len = ARRAY_LEN(kafka_rows);
	for (unsigned int i = 0; i < out->len; i++) {
		const struct config_row *row = config_row(kafka_rows[i].id);
		char *value = out->values[i];
		CHECK(row->type == CONFIG_NUMBER);
		if (kafka_rows[i].id == CONFIG_ID_node_id)
			snprintf(value, sizeof(out->values[i]), "%d", node);
		else
			config_value_format(cfg, row, value, sizeof(out->values[i]));
		out->list[i] = (struct setting){
			.name = bytes_str(row->name),
			.value = bytes_str(value),
			.default_value = bytes_str(row->default_text),
			.help = bytes_str(row->help),
			.type = kafka_rows[i].type,
			.of_groups_only = kafka_rows[i].of_groups_only,
			.source = cfg->origin[kafka_rows[i].id].source == CONFIG_FROM_DEFAULT ? SETTING_FROM_DEFAULT : SETTING_FROM_FILE,
		};
	}
}
