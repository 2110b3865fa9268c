/*
 * export.c - muster log export: shards as folders of a Kafka broker's __consumer_offsets.
 *
 *   DIR/__consumer_offsets-7/00000000000000000000.log   the shard's batches
 *                           /leader-epoch-checkpoint
 *
 * A folder may be that of a fresh broker which has made the topic and was stopped: then its empty segment and indexes are replaced, and its
 * partition.metadata, which names the topic's id in that cluster, stays. The broker makes indexes and snapshots anew.
 *
 * Batches keep offsets, timestamps and bytes. The leader epoch becomes 0: ours counts the starts of this server, and means nothing in another
 * cluster, where a topic that was just made has epoch 0 and a higher one would look like a later leader's. Nobody checksums it.
 *
 * Groups whose members stand in records of their own become one record each, behind the shard's last one (export_parts.h).
 *
 * Batches of undecided transactions are left out: whoever could decide them is not in that cluster, and there they would be in the way for ever.
 *
 * One walk over the log serves EXPORT_FILES shards.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "coordinator/tool/export_parts.h"
#include "coordinator/tool/folder.h"
#include "coordinator/tool/kafka_log.h"
#include "coordinator/tool/rebatch.h"
#include "coordinator/tool/tool.h"

#define EXPORT_FILES 256
#define KAFKA_SEGMENT_MAX ((uint64_t)1 << 30)
#define AT_EPOCH 12
#define PATH_BYTES 4096

struct partition {
	uint32_t shard;
	int folder;
	FILE *out;	/* the segment; NULL: none yet */
	int64_t base;	/* its first offset */
	int64_t next;	/* offset behind the last batch */
	uint64_t bytes; /* of the segment */
	int64_t timestamp_ms; /* of the last record */
	struct export_parts parts;
};

struct export {
	const struct tool_options *o;
	const struct folder *log;
	const char *dir;
	struct partition partitions[EXPORT_FILES];
	struct inflate_buffer filtered;
	uint32_t first, len; /* shards first to first + len - 1 */
	uint64_t batches, records, bytes, damages, undecided, from_parts;
	bool failed;
};

static PRINTF_LIKE(1, 2) bool complain(const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	fputs("muster: ", stderr);
	vfprintf(stderr, format, ap);
	fputc('\n', stderr);
	va_end(ap);
	return false;
}

/* ---- folders ---- */

static bool has_tail(const char *name, const char *tail)
{
	size_t len = strlen(name), n = strlen(tail);
	return len >= n && strcmp(name + len - n, tail) == 0;
}

/* What a broker makes anew from the segments, and an empty segment. */
static bool replaceable(int folder, const char *name)
{
	static const char *const tails[] = {".index", ".timeindex", ".txnindex", ".snapshot", "leader-epoch-checkpoint"};
	struct stat st;
	if (has_tail(name, ".log"))
		return fstatat(folder, name, &st, 0) == 0 && st.st_size == 0;
	for (size_t i = 0; i < ARRAY_LEN(tails); i++)
		if (has_tail(name, tails[i]))
			return true;
	return false;
}

/* Two passes, so that nothing is removed where something is in the way. */
static bool clear(const char *path, int folder, bool remove)
{
	int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	bool ok = dir != NULL || complain("%s: %s", path, strerror(errno));
	for (struct dirent *e; ok && (e = readdir(dir)) != NULL;) {
		const char *name = e->d_name;
		if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strcmp(name, "partition.metadata") == 0)
			continue;
		if (!replaceable(folder, name))
			ok = complain("%s/%s: is in the way; export writes into a new folder, or into one of a broker that has just made the topic and is stopped",
				      path, name);
		else if (remove && unlinkat(folder, name, 0) != 0)
			ok = complain("%s/%s: %s", path, name, strerror(errno));
	}
	if (dir != NULL)
		closedir(dir);
	return ok;
}

static bool partition_folder(const struct export *ex, struct partition *p)
{
	char path[PATH_BYTES];
	snprintf(path, sizeof(path), "%s/%s%" PRIu32, ex->dir, KAFKA_OFFSETS, p->shard);
	if (mkdir(path, 0755) != 0 && errno != EEXIST)
		return complain("%s: %s", path, strerror(errno));
	p->folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (p->folder < 0)
		return complain("%s: %s", path, strerror(errno));
	return clear(path, p->folder, false) && clear(path, p->folder, true);
}

