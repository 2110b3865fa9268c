/*
 * test_config.c - the file and --set: every kind of error with its line, precedence, origins.
 */
#include "fixture.h"

Test(config, defaults_are_kafkas)
{
	struct config cfg;
	config_init(&cfg);
	cr_expect(eq(i64, cfg.node_id, 1000));
	cr_expect(eq(i64, cfg.group_min_session_timeout_ms, 6000));
	cr_expect(eq(i64, cfg.group_max_session_timeout_ms, 1800000));
	cr_expect(eq(i64, cfg.group_initial_rebalance_delay_ms, 3000));
	cr_expect(eq(i64, cfg.offset_metadata_max_bytes, 4096));
	cr_expect(eq(i64, cfg.offsets_topic_num_partitions, 50));
	cr_expect(eq(i64, cfg.socket_request_max_bytes, 104857600));
	cr_expect(eq(i64, cfg.connections_max_idle_ms, 600000));
	cr_expect(eq(u32, cfg.address.addr, 0x0a4d0002));
	cr_expect(eq(uint, cfg.address.prefix_len, 24));
}

Test(config, names_and_fields_are_unique_and_lower_case)
{
	for (unsigned int i = 0; i < CONFIG_SETTINGS; i++) {
		const struct config_row *row = config_row(i);
		cr_expect(eq(sz, strspn(row->name, "abcdefghijklmnopqrstuvwxyz."), strlen(row->name)), "%s", row->name);
		cr_expect(lt(sz, strlen(row->name), 48), "%s: longer than libinih keeps names", row->name);
		cr_expect(gt(sz, strlen(row->help), 10), "%s has no help", row->name);
		for (unsigned int j = 0; j < i; j++)
			cr_expect_str_neq(row->name, config_row(j)->name);
	}
}

Test(config, file_sets_values_and_origins)
{
	struct fixture f;
	char origin[300];
	cr_assert(fixture_read(&f, "# a comment\n"
				   "[node]\n"
				   "\n"
				   "port=29092\n"
				   "  node.id : 7   ; indented, with a colon and a comment\n"
				   "; another comment\n"
				   "[device]\r\n"
				   "device = net_tap0,iface=x;y=1\r\n"
				   "[node]\n"
				   "cluster.id = back in the first section"),
		  "%s", f.err);
	cr_expect(eq(i64, f.cfg.port, 29092));
	cr_expect(eq(i64, f.cfg.node_id, 7));
	cr_expect_str_eq(f.cfg.device, "net_tap0,iface=x;y=1");
	cr_expect_str_eq(f.cfg.cluster_id, "back in the first section");
	cr_expect(eq(i64, f.cfg.mtu, 1500));

	snprintf(f.want, sizeof(f.want), "%s:4", f.path);
	config_origin_text(&f.cfg, CONFIG_ID_port, origin, sizeof(origin));
	cr_expect_str_eq(origin, f.want);
	snprintf(f.want, sizeof(f.want), "%s:10", f.path);
	config_origin_text(&f.cfg, CONFIG_ID_cluster_id, origin, sizeof(origin));
	cr_expect_str_eq(origin, f.want);
	config_origin_text(&f.cfg, CONFIG_ID_mtu, origin, sizeof(origin));
	cr_expect_str_eq(origin, "default");
}

Test(config, set_goes_over_the_file_and_the_last_one_wins)
{
	struct fixture f;
	char origin[300];
	cr_assert(fixture_read(&f, "[node]\nport = 1\n"), "%s", f.err);
	fixture_set(&f.cfg, "port=2");
	fixture_set(&f.cfg, " port =  3 ");
	cr_expect(eq(i64, f.cfg.port, 3));
	config_origin_text(&f.cfg, CONFIG_ID_port, origin, sizeof(origin));
	cr_expect_str_eq(origin, "--set");
}

Test(config, empty_file_is_all_defaults)
{
	struct fixture f;
	cr_expect(fixture_read(&f, ""), "%s", f.err);
	cr_expect(fixture_read(&f, "# only this"), "%s", f.err);
	cr_expect(eq(i64, f.cfg.port, 19092));
}

Test(config, byte_order_mark_is_skipped)
{
	struct fixture f;
	cr_expect(fixture_read(&f, "\xef\xbb\xbf[node]\nport = 5\n"), "%s", f.err);
	cr_expect(eq(i64, f.cfg.port, 5));
}

Test(config, wrong_value_is_told_with_its_line)
{
	fixture_refused("[node]\n\nport = 70000\n", 3, "port: 70000 is too large; allowed: 1 to 65535 (TCP port)");
	fixture_refused("[node]\nport = \n", 2, "port: \"\" is not a whole number; allowed: 1 to 65535 (TCP port)");
}

