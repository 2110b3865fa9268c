/*
 * draft.c - a group's record in the making: the leader's assignments are sorted out, the record is measured, then encoded; all of it in slices.
 *
 *   ASSIGN -> MEASURE -> ENCODE, at most group.record.max.bytes: into one write, as Kafka has it
 *                     -> ENCODE, longer: part by part, a batch for each slice, appended at once; then the header as the write that completes it
 *
 * A draft belongs to a group whose members do not change meanwhile; when they do, it is freed, and the parts that it has appended stay without a
 * header (record.h says why they do no harm).
 */
#include "coordinator/group/group.h"

#define DRAFT_RECORD_MAX 1000000
/* Parts of one batch, bytes; a longer part stands alone. */
#define DRAFT_BATCH 65536u
#define DRAFT_UNIT 4096u

enum draft_state { DRAFT_ASSIGN, DRAFT_MEASURE, DRAFT_ENCODE, DRAFT_READY };

struct draft_entry {
	struct bytes id, assignment;
};

struct draft {
	struct group *group;
	enum draft_state state;
	uint32_t at; /* next entry, or member */
	int64_t state_ms;
	struct bytes *assignments; /* by member index; NULL: the stored ones */
	struct draft_entry *entries; /* the leader's; the text is behind them */
	uint32_t entries_len;
	size_t size;		   /* of the whole record, key included */
	struct record_parts parts; /* edition 0: it is whole */
	struct write *w;	   /* whole: what is encoded so far */
	bool kept;		   /* not on the heap */
};

/* ---- what goes into it ---- */

static struct record_group draft_head(const struct draft *d)
{
	const struct group *g = d->group;
	return (struct record_group){
		.protocol_type = g->protocol_type,
		.generation = g->generation,
		.protocol = g->members_len == 0 ? BYTES_NULL : g->protocol,
		.leader = g->leader == NULL ? BYTES_NULL : g->leader->id,
		.state_ms = d->state_ms,
		.members_len = d->parts.edition != 0 ? 0 : (int32_t)g->members_len,
		.parts = d->parts,
	};
}

static struct record_member draft_member(const struct draft *d, const struct member *m)
{
	return (struct record_member){
		.id = m->id,
		.instance_id = m->instance_id,
		.client_id = m->client_id,
		.host = m->host,
		.rebalance_timeout_ms = m->rebalance_timeout_ms,
		.session_timeout_ms = m->session_timeout_ms,
		.subscription = member_metadata(m),
		.assignment = d->assignments != NULL ? d->assignments[m->index] : member_assignment(m),
	};
}

void group_encode(struct writer *w, const struct group *group, const struct bytes *assignments, int64_t state_ms)
{
	struct draft d = {.group = (struct group *)(uintptr_t)group, .assignments = (struct bytes *)(uintptr_t)assignments, .state_ms = state_ms};
	struct record_group head = draft_head(&d);
	record_group_value(w, &head);
	for (uint32_t i = 0; i < group->members_len; i++) {
		struct record_member rm = draft_member(&d, group->members[i]);
		record_group_member(w, &rm);
	}
}

static void draft_part(const struct draft *d, const struct member *m, struct writer *key, struct writer *value)
{
	struct record_part part = {d->parts.edition, d->group->generation, draft_member(d, m)};
	record_part_key(key, d->group->id, d->parts.slot, m->id);
	record_part_value(value, &part);
}

static size_t draft_len(struct bytes b)
{
	return b.len > 0 ? (size_t)b.len : 0;
}

static void draft_take(unsigned int *units, size_t bytes)
{
	unsigned int cost = 1 + (unsigned int)(bytes / DRAFT_UNIT);
	*units = *units > cost ? *units - cost : 0;
}

/* ---- the steps ---- */

static struct draft draft_of(struct group *group, struct now now)
{
	return (struct draft){
		.group = group,
		.state = DRAFT_MEASURE,
		.state_ms = group->state == GROUP_EMPTY ? group->state_ms : now.wall_ms,
	};
}

struct draft *draft_new(struct group *group, struct now now)
{
	struct draft *d = malloc(sizeof(*d));
	if (d != NULL)
		*d = draft_of(group, now);
	return d;
}

static void draft_fini(struct draft *d)
{
	if (d->w != NULL)
		write_free(d->w);
	free(d->entries);
	if (!d->kept)
		free(d->assignments);
	d->w = NULL;
}

void draft_free(struct draft *d)
{
	if (d == NULL)
		return;
	draft_fini(d);
	free(d);
}

static struct bytes draft_copy(uint8_t **at, struct bytes b)
{
	struct bytes out = bytes_of(*at, draft_len(b));
	if (b.len > 0)
		memcpy(*at, b.p, (size_t)b.len);
	*at += out.len;
	return out;
}

