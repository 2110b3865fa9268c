/*
 * ini_file.c - see ini_file.h. libinih reads line by line through ini_file_line, which counts the lines and keeps the section's whole name.
 */
#include <ctype.h>
#include <errno.h>
#include <ini.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/ini_file.h"

void ini_file_fail(struct ini_file *f, int line, const char *format, ...)
{
	if (f->bad_line != 0 && f->bad_line <= line)
		return;
	f->bad_line = line;
	int n = snprintf(f->err, f->err_len, "%s:%d: ", f->path, line);
	if (n < 0 || (size_t)n >= f->err_len)
		return;
	va_list ap;
	va_start(ap, format);
	vsnprintf(f->err + n, f->err_len - (size_t)n, format, ap);
	va_end(ap);
}

/* A line "[NAME]" becomes a short one for libinih; its name is kept, and told. */
static void ini_file_section(struct ini_file *f, char *buf, int size)
{
	if (f->line == 1 && strncmp(buf, "\xef\xbb\xbf", 3) == 0) /* a byte order mark, as libinih skips it */
		memmove(buf, buf + 3, strlen(buf + 3) + 1);
	const char *end = buf[0] == '[' ? strchr(buf, ']') : NULL;
	if (end == NULL)
		return;
	snprintf(f->in, sizeof(f->in), "%.*s", (int)(end - buf - 1), buf + 1);
	snprintf(buf, (size_t)size, "[.]\n");
	if (f->section != NULL && f->bad_line == 0)
		f->section(f, f->in);
}

/* libinih's reader: the next line, without indent; comments and unreadable lines come as empty ones. */
static char *ini_file_line(char *buf, int size, void *arg)
{
	struct ini_file *f = arg;
	int n = 0, c;
	bool comment = false, cut = false, nul = false;
	f->line++;
	while ((c = getc(f->file)) != EOF && c != '\n') {
		if (n == 0 && (c == '#' || c == ';'))
			comment = true;
		if (comment || (n == 0 && isblank(c)))
			continue;
		nul |= c == '\0';
		cut |= n >= size - 2;
		if (!cut)
			buf[n++] = (char)c;
	}
	if (c == EOF && n == 0 && !comment)
		return NULL;
	if (nul)
		ini_file_fail(f, f->line, "holds a byte 0; allowed: text");
	else if (cut)
		ini_file_fail(f, f->line, "is too long; allowed: %d bytes", size - 2);
	if (nul || cut)
		n = 0;
	buf[n] = '\n';
	buf[n + 1] = '\0';
	ini_file_section(f, buf, size);
	return buf;
}

static int ini_file_entry(void *arg, const char *section, const char *name, const char *value)
{
	struct ini_file *f = arg;
	if (f->bad_line == 0)
		f->entry(f, f->in, name, value);
	return f->bad_line == 0;
}

static bool folder_of(const char *path, char folder[PATH_MAX])
{
	char dir[PATH_MAX];
	const char *slash = strrchr(path, '/');
	int n = slash == NULL ? snprintf(dir, sizeof(dir), ".")
			      : snprintf(dir, sizeof(dir), "%.*s", slash == path ? 1 : (int)(slash - path), path);
	return n > 0 && (size_t)n < sizeof(dir) && realpath(dir, folder) != NULL;
}

bool ini_file_read(struct ini_file *f, const char *path, char *err, size_t err_len)
{
	f->path = path;
	f->err = err;
	f->err_len = err_len;
	f->line = f->bad_line = 0;
	f->in[0] = '\0';
	if (!folder_of(path, f->folder) || (f->file = fopen(path, "re")) == NULL) {
		snprintf(err, err_len, "%s: cannot be opened: %s; allowed: a readable file", path, strerror(errno));
		return false;
	}
	int bad = ini_parse_stream(ini_file_line, f, ini_file_entry, f);
	int read_error = ferror(f->file) ? errno : 0;
	fclose(f->file);
	if (read_error != 0) {
		snprintf(err, err_len, "%s: cannot be read: %s; allowed: a readable file", path, strerror(read_error));
		return false;
	}
	if (bad > 0)
		ini_file_fail(f, bad, "neither a section nor a setting; allowed: [SECTION] or NAME = VALUE");
	return bad == 0 && f->bad_line == 0;
}
