/*
 * eal.c - builds EAL's argument list and starts it.
 *
 *   huge pages   --in-memory                             nothing is left behind in hugetlbfs or /var/run
 *   without      --no-huge -m MIB --no-shconf            22.11 refuses --in-memory together with --no-huge
 *
 * EAL and the drivers log through a stream of ours: silent while they start and stop, so that harmless remarks (a TAP
 * that could not add a multiq qdisc) do not alarm anybody; the first real complaint becomes the reason in our own error
 * line.
 */
#define _GNU_SOURCE /* fopencookie, CPU sets */
#include <errno.h>
#include <net/if.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_log.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dataplane/memory.h"
#include "dataplane/place.h"
#include "muster/check.h"

/* ---- arguments ---- */

static bool add(struct eal *eal, const char *fmt, ...) PRINTF_LIKE(2, 3);
static bool add(struct eal *eal, const char *fmt, ...)
{
	va_list args;
	char *at = eal->text + eal->text_used;
	size_t room = sizeof(eal->text) - eal->text_used;
	va_start(args, fmt);
	int n = vsnprintf(at, room, fmt, args);
	va_end(args);
	if (n < 0 || (size_t)n >= room || (unsigned int)eal->argc == EAL_ARGS_MAX)
		return false;
	eal->text_used += (size_t)n + 1;
	eal->argv[eal->argc++] = at;
	eal->argv[eal->argc] = NULL;
	return true;
}

static bool add_words(struct eal *eal, const char *words)
{
	while (*words != '\0') {
		size_t gap = strspn(words, " \t"), len = strcspn(words + gap, " \t");
		if (len > 0 && !add(eal, "%.*s", (int)len, words + gap))
			return false;
		words += gap + len;
	}
	return true;
}

/* "0000:3b:00.0" or "3b:00.0", perhaps with device arguments behind a comma. */
static bool is_pci_address(const char *device)
{
	size_t len = strcspn(device, ",");
	return len > 0 && strspn(device, "0123456789abcdefABCDEF:.") == len && memchr(device, ':', len) != NULL;
}

static bool is_kind(const struct dataplane_config *cfg, const char *kind)
{
	return strncmp(cfg->device, kind, strlen(kind)) == 0;
}

/* "0,2-3": the CPUs that the process may use, without those that belong to a worker, unless none is left then. */
static bool common_cpus(const struct dataplane_config *cfg, char *out, size_t len)
{
	size_t used = 0;
	cpu_set_t allowed, free_ones;
	if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
		return false;
	free_ones = allowed;
	for (unsigned int w = 0; w < cfg->workers; w++)
		if (place_of(cfg, w, 0).cpu >= 0)
			CPU_CLR((size_t)place_of(cfg, w, 0).cpu, &free_ones);
	const cpu_set_t *set = CPU_COUNT(&free_ones) > 0 ? &free_ones : &allowed;
	for (int c = 0; c < CPU_SETSIZE && used < len; c++) {
		int first = c;
		if (!CPU_ISSET(c, set))
			continue;
		while (c + 1 < CPU_SETSIZE && CPU_ISSET(c + 1, set))
			c++;
		used += (size_t)snprintf(out + used, len - used, first == c ? "%s%d" : "%s%d-%d", used == 0 ? "" : ",", first, c);
	}
	return used < len;
}

/* Worker n on lcore n. Without a CPU of its own, each may run wherever the process may. */
static bool add_lcores(struct eal *eal, const struct dataplane_config *cfg)
{
	char common[512], list[1900];
	size_t used = 0;
	if (!common_cpus(cfg, common, sizeof(common)))
		return false;
	for (unsigned int w = 0; w < cfg->workers && used < sizeof(list); w++) {
		int cpu = place_of(cfg, w, 0).cpu;
		unsigned int first = w;
		if (cpu >= 0) {
			used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%u@%d", used == 0 ? "" : ",", w, cpu);
			continue;
		}
		while (w + 1 < cfg->workers && place_of(cfg, w + 1, 0).cpu < 0)
			w++;
		used += first == w ? (size_t)snprintf(list + used, sizeof(list) - used, "%s%u@(%s)", used == 0 ? "" : ",", w, common)
				   : (size_t)snprintf(list + used, sizeof(list) - used, "%s(%u-%u)@(%s)", used == 0 ? "" : ",", first, w, common);
	}
	return used < sizeof(list) && add(eal, "--lcores=%s", list);
}

