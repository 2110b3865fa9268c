/*
 * tool.c - the command line of muster log.
 */
#define _GNU_SOURCE /* strptime, timegm */
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "coordinator/cli.h"
#include "coordinator/tool/folder.h"
#include "coordinator/tool/tool.h"

#define ERROR_MAX 600

enum verb_options { TAKES_JSON = 1, TAKES_SHARD = 2, TAKES_FILTER = 4, TAKES_ALL = 8, TAKES_DIRS = 16, TAKES_PARTIAL = 32 };

static const struct verb {
	const char *name;
	unsigned int takes; /* enum verb_options */
	int (*read)(const struct tool_options *o, struct folder *folder); /* a log that is there, or */
	int (*make)(const struct tool_options *o, const char *folder);	 /* a new one */
} verbs[] = {
	{"dump", TAKES_JSON | TAKES_SHARD | TAKES_FILTER, tool_dump, NULL},
	{"verify", TAKES_SHARD, tool_verify, NULL},
	{"export", TAKES_SHARD | TAKES_ALL | TAKES_DIRS, tool_export, NULL},
	{"import", TAKES_DIRS | TAKES_PARTIAL, NULL, tool_import},
};

static const struct option options[] = {
	{"config", required_argument, NULL, 'c'}, {"set", required_argument, NULL, 's'},   {"log", required_argument, NULL, 'l'},
	{"json", no_argument, NULL, 'j'},	  {"shard", required_argument, NULL, 'n'}, {"group", required_argument, NULL, 'g'},
	{"from", required_argument, NULL, 'f'},	  {"to", required_argument, NULL, 't'},	   {"all", no_argument, NULL, 'a'},
	{"partial", no_argument, NULL, 'p'},	  {"help", no_argument, NULL, 'h'},	   {NULL, 0, NULL, 0},
};

struct command {
	const struct verb *verb;
	struct cli cli;
	struct config cfg;
	struct tool_options o;
	const char *folder;
	bool help;
};

static PRINTF_LIKE(3, 4) bool fail(char *err, size_t len, const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	vsnprintf(err, len, format, ap);
	va_end(ap);
	return false;
}

static void help(FILE *out)
{
	fputs("usage: muster log dump   [--json] [--shard N] [--group ID] [--from TIME] [--to TIME] WHICH\n"
	      "       muster log verify [--shard N] WHICH\n"
	      "       muster log export --shard N|--all WHICH DIR\n"
	      "       muster log import [--partial] WHICH DIR...\n"
	      "\n"
	      "WHICH log: --log FOLDER, or log.dir of --config FILE and --set NAME=VALUE. Its server must be stopped.\n"
	      "\n"
	      "  dump    every record, decoded, one a line; --json: one JSON object a line\n"
	      "  verify  reads every segment, block, batch and record; says what is damaged, with file, block, byte, shard and offset\n"
	      "  export  writes DIR/__consumer_offsets-N as a Kafka broker has it; DIR may be the log folder of a stopped broker that has just made\n"
	      "          the topic: partition.metadata stays, empty segments and indexes are replaced\n"
	      "  import  makes a new log from the __consumer_offsets-N folders of a stopped Kafka broker; all of them, as many as\n"
	      "          offsets.topic.num.partitions says, unless --partial is given\n"
	      "\n"
	      "TIME is milliseconds since 1970, or YYYY-MM-DD, or YYYY-MM-DDTHH:MM:SS, in UTC.\n"
	      "Exit status: 0 all is good, 1 damage was found or it could not be finished, 2 wrong arguments or no such log.\n",
	      out);
}

/* ---- values of options ---- */

static bool number_of(const char *text, int64_t max, int64_t *out)
{
	char *end;
	if (text[0] < '0' || text[0] > '9')
		return false;
	errno = 0;
	long long v = strtoll(text, &end, 10);
	if (errno != 0 || *end != '\0' || v > max)
		return false;
	*out = v;
	return true;
}

static bool time_of(const char *text, int64_t *ms)
{
	static const char *const formats[] = {"%Y-%m-%d", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%SZ"};
	if (number_of(text, INT64_MAX, ms))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
		struct tm tm = {.tm_isdst = 0};
		const char *end = strptime(text, formats[i], &tm);
		if (end != NULL && *end == '\0') {
			*ms = (int64_t)timegm(&tm) * 1000;
			return true;
		}
	}
	return false;
}

static bool take_time(const char *name, int64_t *ms, char *err, size_t err_len)
{
	return time_of(optarg, ms) ||
	       fail(err, err_len, "--%s: \"%.40s\" is no time; allowed: YYYY-MM-DD, YYYY-MM-DDTHH:MM:SS (UTC), or milliseconds since 1970", name, optarg);
}

