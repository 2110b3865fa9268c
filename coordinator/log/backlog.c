/*
 * backlog.c - see backlog.h.
 */
#define _GNU_SOURCE /* qsort_r */
#include <stdio.h>
#include <stdlib.h>

#include "muster/check.h"

#include "coordinator/log/backlog.h"
#include "coordinator/log/batch.h"

#define HEAT_HALF ((uint64_t)16 << 20)

bool backlog_init(struct backlog *b, unsigned int shards)
{
	*b = (struct backlog){.shards = shards, .of = calloc(shards, sizeof(*b->of))};
	return b->of != NULL;
}

void backlog_fini(struct backlog *b)
{
	backlog_clear(b);
	free(b->images);
	free(b->of);
	*b = (struct backlog){0};
}

bool backlog_keep(struct backlog *b, uint8_t *p, size_t len, const char *name)
{
	if (b->images_len == b->images_cap) {
		size_t cap = b->images_cap == 0 ? 16 : b->images_cap * 2;
		struct backlog_image *grown = realloc(b->images, cap * sizeof(*grown));
		if (grown == NULL)
			return false;
		b->images = grown;
		b->images_cap = cap;
	}
	struct backlog_image *image = &b->images[b->images_len++];
	*image = (struct backlog_image){.p = p, .len = len};
	snprintf(image->name, sizeof(image->name), "%s", name);
	b->bytes += len;
	return true;
}

static void backlog_heat(struct backlog *b, struct backlog_shard *s, size_t bytes)
{
	b->cooled += bytes;
	if (b->cooled >= HEAT_HALF) {
		b->cooled = 0;
		for (unsigned int i = 0; i < b->shards; i++)
			b->of[i].heat /= 2;
	}
	s->heat += bytes;
}

void backlog_add(struct backlog *b, unsigned int shard, struct bytes batch)
{
	const uint8_t *none = NULL;
	const struct backlog_image *image = &b->images[b->images_len - 1];
	CHECK(shard < b->shards && batch.p >= image->p + ENTRY_HEAD && batch.p + batch.len <= image->p + image->len);
	_Static_assert(sizeof(none) <= ENTRY_HEAD, "an address fits in front of a batch");
	struct backlog_shard *s = &b->of[shard];
	uint8_t *entry = image->p + (batch.p - image->p) - ENTRY_HEAD;
	memcpy(entry, &none, sizeof(none));
	if (s->last == NULL)
		s->first = entry;
	else
		memcpy(s->last, &entry, sizeof(entry));
	s->last = entry;
	backlog_heat(b, s, (size_t)batch.len);
}

bool backlog_next(const struct backlog *b, unsigned int shard, const uint8_t **at, struct bytes *batch)
{
	const uint8_t *entry = b->of[shard].first;
	if (*at != NULL)
		memcpy(&entry, *at, sizeof(entry));
	if (entry == NULL)
		return false;
	*at = entry;
	*batch = bytes_of(entry + ENTRY_HEAD, batch_bytes(entry + ENTRY_HEAD));
	return true;
}

const char *backlog_name(const struct backlog *b, const uint8_t *p)
{
	for (size_t i = 0; i < b->images_len; i++)
		if (p >= b->images[i].p && p < b->images[i].p + b->images[i].len)
			return b->images[i].name;
	return "?";
}

void backlog_clear(struct backlog *b)
{
	for (size_t i = 0; i < b->images_len; i++)
		free(b->images[i].p);
	for (unsigned int i = 0; b->of != NULL && i < b->shards; i++)
		b->of[i].first = b->of[i].last = NULL;
	b->images_len = 0;
	b->bytes = 0;
}

static int hotter(const void *x, const void *y, void *arg)
{
	const struct backlog *b = arg;
	unsigned int i = *(const unsigned int *)x, k = *(const unsigned int *)y;
	if (b->of[i].heat != b->of[k].heat)
		return b->of[i].heat > b->of[k].heat ? -1 : 1;
	return i < k ? -1 : i > k;
}

void backlog_order(const struct backlog *b, unsigned int *out)
{
	for (unsigned int i = 0; i < b->shards; i++)
		out[i] = i;
	qsort_r(out, b->shards, sizeof(*out), hotter, (void *)(uintptr_t)b);
}
