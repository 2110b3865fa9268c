/*
 * journal.c - the rebalance journal of a group, and lines of text about what happens; see journal.h.
 *
 * Nothing here may fail a request: without memory an event is lost, not more.
 */
#include <stdarg.h>
#include <stdio.h>

#include "coordinator/group/group.h"

const char *journal_cause_text(enum journal_cause cause)
{
	static const char *const texts[] = {
#define CAUSE(name, text, change) [JOURNAL_##name] = text,
		JOURNAL_CAUSES(CAUSE)
#undef CAUSE
	};
	CHECK(cause < ARRAY_LEN(texts));
	return texts[cause];
}

bool journal_cause_is_change(enum journal_cause cause)
{
	static const bool changes[] = {
#define CAUSE(name, text, change) [JOURNAL_##name] = change,
		JOURNAL_CAUSES(CAUSE)
#undef CAUSE
	};
	CHECK(cause < ARRAY_LEN(changes));
	return changes[cause];
}

/* ---- events ---- */

static void journal_free_event(struct journal_event *e)
{
	if (e == NULL)
		return;
	free(e->text[0]);
	free(e->text[1]);
	free(e);
}

/* Copies the slices of `list` into one allocation and points them there. */
static void *journal_pack(struct bytes *const *list, unsigned int n)
{
	size_t len = 0;
	for (unsigned int i = 0; i < n; i++)
		len += list[i]->len > 0 ? (size_t)list[i]->len : 0;
	uint8_t *text = malloc(len + 1), *at = text;
	for (unsigned int i = 0; i < n; i++) {
		struct bytes *b = list[i];
		if (b->len <= 0)
			continue;
		if (text == NULL) {
			*b = BYTES_EMPTY;
			continue;
		}
		memcpy(at, b->p, (size_t)b->len);
		b->p = at;
		at += b->len;
	}
	return text;
}

void journal_open(struct group *group, enum journal_cause cause, const struct member *who, struct now now)
{
	struct journal *j = &group->journal;
	if (j->open != NULL || group->state == GROUP_DEAD)
		return;
	struct journal_event *e = calloc(1, sizeof(*e));
	if (e == NULL)
		return;
	e->cause = cause;
	e->start_ms = now.wall_ms;
	e->start_us = now.us;
	e->member_id = who != NULL ? who->id : BYTES_EMPTY;
	e->instance_id = who != NULL ? who->instance_id : BYTES_NULL;
	e->client_id = who != NULL ? who->client_id : BYTES_EMPTY;
	e->host = who != NULL ? who->host : BYTES_EMPTY;
	struct bytes *const slices[] = {&e->member_id, &e->instance_id, &e->client_id, &e->host};
	e->text[0] = journal_pack(slices, ARRAY_LEN(slices));
	j->open = e;
	j->last_tag = 0;
	j->late = 0;
}

static void journal_put_culprit(struct journal_line *line, const struct journal_event *e)
{
	journal_put(line, "member", e->member_id);
	if (!bytes_is_null(e->instance_id))
		journal_put(line, "instance", e->instance_id);
	journal_put(line, "client", e->client_id);
	journal_put(line, "host", e->host);
}

void journal_started(struct group *group)
{
	struct journal_event *e = group->journal.open;
	struct journal_line line;
	if (e == NULL || e->told)
		return;
	e->told = true;
	if (!journal_line(&line, group, "rebalance-start"))
		return;
	journal_put(&line, "cause", bytes_str(journal_cause_text(e->cause)));
	if (!bytes_is_empty(e->member_id))
		journal_put_culprit(&line, e);
	journal_put_number(&line, "members", group->members_len);
	journal_tell(group, &line);
}

void journal_late(struct group *group, const struct member *who)
{
	struct journal *j = &group->journal;
	j->late++;
	if (j->late_ids.len + who->id.len + 1 > JOURNAL_LATE_BYTES)
		return;
	if (j->late_ids.p == NULL) {
		j->late_ids = (struct bytes){malloc(JOURNAL_LATE_BYTES), 0};
		if (j->late_ids.p == NULL)
			return;
	}
	uint8_t *at = (uint8_t *)(uintptr_t)j->late_ids.p + j->late_ids.len;
	if (j->late_ids.len > 0)
		*at++ = ',';
	memcpy(at, who->id.p, (size_t)who->id.len);
	j->late_ids.len += who->id.len + (j->late_ids.len > 0 ? 1 : 0);
}

void journal_forget_late(struct group *group)
{
	group->journal.late = 0;
	group->journal.late_ids.len = 0;
}

static struct bytes journal_last_joiner(const struct group *group)
{
	for (uint32_t i = 0; i < group->members_len; i++)
		if (group->members[i]->tag == group->journal.last_tag)
			return group->members[i]->id;
	return BYTES_EMPTY;
}

static void journal_keep(struct group *group, struct journal_event *e)
{
	struct journal *j = &group->journal;
	uint32_t max = group->shard->settings->journal_events > 0 ? (uint32_t)group->shard->settings->journal_events : 0;
	if (j->len == j->cap && j->cap < max) { /* only grows while it has never wrapped: first is 0 */
		uint32_t cap = j->cap == 0 ? 2 : j->cap * 2;
		cap = cap < max ? cap : max;
		struct journal_event **ring = realloc(j->ring, cap * sizeof(struct journal_event *));
		if (ring != NULL) {
			j->ring = ring;
			j->cap = cap;
		}
	}
	if (j->cap == 0) {
		journal_free_event(e);
		return;
	}
	if (j->len < j->cap) {
		j->ring[j->len++] = e;
		return;
	}
	journal_free_event(j->ring[j->first]);
	j->ring[j->first] = e;
	j->first = (j->first + 1) % j->cap;
}

