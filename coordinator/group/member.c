/*
 * member.c - members: memory, identity, parked requests, sessions.
 *
 * Members come from slabs of MEMBER_SLAB that the shard frees only at its end (group.h says why). A free member has tag 0.
 */
#include "coordinator/group/group.h"

#define MEMBER_SLAB 64

struct slab {
	struct slab *next;
	struct member members[MEMBER_SLAB];
};

/* ---- memory ---- */

static struct member *member_get(struct shard *shard)
{
	if (shard->free_members == NULL) {
		struct slab *slab = calloc(1, sizeof(*slab));
		if (slab == NULL)
			return NULL;
		slab->next = shard->slabs;
		shard->slabs = slab;
		for (unsigned int i = MEMBER_SLAB; i-- > 0;) {
			slab->members[i].text = shard->free_members;
			shard->free_members = &slab->members[i];
		}
	}
	struct member *m = shard->free_members;
	shard->free_members = m->text;
	memset(m, 0, sizeof(*m));
	m->tag = ++shard->next_tag;
	return m;
}

static void member_put(struct shard *shard, struct member *m)
{
	m->tag = 0;
	m->group = NULL;
	m->text = shard->free_members;
	shard->free_members = m;
}

void members_free_slabs(struct shard *shard)
{
	while (shard->slabs != NULL) {
		struct slab *slab = shard->slabs;
		shard->slabs = slab->next;
		free(slab);
	}
	shard->free_members = NULL;
}

/* ---- identity ---- */

static char member_hex(uint64_t v)
{
	return "0123456789abcdef"[v & 15];
}

/* 36 characters of a random (version 4) UUID. */
static void member_uuid(struct shard *shard, char *out)
{
	uint64_t n = ++shard->random_counter;
	uint64_t hi = hash_bytes(&shard->key, ~n, BYTES_LITERAL("member id high"));
	uint64_t lo = hash_bytes(&shard->key, ~n, BYTES_LITERAL("member id low"));
	hi = (hi & ~0xf000ull) | 0x4000ull;
	lo = (lo & ~(3ull << 62)) | 2ull << 62;
	for (unsigned int i = 0; i < 32; i++) {
		uint64_t word = i < 16 ? hi : lo;
		if (i == 8 || i == 12 || i == 16 || i == 20)
			*out++ = '-';
		*out++ = member_hex(word >> (60 - 4 * (i % 16)));
	}
}

struct bytes member_make_id(struct shard *shard, struct bytes prefix)
{
	size_t len = prefix.len > 0 ? (size_t)prefix.len : 0;
	if (len > RECORD_STRING_MAX - 37) { /* cut where a UTF-8 character begins */
		len = RECORD_STRING_MAX - 37;
		while (len > 0 && (prefix.p[len] & 0xc0) == 0x80)
			len--;
	}
	char *id = shard_scratch(shard, len + 37);
	if (id == NULL)
		return BYTES_NULL;
	if (len > 0)
		memcpy(id, prefix.p, len);
	id[len] = '-';
	member_uuid(shard, id + len + 1);
	return bytes_of(id, len + 37);
}

struct member *member_find(struct group *group, struct bytes id)
{
	uint64_t hash = hash_bytes(&group->shard->key, group->node.hash, id);
	for (struct table_node *n = table_chain(&group->shard->members, hash); n != NULL; n = n->next) {
		struct member *m = CONTAINER_OF(n, struct member, by_id);
		if (n->hash == hash && m->group == group && bytes_equal(m->id, id))
			return m;
	}
	return NULL;
}

struct member *member_find_instance(struct group *group, struct bytes instance_id)
{
	uint64_t hash = hash_bytes(&group->shard->key, group->node.hash, instance_id);
	for (struct table_node *n = table_chain(&group->shard->instances, hash); n != NULL; n = n->next) {
		struct member *m = CONTAINER_OF(n, struct member, by_instance);
		if (n->hash == hash && m->group == group && bytes_equal(m->instance_id, instance_id))
			return m;
	}
	return NULL;
}

static struct bytes member_pack(uint8_t **at, struct bytes b)
{
	if (b.len < 0)
		return BYTES_NULL;
	struct bytes out = bytes_of(*at, (size_t)b.len);
	if (b.len > 0)
		memcpy(*at, b.p, (size_t)b.len);
	*at += b.len;
	return out;
}

static bool member_set_text(struct member *m, const struct member_text *t)
{
	size_t len = 1;
	len += t->id.len > 0 ? (size_t)t->id.len : 0;
	len += t->instance_id.len > 0 ? (size_t)t->instance_id.len : 0;
	len += t->client_id.len > 0 ? (size_t)t->client_id.len : 0;
	len += t->host.len > 0 ? (size_t)t->host.len : 0;
	uint8_t *text = malloc(len), *at = text;
	if (text == NULL)
		return false;
	m->id = member_pack(&at, t->id);
	m->instance_id = member_pack(&at, t->instance_id);
	m->client_id = member_pack(&at, t->client_id);
	m->host = member_pack(&at, t->host);
	free(m->text);
	m->text = text;
	return true;
}

