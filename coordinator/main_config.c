/*
 * main_config.c - see main_config.h.
 */
#include <stdio.h>
#include <string.h>

#include "coordinator/main_config.h"

/* Of a map that was read from a file: the rule of the settings is the dataplane's own. */
static const struct dataplane_worker *places_of(const struct core_map *map, struct worker_places *places)
{
	for (unsigned int w = 0; w < map->workers; w++) {
		const struct core_map_worker *from = &map->worker[w];
		const int *queue_line = &from->lines[CORE_MAP_KEY_queue];
		snprintf(places->text[w], sizeof(places->text[w]), "%s:%d", map->path, *queue_line > 0 ? *queue_line : from->line);
		places->each[w] = (struct dataplane_worker){
			.place = places->text[w],
			.cpu = from->cpu,
			.queue = from->queue,
			.numa = from->numa,
			.port = (uint16_t)from->port,
			.idle = (enum idle_policy)from->idle,
		};
	}
	return places->each;
}

void dataplane_config_of(const struct config *cfg, const struct core_map *map, struct worker_places *places, struct dataplane_config *out)
{
	*out = (struct dataplane_config){
		.device = cfg->device,
		.eal_extra = cfg->eal_extra,
		.file_prefix = cfg->file_prefix,
		.mac = cfg->mac,
		.addr = cfg->address.addr,
		.gateway = cfg->gateway,
		.prefix_len = cfg->address.prefix_len,
		.mtu = (unsigned int)cfg->mtu,
		.port = (uint16_t)map->worker[0].port,
		.workers = map->workers,
		.queues = (unsigned int)cfg->device_queues,
		.cpu = (int)cfg->cpu,
		.idle = (enum idle_policy)cfg->idle_policy,
		.per_worker = map->path[0] != '\0' ? places_of(map, places) : NULL,
		.stall_limit_us = (uint64_t)cfg->worker_stall_limit_ms * US_PER_MS,
		.huge_pages = cfg->huge_pages,
		.rx_descriptors = (unsigned int)cfg->rx_descriptors,
		.tx_descriptors = (unsigned int)cfg->tx_descriptors,
		.max_connections = (unsigned int)cfg->max_connections,
		.max_frame_bytes = (size_t)cfg->socket_request_max_bytes,
		.receive_buffer_bytes = (size_t)cfg->socket_receive_buffer_bytes,
		.send_buffer_bytes = (size_t)cfg->socket_send_buffer_bytes,
		.buffer_memory_bytes = (size_t)cfg->buffer_memory,
		.idle_timeout_us = (uint64_t)cfg->connections_max_idle_ms * US_PER_MS,
		.rto_min_us = (uint64_t)cfg->tcp_rto_min_ms * US_PER_MS,
		.rto_max_us = (uint64_t)cfg->tcp_rto_max_ms * US_PER_MS,
		.delayed_ack_us = (uint64_t)cfg->tcp_delayed_ack_ms * US_PER_MS,
		.keepalive_us = (uint64_t)cfg->tcp_keepalive_ms * US_PER_MS,
		.time_wait_us = (uint64_t)cfg->tcp_time_wait_ms * US_PER_MS,
		.inject_loss_ppm = (unsigned int)cfg->fault_inject_loss_ppm,
		.inject_duplicate_ppm = (unsigned int)cfg->fault_inject_duplicate_ppm,
		.inject_reorder_ppm = (unsigned int)cfg->fault_inject_reorder_ppm,
		.inject_corrupt_ppm = (unsigned int)cfg->fault_inject_corrupt_ppm,
		.inject_seed = (uint64_t)cfg->fault_inject_seed,
	};
}

void group_settings_of(const struct config *cfg, struct group_settings *out)
{
	*out = (struct group_settings){
		.group_min_session_timeout_ms = (int32_t)cfg->group_min_session_timeout_ms,
		.group_max_session_timeout_ms = (int32_t)cfg->group_max_session_timeout_ms,
		.group_initial_rebalance_delay_ms = (int32_t)cfg->group_initial_rebalance_delay_ms,
		.group_max_size = (int32_t)cfg->group_max_size,
		.group_join_window_ms = (int32_t)cfg->group_join_window_ms,
		.group_join_window_max_ms = (int32_t)cfg->group_join_window_max_ms,
		.group_max_pending_members = (int32_t)cfg->group_max_pending_members,
		.group_record_max_bytes = (int32_t)cfg->group_record_max_bytes,
		.offset_metadata_max_bytes = (int32_t)cfg->offset_metadata_max_bytes,
		.offsets_commit_timeout_ms = (int32_t)cfg->offsets_commit_timeout_ms,
		.journal_events = (int32_t)cfg->journal_events,
		.journal_removed_members = (int32_t)cfg->journal_removed_members,
		.journal_removed_minutes = (int32_t)cfg->journal_removed_minutes,
		.offsets_retention_minutes = (int32_t)cfg->offsets_retention_minutes,
		.offsets_retention_check_interval_ms = cfg->offsets_retention_check_interval_ms,
	};
}

void host_of(const struct config *cfg, char *out, size_t len)
{
	uint32_t a = cfg->address.addr;
	if (cfg->advertised_host[0] != '\0')
		snprintf(out, len, "%s", cfg->advertised_host);
	else
		snprintf(out, len, "%u.%u.%u.%u", a >> 24, a >> 16 & 255, a >> 8 & 255, a & 255);
}
