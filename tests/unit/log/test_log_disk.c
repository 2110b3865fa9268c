/*
 * test_log_disk.c - what callers see: when a batch becomes durable, what a full or a broken disk does, how segments follow each other.
 */
#include <criterion/criterion.h>

#include "life.h"

static struct log_disk_status status(struct life *l)
{
	struct log_disk_status s;
	log_disk_status(l->log, &s);
	return s;
}

static struct life *started(uint64_t seed)
{
	struct life *l = life_new(seed);
	cr_assert(life_start(l), "%s", l->err);
	cr_assert(life_check(l));
	return l;
}

/* Lets the next segment be made, so that only commits are left to happen. */
static void quiet(struct life *l)
{
	for (int i = 0; i < 200; i++)
		life_poll(l);
	l->disk->lazy = true;
}

Test(log_disk, a_lone_append_is_written_by_the_next_poll)
{
	struct life *l = started(1);
	quiet(l);
	uint64_t writes = l->disk->writes;
	cr_assert_eq(life_append(l, 1, 3, 50), 0);
	cr_assert_eq(log_durable(l->log), 0);
	life_poll(l);
	cr_assert_eq(l->disk->writes, writes + 1, "it waits for nothing");
	cr_assert_eq(log_durable(l->log), 0, "and is not durable before the disk says so");
	disk_wait(&l->disk->disk);
	life_poll(l);
	cr_assert_eq(log_durable(l->log), 3);
	life_free(l);
}

Test(log_disk, what_comes_during_a_flush_shares_the_next)
{
	struct life *l = started(2);
	quiet(l);
	uint64_t writes = l->disk->writes;
	life_append(l, 0, 1, 10);
	life_poll(l);
	for (unsigned int i = 0; i < 100; i++) {
		cr_assert_eq(life_append(l, i % LIFE_SHARDS, 1, 10), 0);
		life_poll(l);
	}
	cr_assert_eq(l->disk->writes, writes + 1);
	disk_wait(&l->disk->disk);
	life_poll(l);
	cr_assert_eq(log_durable(l->log), 1);
	cr_assert_eq(l->disk->writes, writes + 2);
	disk_wait(&l->disk->disk);
	life_poll(l);
	cr_assert_eq(log_durable(l->log), 101);
	cr_assert_eq(l->disk->writes, writes + 2);
	life_free(l);
}

/* Ever more segments until the disk is full; refused, clearly and at once; room again: goes on; everything acknowledged is there. */
Test(log_disk, full_disk)
{
	struct life *l = started(3);
	l->disk->capacity = 6 * 32 * 1024;
	int16_t error = 0;
	for (int i = 0; i < 4000 && error == 0; i++) {
		error = life_append(l, (unsigned int)i % LIFE_SHARDS, 2, 700);
		life_settle(l);
		for (int k = 0; k < 30; k++)
			life_poll(l);
	}
	cr_assert_eq(error, 19);
	cr_assert(status(l).full && !status(l).failed);
	cr_assert_eq(life_append(l, 0, 2, 700), 19);
	cr_assert(strstr(l->said, "log: FULL") != NULL, "%s", l->said);
	cr_assert(strstr(strstr(l->said, "FULL") + 4, "FULL") == NULL, "said once");
	cr_assert_eq(l->acked, l->len, "what was taken is acknowledged");
	l->disk->capacity *= 4;
	l->now.us += 3 * 1000000;
	for (int i = 0; i < 400; i++)
		life_poll(l);
	cr_assert_eq(life_append(l, 0, 2, 700), 0, "room again");
	cr_assert(strstr(l->said, "room again") != NULL);
	life_settle(l);
	cr_assert_eq(l->acked, l->len);
	life_cut(l, false);
	cr_assert(life_start(l), "%s", l->err);
	cr_assert(life_check(l));
	life_free(l);
}

