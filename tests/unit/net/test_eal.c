/*
 * test_eal.c - EAL's argument list and the memory sums, without starting EAL.
 */
#define _GNU_SOURCE /* CPU sets */
#include <criterion/criterion.h>
#include <sched.h>
#include <string.h>

#include "dataplane/memory.h"
#include "dataplane/port.h"

static struct dataplane_config cfg;
static struct eal eal;

static void init(void)
{
	cfg = (struct dataplane_config){
		.device = "net_tap0,iface=muster0", .eal_extra = "", .file_prefix = "", .mac = "", .mtu = 1500, .workers = 1, .cpu = 3,
		.rx_descriptors = 1024, .tx_descriptors = 1024, .max_connections = 1000, .max_frame_bytes = 1 << 20,
		.receive_buffer_bytes = 1 << 16, .send_buffer_bytes = 1 << 16, .buffer_memory_bytes = 64 * MIB,
	};
}

TestSuite(eal, .init = init);

static bool has(const char *arg)
{
	for (int i = 0; i < eal.argc; i++)
		if (strcmp(eal.argv[i], arg) == 0)
			return true;
	return false;
}

Test(eal, virtual_device_on_small_pages)
{
	cr_assert(eal_arguments(&eal, &cfg, false, 33 * MIB + 1));
	cr_assert(has("--no-huge") && has("-m") && has("34") && has("--no-shconf"));
	cr_assert(has("--no-pci") && has("--vdev=net_tap0,iface=muster0") && has("--lcores=0@3"));
	cr_assert_not(has("--in-memory"));
	cr_assert_null(eal.argv[eal.argc]);
}

Test(eal, huge_pages)
{
	cr_assert(eal_arguments(&eal, &cfg, true, MIB));
	cr_assert(has("--in-memory"));
	cr_assert_not(has("--no-huge") || has("--no-shconf"));
}

Test(eal, pci_device)
{
	cfg.device = "0000:3b:00.1,arg=1";
	cr_assert(eal_arguments(&eal, &cfg, true, MIB));
	cr_assert(has("-a") && has("0000:3b:00.1,arg=1"));
	cr_assert_not(has("--no-pci"));
}

Test(eal, further_arguments_and_prefix)
{
	cfg.eal_extra = "  --log-level=debug \t -n 4 ";
	cfg.file_prefix = "mine";
	cr_assert(eal_arguments(&eal, &cfg, true, MIB));
	cr_assert(has("--log-level=debug") && has("-n") && has("4") && has("--file-prefix=mine"));
	cr_assert_str_eq(eal.argv[eal.argc - 1], "4");
}

Test(eal, several_workers_on_cpus_in_a_row)
{
	cfg.workers = 3;
	cr_assert(eal_arguments(&eal, &cfg, true, MIB));
	cr_assert(has("--lcores=0@3,1@4,2@5"));
}

Test(eal, several_workers_share_the_cpus_of_the_process)
{
	bool found = false;
	cfg.workers = 3;
	cfg.cpu = -1;
	cr_assert(eal_arguments(&eal, &cfg, true, MIB));
	for (int i = 0; i < eal.argc; i++)
		found |= strncmp(eal.argv[i], "--lcores=(0-2)@(", strlen("--lcores=(0-2)@(")) == 0;
	cr_assert(found);
}

Test(eal, a_map_names_cpus)
{
	static const struct dataplane_worker each[] = {
		{.place = "", .cpu = 5, .queue = 0}, {.place = "", .cpu = -1, .queue = -1}, {.place = "", .cpu = -1, .queue = -1}, {.place = "", .cpu = 2, .queue = 1}};
	bool found = false;
	cfg.workers = 4;
	cfg.per_worker = each;
	cr_assert(eal_arguments(&eal, &cfg, true, MIB));
	for (int i = 0; i < eal.argc; i++) {
		size_t len = strlen(eal.argv[i]);
		found |= strncmp(eal.argv[i], "--lcores=0@5,(1-2)@(", 20) == 0 && strcmp(eal.argv[i] + len - 5, "),3@2") == 0;
	}
	cr_assert(found);
}

