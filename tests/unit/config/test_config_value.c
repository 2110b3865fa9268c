/*
 * test_config_value.c - each type at its edges, and text -> value -> text.
 */
#include "fixture.h"

#include "muster/dataplane.h"

#include "coordinator/config_value.h"

static void formats_as(const char *assignment, enum config_id id, const char *want)
{
	struct config cfg;
	char text[CONFIG_TEXT_MAX + 1];
	config_init(&cfg);
	fixture_set(&cfg, assignment);
	config_value_format(&cfg, config_row(id), text, sizeof(text));
	cr_expect_str_eq(text, want);
}

Test(config_value, numbers)
{
	formats_as("cpu=-1", CONFIG_ID_cpu, "-1");
	formats_as("port=65535", CONFIG_ID_port, "65535");
	formats_as("port=00001", CONFIG_ID_port, "1");
	formats_as("buffer.memory=1099511627776", CONFIG_ID_buffer_memory, "1099511627776");
	fixture_set_refused("cpu=-2", "cpu: -2 is too small; allowed: -1 to 1023 (CPU number)");
	fixture_set_refused("port=0", "port: 0 is too small; allowed: 1 to 65535 (TCP port)");
	fixture_set_refused("port=65536", "port: 65536 is too large; allowed: 1 to 65535 (TCP port)");
	fixture_set_refused("port=99999999999999999999999", "port: 99999999999999999999999 is too large; allowed: 1 to 65535 (TCP port)");
	fixture_set_refused("port=-99999999999999999999999", "port: -99999999999999999999999 is too small; allowed: 1 to 65535 (TCP port)");
	fixture_set_refused("port=1k", "port: \"1k\" is not a whole number; allowed: 1 to 65535 (TCP port)");
	fixture_set_refused("port=1.5", "port: \"1.5\" is not a whole number; allowed: 1 to 65535 (TCP port)");
	fixture_set_refused("port=-", "port: \"-\" is not a whole number; allowed: 1 to 65535 (TCP port)");
	fixture_set_refused("port=+1", "port: \"+1\" is not a whole number; allowed: 1 to 65535 (TCP port)");
	fixture_set_refused("workers=65", "workers: 65 is too large; allowed: 1 to 64");
}

Test(config_value, truth_values)
{
	formats_as("huge.pages=false", CONFIG_ID_huge_pages, "false");
	formats_as("huge.pages=true", CONFIG_ID_huge_pages, "true");
	fixture_set_refused("huge.pages=yes", "huge.pages: \"yes\" is not a truth value; allowed: true, false");
	fixture_set_refused("huge.pages=", "huge.pages: \"\" is not a truth value; allowed: true, false");
}

Test(config_value, words_are_in_the_order_of_the_enum)
{
	struct config cfg;
	config_init(&cfg);
	fixture_set(&cfg, "idle.policy=spin");
	cr_expect(eq(int, cfg.idle_policy, IDLE_SPIN));
	fixture_set(&cfg, "idle.policy=adaptive");
	cr_expect(eq(int, cfg.idle_policy, IDLE_ADAPTIVE));
	formats_as("idle.policy=spin", CONFIG_ID_idle_policy, "spin");
	formats_as("idle.policy=adaptive", CONFIG_ID_idle_policy, "adaptive");
	fixture_set_refused("idle.policy=spi", "idle.policy: \"spi\" is none of the words; allowed: spin, adaptive");
	fixture_set_refused("idle.policy=spin|adaptive", "idle.policy: \"spin|adaptive\" is none of the words; allowed: spin, adaptive");
	fixture_set_refused("idle.policy=", "idle.policy: \"\" is none of the words; allowed: spin, adaptive");
}

Test(config_value, texts)
{
	char text[256] = "cluster.id=";
	formats_as("cluster.id=a=b:c", CONFIG_ID_cluster_id, "a=b:c");
	formats_as("cluster.id=a;b", CONFIG_ID_cluster_id, "a;b");
	memset(text + 11, 'x', 64);
	formats_as(text, CONFIG_ID_cluster_id, text + 11);
	text[75] = 'x';
	fixture_set_refused(text, "cluster.id: is 65 bytes long; allowed: a name of at most 64 bytes");
	fixture_set_refused("cluster.id=", "cluster.id: is empty; allowed: a name of at most 64 bytes");
	fixture_set_refused("cluster.id=a ;b", "cluster.id: holds a ; after a blank, which starts a comment; allowed: a name of at most 64 bytes");
	fixture_set_refused("cluster.id=;b", "cluster.id: holds a ; after a blank, which starts a comment; allowed: a name of at most 64 bytes");
	fixture_set_refused("cluster.id=a\nb", "cluster.id: holds the byte 0x0a; allowed: a name of at most 64 bytes");
	fixture_set_refused("cluster.id=\xc3\xa4", "cluster.id: holds the byte 0xc3; allowed: a name of at most 64 bytes");
}

