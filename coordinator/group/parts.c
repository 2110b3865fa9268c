/*
 * parts.c - the parts of a group that is too large for one record (record.h): those that wait for their header, and those that nobody needs any more.
 *
 * Replay collects parts in an assembly, per group id, because the group may not exist yet; the header takes them out. What it leaves was never finished,
 * or belongs to an older write. The log still holds it, so it is remembered as debris of the group, as are the ids of members that are gone, until
 * tombstones have been written.
 *
 * Invariants:
 *  1. A tombstone is written only when no record that counts the part is the group's last durable one: debris waits for the next record of the group,
 *     unless no record ever counted it.
 *  2. member->slots says in which slots the log may hold a part of a member of the group; of all other ids debris does. Without memory a part is
 *     forgotten: it stays in the log for nothing and is never shown, as its edition is over.
 */
#include "coordinator/group/group.h"

/* Tombstones of one write. */
#define PARTS_SWEEP 64u

/* Parts of an id that is no member. */
struct debris {
	STAILQ_ENTRY(debris) link;
	uint64_t after; /* group_parts.durable must have reached this */
	uint8_t slots;
	struct bytes id; /* behind the struct */
};

/* ---- assemblies ---- */

static uint64_t assembly_hash(struct shard *shard, struct bytes group_id)
{
	return hash_bytes(&shard->key, 0, group_id);
}

struct assembly *assembly_find(struct shard *shard, struct bytes group_id)
{
	uint64_t hash = assembly_hash(shard, group_id);
	for (struct table_node *n = table_chain(&shard->assemblies, hash); n != NULL; n = n->next) {
		struct assembly *a = CONTAINER_OF(n, struct assembly, node);
		if (n->hash == hash && bytes_equal(a->group, group_id))
			return a;
	}
	return NULL;
}

struct assembly *assembly_get(struct shard *shard, struct bytes group_id)
{
	struct assembly *a = assembly_find(shard, group_id);
	if (a != NULL)
		return a;
	a = calloc(1, sizeof(*a) + (size_t)group_id.len);
	if (a == NULL)
		return NULL;
	memcpy(a + 1, group_id.p, (size_t)group_id.len);
	a->group = bytes_of(a + 1, (size_t)group_id.len);
	a->header = BYTES_NULL;
	TAILQ_INIT(&a->parts);
	if (!table_add(&shard->assemblies, &a->node, assembly_hash(shard, group_id))) {
		free(a);
		return NULL;
	}
	return a;
}

void part_free(struct shard *shard, struct part *p)
{
	struct assembly *a = p->owner;
	if (p->edition == a->edition)
		a->count--;
	TAILQ_REMOVE(&a->parts, p, link);
	table_remove(&shard->parts, &p->node);
	free(p);
}

void assembly_free(struct shard *shard, struct assembly *a)
{
	struct part *p;
	while ((p = TAILQ_FIRST(&a->parts)) != NULL)
		part_free(shard, p);
	table_remove(&shard->assemblies, &a->node);
	bytes_free(&a->header);
	free(a);
}

static uint64_t part_hash(struct shard *shard, const struct assembly *a, uint8_t slot, struct bytes member)
{
	return hash_bytes(&shard->key, a->node.hash + slot + 1, member);
}

static struct part *part_find(struct shard *shard, const struct assembly *a, uint8_t slot, struct bytes member)
{
	uint64_t hash = part_hash(shard, a, slot, member);
	for (struct table_node *n = table_chain(&shard->parts, hash); n != NULL; n = n->next) {
		struct part *p = CONTAINER_OF(n, struct part, node);
		if (n->hash == hash && p->owner == a && p->slot == slot && bytes_equal(p->member, member))
			return p;
	}
	return NULL;
}