bool draft_assign(struct draft *d, const struct sync_group_request *in)
{
	uint32_t n = in->assignments_len > 0 ? (uint32_t)in->assignments_len : 0;
	size_t size = (n + 1) * sizeof(struct draft_entry);
	for (uint32_t i = 0; i < n; i++)
		size += draft_len(in->assignments[i].member_id) + draft_len(in->assignments[i].assignment);
	d->entries = malloc(size);
	d->assignments = calloc(d->group->members_len, sizeof(*d->assignments));
	if (d->entries == NULL || d->assignments == NULL)
		return false;
	uint8_t *text = (uint8_t *)&d->entries[n];
	for (uint32_t i = 0; i < n; i++)
		d->entries[i] = (struct draft_entry){draft_copy(&text, in->assignments[i].member_id), draft_copy(&text, in->assignments[i].assignment)};
	d->entries_len = n;
	d->state = DRAFT_ASSIGN;
	draft_take(&d->group->shard->slice_left, size); /* of a large group, nothing else is done in this call */
	return true;
}

/* Whom the leader forgot gets nothing, whom it invented is ignored, the last entry of a member counts. */
static void draft_assign_some(struct draft *d, unsigned int *units)
{
	for (; *units > 0 && d->at < d->entries_len; d->at++) {
		const struct member *m = member_find(d->group, d->entries[d->at].id);
		if (m != NULL)
			d->assignments[m->index] = d->entries[d->at].assignment;
		draft_take(units, 0);
	}
	if (d->at == d->entries_len) {
		d->state = DRAFT_MEASURE;
		d->at = 0;
	}
}

static size_t draft_limit(const struct group *g)
{
	int32_t max = g->shard->settings->group_record_max_bytes;
	return max > 0 ? (size_t)max : DRAFT_RECORD_MAX;
}

/* An edition that no part of the group in the log has: also a clock that was set back, or a group that is not the first of its name, makes no second one. */
static bool draft_go_parts(struct draft *d, struct now now)
{
	struct group_parts *parts = parts_get(d->group);
	if (parts == NULL)
		return false;
	int64_t edition = parts->last_edition + 1 > now.wall_ms ? parts->last_edition + 1 : now.wall_ms;
	d->parts = (struct record_parts){edition > 0 ? edition : 1, d->group->members_len, parts->at.edition != 0 ? (uint8_t)(1 - parts->at.slot) : 0};
	parts->last_edition = d->parts.edition;
	parts->clear = false; /* what the members have in the log is being replaced */
	return true;
}

/* False: no memory. */
static bool draft_measure_some(struct draft *d, unsigned int *units, struct now now)
{
	const struct group *g = d->group;
	struct writer size = writer_of(NULL, 0);
	if (d->at == 0) {
		struct record_group head = draft_head(d);
		record_group_key(&size, g->id);
		record_group_value(&size, &head);
	}
	for (; *units > 0 && d->at < g->members_len; d->at++) {
		struct record_member rm = draft_member(d, g->members[d->at]);
		record_group_member(&size, &rm);
		draft_take(units, 0);
	}
	d->size += size.need;
	if (d->at < g->members_len)
		return true;
	d->state = DRAFT_ENCODE;
	d->at = 0;
	if (d->size > draft_limit(g) && g->members_len > 0)
		return draft_go_parts(d, now);
	return true;
}

/* The head of a whole record; its members follow. False: no memory. */
static bool draft_begin_whole(struct draft *d, size_t extra)
{
	struct record_group head = draft_head(d);
	d->w = write_new(1, d->size, extra);
	if (d->w == NULL)
		return false;
	write_key(d->w);
	record_group_key(&d->w->bytes, d->group->id);
	write_value(d->w);
	record_group_value(&d->w->bytes, &head);
	return true;
}

/* One batch of parts, from d->at on. Returns 0 or an error for the client. */
static int16_t draft_append_parts(struct draft *d, unsigned int *units, struct now now)
{
	struct group *g = d->group;
	uint32_t n = 0;
	struct writer size = writer_of(NULL, 0);
	while (d->at + n < g->members_len && (n == 0 || (size.need < DRAFT_BATCH && n < *units))) {
		struct writer one = writer_of(NULL, 0);
		draft_part(d, g->members[d->at + n], &one, &one);
		if (n > 0 && size.need + one.need > DRAFT_BATCH)
			break;
		size.need += one.need;
		n++;
	}
	struct write *w = write_new(n, size.need, 0);
	if (w == NULL)
		return ERROR_COORDINATOR_NOT_AVAILABLE;
	for (uint32_t i = 0; i < n; i++) {
		struct record_part part = {d->parts.edition, g->generation, draft_member(d, g->members[d->at + i])};
		write_key(w);
		record_part_key(&w->bytes, g->id, d->parts.slot, part.member.id);
		write_value(w);
		record_part_value(&w->bytes, &part);
		write_end(w, false);
	}
	w->sliced = true;
	int16_t error = write_submit(g->shard, w, now);
	for (uint32_t i = 0; error == 0 && i < n; i++)
		g->members[d->at + i]->slots |= (uint8_t)(1u << d->parts.slot);
	d->at += n;
	draft_take(units, size.need);
	*units = *units > n ? *units - n : 0;
	return error;
}

