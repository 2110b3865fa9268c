/*
 * ctl.c - asks a running server: one request, its lines, the last of them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "coordinator/ctl/ctl.h"

#define ANSWER_SECONDS 60 /* without a byte of the server */

static int cannot(const char *text)
{
	fprintf(stderr, "muster: %s\n", text);
	return CTL_CANNOT;
}

static const char *why_not(int error)
{
	switch (error) {
	case ENOENT:
		return "there is no such socket; is the server running, and does its admin.socket name this file?";
	case ECONNREFUSED:
		return "no server listens there; it is not running, or it was killed";
	case EACCES:
	case EPERM:
		return "no permission; run this as the server's user, or see admin.socket.access";
	default:
		return strerror(error);
	}
}

/* The connection as a stream; NULL: one line in err. */
static FILE *reach(const char *path, char *err, size_t err_len)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct timeval patience = {ANSWER_SECONDS, 0};
	if (strlen(path) >= sizeof(address.sun_path)) {
		snprintf(err, err_len, "%s: the name is too long for a socket", path);
		return NULL;
	}
	memcpy(address.sun_path, path, strlen(path) + 1);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) == 0 &&
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) == 0 &&
	    connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0) {
		FILE *stream = fdopen(fd, "r+");
		if (stream != NULL)
			return stream;
	}
	snprintf(err, err_len, "%s: %s", path, why_not(errno));
	if (fd >= 0)
		close(fd);
	return NULL;
}

/* False: the server ended before its last line. */
static bool read_lines(const struct ctl *ctl, FILE *server, struct show *show, json_t **last)
{
	char *line = NULL;
	size_t cap = 0;
	ssize_t n;
	*last = NULL;
	while (*last == NULL && (n = getline(&line, &cap, server)) > 0) {
		json_t *object = json_loadb(line, (size_t)n, 0, NULL);
		if (ctl->json)
			fwrite(line, 1, (size_t)n, stdout);
		if (json_is_true(json_object_get(object, "done")))
			*last = json_incref(object);
		else if (object != NULL && !ctl->json)
			show_item(show, object);
		json_decref(object);
	}
	free(line);
	return *last != NULL;
}

static int finish(const struct ctl *ctl, const json_t *last)
{
	const char *text = json_string_value(json_object_get(last, "text"));
	json_int_t error = json_integer_value(json_object_get(last, "error")), cut = json_integer_value(json_object_get(last, "cut"));
	if (ctl->json)
		return error == 0 ? CTL_GOOD : CTL_FAILED;
	if (cut > 0)
		printf("(%lld more are not shown)\n", (long long)cut);
	if (error != 0) {
		fflush(stdout);
		fprintf(stderr, "muster: %s\n", text != NULL && *text != '\0' ? text : "it failed");
		return CTL_FAILED;
	}
	if (text != NULL && *text != '\0')
		printf("%s\n", text);
	return CTL_GOOD;
}

static int ask(const struct ctl *ctl)
{
	char err[CTL_ERROR_MAX];
	json_t *last;
	FILE *server = reach(ctl->socket, err, sizeof(err));
	if (server == NULL)
		return cannot(err);
	struct show *show = show_new();
	bool sent = show != NULL && json_dumpf(ctl->request, server, JSON_COMPACT) == 0 && fputc('\n', server) != EOF && fflush(server) == 0;
	bool whole = sent && read_lines(ctl, server, show, &last);
	fclose(server);
	if (show != NULL)
		show_end(show, stdout);
	if (!whole)
		return cannot("the server ended the connection in the middle, or does not answer; its output says more");
	int status = finish(ctl, last);
	json_decref(last);
	return fflush(stdout) == 0 ? status : CTL_CANNOT;
}

int ctl_main(int argc, char **argv)
{
	struct ctl ctl;
	char err[CTL_ERROR_MAX];
	int status = CTL_GOOD;
	if (!ctl_parse(&ctl, argc, argv, err, sizeof(err)))
		status = cannot(err);
	else if (ctl.help)
		ctl_help(stdout);
	else
		status = ask(&ctl);
	json_decref(ctl.request);
	return status;
}
