/*
 * cores.c - the command line of muster cores --auto and --check.
 */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/cli.h"
#include "coordinator/cores/cores.h"

enum cores_status { CORES_GOOD = 0, CORES_COSTS = 1, CORES_WRONG = 2 };

static const struct option options[] = {
	{"auto", no_argument, NULL, 'a'},	{"check", required_argument, NULL, 'k'}, {"config", required_argument, NULL, 'c'}, {"set", required_argument, NULL, 's'},
	{"workers", required_argument, NULL, 'w'}, {"root", required_argument, NULL, 'r'},  {"help", no_argument, NULL, 'h'},	     {NULL, 0, NULL, 0},
};

struct cores {
	struct cli cli;
	struct config cfg;
	struct machine machine;
	struct core_map map;
	const char *check, *root;
	bool make, help;
	unsigned int workers;
};

static int wrong(const char *text)
{
	fprintf(stderr, "muster: %s\n", text);
	return CORES_WRONG;
}

static void help(FILE *out)
{
	fputs("usage: muster cores --auto [--workers N] [--root FOLDER] [--config FILE] [--set NAME=VALUE]...\n"
	      "       muster cores --check MAP [--root FOLDER] [--config FILE] [--set NAME=VALUE]...\n"
	      "       muster cores --show ...   asks a running server; see muster status --help\n"
	      "\n"
	      "The core map says where workers run. The setting core.map.file names it; examples are in deploy/.\n"
	      "\n"
	      "  --auto         reads the machine and writes a good map, with a comment for each choice, to its output\n"
	      "  --check MAP    tells line by line what is wrong in a map, and what costs\n"
	      "  --workers N    that many, 1 to 64; without it: one for each good core, but no more than the card has queues\n"
	      "  --root FOLDER  the machine is what the files below say (sys/, proc/), not this one\n"
	      "\n"
	      "The settings name the card, the first node id and port, and the number of shards.\n"
	      "\n"
	      "Exit status of --check: 0 the map is good, 1 it works and costs, 2 it is wrong, or the command line is.\n",
	      out);
}

static bool option(struct cores *cores, int c, char *err, size_t err_len)
{
	char *end;
	unsigned long n;
	switch (c) {
	case 'a':
		cores->make = true;
		return true;
	case 'k':
		cores->check = optarg;
		return true;
	case 'c':
		cores->cli.config = optarg;
		return true;
	case 'r':
		cores->root = optarg;
		return true;
	case 's':
		if (cores->cli.n_sets == CLI_SETS_MAX) {
			snprintf(err, err_len, "--set: is given too often; allowed: %d times", CLI_SETS_MAX);
			return false;
		}
		cores->cli.sets[cores->cli.n_sets++] = optarg;
		return true;
	case 'w':
		n = strtoul(optarg, &end, 10);
		cores->workers = (unsigned int)n;
		if (*optarg >= '0' && *optarg <= '9' && *end == '\0' && n >= 1 && n <= CORE_MAP_WORKERS_MAX)
			return true;
		snprintf(err, err_len, "--workers: \"%.40s\" is no such number; allowed: 1 to %u", optarg, CORE_MAP_WORKERS_MAX);
		return false;
	default:
		cores->help = true;
		return true;
	}
}

static bool parse(struct cores *cores, int argc, char **argv, char *err, size_t err_len)
{
	optind = 0; /* glibc: start afresh */
	opterr = 0;
	for (int c; (c = getopt_long(argc, argv, ":", options, NULL)) != -1;) {
		if (c == '?' || c == ':') {
			snprintf(err, err_len, "%.80s: %s; see muster cores --auto --help", argv[optind - 1],
				 c == '?' ? "there is no such option" : "its value is missing");
			return false;
		}
		if (!option(cores, c, err, err_len))
			return false;
	}
	if (cores->help)
		return true;
	if (optind < argc || cores->make == (cores->check != NULL) || (cores->workers > 0 && !cores->make)) {
		snprintf(err, err_len, "muster cores takes --auto [--workers N], or --check MAP; see muster cores --auto --help");
		return false;
	}
	return cli_load(&cores->cli, &cores->cfg, err, err_len);
}

bool cores_knows(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--auto") == 0 || strncmp(argv[i], "--check", 7) == 0)
			return true;
	return false;
}

static int make(struct cores *cores)
{
	struct core_map *map = &cores->map;
	cores_plan(map, &cores->machine, &cores->cfg, cores->workers);
	const struct core_map_worker *last = &map->worker[map->workers - 1];
	if (last->port > UINT16_MAX || last->node_id < 0)
		return wrong("--workers: so many leave no room for their ports or node ids; lower port or node.id");
	if (map->workers > map->shards)
		return wrong("--workers: there are fewer shards than workers; raise offsets.topic.num.partitions, or take fewer workers");
	cores_write(map, &cores->machine, stdout);
	return CORES_GOOD;
}

static void print_finding(void *arg, enum finding_kind kind, int line, const char *text)
{
	const char *path = arg, *word = kind == FINDING_ERROR ? "error" : "costs";
	if (line > 0)
		printf("%s:%d: %s: %s\n", path, line, word, text);
	else
		printf("%s: %s: %s\n", path, word, text);
}

static int check(struct cores *cores)
{
	struct findings out = {.say = print_finding, .arg = (void *)(uintptr_t)cores->check};
	if (core_map_read(&cores->map, cores->check, &cores->cfg, &out))
		core_map_check(&cores->map, &cores->machine, &out);
	if (out.errors + out.costs == 0)
		printf("%s: good\n", cores->check);
	else
		printf("%s: %u error%s, %u cost%s\n", cores->check, out.errors, out.errors == 1 ? "" : "s", out.costs, out.costs == 1 ? "" : "s");
	return out.errors > 0 ? CORES_WRONG : out.costs > 0 ? CORES_COSTS : CORES_GOOD;
}

int cores_main(int argc, char **argv)
{
	char err[CONFIG_ERROR_MAX];
	struct cores *cores = calloc(1, sizeof(*cores));
	int status = CORES_GOOD;
	if (cores == NULL)
		return wrong("no memory");
	cores->root = "";
	if (!parse(cores, argc, argv, err, sizeof(err))) {
		status = wrong(err);
	} else if (cores->help) {
		help(stdout);
	} else {
		machine_read(&cores->machine, cores->root, cores->cfg.device);
		status = cores->make ? make(cores) : check(cores);
	}
	free(cores);
	return fflush(stdout) == 0 ? status : CORES_WRONG;
}
