/*
 * frames.h - reads frames.txt: whole frames, without their length, as recorded between real clients and a real broker.
 */
#ifndef MUSTER_TESTS_FRAMES_H
#define MUSTER_TESTS_FRAMES_H

#include <stdio.h>
#include <stdlib.h>

#include "muster/base.h"

#define FRAME_MAX 4096 /* longest frame, bytes */

struct frame {
	char client[32];
	char direction[16]; /* "request" or "response" */
	int key, version;   /* of the request, also in a response */
	uint8_t bytes[FRAME_MAX];
	size_t len;
};

/* Calls `visit` for each row; returns their number, or -1 when the file cannot be read or a row makes no sense. */
static inline int frames_each(const char *path, void (*visit)(const struct frame *f, void *arg), void *arg)
{
	static char line[2 * FRAME_MAX + 256];
	static char hex[2 * FRAME_MAX + 1];
	static struct frame f;
	int rows = 0;
	FILE *file = fopen(path, "r");
	if (file == NULL)
		return -1;
	while (fgets(line, sizeof(line), file) != NULL) {
		if (line[0] == '#')
			continue;
		if (sscanf(line, "%31s %15s %d %d %8192s", f.client, f.direction, &f.key, &f.version, hex) != 5) {
			rows = -1;
			break;
		}
		unsigned int byte;
		for (f.len = 0; f.len < FRAME_MAX && sscanf(hex + 2 * f.len, "%2x", &byte) == 1; f.len++)
			f.bytes[f.len] = (uint8_t)byte;
		visit(&f, arg);
		rows++;
	}
	fclose(file);
	return rows;
}

#endif
