/*
 * options.c - the command line of the commands for a running server, made into a request.
 */
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/cli.h"
#include "coordinator/ctl/ctl.h"

enum takes { TAKES_NOTHING, TAKES_GROUP, TAKES_WHO, TAKES_INSTANCE, TAKES_OFFSETS, TAKES_SHOW };

static const struct word {
	const char *name;
	const char *command; /* of the protocol */
	enum takes takes;
	const char *usage;
} words[] = {
	{"status", "status", TAKES_NOTHING, ""},
	{"groups", "groups", TAKES_NOTHING, ""},
	{"why", "why", TAKES_WHO, "[GROUP] [--member ID] [--instance ID]"},
	{"waiting", "waiting", TAKES_GROUP, "GROUP"},
	{"release", "release", TAKES_INSTANCE, "GROUP INSTANCE"},
	{"reset-offsets", "reset-offsets", TAKES_OFFSETS, "GROUP TOPIC:PARTITION=OFFSET..."},
	{"reload", "reload", TAKES_NOTHING, ""},
	{"cores", "cores", TAKES_SHOW, "--show"},
};

static const struct option options[] = {
	{"config", required_argument, NULL, 'c'},   {"set", required_argument, NULL, 's'},	{"socket", required_argument, NULL, 'u'},
	{"member", required_argument, NULL, 'm'},   {"instance", required_argument, NULL, 'i'}, {"json", no_argument, NULL, 'j'},
	{"show", no_argument, NULL, 'w'},	    {"help", no_argument, NULL, 'h'},		{NULL, 0, NULL, 0},
};

struct parse {
	const struct word *word;
	struct cli cli;
	const char *socket, *member, *instance;
	bool json, show, help;
};

static const struct word *word_of(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strcmp(words[i].name, name) == 0)
			return &words[i];
	return NULL;
}

bool ctl_knows(const char *word)
{
	return word_of(word) != NULL;
}

static PRINTF_LIKE(3, 4) bool fail(char *err, size_t len, const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	vsnprintf(err, len, format, ap);
	va_end(ap);
	return false;
}

void ctl_help(FILE *out)
{
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		fprintf(out, "%s muster %s %s%s[--json] [WHICH]\n", i == 0 ? "usage:" : "      ", words[i].name, words[i].usage, *words[i].usage == '\0' ? "" : " ");
	fputs("\n"
	      "WHICH server: --socket FILE, or admin.socket of --config FILE and --set NAME=VALUE, or the variable " CTL_SOCKET_VARIABLE ", else\n" CTL_SOCKET ".\n"
	      "\n"
	      "  status         the server and each of its workers\n"
	      "  groups         all groups\n"
	      "  why            a group's last rebalances and their causes, whom it waits for, and which members are gone for what reason;\n"
	      "                 or what is known of a member, by --member or --instance\n"
	      "  waiting        whom a group waits for, and since when\n"
	      "  release        removes the static member of an instance id now; its client is fenced, the group rebalances\n"
	      "  reset-offsets  sets offsets of a group; members that live are fenced, rebalance, and start from them\n"
	      "  reload         reads the catalog of topics again, as SIGHUP does\n"
	      "  cores --show   how busy each worker is, and what goes between them; muster cores --auto and --check ask no server\n"
	      "\n"
	      "  --json         one JSON object a line, as the server sends them; the last one has \"done\" and \"error\"\n"
	      "\n"
	      "Exit status: 0 it was done, 1 the server refused or failed, 2 wrong arguments, or no server can be asked.\n",
	      out);
}

static bool option(struct parse *p, int c, char *err, size_t err_len)
{
	switch (c) {
	case 'c':
		p->cli.config = optarg;
		return true;
	case 's':
		if (p->cli.n_sets == CLI_SETS_MAX)
			return fail(err, err_len, "--set: is given too often; allowed: %d times", CLI_SETS_MAX);
		p->cli.sets[p->cli.n_sets++] = optarg;
		return true;
	case 'u':
		p->socket = optarg;
		return true;
	case 'm':
		p->member = optarg;
		return true;
	case 'i':
		p->instance = optarg;
		return true;
	case 'j':
		p->json = true;
		return true;
	case 'w':
		p->show = true;
		return true;
	default:
		p->help = true;
		return true;
	}
}

/* ---- which server ---- */

static bool find_socket(const struct parse *p, struct ctl *ctl, char *err, size_t err_len)
{
	const char *path = p->socket;
	struct config *cfg = NULL;
	if (path == NULL && (p->cli.config != NULL || p->cli.n_sets > 0)) {
		cfg = malloc(sizeof(*cfg));
		if (cfg == NULL)
			return fail(err, err_len, "no memory");
		if (!cli_load(&p->cli, cfg, err, err_len)) {
			free(cfg);
			return false;
		}
		path = cfg->admin_socket;
	}
	if (path == NULL)
		path = getenv(CTL_SOCKET_VARIABLE);
	if (path == NULL)
		path = CTL_SOCKET;
	bool ok = *path != '\0' ? strlen(path) < sizeof(ctl->socket) || fail(err, err_len, "%.80s...: the name is too long", path)
				: fail(err, err_len, "these settings name no admin.socket: that server cannot be asked");
	if (ok)
		memcpy(ctl->socket, path, strlen(path) + 1);
	free(cfg);
	return ok;
}

