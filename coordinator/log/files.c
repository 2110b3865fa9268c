/*
 * files.c - see files.h.
 */
#include <stdlib.h>
#include <string.h>

#include "muster/check.h"

#include "coordinator/log/files.h"

/* ---- one file ---- */

struct log_file *file_new(unsigned int shards)
{
	struct log_file *f = calloc(1, sizeof(*f));
	if (f == NULL)
		return NULL;
	f->bounds = malloc(shards * sizeof(*f->bounds));
	if (f->bounds == NULL) {
		free(f);
		return NULL;
	}
	for (unsigned int i = 0; i < shards; i++)
		f->bounds[i] = (struct file_bounds){.first = INT64_MAX, .last = -1};
	return f;
}

static void shared_put(struct file_shared *s)
{
	if (s != NULL && atomic_fetch_sub(&s->refs, 1) == 1)
		free(s);
}

void file_free(struct log_file *f)
{
	if (f == NULL)
		return;
	shared_put(f->shared);
	free(f->bounds);
	free(f->places);
	free(f->hidden);
	free(f);
}

static bool file_add_place(struct log_file *f, struct file_place place)
{
	if (f->places_len == f->places_cap) {
		size_t cap = f->places_cap == 0 ? 16 : f->places_cap * 2;
		struct file_place *grown = realloc(f->places, cap * sizeof(*grown));
		if (grown == NULL)
			return false;
		f->places = grown;
		f->places_cap = cap;
	}
	f->places[f->places_len++] = place;
	return true;
}

bool file_note(struct log_file *f, unsigned int shard, int64_t first, int64_t last, uint64_t at)
{
	struct file_bounds *b = &f->bounds[shard];
	uint32_t block = (uint32_t)(at / FORMAT_ALIGN);
	bool begins = b->last < b->first, ok = true;
	CHECK(at % FORMAT_ALIGN == 0 && (begins || first > b->last));
	if (begins || (uint64_t)(block - b->block) * FORMAT_ALIGN >= FILES_STEP) {
		ok = file_add_place(f, (struct file_place){first, shard, block});
		if (ok)
			b->block = block;
	}
	if (begins)
		b->first = first;
	b->last = last;
	if (last + 1 > b->end)
		b->end = last + 1;
	return ok;
}

uint64_t file_find(const struct log_file *f, unsigned int shard, int64_t offset)
{
	uint64_t at = FORMAT_ALIGN; /* behind HEAD, when there was no memory for a place */
	bool found = false;
	for (size_t i = 0; i < f->places_len; i++) {
		const struct file_place *p = &f->places[i];
		if (p->shard != shard)
			continue;
		if (found && p->offset > offset)
			break;
		at = (uint64_t)p->block * FORMAT_ALIGN;
		found = true;
	}
	return at;
}

/* ---- all of them ---- */

bool files_reserve(struct log_files *files)
{
	if (files->len < files->cap)
		return true;
	size_t cap = files->cap == 0 ? 16 : files->cap * 2;
	struct log_file **grown = realloc(files->list, cap * sizeof(*grown));
	if (grown == NULL)
		return false;
	files->list = grown;
	files->cap = cap;
	return true;
}

bool files_add(struct log_files *files, struct log_file *f)
{
	if (!files_reserve(files))
		return false;
	size_t at = files->len++;
	for (; at > 0 && block_place_order(&files->list[at - 1]->cover.first, &f->cover.first) > 0; at--)
		files->list[at] = files->list[at - 1];
	files->list[at] = f;
	return true;
}

void files_replace(struct log_files *files, size_t at, size_t n, struct log_file *by)
{
	size_t put = by != NULL ? 1 : 0;
	CHECK(n >= put && at + n <= files->len);
	if (by != NULL)
		files->list[at] = by;
	memmove(&files->list[at + put], &files->list[at + n], (files->len - at - n) * sizeof(*files->list));
	files->len -= n - put;
}

