/*
 * core_map_check.c - a core map against the machine: errors are what cannot work there, costs what works and is dearer than it needs to be.
 *
 * What the machine does not tell is not checked, and that is said.
 */
#include <stdio.h>
#include <string.h>

#include "coordinator/core_map.h"
#include "coordinator/cores/machine.h"

#define CPUS_TEXT 160

static int line_of(const struct core_map_worker *w, enum core_map_key key)
{
	return w->lines[key] != 0 ? w->lines[key] : w->line;
}

/* A CPU that somebody wants: `who` is in front of the text. */
static bool cpu_exists(const struct machine *m, int cpu, const char *who, int line, struct findings *out)
{
	char usable[CPUS_TEXT];
	if (machine_usable(m, (unsigned int)cpu))
		return true;
	machine_usable_text(m, usable, sizeof(usable));
	if ((unsigned int)cpu >= m->cpus || !m->cpu[cpu].online)
		finding(out, FINDING_ERROR, line, "%s: cpu: there is no CPU %d here, or it is offline; allowed: %s, or any", who, cpu, usable);
	else
		finding(out, FINDING_ERROR, line, "%s: cpu: the control group keeps this program off CPU %d; allowed: %s, or any", who, cpu, usable);
	return false;
}

static bool has_node(const struct machine *m, int numa)
{
	bool told = false;
	for (unsigned int c = 0; c < m->cpus; c++) {
		if (m->cpu[c].online && m->cpu[c].numa == numa)
			return true;
		told |= m->cpu[c].online && m->cpu[c].numa != MACHINE_UNKNOWN;
	}
	return !told;
}

/* ---- one worker ---- */

/* Whoever else of the map sits on the other thread of this core. */
static void check_siblings(const struct core_map *map, unsigned int w, const struct machine *m, struct findings *out)
{
	const struct core_map_worker *at = &map->worker[w];
	int line = line_of(at, CORE_MAP_KEY_cpu), home = m->cpu[at->cpu].sibling;
	for (unsigned int before = 0; before < w; before++) {
		int cpu = map->worker[before].cpu;
		if (cpu >= 0 && machine_usable(m, (unsigned int)cpu) && m->cpu[cpu].sibling == home)
			finding(out, FINDING_COST, line, "worker %u: cpu: %d and CPU %d of worker %u are two threads of one core, which does the work of one; take "
				"another core", w, at->cpu, cpu, before);
	}
	if (map->housekeeping < 0 || !machine_usable(m, (unsigned int)map->housekeeping))
		return;
	if (map->housekeeping == at->cpu)
		finding(out, FINDING_COST, line, "worker %u: cpu: %d is also housekeeping's; the worker stands still while that runs", w, at->cpu);
	else if (m->cpu[map->housekeeping].sibling == home)
		finding(out, FINDING_COST, line, "worker %u: cpu: %d and housekeeping's CPU %d are two threads of one core", w, at->cpu, map->housekeeping);
}

static void check_quiet(const struct core_map *map, unsigned int w, const struct machine *m, struct findings *out)
{
	const struct core_map_worker *at = &map->worker[w];
	const struct machine_cpu *cpu = &m->cpu[at->cpu];
	int line = line_of(at, CORE_MAP_KEY_cpu);
	if (!cpu->isolated && m->isolated > 0)
		finding(out, FINDING_COST, line, "worker %u: cpu: %d is not isolated, and other CPUs here are; the kernel puts other threads on it", w, at->cpu);
	if (cpu->irqs > 0)
		finding(out, FINDING_COST, line, "worker %u: cpu: %d also serves %u interrupt%s, the first is %u (%s); move %s: echo CPU > "
			"/proc/irq/%u/smp_affinity_list", w, at->cpu, cpu->irqs, cpu->irqs == 1 ? "" : "s", cpu->irq, cpu->irq_name,
			cpu->irqs == 1 ? "it" : "them", cpu->irq);
}

