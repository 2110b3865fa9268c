/*
 * transfer.c - two stacks over a bad link: every byte arrives, in bounded time, whatever is lost, doubled or delayed.
 */
#include <criterion/criterion.h>

#include "two.h"

#define MIB (1024 * 1024)
#define TEN_MB 10000000ull

static bool both_received(struct two *two)
{
	struct two_app *c = &two->end[0].app[0], *s = &two->end[1].app[0];
	return two->end[1].apps == 1 && c->received == s->to_send && s->received == c->to_send;
}

static bool all_closed(struct two *two)
{
	for (unsigned int i = 0; i < 2; i++) {
		for (unsigned int a = 0; a < two->end[i].apps; a++) {
			if (!two->end[i].app[a].closed)
				return false;
		}
	}
	return two->end[1].apps > 0;
}

static void expect_clean(const struct two_app *app)
{
	cr_expect(app->established);
	cr_expect(!app->wrong_byte, "a byte differs before %lu", (unsigned long)app->received);
	cr_expect(!app->out_of_order_upcall);
}

/* Transfers `bytes` each way and closes; returns simulated microseconds until both have everything. */
static uint64_t transfer(struct two *two, uint64_t bytes, uint64_t limit_us)
{
	two->end[1].accept = (struct two_app){.to_send = bytes, .close_when_sent = true};
	struct two_app *c = two_connect(two, 40000);
	cr_assert_not_null(c);
	c->to_send = bytes;
	c->close_when_sent = true;
	uint64_t start = two->now.us;
	bool done = two_run_until(two, both_received, start + limit_us);
	uint64_t took = two->now.us - start;
	struct two_app *s = two_peer(two, c);
	cr_assert_not_null(s);
	cr_assert(done, "after %.3f s: client has %lu, server has %lu of %lu; %lu segments lost", (double)took / 1e6,
		  (unsigned long)c->received, (unsigned long)s->received, (unsigned long)bytes, (unsigned long)two->lost);
	cr_assert(two_run_until(two, all_closed, two->now.us + 300 * US_PER_S));
	expect_clean(c);
	expect_clean(s);
	cr_expect(c->fin && s->fin);
	cr_expect_eq(c->how, TCP_END_NORMAL);
	cr_expect_eq(s->how, TCP_END_NORMAL);
	return took;
}

static uint64_t transfer_over(struct two_link link, uint64_t seed, uint64_t bytes, uint64_t limit_us, struct two *two)
{
	struct tcp_config cfg = two_default_config();
	two_init(two, &cfg, &cfg, seed);
	two->link = link;
	uint64_t took = transfer(two, bytes, limit_us);
	cr_log_info("seed %lu: %lu bytes each way in %.3f s, %lu segments lost, client: %lu sent again, %lu time-outs, %lu fast retransmits",
		    (unsigned long)seed, (unsigned long)bytes, (double)took / 1e6, (unsigned long)two->lost,
		    (unsigned long)two->end[0].stats.tcp_retransmits, (unsigned long)two->end[0].stats.tcp_rto,
		    (unsigned long)two->end[0].stats.tcp_fast_retransmits);
	return took;
}

Test(transfer, clean_link_sends_nothing_twice)
{
	struct two two;
	transfer_over((struct two_link){.delay_us = 1000, .segment_us = 10}, 1, TEN_MB, 2 * US_PER_S, &two);
	for (int i = 0; i < 2; i++) {
		cr_expect_eq(two.end[i].stats.tcp_retransmits, 0);
		cr_expect_eq(two.end[i].stats.tcp_rto, 0);
		cr_expect_gt(two.end[i].stats.tcp_predicted, two.end[i].stats.tcp_segments_in * 9 / 10);
	}
	two_fini(&two);
}

Test(transfer, one_percent_loss)
{
	for (uint64_t seed = 1; seed <= 3; seed++) {
		struct two two;
		transfer_over((struct two_link){.loss_pm = 10, .delay_us = 1000, .segment_us = 10}, seed, TEN_MB, 15 * US_PER_S, &two);
		cr_expect_gt(two.lost, 50);
		cr_expect_gt(two.end[0].stats.tcp_fast_retransmits, 10);
		two_fini(&two);
	}
}

Test(transfer, five_percent_loss)
{
	struct two two;
	transfer_over((struct two_link){.loss_pm = 50, .delay_us = 1000, .segment_us = 10}, 7, TEN_MB, 60 * US_PER_S, &two);
	cr_expect_gt(two.lost, 500);
	two_fini(&two);
}

Test(transfer, loss_duplication_reordering)
{
	for (uint64_t seed = 1; seed <= 5; seed++) {
		struct two two;
		transfer_over((struct two_link){.loss_pm = 10, .duplicate_pm = 10, .reorder_pm = 10, .delay_us = 500, .segment_us = 5}, seed,
			      2 * MIB, 10 * US_PER_S, &two);
		two_fini(&two);
	}
}

Test(transfer, twenty_percent_loss_still_arrives)
{
	for (uint64_t seed = 1; seed <= 5; seed++) {
		struct two two;
		transfer_over((struct two_link){.loss_pm = 200, .duplicate_pm = 50, .reorder_pm = 100, .delay_us = 2000, .segment_us = 10},
			      seed, 200000, 300 * US_PER_S, &two);
		two_fini(&two);
	}
}

Test(transfer, lower_layer_often_full)
{
	struct two two;
	transfer_over((struct two_link){.tx_fail_pm = 300, .delay_us = 300, .segment_us = 5}, 3, 2 * MIB, 10 * US_PER_S, &two);
	cr_expect_eq(two.lost, 0);
	two_fini(&two);
}

Test(transfer, without_sack_and_timestamps)
{
	/* The options are taken out of every SYN on its way: NewReno (RFC 6582) and Karn's rule have to do. */
	for (uint64_t seed = 1; seed <= 3; seed++) {
		struct two two;
		struct tcp_config cfg = two_default_config();
		two_init(&two, &cfg, &cfg, seed);
		two.link = (struct two_link){.loss_pm = 10, .reorder_pm = 5, .delay_us = 1000, .segment_us = 10};
		two.strip_options = true;
		transfer(&two, 2 * MIB, 20 * US_PER_S);
		cr_expect_gt(two.end[0].stats.tcp_fast_retransmits, 0);
		two_fini(&two);
	}
}
