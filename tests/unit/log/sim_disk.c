/*
 * sim_disk.c - see sim_disk.h. A file has two contents: what reads see, and what a power cut leaves for certain; `dirty` says sector by sector where
 * they differ by right. A cut keeps or loses each dirty sector by a coin, so writes are torn, lost and reordered in all ways.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "muster/check.h"

#include "sim_disk.h"

#define SECTOR 512u
#define NAMES_MAX 1024
#define FILES_MAX 8192

struct sim_file {
	uint8_t *now, *sure;
	bool *dirty;
	size_t len;
};

struct sim_name {
	char name[FORMAT_NAME_MAX];
	int file;
	bool sure; /* survives a cut for certain */
	bool used;
};

uint64_t sim_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state * 0x2545f4914f6cdd1dull >> 16;
}

static struct sim_disk *sim_of(struct disk *disk)
{
	return CONTAINER_OF(disk, struct sim_disk, disk);
}

static struct sim_name *name_find(struct sim_disk *d, const char *name)
{
	for (int i = 0; i < NAMES_MAX; i++)
		if (d->names[i].used && strcmp(d->names[i].name, name) == 0)
			return &d->names[i];
	return NULL;
}

static void name_set(struct sim_disk *d, const char *name, int file, bool sure)
{
	struct sim_name *n = name_find(d, name);
	for (int i = 0; n == NULL && i < NAMES_MAX; i++)
		if (!d->names[i].used)
			n = &d->names[i];
	CHECK(n != NULL);
	snprintf(n->name, sizeof(n->name), "%s", name);
	n->file = file;
	n->sure = sure;
	n->used = true;
}

static int file_new(struct sim_disk *d, size_t len)
{
	CHECK(d->files_len < FILES_MAX);
	struct sim_file *f = &d->files[d->files_len];
	f->len = len;
	f->now = calloc(1, len + 1);
	f->sure = calloc(1, len + 1);
	f->dirty = calloc(len / SECTOR + 1, sizeof(bool));
	return d->files_len++;
}

/* ---- operations ---- */

static int64_t sim_create(struct sim_disk *d, struct disk_op *op)
{
	if (d->used + op->len > d->capacity)
		return -ENOSPC;
	d->used += op->len;
	op->file = file_new(d, op->len);
	name_set(d, op->name, op->file, false);
	return 0;
}

static int64_t sim_read(struct sim_disk *d, struct disk_op *op)
{
	struct sim_file *f = &d->files[op->file];
	size_t n = op->offset >= f->len ? 0 : f->len - op->offset;
	n = n < op->len ? n : op->len;
	memcpy(op->buf, f->now + op->offset, n);
	return (int64_t)n;
}

static void file_grow(struct sim_disk *d, struct sim_file *f, size_t len)
{
	size_t sectors = f->len / SECTOR + 1, now = len / SECTOR + 1;
	f->now = realloc(f->now, len + 1);
	f->sure = realloc(f->sure, len + 1);
	f->dirty = realloc(f->dirty, now * sizeof(bool));
	CHECK(f->now != NULL && f->sure != NULL && f->dirty != NULL);
	memset(f->now + f->len, 0, len + 1 - f->len);
	memset(f->sure + f->len, 0, len + 1 - f->len);
	memset(f->dirty + sectors, 0, (now - sectors) * sizeof(bool));
	d->used += len - f->len;
	f->len = len;
}

static void sim_write_begin(struct sim_disk *d, struct disk_op *op)
{
	struct sim_file *f = &d->files[op->file];
	if (d->grows && op->offset + op->len > f->len)
		file_grow(d, f, op->offset + op->len);
	CHECK(op->offset % FORMAT_ALIGN == 0 && op->len % FORMAT_ALIGN == 0 && op->offset + op->len <= f->len);
	memcpy(f->now + op->offset, op->buf, op->len);
	for (size_t i = op->offset / SECTOR; i < (op->offset + op->len) / SECTOR; i++)
		f->dirty[i] = true;
}

