/*
 * folder.c - walks the segments of a log; see folder.h. What an end of a segment means stands in log/format.h.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "coordinator/tool/folder.h"

#define FILE_MAX ((size_t)2 << 30) /* log.segment.bytes is at most half of this */
#define FIRST_BLOCKS (2 * (size_t)FORMAT_ALIGN)

static PRINTF_LIKE(3, 4) bool fail(char *err, size_t len, const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	vsnprintf(err, len, format, ap);
	va_end(ap);
	return false;
}

/* ---- files ---- */

/* At most `max` bytes of a file into f->buf. Returns how many, or a negative errno; -EFBIG when it is no segment of ours by its length. */
static ssize_t read_file(struct folder *f, const char *name, size_t max)
{
	struct stat st;
	int fd = openat(f->fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	ssize_t got = fstat(fd, &st) != 0 ? -errno : !S_ISREG(st.st_mode) ? -EINVAL : (uint64_t)st.st_size > FILE_MAX ? -EFBIG : 0;
	size_t len = got < 0 || (size_t)st.st_size > max ? max : (size_t)st.st_size;
	if (got == 0 && len > f->cap) {
		free(f->buf);
		f->buf = malloc(len);
		f->cap = f->buf == NULL ? 0 : len;
		got = f->buf == NULL ? -ENOMEM : 0;
	}
	while (got >= 0 && (size_t)got < len) {
		ssize_t n = pread(fd, f->buf + got, len - (size_t)got, got);
		if (n < 0 && errno != EINTR)
			got = -errno;
		else if (n == 0)
			break;
		else if (n > 0)
			got += n;
	}
	close(fd);
	return got;
}

static bool read_meta(struct folder *f, char *err, size_t err_len)
{
	struct block b;
	struct block_id id;
	ssize_t len = read_file(f, FORMAT_META, FORMAT_ALIGN);
	if (len == -ENOENT)
		return fail(err, err_len, "%s: this is no log: it holds no file named %s", f->path, FORMAT_META);
	if (len < 0)
		return fail(err, err_len, "%s/%s: %s", f->path, FORMAT_META, strerror((int)-len));
	if (!block_open(&b, f->buf, (size_t)len) || b.type != BLOCK_META || !block_id_read(&id, bytes_of(f->buf + BLOCK_HEAD, b.length)) || id.shards == 0)
		return fail(err, err_len, "%s/%s: it is damaged or of another version of the format", f->path, FORMAT_META);
	memcpy(f->log, id.log, sizeof(f->log));
	f->shards = id.shards;
	return true;
}

static int segment_order(const void *x, const void *y)
{
	return cover_order(&((const struct folder_segment *)x)->cover, &((const struct folder_segment *)y)->cover);
}

static bool add_segment(struct folder *f, const char *name)
{
	struct folder_segment s;
	bool clean;
	if (!segment_parse_name(name, &s.id, &clean))
		return true;
	(clean ? segment_clean_name : segment_name)(s.name, s.id.start, s.id.worker, s.id.number);
	cover_init(&s.cover, &s.id, clean);
	struct folder_segment *grown = realloc(f->segments, (f->len + 1) * sizeof(*grown));
	if (grown == NULL)
		return false;
	f->segments = grown;
	f->segments[f->len++] = s;
	f->last_start = s.id.start > f->last_start ? s.id.start : f->last_start;
	return true;
}

/* Leaves out what no longer counts. A cleaned file that does not say what it stands for stays, and the walk finds it damaged. */
static bool hide_segments(struct folder *f)
{
	struct cover **list = calloc(f->len + 1, sizeof(struct cover *));
	size_t n = 0, kept = 0;
	for (size_t i = 0; list != NULL && i < f->len; i++) {
		struct folder_segment *s = &f->segments[i];
		ssize_t len = s->cover.clean ? read_file(f, s->name, FILE_MAX) : 0;
		if (!s->cover.clean || (len >= 0 && cover_open(&s->cover, f->buf, (size_t)len, f->log, f->shards) == 0))
			list[n++] = &s->cover;
	}
	bool ok = list != NULL && covers_hide(list, n, f->shards);
	free(list);
	for (size_t i = 0; ok && i < f->len; i++) {
		bool known = !f->segments[i].cover.clean || f->segments[i].cover.stands != NULL;
		if (known && cover_gone(&f->segments[i].cover, f->shards))
			cover_fini(&f->segments[i].cover);
		else
			f->segments[kept++] = f->segments[i];
	}
	f->len = ok ? kept : f->len;
	return ok;
}

static bool list_segments(struct folder *f, char *err, size_t err_len)
{
	int fd = openat(f->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	bool ok = dir != NULL;
	if (!ok)
		return fail(err, err_len, "%s: %s", f->path, strerror(errno));
	for (struct dirent *e; ok && (e = readdir(dir)) != NULL;)
		ok = add_segment(f, e->d_name);
	closedir(dir);
	if (!ok)
		return fail(err, err_len, "no memory");
	if (!hide_segments(f))
		return fail(err, err_len, "no memory");
	if (f->len > 0)
		qsort(f->segments, f->len, sizeof(*f->segments), segment_order);
	return true;
}

bool folder_open(struct folder *f, const char *path, char *err, size_t err_len)
{
	*f = (struct folder){.path = path, .fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
	bool ok = f->fd >= 0;
	if (!ok)
		return fail(err, err_len, "%s: %s", path, strerror(errno));
	if (flock(f->fd, LOCK_SH | LOCK_NB) != 0)
		ok = fail(err, err_len, "%s: %s", path,
			  errno == EWOULDBLOCK ? "a running server uses this log; stop it first, or look at a copy of the folder" : strerror(errno));
	ok = ok && read_meta(f, err, err_len) && list_segments(f, err, err_len);
	if (!ok)
		folder_close(f);
	return ok;
}

void folder_close(struct folder *f)
{
	if (f->fd >= 0)
		close(f->fd);
	for (size_t i = 0; i < f->len; i++)
		cover_fini(&f->segments[i].cover);
	free(f->segments);
	free(f->buf);
	*f = (struct folder){.fd = -1};
}

/* ---- the walk ---- */

struct walk {
	struct folder *f;
	struct visitor *v;
	struct place place;
	const struct cover *cover; /* of the file that is walked */
	bool stopped;
};

static PRINTF_LIKE(3, 4) void fault(struct walk *w, enum fault kind, const char *format, ...)
{
	char what[256];
	va_list ap;
	va_start(ap, format);
	vsnprintf(what, sizeof(what), format, ap);
	va_end(ap);
	w->v->fault(w->v->arg, &w->place, kind, what);
}

static bool same_log(const struct folder *f, const struct folder_segment *s, const struct block_id *id)
{
	return memcmp(id->log, f->log, sizeof(f->log)) == 0 && id->shards == f->shards && id->start == s->id.start && id->worker == s->id.worker &&
	       id->number == s->id.number;
}

static bool successor(const struct folder *f, size_t i)
{
	const struct block_place *last = &f->segments[i].cover.row.last, *next = i + 1 < f->len ? &f->segments[i + 1].cover.row.first : NULL;
	return next != NULL && next->start == last->start && next->worker == last->worker;
}

/* Whether the segment behind was made in advance and holds nothing. Loses what is in f->buf. */
static bool next_is_unused(struct folder *f, size_t i)
{
	struct segment_reader r;
	struct bytes payload;
	ssize_t len = read_file(f, f->segments[i + 1].name, FIRST_BLOCKS);
	return len > 0 && segment_open(&r, f->buf, (size_t)len) && !segment_next(&r, &payload) && r.end == SEGMENT_CLEAN;
}

static void walk_payload(struct walk *w, struct bytes payload)
{
	struct reader rest = reader_of(payload.p, (size_t)payload.len);
	struct bytes batch;
	uint32_t shard;
	while (!w->stopped && segment_batch(&rest, &shard, &batch))
		if (shard >= w->f->shards || cover_counts(w->cover, shard))
			w->stopped = !w->v->batch(w->v->arg, &w->place, shard, batch);
	if (rest.bad)
		fault(w, FAULT_DAMAGE, "the rest of the block cannot be read");
}

static void walk_blocks(struct walk *w, struct segment_reader *r)
{
	struct bytes payload;
	for (;;) {
		w->place = (struct place){w->place.file, r->sequence, r->at};
		if (w->stopped || !segment_next(r, &payload))
			return;
		w->v->blocks++;
		walk_payload(w, payload);
	}
}

/* All good blocks, also those behind a hole. */
static void walk_segment(struct walk *w, struct segment_reader *r)
{
	for (;;) {
		walk_blocks(w, r);
		if (w->stopped || r->end != SEGMENT_DAMAGED)
			return;
		uint64_t missing = segment_skip(r);
		if (missing == 0)
			return;
		fault(w, FAULT_DAMAGE, "%" PRIu64 " blocks were durable and are damaged", missing);
	}
}

/* `i` ended as `end` says. Only the last segment with blocks of a worker may end without END. */
static void judge_end(struct walk *w, size_t i, enum segment_end end)
{
	struct folder *f = w->f;
	bool last_start = f->segments[i].id.start == f->last_start && !f->segments[i].cover.clean;
	if (end == SEGMENT_SEALED)
		return;
	if (end == SEGMENT_DAMAGED)
		fault(w, FAULT_DAMAGE, "a block was durable and is damaged, with everything behind it");
	else if (!last_start || (successor(f, i) && !next_is_unused(f, i)))
		fault(w, FAULT_DAMAGE, "the segment ends here without its END block, although another follows");
	else if (end == SEGMENT_TORN)
		fault(w, FAULT_NOTE, "a write was under way here and nobody was told that it was done; a start cuts it off");
}

static void walk_file(struct walk *w, size_t i)
{
	struct folder_segment *s = &w->f->segments[i];
	struct segment_reader r;
	w->place = (struct place){.file = s->name};
	w->cover = &s->cover;
	ssize_t len = read_file(w->f, s->name, FILE_MAX);
	if (len < 0) {
		fault(w, FAULT_DAMAGE, "it cannot be read: %s", strerror((int)-len));
		return;
	}
	w->v->segments++;
	w->v->bytes += (uint64_t)len;
	if (!segment_open(&r, w->f->buf, (size_t)len) || !same_log(w->f, s, &r.id) || (s->cover.clean && s->cover.stands == NULL)) {
		fault(w, FAULT_DAMAGE, "its first block is damaged or belongs to another log");
		return;
	}
	walk_segment(w, &r);
	if (!w->stopped)
		judge_end(w, i, r.end);
}

void folder_walk(struct folder *f, struct visitor *v)
{
	struct walk w = {.f = f, .v = v};
	for (size_t i = 0; i < f->len && !w.stopped; i++) {
		walk_file(&w, i);
		if (successor(f, i) && f->segments[i + 1].cover.row.first.number > f->segments[i].cover.row.last.number + 1)
			fault(&w, FAULT_DAMAGE, "the segments between this one and %s are missing", f->segments[i + 1].name);
	}
}