static bool option(struct command *c, int opt, char *err, size_t err_len)
{
	struct tool_options *o = &c->o;
	switch (opt) {
	case 'c':
		c->cli.config = optarg;
		return true;
	case 's':
		if (c->cli.n_sets == CLI_SETS_MAX)
			return fail(err, err_len, "--set: is given too often; allowed: %d times", CLI_SETS_MAX);
		c->cli.sets[c->cli.n_sets++] = optarg;
		return true;
	case 'l':
		c->folder = optarg;
		return true;
	case 'j':
		o->json = true;
		return true;
	case 'n':
		return number_of(optarg, INT32_MAX, &o->shard) || fail(err, err_len, "--shard: \"%.40s\" is no number of a shard", optarg);
	case 'g':
		o->group = bytes_str(optarg);
		return true;
	case 'f':
		return take_time("from", &o->from_ms, err, err_len);
	case 't':
		return take_time("to", &o->to_ms, err, err_len);
	case 'p':
		o->partial = true;
		return true;
	default:
		o->all = true;
		return true;
	}
}

/* ---- the command line ---- */

static unsigned int needs(int opt)
{
	switch (opt) {
	case 'j':
		return TAKES_JSON;
	case 'n':
		return TAKES_SHARD;
	case 'g':
	case 'f':
	case 't':
		return TAKES_FILTER;
	case 'a':
		return TAKES_ALL;
	case 'p':
		return TAKES_PARTIAL;
	default:
		return 0;
	}
}

static bool parse_options(struct command *c, int argc, char **argv, char *err, size_t err_len)
{
	int index = -1;
	optind = 0; /* glibc: start afresh */
	opterr = 0;
	for (int opt; (opt = getopt_long(argc, argv, ":", options, &index)) != -1;) {
		if (opt == 'h') {
			c->help = true;
			return true;
		}
		if (opt == '?' || opt == ':')
			return fail(err, err_len, "%.80s: %s; see muster log --help", argv[optind - 1],
				    opt == '?' ? "there is no such option" : "its value is missing");
		if ((needs(opt) & ~c->verb->takes) != 0)
			return fail(err, err_len, "--%s: does not belong to muster log %s", options[index].name, c->verb->name);
		if (!option(c, opt, err, err_len))
			return false;
	}
	c->o.dirs = argv + optind;
	c->o.dirs_len = argc - optind;
	if (c->o.dirs_len > 0 && (c->verb->takes & TAKES_DIRS) == 0)
		return fail(err, err_len, "%.80s: is no option; the log's folder is given by --log FOLDER", c->o.dirs[0]);
	return true;
}

static bool parse(struct command *c, int argc, char **argv, char *err, size_t err_len)
{
	const char *name = argc > 1 ? argv[1] : "";
	c->o = (struct tool_options){.cfg = &c->cfg, .shard = -1, .group = BYTES_NULL, .from_ms = INT64_MIN, .to_ms = INT64_MAX};
	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
		c->help = true;
		return true;
	}
	for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
		if (strcmp(name, verbs[i].name) == 0)
			c->verb = &verbs[i];
	if (c->verb == NULL)
		return fail(err, err_len, "muster log takes one of dump, verify, export, import; see muster log --help");
	if (!parse_options(c, argc - 1, argv + 1, err, err_len) || c->help)
		return c->help;
	if (!cli_load(&c->cli, &c->cfg, err, err_len))
		return false;
	if (c->folder == NULL)
		c->folder = c->cfg.log_dir;
	return c->folder[0] != '\0' || fail(err, err_len, "which log? give --log FOLDER, or --config FILE with log.dir in it");
}

static int run(struct command *c)
{
	char err[ERROR_MAX];
	struct folder folder;
	if (c->verb->make != NULL)
		return c->verb->make(&c->o, c->folder);
	if (!folder_open(&folder, c->folder, err, sizeof(err))) {
		fprintf(stderr, "muster: %s\n", err);
		return TOOL_CANNOT;
	}
	int status = TOOL_CANNOT;
	if (c->o.shard >= (int64_t)folder.shards)
		fprintf(stderr, "muster: --shard: the log has the shards 0 to %u\n", folder.shards - 1);
	else
		status = c->verb->read(&c->o, &folder);
	folder_close(&folder);
	return status;
}

int tool_main(int argc, char **argv)
{
	struct command *c = calloc(1, sizeof(*c));
	char err[ERROR_MAX];
	int status = TOOL_CANNOT;
	if (c == NULL) {
		fprintf(stderr, "muster: no memory\n");
		return TOOL_CANNOT;
	}
	if (!parse(c, argc, argv, err, sizeof(err)))
		fprintf(stderr, "muster: %s\n", err);
	else if (c->help)
		help(stdout);
	else
		status = run(c);
	if (c->help)
		status = TOOL_GOOD;
	free(c);
	return status == TOOL_GOOD && fflush(stdout) != 0 ? TOOL_BAD : status;
}
