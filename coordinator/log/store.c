/*
 * store.c - see store.h.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "muster/check.h"

#include "coordinator/log/quarantine.h"
#include "coordinator/log/store.h"

#define LINE_MAX 300

struct store_log {
	struct disk *disk;
	struct log *log;
};

struct store {
	struct store_config cfg;
	struct store_log *logs; /* cfg.workers; recovery goes through the first one's disk */
	struct recover rc;
	struct quarantine *quarantine;
	struct store_reader reader;
};

/* ---- what recovery calls ---- */

static void store_say(void *arg, const char *line)
{
	struct store *s = arg;
	s->cfg.say(s->cfg.say_arg, line);
}

static bool store_record(void *arg, unsigned int shard, const struct log_entry *entry)
{
	struct store *s = arg;
	return s->reader.record(s->reader.arg, shard, entry);
}

static void store_drain(void *arg)
{
	struct store *s = arg;
	s->reader.drain(s->reader.arg);
}

static void store_aside(void *arg, unsigned int shard, const struct batch *batch, const struct batch_record *record, struct bytes bytes)
{
	struct store *s = arg;
	char line[LINE_MAX];
	if (quarantine_add(s->quarantine, shard, batch, record, bytes))
		snprintf(line, sizeof(line), "log: kept in quarantine-%u.log", shard);
	else
		snprintf(line, sizeof(line), "log: NOT kept in quarantine-%u.log: %s", shard, strerror(errno));
	store_say(s, line);
}

/* ---- begin ---- */

static struct log *store_make_log(struct store *s, unsigned int worker)
{
	struct log_disk_config cfg = {
		.disk = s->logs[worker].disk,
		.worker = worker,
		.workers = s->cfg.workers,
		.shards = s->cfg.shards,
		.segment_bytes = s->cfg.segment_bytes,
		.total_bytes = s->cfg.total_bytes / s->cfg.workers,
		.flush = s->cfg.flush,
		.dirty_percent = s->cfg.dirty_percent,
		.retention_ms = s->cfg.retention_ms,
		.reserve_bytes = s->cfg.reserve_bytes,
		.say = store_say,
		.say_arg = s,
	};
	memcpy(&cfg.random, s->cfg.random + 16, sizeof(cfg.random));
	return log_disk_new(&cfg);
}

static bool store_make_logs(struct store *s, char *err, size_t err_len)
{
	for (unsigned int w = 0; w < s->cfg.workers; w++) {
		if (w > 0)
			s->logs[w].disk = disk_more(s->logs[0].disk, err, err_len);
		if (s->logs[w].disk == NULL)
			return false;
		s->logs[w].log = store_make_log(s, w);
		if (s->logs[w].log == NULL) {
			snprintf(err, err_len, "log: no memory");
			return false;
		}
	}
	return true;
}

static bool store_open(struct store *s, char *err, size_t err_len)
{
	s->logs = calloc(s->cfg.workers, sizeof(*s->logs));
	s->quarantine = quarantine_new(s->cfg.folder, s->cfg.shards);
	if (s->logs == NULL || s->quarantine == NULL)
		return false;
	bool cached = s->cfg.flush == LOG_FLUSH_WRITTEN;
	s->logs[0].disk = (s->cfg.uring ? disk_new : disk_posix_new)(s->cfg.folder, cached, err, err_len);
	s->rc = (struct recover){
		.disk = s->logs[0].disk,
		.shards = s->cfg.shards,
		.skip_damaged = s->cfg.skip_damaged,
		.keep_bytes = s->cfg.keep_bytes,
		.say = store_say,
		.record = store_record,
		.aside = store_aside,
		.drain = store_drain,
		.arg = s,
	};
	return s->rc.disk != NULL && recover_init(&s->rc, s->cfg.random, err, err_len) && store_make_logs(s, err, err_len);
}

struct store *store_new(const struct store_config *cfg, char *err, size_t err_len)
{
	struct store *s = calloc(1, sizeof(*s));
	CHECK(cfg->workers > 0);
	snprintf(err, err_len, "log: no memory");
	if (s == NULL)
		return NULL;
	s->cfg = *cfg;
	if (store_open(s, err, err_len))
		return s;
	store_free(s);
	return NULL;
}

