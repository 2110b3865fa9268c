/*
 * file.h - whole files of the log's folder, at the start and at the end only: every call waits for the disk.
 */
#ifndef MUSTER_LOG_FILE_H
#define MUSTER_LOG_FILE_H

#include "coordinator/log/disk.h"

/* A file that is being read, so that the reading of one goes on while another one is looked at. */
struct file_read {
	struct disk_op op;
	int file;
	uint8_t *p; /* aligned, from posix_memalign; the caller's after file_read_end */
	size_t len;
};

/* Opens and submits the read. Returns 0 or a negative errno, and then there is nothing to end. */
int64_t file_read_begin(struct disk *disk, const char *name, struct file_read *r);
/* Waits. Returns 0; the file stays open as r->file. Or a negative errno; nothing is held then. */
int64_t file_read_end(struct disk *disk, struct file_read *r);
/* Both. */
int64_t file_read(struct disk *disk, const char *name, struct file_read *r);

/* Gives back what was read, and closes. */
void file_read_drop(struct disk *disk, struct file_read *r);

/* One durable write. 0 or a negative errno. */
int64_t file_write(struct disk *disk, int file, uint64_t at, uint8_t *p, size_t len);
/* A new file of `len` bytes, of which the first `used` are `p`; it has its name when it is durable. Multiples of FORMAT_ALIGN. */
int64_t file_make(struct disk *disk, const char *name, uint8_t *p, size_t used, size_t len);
int64_t file_rename(struct disk *disk, const char *name, const char *to);
int64_t file_remove(struct disk *disk, const char *name);
int64_t file_close(struct disk *disk, int file);

/* One line in err; false. */
bool file_failed(char *err, size_t err_len, const char *name, int64_t result);

#endif
