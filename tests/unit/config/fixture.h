/*
 * fixture.h - what the tests of the settings share: a file made of a string, and errors compared as whole lines.
 */
#ifndef TEST_CONFIG_FIXTURE_H
#define TEST_CONFIG_FIXTURE_H

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "coordinator/config.h"

struct fixture {
	struct config cfg;
	char path[32];
	char err[CONFIG_ERROR_MAX];
	char want[CONFIG_ERROR_MAX];
};

static inline void fixture_write(struct fixture *f, const char *text, size_t len)
{
	strcpy(f->path, "/tmp/muster.XXXXXX");
	int fd = mkstemp(f->path);
	cr_assert(fd >= 0 && write(fd, text, len) == (ssize_t)len);
	close(fd);
}

/* Reads `text` as a file named f->path over the defaults. */
static inline bool fixture_read(struct fixture *f, const char *text)
{
	f->err[0] = '\0';
	fixture_write(f, text, strlen(text));
	config_init(&f->cfg);
	bool ok = config_read(&f->cfg, f->path, f->err, sizeof(f->err));
	unlink(f->path);
	return ok;
}

/* `text` is refused with exactly "PATH:LINE: MESSAGE". */
static inline void fixture_refused(const char *text, int line, const char *message)
{
	struct fixture f;
	cr_expect(not(fixture_read(&f, text)), "accepted: %s", text);
	snprintf(f.want, sizeof(f.want), "%s:%d: %s", f.path, line, message);
	cr_expect_str_eq(f.err, f.want);
}

/* The assignment is refused with exactly "--set: MESSAGE". */
static inline void fixture_set_refused(const char *assignment, const char *message)
{
	struct fixture f;
	f.err[0] = '\0';
	config_init(&f.cfg);
	cr_expect(not(config_set(&f.cfg, assignment, f.err, sizeof(f.err))), "accepted: %s", assignment);
	snprintf(f.want, sizeof(f.want), "--set: %s", message);
	cr_expect_str_eq(f.err, f.want);
}

static inline void fixture_set(struct config *cfg, const char *assignment)
{
	char err[CONFIG_ERROR_MAX];
	cr_assert(config_set(cfg, assignment, err, sizeof(err)), "%s", err);
}

#endif
