/*
 * config_print.c - the settings as text: what is in force, and the documented example.
 *
 * Both are files that config_read takes. The origin stands behind the value as a comment, or on the line above where the line would
 * become longer than an ini line may be.
 */
#include "coordinator/config.h"

#include <string.h>

#include "coordinator/config_value.h"

#define LINE_MAX_BYTES 160 /* well below the ini reader's 198 */
#define VALUE_COLUMN 44
#define HELP_WIDTH 100

/* Starts the row's section where the row before was in another one. */
static void print_section(unsigned int id, FILE *out)
{
	const char *section = config_row(id)->section;
	if (id == 0 || strcmp(config_row(id - 1)->section, section) != 0)
		fprintf(out, "%s[%s]\n", id == 0 ? "" : "\n", section);
}

void config_print(const struct config *cfg, FILE *out)
{
	char value[CONFIG_TEXT_MAX + 1], origin[300], setting[CONFIG_TEXT_MAX + 80];
	for (unsigned int i = 0; i < CONFIG_SETTINGS; i++) {
		const struct config_row *row = config_row(i);
		config_value_format(cfg, row, value, sizeof(value));
		config_origin_text(cfg, i, origin, sizeof(origin));
		int n = snprintf(setting, sizeof(setting), "%s = %s", row->name, value);
		print_section(i, out);
		if (n + (int)strlen(origin) > LINE_MAX_BYTES)
			fprintf(out, "; %s\n%s\n", origin, setting);
		else
			fprintf(out, "%-*s ; %s\n", VALUE_COLUMN, setting, origin);
	}
}

void config_print_list(FILE *out)
{
	char allowed[256];
	for (unsigned int i = 0; i < CONFIG_SETTINGS; i++) {
		const struct config_row *row = config_row(i);
		config_allowed(row, allowed, sizeof(allowed));
		fprintf(out, "  %-34s %-23s %s\n", row->name, *row->default_text == '\0' ? "-" : row->default_text, allowed);
	}
}

/* `text` as comment lines, broken at blanks. */
static void print_comment(const char *text, FILE *out)
{
	size_t column = 0;
	while (*text != '\0') {
		size_t n = strcspn(text, " ");
		if (column + n > HELP_WIDTH) {
			fputc('\n', out);
			column = 0;
		}
		fprintf(out, "%s%.*s", column == 0 ? "# " : " ", (int)n, text);
		column += n + 1;
		text += n + (text[n] == ' ');
	}
	fputc('\n', out);
}

void config_print_example(FILE *out)
{
	char allowed[256], text[512];
	fputs("# Every setting of muster with its default, as `muster config --example` prints it.\n"
	      "# Remove the # in front of a setting to change it. Precedence: default, then this file, then --set NAME=VALUE.\n"
	      "# Check it with `muster config --check --config FILE`.\n\n",
	      out);
	for (unsigned int i = 0; i < CONFIG_SETTINGS; i++) {
		const struct config_row *row = config_row(i);
		config_allowed(row, allowed, sizeof(allowed));
		snprintf(text, sizeof(text), "%s. Allowed: %s.", row->help, allowed);
		print_section(i, out);
		print_comment(text, out);
		fprintf(out, "#%s =%s%s\n", row->name, *row->default_text == '\0' ? "" : " ", row->default_text);
	}
}
