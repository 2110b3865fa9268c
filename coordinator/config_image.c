/*
 * config_image.c - see config_image.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "coordinator/catalog.h"
#include "coordinator/config_image.h"

/* Adds the topics of the catalog file. False: one line in err. */
static bool catalog_read(struct image *image, const char *path, char *err, size_t err_len)
{
	char *text = NULL, why[CONFIG_ERROR_MAX / 2];
	size_t cap = 0;
	FILE *f = fopen(path, "re");
	/* A byte 0 ends the reading, and then, as the last one of the text, is an error of the catalog. */
	ssize_t len = f == NULL ? -1 : getdelim(&text, &cap, '\0', f);
	bool ok = f != NULL && (len >= 0 || feof(f));
	if (!ok)
		snprintf(err, err_len, "%s: topics.file: cannot be read: %s; allowed: a readable file", path, strerror(errno));
	else if (len > 0 && !(ok = catalog_add(image, bytes_of(text, (size_t)len), why, sizeof(why))))
		snprintf(err, err_len, "%s:%s", path, strncmp(why, "line ", 5) == 0 ? why + 5 : why);
	if (f != NULL)
		fclose(f);
	free(text);
	return ok;
}

struct image *config_image(const struct config *cfg, const struct core_map *map, const char *host, char *err, size_t err_len)
{
	struct image *image = image_new(bytes_str(cfg->cluster_id));
	bool ok = image != NULL;
	for (unsigned int w = 0; ok && w < map->workers; w++)
		ok = image_add_node(image, map->worker[w].node_id, bytes_str(host), map->worker[w].port);
	ok = ok && image_set_owners(image, map->owner, map->shards);
	ok = ok && image_add_topic(image, BYTES_LITERAL(IMAGE_LOG_TOPIC), (int32_t)map->shards);
	if (!ok)
		snprintf(err, err_len, "no memory for the metadata image");
	if (ok && cfg->topics_file[0] != '\0')
		ok = catalog_read(image, cfg->topics_file, err, err_len);
	if (!ok) {
		if (image != NULL)
			image_free(image);
		return NULL;
	}
	image_seal(image, map->shards);
	return image;
}
