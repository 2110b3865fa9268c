/*
 * config_name.c - the known name nearest to a wrong one.
 *
 * Optimal string alignment distance (Levenshtein with swaps of neighbours), three rows at a time. A name is offered when the
 * distance is at most a third of the wrong name's length, or when the wrong name is a whole dotted end or start of it ("max.size").
 */
#include "coordinator/config.h"

#include <string.h>

#define WORD_MAX 63

static unsigned int min3(unsigned int a, unsigned int b, unsigned int c)
{
	unsigned int m = a < b ? a : b;
	return m < c ? m : c;
}

unsigned int config_distance(const char *a, const char *b)
{
	size_t a_len = strnlen(a, WORD_MAX), b_len = strnlen(b, WORD_MAX);
	unsigned int row[3][WORD_MAX + 1];
	unsigned int *before = row[0], *last = row[1], *now = row[2];
	for (size_t j = 0; j <= b_len; j++)
		last[j] = (unsigned int)j;
	memset(before, 0, sizeof(row[0]));
	for (size_t i = 1; i <= a_len; i++) {
		now[0] = (unsigned int)i;
		for (size_t j = 1; j <= b_len; j++) {
			now[j] = min3(last[j] + 1, now[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && before[j - 2] + 1 < now[j])
				now[j] = before[j - 2] + 1;
		}
		unsigned int *spare = before;
		before = last;
		last = now;
		now = spare;
	}
	return last[b_len];
}

/* `part` is the start or the end of `name`, cut at a dot. */
static bool dotted_part(const char *name, const char *part)
{
	size_t n = strlen(name), k = strlen(part);
	if (k == 0 || k >= n)
		return false;
	return (memcmp(name, part, k) == 0 && name[k] == '.') || (memcmp(name + n - k, part, k) == 0 && name[n - k - 1] == '.');
}

const char *config_nearest(const char *wrong, const char *(*name_of)(unsigned int i), unsigned int n)
{
	const char *best = NULL;
	unsigned int best_distance = (unsigned int)strnlen(wrong, WORD_MAX) / 3 + 1;
	const char *part = NULL;
	for (unsigned int i = 0; i < n; i++) {
		const char *name = name_of(i);
		unsigned int d = config_distance(wrong, name);
		if (d < best_distance) {
			best_distance = d;
			best = name;
		}
		if (part == NULL && dotted_part(name, wrong))
			part = name;
	}
	return best != NULL ? best : part;
}

static const char *setting_name(unsigned int i)
{
	return config_row((enum config_id)i)->name;
}

const char *config_nearest_name(const char *wrong)
{
	return config_nearest(wrong, setting_name, CONFIG_SETTINGS);
}