Test(config, unknown_name_is_told_with_the_nearest)
{
	fixture_refused("[group]\ngroup.min.sesion.timeout.ms = 1\n", 2,
			"group.min.sesion.timeout.ms: there is no such setting; nearest: group.min.session.timeout.ms");
	fixture_refused("[group]\nzzzzzzzzzzzzzzzz = 1\n", 2,
			"zzzzzzzzzzzzzzzz: there is no such setting; allowed: those that muster config --print lists");
}

Test(config, wrong_section_is_told_with_the_right_one)
{
	fixture_refused("[group]\nport = 1\n", 2, "port: does not belong in section [group]; allowed: in [node]");
	fixture_refused("port = 1\n", 1, "port: stands before any section; allowed: in [node]");
	fixture_refused("[nodes]\nport = 1\n", 2, "port: does not belong in section [nodes]; allowed: in [node]");
}

Test(config, second_setting_of_a_name_is_refused)
{
	fixture_refused("[node]\nport = 1\nnode.id = 2\nport = 1\n", 4, "port: is set for the second time; allowed: once, and line 2 sets it");
}

Test(config, lines_that_are_no_ini_are_refused)
{
	fixture_refused("[node]\nport = 1\nport 19092\n", 3, "neither a section nor a setting; allowed: [SECTION] or NAME = VALUE");
	fixture_refused("[node\nport = 1\n", 1, "neither a section nor a setting; allowed: [SECTION] or NAME = VALUE");
}

Test(config, first_error_wins)
{
	fixture_refused("[node]\nport = 0\nnode.id = x\n", 2, "port: 0 is too small; allowed: 1 to 65535 (TCP port)");
	fixture_refused("[node]\nnonsense\nport = 0\n", 2, "neither a section nor a setting; allowed: [SECTION] or NAME = VALUE");
	fixture_refused("[node]\nport = 0\nnonsense\n", 2, "port: 0 is too small; allowed: 1 to 65535 (TCP port)");
}

Test(config, long_line_and_byte_0_are_refused)
{
	struct fixture f;
	char text[600] = "[node]\ncluster.id = ";
	memset(text + strlen(text), 'x', 500);
	fixture_refused(text, 2, "is too long; allowed: 198 bytes");
	text[7] = '#';
	cr_expect(fixture_read(&f, text), "a comment may have any length: %s", f.err);

	fixture_write(&f, "[node]\nport = 1\0 2\n", 19);
	config_init(&f.cfg);
	cr_expect(not(config_read(&f.cfg, f.path, f.err, sizeof(f.err))));
	snprintf(f.want, sizeof(f.want), "%s:2: holds a byte 0; allowed: text", f.path);
	cr_expect_str_eq(f.err, f.want);
	unlink(f.path);
}

Test(config, missing_file_and_folder_are_told)
{
	struct fixture f;
	config_init(&f.cfg);
	cr_expect(not(config_read(&f.cfg, "/nowhere/muster.conf", f.err, sizeof(f.err))));
	cr_expect_str_eq(f.err, "/nowhere/muster.conf: cannot be opened: No such file or directory; allowed: a readable file");
	config_init(&f.cfg);
	cr_expect(not(config_read(&f.cfg, "/tmp", f.err, sizeof(f.err))));
	cr_expect_str_eq(f.err, "/tmp: cannot be read: Is a directory; allowed: a readable file");
}

Test(config, set_errors)
{
	fixture_set_refused("port", "port: has no value; allowed: port=VALUE");
	fixture_set_refused("port=x1", "port: \"x1\" is not a whole number; allowed: 1 to 65535 (TCP port)");
	fixture_set_refused("prot=1", "prot: there is no such setting; nearest: port");
	fixture_set_refused("=1", ": there is no such setting; allowed: those that muster config --print lists");
}

Test(config, paths_count_from_the_folder_of_who_says_them)
{
	struct fixture f;
	cr_assert(fixture_read(&f, "[node]\ntopics.file = ./t/topics.conf\n"), "%s", f.err);
	cr_expect_str_eq(f.cfg.topics_file, "/tmp/t/topics.conf");
	cr_assert(fixture_read(&f, "[node]\ntopics.file = /etc/topics.conf\n"), "%s", f.err);
	cr_expect_str_eq(f.cfg.topics_file, "/etc/topics.conf");
	cr_assert(eq(int, chdir("/usr"), 0));
	fixture_set(&f.cfg, "topics.file=topics.conf");
	cr_expect_str_eq(f.cfg.topics_file, "/usr/topics.conf");
	fixture_set(&f.cfg, "topics.file=");
	cr_expect_str_eq(f.cfg.topics_file, "");
}
