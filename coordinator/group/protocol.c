/*
 * protocol.c - which protocols members offer, which newcomer fits, and who wins the vote.
 *
 * The shard's protocol table counts, per group and name, the members that offer it. A name is a candidate when the count equals the number
 * of members. Each member votes for the first candidate of its own list; the most votes win, and among equals the one that the leader
 * prefers.
 *
 * The table also counts by how many members a name is offered first. Where each of these names is a candidate, those counts are the votes, and where there
 * is one candidate it has won: so members are only asked in a group that changes its protocols and is left with two of them.
 */
#include "coordinator/group/group.h"

static struct protocol *protocol_find(struct group *group, struct bytes name, uint64_t *hash)
{
	*hash = hash_bytes(&group->shard->key, group->node.hash, name);
	for (struct table_node *n = table_chain(&group->shard->protocols, *hash); n != NULL; n = n->next) {
		struct protocol *p = CONTAINER_OF(n, struct protocol, node);
		if (n->hash == *hash && p->group == group && bytes_equal(p->name, name))
			return p;
	}
	return NULL;
}

static struct protocol *protocol_get(struct group *group, struct bytes name)
{
	uint64_t hash;
	struct protocol *p = protocol_find(group, name, &hash);
	if (p != NULL) {
		p->members++;
		return p;
	}
	size_t len = name.len > 0 ? (size_t)name.len : 0;
	p = calloc(1, sizeof(*p) + len);
	if (p == NULL)
		return NULL;
	if (len > 0)
		memcpy(p + 1, name.p, len);
	p->name = bytes_of(p + 1, len);
	p->group = group;
	p->members = 1;
	if (!table_add(&group->shard->protocols, &p->node, hash)) {
		free(p);
		return NULL;
	}
	return p;
}

static void protocol_free_unused(struct protocol *p)
{
	if (p->members > 0)
		return;
	table_remove(&p->group->shard->protocols, &p->node);
	free(p);
}

static bool offers_have(const struct offers *offers, const struct protocol *p)
{
	for (uint32_t i = 0; i < offers->len; i++)
		if (offers->list[i].protocol == p)
			return true;
	return false;
}

struct offers *offers_new(struct group *group, const struct join_group_request_protocol *list, int32_t len)
{
	CHECK(len >= 0 && len <= MEMBER_OFFERS_MAX);
	size_t size = sizeof(struct offers) + (size_t)len * sizeof(struct offer);
	for (int32_t i = 0; i < len; i++)
		size += list[i].metadata.len > 0 ? (size_t)list[i].metadata.len : 0;
	struct offers *o = malloc(size);
	if (o == NULL)
		return NULL;
	uint8_t *behind = (uint8_t *)&o->list[len];
	o->len = 0;
	for (int32_t i = 0; i < len; i++) {
		struct protocol *p = protocol_get(group, list[i].name);
		if (p == NULL) {
			offers_free(o);
			return NULL;
		}
		p->firsts += o->len == 0;
		if (offers_have(o, p)) { /* named twice: the first one counts */
			p->members--;
			continue;
		}
		size_t n = list[i].metadata.len > 0 ? (size_t)list[i].metadata.len : 0;
		if (n > 0)
			memcpy(behind, list[i].metadata.p, n);
		o->list[o->len++] = (struct offer){p, bytes_of(behind, n)};
		behind += n;
	}
	return o;
}

struct offers *offers_one(struct group *group, struct bytes name, struct bytes metadata)
{
	struct join_group_request_protocol one = {bytes_is_null(name) ? BYTES_EMPTY : name, metadata};
	return offers_new(group, &one, 1);
}

void offers_uncount(struct offers *offers)
{
	for (uint32_t i = 0; i < offers->len; i++) {
		CHECK(offers->list[i].protocol->members > 0);
		offers->list[i].protocol->members--;
		offers->list[i].protocol->firsts -= i == 0;
	}
}

void offers_recount(struct offers *offers)
{
	for (uint32_t i = 0; i < offers->len; i++) {
		offers->list[i].protocol->members++;
		offers->list[i].protocol->firsts += i == 0;
	}
}

void offers_release(struct offers *offers)
{
	for (uint32_t i = 0; i < offers->len; i++)
		protocol_free_unused(offers->list[i].protocol);
	free(offers);
}

void offers_free(struct offers *offers)
{
	offers_uncount(offers);
	offers_release(offers);
}

bool offers_equal(const struct offers *offers, const struct join_group_request_protocol *list, int32_t len)
{
	if (len < 0 || offers->len != (uint32_t)len)
		return false;
	for (uint32_t i = 0; i < offers->len; i++) {
		struct bytes metadata = bytes_is_null(list[i].metadata) ? BYTES_EMPTY : list[i].metadata;
		if (!bytes_equal(offers->list[i].protocol->name, list[i].name) || !bytes_equal(offers->list[i].metadata, metadata))
			return false;
	}
	return true;
}

bool protocols_accept(struct group *group, struct bytes type, const struct join_group_request_protocol *list, int32_t len)
{
	uint64_t hash;
	if (group->members_len == 0 && group->state == GROUP_EMPTY)
		return !bytes_is_empty(type) && len > 0;
	if (bytes_is_null(group->protocol_type) || !bytes_equal(group->protocol_type, type))
		return false;
	for (int32_t i = 0; i < len; i++) {
		const struct protocol *p = protocol_find(group, list[i].name, &hash);
		if (p != NULL && p->members == group->members_len)
			return true;
		if (group->members_len == 0) /* all have left, the join phase still runs: anything goes */
			return true;
	}
	return false;
}

static struct protocol *protocols_vote(const struct group *group, const struct member *m)
{
	for (uint32_t i = 0; i < m->offers->len; i++)
		if (m->offers->list[i].protocol->members == group->members_len)
			return m->offers->list[i].protocol;
	return NULL;
}

static void protocols_ask(const struct group *group, const struct member *first)
{
	for (uint32_t i = 0; i < first->offers->len; i++)
		first->offers->list[i].protocol->votes = 0;
	for (uint32_t i = 0; i < group->members_len; i++)
		protocols_vote(group, group->members[i])->votes++;
}

struct bytes protocols_select(struct group *group)
{
	CHECK(group->members_len > 0);
	const struct member *first = group->leader != NULL ? group->leader : group->members[0];
	uint32_t candidates = 0, votes = 0;
	for (uint32_t i = 0; i < first->offers->len; i++) {
		struct protocol *p = first->offers->list[i].protocol;
		bool candidate = p->members == group->members_len;
		p->votes = candidate ? p->firsts : 0;
		candidates += candidate;
		votes += p->votes;
	}
	if (candidates > 1 && votes < group->members_len)
		protocols_ask(group, first);
	const struct protocol *best = NULL;
	for (uint32_t i = 0; i < first->offers->len; i++) {
		const struct protocol *p = first->offers->list[i].protocol;
		if (p->members != group->members_len)
			continue;
		/* Kafka leaves a tie open; what is in use stays, then the leader's wish counts. */
		if (best == NULL || p->votes > best->votes || (p->votes == best->votes && bytes_equal(p->name, group->protocol)))
			best = p;
	}
	return best == NULL ? BYTES_NULL : best->name;
}
