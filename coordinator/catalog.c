/*
 * catalog.c - reads the catalog file.
 */
#include <stdio.h>

#include "coordinator/catalog.h"

#define WORDS_MAX 4
#define SHOWN_MAX 60 /* of a wrong word, in a message */

static bool blank(uint8_t c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* Cuts the first line, without its end and comment, off *text. */
static struct bytes take_line(struct bytes *text)
{
	int32_t end = 0, len;
	while (end < text->len && text->p[end] != '\n')
		end++;
	for (len = 0; len < end && text->p[len] != '#';)
		len++;
	struct bytes line = {text->p, len};
	int32_t used = end < text->len ? end + 1 : end;
	*text = (struct bytes){text->p + used, text->len - used};
	return line;
}

/* The words of a line, at most WORDS_MAX; returns how many. */
static unsigned int split(struct bytes line, struct bytes words[WORDS_MAX])
{
	unsigned int n = 0;
	for (int32_t i = 0; i < line.len && n < WORDS_MAX;) {
		int32_t from = i;
		while (i < line.len && !blank(line.p[i]))
			i++;
		if (i > from)
			words[n++] = (struct bytes){line.p + from, i - from};
		else
			i++;
	}
	return n;
}

/* A decimal number of at most IMAGE_PARTITIONS_MAX, or -1. */
static int32_t number(struct bytes word)
{
	int32_t v = 0;
	if (word.len < 1)
		return -1;
	for (int32_t i = 0; i < word.len; i++) {
		if (word.p[i] < '0' || word.p[i] > '9')
			return -1;
		v = v * 10 + (word.p[i] - '0');
		if (v > IMAGE_PARTITIONS_MAX)
			return -1;
	}
	return v;
}

/* Splits at the last colon. */
static bool split_colon(struct bytes word, struct bytes *name, struct bytes *partitions)
{
	for (int32_t i = word.len - 1; i >= 0; i--) {
		if (word.p[i] == ':') {
			*name = (struct bytes){word.p, i};
			*partitions = (struct bytes){word.p + i + 1, word.len - i - 1};
			return true;
		}
	}
	return false;
}

/* A word as it may be shown: cut, unprintable bytes replaced. */
static const char *shown(struct bytes word, char out[SHOWN_MAX + 1])
{
	int32_t n = word.len < SHOWN_MAX ? word.len : SHOWN_MAX;
	for (int32_t i = 0; i < n; i++)
		out[i] = word.p[i] >= 0x20 && word.p[i] < 0x7f ? (char)word.p[i] : '?';
	out[n] = '\0';
	return out;
}

/* Adds the topic of one line; `why` is a message on failure. */
static bool add_line(struct image *img, const struct bytes *words, unsigned int n, char *why, size_t why_len)
{
	struct bytes name, partitions;
	char word[SHOWN_MAX + 1];
	if (n == 3 && bytes_equal(words[0], BYTES_LITERAL("topic"))) {
		name = words[1];
		partitions = words[2];
	} else if (n != 1 || !split_colon(words[0], &name, &partitions)) {
		snprintf(why, why_len, "not understood; a line is \"topic NAME PARTITIONS\" or \"NAME:PARTITIONS\"");
		return false;
	}
	if (!image_topic_name_ok(name)) {
		snprintf(why, why_len, "\"%s\" is no topic name: 1 to 249 of a-z A-Z 0-9 . _ - are allowed, but not \".\" or \"..\"",
			 shown(name, word));
		return false;
	}
	int32_t count = number(partitions);
	if (count < 1) {
		snprintf(why, why_len, "\"%s\" is no number of partitions: 1 to %d is allowed", shown(partitions, word),
			 IMAGE_PARTITIONS_MAX);
		return false;
	}
	if (bytes_equal(name, BYTES_LITERAL(IMAGE_LOG_TOPIC))) {
		snprintf(why, why_len, "\"%s\" is the server's own topic: it is there without being named", IMAGE_LOG_TOPIC);
		return false;
	}
	if (!image_add_topic(img, name, count)) {
		snprintf(why, why_len, "topic \"%s\" stands twice, or memory is short", shown(name, word));
		return false;
	}
	return true;
}

bool catalog_add(struct image *img, struct bytes text, char *err, size_t err_len)
{
	for (unsigned int line = 1; text.len > 0; line++) {
		struct bytes words[WORDS_MAX];
		char why[256];
		unsigned int n = split(take_line(&text), words);
		if (n > 0 && !add_line(img, words, n, why, sizeof(why))) {
			snprintf(err, err_len, "line %u: %s", line, why);
			return false;
		}
	}
	return true;
}