/* A broker whose topic has more partitions than the log has shards would look for groups elsewhere. */
static bool check_target(const struct export *ex)
{
	DIR *dir = opendir(ex->dir);
	bool ok = true;
	for (struct dirent *e; dir != NULL && ok && (e = readdir(dir)) != NULL;)
		if (kafka_partition_of(e->d_name) >= (int64_t)ex->log->shards)
			ok = complain("%s/%s: the broker's topic has more partitions than this log, which has %" PRIu32
				      "; make it with offsets.topic.num.partitions=%" PRIu32,
				      ex->dir, e->d_name, ex->log->shards, ex->log->shards);
	if (dir != NULL)
		closedir(dir);
	return ok;
}

/* ---- files ---- */

static FILE *create(const struct partition *p, const char *name)
{
	int fd = openat(p->folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
	if (out == NULL)
		complain("%s%" PRIu32 "/%s: %s", KAFKA_OFFSETS, p->shard, name, strerror(errno));
	return out;
}

/* True: everything written is on the disk. */
static bool finish(FILE *out)
{
	bool ok = fflush(out) == 0 && fsync(fileno(out)) == 0;
	return (fclose(out) == 0 && ok) || complain("writing failed: %s", strerror(errno));
}

static bool end_segment(struct partition *p)
{
	FILE *out = p->out;
	p->out = NULL;
	return out == NULL || finish(out);
}

static bool begin_segment(struct partition *p, int64_t base)
{
	char name[64];
	snprintf(name, sizeof(name), "%0*" PRId64 ".log", KAFKA_NAME_DIGITS, base);
	p->base = base;
	p->bytes = 0;
	p->out = create(p, name);
	return p->out != NULL;
}

static bool write_checkpoint(const struct partition *p)
{
	FILE *out = create(p, "leader-epoch-checkpoint");
	if (out == NULL)
		return false;
	if (p->next > 0)
		fputs("0\n1\n0 0\n", out);
	else
		fputs("0\n0\n", out);
	return finish(out);
}

static void write_epoch_free(FILE *out, struct bytes batch)
{
	static const uint8_t epoch[4] = {0};
	fwrite(batch.p, 1, AT_EPOCH, out);
	fwrite(epoch, 1, sizeof(epoch), out);
	fwrite(batch.p + AT_EPOCH + sizeof(epoch), 1, (size_t)batch.len - AT_EPOCH - sizeof(epoch), out);
}

/* ---- the walk ---- */

static void export_fault(void *arg, const struct place *place, enum fault fault, const char *what)
{
	struct export *ex = arg;
	ex->damages += fault == FAULT_DAMAGE;
	complain("%s: %s, block %" PRIu64 " at byte %zu: %s", fault == FAULT_DAMAGE ? "DAMAGED" : "note", place->file, place->block, place->at, what);
}

/* True: it stands in the segment, or nothing is to be written. */
static bool write_batch(struct export *ex, struct partition *p, int64_t base, int64_t last, struct bytes bytes)
{
	if ((last - p->base > INT32_MAX || p->bytes + (uint64_t)bytes.len > KAFKA_SEGMENT_MAX) && (!end_segment(p) || !begin_segment(p, base)))
		return false;
	write_epoch_free(p->out, bytes);
	p->next = last + 1;
	p->bytes += (uint64_t)bytes.len;
	ex->batches++;
	ex->bytes += (uint64_t)bytes.len;
	return true;
}

static bool keep(void *arg, const struct batch_record *record)
{
	struct partition *p = arg;
	p->timestamp_ms = record->timestamp_ms;
	return export_parts_keep(&p->parts, record);
}

static bool export_batch(void *arg, const struct place *place, uint32_t shard, struct bytes bytes)
{
	struct export *ex = arg;
	struct batch batch;
	uint32_t kept;
	if (shard < ex->first || shard - ex->first >= ex->len)
		return true;
	struct partition *p = &ex->partitions[shard - ex->first];
	if (!batch_open(&batch, bytes) || batch.base_offset < p->next) {
		export_fault(ex, place, FAULT_DAMAGE, "a batch cannot be read, or stands there twice; it is left out");
		return true;
	}
	if ((batch.attributes & BATCH_TRANSACTIONAL) != 0) {
		ex->undecided++;
		return true;
	}
	if (!rebatch_filter(&ex->filtered, bytes, keep, p, &kept)) {
		export_fault(ex, place, FAULT_DAMAGE, "the records of a batch cannot be read; it is left out");
		return true;
	}
	ex->records += kept;
	if (kept == 0 && batch.records > 0)
		return true;
	if (kept < batch.records)
		bytes = bytes_of(ex->filtered.p, ex->filtered.len);
	ex->failed = !write_batch(ex, p, batch.base_offset, batch.last_offset, bytes);
	return !ex->failed;
}

/* A group that was in parts, as one record behind the last one. */
struct part_writer {
	struct export *ex;
	struct partition *p;
};

static bool write_group(void *arg, const struct log_entry *entry)
{
	struct part_writer *w = arg;
	size_t size = batch_size(entry, 1);
	uint8_t *bytes = size == SIZE_MAX ? NULL : malloc(size);
	if (bytes == NULL)
		return false;
	batch_write(bytes, size, entry, 1, w->p->next, 0, w->p->timestamp_ms);
	bool ok = write_batch(w->ex, w->p, w->p->next, w->p->next, bytes_of(bytes, size));
	free(bytes);
	w->ex->from_parts++;
	return ok;
}

static bool write_groups(struct export *ex, struct partition *p, struct folder *log)
{
	char err[200];
	struct part_writer w = {ex, p};
	return export_parts_give(&p->parts, log, write_group, &w, err, sizeof(err)) || complain("%s", err);
}

/* Shards ex->first and so on. */
static bool export_some(struct export *ex, struct folder *log)
{
	struct visitor v = {export_batch, export_fault, ex};
	bool ok = true;
	for (uint32_t i = 0; i < ex->len; i++)
		ex->partitions[i] = (struct partition){.shard = ex->first + i, .folder = -1, .parts = {.shard = ex->first + i}};
	for (uint32_t i = 0; ok && i < ex->len; i++)
		ok = partition_folder(ex, &ex->partitions[i]) && begin_segment(&ex->partitions[i], 0);
	if (ok)
		folder_walk(log, &v);
	for (uint32_t i = 0; i < ex->len; i++) {
		struct partition *p = &ex->partitions[i];
		ok = ok && !ex->failed && write_groups(ex, p, log);
		ok = end_segment(p) && ok && write_checkpoint(p);
		export_parts_fini(&p->parts);
		if (p->folder >= 0)
			close(p->folder);
	}
	return ok;
}

static void report(const struct export *ex, uint32_t shards)
{
	printf("muster: exported %" PRIu32 " shards into %s: %" PRIu64 " batches, %" PRIu64 " records, %" PRIu64 " bytes\n", shards, ex->dir, ex->batches,
	       ex->records, ex->bytes);
	if (ex->from_parts > 0)
		printf("muster: %" PRIu64 " groups whose members stand in records of their own became one record each\n", ex->from_parts);
	if (ex->undecided > 0)
		printf("muster: %" PRIu64 " batches of undecided transactions were left out\n", ex->undecided);
}

int tool_export(const struct tool_options *o, struct folder *log)
{
	if (o->dirs_len != 1 || (o->shard < 0) == !o->all) {
		complain("muster log export takes either --shard N or --all, and one folder to write into");
		return TOOL_CANNOT;
	}
	struct export *ex = calloc(1, sizeof(*ex));
	if (ex == NULL) {
		complain("no memory");
		return TOOL_CANNOT;
	}
	*ex = (struct export){.o = o, .log = log, .dir = o->dirs[0]};
	bool ok = (mkdir(ex->dir, 0755) == 0 || errno == EEXIST || complain("%s: %s", ex->dir, strerror(errno))) && check_target(ex);
	uint32_t from = o->all ? 0 : (uint32_t)o->shard, to = o->all ? log->shards : from + 1;
	for (ex->first = from; ok && ex->first < to; ex->first += ex->len) {
		ex->len = to - ex->first < EXPORT_FILES ? to - ex->first : EXPORT_FILES;
		ok = export_some(ex, log);
	}
	if (ok)
		report(ex, to - from);
	ok = ok && ex->damages == 0;
	free(ex->filtered.p);
	free(ex);
	return ok ? TOOL_GOOD : TOOL_BAD;
}
