/*
 * folder.h - the folder of a stopped server's log, opened for reading: which segments and cleaned files count, and every batch in them
 * that does.
 *
 * Nothing in the folder is changed. It is locked as long as it is open: many may read, no server may run. Memory: one segment. Nothing in a
 * file can stop the walk or lead it astray; what is not good is told as a fault, and the walk goes on behind it.
 */
#ifndef MUSTER_TOOL_FOLDER_H
#define MUSTER_TOOL_FOLDER_H

#include "coordinator/log/covers.h"
#include "coordinator/log/segment.h"

struct folder_segment {
	char name[FORMAT_NAME_MAX];
	struct block_id id; /* from the name */
	struct cover cover;
};

struct folder {
	int fd;
	const char *path;
	uint8_t log[16]; /* from the meta file */
	uint32_t shards;
	struct folder_segment *segments; /* in the order in which their records count */
	size_t len;
	uint64_t last_start; /* the largest of all names */
	uint8_t *buf; /* the segment that is being walked */
	size_t cap;
};

/* Where something stands. */
struct place {
	const char *file;
	uint64_t block; /* sequence number */
	size_t at;	/* byte of the block */
};

enum fault {
	FAULT_NOTE,   /* nothing is lost: a write that was cut off before anybody was told that it is durable */
	FAULT_DAMAGE, /* something that was durable cannot be read */
};

struct visitor {
	/* One batch; its bytes are not checked yet. False: the walk ends here. */
	bool (*batch)(void *arg, const struct place *place, uint32_t shard, struct bytes batch);
	void (*fault)(void *arg, const struct place *place, enum fault fault, const char *what);
	void *arg;
	/* counted by the walk */
	uint64_t segments, blocks, bytes;
};

/* False: one line in err, nothing is held. `path` must stay. */
bool folder_open(struct folder *f, const char *path, char *err, size_t err_len);
void folder_close(struct folder *f);
void folder_walk(struct folder *f, struct visitor *v);

#endif
