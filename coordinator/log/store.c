/*
 * store.c - see store.h.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/log/store.h"

struct store {
	struct store_config cfg;
	struct disk *disk;
	struct recover rc;
	struct log *log;
	bool (*record)(void *arg, unsigned int shard, const struct log_entry *entry);
	void *record_arg;
};

static void store_say(void *arg, const char *line)
{
	struct store *s = arg;
	s->cfg.say(s->cfg.say_arg, line);
}

static bool store_record(void *arg, unsigned int shard, const struct log_entry *entry)
{
	struct store *s = arg;
	return s->record(s->record_arg, shard, entry);
}

static struct log *store_make_log(struct store *s)
{
	struct log_disk_config cfg = {
		.disk = s->disk,
		.shards = s->cfg.shards,
		.segment_bytes = s->cfg.segment_bytes,
		.total_bytes = s->cfg.total_bytes,
		.flush = s->cfg.flush,
		.say = store_say,
		.say_arg = s,
	};
	memcpy(&cfg.random, s->cfg.random + 16, sizeof(cfg.random));
	return log_disk_new(&cfg);
}

struct store *store_new(const struct store_config *cfg, char *err, size_t err_len)
{
	struct store *s = calloc(1, sizeof(*s));
	snprintf(err, err_len, "log: no memory");
	if (s == NULL)
		return NULL;
	s->cfg = *cfg;
	s->disk = (cfg->uring ? disk_new : disk_posix_new)(cfg->folder, cfg->flush == LOG_FLUSH_WRITTEN, err, err_len);
	s->rc = (struct recover){
		.disk = s->disk, .shards = cfg->shards, .skip_damaged = cfg->skip_damaged, .say = store_say, .record = store_record, .arg = s};
	if (s->disk != NULL && recover_init(&s->rc, cfg->random, err, err_len))
		s->log = store_make_log(s);
	if (s->log == NULL) {
		store_free(s);
		return NULL;
	}
	return s;
}

struct log *store_log(struct store *s)
{
	return s->log;
}

bool store_load(struct store *s, bool (*record)(void *arg, unsigned int shard, const struct log_entry *entry), void *arg, char *err,
		size_t err_len)
{
	s->record = record;
	s->record_arg = arg;
	return recover_run(&s->rc, err, err_len) && log_disk_begin(s->log, &s->rc, err, err_len);
}

void store_describe(const struct store *s, char *out, size_t len)
{
	snprintf(out, len, "%s in %s (%s), start %" PRIu64 ", %" PRIu64 " records read from %" PRIu64 " segments, %" PRIu64 " set aside, %" PRIu64 " blocks lost",
		 s->cfg.flush == LOG_FLUSH_DURABLE ? "durable" : "WRITTEN, NOT FLUSHED: a power cut loses what was acknowledged last;",
		 s->cfg.folder, s->disk->ops->name, s->rc.start, s->rc.records, s->rc.segments, s->rc.set_aside, s->rc.lost_blocks);
}

void store_free(struct store *s)
{
	if (s->log != NULL)
		log_free(s->log);
	recover_fini(&s->rc);
	if (s->disk != NULL)
		disk_free(s->disk);
	free(s);
}
