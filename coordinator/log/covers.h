/*
 * covers.h - which files count for which shards, from what cleaned files say about themselves: the rule at the end of format.h.
 */
#ifndef MUSTER_LOG_COVERS_H
#define MUSTER_LOG_COVERS_H

#include "coordinator/log/block.h"
#include "coordinator/log/disk.h"

struct cover {
	struct block_place id;	/* from the file's name */
	struct block_cover row; /* of a segment: itself */
	bool clean;
	bool makes_hidden; /* other files do not count because of it */
	uint8_t *stands; /* a cleaned file: one byte for each shard that it stands for */
	uint8_t *hidden; /* one byte for each shard for which something else counts; NULL: none */
};

/* A segment's, or a cleaned file's before covers_read. */
void cover_init(struct cover *c, const struct block_id *id, bool clean);
void cover_fini(struct cover *c);
/* What a cleaned file says at its beginning, which are these bytes. As cover_read. */
int64_t cover_open(struct cover *c, const uint8_t *p, size_t len, const uint8_t log[16], unsigned int shards);
/* Reads what a cleaned file says at its beginning. Returns 0, or a negative errno: EBADMSG when it is not good or of another log. Blocking. */
int64_t cover_read(struct cover *c, struct disk *disk, const char *name, const uint8_t log[16], unsigned int shards);
/* Finds out what is hidden; false: no memory. `list` holds n pointers. */
bool covers_hide(struct cover **list, size_t n, unsigned int shards);

/* True: what this file holds of the shard counts. */
static inline bool cover_counts(const struct cover *c, unsigned int shard)
{
	return (c->hidden == NULL || !c->hidden[shard]) && (!c->clean || c->stands[shard]);
}

/* One byte for each shard that does not count, from malloc. NULL: all count, or there is no memory (*ok is false). */
uint8_t *cover_hidden(const struct cover *c, unsigned int shards, bool *ok);
/* True: nothing of the file counts any more. */
bool cover_gone(const struct cover *c, unsigned int shards);
/* Reading order. */
int cover_order(const struct cover *a, const struct cover *b);

#endif
