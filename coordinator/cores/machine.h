/*
 * machine.h - what the kernel tells about the machine that matters to where workers run: CPUs, their siblings, NUMA nodes, isolation, interrupts, and the
 * network card with its queues.
 *
 * Read from files only, below a root that tests may fabricate: ROOT/sys/devices/system/cpu, ROOT/sys/bus/pci, ROOT/sys/class/net,
 * ROOT/sys/fs/cgroup and ROOT/proc/irq. What a kernel or a container does not tell stays "not known", which is never taken for a good sign.
 */
#ifndef MUSTER_MACHINE_H
#define MUSTER_MACHINE_H

#include "muster/base.h"

#define MACHINE_CPUS_MAX 1024u
#define MACHINE_UNKNOWN -1

struct machine_cpu {
	bool online, isolated;
	bool allowed;	  /* by the control group */
	int16_t numa;	  /* MACHINE_UNKNOWN: not told */
	int16_t sibling;  /* lowest CPU of the same physical core, itself when it is alone or nothing is told */
	uint16_t irqs;	  /* interrupts in use that go to this CPU and no other */
	uint32_t irq;	  /* the lowest of them */
	char irq_name[32];
};

struct machine_nic {
	char name[64];	/* as errors name it */
	bool physical;	/* a device of a bus, so that its NUMA node counts */
	bool found;	/* the kernel knows it */
	int numa;	/* MACHINE_UNKNOWN: not told, or there is none */
	unsigned int queues; /* receive queues; 0: not told */
};

struct machine {
	bool known; /* CPUs could be read; else nothing below says anything */
	unsigned int cpus; /* one more than the highest online or possible CPU */
	unsigned int online, isolated; /* how many */
	struct machine_cpu cpu[MACHINE_CPUS_MAX];
	struct machine_nic nic;
};

/* `root` is "" for the machine itself; `device` is the setting of that name, whose card is looked for. */
void machine_read(struct machine *m, const char *root, const char *device);

/* Whether a worker may run there. */
bool machine_usable(const struct machine *m, unsigned int cpu);
/* "0-3,8": the CPUs that are usable. */
void machine_usable_text(const struct machine *m, char *out, size_t len);
/* Another thread of the same physical core is online. */
bool machine_is_threaded(const struct machine *m, unsigned int cpu);

#endif
