/*
 * test_two.c - two stacks: stalls, ends and losses of single important segments.
 */
#include <criterion/criterion.h>

#include "two.h"

static struct two two;
static struct tcp_config cfg;

static struct two_app *start(void)
{
	cfg = two_default_config();
	two_init(&two, &cfg, &cfg, 11);
	two.end[1].accept = (struct two_app){.close_on_fin = true};
	struct two_app *c = two_connect(&two, 40000);
	cr_assert_not_null(c);
	return c;
}

static void expect_normal(const struct two_app *app)
{
	cr_expect(app->closed);
	cr_expect_eq(app->how, TCP_END_NORMAL);
	cr_expect(!app->wrong_byte && !app->out_of_order_upcall);
}

Test(two, stalled_reader_closes_the_window_and_opens_it)
{
	struct two_app *c = start();
	two.end[1].accept.stalled = true;
	c->to_send = 1000000;
	two_run(&two, two.now.us + 120 * US_PER_S);
	struct two_app *s = two_peer(&two, c);
	cr_expect_eq(s->received, 256 * 1024);
	cr_expect_gt(two.end[0].stats.tcp_zero_window_probes, 5);
	cr_expect_lt(two.end[0].stats.tcp_zero_window_probes, 30);
	cr_expect(!c->closed);
	two_resume(s);
	uint64_t start_us = two.now.us;
	two_run(&two, start_us + 1 * US_PER_S);
	cr_expect_eq(s->received, 1000000);
	cr_expect_gt(c->sendables, 0);
	two_fini(&two);
}

static bool drop_window_update(struct two *t, unsigned int from, const uint8_t *segment, size_t len)
{
	/* from the server, an empty ACK with an open window: lost once */
	return from == 1 && t->drop_state == 1 && (segment[14] | segment[15]) != 0 && t->drop_state++ == 1;
}

Test(two, lost_window_update_is_found_by_a_probe)
{
	struct two_app *c = start();
	two.end[1].accept.stalled = true;
	c->to_send = 1000000;
	two_run(&two, two.now.us + 3 * US_PER_S);
	two.drop = drop_window_update;
	two.drop_state = 1;
	struct two_app *s = two_peer(&two, c);
	two_resume(s);
	uint64_t begin = two.now.us;
	while (s->received < 1000000 && two_step(&two, begin + 10 * US_PER_S))
		;
	cr_expect_eq(two.drop_state, 2);
	cr_expect_eq(s->received, 1000000);
	two_fini(&two);
}

Test(two, half_close_both_ways)
{
	struct two_app *c = start();
	two.end[1].accept.to_send = 300000;
	c->to_send = 10;
	c->close_when_sent = true;
	two_run(&two, two.now.us + 60 * US_PER_S);
	struct two_app *s = two_peer(&two, c);
	cr_expect(s->fin && c->fin);
	cr_expect_eq(c->received, 300000, "the server answers after our FIN");
	expect_normal(c);
	expect_normal(s);
	cr_expect_eq(two.end[0].stats.tcp_connections_now, 0);
	cr_expect_eq(two.end[1].stats.tcp_connections_now, 0);
	cr_expect_eq(two.end[0].flows, 0);
	cr_expect_eq(two.end[1].flows, 0);
	two_fini(&two);
}

Test(two, abort_resets_the_other_end)
{
	struct two_app *c = start();
	two_run(&two, two.now.us + 100 * US_PER_MS);
	struct two_app *s = two_peer(&two, c);
	cr_assert_not_null(s);
	tcp_abort(c->conn);
	cr_expect(!c->closed);
	two_run(&two, two.now.us + 100 * US_PER_MS);
	cr_expect_eq(c->how, TCP_END_ABORTED);
	cr_expect(s->closed);
	cr_expect_eq(s->how, TCP_END_RESET);
	two_fini(&two);
}

static bool drop_first(struct two *t, unsigned int from, const uint8_t *segment, size_t len)
{
	return t->drop_state > 0 && t->drop_state-- > 0;
}

Test(two, lost_syns)
{
	for (uint64_t lost = 1; lost <= 3; lost++) {
		cfg = two_default_config();
		two_init(&two, &cfg, &cfg, 11);
		two.drop = drop_first;
		two.drop_state = lost;
		struct two_app *c = two_connect(&two, 40000);
		two_run(&two, two.now.us + 16 * US_PER_S);
		cr_expect(c->established, "%lu", (unsigned long)lost);
		cr_expect_eq(two.end[1].apps, 1);
		two_fini(&two);
	}
}

