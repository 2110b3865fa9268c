/*
 * config_kafka.h - the settings of the program that Kafka has under the same name, and those that groups can have for themselves, for DescribeConfigs.
 */
#ifndef MUSTER_CONFIG_KAFKA_H
#define MUSTER_CONFIG_KAFKA_H

#include "coordinator/config.h"
#include "coordinator/setting.h"

#define CONFIG_KAFKA_MAX 32

/* Points into itself: not to be copied. */
struct config_kafka {
	struct setting list[CONFIG_KAFKA_MAX];
	unsigned int len;
	char values[CONFIG_KAFKA_MAX][24]; /* numbers */
};

/* `node` is the node id of the worker that will show them. */
void config_kafka(struct config_kafka *out, const struct config *cfg, int32_t node);

#endif