static void sim_make_sure(struct sim_disk *d, int file, size_t from, size_t len)
{
	struct sim_file *f = &d->files[file];
	memcpy(f->sure + from, f->now + from, len);
	memset(f->dirty + from / SECTOR, 0, len / SECTOR * sizeof(bool));
}

static int64_t sim_rename(struct sim_disk *d, struct disk_op *op)
{
	struct sim_name *n = name_find(d, op->name);
	if (n == NULL)
		return -ENOENT;
	int file = n->file;
	n->used = false;
	name_set(d, op->to, file, true);
	return 0;
}

static int64_t sim_remove(struct sim_disk *d, struct disk_op *op)
{
	struct sim_name *n = name_find(d, op->name);
	if (n == NULL)
		return -ENOENT;
	d->used -= d->files[n->file].len;
	n->used = false;
	return 0;
}

static int64_t sim_list(struct sim_disk *d, struct disk_op *op)
{
	op->buf = malloc(NAMES_MAX * FORMAT_NAME_MAX);
	op->len = 0;
	for (int i = 0; i < NAMES_MAX; i++) {
		if (!d->names[i].used)
			continue;
		size_t n = strlen(d->names[i].name) + 1;
		memcpy(op->buf + op->len, d->names[i].name, n);
		op->len += n;
	}
	return 0;
}

static int64_t sim_finish(struct sim_disk *d, struct disk_op *op)
{
	struct sim_name *n;
	switch (op->verb) {
	case DISK_CREATE:
		return sim_create(d, op);
	case DISK_OPEN:
		n = name_find(d, op->name);
		if (n == NULL)
			return -ENOENT;
		op->file = n->file;
		op->len = d->files[n->file].len;
		return 0;
	case DISK_READ:
		if (d->fail_read > 0 && --d->fail_read == 0)
			return -EIO;
		return sim_read(d, op);
	case DISK_WRITE:
		return 0;
	case DISK_WRITE_DURABLE:
		if (d->no_space)
			return -ENOSPC;
		if (d->fail_write > 0 && --d->fail_write == 0)
			return -EIO;
		sim_make_sure(d, op->file, op->offset, op->len);
		return 0;
	case DISK_FLUSH:
		sim_make_sure(d, op->file, 0, d->files[op->file].len);
		return 0;
	case DISK_TRIM:
		CHECK(op->offset <= d->files[op->file].len);
		d->used -= d->files[op->file].len - op->offset;
		d->files[op->file].len = op->offset;
		return 0;
	case DISK_CLOSE:
		return 0;
	case DISK_RENAME:
		return sim_rename(d, op);
	case DISK_REMOVE:
		return sim_remove(d, op);
	case DISK_SPACE:
		return (int64_t)(d->capacity - d->used);
	case DISK_LIST:
		return sim_list(d, op);
	}
	return -EINVAL;
}

static void sim_submit(struct disk *disk, struct disk_op *op)
{
	struct sim_disk *d = sim_of(disk);
	d->ops++;
	d->writes += op->verb == DISK_WRITE_DURABLE;
	if (!d->cut && (op->verb == DISK_WRITE || op->verb == DISK_WRITE_DURABLE))
		sim_write_begin(d, op);
	op->next = d->pending;
	d->pending = op;
	if (d->ops == d->cut_at)
		d->cut = true;
}

static void sim_complete_one(struct sim_disk *d)
{
	unsigned int n = 0;
	struct disk_op **at = &d->pending;
	for (struct disk_op *op = d->pending; op != NULL; op = op->next)
		n++;
	for (uint64_t i = sim_random(&d->random) % n; i > 0; i--)
		at = &(*at)->next;
	struct disk_op *op = *at;
	*at = op->next;
	op->result = d->cut ? -EIO : sim_finish(d, op);
	disk_complete(op);
}

static void sim_poll(struct disk *disk, bool wait)
{
	struct sim_disk *d = sim_of(disk);
	if (wait)
		sim_complete_one(d);
	while (d->pending != NULL && !d->lazy && sim_random(&d->random) % 3 == 0)
		sim_complete_one(d);
}

