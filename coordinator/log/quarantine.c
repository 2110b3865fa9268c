/*
 * quarantine.c - see quarantine.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "coordinator/log/quarantine.h"

#define PATH_LEN 400

struct quarantine {
	const char *folder;
	unsigned int shards;
	int *files; /* -1: nothing was set aside */
};

struct quarantine *quarantine_new(const char *folder, unsigned int shards)
{
	struct quarantine *q = calloc(1, sizeof(*q));
	if (q == NULL)
		return NULL;
	*q = (struct quarantine){folder, shards, malloc(shards * sizeof(*q->files))};
	if (q->files == NULL) {
		free(q);
		return NULL;
	}
	for (unsigned int i = 0; i < shards; i++)
		q->files[i] = -1;
	return q;
}

static bool quarantine_put(int file, const uint8_t *p, size_t len)
{
	while (len > 0) {
		ssize_t n = write(file, p, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		p += n;
		len -= (size_t)n;
	}
	return true;
}

/* A batch of one record, with the offset that it had. */
static bool quarantine_record(int file, const struct batch *batch, const struct batch_record *record)
{
	size_t size = batch_size(&record->entry, 1);
	uint8_t *p = size == SIZE_MAX ? NULL : malloc(size);
	if (p == NULL) {
		errno = ENOMEM;
		return false;
	}
	batch_write(p, size, &record->entry, 1, record->offset, batch->leader_epoch, record->timestamp_ms);
	bool ok = quarantine_put(file, p, size);
	free(p);
	return ok;
}

bool quarantine_add(struct quarantine *q, unsigned int shard, const struct batch *batch, const struct batch_record *record, struct bytes whole)
{
	int *file = &q->files[shard];
	char path[PATH_LEN];
	if (*file < 0) {
		snprintf(path, sizeof(path), "%s/quarantine-%u.log", q->folder, shard);
		*file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
	}
	if (*file < 0)
		return false;
	return record != NULL ? quarantine_record(*file, batch, record) : quarantine_put(*file, whole.p, (size_t)whole.len);
}

void quarantine_free(struct quarantine *q)
{
	for (unsigned int i = 0; i < q->shards; i++) {
		if (q->files[i] < 0)
			continue;
		fsync(q->files[i]); /* if that fails, the records still stand in the log */
		close(q->files[i]);
	}
	free(q->files);
	free(q);
}
