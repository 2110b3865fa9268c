/*
 * topic_id.h - the id of a topic, derived from its name, so that it is the same on every node and after every start.
 *
 * It is the name-based UUID of RFC 9562, version 5 (SHA-1), in a namespace of Muster's own. Its version bits keep it apart from the ids
 * that Kafka reserves (0 and 1).
 */
#ifndef MUSTER_TOPIC_ID_H
#define MUSTER_TOPIC_ID_H

#include "coordinator/wire/types.h"

struct uuid topic_id_of(struct bytes name);

#endif
