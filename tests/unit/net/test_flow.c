/*
 * test_flow.c - the connection table, on EAL's memory without huge pages, devices or root.
 */
#include <criterion/criterion.h>
#include <rte_eal.h>
#include <unistd.h>

#include "dataplane/flow.h"

#define CONNS 5000u

struct tcp_conn {
	struct tcp_tuple tuple;
};

const struct tcp_tuple *tcp_conn_tuple(const struct tcp_conn *conn)
{
	return &conn->tuple;
}

static struct tcp_conn conns[CONNS];
static struct flow *flow;

static void init(void)
{
	char name[] = "test", no_huge[] = "--no-huge", m[] = "-m", mib[] = "64", shconf[] = "--no-shconf", pci[] = "--no-pci";
	char telemetry[] = "--no-telemetry", level[] = "--log-level=error", prefix[64];
	snprintf(prefix, sizeof(prefix), "--file-prefix=test-%d", (int)getpid());
	char *argv[] = {name, no_huge, m, mib, shconf, pci, telemetry, level, prefix, NULL};
	cr_assert_geq(rte_eal_init(ARRAY_LEN(argv) - 1, argv), 0);
	flow = flow_new("test", CONNS, 12345);
	cr_assert_not_null(flow);
	for (uint32_t i = 0; i < CONNS; i++)
		conns[i].tuple = (struct tcp_tuple){1, 0x0a000000 + i / 100, 19092, (uint16_t)(1000 + i % 100)};
}

static void fini(void)
{
	char dir[256];
	snprintf(dir, sizeof(dir), "%s", rte_eal_get_runtime_dir());
	flow_free(flow);
	rte_eal_cleanup();
	rmdir(dir);
}

TestSuite(flow, .init = init, .fini = fini);

Test(flow, takes_every_connection_up_to_the_limit_and_finds_it)
{
	const struct tcp_tuple *tuples[FLOW_BULK_MAX];
	struct tcp_conn *found[FLOW_BULK_MAX];
	for (uint32_t i = 0; i < CONNS; i++)
		cr_assert(flow_add(flow, &conns[i]), "number %u", i);
	for (uint32_t i = 0; i < CONNS; i++)
		cr_assert_eq(flow_find(flow, &conns[i].tuple), &conns[i]);
	for (uint32_t i = 0; i < CONNS; i += 2)
		flow_remove(flow, &conns[i]);
	for (uint32_t i = 0; i < FLOW_BULK_MAX; i++)
		tuples[i] = &conns[1000 + i].tuple;
	flow_find_bulk(flow, tuples, FLOW_BULK_MAX, found);
	for (uint32_t i = 0; i < FLOW_BULK_MAX; i++)
		cr_assert_eq(found[i], i % 2 == 0 ? NULL : &conns[1000 + i]);
	for (uint32_t i = 0; i < CONNS; i += 2)
		cr_assert(flow_add(flow, &conns[i]));
}

Test(flow, every_part_of_the_tuple_counts)
{
	cr_assert(flow_add(flow, &conns[0]));
	for (int i = 0; i < 4; i++) {
		struct tcp_tuple t = conns[0].tuple;
		t.local_addr ^= i == 0;
		t.remote_addr ^= i == 1;
		t.local_port ^= i == 2;
		t.remote_port ^= i == 3;
		cr_assert_null(flow_find(flow, &t));
	}
}

Test(flow, generation_changes_with_every_change)
{
	uint64_t g = flow_generation(flow);
	flow_add(flow, &conns[0]);
	cr_assert_neq(flow_generation(flow), g);
	g = flow_generation(flow);
	flow_find(flow, &conns[0].tuple);
	cr_assert_eq(flow_generation(flow), g);
	flow_remove(flow, &conns[0]);
	cr_assert_neq(flow_generation(flow), g);
}

Test(flow, memory_sum_covers_the_table)
{
	cr_assert_geq(flow_memory_needed(1000000), 1000000u * 100);
}