/* ---- what is asked ---- */

static bool put(json_t *request, const char *name, const char *text, char *err, size_t err_len)
{
	if (text == NULL)
		return true;
	json_t *value = json_string(text);
	if (value == NULL)
		return fail(err, err_len, "%s: \"%.60s\" is no UTF-8", name, text);
	return json_object_set_new(request, name, value) == 0 || fail(err, err_len, "no memory");
}

static bool number_of(const char *text, const char *end, long long max, json_t **out)
{
	char *stop;
	errno = 0;
	long long v = strtoll(text, &stop, 10);
	if (*text < '0' || *text > '9' || errno != 0 || stop != end || v > max)
		return false;
	*out = json_integer(v);
	return true;
}

/* TOPIC:PARTITION=OFFSET; no topic has a colon. */
static bool put_offset(json_t *list, const char *text, char *err, size_t err_len)
{
	const char *colon = strchr(text, ':'), *equals = colon == NULL ? NULL : strchr(colon, '=');
	json_t *partition = NULL, *offset = NULL;
	if (equals == NULL || colon == text || !number_of(colon + 1, equals, INT32_MAX, &partition) ||
	    !number_of(equals + 1, text + strlen(text), INT64_MAX, &offset)) {
		json_decref(partition);
		return fail(err, err_len, "%.100s: is no TOPIC:PARTITION=OFFSET", text);
	}
	json_t *topic = json_stringn(text, (size_t)(colon - text));
	if (topic == NULL) {
		json_decref(partition);
		json_decref(offset);
		return fail(err, err_len, "%.100s: is no UTF-8", text);
	}
	return json_array_append_new(list, json_pack("{s:o,s:o,s:o}", "topic", topic, "partition", partition, "offset", offset)) == 0 ||
	       fail(err, err_len, "no memory");
}

static bool put_offsets(json_t *request, int argc, char **argv, char *err, size_t err_len)
{
	json_t *list = json_array();
	json_object_set_new(request, "offsets", list);
	for (int i = 0; i < argc; i++)
		if (!put_offset(list, argv[i], err, err_len))
			return false;
	return true;
}

static bool arguments(const struct parse *p, struct ctl *ctl, int argc, char **argv, char *err, size_t err_len)
{
	static const struct {
		int least, most;
	} counts[] = {[TAKES_NOTHING] = {0, 0}, [TAKES_GROUP] = {1, 1},	    [TAKES_WHO] = {0, 1},
		      [TAKES_INSTANCE] = {2, 2}, [TAKES_OFFSETS] = {2, 1 << 30}, [TAKES_SHOW] = {0, 0}};
	const struct word *word = p->word;
	bool who = p->member != NULL || p->instance != NULL;
	if (argc < counts[word->takes].least || argc > counts[word->takes].most || (who && word->takes != TAKES_WHO) ||
	    (word->takes == TAKES_WHO && argc == 0 && !who) || p->show != (word->takes == TAKES_SHOW))
		return fail(err, err_len, "usage: muster %s %s; see muster %s --help", word->name, word->usage, word->name);
	return put(ctl->request, "command", word->command, err, err_len) && put(ctl->request, "group", argc > 0 ? argv[0] : NULL, err, err_len) &&
	       put(ctl->request, "member", p->member, err, err_len) &&
	       put(ctl->request, "instance", word->takes == TAKES_INSTANCE ? argv[1] : p->instance, err, err_len) &&
	       (word->takes != TAKES_OFFSETS || put_offsets(ctl->request, argc - 1, argv + 1, err, err_len));
}

bool ctl_parse(struct ctl *ctl, int argc, char **argv, char *err, size_t err_len)
{
	struct parse p = {.word = word_of(argv[0])};
	*ctl = (struct ctl){.request = json_object()};
	optind = 0; /* glibc: start afresh */
	opterr = 0;
	for (int c; (c = getopt_long(argc, argv, ":", options, NULL)) != -1;) {
		if (c == '?' || c == ':')
			return fail(err, err_len, "%.80s: %s; see muster %s --help", argv[optind - 1],
				    c == '?' ? "there is no such option" : "its value is missing", argv[0]);
		if (!option(&p, c, err, err_len))
			return false;
	}
	ctl->json = p.json;
	ctl->help = p.help;
	return p.help || (arguments(&p, ctl, argc - optind, argv + optind, err, err_len) && find_socket(&p, ctl, err, err_len));
}
