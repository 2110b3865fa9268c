/*
 * memory.c - the sums behind `muster config --check` and the shortfall message.
 *
 * Two purses: EAL's memory (mbufs, connection tables; huge pages where there are some) and the allocator's (TCP state,
 * framing state, buffers). The buffers are counted at their configured limit, because that is what they may grow to.
 */
#include <rte_mbuf.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/arp.h"
#include "dataplane/exchange.h"
#include "dataplane/flow.h"
#include "dataplane/memory.h"
#include "dataplane/port.h"

/* EAL's own heap, ethdev and driver state, alignment of the pools. */
#define EAL_BASE_BYTES (16 * MIB)
/* Of one mbuf beside its data room: header, mempool object header and cache alignment. */
#define MBUF_OVERHEAD (sizeof(struct rte_mbuf) + 128)

struct tcp_config memory_tcp_config(const struct dataplane_config *cfg)
{
	return (struct tcp_config){
		.max_connections = cfg->max_connections,
		.mtu = cfg->mtu,
		.receive_buffer_bytes = cfg->receive_buffer_bytes,
		.send_buffer_bytes = cfg->send_buffer_bytes,
		.buffer_memory_bytes = cfg->buffer_memory_bytes / 2,
		.rto_min_us = cfg->rto_min_us,
		.rto_max_us = cfg->rto_max_us,
		.delayed_ack_us = cfg->delayed_ack_us,
		.keepalive_us = cfg->keepalive_us,
		.time_wait_us = cfg->time_wait_us,
	};
}

struct frames_config memory_frames_config(const struct dataplane_config *cfg)
{
	return (struct frames_config){
		.max_connections = cfg->max_connections,
		.max_frame_bytes = cfg->max_frame_bytes,
		.memory_bytes = cfg->buffer_memory_bytes / 2,
		.idle_timeout_us = cfg->idle_timeout_us,
	};
}

static size_t mbuf_bytes(const struct dataplane_config *cfg)
{
	return (size_t)port_mbufs(cfg) * (port_mbuf_bytes(cfg->mtu) + MBUF_OVERHEAD);
}

/* The allocator's part that grows with max.connections, without the buffers. */
static size_t connection_bytes(const struct dataplane_config *cfg)
{
	struct tcp_config tcp = memory_tcp_config(cfg);
	struct frames_config frames = memory_frames_config(cfg);
	frames.memory_bytes = 0;
	return tcp_memory_needed(&tcp) + frames_memory_needed(&frames);
}

struct eal_memory memory_needed(const struct dataplane_config *cfg)
{
	size_t dpdk = mbuf_bytes(cfg) + flow_memory_needed(cfg->max_connections);
	size_t heap = connection_bytes(cfg) + arp_memory_needed() + cfg->buffer_memory_bytes;
	return (struct eal_memory){EAL_BASE_BYTES + dpdk * cfg->workers, heap * cfg->workers + exchange_memory_needed(cfg->workers)};
}

/* ---- the machine ---- */

static bool read_number(const char *path, size_t *out)
{
	char text[64];
	FILE *f = fopen(path, "re");
	if (f == NULL)
		return false;
	bool ok = fgets(text, sizeof(text), f) != NULL && text[0] >= '0' && text[0] <= '9';
	if (ok)
		*out = strtoull(text, NULL, 10);
	fclose(f);
	return ok;
}

size_t memory_huge_free(void)
{
	static const struct {
		const char *path;
		size_t size;
	} kinds[] = {
		{"/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", 2 * MIB},
		{"/sys/kernel/mm/hugepages/hugepages-1048576kB/free_hugepages", 1024 * MIB},
	};
	size_t sum = 0, n;
	for (unsigned int i = 0; i < ARRAY_LEN(kinds); i++)
		if (read_number(kinds[i].path, &n))
			sum += n * kinds[i].size;
	return sum;
}

size_t memory_available(void)
{
	size_t available = SIZE_MAX, limit, used, kib;
	char line[128];
	FILE *f = fopen("/proc/meminfo", "re");
	while (f != NULL && fgets(line, sizeof(line), f) != NULL)
		if (sscanf(line, "MemAvailable: %zu kB", &kib) == 1)
			available = kib * 1024;
	if (f != NULL)
		fclose(f);
	/* in a container the group's own files are at the top */
	if (read_number("/sys/fs/cgroup/memory.max", &limit) && read_number("/sys/fs/cgroup/memory.current", &used)) {
		size_t left = limit > used ? limit - used : 0;
		available = left < available ? left : available;
	}
	return available;
}

/* ---- the message ---- */

void memory_shortfall(const struct dataplane_config *cfg, size_t need, size_t have, char *out, size_t out_len)
{
	struct {
		const char *what;
		size_t bytes;
	} parts[] = {
		{"buffer.memory", cfg->buffer_memory_bytes},
		{"max.connections", connection_bytes(cfg) + flow_memory_needed(cfg->max_connections)},
		{"rx.descriptors, tx.descriptors or mtu", mbuf_bytes(cfg)},
	};
	unsigned int largest = 0;
	for (unsigned int i = 1; i < ARRAY_LEN(parts); i++)
		if (parts[i].bytes > parts[largest].bytes)
			largest = i;
	snprintf(out, out_len,
		 "%zu MiB of memory are missing: the configured limits need %zu MiB, %zu MiB are available; lower %s (it takes %zu MiB)",
		 (need - have + MIB - 1) / MIB, (need + MIB - 1) / MIB, have / MIB, parts[largest].what,
		 parts[largest].bytes * cfg->workers / MIB);
}