static void check_numa(const struct core_map *map, unsigned int w, const struct machine *m, struct findings *out)
{
	const struct core_map_worker *at = &map->worker[w];
	int node = at->cpu >= 0 ? m->cpu[at->cpu].numa : MACHINE_UNKNOWN;
	if (at->numa >= 0 && !has_node(m, at->numa)) {
		finding(out, FINDING_ERROR, line_of(at, CORE_MAP_KEY_numa), "worker %u: numa: there is no NUMA node %d with CPUs here; leave it out: the node "
			"of its CPU", w, at->numa);
		return;
	}
	if (at->numa >= 0 && node != MACHINE_UNKNOWN && at->numa != node)
		finding(out, FINDING_COST, line_of(at, CORE_MAP_KEY_numa), "worker %u: numa: %d, but its CPU %d is on node %d: every frame crosses sockets", w,
			at->numa, at->cpu, node);
	if (node != MACHINE_UNKNOWN && m->nic.numa != MACHINE_UNKNOWN && node != m->nic.numa)
		finding(out, FINDING_COST, line_of(at, CORE_MAP_KEY_cpu), "worker %u: cpu: %d is on NUMA node %d, the card %s on node %d: every frame crosses "
			"sockets", w, at->cpu, node, m->nic.name, m->nic.numa);
}

static void check_queue(const struct core_map *map, unsigned int w, const struct machine *m, struct findings *out)
{
	const struct core_map_worker *at = &map->worker[w];
	int line = line_of(at, CORE_MAP_KEY_queue);
	if (at->queue == CORE_MAP_NONE)
		finding(out, FINDING_COST, line, "worker %u: queue: none: all its frames come and go over another worker", w);
	else if (m->nic.queues > 0 && at->queue >= (int)m->nic.queues)
		finding(out, FINDING_ERROR, line, "worker %u: queue: %d, and %s has %u; allowed: 0 to %u, or none", w, at->queue, m->nic.name, m->nic.queues,
			m->nic.queues - 1);
}

static void check_worker(const struct core_map *map, unsigned int w, const struct machine *m, struct findings *out)
{
	const struct core_map_worker *at = &map->worker[w];
	char who[24];
	unsigned int owned = 0;
	snprintf(who, sizeof(who), "worker %u", w);
	for (unsigned int s = 0; s < map->shards; s++)
		owned += map->owner[s] == w;
	if (owned == 0)
		finding(out, FINDING_COST, line_of(at, CORE_MAP_KEY_shards), "worker %u: shards: none: it owns no group and only forwards", w);
	check_queue(map, w, m, out);
	if (!m->known)
		return;
	if (at->cpu >= 0 && !cpu_exists(m, at->cpu, who, line_of(at, CORE_MAP_KEY_cpu), out))
		return;
	if (at->cpu < 0) {
		finding(out, FINDING_COST, line_of(at, CORE_MAP_KEY_cpu), "worker %u: cpu: any: the kernel moves it between CPUs, and may put two workers on one", w);
	} else {
		check_siblings(map, w, m, out);
		check_quiet(map, w, m, out);
	}
	check_numa(map, w, m, out);
}

/* ---- the whole ---- */

static unsigned int pinned(const struct core_map *map)
{
	unsigned int n = 0;
	for (unsigned int w = 0; w < map->workers; w++)
		n += map->worker[w].cpu >= 0;
	return n;
}

static void check_housekeeping(const struct core_map *map, const struct machine *m, struct findings *out)
{
	if (map->housekeeping >= 0)
		cpu_exists(m, map->housekeeping, "housekeeping", map->housekeeping_line, out);
	else if (pinned(map) > 0)
		finding(out, FINDING_COST, map->housekeeping_line, "housekeeping: cpu: any: it may run on a worker's CPU; write the CPU of [housekeeping]");
}

void core_map_check(const struct core_map *map, const struct machine *m, struct findings *out)
{
	if (!m->known)
		finding(out, FINDING_COST, 0, "this machine does not tell its CPUs (sys/devices/system/cpu/online): they are not checked");
	else
		check_housekeeping(map, m, out);
	for (unsigned int w = 0; w < map->workers; w++)
		check_worker(map, w, m, out);
	if (m->known && m->isolated == 0 && pinned(map) > 0)
		finding(out, FINDING_COST, 0, "no CPU here is isolated: the kernel puts other threads on the workers' CPUs; boot with isolcpus= (and nohz_full=) "
			"of these CPUs");
}
