/*
 * test_arena.c - the arena of a request.
 */
#include <criterion/criterion.h>

#include "coordinator/wire/arena.h"

Test(arena, aligns_and_ends_where_it_should)
{
	static _Alignas(16) uint8_t block[64];
	struct arena a = arena_of(block, sizeof(block));
	cr_assert_eq(arena_alloc(&a, 3, 1), (void *)block);
	cr_assert_eq(arena_alloc(&a, 2, 8), (void *)(block + 16));
	cr_assert_eq(arena_alloc(&a, 33, 1), NULL);
	cr_assert_eq(arena_alloc(&a, 32, 1), (void *)(block + 32));
	cr_assert_eq(arena_alloc(&a, 1, 1), NULL);
	arena_reset(&a);
	cr_assert_eq(arena_alloc(&a, 64, 1), (void *)block);
}

Test(arena, a_product_that_overflows_is_refused)
{
	static uint8_t block[64];
	struct arena a = arena_of(block, sizeof(block));
	cr_assert_eq(arena_alloc(&a, SIZE_MAX / 2, 4), NULL);
	cr_assert_eq(arena_alloc(&a, SIZE_MAX, 1), NULL);
	cr_assert_eq(a.used, 0);
}
