/*
 * test_sendq.c - the send queue against a flat buffer, with random appends, drops and copies; and the pool's bounds.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/tcp/sendq.h"

#define MODEL_BYTES (1 << 20)

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

Test(sendq, like_a_flat_buffer)
{
	struct pool pool;
	struct sendq q = {NULL, NULL, NULL, 0, 0};
	uint8_t *model = malloc(MODEL_BYTES), *got = malloc(MODEL_BYTES);
	size_t len = 0;
	uint64_t random = 12345;
	cr_assert(pool_init(&pool, 4 << 20));
	for (int i = 0; i < 30000; i++) {
		size_t n = next_random(&random) % (i % 50 == 0 ? 20000 : 300);
		switch (next_random(&random) % 3) {
		case 0:
			if (len + n > MODEL_BYTES)
				break;
			for (size_t k = 0; k < n; k++)
				model[len + k] = (uint8_t)next_random(&random);
			cr_assert(sendq_append(&q, &pool, model + len, n));
			len += n;
			break;
		case 1:
			if (n > len)
				n = len;
			sendq_drop(&q, &pool, (uint32_t)n);
			memmove(model, model + n, len - n);
			len -= n;
			break;
		default: {
			size_t at = len == 0 ? 0 : next_random(&random) % len;
			size_t count = n < len - at ? n : len - at;
			sendq_copy(&q, (uint32_t)at, (uint32_t)count, got);
			cr_assert_eq(memcmp(got, model + at, count), 0);
		}
		}
		cr_assert_eq(q.len, len);
		cr_assert_leq(pool_used(&pool), len / POOL_DATA_BYTES + 2);
	}
	sendq_clear(&q, &pool);
	cr_expect_eq(pool_used(&pool), 0);
	cr_expect_null(q.head);
	pool_fini(&pool);
	free(model);
	free(got);
}

Test(sendq, append_is_all_or_nothing)
{
	struct pool pool;
	struct sendq q = {NULL, NULL, NULL, 0, 0};
	static uint8_t bytes[POOL_DATA_BYTES * (POOL_CHUNK_BLOCKS + 1)];
	cr_assert(pool_init(&pool, 1)); /* one chunk, whatever is asked */
	cr_expect(!sendq_append(&q, &pool, bytes, sizeof(bytes)));
	cr_expect_eq(q.len, 0);
	cr_expect_eq(pool_used(&pool), 0);
	cr_expect(sendq_append(&q, &pool, bytes, sizeof(bytes) - POOL_DATA_BYTES));
	cr_expect(!sendq_append(&q, &pool, bytes, 1));
	cr_expect(sendq_append(&q, &pool, bytes, 0));
	cr_expect_null(pool_get(&pool));
	sendq_drop(&q, &pool, POOL_DATA_BYTES);
	cr_expect(sendq_append(&q, &pool, bytes, 1));
	sendq_clear(&q, &pool);
	cr_expect_eq(pool_used(&pool), 0);
	pool_fini(&pool);
}

Test(sendq, pool_grows_by_chunks_up_to_its_bound)
{
	struct pool pool;
	struct pool_block *all = NULL;
	cr_assert(pool_init(&pool, 3 * POOL_CHUNK_BLOCKS * POOL_BLOCK_BYTES + 5000));
	cr_expect_eq(pool.blocks, POOL_CHUNK_BLOCKS);
	for (unsigned int i = 0; i < 3 * POOL_CHUNK_BLOCKS; i++) {
		struct pool_block *b = pool_get(&pool);
		cr_assert_not_null(b);
		memset(b->data, 0xee, POOL_DATA_BYTES);
		b->next = all;
		all = b;
	}
	cr_expect_null(pool_get(&pool));
	cr_expect_eq(pool.blocks, 3 * POOL_CHUNK_BLOCKS);
	for (struct pool_block *next; all != NULL; all = next) {
		next = all->next;
		pool_put(&pool, all);
	}
	cr_expect_eq(pool_used(&pool), 0);
	pool_fini(&pool);
}
