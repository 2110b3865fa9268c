/*
 * cli.c - the command line of the program, by getopt_long.
 */
#include "coordinator/cli.h"

#include <getopt.h>
#include <string.h>

static const struct option options[] = {
	{"config", required_argument, NULL, 'c'}, {"set", required_argument, NULL, 's'}, {"stats", no_argument, NULL, 't'},
	{"print", no_argument, NULL, 'p'},	  {"check", no_argument, NULL, 'k'},	 {"example", no_argument, NULL, 'e'},
	{"recover", required_argument, NULL, 'r'}, {"help", no_argument, NULL, 'h'},	  {"version", no_argument, NULL, 'V'},	 {NULL, 0, NULL, 0},
};

/* --print, --check and --example belong to `muster config`, which takes exactly one of them. */
static bool pick(struct cli *cli, bool config_word, enum cli_command command, char *err, size_t err_len)
{
	if (!config_word || cli->command != CLI_RUN) {
		snprintf(err, err_len, config_word ? "muster config takes one of --print, --check, --example"
						   : "--print, --check and --example belong to: muster config");
		return false;
	}
	cli->command = command;
	return true;
}

/* --recover is one setting by a short name, for a line that is typed once. */
static bool recover(struct cli *cli, const char *word, char *err, size_t err_len)
{
	if (strcmp(word, "refuse") == 0)
		cli->recover = "log.recover=refuse";
	else if (strcmp(word, "skip-damaged") == 0)
		cli->recover = "log.recover=skip.damaged";
	else {
		snprintf(err, err_len, "--recover: %.40s: allowed: refuse, skip-damaged", word);
		return false;
	}
	return true;
}

static bool option(struct cli *cli, int c, bool config_word, char *err, size_t err_len)
{
	switch (c) {
	case 'c':
		if (cli->config != NULL) {
			snprintf(err, err_len, "--config: is given twice; allowed: one file");
			return false;
		}
		cli->config = optarg;
		return true;
	case 's':
		if (cli->n_sets == CLI_SETS_MAX) {
			snprintf(err, err_len, "--set: is given too often; allowed: %d times", CLI_SETS_MAX);
			return false;
		}
		cli->sets[cli->n_sets++] = optarg;
		return true;
	case 't':
		cli->stats = true;
		return true;
	case 'r':
		return recover(cli, optarg, err, err_len);
	case 'p':
		return pick(cli, config_word, CLI_PRINT, err, err_len);
	case 'k':
		return pick(cli, config_word, CLI_CHECK, err, err_len);
	default:
		return pick(cli, config_word, CLI_EXAMPLE, err, err_len);
	}
}

bool cli_parse(struct cli *cli, int argc, char **argv, char *err, size_t err_len)
{
	*cli = (struct cli){.command = CLI_RUN};
	bool config_word = argc > 1 && strcmp(argv[1], "config") == 0;
	argc -= config_word;
	argv += config_word;
	optind = 0; /* glibc: start afresh */
	opterr = 0;
	for (int c; (c = getopt_long(argc, argv, "+:", options, NULL)) != -1;) {
		if (c == 'h' || c == 'V') {
			cli->command = c == 'h' ? CLI_HELP : CLI_VERSION;
			return true;
		}
		if (c == '?' || c == ':') {
			snprintf(err, err_len, "%.80s: %s; see muster --help", argv[optind - 1],
				 c == '?' ? "there is no such option" : "its value is missing");
			return false;
		}
		if (!option(cli, c, config_word, err, err_len))
			return false;
	}
	if (optind < argc) {
		snprintf(err, err_len, "%.80s: is neither an option nor the word config; see muster --help", argv[optind]);
		return false;
	}
	if (config_word && cli->command == CLI_RUN) {
		snprintf(err, err_len, "muster config takes one of --print, --check, --example");
		return false;
	}
	return true;
}

bool cli_load(const struct cli *cli, struct config *cfg, char *err, size_t err_len)
{
	config_init(cfg);
	if (cli->config != NULL && !config_read(cfg, cli->config, err, err_len))
		return false;
	for (unsigned int i = 0; i < cli->n_sets; i++)
		if (!config_set(cfg, cli->sets[i], err, err_len))
			return false;
	if (cli->recover != NULL && !config_set(cfg, cli->recover, err, err_len))
		return false;
	return config_validate(cfg, err, err_len);
}

void cli_help(FILE *out)
{
	fputs("usage: muster [--config FILE] [--set NAME=VALUE]... [--recover=refuse|skip-damaged] [--stats]\n"
	      "       muster config --print|--check|--example [--config FILE] [--set NAME=VALUE]...\n"
	      "       muster status|groups|why|waiting|release|reset-offsets|reload|cores ...   ask a running server; see muster status --help\n"
	      "       muster cores --auto|--check MAP ...   where workers run; see muster cores --auto --help\n"
	      "       muster log VERB ...   tools for the log of a stopped server; see muster log --help\n"
	      "       muster --help|--version\n"
	      "\n"
	      "A coordinator of Kafka consumer groups on DPDK.\n"
	      "\n"
	      "  --config FILE      settings, an ini file\n"
	      "  --set NAME=VALUE   one setting, over the file; may be repeated, the last one of a name wins\n"
	      "  --recover=WORD     what a damaged log leads to: refuse, or skip-damaged: start without what is damaged\n"
	      "  --stats            print the counters that are not zero at exit\n"
	      "  config --print     the values in force and where each comes from\n"
	      "  config --check     check the settings, the catalog of topics and the memory; start nothing\n"
	      "  config --example   every setting with its help, range and default, as a file to start from\n"
	      "\n"
	      "SIGTERM and SIGINT stop it within 5 s, a second one at once; SIGUSR1 prints the counters;\n"
	      "SIGHUP reads the catalog of topics again.\n"
	      "Exit status: 0 stopped as asked, 1 could not start or run, 2 wrong arguments or settings,\n"
	      "3 the log is damaged or cannot be read, 128 + signal when stopped at once.\n"
	      "\n"
	      "Settings, their defaults and what they may be:\n",
	      out);
	config_print_list(out);
}
