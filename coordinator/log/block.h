/*
 * block.h - one block of the carrier: made good by block_seal, believed only after block_open. The format stands in format.h.
 */
#ifndef MUSTER_LOG_BLOCK_H
#define MUSTER_LOG_BLOCK_H

#include "muster/bytes.h"

#include "coordinator/log/format.h"

struct block {
	enum block_type type;
	uint64_t salt, sequence, safe;
	uint32_t length; /* of the payload, bytes */
};

/* Bytes on disk of a block with that payload. */
static inline size_t block_bytes(size_t payload)
{
	return (BLOCK_HEAD + payload + FORMAT_ALIGN - 1) & ~(size_t)(FORMAT_ALIGN - 1);
}

/* Writes the head and the zeros around a payload that stands already at p + BLOCK_HEAD; p has room for block_bytes(length). */
void block_seal(uint8_t *p, const struct block *block);

/* False: these bytes do not begin with a whole, undamaged block. The payload is at p + BLOCK_HEAD. */
bool block_open(struct block *block, const uint8_t *p, size_t len);

/* Payload of a HEAD or META block. */
struct block_id {
	uint8_t log[16];
	uint32_t shards;
	uint64_t start;
	uint32_t worker;
	uint64_t number;
	uint64_t bytes; /* of the segment */
};

#define BLOCK_ID_BYTES 52u

/* Which segment, in the order in which a shard's records stand. */
struct block_place {
	uint64_t start;
	uint32_t worker;
	uint64_t number;
};

/* The row of segments that a cleaned file covers, behind the id in its HEAD; a segment covers itself. */
struct block_cover {
	struct block_place first, last;
};

#define BLOCK_COVER_BYTES 40u

int block_place_order(const struct block_place *a, const struct block_place *b);

/* Writes BLOCK_ID_BYTES bytes; cap is at least that. */
void block_id_write(uint8_t *payload, size_t cap, const struct block_id *id);
/* False: of another format version, or too short. */
bool block_id_read(struct block_id *id, struct bytes payload);

/* The same for the BLOCK_COVER_BYTES behind the id; reading takes the whole payload. False: they are not there or not in order. */
void block_cover_write(uint8_t *p, size_t cap, const struct block_cover *cover);
bool block_cover_read(struct block_cover *cover, struct bytes payload);

#endif