bool assembly_put(struct shard *shard, const struct record_key *key, int64_t edition, struct bytes value)
{
	struct assembly *a = assembly_get(shard, key->group);
	struct part *p = a == NULL ? NULL : calloc(1, sizeof(*p) + (size_t)key->member.len + (size_t)value.len);
	if (p == NULL)
		return false;
	uint8_t *text = (uint8_t *)(p + 1);
	memcpy(text, key->member.p, (size_t)key->member.len);
	memcpy(text + key->member.len, value.p, (size_t)value.len);
	p->owner = a;
	p->slot = key->slot;
	p->edition = edition;
	p->member = bytes_of(text, (size_t)key->member.len);
	p->value = bytes_of(text + key->member.len, (size_t)value.len);
	struct part *older = part_find(shard, a, key->slot, key->member);
	if (!table_add(&shard->parts, &p->node, part_hash(shard, a, key->slot, key->member))) {
		free(p);
		return false;
	}
	TAILQ_INSERT_TAIL(&a->parts, p, link);
	if (older != NULL)
		part_free(shard, older);
	if (a->edition != edition) {
		a->edition = edition;
		a->count = 0;
	}
	a->count++;
	return true;
}

void assembly_remove(struct shard *shard, const struct record_key *key)
{
	struct assembly *a = assembly_find(shard, key->group);
	struct part *p = a == NULL ? NULL : part_find(shard, a, key->slot, key->member);
	if (p != NULL)
		part_free(shard, p);
	if (a != NULL && TAILQ_EMPTY(&a->parts) && bytes_is_null(a->header))
		assembly_free(shard, a);
}

/* The count of the last edition tells at once; it is only too low when parts of two editions came mixed. */
bool assembly_complete(const struct assembly *a, const struct record_parts *parts)
{
	const struct part *p;
	uint32_t n = 0;
	if (a == NULL)
		return false;
	if (a->edition == parts->edition && a->count == parts->members)
		return true;
	TAILQ_FOREACH(p, &a->parts, link)
		n += p->edition == parts->edition && p->slot == parts->slot;
	return n == parts->members;
}

/* ---- debris ---- */

struct group_parts *parts_get(struct group *group)
{
	if (group->parts == NULL) {
		group->parts = calloc(1, sizeof(*group->parts));
		if (group->parts != NULL)
			STAILQ_INIT(&group->parts->debris);
	}
	return group->parts;
}

void parts_free(struct group *group)
{
	struct debris *d;
	if (group->parts == NULL)
		return;
	while ((d = STAILQ_FIRST(&group->parts->debris)) != NULL) {
		STAILQ_REMOVE_HEAD(&group->parts->debris, link);
		free(d);
	}
	free(group->parts);
	group->parts = NULL;
}

static void parts_add(struct group *group, struct bytes id, uint8_t slots, bool now)
{
	struct group_parts *parts = slots == 0 ? NULL : parts_get(group);
	struct debris *d = parts == NULL ? NULL : malloc(sizeof(*d) + (size_t)id.len);
	if (d == NULL)
		return;
	memcpy(d + 1, id.p, (size_t)id.len);
	*d = (struct debris){.after = now ? 0 : parts->submitted + 1, .slots = slots, .id = bytes_of(d + 1, (size_t)id.len)};
	if (now)
		STAILQ_INSERT_HEAD(&parts->debris, d, link);
	else
		STAILQ_INSERT_TAIL(&parts->debris, d, link);
}

void parts_forget(struct group *group, struct bytes id, uint8_t slots)
{
	parts_add(group, id, slots, false);
}

void assembly_leave(struct shard *shard, struct assembly *a, struct group *group, int64_t edition)
{
	struct part *next;
	if (a == NULL)
		return;
	for (struct part *p = TAILQ_FIRST(&a->parts); p != NULL; p = next) {
		next = TAILQ_NEXT(p, link);
		if (edition != 0 && p->edition > edition)
			continue;
		struct member *m = member_find(group, p->member);
		if (m != NULL)
			m->slots |= (uint8_t)(1u << p->slot);
		else
			parts_add(group, p->member, (uint8_t)(1u << p->slot), true);
		if (group->parts != NULL && p->edition > group->parts->last_edition)
			group->parts->last_edition = p->edition;
		part_free(shard, p);
	}
	bytes_free(&a->header);
	if (TAILQ_EMPTY(&a->parts))
		assembly_free(shard, a);
}

struct parts_loaded {
	struct shard *shard;
	struct assembly **list;
	size_t len;
};

static void parts_collect(struct table_node *n, void *arg)
{
	struct parts_loaded *l = arg;
	l->list[l->len++] = CONTAINER_OF(n, struct assembly, node);
}

