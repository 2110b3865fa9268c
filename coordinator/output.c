/*
 * output.c - lines to a descriptor that must not hold up the worker that writes them.
 *
 * poll() first: a pipe that is writable takes PIPE_BUF (4096) bytes at once and whole. O_NONBLOCK would do the same, but it belongs to
 * the open file, which other processes may share.
 */
#include "coordinator/output.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

void output_init(struct output *out, int fd)
{
	out->fd = fd;
	atomic_init(&out->dropped, 0);
}

static bool write_now(const struct output *out, const char *line, size_t len)
{
	struct pollfd fd = {.fd = out->fd, .events = POLLOUT};
	return poll(&fd, 1, 0) == 1 && (fd.revents & POLLOUT) != 0 && write(out->fd, line, len) == (ssize_t)len;
}

void output_line(struct output *out, const char *format, ...)
{
	char line[OUTPUT_LINE_MAX];
	unsigned int dropped = atomic_exchange(&out->dropped, 0);
	if (dropped > 0) {
		int n = snprintf(line, sizeof(line), "muster: %u lines are missing here: nobody took them in time\n", dropped);
		if (!write_now(out, line, (size_t)n)) {
			atomic_fetch_add(&out->dropped, dropped + 1);
			return;
		}
	}
	va_list ap;
	va_start(ap, format);
	int n = vsnprintf(line, sizeof(line), format, ap);
	va_end(ap);
	size_t len = n < 0 ? 0 : (size_t)n;
	if (len > sizeof(line) - 1)
		len = sizeof(line) - 1;
	line[len] = '\n';
	if (!write_now(out, line, len + 1))
		atomic_fetch_add(&out->dropped, 1);
}
