/*
 * test_config_check.c - settings against each other: which of the two is blamed, and what it says.
 */
#include "fixture.h"

static void refused(const char *const *sets, size_t n, const char *want)
{
	struct fixture f;
	f.err[0] = '\0';
	config_init(&f.cfg);
	for (size_t i = 0; i < n; i++)
		fixture_set(&f.cfg, sets[i]);
	cr_expect(not(config_validate(&f.cfg, f.err, sizeof(f.err))), "accepted: %s", want);
	cr_expect_str_eq(f.err, want);
}

#define REFUSED(want, ...) refused((const char *const[]){__VA_ARGS__}, ARRAY_LEN(((const char *const[]){__VA_ARGS__})), want)

Test(config_check, defaults_fit_together)
{
	struct fixture f;
	config_init(&f.cfg);
	cr_expect(config_validate(&f.cfg, f.err, sizeof(f.err)), "%s", f.err);
}

Test(config_check, ranges)
{
	REFUSED("--set: group.min.session.timeout.ms: 1800001 is more than group.max.session.timeout.ms; allowed: at most 1800000",
		"group.min.session.timeout.ms=1800001");
	REFUSED("--set: group.max.session.timeout.ms: 5999 is less than group.min.session.timeout.ms; allowed: at least 6000",
		"group.max.session.timeout.ms=5999");
	REFUSED("--set: tcp.rto.min.ms: 1001 is more than tcp.rto.max.ms; allowed: at most 1000", "tcp.rto.max.ms=1000",
		"tcp.rto.min.ms=1001");
	REFUSED("--set: tcp.rto.max.ms: 1000 is less than tcp.rto.min.ms; allowed: at least 1001", "tcp.rto.min.ms=1001",
		"tcp.rto.max.ms=1000");
}

Test(config_check, the_later_line_is_blamed)
{
	struct fixture f;
	cr_assert(fixture_read(&f, "[group]\ngroup.max.session.timeout.ms = 7000\ngroup.min.session.timeout.ms = 7001\n"), "%s", f.err);
	cr_expect(not(config_validate(&f.cfg, f.err, sizeof(f.err))));
	snprintf(f.want, sizeof(f.want),
		 "%s:3: group.min.session.timeout.ms: 7001 is more than group.max.session.timeout.ms; allowed: at most 7000", f.path);
	cr_expect_str_eq(f.err, f.want);
}

Test(config_check, equal_bounds_are_fine)
{
	struct fixture f;
	config_init(&f.cfg);
	fixture_set(&f.cfg, "group.max.session.timeout.ms=6000");
	cr_expect(config_validate(&f.cfg, f.err, sizeof(f.err)), "%s", f.err);
}

Test(config_check, gateway)
{
	REFUSED("--set: gateway: the gateway is not in the network of the address; allowed: a gateway in that network", "gateway=10.78.0.1");
	REFUSED("--set: gateway: address and gateway are the same; allowed: two addresses of one network", "gateway=10.77.0.2");
	struct fixture f;
	config_init(&f.cfg);
	fixture_set(&f.cfg, "gateway=10.77.0.254");
	cr_expect(config_validate(&f.cfg, f.err, sizeof(f.err)), "%s", f.err);
	fixture_set(&f.cfg, "address=10.76.0.2/15");
	cr_expect(config_validate(&f.cfg, f.err, sizeof(f.err)), "%s", f.err);
}

Test(config_check, buffers_fit_in_their_memory)
{
	REFUSED("--set: buffer.memory: 1048576 is less than socket.send.buffer.bytes; allowed: at least 2000000",
		"socket.send.buffer.bytes=2000000", "buffer.memory=1048576");
}

Test(config_check, damage)
{
	REFUSED("--set: fault.inject.loss.ppm: all kinds of damage together are 1000001; allowed: at most 1000000",
		"fault.inject.corrupt.ppm=1000000", "fault.inject.loss.ppm=1");
}

Test(config_check, advertised_host)
{
	REFUSED("--set: advertised.host: \"a:9092\" is not a host; allowed: a host name or IPv4 address; the port is another setting", "advertised.host=a:9092");
}
