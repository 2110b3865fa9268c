/*
 * machine.c - see machine.h.
 */
#include <dirent.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/cores/machine.h"
#include "coordinator/cores/number_list.h"

#define TEXT_MAX 4096 /* of a file that is read */

/* What the device's driver can have at most, where the kernel does not say it; DPDK 22.11. */
#define TAP_QUEUES 16u

struct reading {
	struct machine *m;
	const char *root;
	unsigned int irq; /* being looked at */
	unsigned int irq_cpus, irq_cpu;
};

/* ---- files ---- */

static PRINTF_LIKE(3, 4) bool read_text(const struct reading *rd, char out[TEXT_MAX], const char *format, ...)
{
	char path[PATH_MAX];
	va_list ap;
	int used = snprintf(path, sizeof(path), "%s", rd->root);
	if (used < 0 || (size_t)used >= sizeof(path))
		return false;
	va_start(ap, format);
	vsnprintf(path + used, sizeof(path) - (size_t)used, format, ap);
	va_end(ap);
	FILE *f = fopen(path, "re");
	if (f == NULL)
		return false;
	size_t n = fread(out, 1, TEXT_MAX - 1, f);
	bool ok = ferror(f) == 0 && n < TEXT_MAX - 1;
	fclose(f);
	while (n > 0 && (out[n - 1] == '\n' || out[n - 1] == ' '))
		n--;
	out[n] = '\0';
	return ok;
}

/* The number in a file; MACHINE_UNKNOWN when there is none, or the kernel says -1. */
static int number_of(const char *text)
{
	char *end;
	long v = strtol(text, &end, 10);
	return end == text || *end != '\0' || v < 0 || v > INT16_MAX ? MACHINE_UNKNOWN : (int)v;
}

/* ---- CPUs ---- */

static void is_online(void *arg, unsigned int cpu)
{
	struct machine *m = arg;
	if (cpu >= MACHINE_CPUS_MAX)
		return;
	m->cpu[cpu] = (struct machine_cpu){.online = true, .allowed = true, .numa = MACHINE_UNKNOWN, .sibling = (int16_t)cpu};
	m->cpus = cpu + 1 > m->cpus ? cpu + 1 : m->cpus;
	m->online++;
}

static void is_isolated(void *arg, unsigned int cpu)
{
	struct machine *m = arg;
	if (cpu >= m->cpus || !m->cpu[cpu].online)
		return;
	m->cpu[cpu].isolated = true;
	m->isolated++;
}

static void is_allowed(void *arg, unsigned int cpu)
{
	struct machine *m = arg;
	if (cpu < m->cpus)
		m->cpu[cpu].allowed = true;
}

/* cpuset.cpus.effective of the group that the program sees as its own; an empty file says nothing. */
static void read_allowed(struct reading *rd)
{
	char text[TEXT_MAX];
	if (!read_text(rd, text, "/sys/fs/cgroup/cpuset.cpus.effective") || text[0] == '\0')
		return;
	for (unsigned int c = 0; c < rd->m->cpus; c++)
		rd->m->cpu[c].allowed = false;
	number_list_each(text, is_allowed, rd->m);
}

/* Where a CPU's folder has a link nodeN, it belongs to node N. */
static int numa_of(const struct reading *rd, unsigned int cpu)
{
	char path[PATH_MAX];
	int found = MACHINE_UNKNOWN;
	snprintf(path, sizeof(path), "%s/sys/devices/system/cpu/cpu%u", rd->root, cpu);
	DIR *dir = opendir(path);
	for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;)
		if (strncmp(e->d_name, "node", 4) == 0 && number_of(e->d_name + 4) >= 0)
			found = number_of(e->d_name + 4);
	if (dir != NULL)
		closedir(dir);
	return found;
}

static void read_cpu(struct reading *rd, unsigned int cpu)
{
	char text[TEXT_MAX];
	const char *list = text;
	unsigned int first, last;
	struct machine_cpu *c = &rd->m->cpu[cpu];
	c->numa = (int16_t)numa_of(rd, cpu);
	if (!read_text(rd, text, "/sys/devices/system/cpu/cpu%u/topology/thread_siblings_list", cpu))
		return;
	while (number_list_next(&list, &first, &last))
		if (first < (unsigned int)c->sibling)
			c->sibling = (int16_t)first;
}

/* ---- interrupts ---- */

static void count_cpu(void *arg, unsigned int cpu)
{
	struct reading *rd = arg;
	rd->irq_cpus++;
	rd->irq_cpu = cpu;
}

/* An interrupt nobody has asked for has no actions; one that may go to several CPUs is the kernel's to move. */
static void read_irq(struct reading *rd, unsigned int irq)
{
	char text[TEXT_MAX], name[TEXT_MAX];
	if (!read_text(rd, name, "/sys/kernel/irq/%u/actions", irq) || name[0] == '\0')
		return;
	if (!read_text(rd, text, "/proc/irq/%u/smp_affinity_list", irq))
		return;
	rd->irq_cpus = 0;
	if (!number_list_each(text, count_cpu, rd) || rd->irq_cpus != 1 || rd->irq_cpu >= rd->m->cpus)
		return;
	struct machine_cpu *c = &rd->m->cpu[rd->irq_cpu];
	if (c->irqs == 0 || irq < c->irq) {
		c->irq = irq;
		snprintf(c->irq_name, sizeof(c->irq_name), "%.*s", (int)sizeof(c->irq_name) - 1, name);
	}
	c->irqs++;
}