void journal_close(struct group *group, struct now now)
{
	struct journal *j = &group->journal;
	struct journal_event *e = j->open;
	if (e == NULL)
		return;
	j->open = NULL;
	e->duration_us = now.us - e->start_us;
	e->generation = group->generation;
	e->members = group->members_len;
	e->late = j->late;
	e->leader = group->leader != NULL ? group->leader->id : BYTES_EMPTY;
	e->protocol = group->protocol;
	e->waited_for = j->late > 0 ? (j->late_ids.len > 0 ? j->late_ids : BYTES_EMPTY) : journal_last_joiner(group);
	struct bytes *const slices[] = {&e->leader, &e->protocol, &e->waited_for};
	e->text[1] = journal_pack(slices, ARRAY_LEN(slices));
	free((void *)(uintptr_t)j->late_ids.p);
	j->late_ids = (struct bytes){NULL, 0};

	if (group->shard->line != NULL) {
		char text[1024];
		journal_format(group->id, e, text, sizeof(text));
		group->shard->line(group->shard->line_arg, text);
	}
	journal_keep(group, e);
}

void journal_fini(struct journal *j)
{
	for (uint32_t i = 0; i < j->len; i++)
		journal_free_event(j->ring[i]);
	free(j->ring);
	journal_free_event(j->open);
	free((void *)(uintptr_t)j->late_ids.p);
	memset(j, 0, sizeof(*j));
}

void journal_each(const struct journal *j, void (*visit)(void *arg, const struct journal_event *event), void *arg)
{
	for (uint32_t i = 0; i < j->len; i++)
		visit(arg, j->ring[(j->first + i) % j->cap]);
}

/* ---- lines ---- */

static PRINTF_LIKE(2, 3) void journal_printf(struct journal_line *line, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(line->text + line->len, sizeof(line->text) - line->len, fmt, ap);
	va_end(ap);
	if (n > 0)
		line->len += (size_t)n;
	if (line->len >= sizeof(line->text))
		line->len = sizeof(line->text) - 1;
}

static void journal_escaped(struct journal_line *line, struct bytes value)
{
	for (int32_t i = 0; i < value.len; i++) {
		uint8_t c = value.p[i];
		if (c > ' ' && c < 0x7f && c != '=' && c != '"' && c != '\\')
			journal_printf(line, "%c", c);
		else
			journal_printf(line, "\\x%02x", c);
		if (line->len == sizeof(line->text) - 1)
			return;
	}
}

static void journal_begin(struct journal_line *line, struct bytes group_id, int32_t generation, const char *event)
{
	line->len = 0;
	line->text[0] = '\0';
	journal_put(line, "group", group_id);
	journal_put_number(line, "generation", generation);
	journal_put(line, "event", bytes_str(event));
}

bool journal_line(struct journal_line *line, const struct group *group, const char *event)
{
	if (group->shard->line == NULL)
		return false;
	journal_begin(line, group->id, group->generation, event);
	return true;
}

void journal_line_of(struct journal_line *line, struct bytes group_id, const char *event)
{
	line->len = 0;
	line->text[0] = '\0';
	journal_put(line, "group", group_id);
	journal_put(line, "event", bytes_str(event));
}

void journal_put(struct journal_line *line, const char *name, struct bytes value)
{
	journal_printf(line, "%s%s=", line->len > 0 ? " " : "", name);
	journal_escaped(line, value);
}

void journal_put_number(struct journal_line *line, const char *name, int64_t value)
{
	journal_printf(line, "%s%s=%lld", line->len > 0 ? " " : "", name, (long long)value);
}

void journal_put_member(struct journal_line *line, const struct member *who)
{
	journal_put_member_as(line, who, who->id);
}

void journal_put_member_as(struct journal_line *line, const struct member *who, struct bytes id)
{
	journal_put(line, "member", id);
	if (!bytes_is_null(who->instance_id))
		journal_put(line, "instance", who->instance_id);
	journal_put(line, "client", who->client_id);
	journal_put(line, "host", who->host);
}

void journal_tell(const struct group *group, struct journal_line *line)
{
	group->shard->line(group->shard->line_arg, line->text);
}

void journal_member(const struct group *group, const char *event, const struct member *who, struct bytes reason)
{
	struct journal_line line;
	if (!journal_line(&line, group, event))
		return;
	journal_put_member(&line, who);
	if (!bytes_is_empty(reason))
		journal_put(&line, "reason", reason);
	journal_tell(group, &line);
}

size_t journal_format(struct bytes group_id, const struct journal_event *e, char *out, size_t len)
{
	struct journal_line line;
	CHECK(len > 0);
	journal_begin(&line, group_id, e->generation, "rebalance-done");
	journal_put(&line, "cause", bytes_str(journal_cause_text(e->cause)));
	journal_put_number(&line, "members", e->members);
	journal_put_number(&line, "took_ms", (int64_t)(e->duration_us / US_PER_MS));
	journal_put(&line, "protocol", e->protocol);
	journal_put(&line, "leader", e->leader);
	if (e->late > 0)
		journal_put_number(&line, "late", e->late);
	journal_put(&line, "waited_for", e->waited_for);
	journal_put_culprit(&line, e);
	journal_put_number(&line, "start_ms", e->start_ms);
	size_t n = line.len < len - 1 ? line.len : len - 1;
	memcpy(out, line.text, n);
	out[n] = '\0';
	return n;
}
