/*
 * catalog.h - the catalog file: the topics of a standalone server.
 *
 * Text, one topic a line, in either form; blank lines and what follows a '#' are ignored:
 *
 *   topic NAME PARTITIONS
 *   NAME:PARTITIONS
 *
 * NAME is 1 to 249 of [a-zA-Z0-9._-], not "." or ".."; PARTITIONS is 1 to 100000; no name stands twice.
 */
#ifndef MUSTER_CATALOG_H
#define MUSTER_CATALOG_H

#include "coordinator/image.h"

/*
 * Adds the topics of a catalog file's text to an image that is being built. False: at the first wrong line, with "line N: what is wrong and what
 * is allowed" in err; the topics of earlier lines have been added.
 */
bool catalog_add(struct image *img, struct bytes text, char *err, size_t err_len);

#endif
