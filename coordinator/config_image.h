/*
 * config_image.h - the metadata image that the settings ask for: a node for each worker, the topics of the catalog file, and the log's own topic.
 */
#ifndef MUSTER_CONFIG_IMAGE_H
#define MUSTER_CONFIG_IMAGE_H

#include "coordinator/core_map.h"
#include "coordinator/image.h"

/* `host` is what clients are told to connect to. The image is sealed; its n-th node is worker n, and shards are whose the map says. NULL: one line in err. */
struct image *config_image(const struct config *cfg, const struct core_map *map, const char *host, char *err, size_t err_len);

#endif
