/*
 * text.c - lines for people and lines of JSON; see text.h.
 */
#include <inttypes.h>
#include <time.h>

#include "coordinator/tool/text.h"

struct text text_to(FILE *out, bool json)
{
	return (struct text){out, json, true};
}

/* ---- strings ---- */

/* Length of the well-formed UTF-8 character at p, or 0. */
static int32_t utf8_len(const uint8_t *p, int32_t left)
{
	static const struct {
		uint8_t first, last, low, high; /* of the first byte; of the second */
		int32_t len;
	} rows[] = {{0x00, 0x7f, 0, 0, 1},	  {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3}, {0xe1, 0xec, 0x80, 0xbf, 3},
		    {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3}, {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4},
		    {0xf4, 0xf4, 0x80, 0x8f, 4}};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (p[0] < rows[i].first || p[0] > rows[i].last)
			continue;
		if (rows[i].len > left || (rows[i].len > 1 && (p[1] < rows[i].low || p[1] > rows[i].high)))
			return 0;
		for (int32_t k = 2; k < rows[i].len; k++)
			if (p[k] < 0x80 || p[k] > 0xbf)
				return 0;
		return rows[i].len;
	}
	return 0;
}

static void json_chars(FILE *out, struct bytes b)
{
	for (int32_t i = 0; i < b.len;) {
		int32_t n = utf8_len(b.p + i, b.len - i);
		uint8_t c = b.p[i];
		if (n == 0)
			fputs("\\ufffd", out);
		else if (c < 0x20 || c == '"' || c == '\\' || c == 0x7f)
			fprintf(out, "\\u%04x", c);
		else
			fwrite(b.p + i, 1, (size_t)n, out);
		i += n == 0 ? 1 : n;
	}
}

static bool is_plain(struct bytes b)
{
	for (int32_t i = 0; i < b.len; i++)
		if (b.p[i] <= ' ' || b.p[i] >= 0x7f || strchr("\"\\=,", b.p[i]) != NULL)
			return false;
	return b.len > 0 && !bytes_equal(b, BYTES_LITERAL("-"));
}

static void people_chars(FILE *out, struct bytes b)
{
	if (is_plain(b)) {
		fwrite(b.p, 1, (size_t)b.len, out);
		return;
	}
	fputc('"', out);
	for (int32_t i = 0; i < b.len; i++) {
		uint8_t c = b.p[i];
		if (c >= ' ' && c < 0x7f && c != '"' && c != '\\')
			fputc(c, out);
		else
			fprintf(out, "\\x%02x", c);
	}
	fputc('"', out);
}

/* ---- fields ---- */

static void text_name(struct text *t, const char *name)
{
	if (t->json)
		fprintf(t->out, "%s\"%s\":", t->first ? "" : ",", name);
	else
		fprintf(t->out, "%s%s=", t->first ? "" : " ", name);
	t->first = false;
}

void text_begin(struct text *t)
{
	if (t->json)
		fputc('{', t->out);
	t->first = true;
}

void text_end(struct text *t)
{
	fputs(t->json ? "}\n" : "\n", t->out);
}

void text_null(struct text *t, const char *name)
{
	text_name(t, name);
	fputs(t->json ? "null" : "-", t->out);
}

void text_string(struct text *t, const char *name, struct bytes value)
{
	if (bytes_is_null(value)) {
		text_null(t, name);
		return;
	}
	text_name(t, name);
	if (!t->json) {
		people_chars(t->out, value);
		return;
	}
	fputc('"', t->out);
	json_chars(t->out, value);
	fputc('"', t->out);
}

void text_number(struct text *t, const char *name, int64_t value)
{
	text_name(t, name);
	fprintf(t->out, "%" PRId64, value);
}

void text_time(struct text *t, const char *name, int64_t ms)
{
	time_t s = (time_t)(ms / 1000);
	struct tm tm;
	char day[64];
	if (t->json || ms < 0 || gmtime_r(&s, &tm) == NULL || strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &tm) == 0) {
		text_number(t, name, ms);
		return;
	}
	text_name(t, name);
	fprintf(t->out, "%s.%03dZ", day, (int)(ms % 1000));
}

void text_word(struct text *t, const char *name, const char *word)
{
	if (t->json) {
		text_string(t, name, bytes_str(word));
		return;
	}
	fprintf(t->out, "%s%s", t->first ? "" : " ", word);
	t->first = false;
}

/* ---- nesting ---- */

void text_object(struct text *t, const char *name)
{
	if (!t->json)
		return;
	text_name(t, name);
	fputc('{', t->out);
	t->first = true;
}

void text_object_end(struct text *t)
{
	if (t->json)
		fputc('}', t->out);
	t->first = false;
}

void text_array(struct text *t, const char *name)
{
	if (!t->json)
		return;
	text_name(t, name);
	fputc('[', t->out);
	t->first = true;
}

void text_item(struct text *t, const char *name)
{
	if (t->json)
		fputs(t->first ? "{" : ",{", t->out);
	else
		fprintf(t->out, "\n    %s ", name);
	t->first = true;
}

void text_item_end(struct text *t)
{
	if (t->json)
		fputc('}', t->out);
	t->first = false;
}

void text_array_end(struct text *t)
{
	if (t->json)
		fputc(']', t->out);
	t->first = false;
}

void text_list(struct text *t, const char *name)
{
	text_name(t, name);
	if (t->json)
		fputc('[', t->out);
	t->first = true;
}

static void text_list_next(struct text *t)
{
	if (!t->first)
		fputc(',', t->out);
	t->first = false;
}

void text_list_string(struct text *t, struct bytes value)
{
	text_list_next(t);
	if (!t->json) {
		people_chars(t->out, value);
		return;
	}
	fputc('"', t->out);
	json_chars(t->out, value);
	fputc('"', t->out);
}

void text_list_partition(struct text *t, struct bytes topic, int32_t partition)
{
	text_list_next(t);
	if (t->json) {
		fputc('"', t->out);
		json_chars(t->out, topic);
		fprintf(t->out, "-%" PRId32 "\"", partition);
	} else {
		people_chars(t->out, topic);
		fprintf(t->out, "-%" PRId32, partition);
	}
}

void text_list_end(struct text *t)
{
	if (t->json)
		fputc(']', t->out);
	t->first = false;
}
