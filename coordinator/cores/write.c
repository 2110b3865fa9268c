/*
 * write.c - a planned core map as a file: in front of each choice its reason, and what core_map_check has to say against it.
 */
#include <string.h>

#include "coordinator/cores/cores.h"
#include "coordinator/cores/number_list.h"

struct costs {
	int line;
	FILE *out;
};

/* Those of one place, as comments. */
static void comment(void *arg, enum finding_kind kind, int line, const char *text)
{
	struct costs *of = arg;
	if (line == of->line)
		fprintf(of->out, "# costs: %s\n", text);
}

static void write_costs(const struct core_map *map, const struct machine *m, int line, FILE *out)
{
	struct costs of = {line, out};
	struct findings findings = {.say = comment, .arg = &of};
	core_map_check(map, m, &findings);
}

static bool in_node(const void *arg, unsigned int cpu)
{
	const struct machine *m = arg;
	return machine_usable(m, cpu) && m->nic.numa >= 0 && m->cpu[cpu].numa == m->nic.numa;
}

static unsigned int cores_of(const struct machine *m)
{
	unsigned int n = 0;
	for (unsigned int c = 0; c < m->cpus; c++)
		n += m->cpu[c].online && m->cpu[c].sibling == (int)c;
	return n;
}

/* What was read, so that whoever reads the map sees what it rests on. */
static void write_machine(const struct machine *m, FILE *out)
{
	char list[200];
	const struct machine_nic *nic = &m->nic;
	if (!m->known)
		fputs("# This machine does not tell its CPUs; nothing is pinned.\n", out);
	else {
		machine_usable_text(m, list, sizeof(list));
		fprintf(out, "# This machine: %u CPUs on %u cores, for this program %s; isolated: %u.\n", m->online, cores_of(m), list, m->isolated);
	}
	fprintf(out, "# Its card %s: ", nic->name);
	if (nic->physical && !nic->found)
		fputs("not found here; ", out);
	if (nic->numa >= 0) {
		number_list_write(list, sizeof(list), m->cpus, in_node, m);
		fprintf(out, "NUMA node %d (CPUs %s), ", nic->numa, list);
	} else {
		fputs("NUMA node not known, ", out);
	}
	if (nic->queues > 0)
		fprintf(out, "%u queue%s.\n", nic->queues, nic->queues == 1 ? "" : "s");
	else
		fputs("how many queues it has is not known before muster drives it: it says so when it starts.\n", out);
}

static void write_number(FILE *out, const char *name, int value, const char *word)
{
	if (value >= 0)
		fprintf(out, "%s = %d\n", name, value);
	else
		fprintf(out, "%s = %s\n", name, word);
}

static void write_cpu(const struct core_map *map, unsigned int w, const struct machine *m, FILE *out)
{
	int cpu = map->worker[w].cpu;
	if (cpu < 0) {
		fprintf(out, "# %s: wherever the kernel puts it\n", m->known ? "no CPU is left" : "the CPUs are not known");
	} else {
		const struct machine_cpu *c = &m->cpu[cpu];
		fprintf(out, "# %s%s%s\n", c->isolated ? "isolated" : "not isolated",
			machine_is_threaded(m, (unsigned int)cpu) ? ", one thread of its core" : ", a core of its own",
			m->nic.numa < 0 || c->numa < 0 ? "" : c->numa == m->nic.numa ? ", on the card's NUMA node" : ", NOT on the card's NUMA node");
	}
	write_costs(map, m, CORES_LINE + (int)w, out);
	write_number(out, "cpu", cpu, "any");
}

static void write_worker(const struct core_map *map, unsigned int w, const struct machine *m, FILE *out)
{
	const struct core_map_worker *at = &map->worker[w];
	fprintf(out, "\n[worker %u]\n", w);
	write_cpu(map, w, m, out);
	fprintf(out, "# %s\n", at->queue < 0 ? "the card has no more: the other workers receive and send for it" : "polled by this worker alone");
	write_number(out, "queue", at->queue, "none");
	fprintf(out, "# %s\n", at->numa >= 0 ? "its mbufs lie where its CPU is" : "not known: wherever there is memory");
	write_number(out, "numa", at->numa, "any");
	fprintf(out, "# who it is for clients\nnode.id = %d\nport = %d\n", at->node_id, at->port);
	fputs("# an equal part; lists of shards here move them\nshards = auto\n", out);
	fprintf(out, "# %s\n", at->idle == 0 ? "nobody else wants this CPU: it never sleeps" : "others may want this CPU: it sleeps when there is nothing to do");
	fprintf(out, "idle.policy = %s\n", at->idle == 0 ? "spin" : "adaptive");
}

void cores_write(const struct core_map *map, const struct machine *m, FILE *out)
{
	fputs("# A core map made by muster cores --auto. muster cores --check FILE looks at it, the setting core.map.file = FILE uses it.\n", out);
	write_machine(m, out);
	write_costs(map, m, 0, out);
	fputs("\n[housekeeping]\n", out);
	if (map->housekeeping < 0)
		fputs("# wherever the kernel puts it\n", out);
	else
		fprintf(out, "# the lowest CPU%s\n", m->isolated > 0 && !m->cpu[map->housekeeping].isolated ? " that is not isolated" : "");
	write_number(out, "cpu", map->housekeeping, "any");
	for (unsigned int w = 0; w < map->workers; w++)
		write_worker(map, w, m, out);
}
