/*
 * test_corrupt.c - any bytes may go bad, anywhere in the files of a log: recovery ends, gives away nothing that was not written, and what a start has skipped
 * once the next one finds in order.
 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "life.h"

static struct life *written(uint64_t seed)
{
	struct life *l = life_new(seed);
	cr_assert(life_start(l));
	for (unsigned int i = 0; i < 60; i++) {
		uint64_t dice = sim_random(&l->random);
		life_append(l, (unsigned int)dice % LIFE_SHARDS, 1 + (unsigned int)(dice >> 8) % 4, (size_t)(dice >> 16) % 1500);
		for (unsigned int k = 0; k < (dice >> 32) % 30; k++)
			life_poll(l);
	}
	life_settle(l);
	life_cut(l, false);
	return l;
}

/* A file that holds blocks; NULL: none was hit on. */
static const char *some_segment(struct life *l)
{
	int n = 0;
	while (sim_disk_name(l->disk, n) != NULL)
		n++;
	const char *name = sim_disk_name(l->disk, (int)(sim_random(&l->random) % (uint64_t)n));
	return strcmp(name, "meta") == 0 ? NULL : name;
}

static void corrupt(struct life *l)
{
	const char *name = some_segment(l);
	size_t len;
	if (name == NULL)
		return;
	uint8_t *p = sim_disk_bytes(l->disk, name, &len);
	uint64_t dice = sim_random(&l->random), at = sim_random(&l->random) % len, from = sim_random(&l->random) % len;
	size_t blocks = len / FORMAT_ALIGN;
	switch (dice % 5) {
	case 0: /* a bit, most of them in what was written */
		sim_disk_flip(l->disk, name, dice & 64 ? at : at % (len / 4), (uint8_t)(1 << (dice >> 8) % 8));
		break;
	case 1: /* the head of a block */
		sim_disk_flip(l->disk, name, at / FORMAT_ALIGN * FORMAT_ALIGN + (dice >> 8) % BLOCK_HEAD, (uint8_t)(1 + (dice >> 16) % 255));
		break;
	case 2: /* a sector of zeros */
		memset(p + at / 512 * 512, 0, 512);
		break;
	case 3: /* a block in the place of another one */
		memmove(p + at % blocks * FORMAT_ALIGN, p + from % blocks * FORMAT_ALIGN, FORMAT_ALIGN);
		break;
	default: /* noise */
		for (size_t i = 0; i < 64 && at + i < len; i++)
			p[at + i] = (uint8_t)sim_random(&l->random);
	}
}

/* Written by the ledger's hand, each batch once, each shard in its order. */
static void check_found(const struct life *l, uint64_t seed)
{
	unsigned int before[LIFE_SHARDS] = {0};
	cr_assert(!l->bad, "seed %d: %s", (int)seed, l->said);
	for (unsigned int i = 0; i < l->found_len; i++) {
		unsigned int shard = l->batches[l->found[i]].shard;
		cr_assert(l->found[i] >= before[shard], "seed %d", (int)seed);
		before[shard] = l->found[i] + 1;
	}
}

Test(corrupt, whatever_goes_bad)
{
	unsigned int refused = 0, lost = 0;
	for (uint64_t seed = 1; seed <= 400; seed++) {
		struct life *l = written(seed);
		for (uint64_t n = seed % 7; n < 8; n++)
			corrupt(l);
		if (!life_start(l)) {
			refused++;
			l->skip_damaged = true;
			cr_assert(life_start(l), "seed %d: %s", (int)seed, l->err);
		}
		check_found(l, seed);
		unsigned int found = l->found_len;
		lost += found < l->len;
		l->skip_damaged = false;
		life_cut(l, true);
		cr_assert(life_start(l), "seed %d, again: %s", (int)seed, l->err);
		check_found(l, seed);
		cr_assert_eq(l->found_len, found, "seed %d: %u, then %u: %s", (int)seed, found, l->found_len, l->said);
		cr_assert_eq(l->lost_blocks, 0);
		life_free(l);
	}
	cr_assert_gt(refused, 100, "the test does hit what counts: %u", refused);
	cr_assert_gt(lost, 100, "%u", lost);
}
