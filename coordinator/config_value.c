/*
 * config_value.c - one value of a setting as text and back, type by type.
 *
 * Invariants:
 *  1. format(parse(text)) parses to the same value again, also after a way through the ini file: so a TEXT may hold no " ;", which
 *     would start a comment there.
 *  2. A refused text changes nothing.
 */
#include "coordinator/config_value.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_DIGITS_MAX 18 /* any such number fits an int64_t */

static void *member(struct config *cfg, const struct config_row *row)
{
	return (char *)cfg + row->offset;
}

static const void *member_const(const struct config *cfg, const struct config_row *row)
{
	return (const char *)cfg + row->offset;
}

static bool parse_number(int64_t *out, const struct config_row *row, const char *text, char *why, size_t len)
{
	const char *digits = text + (*text == '-');
	size_t n = strspn(digits, "0123456789");
	if (n == 0 || digits[n] != '\0') {
		snprintf(why, len, "\"%.40s\" is not a whole number", text);
		return false;
	}
	bool huge = n > NUMBER_DIGITS_MAX;
	int64_t v = huge ? 0 : strtoll(text, NULL, 10);
	if (huge ? *text == '-' : v < row->min) {
		snprintf(why, len, "%.40s is too small", text);
		return false;
	}
	if (huge || v > row->max) {
		snprintf(why, len, "%.40s is too large", text);
		return false;
	}
	*out = v;
	return true;
}

static bool parse_bool(bool *out, const char *text, char *why, size_t len)
{
	bool yes = strcmp(text, "true") == 0;
	if (!yes && strcmp(text, "false") != 0) {
		snprintf(why, len, "\"%.40s\" is not a truth value", text);
		return false;
	}
	*out = yes;
	return true;
}

/* Finds `text` among the words of the unit. */
static bool parse_enum(int *out, const struct config_row *row, const char *text, char *why, size_t len)
{
	const char *word = row->unit;
	for (int i = 0;; i++) {
		size_t n = strcspn(word, "|");
		if (strlen(text) == n && memcmp(word, text, n) == 0) {
			*out = i;
			return true;
		}
		if (word[n] == '\0')
			break;
		word += n + 1;
	}
	snprintf(why, len, "\"%.40s\" is none of the words", text);
	return false;
}

/* The word number `value` of the unit and its length. */
static const char *enum_word(const struct config_row *row, int value, size_t *n)
{
	const char *word = row->unit;
	for (; value > 0; value--)
		word += strcspn(word, "|") + 1;
	*n = strcspn(word, "|");
	return word;
}

static bool text_ok(const struct config_row *row, const char *text, size_t n, char *why, size_t len)
{
	for (const char *p = text; *p != '\0'; p++) {
		if (*p < ' ' || *p > '~') {
			snprintf(why, len, "holds the byte 0x%02x", (unsigned char)*p);
			return false;
		}
		if (*p == ';' && (p == text || p[-1] == ' ')) {
			snprintf(why, len, "holds a ; after a blank, which starts a comment");
			return false;
		}
	}
	if (n == 0 && row->min > 0) {
		snprintf(why, len, "is empty");
		return false;
	}
	if ((int64_t)n > row->max) {
		snprintf(why, len, "is %zu bytes long", n);
		return false;
	}
	return true;
}

static bool parse_text(char *out, const struct config_row *row, const char *text, char *why, size_t len)
{
	size_t n = strlen(text);
	if (!text_ok(row, text, n, why, len))
		return false;
	memcpy(out, text, n + 1);
	return true;
}

static bool parse_path(char *out, const struct config_row *row, const char *text, const char *folder, char *why, size_t len)
{
	if (*text == '\0' || *text == '/')
		return parse_text(out, row, text, why, len);
	while (text[0] == '.' && text[1] == '/')
		text += 2;
	char whole[1024];
	int n = snprintf(whole, sizeof(whole), "%s/%s", folder, text);
	if (n < 0 || (size_t)n >= sizeof(whole)) {
		snprintf(why, len, "is %d bytes long as %.80s...", n, whole);
		return false;
	}
	return parse_text(out, row, whole, why, len);
}

static bool parse_address(uint32_t *out, const char *text, char *why, size_t len)
{
	struct in_addr in = {0};
	if (*text != '\0' && inet_pton(AF_INET, text, &in) != 1) {
		snprintf(why, len, "\"%.40s\" is not an IPv4 address", text);
		return false;
	}
	*out = ntohl(in.s_addr);
	return true;
}

