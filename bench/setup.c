/*
 * setup.c - see setup.h.
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/setup.h"
#include "muster/time.h"

void setup_init(struct setup *setup)
{
	*setup = (struct setup){
		.dataplane = {
			.device = "net_tap0,iface=muster0",
			.eal_extra = "",
			.file_prefix = "",
			.mac = "",
			.addr = 0x0a4d0002, /* 10.77.0.2 */
			.prefix_len = 24,
			.mtu = 1500,
			.port = 19092,
			.workers = 1,
			.cpu = -1,
			.idle = IDLE_ADAPTIVE,
			.rx_descriptors = 1024,
			.tx_descriptors = 1024,
			.max_connections = 16384,
			.max_frame_bytes = 1 << 20,
			.receive_buffer_bytes = 102400,
			.send_buffer_bytes = 102400,
			.buffer_memory_bytes = 256 << 20,
			.rto_min_us = 50 * US_PER_MS,
			.rto_max_us = 60 * US_PER_S,
			.delayed_ack_us = 20 * US_PER_MS,
			.keepalive_us = 60 * US_PER_S,
			.time_wait_us = US_PER_S,
		},
	};
}

static bool address(const char *text, uint32_t *out)
{
	struct in_addr a;
	if (inet_pton(AF_INET, text, &a) != 1)
		return false;
	*out = ntohl(a.s_addr);
	return true;
}

static bool network(const char *text, uint32_t *addr, unsigned int *prefix_len)
{
	char copy[32];
	const char *slash = strchr(text, '/');
	if (slash == NULL || (size_t)(slash - text) >= sizeof(copy))
		return false;
	memcpy(copy, text, (size_t)(slash - text));
	copy[slash - text] = '\0';
	*prefix_len = (unsigned int)atoi(slash + 1);
	return *prefix_len >= 1 && *prefix_len <= 31 && address(copy, addr);
}

bool setup_option(void *arg, const char *name, const char *value)
{
	struct setup *setup = arg;
	struct dataplane_config *cfg = &setup->dataplane;
	if (strcmp(name, "--device") == 0)
		cfg->device = value;
	else if (strcmp(name, "--address") == 0)
		return network(value, &cfg->addr, &cfg->prefix_len);
	else if (strcmp(name, "--server") == 0)
		return address(value, &setup->server);
	else if (strcmp(name, "--port") == 0)
		cfg->port = (uint16_t)atoi(value);
	else if (strcmp(name, "--cpu") == 0)
		cfg->cpu = atoi(value);
	else if (strcmp(name, "--idle") == 0)
		cfg->idle = strcmp(value, "spin") == 0 ? IDLE_SPIN : IDLE_ADAPTIVE;
	else
		return false;
	return true;
}

void setup_print_stats(struct dataplane *dp)
{
	const struct stats *stats = dataplane_stats(dp, 0);
	for (size_t i = 0; i < ARRAY_LEN(stats_rows); i++) {
		uint64_t value = stats_value(stats, &stats_rows[i]);
		if (value != 0)
			printf("stats: worker 0: %s %" PRIu64 "\n", stats_rows[i].name, value);
	}
	fflush(stdout);
}
