/*
 * covers.c - see covers.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/log/covers.h"
#include "coordinator/log/segment.h"
#include "coordinator/log/shards_block.h"

#define FRONT_BYTES (256u * 1024) /* HEAD and SHARDS, unless there are very many shards */

void cover_init(struct cover *c, const struct block_id *id, bool clean)
{
	struct block_place place = {id->start, id->worker, id->number};
	*c = (struct cover){.id = place, .row = {place, place}, .clean = clean};
}

void cover_fini(struct cover *c)
{
	free(c->stands);
	free(c->hidden);
	c->stands = c->hidden = NULL;
}

int64_t cover_open(struct cover *c, const uint8_t *p, size_t len, const uint8_t log[16], unsigned int shards)
{
	struct segment_reader r;
	struct reader entries;
	struct shards_block_entry e;
	if (!segment_open(&r, p, len) || bytes_is_null(r.shards) || memcmp(r.id.log, log, sizeof(r.id.log)) != 0 || r.id.shards != shards ||
	    r.id.start != c->id.start || r.id.worker != c->id.worker || r.id.number != c->id.number)
		return -EBADMSG;
	c->stands = calloc(shards, 1);
	if (c->stands == NULL)
		return -ENOMEM;
	c->row = r.cover;
	for (uint32_t n = shards_block_open(&entries, r.shards); n > 0 && shards_block_next(&entries, &e); n--)
		if (e.shard < shards)
			c->stands[e.shard] = 1;
	return 0;
}

static int64_t cover_read_front(struct cover *c, struct disk *disk, int file, size_t len, const uint8_t log[16], unsigned int shards)
{
	void *p;
	struct disk_op read = {.verb = DISK_READ, .file = file, .len = len};
	if (posix_memalign(&p, FORMAT_ALIGN, len) != 0)
		return -ENOMEM;
	read.buf = p;
	int64_t result = disk_do(disk, &read);
	if (result >= 0)
		result = cover_open(c, p, (size_t)result, log, shards);
	free(p);
	return result;
}

int64_t cover_read(struct cover *c, struct disk *disk, const char *name, const uint8_t log[16], unsigned int shards)
{
	struct disk_op op = {.verb = DISK_OPEN};
	snprintf(op.name, sizeof(op.name), "%s", name);
	int64_t result = disk_do(disk, &op);
	if (result < 0)
		return result;
	size_t whole = (op.len + FORMAT_ALIGN - 1) & ~(size_t)(FORMAT_ALIGN - 1);
	result = cover_read_front(c, disk, op.file, whole < FRONT_BYTES ? whole + FORMAT_ALIGN : FRONT_BYTES, log, shards);
	if (result == -EBADMSG && whole > FRONT_BYTES)
		result = cover_read_front(c, disk, op.file, whole, log, shards);
	op.verb = DISK_CLOSE;
	disk_do(disk, &op);
	return result;
}

static bool row_within(const struct block_cover *inner, const struct block_cover *outer)
{
	return block_place_order(&outer->first, &inner->first) <= 0 && block_place_order(&inner->last, &outer->last) <= 0;
}

static bool newer(const struct cover *a, const struct cover *b)
{
	return a->id.start != b->id.start ? a->id.start > b->id.start : a->id.number > b->id.number;
}

static bool cover_hide(struct cover *c, struct cover *by, unsigned int shards)
{
	if (c->hidden == NULL)
		c->hidden = calloc(shards, 1);
	if (c->hidden == NULL)
		return false;
	for (unsigned int i = 0; i < shards; i++)
		c->hidden[i] |= by->stands[i];
	by->makes_hidden = true;
	return true;
}

bool covers_hide(struct cover **list, size_t n, unsigned int shards)
{
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < n && list[i]->clean; k++)
			if (k != i && row_within(&list[k]->row, &list[i]->row) && (!list[k]->clean || newer(list[i], list[k])) &&
			    !cover_hide(list[k], list[i], shards))
				return false;
	return true;
}

uint8_t *cover_hidden(const struct cover *c, unsigned int shards, bool *ok)
{
	bool all = true;
	*ok = true;
	for (unsigned int i = 0; all && i < shards; i++)
		all = cover_counts(c, i);
	if (all)
		return NULL;
	uint8_t *hidden = malloc(shards);
	*ok = hidden != NULL;
	for (unsigned int i = 0; *ok && i < shards; i++)
		hidden[i] = !cover_counts(c, i);
	return hidden;
}

bool cover_gone(const struct cover *c, unsigned int shards)
{
	for (unsigned int i = 0; i < shards; i++)
		if (cover_counts(c, i))
			return false;
	return true;
}

int cover_order(const struct cover *a, const struct cover *b)
{
	int order = block_place_order(&a->row.first, &b->row.first);
	return order != 0 ? order : block_place_order(&a->id, &b->id);
}
