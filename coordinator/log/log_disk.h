/*
 * log_disk.h - the log of one worker on disk: group commit without linger, in segments that are made in advance.
 *
 * Life: log_disk_new; log_disk_begin once recovery is through; then appends and polls; log_free, which lets everything that was appended
 * reach the disk first.
 */
#ifndef MUSTER_LOG_DISK_LOG_H
#define MUSTER_LOG_DISK_LOG_H

#include "coordinator/log/cleaner.h"
#include "coordinator/log/disk.h"
#include "coordinator/log/log.h"
#include "coordinator/log/recover.h"

/* What "durable" means to those who wait. In the order of the setting log.flush.mode. */
enum log_flush {
	LOG_FLUSH_DURABLE, /* a power cut cannot take it */
	LOG_FLUSH_WRITTEN, /* the kernel has it: a killed program cannot lose it, a power cut can */
};

struct log_disk_config {
	struct disk *disk; /* outlives the log */
	uint32_t worker;
	unsigned int workers; /* that have logs in this folder; 0 counts as 1 */
	unsigned int shards;
	uint64_t segment_bytes; /* rounded up to FORMAT_ALIGN; a batch is never longer than a segment holds */
	uint64_t total_bytes;	/* of all files on the disk, those of earlier starts included */
	uint64_t reserve_bytes; /* of the last segment that could be made: kept for tombstones; less than a segment */
	enum log_flush flush;
	unsigned int dirty_percent; /* cleaner.h; 0: nothing is ever cleaned */
	int64_t retention_ms;	    /* grace time of tombstones */
	uint64_t random; /* salts are made of it */
	void (*say)(void *arg, const char *line); /* never waits */
	void *say_arg;
};

/* NULL: no memory. */
struct log *log_disk_new(const struct log_disk_config *cfg);
/* Makes the first segment; blocking. `rc` has run; its shards and files are taken over. False: one line in err. */
bool log_disk_begin(struct log *log, struct recover *rc, char *err, size_t err_len);

/* For tests and status. */
struct log_disk_status {
	uint64_t bytes;	  /* of all segments on the disk */
	uint64_t flushes; /* completed */
	uint64_t refused; /* appends refused for lack of room */
	bool full;	  /* the last append was */
	bool failed;	  /* a write failed: nothing is acknowledged any more */
	uint64_t files;
	struct cleaner_counts cleaned;
};
void log_disk_status(struct log *log, struct log_disk_status *out);

#endif
