/*
 * files.h - which files a log has, in reading order, and where in them the batches of each shard stand.
 *
 * The index is sparse: a place for the first batch of a shard in a file, then one whenever its next batch stands FILES_STEP bytes further on. From
 * a place on, reading goes block by block. The bounds of each shard in each file say which file to look into.
 *
 * Invariants:
 *  1. Files are in the order of the first segment that they cover. Per shard, what a file holds lies behind what those before it hold.
 *  2. A file holds a shard if bounds->first <= bounds->last. `end` never falls from file to file where it is not 0.
 */
#ifndef MUSTER_LOG_FILES_H
#define MUSTER_LOG_FILES_H

#include <stdatomic.h>

#include "coordinator/log/block.h"
#include "coordinator/log/log.h"

#define FILES_STEP (256u * 1024)

struct file_bounds {
	int64_t first, last; /* base offset of the first batch, last offset of the last one */
	int64_t end;	     /* behind the last record that stood here before cleaning; 0: none */
	uint32_t block;	     /* of the last place, in units of FORMAT_ALIGN */
};

struct file_place {
	int64_t offset;
	uint32_t shard;
	uint32_t block;
};

/* What the logs of several workers share of a file of an earlier start: who has taken over the last shard of it removes it. */
struct file_shared {
	atomic_uint refs;
	atomic_uint left; /* shards that it still holds something of */
	atomic_bool removed; /* somebody has set about it: one that left nothing for others to take over is released by all of them */
};

struct log_file {
	char name[FORMAT_NAME_MAX];
	struct block_cover cover;
	uint64_t salt;
	uint64_t bytes; /* that it takes on the disk */
	uint64_t end;	/* what is behind is not to be read: durable blocks end here, or END stands here */
	uint64_t charge; /* of `bytes`, what this log has to answer for */
	bool clean;	/* a cleaned file */
	bool old;	/* of an earlier start */
	bool joined;	/* may only be cleaned together with the one before */
	uint8_t *hidden; /* malloc; one byte for each shard of which nothing in it counts; NULL: all count */
	struct file_shared *shared; /* NULL: nobody else has it */
	bool open;	/* still written to */
	bool broken;	/* a block of it cannot be read: it is left alone */
	struct file_bounds *bounds; /* by shard */
	struct file_place *places; /* in the order of the file */
	size_t places_len, places_cap;
};

struct log_files {
	struct log_file **list;
	size_t len, cap;
	unsigned int shards;
};

/* NULL: no memory. */
struct log_file *file_new(unsigned int shards);
void file_free(struct log_file *f);
/* Notes a batch of the file, in their order. False: no memory; the batch is found all the same, through an earlier place. */
bool file_note(struct log_file *f, unsigned int shard, int64_t first, int64_t last, uint64_t at);
/* Where to start reading for the batch of the shard that holds `offset` or is the first one behind it. The file holds such a batch. */
uint64_t file_find(const struct log_file *f, unsigned int shard, int64_t offset);

/* Room for one more file than are there: the next files_add cannot fail. False: no memory. */
bool files_reserve(struct log_files *files);
/* Takes the file over, at the end or, when its cover says so, before. False: no memory, nothing was taken. */
bool files_add(struct log_files *files, struct log_file *f);
/* `by` takes the place of `n` files from `at` on, whose pointers are the caller's afterwards. NULL: nothing does. */
void files_replace(struct log_files *files, size_t at, size_t n, struct log_file *by);
/* The first file with a batch of the shard at or behind `offset`, NULL: none. */
struct log_file *files_find(const struct log_files *files, unsigned int shard, int64_t offset);
/*
 * Marks the files of earlier starts, of which each of `workers` logs answers for its part, and joins those that have to be cleaned together: rows that
 * overlap, which several workers leave behind, and with several workers whole groups of about `group_bytes`. All logs join them in the same way, so
 * that the rows that they will clean are the same.
 */
void files_join(struct log_files *files, unsigned int workers, uint64_t group_bytes);
/* Of how many shards that `owns` tells the file holds something. With 0 another log may remove it at any time. */
unsigned int file_owned(const struct log_file *f, unsigned int shards, bool (*owns)(void *arg, unsigned int shard), void *arg);
/* This log needs the file no more; it owns the shards that `owns` tells. True: nobody does, the file is to be removed. */
bool file_release(struct log_file *f, unsigned int shards, bool (*owns)(void *arg, unsigned int shard), void *arg);

/* A copy of its own; both share what is behind. False: no memory, *to is empty. */
bool files_copy(struct log_files *to, const struct log_files *from);
void files_fini(struct log_files *files);

#endif