Test(config_value, addresses)
{
	struct config cfg;
	config_init(&cfg);
	fixture_set(&cfg, "gateway=10.77.0.1");
	cr_expect(eq(u32, cfg.gateway, 0x0a4d0001));
	formats_as("gateway=10.77.0.1", CONFIG_ID_gateway, "10.77.0.1");
	formats_as("gateway=", CONFIG_ID_gateway, "");
	fixture_set_refused("gateway=10.77.0.256", "gateway: \"10.77.0.256\" is not an IPv4 address; allowed: nothing, or an IPv4 address like 10.77.0.1");
}

#define NETWORK_ALLOWED "; allowed: an IPv4 address with a prefix length of 1 to 31, like 10.77.0.2/24"

Test(config_value, networks)
{
	formats_as("address=192.168.1.9/16", CONFIG_ID_address, "192.168.1.9/16");
	formats_as("address=192.168.1.0/31", CONFIG_ID_address, "192.168.1.0/31");
	formats_as("address=192.168.0.255/16", CONFIG_ID_address, "192.168.0.255/16");
	fixture_set_refused("address=10.0.0.1", "address: \"10.0.0.1\" is not an address with its prefix length" NETWORK_ALLOWED);
	fixture_set_refused("address=10.0.0.1/", "address: \"10.0.0.1/\" is not an address with its prefix length" NETWORK_ALLOWED);
	fixture_set_refused("address=/24", "address: \"/24\" is not an address with its prefix length" NETWORK_ALLOWED);
	fixture_set_refused("address=10.0.0.1/24x", "address: \"10.0.0.1/24x\" is not an address with its prefix length" NETWORK_ALLOWED);
	fixture_set_refused("address=10.0.0.1/0", "address: prefix length 0 is out of range" NETWORK_ALLOWED);
	fixture_set_refused("address=10.0.0.1/32", "address: prefix length 32 is out of range" NETWORK_ALLOWED);
	fixture_set_refused("address=10.0.0.0/24", "address: 10.0.0.0 is the first address of its network" NETWORK_ALLOWED);
	fixture_set_refused("address=10.0.0.255/24", "address: 10.0.0.255 is the broadcast address of its network" NETWORK_ALLOWED);
	fixture_set_refused("address=127.0.0.1/8", "address: 127.0.0.1 is not the address of a host" NETWORK_ALLOWED);
	fixture_set_refused("address=224.0.0.1/8", "address: 224.0.0.1 is not the address of a host" NETWORK_ALLOWED);
	fixture_set_refused("address=0.0.0.1/8", "address: 0.0.0.1 is not the address of a host" NETWORK_ALLOWED);
}

#define MAC_ALLOWED "; allowed: nothing, or six bytes like 02:00:00:00:00:01"

Test(config_value, macs)
{
	formats_as("mac=02:AB:cd:00:00:01", CONFIG_ID_mac, "02:ab:cd:00:00:01");
	formats_as("mac=", CONFIG_ID_mac, "");
	fixture_set_refused("mac=02:ab:cd:00:00", "mac: \"02:ab:cd:00:00\" is not a MAC address" MAC_ALLOWED);
	fixture_set_refused("mac=02-ab-cd-00-00-01", "mac: \"02-ab-cd-00-00-01\" is not a MAC address" MAC_ALLOWED);
	fixture_set_refused("mac=0g:ab:cd:00:00:01", "mac: \"0g:ab:cd:00:00:01\" is not a MAC address" MAC_ALLOWED);
	fixture_set_refused("mac=01:00:00:00:00:01", "mac: 01:00:00:00:00:01 is a group address, not that of a port" MAC_ALLOWED);
}

Test(config_value, a_refused_text_changes_nothing)
{
	struct config cfg, before;
	char err[CONFIG_ERROR_MAX];
	config_init(&cfg);
	before = cfg;
	static const char *const wrong[] = {"port=0",	   "huge.pages=1", "idle.policy=x",	 "cluster.id=",
					    "gateway=1.2", "mac=1",	   "address=10.0.0.255/24"};
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		cr_expect(not(config_set(&cfg, wrong[i], err, sizeof(err))), "%s", wrong[i]);
		cr_expect(eq(int, memcmp(&cfg, &before, sizeof(cfg)), 0), "%s", wrong[i]);
	}
}
