/*
 * backlog.h - batches that recovery has read and no shard has taken yet: the images of segments, and for each shard the chain of its batches
 * in the order of the log.
 *
 * A chain costs no memory of its own: the eight bytes in front of each batch, its shard and length in the file, are no longer needed in the image and
 * hold the address of the shard's next batch.
 *
 * Heat: the bytes of a shard's batches, where what is followed by HEAT_HALF bytes of the log counts half. Shards that were written to much and lately are
 * the hot ones.
 */
#ifndef MUSTER_LOG_BACKLOG_H
#define MUSTER_LOG_BACKLOG_H

#include "muster/bytes.h"

#include "coordinator/log/format.h"

struct backlog_shard {
	uint8_t *first, *last; /* entries: link, then the batch */
	uint64_t heat;
};

struct backlog_image {
	uint8_t *p;
	size_t len;
	char name[FORMAT_NAME_MAX];
};

struct backlog {
	unsigned int shards;
	struct backlog_shard *of;
	struct backlog_image *images;
	size_t images_len, images_cap;
	uint64_t bytes;	   /* of all images */
	uint64_t cooled;   /* bytes added since heat was halved */
};

/* False: no memory. */
bool backlog_init(struct backlog *b, unsigned int shards);
void backlog_fini(struct backlog *b);

/* Takes over the image of a segment, from malloc; its batches may be added afterwards. False: no memory, nothing is taken. */
bool backlog_keep(struct backlog *b, uint8_t *p, size_t len, const char *name);
/* `batch` stands in the image that was kept last, behind ENTRY_HEAD bytes of its own. */
void backlog_add(struct backlog *b, unsigned int shard, struct bytes batch);
/* The batch behind *at, NULL: the shard's first. Chains of different shards may be walked at once. False: no more. */
bool backlog_next(const struct backlog *b, unsigned int shard, const uint8_t **at, struct bytes *batch);
/* The segment that a batch stands in. */
const char *backlog_name(const struct backlog *b, const uint8_t *p);
/* Forgets everything but heat. */
void backlog_clear(struct backlog *b);
/* The shards in order of heat, hottest first; `out` has room for all. */
void backlog_order(const struct backlog *b, unsigned int *out);

#endif
