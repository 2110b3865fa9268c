/*
 * test_inject.c - injected faults, on EAL's memory without huge pages, devices or root.
 */
#include <criterion/criterion.h>
#include <rte_eal.h>
#include <unistd.h>

#include "dataplane/inject.h"
#include "dataplane/mbufs.h"

#define FRAMES 20000u
#define LEN 64u

static struct rte_mempool *pool;

static void init(void)
{
	char name[] = "test", no_huge[] = "--no-huge", m[] = "-m", mib[] = "64", shconf[] = "--no-shconf", pci[] = "--no-pci";
	char telemetry[] = "--no-telemetry", level[] = "--log-level=error", prefix[64];
	snprintf(prefix, sizeof(prefix), "--file-prefix=test-%d", (int)getpid());
	char *argv[] = {name, no_huge, m, mib, shconf, pci, telemetry, level, prefix, NULL};
	cr_assert_geq(rte_eal_init(ARRAY_LEN(argv) - 1, argv), 0);
	pool = mbufs_new("test", 8191, 2048 + RTE_PKTMBUF_HEADROOM, SOCKET_ID_ANY);
	cr_assert_not_null(pool);
	cr_assert_eq(pool->elt_size, sizeof(struct rte_mbuf) + RTE_PKTMBUF_HEADROOM + 2048);
	cr_assert_eq(rte_pktmbuf_data_room_size(pool), RTE_PKTMBUF_HEADROOM + 2048);
}

static void fini(void)
{
	char dir[256];
	cr_assert_eq(rte_mempool_in_use_count(pool), 0, "an mbuf was lost");
	snprintf(dir, sizeof(dir), "%s", rte_eal_get_runtime_dir());
	mbufs_free(pool);
	rte_eal_cleanup();
	rmdir(dir);
}

TestSuite(inject, .init = init, .fini = fini);

static struct rte_mbuf *make(uint32_t number)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	cr_assert_not_null(m);
	uint8_t *p = (uint8_t *)rte_pktmbuf_append(m, LEN);
	memset(p, 0, LEN);
	p[12] = 8;
	memcpy(p + 20, &number, 4);
	m->ol_flags = RTE_MBUF_F_RX_L4_CKSUM_GOOD;
	return m;
}

struct outcome {
	unsigned int out, late, twice, damaged;
	uint64_t digest;
};

static void look(struct outcome *o, struct rte_mbuf *m, uint32_t *highest)
{
	const uint8_t *p = rte_pktmbuf_mtod(m, const uint8_t *);
	uint32_t number;
	unsigned int bits = 0;
	memcpy(&number, p + 20, 4);
	for (unsigned int i = 14; i < LEN; i++)
		bits += i < 20 || i >= 24 ? (unsigned int)__builtin_popcount(p[i]) : 0;
	bool damaged = m->ol_flags == 0;
	o->out++;
	o->damaged += damaged;
	if (!damaged) {
		cr_assert_eq(bits, 0);
		o->late += number < *highest;
		o->twice += number == *highest;
		*highest = number > *highest ? number : *highest;
	}
	o->digest = o->digest * 31 + number;
	rte_pktmbuf_free(m);
}

static struct outcome run(struct inject_rates rates, uint64_t seed)
{
	struct outcome o = {0};
	struct inject_side *side = inject_side_new(&rates, seed, pool);
	uint32_t highest = 0, number = 1;
	while (number <= FRAMES) {
		struct rte_mbuf *burst[64];
		uint16_t n = 0;
		while (n < number % 32 + 1 && number <= FRAMES)
			burst[n++] = make(number++);
		n = inject_burst(side, burst, n, 64);
		for (uint16_t i = 0; i < n; i++)
			look(&o, burst[i], &highest);
	}
	for (int i = 0; i < 100; i++) { /* empty bursts let out what is held */
		struct rte_mbuf *burst[64];
		if (inject_burst(side, burst, 0, 64) > 0)
			look(&o, burst[0], &highest);
	}
	inject_side_free(side);
	return o;
}

static void about(unsigned int value, unsigned int ppm)
{
	double want = (double)FRAMES * ppm / 1e6;
	cr_assert(value > want * 0.8 && value < want * 1.2, "%u, about %.0f expected", value, want);
}

Test(inject, nothing)
{
	struct outcome o = run((struct inject_rates){0}, 1);
	cr_assert_eq(o.out, FRAMES);
	cr_assert_eq(o.late + o.twice + o.damaged, 0);
}

Test(inject, each_fault_at_its_rate)
{
	struct outcome o = run((struct inject_rates){.loss = 50000}, 1);
	about(FRAMES - o.out, 50000);
	o = run((struct inject_rates){.duplicate = 50000}, 1);
	about(o.out - FRAMES, 50000);
	about(o.twice, 50000);
	o = run((struct inject_rates){.corrupt = 50000}, 1);
	about(o.damaged, 50000);
	cr_assert_eq(o.out, FRAMES);
	o = run((struct inject_rates){.reorder = 50000}, 1);
	cr_assert_eq(o.out, FRAMES);
	cr_assert_gt(o.late, FRAMES / 50);
}

Test(inject, seed_repeats)
{
	struct inject_rates rates = {10000, 10000, 10000, 0};
	uint64_t first = run(rates, 7).digest;
	cr_assert_eq(run(rates, 7).digest, first);
	cr_assert_neq(run(rates, 8).digest, first);
}

Test(inject, full_array_is_never_overrun)
{
	struct inject_rates rates = {.duplicate = 900000, .reorder = 500000};
	struct inject_side *side = inject_side_new(&rates, 3, pool);
	unsigned int in = 0, out = 0;
	for (uint32_t round = 0; round < 2000; round++) {
		struct rte_mbuf *burst[33] = {0};
		for (uint16_t i = 0; i < 32; i++)
			burst[i] = make(in++);
		uint16_t n = inject_burst(side, burst, 32, 32);
		cr_assert_leq(n, 32);
		cr_assert_null(burst[32]);
		out += n;
		rte_pktmbuf_free_bulk(burst, n);
	}
	cr_assert_leq(in - out, 2000, "at most one frame is held at a time");
	inject_side_free(side);
}
