/*
 * usage.c - reads /proc/PID/stat (behind the name, which ends with the last bracket, field 3 is the state, 14 and 15 the
 * times, 24 the resident pages) and /proc/PID/schedstat (nanoseconds on a CPU first).
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench/usage.h"

static FILE *open_proc(pid_t pid, const char *name)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	return pid == 0 ? NULL : fopen(path, "re");
}

struct usage usage_read(pid_t pid)
{
	struct usage u = {0, 0, 0};
	char line[1024];
	unsigned long user, sys;
	long rss;
	FILE *f = open_proc(pid, "stat");
	const char *at = f == NULL || fgets(line, sizeof(line), f) == NULL ? NULL : strrchr(line, ')');
	if (at != NULL && sscanf(at + 1,
				 " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %*d %*d %*d %*d %*d %*d %*u %*u %ld",
				 &user, &sys, &rss) == 3) {
		u.cpu_s = (double)(user + sys) / (double)sysconf(_SC_CLK_TCK);
		u.rss = (uint64_t)rss * (uint64_t)sysconf(_SC_PAGESIZE);
	}
	if (f != NULL)
		fclose(f);
	f = open_proc(pid, "schedstat");
	if (f != NULL && fscanf(f, "%" SCNu64, &u.cpu_ns) != 1)
		u.cpu_ns = 0;
	if (f != NULL)
		fclose(f);
	return u;
}

struct usage usage_mark(pid_t pid)
{
	if (pid != 0)
		kill(pid, SIGUSR1);
	return usage_read(pid);
}