/* A group that had nothing but unfinished parts is no group: they stay in the log, which no reader minds, until a group of that name is stored. */
void assemblies_loaded(struct shard *shard)
{
	struct parts_loaded l = {shard, malloc((shard->assemblies.count + 1) * sizeof(*l.list)), 0};
	if (l.list == NULL)
		return;
	table_each(&shard->assemblies, parts_collect, &l);
	for (size_t i = 0; i < l.len; i++) {
		struct group *group = group_find(shard, l.list[i]->group);
		if (!bytes_is_null(l.list[i]->header))
			shard->stats->log_replay_bad++;
		if (group != NULL)
			assembly_leave(shard, l.list[i], group, 0);
	}
	free(l.list);
}

void assemblies_free(struct shard *shard)
{
	for (uint32_t b = 0; b < shard->assemblies.buckets; b++)
		while (*table_slot(&shard->assemblies, b) != NULL)
			assembly_free(shard, CONTAINER_OF(*table_slot(&shard->assemblies, b), struct assembly, node));
	table_fini(&shard->assemblies);
	table_fini(&shard->parts);
}

/* ---- tombstones ---- */

void parts_durable(struct group *group, uint64_t commit)
{
	struct group_parts *parts = group->parts;
	if (parts == NULL || commit == 0)
		return;
	parts->durable = commit;
	parts->hold = false;
	parts->clear = commit == parts->submitted && parts->at.edition == 0;
	parts->clear_at = group->members_len;
}

static bool parts_debris_ready(const struct group_parts *parts)
{
	const struct debris *d = STAILQ_FIRST(&parts->debris);
	return d != NULL && d->after <= parts->durable;
}

bool parts_to_sweep(const struct group *group)
{
	const struct group_parts *parts = group->parts;
	return parts != NULL && !parts->hold && group->state != GROUP_DEAD && (parts_debris_ready(parts) || (parts->clear && parts->clear_at > 0));
}

struct parts_sweep {
	struct group *group;
	struct debris *last; /* of those that are put */
	uint32_t at;	     /* members from here on are put */
};

static void parts_put_slots(struct tombstones *t, uint8_t slots, struct bytes id)
{
	for (uint8_t slot = 0; slot < 2; slot++)
		if (slots >> slot & 1)
			tombstone_part(t, slot, id);
}

/* Debris first; the second call comes to the same end as the first. */
static void parts_put(struct tombstones *t, void *arg)
{
	struct parts_sweep *s = arg;
	const struct group *g = s->group;
	struct debris *d;
	unsigned int n = 0;
	s->last = NULL;
	s->at = g->parts->clear ? (g->parts->clear_at < g->members_len ? g->parts->clear_at : g->members_len) : 0;
	STAILQ_FOREACH(d, &g->parts->debris, link) {
		if (d->after > g->parts->durable || n++ == PARTS_SWEEP)
			break;
		parts_put_slots(t, d->slots, d->id);
		s->last = d;
	}
	for (; s->last == NULL && s->at > 0 && n < PARTS_SWEEP; n++) {
		const struct member *m = g->members[--s->at];
		parts_put_slots(t, m->slots, m->id);
	}
}

void parts_sweep(struct group *group, unsigned int *units, struct now now)
{
	struct group_parts *parts = group->parts;
	struct parts_sweep s = {.group = group};
	struct tombstones t = tombstones_of(group->id);
	int16_t error = tombstones_write(&t, group->shard, parts_put, &s, now);
	*units = *units > PARTS_SWEEP ? *units - PARTS_SWEEP : 0;
	if (error != 0) {
		parts->hold = true;
		return;
	}
	if (s.last == NULL) {
		while (parts->clear_at > group->members_len)
			parts->clear_at--;
		while (parts->clear_at > s.at)
			group->members[--parts->clear_at]->slots = 0;
		return;
	}
	for (struct debris *d; (d = STAILQ_FIRST(&parts->debris)) != NULL;) {
		bool last = d == s.last;
		STAILQ_REMOVE_HEAD(&parts->debris, link);
		free(d);
		if (last)
			break;
	}
}

void parts_tombstones(struct tombstones *t, const struct group *group)
{
	const struct debris *d;
	if (group == NULL || group->parts == NULL)
		return;
	STAILQ_FOREACH(d, &group->parts->debris, link)
		parts_put_slots(t, d->slots, d->id);
}