bool eal_arguments(struct eal *eal, const struct dataplane_config *cfg, bool huge, size_t dpdk_bytes)
{
	eal->argc = 0;
	eal->text_used = 0;
	bool ok = add(eal, "muster") && add_lcores(eal, cfg) && add(eal, "--no-telemetry");
	ok = ok && (cfg->file_prefix[0] != '\0' ? add(eal, "--file-prefix=%s", cfg->file_prefix)
						: add(eal, "--file-prefix=muster-%d", (int)getpid()));
	if (huge)
		ok = ok && add(eal, "--in-memory");
	else
		ok = ok && add(eal, "--no-huge") && add(eal, "--no-shconf") && add(eal, "-m") &&
		     add(eal, "%zu", (dpdk_bytes + MIB - 1) / MIB);
	if (is_pci_address(cfg->device))
		ok = ok && add(eal, "-a") && add(eal, "%s", cfg->device);
	else
		ok = ok && add(eal, "--no-pci") && add(eal, "--vdev=%s", cfg->device);
	return ok && add_words(eal, cfg->eal_extra);
}

/* ---- log ---- */

static ssize_t log_write(void *cookie, const char *text, size_t len)
{
	struct eal *eal = cookie;
	if (!eal->quiet) {
		fprintf(stderr, "muster: dpdk: %.*s", (int)len, text);
		return (ssize_t)len;
	}
	size_t room = sizeof(eal->heard) - 1 - eal->heard_len, n = len < room ? len : room;
	memcpy(eal->heard + eal->heard_len, text, n);
	eal->heard_len += n;
	eal->heard[eal->heard_len] = '\0';
	return (ssize_t)len;
}

static void log_capture(struct eal *eal, const struct dataplane_config *cfg)
{
	eal->quiet = true;
	if (strstr(cfg->eal_extra, "--log-level") != NULL)
		return;
	eal->log = fopencookie(eal, "w", (cookie_io_functions_t){.write = log_write});
	if (eal->log == NULL)
		return;
	setvbuf(eal->log, NULL, _IOLBF, 512);
	rte_openlog_stream(eal->log);
	rte_log_set_global_level(RTE_LOG_ERR);
}

void eal_complaint(const struct eal *eal, char *out, size_t out_len)
{
	size_t len = strcspn(eal->heard, "\n");
	snprintf(out, out_len, "%s%.*s", len > 0 ? ": " : "", (int)len, eal->heard);
}

void eal_forget(struct eal *eal)
{
	eal->heard_len = 0;
	eal->heard[0] = '\0';
}

void eal_running(struct eal *eal)
{
	eal->quiet = false;
}

/* ---- what is known to fail, found before EAL fails less clearly ---- */

static bool parse_iface(const char *device, char name[IF_NAMESIZE])
{
	const char *p = strstr(device, "iface=");
	if (p == NULL)
		return false;
	size_t len = strcspn(p + 6, ",");
	if (len == 0 || len >= IF_NAMESIZE)
		return false;
	memcpy(name, p + 6, len);
	name[len] = '\0';
	return true;
}