/* Who has no CPU keeps off those of the others, as long as there is another one. */
Test(eal, a_named_cpu_is_not_shared)
{
	cpu_set_t allowed;
	cr_assert(sched_getaffinity(0, sizeof(allowed), &allowed) == 0);
	int first = -1, others = 0;
	for (int c = 0; c < CPU_SETSIZE; c++) {
		if (CPU_ISSET(c, &allowed) && first < 0)
			first = c;
		else
			others += CPU_ISSET(c, &allowed);
	}
	if (others == 0)
		cr_skip("one CPU only");
	struct dataplane_worker each[] = {{.place = "", .cpu = first, .queue = 0}, {.place = "", .cpu = -1, .queue = 1}};
	char shared[40];
	cfg.workers = 2;
	cfg.per_worker = each;
	cr_assert(eal_arguments(&eal, &cfg, true, MIB));
	snprintf(shared, sizeof(shared), ",1@(%d", first);
	for (int i = 0; i < eal.argc; i++) {
		const char *list = strstr(eal.argv[i], shared);
		cr_assert(list == NULL || (list[strlen(shared)] >= '0' && list[strlen(shared)] <= '9'), "%s", eal.argv[i]);
	}
}

Test(eal, rings_between_workers_are_counted)
{
	struct eal_memory one = memory_needed(&cfg), three;
	cfg.workers = 3;
	three = memory_needed(&cfg);
	cr_assert_geq(three.heap, 3 * one.heap + 6 * EXCHANGE_MAIL * sizeof(struct mail));
}

Test(eal, too_long_is_refused)
{
	static char words[4096];
	for (size_t i = 0; i + 1 < sizeof(words); i++)
		words[i] = i % 2 == 0 ? 'x' : ' ';
	cfg.eal_extra = words;
	cr_assert_not(eal_arguments(&eal, &cfg, true, MIB));
	memset(words, 'y', sizeof(words) - 1);
	cr_assert_not(eal_arguments(&eal, &cfg, true, MIB));
}

Test(eal, memory_follows_the_settings)
{
	struct eal_memory base = memory_needed(&cfg), more;
	cr_assert_geq(base.heap, 64 * MIB);
	cr_assert_eq(dataplane_memory_needed(&cfg), base.dpdk + base.heap);
	cfg.buffer_memory_bytes += 10 * MIB;
	more = memory_needed(&cfg);
	cr_assert_eq(more.heap, base.heap + 10 * MIB);
	cr_assert_eq(more.dpdk, base.dpdk);
	init();
	cfg.max_connections = 101000;
	more = memory_needed(&cfg);
	cr_assert_geq(more.dpdk, base.dpdk + 100000 * 100);
	cr_assert_geq(more.heap, base.heap + 100000 * 200);
	init();
	cfg.rx_descriptors += 1000;
	more = memory_needed(&cfg);
	cr_assert_geq(more.dpdk, base.dpdk + 1000 * port_mbuf_bytes(1500));
	cr_assert_eq(more.heap, base.heap);
}

Test(eal, mbufs_hold_a_whole_frame)
{
	cr_assert_geq(port_mbuf_bytes(1500), RTE_PKTMBUF_HEADROOM + 2048);
	cr_assert_geq(port_mbuf_bytes(9000), RTE_PKTMBUF_HEADROOM + 9014);
	cr_assert_gt(port_mbufs(&cfg), 2048);
}

Test(eal, shortfall_names_the_largest_consumer)
{
	char text[512];
	memory_shortfall(&cfg, 100 * MIB, 70 * MIB, text, sizeof(text));
	cr_assert_not_null(strstr(text, "30 MiB of memory are missing"), "%s", text);
	cr_assert_not_null(strstr(text, "lower buffer.memory (it takes 64 MiB)"), "%s", text);
	cfg.max_connections = 4000000;
	memory_shortfall(&cfg, 100 * MIB, 70 * MIB, text, sizeof(text));
	cr_assert_not_null(strstr(text, "lower max.connections"), "%s", text);
}

Test(eal, shares_of_the_buffer_memory)
{
	cr_assert_eq(memory_tcp_config(&cfg).buffer_memory_bytes + memory_frames_config(&cfg).memory_bytes, cfg.buffer_memory_bytes);
}
