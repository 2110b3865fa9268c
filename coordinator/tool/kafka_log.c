/*
 * kafka_log.c - see kafka_log.h.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "coordinator/tool/kafka_log.h"

#define BATCH_MAX ((size_t)128 << 20)
#define READ_AHEAD ((size_t)1 << 20)
#define AT_LENGTH_END 12 /* base offset, length */
#define AT_MAGIC 16

static PRINTF_LIKE(2, 3) bool fail(struct kafka_log *k, const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	vsnprintf(k->err, sizeof(k->err), format, ap);
	va_end(ap);
	return false;
}

int64_t kafka_partition_of(const char *path)
{
	size_t len = strlen(path), prefix = strlen(KAFKA_OFFSETS);
	while (len > 1 && path[len - 1] == '/')
		len--;
	size_t start = len;
	while (start > 0 && path[start - 1] != '/')
		start--;
	if (len - start <= prefix || len - start > prefix + 9 || strncmp(path + start, KAFKA_OFFSETS, prefix) != 0)
		return -1;
	int64_t number = 0;
	for (size_t i = start + prefix; i < len; i++) {
		if (path[i] < '0' || path[i] > '9')
			return -1;
		number = number * 10 + (path[i] - '0');
	}
	return number;
}

/* ---- the folder ---- */

static bool ends_with(const char *name, const char *tail)
{
	size_t len = strlen(name), n = strlen(tail);
	return len > n && strcmp(name + len - n, tail) == 0;
}

static bool add_name(struct kafka_log *k, const char *name)
{
	char again[64];
	uint64_t base = strtoull(name, NULL, 10);
	if (ends_with(name, ".swap") || ends_with(name, ".cleaned"))
		return fail(k, "%.80s: the broker was stopped in the middle of a compaction; start it, stop it in order, and copy the folder again", name);
	snprintf(again, sizeof(again), "%0*" PRIu64 ".log", KAFKA_NAME_DIGITS, base);
	if (strcmp(name, again) != 0)
		return true;
	uint64_t *grown = realloc(k->segments, (k->len + 1) * sizeof(*grown));
	if (grown == NULL)
		return fail(k, "no memory");
	k->segments = grown;
	k->segments[k->len++] = base;
	return true;
}

static int base_order(const void *x, const void *y)
{
	const uint64_t *a = x, *b = y;
	return *a < *b ? -1 : *a > *b;
}

