/* test_table.c - hash and table. */
#include <criterion/criterion.h>

#include "coordinator/group/hash.h"
#include "coordinator/group/table.h"

struct item {
	struct table_node node;
	uint32_t value;
};

static uint64_t hash_of(uint32_t v)
{
	struct hash_key key = {{1, 2}};
	return hash_bytes(&key, 9, bytes_of(&v, sizeof(v)));
}

static struct item *find(struct table *t, uint32_t v)
{
	for (struct table_node *n = table_chain(t, hash_of(v)); n != NULL; n = n->next)
		if (CONTAINER_OF(n, struct item, node)->value == v)
			return CONTAINER_OF(n, struct item, node);
	return NULL;
}

static void count(struct table_node *n, void *arg)
{
	(*(unsigned int *)arg)++;
}

Test(table, grows_and_finds_everything)
{
	enum { N = 20000 };
	static struct item items[N];
	static struct table t;
	cr_assert_null(find(&t, 0));
	for (uint32_t i = 0; i < N; i++) {
		items[i].value = i;
		cr_assert(table_add(&t, &items[i].node, hash_of(i)));
		if (i % 997 == 0)
			for (uint32_t j = 0; j <= i; j++)
				cr_assert_eq(find(&t, j), &items[j]);
	}
	cr_expect_eq(t.count, N);
	cr_expect_eq(t.buckets, N);
	unsigned int longest = 0;
	for (uint32_t i = 0; i < N; i++) {
		unsigned int len = 0;
		for (struct table_node *n = table_chain(&t, hash_of(i)); n != NULL; n = n->next)
			len++;
		longest = len > longest ? len : longest;
	}
	cr_expect_leq(longest, 14);
	for (uint32_t i = 0; i < N; i += 2)
		table_remove(&t, &items[i].node);
	for (uint32_t i = 0; i < N; i++)
		cr_assert_eq(find(&t, i), i % 2 ? &items[i] : NULL);
	unsigned int left = 0;
	table_each(&t, count, &left);
	cr_expect_eq(left, N / 2);
	table_fini(&t);
}

Test(hash, depends_on_key_tweak_and_every_byte)
{
	struct hash_key a = {{1, 2}}, b = {{1, 3}};
	uint8_t text[40];
	memset(text, 'x', sizeof(text));
	for (size_t len = 0; len < sizeof(text); len++) {
		uint64_t h = hash_bytes(&a, 0, bytes_of(text, len));
		cr_expect_neq(h, hash_bytes(&b, 0, bytes_of(text, len)));
		cr_expect_neq(h, hash_bytes(&a, 1, bytes_of(text, len)));
		cr_expect_neq(h, hash_bytes(&a, 0, bytes_of(text, len + 1)));
		for (size_t i = 0; i < len; i++) {
			text[i] ^= 1;
			cr_expect_neq(h, hash_bytes(&a, 0, bytes_of(text, len)));
			text[i] ^= 1;
		}
	}
	cr_expect_eq(hash_bytes(&a, 0, BYTES_NULL), hash_bytes(&a, 0, BYTES_EMPTY));
}
