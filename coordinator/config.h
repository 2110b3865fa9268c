/*
 * config.h - the settings of the program: their values, where each came from, and how they are read and printed.
 *
 * All settings stand in config.def. A value comes from its default, then from the file, then from --set; the later one wins.
 * The file is an ini file: sections in brackets, `name = value`, comments from # or ; at the start of a line or from ; after a blank.
 *
 * Errors are one line without "muster: ": where, which setting, what is wrong, what is allowed. The first one ends the reading.
 *
 *   muster.conf:12: port: 70000 is too large; allowed: 1 to 65535 (TCP port)
 *   --set: prot: there is no such setting; nearest: port
 */
#ifndef MUSTER_CONFIG_H
#define MUSTER_CONFIG_H

#include <stdio.h>

#include "muster/base.h"

#define CONFIG_TEXT_MAX 180  /* longest TEXT or PATH value, bytes */
#define CONFIG_ERROR_MAX 900 /* room for any error line */

struct config_network {
	uint32_t addr; /* host byte order */
	unsigned int prefix_len;
};

enum config_type {
	CONFIG_NUMBER,
	CONFIG_BOOL,
	CONFIG_TEXT,
	CONFIG_PATH,
	CONFIG_ENUM,
	CONFIG_ADDRESS,
	CONFIG_NETWORK,
	CONFIG_MAC,
};

/* One row of config.def. */
struct config_row {
	const char *section;
	const char *name;
	enum config_type type;
	const char *default_text;
	int64_t min, max;
	const char *unit;
	const char *help;
	size_t offset; /* of the member in struct config */
};

/* The number of a setting: CONFIG_ID_port, ... */
enum config_id {
#define SETTING(section, field, name, type, def, min, max, unit, help) CONFIG_ID_##field,
#include "coordinator/config.def"
#undef SETTING
	CONFIG_SETTINGS
};

enum config_source { CONFIG_FROM_DEFAULT, CONFIG_FROM_FILE, CONFIG_FROM_SET };

struct config_origin {
	enum config_source source;
	int line; /* in the file; number of the --set; 0 for a default */
};

#define CONFIG_MEMBER_NUMBER(field) int64_t field;
#define CONFIG_MEMBER_BOOL(field) bool field;
#define CONFIG_MEMBER_TEXT(field) char field[CONFIG_TEXT_MAX + 1];
#define CONFIG_MEMBER_PATH(field) char field[CONFIG_TEXT_MAX + 1];
#define CONFIG_MEMBER_ENUM(field) int field;
#define CONFIG_MEMBER_ADDRESS(field) uint32_t field; /* host byte order; 0: none */
#define CONFIG_MEMBER_NETWORK(field) struct config_network field;
#define CONFIG_MEMBER_MAC(field) char field[18]; /* "aa:bb:cc:dd:ee:ff" or "" */

struct config {
#define SETTING(section, field, name, type, def, min, max, unit, help) CONFIG_MEMBER_##type(field)
#include "coordinator/config.def"
#undef SETTING
	struct config_origin origin[CONFIG_SETTINGS];
	char file[256]; /* as given to config_read; "": none */
	int sets;	/* values set by config_set so far */
};

/* Sets every setting to its default. */
void config_init(struct config *cfg);

/* Reads a file over the defaults; at most one per config. False: one line in err, cfg is then not to be used. */
bool config_read(struct config *cfg, const char *path, char *err, size_t err_len);

/* One "name=value" of the command line; of several for one name the last wins. A relative PATH counts from the working directory. */
bool config_set(struct config *cfg, const char *assignment, char *err, size_t err_len);

/* Checks the settings against each other; call it once after the last config_set. The error names the one that was set last. */
bool config_validate(const struct config *cfg, char *err, size_t err_len);

/* The effective values as a file that config_read takes back to the same values; a comment says where each came from. */
void config_print(const struct config *cfg, FILE *out);

/* The documented example: every setting with help, range and default, commented out. */
void config_print_example(FILE *out);

/* One line for each setting: name, default, what is allowed. */
void config_print_list(FILE *out);

/* "muster.conf:12", "--set" or "default", as errors and prints name it. */
void config_origin_text(const struct config *cfg, enum config_id id, char *out, size_t len);

/* "1 to 65535 (TCP port)": what a setting may be. */
void config_allowed(const struct config_row *row, char *out, size_t len);

const struct config_row *config_row(enum config_id id);

/* The known name nearest to a wrong one by edit distance; NULL when none is near. */
const char *config_nearest_name(const char *wrong);
/* The same among `n` names. */
const char *config_nearest(const char *wrong, const char *(*name_of)(unsigned int i), unsigned int n);
/* The number of a setting by its name; -1: there is none. */
int config_find_name(const char *name);
/* Single-character insertions, deletions and substitutions, and swaps of neighbours, between two words; longer ones are cut at 63. */
unsigned int config_distance(const char *a, const char *b);

#endif