static bool list(struct kafka_log *k)
{
	int fd = openat(k->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	if (dir == NULL)
		return fail(k, "%s", strerror(errno));
	bool ok = true;
	for (struct dirent *e; ok && (e = readdir(dir)) != NULL;)
		ok = add_name(k, e->d_name);
	closedir(dir);
	if (ok && k->len == 0)
		return fail(k, "it holds no segment, such as %0*d.log", KAFKA_NAME_DIGITS, 0);
	if (ok)
		qsort(k->segments, k->len, sizeof(*k->segments), base_order);
	return ok;
}

bool kafka_log_open(struct kafka_log *k, const char *path)
{
	*k = (struct kafka_log){.path = path, .fd = -1, .folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
	bool ok = k->folder >= 0 ? list(k) : fail(k, "%s", strerror(errno));
	if (!ok)
		kafka_log_close(k);
	return ok;
}

static void close_segment(struct kafka_log *k)
{
	if (k->fd >= 0)
		close(k->fd);
	k->fd = -1;
}

void kafka_log_close(struct kafka_log *k)
{
	close_segment(k);
	if (k->folder >= 0)
		close(k->folder);
	free(k->segments);
	free(k->buf);
	k->folder = -1;
	k->segments = NULL;
	k->buf = NULL;
	k->len = k->cap = 0;
}

void kafka_log_rewind(struct kafka_log *k)
{
	close_segment(k);
	k->current = 0;
	k->next_offset = 0;
}

void kafka_log_segment(const struct kafka_log *k, char *out, size_t len)
{
	snprintf(out, len, "%s/%0*" PRIu64 ".log", k->path, KAFKA_NAME_DIGITS, k->current < k->len ? k->segments[k->current] : 0);
}

/* ---- bytes of a segment ---- */

static bool open_segment(struct kafka_log *k)
{
	char name[64];
	struct stat st;
	snprintf(name, sizeof(name), "%0*" PRIu64 ".log", KAFKA_NAME_DIGITS, k->segments[k->current]);
	k->fd = openat(k->folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (k->fd < 0 || fstat(k->fd, &st) != 0)
		return fail(k, "%s: %s", name, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return fail(k, "%s: it is no file", name);
	k->size = (uint64_t)st.st_size;
	k->at = k->buf_at = k->batch_at = 0;
	k->buf_len = 0;
	return true;
}

static bool fill(struct kafka_log *k, size_t need)
{
	size_t want = need < READ_AHEAD ? READ_AHEAD : need;
	if (want > k->cap) {
		free(k->buf);
		k->buf = malloc(want);
		k->cap = k->buf == NULL ? 0 : want;
	}
	if (k->buf == NULL)
		return fail(k, "no memory");
	k->buf_at = k->at;
	k->buf_len = 0;
	while (k->buf_len < need) {
		ssize_t n = pread(k->fd, k->buf + k->buf_len, want - k->buf_len, (off_t)(k->at + k->buf_len));
		if (n == 0)
			return fail(k, "a segment became shorter while it was read");
		if (n < 0 && errno != EINTR)
			return fail(k, "%s", strerror(errno));
		k->buf_len += n > 0 ? (size_t)n : 0;
	}
	return true;
}

/* `need` bytes from k->at on, which the file has. NULL: reading failed. */
static const uint8_t *peek(struct kafka_log *k, size_t need)
{
	if ((k->at < k->buf_at || k->at + need > k->buf_at + k->buf_len) && !fill(k, need))
		return NULL;
	return k->buf + (k->at - k->buf_at);
}

/* ---- batches ---- */

/* No whole batch stands at k->at. In the last segment that is a cut write, or space that was reserved; before, it is damage. */
static enum kafka_step no_batch(struct kafka_log *k)
{
	bool last = k->current + 1 == k->len;
	k->at = k->size;
	return last ? KAFKA_TAIL : KAFKA_DAMAGED;
}

static enum kafka_step read_batch(struct kafka_log *k, struct batch *batch, struct bytes *bytes)
{
	uint64_t left = k->size - k->at;
	k->batch_at = k->at;
	if (left < BATCH_HEAD)
		return no_batch(k);
	const uint8_t *p = peek(k, BATCH_HEAD);
	if (p == NULL)
		return KAFKA_FAILED;
	struct reader r = reader_of(p + 8, 4);
	uint64_t size = (uint64_t)reader_u32(&r) + AT_LENGTH_END;
	if (p[AT_MAGIC] < 2 && size > AT_LENGTH_END) {
		fail(k, "a message of format v%u stands at byte %" PRIu64 "; only v2 (Kafka 0.11 and later) can be read", p[AT_MAGIC], k->at);
		return KAFKA_FAILED;
	}
	if (size < BATCH_HEAD || size > left || size > BATCH_MAX)
		return no_batch(k);
	p = peek(k, size);
	if (p == NULL)
		return KAFKA_FAILED;
	k->at += size;
	*bytes = bytes_of(p, size);
	if (!batch_open(batch, *bytes))
		return k->at == k->size && k->current + 1 == k->len ? KAFKA_TAIL : KAFKA_DAMAGED;
	if (batch->base_offset < k->next_offset)
		return KAFKA_DAMAGED;
	k->next_offset = batch->last_offset + 1;
	return KAFKA_BATCH;
}

enum kafka_step kafka_log_next(struct kafka_log *k, struct batch *batch, struct bytes *bytes)
{
	for (;;) {
		if (k->fd < 0) {
			if (k->current == k->len)
				return KAFKA_END;
			if (!open_segment(k))
				return KAFKA_FAILED;
		}
		if (k->at < k->size)
			return read_batch(k, batch, bytes);
		close_segment(k);
		k->current++;
	}
}
