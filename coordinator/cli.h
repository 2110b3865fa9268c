/*
 * cli.h - the command line of the program.
 *
 *   muster [--config FILE] [--set NAME=VALUE]... [--recover=WORD] [--stats]       runs
 *   muster config --print|--check|--example [same options]      prints or checks the settings, starts nothing
 *   muster log VERB ...                                         works on a stopped server's log (tool/tool.h, which reads the rest)
 *   muster --help | --version
 */
#ifndef MUSTER_CLI_H
#define MUSTER_CLI_H

#include "coordinator/config.h"

#define CLI_SETS_MAX 128

enum cli_command { CLI_RUN, CLI_PRINT, CLI_CHECK, CLI_EXAMPLE, CLI_HELP, CLI_VERSION };

struct cli {
	enum cli_command command;
	const char *config; /* NULL: no file */
	const char *sets[CLI_SETS_MAX];
	unsigned int n_sets;
	const char *recover; /* a setting; NULL: not given */
	bool stats; /* print the counters at exit */
};

/* Reads the arguments; strings stay in argv. False: one line in err. */
bool cli_parse(struct cli *cli, int argc, char **argv, char *err, size_t err_len);

/* Defaults, then the file, then each --set, then the checks between settings. False: one line in err. */
bool cli_load(const struct cli *cli, struct config *cfg, char *err, size_t err_len);

void cli_help(FILE *out);

#endif
