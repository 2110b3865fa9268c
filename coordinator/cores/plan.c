/*
 * plan.c - chooses a CPU for each worker.
 *
 * In this order: cores on the card's NUMA node that the kernel keeps free; others there; free ones elsewhere; the rest. Of each physical core one thread.
 * How many: the cores of the best kind that there is, but no more than the card has queues, and than there are shards. Who asks for more workers gets the
 * next best places, then second threads, and at last none of their own.
 *
 * Housekeeping takes the lowest CPU that is not isolated, and its core is left to it if that leaves a worker a place.
 */
#include <string.h>

#include "coordinator/cores/cores.h"

enum {
	RANK_BEST, /* isolated, at the card */
	RANK_NEAR, /* at the card */
	RANK_FREE, /* isolated */
	RANK_ANY,
	RANKS,
};

struct planning {
	struct core_map *map;
	const struct machine *m;
	bool taken[MACHINE_CPUS_MAX];
	unsigned int workers; /* placed so far */
};

static int rank_of(const struct machine *m, unsigned int cpu)
{
	const struct machine_cpu *c = &m->cpu[cpu];
	bool near = m->nic.numa == MACHINE_UNKNOWN || c->numa == MACHINE_UNKNOWN || c->numa == m->nic.numa;
	bool alone = c->isolated || m->isolated == 0;
	return near ? (alone ? RANK_BEST : RANK_NEAR) : (alone ? RANK_FREE : RANK_ANY);
}

/* The lowest CPU of its core that may be used. */
static bool is_first_thread(const struct machine *m, unsigned int cpu)
{
	for (unsigned int c = (unsigned int)m->cpu[cpu].sibling; c < cpu; c++)
		if (machine_usable(m, c) && m->cpu[c].sibling == m->cpu[cpu].sibling)
			return false;
	return machine_usable(m, cpu);
}

static bool core_is_taken(const struct planning *p, unsigned int cpu)
{
	for (unsigned int c = 0; c < p->m->cpus; c++)
		if (p->taken[c] && p->m->cpu[c].sibling == p->m->cpu[cpu].sibling)
			return true;
	return false;
}

static unsigned int cores_left(const struct planning *p, int rank)
{
	unsigned int n = 0;
	for (unsigned int c = 0; c < p->m->cpus; c++)
		n += is_first_thread(p->m, c) && rank_of(p->m, c) == rank && !core_is_taken(p, c);
	return n;
}

static void choose_housekeeping(struct planning *p)
{
	const struct machine *m = p->m;
	int chosen = CORE_MAP_ANY;
	for (unsigned int c = 0; c < m->cpus && chosen < 0; c++)
		if (machine_usable(m, c) && !m->cpu[c].isolated)
			chosen = (int)c;
	for (unsigned int c = 0; c < m->cpus && chosen < 0; c++)
		if (machine_usable(m, c))
			chosen = (int)c;
	p->map->housekeeping = chosen;
	if (chosen < 0)
		return;
	p->taken[chosen] = true;
	unsigned int others = 0;
	for (int rank = 0; rank < RANKS; rank++)
		others += cores_left(p, rank);
	if (others > 0)
		return;
	/* one core only: a worker gets its other thread, and if there is none, the same */
	p->taken[chosen] = false;
	for (unsigned int c = 0; c < m->cpus; c++)
		if (c != (unsigned int)chosen && machine_usable(m, c))
			p->taken[chosen] = true;
}

static void place(struct planning *p, int cpu)
{
	p->map->worker[p->workers++].cpu = cpu;
	if (cpu >= 0)
		p->taken[cpu] = true;
}

/* Of cores of this rank, until there are enough workers. `second`: also threads of cores that are taken. */
static void place_all(struct planning *p, int rank, bool second, unsigned int enough)
{
	for (unsigned int c = 0; c < p->m->cpus && p->workers < enough; c++)
		if (machine_usable(p->m, c) && rank_of(p->m, c) == rank && !p->taken[c] && (second || (is_first_thread(p->m, c) && !core_is_taken(p, c))))
			place(p, (int)c);
}

/* The number of workers when nobody asks for one. */
static unsigned int good_number(const struct planning *p)
{
	unsigned int n = 0;
	for (int rank = 0; rank < RANKS && n == 0; rank++)
		n = cores_left(p, rank);
	n = n == 0 ? 1 : n > CORE_MAP_WORKERS_MAX ? CORE_MAP_WORKERS_MAX : n;
	n = p->m->nic.queues > 0 && n > p->m->nic.queues ? p->m->nic.queues : n;
	return n > p->map->shards ? p->map->shards : n;
}

static void fill_rest(struct planning *p, const struct config *cfg)
{
	const struct machine *m = p->m;
	struct core_map *map = p->map;
	map->workers = p->workers;
	for (unsigned int w = 0; w < map->workers; w++) {
		struct core_map_worker *at = &map->worker[w];
		bool own = at->cpu >= 0 && m->cpu[at->cpu].isolated;
		at->queue = m->nic.queues > 0 && w >= m->nic.queues ? CORE_MAP_NONE : (int)w;
		at->numa = at->cpu >= 0 && m->cpu[at->cpu].numa >= 0 ? m->cpu[at->cpu].numa : CORE_MAP_ANY;
		at->node_id = (int32_t)(cfg->node_id + w);
		at->port = (int32_t)(cfg->port + w);
		at->idle = own ? 0 : 1;
		at->line = CORES_LINE + (int)w;
	}
	for (unsigned int s = 0; s < map->shards; s++)
		map->owner[s] = (uint8_t)(s % map->workers);
}

void cores_plan(struct core_map *map, const struct machine *m, const struct config *cfg, unsigned int workers)
{
	struct planning p = {.map = map, .m = m};
	memset(map, 0, sizeof(*map));
	map->shards = (unsigned int)cfg->offsets_topic_num_partitions;
	choose_housekeeping(&p);
	if (workers == 0)
		workers = m->known ? good_number(&p) : 1;
	for (int rank = 0; rank < RANKS; rank++)
		place_all(&p, rank, false, workers);
	for (int rank = 0; rank < RANKS; rank++)
		place_all(&p, rank, true, workers);
	while (p.workers < workers)
		place(&p, CORE_MAP_ANY);
	fill_rest(&p, cfg);
}
