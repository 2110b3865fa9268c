/*
 * disk_shim.c - preloaded into the program by test_log.py: a disk that fails on demand.
 *
 *   $SHIM_FOLDER/fail   while this file exists, every write and flush of the log fails with EIO
 *   $SHIM_FOLDER/hold   while it exists, no read of the log returns
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static bool shim_asks(const char *what)
{
	const char *folder = getenv("SHIM_FOLDER");
	char path[400];
	snprintf(path, sizeof(path), "%s/%s", folder == NULL ? "/nonexistent" : folder, what);
	return access(path, F_OK) == 0;
}

static bool shim_is_log(int fd)
{
	char link[64], path[400];
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	ssize_t len = readlink(link, path, sizeof(path) - 1);
	path[len < 0 ? 0 : len] = '\0';
	return strstr(path, ".seg") != NULL;
}

ssize_t pwritev64v2(int fd, const struct iovec *parts, int n, off64_t offset, int flags);
ssize_t pwritev64v2(int fd, const struct iovec *parts, int n, off64_t offset, int flags)
{
	ssize_t (*next)(int, const struct iovec *, int, off64_t, int) = (__typeof__(next))dlsym(RTLD_NEXT, "pwritev64v2");
	if (!shim_asks("fail"))
		return next(fd, parts, n, offset, flags);
	errno = EIO;
	return -1;
}

int fdatasync(int fd)
{
	int (*next)(int) = (__typeof__(next))dlsym(RTLD_NEXT, "fdatasync");
	if (!shim_asks("fail"))
		return next(fd);
	errno = EIO;
	return -1;
}

ssize_t pread64(int fd, void *p, size_t len, off64_t offset)
{
	ssize_t (*next)(int, void *, size_t, off64_t) = (__typeof__(next))dlsym(RTLD_NEXT, "pread64");
	while (shim_is_log(fd) && shim_asks("hold"))
		usleep(1000);
	return next(fd, p, len, offset);
}
