/* test_loading.c - a shard that another thread is filling: what it answers, that it looks at nothing, and that it serves in full when it is handed over. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "rig.h"

static struct rig *r;
static struct stats *own;

static void setup(void)
{
	r = rig_new();
	own = aligned_alloc(MUSTER_CACHE_LINE, sizeof(*own));
	memset(own, 0, sizeof(*own));
}

static void teardown(void)
{
	rig_free(r);
	free(own);
}

TestSuite(loading, .init = setup, .fini = teardown);

static void no_offset(void *arg, struct bytes topic, int32_t partition, const struct offset_value *value)
{
	cr_assert_fail();
}

Test(loading, answers)
{
	struct call *c[2];
	rig_stable(r, c, 2);
	cr_assert_eq(rig_commit(r, 8, c[0]->id, NULL, 1, "t:0=5")->codes[0], 0);
	rig_settle(r);
	uint64_t records = rig_log_records(r), joins = r->stats.group_joins;
	shard_load_begin(r->shard, own);
	cr_expect(shard_is_loading(r->shard));
	cr_expect_eq(shard_tick(r->shard, 100, r->now), TIME_NEVER);
	/* of members and of strangers */
	cr_expect_eq(rig_heartbeat(r, c[0]->id, NULL, 1)->error, 0);
	cr_expect_eq(rig_heartbeat(r, "nobody", NULL, 77)->error, 0);
	cr_expect_eq(rig_heartbeat_to(r, "", "nobody", NULL, 77)->error, 24);
	cr_expect_eq(rig_sync(r, 5, c[0]->id, NULL, 1, "")->error, 27);
	cr_expect_eq(rig_sync_as(r, "", 5, c[0]->id, NULL, 1, "consumer", "range", "")->error, 24);
	struct call *join = rig_join(r, 9, c[1]->id, NULL, 10000, 60000, "range");
	cr_expect_eq(join->error, 14);
	cr_expect_str_eq(join->id, c[1]->id);
	cr_expect_eq(rig_join(r, 9, "", NULL, 10000, 60000, "range")->error, 14, "no id is handed out");
	cr_expect_eq(rig_join(r, 9, "", NULL, 1, 60000, "range")->error, 26, "what is wrong whoever the group is comes first");
	cr_expect_eq(rig_leave(r, 2, c[0]->id)->error, 14);
	cr_expect_eq(rig_leave_many(r, "g", c[0]->id)->error, 14);
	struct call *commit = rig_commit(r, 8, c[0]->id, NULL, 1, "t:0=6,!u:0=1");
	cr_expect_eq(commit->codes[0], 14);
	cr_expect_eq(commit->codes[1], 3);
	struct shard_group group;
	struct offset_value value;
	struct offset_delete_request offsets = {.group_id = BYTES_LITERAL("g")};
	int16_t codes[1];
	cr_expect_eq(shard_group_get(r->shard, BYTES_LITERAL("g"), &group), 14);
	cr_expect_eq(shard_delete_group(r->shard, BYTES_LITERAL("g"), r->now), 14);
	cr_expect_eq(shard_offset_delete(r->shard, &offsets, codes, r->now), 14);
	cr_expect(!shard_offset_get(r->shard, BYTES_LITERAL("g"), BYTES_LITERAL("t"), 0, &value));
	shard_offset_each(r->shard, BYTES_LITERAL("g"), no_offset, NULL);
	cr_expect(!shard_journal_each(r->shard, BYTES_LITERAL("g"), NULL, NULL));
	shard_stop(r->shard, r->now);
	cr_expect_eq(rig_log_records(r), records, "nothing is written");
	cr_expect_eq(r->stats.group_joins + own->group_joins, joins, "nor counted");
	shard_load_end(r->shard);
	cr_expect_str_eq(rig_state(r), "Stable");
	cr_expect_eq(rig_heartbeat(r, c[0]->id, NULL, 1)->error, 0);
	cr_expect_eq(rig_heartbeat(r, "nobody", NULL, 77)->error, 25);
}

/* Filled behind the worker's back; members have their whole session from the hand-over on, and nobody is asked to join again. */
Test(loading, handed_over)
{
	struct call *c[2];
	rig_stable(r, c, 2);
	rig_settle(r);
	uint64_t random[2] = {5, 6};
	struct shard *old = r->shard;
	r->shard = shard_new(7, &r->log->log, &r->settings, &r->stats, random, r->now);
	r->stats.group_groups_now = r->stats.group_members_now = 0;
	shard_load_begin(r->shard, own);
	for (unsigned int i = 0; i < r->log->durable; i++)
		cr_assert(shard_replay(r->shard, &r->log->entries[i], (struct now){0, 0}));
	r->now.us += 3600 * (uint64_t)US_PER_S; /* however long that takes */
	shard_loaded(r->shard, r->now);
	cr_expect_eq(r->stats.group_members_now, 0, "the worker's counters are left alone");
	shard_load_end(r->shard);
	cr_expect_eq(r->stats.group_members_now, 2);
	cr_expect_eq(r->stats.group_groups_now, 1);
	rig_pass(r, 9900);
	cr_expect_eq(rig_heartbeat(r, c[0]->id, NULL, 1)->error, 0);
	rig_pass(r, 200);
	cr_expect_eq(rig_heartbeat(r, c[1]->id, NULL, 1)->error, 25, "its session began with the hand-over and is over");
	cr_expect_eq(rig_heartbeat(r, c[0]->id, NULL, 1)->error, 27);
	shard_free(old);
}