struct log_file *files_find(const struct log_files *files, unsigned int shard, int64_t offset)
{
	for (size_t i = 0; i < files->len; i++) {
		const struct file_bounds *b = &files->list[i]->bounds[shard];
		if (b->first <= b->last && b->last >= offset)
			return files->list[i];
	}
	return NULL;
}

void files_join(struct log_files *files, unsigned int workers, uint64_t group_bytes)
{
	struct block_place reach = {0, 0, 0};
	uint64_t bytes = 0;
	for (size_t i = 0; i < files->len; i++) {
		struct log_file *f = files->list[i];
		bool overlaps = i > 0 && block_place_order(&f->cover.first, &reach) <= 0;
		f->old = true;
		f->charge = f->bytes / workers;
		f->joined = overlaps || (i > 0 && workers > 1 && bytes + f->bytes <= group_bytes);
		bytes = f->joined ? bytes + f->bytes : f->bytes;
		if (block_place_order(&f->cover.last, &reach) > 0)
			reach = f->cover.last;
	}
}

unsigned int file_owned(const struct log_file *f, unsigned int shards, bool (*owns)(void *arg, unsigned int shard), void *arg)
{
	unsigned int mine = 0;
	for (unsigned int i = 0; i < shards; i++)
		mine += f->bounds[i].end > 0 && owns(arg, i);
	return mine;
}

bool file_release(struct log_file *f, unsigned int shards, bool (*owns)(void *arg, unsigned int shard), void *arg)
{
	if (f->shared == NULL)
		return true;
	unsigned int mine = file_owned(f, shards, owns, arg);
	return atomic_fetch_sub(&f->shared->left, mine) == mine && !atomic_exchange(&f->shared->removed, true);
}

/* NULL: no memory. */
static struct file_shared *shared_new(const struct log_file *f, unsigned int shards)
{
	struct file_shared *s = malloc(sizeof(*s));
	unsigned int left = 0;
	if (s == NULL)
		return NULL;
	for (unsigned int i = 0; i < shards; i++)
		left += f->bounds[i].end > 0;
	atomic_init(&s->refs, 1);
	atomic_init(&s->left, left);
	atomic_init(&s->removed, false);
	return s;
}

static struct log_file *file_copy(struct log_file *from, unsigned int shards)
{
	struct log_file *f = file_new(shards);
	if (from->shared == NULL)
		from->shared = shared_new(from, shards);
	if (f == NULL || from->shared == NULL) {
		file_free(f);
		return NULL;
	}
	struct file_bounds *bounds = f->bounds;
	memcpy(bounds, from->bounds, shards * sizeof(*bounds));
	*f = *from;
	atomic_fetch_add(&f->shared->refs, 1);
	f->bounds = bounds;
	f->places_len = f->places_cap = 0;
	f->places = malloc((from->places_len + 1) * sizeof(*f->places));
	f->hidden = from->hidden == NULL ? NULL : malloc(shards);
	if (f->hidden != NULL)
		memcpy(f->hidden, from->hidden, shards);
	if (f->places == NULL || (f->hidden == NULL) != (from->hidden == NULL)) {
		file_free(f);
		return NULL;
	}
	if (from->places_len > 0)
		memcpy(f->places, from->places, from->places_len * sizeof(*f->places));
	f->places_len = from->places_len;
	f->places_cap = from->places_len + 1;
	return f;
}

bool files_copy(struct log_files *to, const struct log_files *from)
{
	*to = (struct log_files){.shards = from->shards};
	for (size_t i = 0; i < from->len; i++) {
		struct log_file *f = file_copy(from->list[i], from->shards);
		if (f != NULL && files_add(to, f))
			continue;
		file_free(f);
		files_fini(to);
		return false;
	}
	return true;
}

void files_fini(struct log_files *files)
{
	for (size_t i = 0; i < files->len; i++)
		file_free(files->list[i]);
	free(files->list);
	memset(files, 0, sizeof(*files));
}
