/*
 * segment.h - a segment or a cleaned file as bytes in memory, read block by block, and its file name. No I/O: recovery, dump and the fuzzer read through it.
 */
#ifndef MUSTER_LOG_SEGMENT_H
#define MUSTER_LOG_SEGMENT_H

#include "coordinator/log/block.h"

enum segment_end {
	SEGMENT_GOING, /* more blocks may follow */
	SEGMENT_SEALED, /* END was read */
	SEGMENT_CLEAN, /* the next block was never written */
	SEGMENT_TORN, /* the next block is not good and nobody was told that it is durable */
	SEGMENT_DAMAGED, /* the next block is not good and had been flushed */
};

struct segment_reader {
	const uint8_t *p;
	size_t len;
	struct block_id id;
	struct block_cover cover; /* of a segment: itself */
	struct bytes shards;	  /* payload of SHARDS; null: a segment */
	uint64_t salt;
	uint64_t sequence; /* of the next block */
	size_t at;	   /* where it stands */
	enum segment_end end;
};

/* False: there is no good HEAD block, or it is one of a cleaned file and no good SHARDS block follows. */
bool segment_open(struct segment_reader *r, const uint8_t *p, size_t len);
/* The payload of the next BATCHES block. False: r->end says why not, r->at where. */
bool segment_next(struct segment_reader *r, struct bytes *payload);
/* After SEGMENT_DAMAGED: goes on at the next good block behind the hole. Returns how many blocks are missing; 0: there is none behind. */
uint64_t segment_skip(struct segment_reader *r);

/* The next batch of a BATCHES payload. False: no more, or malformed: payload->bad. */
bool segment_batch(struct reader *payload, uint32_t *shard, struct bytes *batch);

void segment_clean_name(char out[FORMAT_NAME_MAX], uint64_t start, uint32_t worker, uint64_t number);
void segment_name(char out[FORMAT_NAME_MAX], uint64_t start, uint32_t worker, uint64_t number);
/* False: not the name of a segment or a cleaned file. */
bool segment_parse_name(const char *name, struct block_id *id, bool *clean);

#endif
