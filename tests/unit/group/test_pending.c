/* test_pending.c - ids that are handed out: how many, and what they hold back. */
#include <criterion/criterion.h>

#include "rig.h"

static struct rig *r;

static void setup(void)
{
	r = rig_new();
	r->settings.group_max_pending_members = 3;
}

static void teardown(void)
{
	rig_free(r);
}

TestSuite(pending, .init = setup, .fini = teardown);

static struct call *ask(void)
{
	return rig_join(r, 4, "", NULL, 8000, 60000, "range");
}

Test(pending, no_more_than_allowed_are_out)
{
	struct call *p[3];
	for (int i = 0; i < 3; i++) {
		p[i] = ask();
		cr_assert_eq(p[i]->error, 79);
	}
	cr_expect_eq(ask()->error, 15);
	cr_expect_eq(ask()->error, 15);
	cr_expect_str_eq(ask()->id, "");
	cr_expect_eq(r->stats.group_ids_refused, 3);
	cr_expect_eq(rig_group(r)->pending_len, 3);
	rig_join(r, 4, p[0]->id, NULL, 8000, 60000, "range"); /* comes back: room for another */
	cr_expect_eq(ask()->error, 79);
	cr_expect_eq(ask()->error, 15);
	rig_leave(r, 1, p[1]->id);
	cr_expect_eq(ask()->error, 79);
	rig_pass(r, 8000); /* the rest expired */
	for (int i = 0; i < 3; i++)
		cr_expect_eq(ask()->error, 79);
	cr_expect_eq(ask()->error, 15);
}

Test(pending, those_who_need_no_round_are_not_bounded)
{
	for (int i = 0; i < 3; i++)
		ask();
	cr_expect(!rig_join(r, 3, "", NULL, 8000, 60000, "range")->answered);
	cr_expect(!rig_join(r, 5, "", "i1", 8000, 60000, "range")->answered);
	cr_expect_eq(rig_group(r)->members_len, 2);
}

Test(pending, other_groups_have_their_own)
{
	for (int i = 0; i < 4; i++)
		ask();
	cr_expect_eq(rig_join_to(r, "h", 4, "", NULL, 8000, 60000, "consumer", "range")->error, 79);
}

Test(pending, no_bound)
{
	r->settings.group_max_pending_members = 0;
	for (int i = 0; i < 100; i++)
		cr_assert_eq(ask()->error, 79);
}
