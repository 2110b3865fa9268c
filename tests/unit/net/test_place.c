/*
 * test_place.c - where workers run and whom they send through, by the rule and by a map.
 */
#include <criterion/criterion.h>

#include "dataplane/place.h"

static struct dataplane_config by_rule(unsigned int workers)
{
	return (struct dataplane_config){.workers = workers, .cpu = 2, .port = 100, .idle = IDLE_SPIN};
}

Test(place, by_the_rule)
{
	struct dataplane_config cfg = by_rule(5);
	for (unsigned int w = 0; w < 5; w++) {
		struct dataplane_worker at = place_of(&cfg, w, 2);
		cr_expect_eq(at.cpu, 2 + (int)w);
		cr_expect_eq(at.queue, w < 2 ? (int)w : -1);
		cr_expect_eq(at.port, 100 + w);
		cr_expect_eq(place_via(&cfg, w, 2), w % 2);
	}
	cr_expect(place_is_shared(&cfg, 0, 2) && place_is_shared(&cfg, 1, 2) && !place_is_shared(&cfg, 2, 2));
	cr_expect(!place_is_shared(&cfg, 0, 5));
	cr_expect_eq(place_queues(&cfg), 0);
	cr_expect(place_ports_in_a_row(&cfg));
	cr_expect(!place_any_sleeps(&cfg));
	cfg.cpu = -1;
	cr_expect_eq(place_of(&cfg, 3, 2).cpu, -1);
}

Test(place, by_a_map)
{
	static const struct dataplane_worker each[] = {
		{.cpu = 7, .queue = -1, .port = 100}, {.cpu = 3, .queue = 1, .port = 101}, {.cpu = -1, .queue = 0, .port = 102, .idle = IDLE_ADAPTIVE},
		{.cpu = 1, .queue = -1, .port = 103}, {.cpu = 2, .queue = -1, .port = 105}};
	static const unsigned int via[] = {2, 1, 2, 1, 2}; /* those without take the pollers of queue 0, 1, 0 */
	struct dataplane_config cfg = by_rule(5);
	cfg.per_worker = each;
	cr_assert_eq(place_queues(&cfg), 2);
	cr_expect_eq(place_poller(&cfg, 0, 2), 2);
	cr_expect_eq(place_poller(&cfg, 1, 2), 1);
	for (unsigned int w = 0; w < 5; w++) {
		cr_expect_eq(place_of(&cfg, w, 2).cpu, each[w].cpu);
		cr_expect_eq(place_via(&cfg, w, 2), via[w], "worker %u", w);
		cr_expect_eq(place_is_shared(&cfg, w, 2), w == 1 || w == 2);
	}
	cr_expect(!place_ports_in_a_row(&cfg));
	cr_expect(place_any_sleeps(&cfg));
	cfg.workers = 4;
	cr_expect(place_ports_in_a_row(&cfg));
}
