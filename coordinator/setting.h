/*
 * setting.h - a setting of the program as DescribeConfigs shows it. The program fills a small table when it starts; the coordinator only reads it.
 */
#ifndef MUSTER_SETTING_H
#define MUSTER_SETTING_H

#include "muster/bytes.h"

/* Kafka's numbers for the type of a setting and for where its value came from. */
enum setting_type { SETTING_BOOLEAN = 1, SETTING_STRING = 2, SETTING_INT = 3, SETTING_LONG = 5 };
enum setting_source { SETTING_FROM_FILE = 4, SETTING_FROM_DEFAULT = 5, SETTING_FROM_GROUP = 8 };

struct setting {
	struct bytes name; /* Kafka's */
	struct bytes value, default_value;
	struct bytes help;
	enum setting_type type;
	enum setting_source source;
	bool of_groups_only; /* Kafka has no such setting: shown of groups, not of the node */
};

#endif