static void read_irqs(struct reading *rd)
{
	char path[PATH_MAX];
	snprintf(path, sizeof(path), "%s/proc/irq", rd->root);
	DIR *dir = opendir(path);
	for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;)
		if (number_of(e->d_name) >= 0)
			read_irq(rd, (unsigned int)number_of(e->d_name));
	if (dir != NULL)
		closedir(dir);
}

/* ---- the card ---- */

/* Receive queues of a kernel interface; 0: there is no such interface. */
static unsigned int interface_queues(const struct reading *rd, const char *folder)
{
	char path[PATH_MAX];
	unsigned int n = 0;
	snprintf(path, sizeof(path), "%s%s/queues", rd->root, folder);
	DIR *dir = opendir(path);
	for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;)
		n += strncmp(e->d_name, "rx-", 3) == 0;
	if (dir != NULL)
		closedir(dir);
	return n;
}

/* The value of NAME= among the device's arguments; empty: it has none. */
static void argument(const char *device, const char *name, char *out, size_t len)
{
	size_t n = strlen(name);
	out[0] = '\0';
	for (const char *p = device; (p = strchr(p, ',')) != NULL; ) {
		p++;
		if (strncmp(p, name, n) == 0 && p[n] == '=')
			snprintf(out, len, "%.*s", (int)strcspn(p + n + 1, ","), p + n + 1);
	}
}

static void read_interface(struct reading *rd, const char *device, const char *queues_argument)
{
	struct machine_nic *nic = &rd->m->nic;
	char text[TEXT_MAX], folder[160], queues[16];
	argument(device, "iface", nic->name, sizeof(nic->name));
	argument(device, queues_argument, queues, sizeof(queues));
	snprintf(folder, sizeof(folder), "/sys/class/net/%s", nic->name);
	nic->found = nic->name[0] != '\0' && interface_queues(rd, folder) > 0;
	nic->queues = queues[0] == '\0' || number_of(queues) <= 0 ? 1 : (unsigned int)number_of(queues);
	nic->physical = read_text(rd, text, "%s/device/numa_node", folder);
	if (nic->physical)
		nic->numa = number_of(text);
}

static bool is_pci(const char *device)
{
	size_t len = strcspn(device, ",");
	return len > 0 && strspn(device, "0123456789abcdefABCDEF:.") == len && memchr(device, ':', len) != NULL;
}

/* Its queues are known while the kernel's driver has it; for DPDK it is given to another one. */
static void read_pci(struct reading *rd, const char *device)
{
	struct machine_nic *nic = &rd->m->nic;
	char text[TEXT_MAX], folder[160], path[PATH_MAX];
	size_t len = strcspn(device, ",");
	bool domain = memchr(device, '.', len) != NULL && len > 10;
	snprintf(nic->name, sizeof(nic->name), "%s%.*s", domain ? "" : "0000:", (int)len, device);
	nic->physical = true;
	nic->found = read_text(rd, text, "/sys/bus/pci/devices/%s/numa_node", nic->name);
	if (nic->found)
		nic->numa = number_of(text);
	snprintf(path, sizeof(path), "%s/sys/bus/pci/devices/%s/net", rd->root, nic->name);
	DIR *dir = opendir(path);
	for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;) {
		snprintf(folder, sizeof(folder), "/sys/bus/pci/devices/%.40s/net/%.40s", nic->name, e->d_name);
		if (e->d_name[0] != '.')
			nic->queues = interface_queues(rd, folder);
	}
	if (dir != NULL)
		closedir(dir);
}

static void read_nic(struct reading *rd, const char *device)
{
	struct machine_nic *nic = &rd->m->nic;
	*nic = (struct machine_nic){.numa = MACHINE_UNKNOWN};
	snprintf(nic->name, sizeof(nic->name), "%.*s", (int)(strcspn(device, ",") % sizeof(nic->name)), device);
	if (is_pci(device))
		read_pci(rd, device);
	else if (strncmp(device, "net_af_packet", 13) == 0)
		read_interface(rd, device, "qpairs");
	else if (strncmp(device, "net_af_xdp", 10) == 0)
		read_interface(rd, device, "queue_count");
	else if (strncmp(device, "net_tap", 7) == 0)
		nic->queues = TAP_QUEUES;
}

/* ---- all ---- */

void machine_read(struct machine *m, const char *root, const char *device)
{
	struct reading rd = {.m = m, .root = root};
	char text[TEXT_MAX];
	memset(m, 0, sizeof(*m));
	read_nic(&rd, device);
	if (!read_text(&rd, text, "/sys/devices/system/cpu/online") || !number_list_each(text, is_online, m) || m->online == 0)
		return;
	m->known = true;
	if (read_text(&rd, text, "/sys/devices/system/cpu/isolated"))
		number_list_each(text, is_isolated, m);
	for (unsigned int c = 0; c < m->cpus; c++)
		if (m->cpu[c].online)
			read_cpu(&rd, c);
	read_allowed(&rd);
	read_irqs(&rd);
}

bool machine_usable(const struct machine *m, unsigned int cpu)
{
	return cpu < m->cpus && m->cpu[cpu].online && m->cpu[cpu].allowed;
}

static bool usable(const void *arg, unsigned int cpu)
{
	return machine_usable(arg, cpu);
}

void machine_usable_text(const struct machine *m, char *out, size_t len)
{
	number_list_write(out, len, m->cpus, usable, m);
}

bool machine_is_threaded(const struct machine *m, unsigned int cpu)
{
	for (unsigned int c = 0; c < m->cpus; c++)
		if (c != cpu && m->cpu[c].online && m->cpu[c].sibling == m->cpu[cpu].sibling)
			return true;
	return false;
}