static bool parse_network(struct config_network *out, const struct config_row *row, const char *text, char *why, size_t len)
{
	char host[INET_ADDRSTRLEN];
	size_t n = strcspn(text, "/");
	const char *digits = text[n] == '/' ? text + n + 1 : "";
	size_t n_digits = strspn(digits, "0123456789");
	if (n == 0 || n >= sizeof(host) || n_digits == 0 || n_digits > 2 || digits[n_digits] != '\0') {
		snprintf(why, len, "\"%.40s\" is not an address with its prefix length", text);
		return false;
	}
	memcpy(host, text, n);
	host[n] = '\0';
	struct config_network net;
	if (!parse_address(&net.addr, host, why, len))
		return false;
	net.prefix_len = (unsigned int)atoi(digits);
	if (net.prefix_len < row->min || net.prefix_len > row->max) {
		snprintf(why, len, "prefix length %u is out of range", net.prefix_len);
		return false;
	}
	uint32_t host_mask = UINT32_MAX >> net.prefix_len;
	uint32_t host_part = net.addr & host_mask;
	if (net.addr >> 24 == 0 || net.addr >> 24 == 127 || net.addr >> 24 >= 224) {
		snprintf(why, len, "%s is not the address of a host", host);
		return false;
	}
	if (net.prefix_len < 31 && (host_part == 0 || host_part == host_mask)) {
		snprintf(why, len, "%s is the %s address of its network", host, host_part == 0 ? "first" : "broadcast");
		return false;
	}
	*out = net;
	return true;
}

static bool parse_mac(char out[18], const char *text, char *why, size_t len)
{
	bool ok = strlen(text) == 17;
	for (size_t i = 0; ok && i < 17; i++)
		ok = i % 3 == 2 ? text[i] == ':' : isxdigit((unsigned char)text[i]) != 0;
	if (*text != '\0' && !ok) {
		snprintf(why, len, "\"%.40s\" is not a MAC address", text);
		return false;
	}
	if (ok && strtoul(text, NULL, 16) % 2 == 1) {
		snprintf(why, len, "%s is a group address, not that of a port", text);
		return false;
	}
	memset(out, 0, 18);
	for (size_t i = 0; text[i] != '\0'; i++)
		out[i] = (char)tolower((unsigned char)text[i]);
	return true;
}

bool config_value_parse(struct config *cfg, const struct config_row *row, const char *text, const char *folder, char *why,
			size_t why_len)
{
	void *m = member(cfg, row);
	switch (row->type) {
	case CONFIG_NUMBER:
		return parse_number(m, row, text, why, why_len);
	case CONFIG_BOOL:
		return parse_bool(m, text, why, why_len);
	case CONFIG_TEXT:
		return parse_text(m, row, text, why, why_len);
	case CONFIG_PATH:
		return parse_path(m, row, text, folder, why, why_len);
	case CONFIG_ENUM:
		return parse_enum(m, row, text, why, why_len);
	case CONFIG_ADDRESS:
		return parse_address(m, text, why, why_len);
	case CONFIG_NETWORK:
		return parse_network(m, row, text, why, why_len);
	case CONFIG_MAC:
		return parse_mac(m, text, why, why_len);
	}
	return false;
}

static void format_address(uint32_t addr, char *out, size_t len)
{
	snprintf(out, len, "%u.%u.%u.%u", addr >> 24, addr >> 16 & 255, addr >> 8 & 255, addr & 255);
}

void config_value_format(const struct config *cfg, const struct config_row *row, char *out, size_t len)
{
	const void *m = member_const(cfg, row);
	size_t n;
	switch (row->type) {
	case CONFIG_NUMBER:
		snprintf(out, len, "%" PRId64, *(const int64_t *)m);
		break;
	case CONFIG_BOOL:
		snprintf(out, len, "%s", *(const bool *)m ? "true" : "false");
		break;
	case CONFIG_TEXT:
	case CONFIG_PATH:
	case CONFIG_MAC:
		snprintf(out, len, "%s", (const char *)m);
		break;
	case CONFIG_ENUM: {
		const char *word = enum_word(row, *(const int *)m, &n);
		snprintf(out, len, "%.*s", (int)n, word);
		break;
	}
	case CONFIG_ADDRESS:
		if (*(const uint32_t *)m == 0)
			snprintf(out, len, "%s", "");
		else
			format_address(*(const uint32_t *)m, out, len);
		break;
	case CONFIG_NETWORK: {
		const struct config_network *net = m;
		format_address(net->addr, out, len);
		n = strlen(out);
		snprintf(out + n, len - n, "/%u", net->prefix_len);
		break;
	}
	}
}