/* ---- adding and removing ---- */

/* The group knows its largest rebalance timeout as long as a member has it that was counted. */
static void member_count_timeout(struct member *m)
{
	struct group *g = m->group;
	if (g->timeout_members == 0 && g->members_len > 1)
		return; /* to be looked for */
	if (g->timeout_members == 0 || m->rebalance_timeout_ms > g->timeout_max) {
		g->timeout_max = m->rebalance_timeout_ms;
		g->timeout_members = 1;
	} else {
		g->timeout_members += m->rebalance_timeout_ms == g->timeout_max;
	}
}

static void member_uncount_timeout(struct member *m)
{
	struct group *g = m->group;
	g->timeout_members -= g->timeout_members > 0 && m->rebalance_timeout_ms == g->timeout_max;
}

void member_set_timeouts(struct member *m, int32_t session_ms, int32_t rebalance_ms)
{
	m->session_timeout_ms = session_ms;
	if (m->rebalance_timeout_ms == rebalance_ms)
		return;
	member_uncount_timeout(m);
	m->rebalance_timeout_ms = rebalance_ms;
	member_count_timeout(m);
}

void member_set_synced(struct member *m)
{
	if (!member_unsynced(m))
		return;
	m->synced = m->group->sync_number;
	m->group->unsynced--;
}

static bool member_index(struct group *group, struct member *m)
{
	if (group->members_len == group->members_cap) {
		uint32_t cap = group->members_cap == 0 ? 2 : group->members_cap * 2;
		struct member **grown = realloc(group->members, cap * sizeof(*grown));
		if (grown == NULL)
			return false;
		group->members = grown;
		group->members_cap = cap;
	}
	m->index = group->members_len;
	group->members[group->members_len++] = m;
	return true;
}

struct member *member_add(struct group *group, const struct member_text *text, struct offers *offers)
{
	struct shard *shard = group->shard;
	struct member *m = member_get(shard);
	if (m == NULL) {
		offers_free(offers);
		return NULL;
	}
	m->group = group;
	m->offers = offers;
	m->assignment = BYTES_EMPTY;
	m->assigned = group->assigned;
	m->synced = group->sync_number;
	bool ok = member_set_text(m, text) && table_add(&shard->members, &m->by_id, hash_bytes(&shard->key, group->node.hash, m->id));
	if (ok && !bytes_is_null(m->instance_id) &&
	    !table_add(&shard->instances, &m->by_instance, hash_bytes(&shard->key, group->node.hash, m->instance_id))) {
		table_remove(&shard->members, &m->by_id);
		ok = false;
	}
	if (ok && !member_index(group, m)) {
		table_remove(&shard->members, &m->by_id);
		if (!bytes_is_null(m->instance_id))
			table_remove(&shard->instances, &m->by_instance);
		ok = false;
	}
	if (!ok) {
		offers_free(offers);
		free(m->text);
		member_put(shard, m);
		return NULL;
	}
	if (group->leader == NULL)
		group->leader = m;
	member_count_timeout(m);
	shard->stats->group_members_now++;
	return m;
}

static void member_unlink(struct member *m)
{
	struct group *group = m->group;
	table_remove(&group->shard->members, &m->by_id);
	if (!bytes_is_null(m->instance_id))
		table_remove(&group->shard->instances, &m->by_instance);
	CHECK(group->members[m->index] == m);
	struct member *last = group->members[--group->members_len];
	group->members[m->index] = last;
	last->index = m->index;
	member_set_synced(m);
	member_uncount_timeout(m);
	if (group->leader == m)
		group->leader = group->members_len > 0 ? group->members[0] : NULL;
}

void member_remove(struct member *m, int16_t join_error, struct now now)
{
	struct shard *shard = m->group->shard;
	struct request *join = member_unpark_join(m);
	struct request *sync = member_unpark_sync(m);

	purgatory_cancel(&m->session);
	if (m->slots != 0)
		parts_forget(m->group, m->id, m->slots);
	member_unlink(m);
	offers_free(m->offers);
	bytes_free(&m->assignment);
	free(m->text);
	member_put(shard, m);
	shard->stats->group_members_now--;
	if (join != NULL)
		join_answer_error(join, join_error, BYTES_EMPTY, now);
	if (sync != NULL)
		sync_answer_error(sync, ERROR_UNKNOWN_MEMBER_ID, now);
}

bool member_rename(struct member *m, struct bytes id)
{
	struct shard *shard = m->group->shard;
	struct member_text text = {id, m->instance_id, m->client_id, m->host};
	if (!member_set_text(m, &text))
		return false;
	table_remove(&shard->members, &m->by_id);
	bool added = table_add(&shard->members, &m->by_id, hash_bytes(&shard->key, m->group->node.hash, m->id));
	CHECK(added); /* the table has buckets: this member was in it */
	m->tag = ++shard->next_tag;
	return true;
}

void member_set_origin(struct member *m, struct bytes client_id, struct bytes host)
{
	struct member_text text = {m->id, m->instance_id, client_id, host};
	if (!bytes_equal(m->client_id, client_id) || !bytes_equal(m->host, host))
		member_set_text(m, &text);
}