static int16_t draft_encode_some(struct draft *d, size_t extra, unsigned int *units, struct now now)
{
	const struct group *g = d->group;
	int16_t error = 0;
	if (d->parts.edition != 0) {
		while (error == 0 && *units > 0 && d->at < g->members_len)
			error = draft_append_parts(d, units, now);
	} else {
		if (d->w == NULL && !draft_begin_whole(d, extra))
			return ERROR_COORDINATOR_NOT_AVAILABLE;
		for (; *units > 0 && d->at < g->members_len; d->at++) {
			struct record_member rm = draft_member(d, g->members[d->at]);
			record_group_member(&d->w->bytes, &rm);
			draft_take(units, draft_len(rm.assignment) + draft_len(rm.subscription));
		}
	}
	if (d->at == g->members_len)
		d->state = DRAFT_READY;
	return error;
}

static bool draft_go(struct draft *d, size_t extra, unsigned int *units, int16_t *error, struct now now)
{
	while (*units > 0 && *error == 0 && d->state != DRAFT_READY) {
		if (d->state == DRAFT_ASSIGN)
			draft_assign_some(d, units);
		else if (d->state == DRAFT_ENCODE)
			*error = draft_encode_some(d, extra, units, now);
		else if (!draft_measure_some(d, units, now))
			*error = ERROR_COORDINATOR_NOT_AVAILABLE;
	}
	return *error != 0 || d->state == DRAFT_READY;
}

bool draft_step(struct draft *d, unsigned int *units, int16_t *error, struct now now)
{
	return draft_go(d, 0, units, error, now);
}

/* ---- the write that completes it ---- */

static void draft_own(struct write *w, struct group *g, struct record_parts parts)
{
	w->group = g;
	g->refs++;
	w->generation = g->generation;
	w->parts = parts;
}

static void draft_put_header(struct draft *d, struct write *w)
{
	struct record_group head = draft_head(d);
	write_key(w);
	record_group_key(&w->bytes, d->group->id);
	write_value(w);
	record_group_value(&w->bytes, &head);
	write_end(w, false);
}

static void draft_measure_header(const struct draft *d, struct writer *size)
{
	struct record_group head = draft_head(d);
	record_group_key(size, d->group->id);
	record_group_value(size, &head);
}

struct write *draft_finish(struct draft *d, size_t extra, struct now now)
{
	struct write *w = d->w;
	CHECK(d->state == DRAFT_READY);
	if (d->parts.edition == 0) {
		write_end(w, false);
		d->w = NULL;
	} else {
		struct writer size = writer_of(NULL, 0);
		draft_measure_header(d, &size);
		w = write_new(1, size.need, extra);
		if (w == NULL)
			return NULL;
		draft_put_header(d, w);
	}
	draft_own(w, d->group, d->parts);
	return w;
}

struct write *group_write_new(struct group *group, const struct bytes *assignments, size_t extra, int16_t *error, struct now now)
{
	struct draft d = draft_of(group, now);
	unsigned int units = UINT32_MAX;
	d.assignments = (struct bytes *)(uintptr_t)assignments;
	d.kept = true;
	*error = 0;
	while (!draft_go(&d, extra, &units, error, now))
		units = UINT32_MAX;
	struct write *w = *error == 0 ? draft_finish(&d, extra, now) : NULL;
	if (w == NULL && *error == 0)
		*error = ERROR_COORDINATOR_NOT_AVAILABLE;
	draft_fini(&d);
	return w;
}

struct write *draft_one(struct member *m, struct bytes old_id, uint8_t old_slots, size_t extra, struct now now)
{
	struct group *g = m->group;
	if (g->parts == NULL || g->parts->at.edition == 0 || g->parts->at.members != g->members_len)
		return NULL;
	struct draft d = draft_of(g, now);
	struct writer size = writer_of(NULL, 0);
	unsigned int gone = (old_slots & 1) + (old_slots >> 1 & 1);
	d.parts = g->parts->at;
	for (uint8_t slot = 0; slot < 2; slot++)
		if (old_slots >> slot & 1)
			record_part_key(&size, g->id, slot, old_id);
	draft_part(&d, m, &size, &size);
	draft_measure_header(&d, &size);
	struct write *w = write_new(2 + gone, size.need, extra);
	if (w == NULL)
		return NULL;
	for (uint8_t slot = 0; slot < 2; slot++) {
		if ((old_slots >> slot & 1) == 0)
			continue;
		write_key(w);
		record_part_key(&w->bytes, g->id, slot, old_id);
		write_value(w);
		write_end(w, true);
	}
	struct record_part part = {d.parts.edition, g->generation, draft_member(&d, m)};
	write_key(w);
	record_part_key(&w->bytes, g->id, d.parts.slot, m->id);
	write_value(w);
	record_part_value(&w->bytes, &part);
	write_end(w, false);
	draft_put_header(&d, w);
	draft_own(w, g, d.parts);
	return w;
}
