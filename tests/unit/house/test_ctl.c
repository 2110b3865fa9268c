/*
 * test_ctl.c - the command lines of the commands for a running server, as the requests that they become.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/ctl/ctl.h"

#define WORDS 16

/* Splits at blanks. */
static bool parse(struct ctl *ctl, const char *line, char *err, size_t err_len)
{
	static char text[500];
	char *argv[WORDS + 1] = {NULL};
	int argc = 0;
	snprintf(text, sizeof(text), "%s", line);
	for (char *word = strtok(text, " "); word != NULL && argc < WORDS; word = strtok(NULL, " "))
		argv[argc++] = word;
	cr_assert(ctl_knows(argv[0]));
	return ctl_parse(ctl, argc, argv, err, err_len);
}

static void becomes(const char *line, const char *request)
{
	struct ctl ctl;
	char err[CTL_ERROR_MAX];
	cr_assert(parse(&ctl, line, err, sizeof(err)), "%s: %s", line, err);
	json_t *wanted = json_loads(request, 0, NULL);
	cr_assert(wanted != NULL && json_equal(ctl.request, wanted), "%s", line);
	json_decref(wanted);
	json_decref(ctl.request);
}

static void refused(const char *line, const char *part)
{
	struct ctl ctl;
	char err[CTL_ERROR_MAX];
	cr_assert(!parse(&ctl, line, err, sizeof(err)), "%s", line);
	cr_assert(strstr(err, part) != NULL, "%s: %s", line, err);
	json_decref(ctl.request);
}

Test(ctl, requests)
{
	becomes("status", "{\"command\":\"status\"}");
	becomes("groups --json", "{\"command\":\"groups\"}");
	becomes("why orders", "{\"command\":\"why\",\"group\":\"orders\"}");
	becomes("why --member m-1", "{\"command\":\"why\",\"member\":\"m-1\"}");
	becomes("why orders --instance i-1", "{\"command\":\"why\",\"group\":\"orders\",\"instance\":\"i-1\"}");
	becomes("release orders i-1", "{\"command\":\"release\",\"group\":\"orders\",\"instance\":\"i-1\"}");
	becomes("reset-offsets orders a.b:0=0 c:11=9223372036854775807",
		"{\"command\":\"reset-offsets\",\"group\":\"orders\",\"offsets\":[{\"topic\":\"a.b\",\"partition\":0,\"offset\":0},"
		"{\"topic\":\"c\",\"partition\":11,\"offset\":9223372036854775807}]}");
	becomes("cores --show", "{\"command\":\"cores\"}");
	becomes("waiting -- --group", "{\"command\":\"waiting\",\"group\":\"--group\"}");
}

Test(ctl, wrong_words)
{
	refused("why", "usage: muster why");
	refused("status orders", "usage: muster status");
	refused("groups --member m", "usage: muster groups");
	refused("release orders", "usage: muster release");
	refused("cores", "usage: muster cores");
	refused("status --show", "usage: muster status");
	refused("status --nonsense", "there is no such option");
	refused("status --socket", "its value is missing");
	refused("waiting \xff", "no UTF-8");
	for (const char *const *bad = (const char *const[]){"a", "a:1", "a=1", ":1=1", "a:=1", "a:1=", "a:-1=1", "a:1=-1", "a:2147483648=1", "a:1x=1", "a:1=1x",
							    "a:1=9223372036854775808", "a:1=1:2", NULL};
	     *bad != NULL; bad++) {
		char line[100];
		snprintf(line, sizeof(line), "reset-offsets orders %s", *bad);
		refused(line, "TOPIC:PARTITION=OFFSET");
	}
}

Test(ctl, which_server)
{
	struct ctl ctl;
	char err[CTL_ERROR_MAX];
	unsetenv(CTL_SOCKET_VARIABLE);
	cr_assert(parse(&ctl, "status", err, sizeof(err)));
	cr_assert_str_eq(ctl.socket, CTL_SOCKET);
	json_decref(ctl.request);
	setenv(CTL_SOCKET_VARIABLE, "/a/b", 1);
	cr_assert(parse(&ctl, "status", err, sizeof(err)));
	cr_assert_str_eq(ctl.socket, "/a/b");
	json_decref(ctl.request);
	cr_assert(parse(&ctl, "status --set admin.socket=/c/d", err, sizeof(err)));
	cr_assert_str_eq(ctl.socket, "/c/d");
	json_decref(ctl.request);
	cr_assert(parse(&ctl, "status --set admin.socket=/c/d --socket e", err, sizeof(err)));
	cr_assert_str_eq(ctl.socket, "e");
	json_decref(ctl.request);
	refused("status --set port=1", "name no admin.socket");
	refused("status --set prot=1", "there is no such setting");
}
