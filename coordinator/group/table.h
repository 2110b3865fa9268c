/*
 * table.h - a hash table of embedded nodes that grows one bucket per insertion (linear hashing), so no insertion ever stalls for a rehash.
 *
 * Buckets live in segments that are never moved: segment 0 has 16 buckets, segment s > 0 the 8 << s buckets from index 8 << s on.
 * With B buckets and m the smallest power of two >= B, a hash belongs to bucket h mod m, or, when that does not exist yet, h mod m/2.
 *
 * Invariants:
 *  1. Adding bucket b moves nodes of one other bucket only (b without its top bit).
 *  2. There are at least as many buckets as nodes, unless memory ran out; then chains get longer and nothing else happens.
 *  3. The table owns the segments, never the nodes. Equality is the caller's: it walks the chain and compares keys.
 */
#ifndef MUSTER_GROUP_TABLE_H
#define MUSTER_GROUP_TABLE_H

#include <stdlib.h>
#include <string.h>

#include "muster/check.h"

#define TABLE_FIRST 16u
#define TABLE_SEGMENTS 28

struct table_node {
	struct table_node *next;
	uint64_t hash;
};

struct table {
	struct table_node **segment[TABLE_SEGMENTS];
	uint32_t buckets;
	uint32_t count;
};

static inline struct table_node **table_slot(struct table *t, uint32_t bucket)
{
	if (bucket < TABLE_FIRST)
		return &t->segment[0][bucket];
	unsigned int s = 31u - (unsigned int)__builtin_clz(bucket) - 3u;
	return &t->segment[s][bucket - (8u << s)];
}

static inline uint32_t table_bucket(const struct table *t, uint64_t hash)
{
	uint32_t m = t->buckets <= 1 ? 1 : 2u << (31 - __builtin_clz(t->buckets - 1));
	uint32_t b = (uint32_t)hash & (m - 1);
	return b < t->buckets ? b : b & (m / 2 - 1);
}

/* The chain that holds all nodes of this hash, and others; NULL when it is empty. */
static inline struct table_node *table_chain(struct table *t, uint64_t hash)
{
	return t->buckets == 0 ? NULL : *table_slot(t, table_bucket(t, hash));
}

static inline void table_grow(struct table *t)
{
	uint32_t b = t->buckets;
	unsigned int s = b < TABLE_FIRST ? 0 : 31u - (unsigned int)__builtin_clz(b) - 3u;
	if (s >= TABLE_SEGMENTS)
		return;
	if (t->segment[s] == NULL) {
		t->segment[s] = calloc(s == 0 ? TABLE_FIRST : 8u << s, sizeof(struct table_node *));
		if (t->segment[s] == NULL)
			return;
	}
	t->buckets++;
	if (b == 0)
		return;
	struct table_node **from = table_slot(t, b & ~(1u << (31 - __builtin_clz(b))));
	struct table_node **to = table_slot(t, b);
	while (*from != NULL) {
		struct table_node *n = *from;
		if (table_bucket(t, n->hash) != b) {
			from = &n->next;
			continue;
		}
		*from = n->next;
		n->next = *to;
		*to = n;
	}
}

/* False: no memory for the very first bucket. */
static inline bool table_add(struct table *t, struct table_node *n, uint64_t hash)
{
	if (t->count >= t->buckets)
		table_grow(t);
	if (t->buckets == 0)
		return false;
	struct table_node **slot = table_slot(t, table_bucket(t, hash));
	n->hash = hash;
	n->next = *slot;
	*slot = n;
	t->count++;
	return true;
}

/* `n` must be in the table. */
static inline void table_remove(struct table *t, struct table_node *n)
{
	struct table_node **at = table_slot(t, table_bucket(t, n->hash));
	while (*at != n) {
		CHECK(*at != NULL);
		at = &(*at)->next;
	}
	*at = n->next;
	n->next = NULL;
	t->count--;
}

/* Calls `visit` for every node; it may free the node it is given but must not touch the table otherwise. */
static inline void table_each(struct table *t, void (*visit)(struct table_node *n, void *arg), void *arg)
{
	for (uint32_t b = 0; b < t->buckets; b++) {
		struct table_node *n = *table_slot(t, b);
		while (n != NULL) {
			struct table_node *next = n->next;
			visit(n, arg);
			n = next;
		}
	}
}

/* Frees the segments; the nodes are the caller's. */
static inline void table_fini(struct table *t)
{
	for (unsigned int s = 0; s < TABLE_SEGMENTS; s++)
		free(t->segment[s]);
	memset(t, 0, sizeof(*t));
}

#endif
