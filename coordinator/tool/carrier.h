/*
 * carrier.h - writes a new log folder from batches that exist already, in sealed segments (log/format.h).
 *
 * The folder must be new or empty. The meta file comes last: until then no server takes the folder for a log, so an import that was cut off
 * can be seen, removed and repeated.
 */
#ifndef MUSTER_TOOL_CARRIER_H
#define MUSTER_TOOL_CARRIER_H

#include "coordinator/log/segment.h"

struct carrier {
	int folder;
	const char *path;
	struct block_id id; /* of the segment that is written */
	uint64_t segment_bytes;
	uint64_t salt;
	int fd;
	char name[FORMAT_NAME_MAX];
	uint64_t at, sequence; /* of the next block */
	uint8_t *block;	       /* of batches: head, payload */
	size_t cap, len;       /* len: of the payload */
	uint64_t bytes;	       /* of all segments that are ended */
	uint8_t small[FORMAT_ALIGN]; /* any other block */
	char err[300];
};

struct carrier_config {
	const char *path; /* must stay */
	uint32_t shards;
	uint64_t segment_bytes;
	uint8_t random[24]; /* the log's id and the salts */
};

/* False: c->err, and nothing is held. */
bool carrier_open(struct carrier *c, const struct carrier_config *cfg);
/* One batch of a shard, with offsets behind those before. Copies. False: c->err. */
bool carrier_batch(struct carrier *c, uint32_t shard, struct bytes batch);
/* How long all segments will be, so far. */
uint64_t carrier_bytes(const struct carrier *c);
/* Everything is on the disk, durable, and is a log. False: c->err. */
bool carrier_finish(struct carrier *c);
void carrier_close(struct carrier *c);

#endif