Test(two, connect_to_nobody)
{
	cfg = two_default_config();
	two_init(&two, &cfg, &cfg, 11);
	tcp_listen_stop(two.end[1].tcp);
	struct two_app *c = two_connect(&two, 40000);
	two_run(&two, two.now.us + 100 * US_PER_MS);
	cr_expect(c->closed && !c->established);
	cr_expect_eq(c->how, TCP_END_REFUSED);
	cr_expect_eq(two.end[1].stats.tcp_refused_port, 1);
	two_fini(&two);
}

Test(two, cut_link_is_noticed_by_keepalive_and_by_data)
{
	struct two_app *c = start();
	two_run(&two, two.now.us + 100 * US_PER_MS);
	struct two_app *s = two_peer(&two, c);
	two.link.cut = true;
	c->to_send = 100;
	two_run(&two, two.now.us + 130 * US_PER_S);
	cr_expect(s->closed, "60 s idle, six probes in 60 s");
	cr_expect_eq(s->how, TCP_END_TIMEOUT);
	two_run(&two, two.now.us + 200 * US_PER_S);
	cr_expect(c->closed);
	cr_expect_eq(c->how, TCP_END_TIMEOUT);
	two_fini(&two);
}

Test(two, same_ports_again_while_the_server_waits)
{
	cfg = two_default_config();
	two_init(&two, &cfg, &cfg, 11);
	two.end[1].accept = (struct two_app){.close_when_sent = true, .to_send = 10}; /* the server closes first */
	for (unsigned int i = 0; i < 5; i++) {
		struct two_app *c = two_connect(&two, 40000);
		cr_assert_not_null(c);
		c->close_on_fin = true;
		two_run(&two, two.now.us + 1 * US_PER_S);
		cr_expect(c->closed && c->established, "%u", i);
		cr_expect_eq(c->received, 10);
		expect_normal(c);
		cr_expect_eq(two.end[1].apps, i + 1);
		cr_expect_eq(two.end[1].flows, 1, "in TIME_WAIT");
	}
	two_fini(&two);
}

Test(two, many_connections_at_once)
{
	struct tcp_config big = two_default_config();
	big.max_connections = 60;
	two_init(&two, &big, &big, 5);
	two.link = (struct two_link){.loss_pm = 20, .duplicate_pm = 20, .reorder_pm = 50, .delay_us = 500, .segment_us = 2};
	two.end[1].accept = (struct two_app){.to_send = 20000, .close_on_fin = true};
	for (uint16_t i = 0; i < 15; i++) {
		struct two_app *c = two_connect(&two, (uint16_t)(50000 + i));
		c->to_send = 30000;
		c->close_when_sent = true;
	}
	two_run(&two, two.now.us + 200 * US_PER_S);
	cr_assert_eq(two.end[1].apps, 15);
	for (unsigned int i = 0; i < 15; i++) {
		expect_normal(&two.end[0].app[i]);
		expect_normal(&two.end[1].app[i]);
		cr_expect_eq(two.end[0].app[i].received, 20000);
		cr_expect_eq(two.end[1].app[i].received, 30000);
	}
	cr_expect_eq(two.end[0].flows + two.end[1].flows, 0);
	two_fini(&two);
}

Test(two, little_memory)
{
	/* Both directions bulk, with so little memory that out-of-order data is dropped at times. */
	cfg = two_default_config();
	cfg.buffer_memory_bytes = 600 * 1024;
	two_init(&two, &cfg, &cfg, 3);
	two.link = (struct two_link){.loss_pm = 10, .delay_us = 1000, .segment_us = 10};
	two.end[1].accept = (struct two_app){.to_send = 1000000, .close_when_sent = true};
	struct two_app *c = two_connect(&two, 40000);
	c->to_send = 1000000;
	c->close_when_sent = true;
	two_run(&two, two.now.us + 120 * US_PER_S);
	expect_normal(c);
	cr_expect_eq(c->received, 1000000);
	cr_expect_eq(two_peer(&two, c)->received, 1000000);
	two_fini(&two);
}
