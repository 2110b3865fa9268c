/*
 * ini_file.h - an ini file through libinih, so that every error names its own line: sections in brackets, `name = value`, comments from # or ; at the
 * start of a line or from ; after a blank.
 *
 * libinih takes an indented line for the continuation of the value above, and cuts a section's name after 49 bytes; neither happens here.
 * The first error wins: later ones are neither checked nor told.
 */
#ifndef MUSTER_INI_FILE_H
#define MUSTER_INI_FILE_H

#include <limits.h>
#include <stdio.h>

#include "muster/base.h"

#define INI_SECTION_MAX 200 /* libinih's lines are no longer */

struct ini_file {
	/* The caller's: one section line, and one `name = value` of the section. Either may call ini_file_fail. `section` may be NULL. */
	void (*section)(struct ini_file *f, const char *name);
	void (*entry)(struct ini_file *f, const char *section, const char *name, const char *value);
	void *arg;

	const char *path;	       /* as it stands in errors */
	char folder[PATH_MAX];	       /* the file's, absolute */
	int line;		       /* the one being looked at, from 1 */
	char in[INI_SECTION_MAX];      /* the section; "": before the first */
	int bad_line;		       /* of the first error; 0: none */
	FILE *file;
	char *err;
	size_t err_len;
};

/* False: one line "PATH:LINE: ..." in err. */
bool ini_file_read(struct ini_file *f, const char *path, char *err, size_t err_len);

/* An error of this line. */
PRINTF_LIKE(3, 4) void ini_file_fail(struct ini_file *f, int line, const char *format, ...);

#endif
