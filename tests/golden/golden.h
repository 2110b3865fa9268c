/*
 * golden.h - reads messages.txt: the same messages as somebody else's encoder wrote them.
 */
#ifndef MUSTER_TESTS_GOLDEN_H
#define MUSTER_TESTS_GOLDEN_H

#include <stdio.h>
#include <stdlib.h>

#include "coordinator/wire/messages.h"

#define GOLDEN_MAX 4096 /* longest body, bytes */

struct golden {
	const struct message_type *type;
	unsigned int index; /* in message_types */
	int16_t version;
	char name[64];
	char variant[16];
	char encoder[16];
	uint8_t body[GOLDEN_MAX];
	size_t len;
};

static inline size_t golden_hex(const char *hex, uint8_t *out)
{
	size_t n = 0;
	unsigned int byte;
	if (hex[0] == '-')
		return 0;
	for (; n < GOLDEN_MAX && sscanf(hex + 2 * n, "%2x", &byte) == 1; n++)
		out[n] = (uint8_t)byte;
	return n;
}

/* Calls `visit` for each row; returns their number, or -1 when the file cannot be read or a row names no message of ours. */
static inline int golden_each(const char *path, void (*visit)(const struct golden *g, void *arg), void *arg)
{
	static char line[2 * GOLDEN_MAX + 256];
	static char hex[2 * GOLDEN_MAX + 1];
	static struct golden g;
	int rows = 0, version;
	FILE *f = fopen(path, "r");
	if (f == NULL)
		return -1;
	while (rows >= 0 && fgets(line, sizeof(line), f) != NULL) {
		if (line[0] == '#')
			continue;
		if (sscanf(line, "%63s %d %15s %15s %8192s", g.name, &version, g.variant, g.encoder, hex) != 5) {
			rows = -1;
			break;
		}
		g.version = (int16_t)version;
		g.len = golden_hex(hex, g.body);
		for (g.index = 0; g.index < message_types_len && strcmp(message_types[g.index].name, g.name) != 0;)
			g.index++;
		if (g.index == message_types_len) {
			rows = -1;
			break;
		}
		g.type = &message_types[g.index];
		visit(&g, arg);
		rows++;
	}
	fclose(f);
	return rows;
}

#endif