Test(log_disk, total_bytes_bounds_the_disk)
{
	struct life *l = life_new(4);
	l->total_bytes = 5 * 32 * 1024;
	cr_assert(life_start(l));
	for (int i = 0; i < 3000; i++) {
		life_append(l, 0, 1, 1000);
		life_poll(l);
		cr_assert_leq(status(l).bytes, l->total_bytes);
		cr_assert_leq(l->disk->used, l->total_bytes + 2 * FORMAT_ALIGN);
	}
	cr_assert_gt(status(l).refused, 10);
	cr_assert(strstr(l->said, "log.total.bytes") != NULL, "%s", l->said);
	life_settle(l);
	cr_assert_eq(l->acked, l->len);
	life_free(l);
}

/* The write that fails may be there or not, its batch was never acknowledged; nothing is written after it. */
Test(log_disk, failed_write_is_final)
{
	for (uint64_t seed = 1; seed < 30; seed++) {
		struct life *l = started(seed);
		for (int i = 0; i < 40; i++) {
			life_append(l, 1, 1, 300);
			life_settle(l);
		}
		quiet(l);
		l->disk->lazy = false;
		unsigned int acked = l->acked;
		l->disk->fail_write = 1;
		cr_assert_eq(life_append(l, 2, 1, 300), 0);
		for (int i = 0; i < 60; i++)
			life_poll(l);
		cr_assert(status(l).failed);
		cr_assert(strstr(l->said, "log: FAILED") != NULL, "%s", l->said);
		uint64_t writes = l->disk->writes;
		cr_assert_eq(life_append(l, 2, 1, 300), 56);
		for (int i = 0; i < 200; i++)
			life_poll(l);
		cr_assert_eq(l->disk->writes, writes, "not retried");
		cr_assert_eq(l->acked, acked);
		life_cut(l, seed % 2 == 0);
		cr_assert(life_start(l), "%s", l->err);
		cr_assert(life_check(l));
		life_free(l);
	}
}

Test(log_disk, a_batch_longer_than_a_segment)
{
	struct life *l = started(5);
	cr_assert_eq(life_append(l, 0, 1, 40000), 10);
	cr_assert_eq(life_append(l, 0, 1, 24000), 0, "one that fits is taken");
	life_settle(l);
	cr_assert_eq(l->acked, 1);
	life_free(l);
}

Test(log_disk, offsets_and_epochs_go_on)
{
	struct life *l = started(6);
	life_append(l, 2, 3, 10);
	life_append(l, 2, 2, 10);
	life_append(l, 3, 1, 10);
	life_settle(l);
	life_stop(l);
	cr_assert(life_start(l) && life_check(l));
	cr_assert_eq(l->start, 2);
	cr_assert_eq(l->next_offset[2], 5);
	cr_assert_eq(l->next_offset[3], 1);
	cr_assert_eq(l->next_offset[0], 0);
	cr_assert_eq(l->epoch[2], 0);
	cr_assert_eq(l->epoch[0], -1);
	life_append(l, 2, 1, 10);
	life_settle(l);
	life_stop(l);
	cr_assert(life_start(l) && life_check(l));
	cr_assert_eq(l->next_offset[2], 6);
	cr_assert_eq(l->epoch[2], 1, "each start is a leader epoch");
	cr_assert_eq(l->epoch[3], 0);
	life_free(l);
}

/* Ending in order writes what nobody waited for. */
Test(log_disk, free_drains)
{
	struct life *l = started(7);
	for (int i = 0; i < 50; i++)
		life_append(l, 0, 1, 100);
	life_stop(l);
	cr_assert(life_start(l) && life_check(l));
	cr_assert_eq(l->found_len, 50);
	life_free(l);
}

/* Starts and stops without work do not fill the disk. */
Test(log_disk, idle_restarts_cost_nothing)
{
	struct life *l = started(8);
	life_append(l, 0, 1, 100);
	life_settle(l);
	for (int i = 0; i < 30; i++) {
		life_stop(l);
		cr_assert(life_start(l) && life_check(l));
	}
	cr_assert_leq(l->recovered_bytes, 3 * FORMAT_ALIGN);
	life_free(l);
}
