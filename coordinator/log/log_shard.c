/*
 * log_shard.c - see log_shard.h.
 */
#include <stdlib.h>
#include <string.h>

#include "coordinator/log/log_shard.h"

void log_shard_note_epoch(struct log_shard *s, int32_t epoch, int64_t offset)
{
	if (s->epochs_len > 0 && s->epochs[s->epochs_len - 1].epoch >= epoch)
		return;
	if (s->epochs == NULL)
		s->epochs = malloc(LOG_EPOCHS_MAX * sizeof(*s->epochs));
	if (s->epochs == NULL)
		return;
	if (s->epochs_len == LOG_EPOCHS_MAX)
		memmove(s->epochs, s->epochs + 1, --s->epochs_len * sizeof(*s->epochs));
	s->epochs[s->epochs_len++] = (struct log_epoch){epoch, offset};
}

struct log_shard *log_shards_new(unsigned int n)
{
	struct log_shard *shards = calloc(n, sizeof(*shards));
	for (unsigned int i = 0; shards != NULL && i < n; i++)
		shards[i].epoch = -1;
	return shards;
}

struct log_shard *log_shards_copy(const struct log_shard *from, unsigned int n)
{
	struct log_shard *shards = log_shards_new(n);
	for (unsigned int i = 0; shards != NULL && i < n; i++) {
		shards[i] = from[i];
		shards[i].epochs = from[i].epochs == NULL ? NULL : malloc(LOG_EPOCHS_MAX * sizeof(*from->epochs));
		if (shards[i].epochs != NULL)
			memcpy(shards[i].epochs, from[i].epochs, from[i].epochs_len * sizeof(*from->epochs));
		else
			shards[i].epochs_len = 0; /* no memory: the history begins anew */
	}
	return shards;
}

void log_shards_free(struct log_shard *shards, unsigned int n)
{
	for (unsigned int i = 0; shards != NULL && i < n; i++)
		free(shards[i].epochs);
	free(shards);
}
