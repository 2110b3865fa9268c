/*
 * groups_file.h - the file of groups with settings of their own: an ini file (ini_file.h), a section for each group id or, with a * at its end, for
 * all ids that begin so; in it any of GROUP_OVERRIDES, with the values that config.def allows.
 *
 *   [orders-*]
 *   offsets.retention.minutes = 43200
 *   [orders-eu]
 *   group.max.size = 40
 */
#ifndef MUSTER_GROUPS_FILE_H
#define MUSTER_GROUPS_FILE_H

#include "coordinator/config.h"
#include "coordinator/group_rules.h"

/* Adds the file's rules; sealing them is the caller's. False: one line in err, rules are then not to be used. */
bool groups_file_read(struct group_rules *rules, const char *path, char *err, size_t err_len);

/* After the sealing: the rules in force against themselves. False: one line in err. */
bool groups_file_check(const struct group_rules *rules, const char *path, char *err, size_t err_len);

#endif
