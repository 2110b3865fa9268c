/*
 * removal.c - the ring of members that are no more; see removal.h.
 */
#include "coordinator/group/group.h"

static const struct {
	const char *event, *text;
	int16_t code;
} removal_rows[] = {
#define REASON(name, event, code, text) [REMOVAL_##name] = {event, text, code},
	REMOVAL_REASONS(REASON)
#undef REASON
};

const char *removal_event(enum removal_reason reason)
{
	CHECK(reason < ARRAY_LEN(removal_rows));
	return removal_rows[reason].event;
}

const char *removal_text(enum removal_reason reason)
{
	CHECK(reason < ARRAY_LEN(removal_rows));
	return removal_rows[reason].text;
}

int16_t removal_code(enum removal_reason reason)
{
	CHECK(reason < ARRAY_LEN(removal_rows));
	return removal_rows[reason].code;
}

int64_t member_seen_ms(const struct member *m, struct now now)
{
	if (m->join != NULL || m->sync != NULL)
		return now.wall_ms;
	int64_t seen_us = (int64_t)m->session.deadline - (int64_t)m->session_timeout_ms * US_PER_MS;
	return seen_us <= 0 || seen_us > (int64_t)now.us ? -1 : now.wall_ms - ((int64_t)now.us - seen_us) / US_PER_MS;
}

/* ---- the ring ---- */

static struct bytes removal_keep(uint8_t **at, struct bytes b)
{
	if (b.len <= 0)
		return b.len < 0 ? BYTES_NULL : BYTES_EMPTY;
	size_t len = b.len < REMOVAL_TEXT_MAX ? (size_t)b.len : REMOVAL_TEXT_MAX;
	memcpy(*at, b.p, len);
	*at += len;
	return bytes_of(*at - len, len);
}

/* A copy with its strings behind it; NULL: no memory. */
static struct removal *removal_copy(const struct removal *from)
{
	const struct bytes *const list[] = {&from->group_id, &from->member_id, &from->instance_id, &from->client_id, &from->host, &from->detail};
	size_t len = 0;
	for (unsigned int i = 0; i < ARRAY_LEN(list); i++)
		len += list[i]->len <= 0 ? 0 : list[i]->len < REMOVAL_TEXT_MAX ? (size_t)list[i]->len : REMOVAL_TEXT_MAX;
	struct removal *r = malloc(sizeof(*r) + len);
	if (r == NULL)
		return NULL;
	uint8_t *at = (uint8_t *)(r + 1);
	*r = *from;
	r->group_id = removal_keep(&at, from->group_id);
	r->member_id = removal_keep(&at, from->member_id);
	r->instance_id = removal_keep(&at, from->instance_id);
	r->client_id = removal_keep(&at, from->client_id);
	r->host = removal_keep(&at, from->host);
	r->detail = removal_keep(&at, from->detail);
	return r;
}

/* It only grows while it has never been full, so `first` is 0 then. */
static bool removals_grow(struct removals *all, uint32_t max)
{
	uint32_t cap = all->cap == 0 ? 16 : all->cap * 2;
	cap = cap < max ? cap : max;
	struct removal **ring = realloc(all->ring, cap * sizeof(*ring));
	if (ring == NULL)
		return false;
	all->ring = ring;
	all->cap = cap;
	return true;
}

static void removals_push(struct removals *all, struct removal *r, int32_t limit)
{
	uint32_t max = limit > 0 ? (uint32_t)limit : 0;
	if (all->len == all->cap && all->cap < max)
		removals_grow(all, max);
	if (all->cap == 0) {
		all->since_ms = r->at_ms;
		free(r);
	} else if (all->len < all->cap) {
		all->ring[all->len++] = r;
	} else {
		all->since_ms = all->ring[all->first]->at_ms;
		free(all->ring[all->first]);
		all->ring[all->first] = r;
		all->first = (all->first + 1) % all->cap;
	}
}

void removals_fini(struct removals *all)
{
	for (uint32_t i = 0; i < all->len; i++)
		free(all->ring[i]);
	free(all->ring);
	*all = (struct removals){0};
}

void removals_each(const struct shard *shard, struct bytes group_id, void (*visit)(void *arg, const struct removal *r), void *arg, struct now now)
{
	const struct removals *all = &shard->removals;
	int64_t oldest_ms = now.wall_ms - (int64_t)shard->settings->journal_removed_minutes * 60000;
	struct bytes cut = {group_id.p, group_id.len < REMOVAL_TEXT_MAX ? group_id.len : REMOVAL_TEXT_MAX};
	for (uint32_t i = 0; i < all->len; i++) {
		const struct removal *r = all->ring[(all->first + i) % all->cap];
		if (r->at_ms >= oldest_ms && (bytes_is_null(group_id) || bytes_equal(r->group_id, cut)))
			visit(arg, r);
	}
}

/* ---- noting ---- */

static void removal_remember(const struct group *group, const struct removal *r)
{
	struct shard *shard = group->shard;
	struct removal *copy = removal_copy(r);
	if (copy != NULL)
		removals_push(&shard->removals, copy, shard->settings->journal_removed_members);
}

void removal_note(const struct member *m, enum removal_reason reason, struct bytes detail, struct now now)
{
	removal_note_as(m, m->id, reason, detail, now);
}

void removal_note_as(const struct member *m, struct bytes id, enum removal_reason reason, struct bytes detail, struct now now)
{
	const struct group *group = m->group;
	struct removal r = {
		.reason = reason,
		.generation = group->generation,
		.at_ms = now.wall_ms,
		.seen_ms = member_seen_ms(m, now),
		.group_id = group->id,
		.member_id = id,
		.instance_id = m->instance_id,
		.client_id = m->client_id,
		.host = m->host,
		.detail = bytes_is_null(detail) ? BYTES_EMPTY : detail,
	};
	removal_remember(group, &r);
	struct journal_line line;
	if (!journal_line(&line, group, removal_event(reason)))
		return;
	journal_put_member_as(&line, m, id);
	if (!bytes_is_empty(r.detail))
		journal_put(&line, reason == REMOVAL_REPLACED ? "successor" : "reason", r.detail);
	if (r.seen_ms >= 0)
		journal_put_number(&line, "silent_ms", now.wall_ms - r.seen_ms);
	journal_tell(group, &line);
}

void removal_note_id(const struct group *group, struct bytes id, enum removal_reason reason, struct now now)
{
	struct removal r = {
		.reason = reason,
		.generation = group->generation,
		.at_ms = now.wall_ms,
		.seen_ms = -1,
		.group_id = group->id,
		.member_id = id,
		.instance_id = BYTES_NULL,
		.client_id = BYTES_EMPTY,
		.host = BYTES_EMPTY,
		.detail = BYTES_EMPTY,
	};
	removal_remember(group, &r);
}