void member_set_offers(struct member *m, struct offers *offers)
{
	offers_free(m->offers);
	m->offers = offers;
}

struct bytes member_metadata(const struct member *m)
{
	for (uint32_t i = 0; i < m->offers->len; i++)
		if (bytes_equal(m->offers->list[i].protocol->name, m->group->protocol))
			return m->offers->list[i].metadata;
	/* a replayed group without a protocol */
	return m->offers->len == 1 && bytes_is_null(m->group->protocol) ? m->offers->list[0].metadata : BYTES_EMPTY;
}

/* ---- parked requests ---- */

static void member_join_dropped(struct request *rq, struct now now)
{
	struct member *m = rq->holder;
	struct group *group = m->group;
	CHECK(m->join == rq);
	member_unpark_join(m);
	if (!m->unnamed) {
		if (group->closing)
			m->dropped = group->closings;
		member_touch(m, now);
		return;
	}
	group->shard->stats->group_join_dropped++;
	removal_note(m, REMOVAL_CONNECTION_CLOSED, BYTES_NULL, now);
	journal_open(group, JOURNAL_MEMBER_DROPPED, m, now);
	member_remove(m, ERROR_UNKNOWN_MEMBER_ID, now);
	rebalance_after_removal(group, JOURNAL_MEMBER_DROPPED, now);
}

static void member_sync_dropped(struct request *rq, struct now now)
{
	struct member *m = rq->holder;
	CHECK(m->sync == rq);
	member_unpark_sync(m);
	member_touch(m, now);
}

struct request *member_unpark_join(struct member *m)
{
	struct request *rq = m->join;
	if (rq == NULL)
		return NULL;
	m->join = NULL;
	CHECK(m->group->waiting > 0);
	m->group->waiting--;
	return rq;
}

struct request *member_unpark_sync(struct member *m)
{
	struct request *rq = m->sync;
	if (rq == NULL)
		return NULL;
	m->sync = NULL;
	CHECK(m->group->syncing > 0);
	m->group->syncing--;
	return rq;
}

void member_park_join(struct member *m, struct request *rq, struct now now)
{
	struct request *older = member_unpark_join(m);
	struct request *sync = member_unpark_sync(m); /* of the generation that this ends */
	m->join = rq;
	m->group->waiting++;
	m->group->journal.last_tag = m->tag;
	request_park(rq, REQUEST_WAIT_GROUP, member_join_dropped, m);
	if (m->is_new) /* also when it comes back after its connection was lost, which had left it one session */
		member_start_new_timer(m, now);
	if (older != NULL) /* the same client asked again, most likely on a new connection */
		join_answer_error(older, ERROR_REBALANCE_IN_PROGRESS, m->id, now);
	if (sync != NULL)
		sync_answer_error(sync, ERROR_REBALANCE_IN_PROGRESS, now);
}

void member_park_sync(struct member *m, struct request *rq, struct now now)
{
	struct request *older = member_unpark_sync(m);
	m->sync = rq;
	m->group->syncing++;
	request_park(rq, REQUEST_WAIT_GROUP, member_sync_dropped, m);
	if (older != NULL)
		sync_answer_error(older, ERROR_REBALANCE_IN_PROGRESS, now);
}

/* ---- sessions ---- */

static void member_expired(struct purgatory_op *op, struct now now)
{
	struct member *m = CONTAINER_OF(op, struct member, session);
	struct group *group = m->group;
	if (!m->is_new && (m->join != NULL || m->sync != NULL))
		return; /* parked is alive; the answer starts the session again */
	group->shard->stats->group_expired++;
	removal_note(m, m->is_new && m->join != NULL ? REMOVAL_NEVER_JOINED : REMOVAL_EXPIRED, BYTES_NULL, now);
	journal_open(group, JOURNAL_MEMBER_EXPIRED, m, now);
	member_remove(m, ERROR_UNKNOWN_MEMBER_ID, now);
	rebalance_changed(group, now);
	if (group->state == GROUP_PREPARING)
		rebalance_after_expiry(group, now);
	else
		rebalance_after_removal(group, JOURNAL_MEMBER_EXPIRED, now);
}

static const struct purgatory_kind member_session = {"session", NULL, NULL, member_expired, true};

static void member_session_until(struct member *m, uint64_t deadline, struct now now)
{
	struct purgatory *p = &m->group->shard->purgatory;
	if (likely(purgatory_waiting(&m->session)))
		purgatory_postpone(p, &m->session, deadline);
	else
		purgatory_start(p, &m->session, &member_session, NULL, deadline, now);
}

void member_touch_rarely(struct member *m, struct now now)
{
	if (unlikely(m->is_new && m->join != NULL))
		return; /* keeps its new-member time */
	member_session_until(m, deadline_after(now, m->session_timeout_ms), now);
}

void member_start_new_timer(struct member *m, struct now now)
{
	member_session_until(m, deadline_after(now, MEMBER_NEW_TIMEOUT_MS), now);
}