static void sim_free(struct disk *disk)
{
	struct sim_disk *d = sim_of(disk);
	CHECK(d->pending == NULL);
	for (int i = 0; i < d->files_len; i++) {
		free(d->files[i].now);
		free(d->files[i].sure);
		free(d->files[i].dirty);
	}
	free(d->files);
	free(d->names);
	free(d);
}

static const struct disk_ops sim_ops = {sim_submit, sim_poll, sim_free, "simulated"};

struct sim_disk *sim_disk_new(uint64_t seed)
{
	struct sim_disk *d = calloc(1, sizeof(*d));
	d->disk.ops = &sim_ops;
	d->random = seed * 0x9e3779b97f4a7c15ull + 1;
	d->names = calloc(NAMES_MAX, sizeof(*d->names));
	d->files = calloc(FILES_MAX, sizeof(*d->files));
	d->capacity = SIZE_MAX / 2;
	return d;
}

/* ---- the cut ---- */

static bool coin(struct sim_disk *d)
{
	return sim_random(&d->random) % 2 == 0;
}

/* Name operations under way may have happened. */
static void cut_names(struct sim_disk *d)
{
	for (struct disk_op *op = d->pending; op != NULL; op = op->next)
		if ((op->verb == DISK_RENAME || op->verb == DISK_REMOVE) && name_find(d, op->name) != NULL && coin(d))
			sim_finish(d, op);
}

/* A killed program's write may have been done in part. */
static void cut_writes(struct sim_disk *d)
{
	for (struct disk_op *op = d->pending; op != NULL; op = op->next) {
		if (op->verb != DISK_WRITE && op->verb != DISK_WRITE_DURABLE)
			continue;
		struct sim_file *f = &d->files[op->file];
		for (size_t at = op->offset; at < op->offset + op->len; at += SECTOR)
			if (coin(d))
				memcpy(f->now + at, f->sure + at, SECTOR);
	}
}

struct sim_disk *sim_disk_after_cut(struct sim_disk *d, bool kill)
{
	struct sim_disk *after = sim_disk_new(sim_random(&d->random) | 1);
	after->capacity = d->capacity;
	after->grows = d->grows;
	cut_names(d);
	cut_writes(d);
	for (int i = 0; i < NAMES_MAX; i++) {
		struct sim_name *n = &d->names[i];
		if (!n->used || (!n->sure && !kill && coin(d)))
			continue;
		struct sim_file *f = &d->files[n->file];
		int number = file_new(after, f->len);
		struct sim_file *g = &after->files[number];
		memcpy(g->now, f->sure, f->len);
		for (size_t s = 0; s < f->len / SECTOR; s++)
			if (f->dirty[s] && (kill || coin(d)))
				memcpy(g->now + s * SECTOR, f->now + s * SECTOR, SECTOR);
		if (kill) { /* what the kernel has is not on the disk by that */
			memcpy(g->sure, f->sure, f->len);
			memcpy(g->dirty, f->dirty, f->len / SECTOR * sizeof(bool));
		} else {
			memcpy(g->sure, g->now, f->len);
		}
		name_set(after, n->name, number, n->sure || !kill);
		after->used += f->len;
	}
	d->cut = true;
	return after;
}

uint8_t *sim_disk_bytes(struct sim_disk *d, const char *name, size_t *len)
{
	struct sim_name *n = name_find(d, name);
	if (n == NULL)
		return NULL;
	*len = d->files[n->file].len;
	return d->files[n->file].now;
}

void sim_disk_flip(struct sim_disk *d, const char *name, size_t at, uint8_t bits)
{
	struct sim_name *n = name_find(d, name);
	CHECK(n != NULL && at < d->files[n->file].len);
	d->files[n->file].now[at] ^= bits;
	d->files[n->file].sure[at] ^= bits;
}

const char *sim_disk_name(struct sim_disk *d, int i)
{
	const char *last = "", *found = NULL;
	for (; i >= 0; i--, last = found) {
		found = NULL;
		for (int k = 0; k < NAMES_MAX; k++)
			if (d->names[k].used && strcmp(d->names[k].name, last) > 0 && (found == NULL || strcmp(d->names[k].name, found) < 0))
				found = d->names[k].name;
		if (found == NULL)
			return NULL;
	}
	return found;
}
