/*
 * carrier.c - see carrier.h.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "muster/check.h"

#include "coordinator/tool/carrier.h"

#define PAYLOAD_TARGET ((size_t)1 << 20) /* a block is written when it has that much */
#define FIRST_START 1

static PRINTF_LIKE(2, 3) bool fail(struct carrier *c, const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	vsnprintf(c->err, sizeof(c->err), format, ap);
	va_end(ap);
	return false;
}

/* ---- the folder ---- */

static bool is_empty(struct carrier *c)
{
	int fd = openat(c->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	if (dir == NULL)
		return fail(c, "%s: %s", c->path, strerror(errno));
	bool empty = true;
	for (struct dirent *e; empty && (e = readdir(dir)) != NULL;)
		empty = strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0;
	closedir(dir);
	return empty || fail(c, "%s: it is not empty; import makes a new log, into a folder that is empty or not there yet", c->path);
}

static bool room(struct carrier *c, size_t payload)
{
	size_t need = block_bytes(payload), cap = c->cap == 0 ? 2 * PAYLOAD_TARGET : c->cap;
	if (need <= c->cap)
		return true;
	while (cap < need)
		cap *= 2;
	uint8_t *grown = realloc(c->block, cap);
	if (grown == NULL)
		return fail(c, "no memory");
	c->block = grown;
	c->cap = cap;
	return true;
}

bool carrier_open(struct carrier *c, const struct carrier_config *cfg)
{
	*c = (struct carrier){.path = cfg->path, .fd = -1, .segment_bytes = cfg->segment_bytes};
	c->id = (struct block_id){.shards = cfg->shards, .start = FIRST_START, .bytes = cfg->segment_bytes};
	memcpy(c->id.log, cfg->random, sizeof(c->id.log));
	memcpy(&c->salt, cfg->random + sizeof(c->id.log), sizeof(c->salt));
	bool made = mkdir(cfg->path, 0750) == 0 || errno == EEXIST;
	c->folder = made ? open(cfg->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	bool ok = c->folder >= 0 || fail(c, "%s: %s", cfg->path, strerror(errno));
	if (ok && flock(c->folder, LOCK_EX | LOCK_NB) != 0)
		ok = fail(c, "%s: %s", cfg->path, errno == EWOULDBLOCK ? "another program uses this log" : strerror(errno));
	ok = ok && is_empty(c) && room(c, 0);
	if (!ok)
		carrier_close(c);
	return ok;
}

void carrier_close(struct carrier *c)
{
	if (c->fd >= 0)
		close(c->fd);
	if (c->folder >= 0)
		close(c->folder);
	free(c->block);
	c->block = NULL;
	c->fd = c->folder = -1;
}

/* ---- files ---- */

static bool write_all(struct carrier *c, int fd, const char *name, const uint8_t *p, size_t len, uint64_t at)
{
	for (size_t put = 0; put < len;) {
		ssize_t n = pwrite(fd, p + put, len - put, (off_t)(at + put));
		if (n <= 0 && errno != EINTR)
			return fail(c, "%s/%s: %s", c->path, name, strerror(errno));
		put += n > 0 ? (size_t)n : 0;
	}
	return true;
}

/* Seals the block and writes it to the segment. */
static bool write_block(struct carrier *c, uint8_t *block, enum block_type type, uint32_t length)
{
	struct block b = {type, c->salt, c->sequence, c->sequence, length};
	block_seal(block, &b);
	if (!write_all(c, c->fd, c->name, block, block_bytes(length), c->at))
		return false;
	c->at += block_bytes(length);
	c->sequence++;
	return true;
}

static bool begin_segment(struct carrier *c)
{
	c->id.number++;
	c->salt = c->salt * 6364136223846793005u + 1442695040888963407u;
	c->at = c->sequence = 0;
	segment_name(c->name, c->id.start, c->id.worker, c->id.number);
	c->fd = openat(c->folder, c->name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
	if (c->fd < 0)
		return fail(c, "%s/%s: %s", c->path, c->name, strerror(errno));
	block_id_write(c->small + BLOCK_HEAD, sizeof(c->small) - BLOCK_HEAD, &c->id);
	return write_block(c, c->small, BLOCK_FIRST, BLOCK_ID_BYTES);
}

static bool end_segment(struct carrier *c)
{
	if (c->fd < 0)
		return true;
	bool ok = write_block(c, c->small, BLOCK_END, 0) && (fsync(c->fd) == 0 || fail(c, "%s/%s: %s", c->path, c->name, strerror(errno)));
	c->bytes += c->at;
	close(c->fd);
	c->fd = -1;
	return ok;
}

static bool fits(const struct carrier *c, uint64_t at, size_t payload)
{
	return at + block_bytes(payload) + block_bytes(0) <= c->segment_bytes;
}

/* ---- batches ---- */

/* The gathered payload becomes a block, in the next segment if this one has no room. */
static bool flush(struct carrier *c)
{
	uint32_t length = (uint32_t)c->len;
	if (length == 0)
		return true;
	if (!fits(c, c->at, length) && (!end_segment(c) || !begin_segment(c)))
		return false;
	c->len = 0;
	return write_block(c, c->block, BLOCK_BATCHES, length);
}

bool carrier_batch(struct carrier *c, uint32_t shard, struct bytes batch)
{
	size_t size = ENTRY_HEAD + (size_t)batch.len;
	CHECK(shard < c->id.shards && batch.len > 0);
	if (!fits(c, FORMAT_ALIGN, size))
		return fail(c, "a batch of %d bytes fits into no segment; make log.segment.bytes larger", (int)batch.len);
	if (c->fd < 0 && !begin_segment(c))
		return false;
	if (c->len > 0 && (c->len + size > PAYLOAD_TARGET || !fits(c, FORMAT_ALIGN, c->len + size)) && !flush(c))
		return false;
	if (!room(c, c->len + size))
		return false;
	struct writer w = writer_of(c->block + BLOCK_HEAD + c->len, size);
	writer_u32(&w, shard);
	writer_u32(&w, (uint32_t)batch.len);
	writer_raw(&w, batch.p, (size_t)batch.len);
	c->len += size;
	return true;
}

uint64_t carrier_bytes(const struct carrier *c)
{
	return c->bytes + (c->fd < 0 ? 0 : c->at + block_bytes(0)) + (c->len == 0 ? 0 : block_bytes(c->len));
}

static bool write_meta(struct carrier *c)
{
	const char *name = FORMAT_META FORMAT_NEW;
	struct block_id id = {.shards = c->id.shards};
	struct block head = {.type = BLOCK_META, .length = BLOCK_ID_BYTES};
	memcpy(id.log, c->id.log, sizeof(id.log));
	block_id_write(c->small + BLOCK_HEAD, sizeof(c->small) - BLOCK_HEAD, &id);
	block_seal(c->small, &head);
	int fd = openat(c->folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
	if (fd < 0)
		return fail(c, "%s/%s: %s", c->path, name, strerror(errno));
	bool ok = write_all(c, fd, name, c->small, FORMAT_ALIGN, 0);
	ok = ok && fsync(fd) == 0 && fsync(c->folder) == 0 && renameat(c->folder, name, c->folder, FORMAT_META) == 0 && fsync(c->folder) == 0;
	close(fd);
	return ok || fail(c, "%s/%s: %s", c->path, FORMAT_META, strerror(errno));
}

bool carrier_finish(struct carrier *c)
{
	return flush(c) && end_segment(c) && write_meta(c);
}