static bool check_device(const struct dataplane_config *cfg, char *err, size_t err_len)
{
	char name[IF_NAMESIZE];
	bool on_interface = is_kind(cfg, "net_af_packet") || is_kind(cfg, "net_af_xdp");
	if (is_kind(cfg, "net_tap") && access("/dev/net/tun", F_OK) != 0) {
		snprintf(err, err_len, "device %s: /dev/net/tun is missing; load the kernel's module (modprobe tun), "
			 "or give it to the container", cfg->device);
		return false;
	}
	if ((is_kind(cfg, "net_tap") || on_interface) && geteuid() != 0) {
		snprintf(err, err_len, "device %s needs root; start muster as root, or use net_memif, which does not", cfg->device);
		return false;
	}
	if (on_interface && !parse_iface(cfg->device, name)) {
		snprintf(err, err_len, "device %s does not name its interface; write %.*s,iface=NAME", cfg->device,
			 (int)strcspn(cfg->device, ","), cfg->device);
		return false;
	}
	if (on_interface && if_nametoindex(name) == 0) {
		snprintf(err, err_len, "device %s: there is no interface %s here; create it first (ip link add ... type veth)",
			 cfg->device, name);
		return false;
	}
	return true;
}

/* Chooses between huge and small pages. False: neither has room. */
static bool choose_pages(struct eal *eal, const struct dataplane_config *cfg, const struct eal_memory *need, char *err,
			 size_t err_len)
{
	size_t huge = cfg->huge_pages ? memory_huge_free() : 0, available = memory_available();
	eal->huge = huge >= need->dpdk;
	size_t want = eal->huge ? need->heap : need->heap + need->dpdk;
	if (want > available) {
		memory_shortfall(cfg, want, available, err, err_len);
		return false;
	}
	if (!eal->huge && cfg->huge_pages)
		fprintf(stderr,
			"muster: warning: %zu MiB of huge pages are wanted and %zu MiB are free: running on 4 KiB pages, which "
			"costs address-translation misses under load and rules out most network cards (reserve some: sysctl "
			"vm.nr_hugepages=%zu)\n",
			(need->dpdk + MIB - 1) / MIB, huge / MIB, (need->dpdk + 2 * MIB - 1) / (2 * MIB));
	return true;
}

/* ---- start and stop ---- */

/* EAL makes a folder for its run-time files and leaves it there; ours is empty, or not ours alone and stays. */
static void clean_up(void)
{
	char dir[256];
	snprintf(dir, sizeof(dir), "%s", rte_eal_get_runtime_dir());
	rte_eal_cleanup();
	rmdir(dir);
}

void eal_take_signals(bool take)
{
	sigset_t realtime;
	sigemptyset(&realtime);
	for (int sig = SIGRTMIN; sig <= SIGRTMAX; sig++)
		sigaddset(&realtime, sig);
	pthread_sigmask(take ? SIG_UNBLOCK : SIG_BLOCK, &realtime, NULL);
}

bool eal_start(struct eal *eal, const struct dataplane_config *cfg, const struct eal_memory *need, char *err, size_t err_len)
{
	char complaint[512];
	if (!check_device(cfg, err, err_len) || !choose_pages(eal, cfg, need, err, err_len))
		return false;
	if (!eal_arguments(eal, cfg, eal->huge, need->dpdk)) {
		snprintf(err, err_len, "eal.extra: too long a list of EAL arguments");
		return false;
	}
	log_capture(eal, cfg);
	eal_take_signals(false); /* for the threads that EAL starts */
	if (rte_eal_init(eal->argc, eal->argv) < 0) {
		int code = rte_errno;
		eal_complaint(eal, complaint, sizeof(complaint));
		snprintf(err, err_len, "DPDK did not start (%s)%s; see device and eal.extra", rte_strerror(code), complaint);
		clean_up();
		return false;
	}
	eal->started = true;
	if (rte_eth_dev_count_avail() == 0) {
		eal_complaint(eal, complaint, sizeof(complaint));
		snprintf(err, err_len, "device %s could not be made%s; check its name and arguments", cfg->device, complaint);
		return false;
	}
	return true;
}

void eal_stop(struct eal *eal)
{
	eal->quiet = true;
	if (eal->started)
		clean_up();
	eal->started = false;
	if (eal->log != NULL) {
		rte_openlog_stream(NULL);
		fclose(eal->log);
		eal->log = NULL;
	}
}
