/*
 * test_cli.c - the command line.
 */
#include "fixture.h"

#include "coordinator/cli.h"

/* Splits a copy of `line` at blanks and parses it. */
static bool parse(struct cli *cli, const char *line, char *err, size_t err_len)
{
	char *copy = strdup(line), *argv[160] = {NULL};
	int argc = 0;
	for (char *p = strtok(copy, " "); p != NULL; p = strtok(NULL, " "))
		argv[argc++] = p;
	err[0] = '\0';
	return cli_parse(cli, argc, argv, err, err_len); /* the copy lives on: cli points into it */
}

static void refused(const char *line, const char *want)
{
	struct cli cli;
	char err[CONFIG_ERROR_MAX];
	cr_expect(not(parse(&cli, line, err, sizeof(err))), "accepted: %s", line);
	cr_expect_str_eq(err, want, "for %s", line);
}

static void is_command(const char *line, enum cli_command want)
{
	struct cli cli;
	char err[CONFIG_ERROR_MAX];
	cr_expect(parse(&cli, line, err, sizeof(err)), "%s: %s", line, err);
	cr_expect(eq(int, cli.command, want), "for %s", line);
}

Test(cli, commands)
{
	is_command("muster", CLI_RUN);
	is_command("muster --config f", CLI_RUN);
	is_command("muster config --print", CLI_PRINT);
	is_command("muster config --set port=1 --check", CLI_CHECK);
	is_command("muster config --example", CLI_EXAMPLE);
	is_command("muster --help", CLI_HELP);
	is_command("muster config --help", CLI_HELP);
	is_command("muster --config f --version", CLI_VERSION);
}

Test(cli, options)
{
	struct cli cli;
	char err[CONFIG_ERROR_MAX];
	cr_assert(parse(&cli, "muster --set a=1 --config file --set=b=2 --stats", err, sizeof(err)), "%s", err);
	cr_expect_str_eq(cli.config, "file");
	cr_assert(eq(uint, cli.n_sets, 2));
	cr_expect_str_eq(cli.sets[0], "a=1");
	cr_expect_str_eq(cli.sets[1], "b=2");
	cr_expect(cli.stats);
	cr_assert(parse(&cli, "muster", err, sizeof(err)), "%s", err);
	cr_expect_null(cli.config);
	cr_expect(not(cli.stats));
}

Test(cli, refusals)
{
	refused("muster --confog f", "--confog: there is no such option; see muster --help");
	refused("muster -x", "-x: there is no such option; see muster --help");
	refused("muster --config", "--config: its value is missing; see muster --help");
	refused("muster --set", "--set: its value is missing; see muster --help");
	refused("muster --config a --config b", "--config: is given twice; allowed: one file");
	refused("muster muster.conf", "muster.conf: is neither an option nor the word config; see muster --help");
	refused("muster --print", "--print, --check and --example belong to: muster config");
	refused("muster config", "muster config takes one of --print, --check, --example");
	refused("muster config --print --check", "muster config takes one of --print, --check, --example");
	refused("muster config --print --print", "muster config takes one of --print, --check, --example");
}

Test(cli, too_many_sets)
{
	struct cli cli;
	char err[CONFIG_ERROR_MAX];
	char *argv[2 * CLI_SETS_MAX + 4] = {NULL};
	static char muster[] = "muster", set[] = "--set=port=1";
	argv[0] = muster;
	for (int i = 1; i <= CLI_SETS_MAX + 1; i++)
		argv[i] = set;
	cr_expect(cli_parse(&cli, CLI_SETS_MAX + 1, argv, err, sizeof(err)));
	cr_expect(not(cli_parse(&cli, CLI_SETS_MAX + 2, argv, err, sizeof(err))));
	cr_expect_str_eq(err, "--set: is given too often; allowed: 128 times");
}

Test(cli, load_goes_default_file_set_check)
{
	struct fixture f;
	struct cli cli = {.command = CLI_RUN};
	fixture_write(&f, "[node]\nport = 5\nnode.id = 6\n", 28);
	cli.config = f.path;
	cli.sets[cli.n_sets++] = "port=7";
	cr_assert(cli_load(&cli, &f.cfg, f.err, sizeof(f.err)), "%s", f.err);
	cr_expect(eq(i64, f.cfg.port, 7));
	cr_expect(eq(i64, f.cfg.node_id, 6));
	cr_expect(eq(i64, f.cfg.mtu, 1500));
	cli.sets[cli.n_sets++] = "group.max.session.timeout.ms=1";
	cr_expect(not(cli_load(&cli, &f.cfg, f.err, sizeof(f.err))));
	cr_expect_str_eq(f.err, "--set: group.max.session.timeout.ms: 1 is less than group.min.session.timeout.ms; allowed: at least 6000");
	unlink(f.path);
}
