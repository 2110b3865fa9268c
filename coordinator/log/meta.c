/*
 * meta.c - see meta.h; the format stands in format.h.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "coordinator/log/block.h"
#include "coordinator/log/file.h"
#include "coordinator/log/meta.h"

static bool meta_check(const struct file_read *r, unsigned int shards, uint8_t log[16], char *err, size_t err_len)
{
	struct block b;
	struct block_id id;
	if (!block_open(&b, r->p, r->len) || b.type != BLOCK_META || !block_id_read(&id, bytes_of(r->p + BLOCK_HEAD, b.length))) {
		snprintf(err, err_len, "log: %s is damaged or of another version", FORMAT_META);
		return false;
	}
	if (id.shards != shards) {
		snprintf(err, err_len,
			 "log: it was made for %" PRIu32 " shards, offsets.topic.num.partitions is %u; allowed: the number it was made for",
			 id.shards, shards);
		return false;
	}
	memcpy(log, id.log, sizeof(id.log));
	return true;
}

bool meta_read(struct disk *disk, unsigned int shards, uint8_t log[16], bool *missing, char *err, size_t err_len)
{
	struct file_read r;
	int64_t result = file_read(disk, FORMAT_META, &r);
	*missing = result == -ENOENT;
	if (result < 0)
		return file_failed(err, err_len, FORMAT_META, result);
	bool ok = meta_check(&r, shards, log, err, err_len);
	file_read_drop(disk, &r);
	return ok;
}

bool meta_make(struct disk *disk, unsigned int shards, const uint8_t log[16], char *err, size_t err_len)
{
	struct block_id id = {.shards = shards};
	struct block head = {.type = BLOCK_META, .length = BLOCK_ID_BYTES};
	void *block;
	if (posix_memalign(&block, FORMAT_ALIGN, FORMAT_ALIGN) != 0)
		return file_failed(err, err_len, FORMAT_META, -ENOMEM);
	memcpy(id.log, log, sizeof(id.log));
	block_id_write((uint8_t *)block + BLOCK_HEAD, FORMAT_ALIGN - BLOCK_HEAD, &id);
	block_seal(block, &head);
	int64_t result = file_make(disk, FORMAT_META, block, FORMAT_ALIGN, FORMAT_ALIGN);
	free(block);
	return result >= 0 || file_failed(err, err_len, FORMAT_META, result);
}