struct log *store_log(struct store *s, unsigned int worker)
{
	CHECK(worker < s->cfg.workers);
	return s->logs[worker].log;
}

void store_set_wake(struct store *s, unsigned int worker, int eventfd)
{
	CHECK(worker < s->cfg.workers);
	disk_set_wake(s->logs[worker].disk, eventfd);
}

/* ---- loading ---- */

bool store_scan(struct store *s, const struct store_reader *reader, char *err, size_t err_len)
{
	s->reader = *reader;
	return recover_scan(&s->rc, err, err_len);
}

/* Every log knows all files and all shards; `bytes` is its share of what they take. */
static bool store_begin_copy(struct store *s, unsigned int worker, uint64_t bytes, char *err, size_t err_len)
{
	struct recover rc = s->rc;
	rc.bytes = bytes;
	rc.state = log_shards_copy(s->rc.state, s->cfg.shards);
	bool ok = files_copy(&rc.files, &s->rc.files) && rc.state != NULL;
	snprintf(err, err_len, "log: no memory");
	ok = ok && log_disk_begin(s->logs[worker].log, &rc, err, err_len);
	log_shards_free(rc.state, s->cfg.shards);
	files_fini(&rc.files);
	return ok;
}

bool store_begin(struct store *s, char *err, size_t err_len)
{
	uint64_t bytes = s->rc.bytes / s->cfg.workers;
	for (unsigned int w = 1; w < s->cfg.workers; w++)
		if (!store_begin_copy(s, w, bytes, err, err_len))
			return false;
	s->rc.bytes -= bytes * (s->cfg.workers - 1);
	return log_disk_begin(s->logs[0].log, &s->rc, err, err_len);
}

void store_shard(struct store *s, unsigned int shard)
{
	recover_shard(&s->rc, shard);
}

void store_loaded(struct store *s)
{
	recover_forget(&s->rc);
}

void store_stop(struct store *s)
{
	atomic_store(&s->rc.stop, true);
}

void store_order(const struct store *s, unsigned int *out)
{
	backlog_order(&s->rc.backlog, out);
}

bool store_load(struct store *s, bool (*record)(void *arg, unsigned int shard, const struct log_entry *entry), void *arg, char *err,
		size_t err_len)
{
	struct store_reader reader = {record, NULL, arg};
	s->rc.keep_bytes = 0;
	if (!store_scan(s, &reader, err, err_len) || !store_begin(s, err, err_len))
		return false;
	for (unsigned int i = 0; i < s->cfg.shards; i++)
		store_shard(s, i);
	store_loaded(s);
	return true;
}

/* ---- telling ---- */

void store_describe(const struct store *s, char *out, size_t len)
{
	snprintf(out, len, "%s in %s (%s)",
		 s->cfg.flush == LOG_FLUSH_DURABLE ? "durable" : "WRITTEN, NOT FLUSHED: a power cut loses what was acknowledged last;",
		 s->cfg.folder, s->logs[0].disk->ops->name);
}

void store_describe_load(const struct store *s, char *out, size_t len)
{
	snprintf(out, len, "start %" PRIu64 ", %" PRIu64 " records read from %" PRIu64 " segments, %" PRIu64 " set aside, %" PRIu64 " blocks lost",
		 s->rc.start, recover_records(&s->rc), s->rc.segments, recover_set_aside(&s->rc), s->rc.lost_blocks);
}

/* ---- end ---- */

void store_free(struct store *s)
{
	for (unsigned int w = 0; s->logs != NULL && w < s->cfg.workers; w++)
		if (s->logs[w].log != NULL)
			log_free(s->logs[w].log);
	recover_fini(&s->rc);
	for (unsigned int w = s->cfg.workers; s->logs != NULL && w-- > 0;)
		if (s->logs[w].disk != NULL)
			disk_free(s->logs[w].disk);
	if (s->quarantine != NULL)
		quarantine_free(s->quarantine);
	free(s->logs);
	free(s);
}
