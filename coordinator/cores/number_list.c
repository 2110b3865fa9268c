/*
 * number_list.c - see number_list.h.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "coordinator/cores/number_list.h"

static bool take_number(const char **at, unsigned int *out)
{
	const char *p = *at;
	unsigned int value = 0;
	if (!isdigit((unsigned char)*p))
		return false;
	for (; isdigit((unsigned char)*p); p++) {
		value = value * 10 + (unsigned int)(*p - '0');
		if (value > NUMBER_LIST_MAX)
			return false;
	}
	*at = p;
	*out = value;
	return true;
}

static const char *skip_blanks(const char *p)
{
	while (isspace((unsigned char)*p))
		p++;
	return p;
}

bool number_list_next(const char **list, unsigned int *first, unsigned int *last)
{
	unsigned int low, high;
	const char *p = *list = skip_blanks(*list);
	if (!take_number(&p, &low))
		return false;
	high = low;
	if (*p == '-') {
		p++;
		if (!take_number(&p, &high) || high < low)
			return false;
	}
	p = skip_blanks(p);
	if (*p == ',' && *skip_blanks(p + 1) == '\0')
		return false;
	if (*p != ',' && *p != '\0')
		return false;
	*list = *p == ',' ? p + 1 : p;
	*first = low;
	*last = high;
	return true;
}

bool number_list_each(const char *list, void (*each)(void *arg, unsigned int number), void *arg)
{
	unsigned int first, last;
	while (number_list_next(&list, &first, &last))
		for (unsigned int i = first; i <= last; i++)
			each(arg, i);
	return *list == '\0';
}

void number_list_write(char *out, size_t len, unsigned int n, bool (*has)(const void *arg, unsigned int number), const void *arg)
{
	size_t used = 0;
	snprintf(out, len, "none");
	for (unsigned int i = 0; i < n && used < len; i++) {
		unsigned int first = i;
		if (!has(arg, i))
			continue;
		while (i + 1 < n && has(arg, i + 1))
			i++;
		int wrote = snprintf(out + used, len - used, first == i ? "%s%u" : "%s%u-%u", used == 0 ? "" : ",", first, i);
		used += wrote > 0 ? (size_t)wrote : 0;
	}
}
