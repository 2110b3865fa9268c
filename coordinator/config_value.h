/*
 * config_value.h - one value of a setting as text and back. Private to the config files.
 */
#ifndef MUSTER_CONFIG_VALUE_H
#define MUSTER_CONFIG_VALUE_H

#include "coordinator/config.h"

/*
 * Parses `text` (no blanks around it) into the row's member of cfg. A relative PATH counts from `folder`. False: `why` says what is
 * wrong with it as the middle of a sentence, and cfg is untouched.
 */
bool config_value_parse(struct config *cfg, const struct config_row *row, const char *text, const char *folder, char *why,
			size_t why_len);

/* The text that parses back to the same value. */
void config_value_format(const struct config *cfg, const struct config_row *row, char *out, size_t len);

#endif
