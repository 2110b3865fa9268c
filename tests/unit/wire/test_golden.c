/*
 * test_golden.c - our codec against the bytes of an independent encoder: every message, every version, both directions.
 */
#include <criterion/criterion.h>

#include "coordinator/wire/arena.h"

#include "tests/golden/golden.h"

#define ARENA_SIZE (1u << 20)
#define MESSAGE_SIZE 1024 /* of the largest struct */
#define TEXT_SIZE (1u << 16)

struct bench {
	struct arena arena;
	void *message;
	char *text;
	bool seen[64][32]; /* by message and version */
	unsigned int truncated;
};

static struct bench *bench_new(void)
{
	struct bench *b = calloc(1, sizeof(*b));
	b->arena = arena_of(malloc(ARENA_SIZE), ARENA_SIZE);
	b->message = malloc(MESSAGE_SIZE);
	b->text = malloc(TEXT_SIZE);
	return b;
}

static void bench_free(struct bench *b)
{
	free(b->arena.base);
	free(b->message);
	free(b->text);
	free(b);
}

/*
 * Decodes exactly `len` bytes of heap, so that the sanitizer sees every read behind them; garbage stands in the
 * struct before.
 */
static bool decode_exact(struct bench *b, const struct message_type *type, int16_t version, const uint8_t *body, size_t len,
			 uint8_t **copy, size_t *left)
{
	*copy = malloc(len > 0 ? len : 1);
	memcpy(*copy, body, len);
	memset(b->message, 0xa5, type->size);
	arena_reset(&b->arena);
	struct reader r = reader_of(*copy, len);
	bool good = type->decode(b->message, &r, version, &b->arena);
	*left = reader_left(&r);
	return good;
}

static size_t print(struct bench *b, const struct message_type *type, int16_t version)
{
	struct writer w = writer_of(b->text, TEXT_SIZE - 1);
	type->print(b->message, &w, version);
	cr_assert(!w.full);
	b->text[writer_len(&w)] = '\0';
	return writer_len(&w);
}

static void same_bytes_again(const struct golden *g, void *arg)
{
	struct bench *b = arg;
	uint8_t *copy, again[GOLDEN_MAX];
	size_t left;
	cr_assert(g->type->size <= MESSAGE_SIZE);
	cr_assert(g->version >= g->type->lowest && g->version <= g->type->highest, "%s %d", g->name, g->version);
	cr_assert(decode_exact(b, g->type, g->version, g->body, g->len, &copy, &left), "%s %d %s", g->name, g->version, g->variant);
	cr_assert(left == 0, "%s %d %s: %zu bytes left", g->name, g->version, g->variant, left);
	struct writer w = writer_of(again, sizeof(again));
	g->type->encode(b->message, &w, g->version);
	cr_assert(!w.full);
	cr_assert(writer_len(&w) == g->len && memcmp(again, g->body, g->len) == 0, "%s %d %s: %zu bytes, not %zu or not the same", g->name,
		  g->version, g->variant, writer_len(&w), g->len);
	size_t len = print(b, g->type, g->version);
	cr_assert(len > 2 && b->text[len - 1] == '}' && strlen(b->text) == len, "%s", b->text);
	b->seen[g->index][g->version] = true;
	free(copy);
}

Test(golden, decodes_and_encodes_to_the_same_bytes_and_misses_no_version)
{
	struct bench *b = bench_new();
	cr_assert_gt(golden_each(GOLDEN_MESSAGES, same_bytes_again, b), 600);
	for (unsigned int i = 0; i < message_types_len; i++)
		for (int v = message_types[i].lowest; v <= message_types[i].highest; v++)
			cr_assert(b->seen[i][v], "no golden bytes of %s version %d", message_types[i].name, v);
	bench_free(b);
}

/* A body cut short at any byte is malformed: every byte of a canonical body is needed. */
static void every_prefix_fails(const struct golden *g, void *arg)
{
	struct bench *b = arg;
	for (size_t len = 0; len < g->len; len++) {
		uint8_t *copy;
		size_t left;
		cr_assert(!decode_exact(b, g->type, g->version, g->body, len, &copy, &left), "%s %d %s cut to %zu of %zu", g->name,
			  g->version, g->variant, len, g->len);
		free(copy);
		b->truncated++;
	}
}

Test(golden, every_truncation_is_refused)
{
	struct bench *b = bench_new();
	cr_assert_gt(golden_each(GOLDEN_MESSAGES, every_prefix_fails, b), 600);
	cr_assert_gt(b->truncated, 20000);
	bench_free(b);
}

/* Every byte replaced by a few telling values: whatever decodes must encode, and decode again to the same text. */
static void corrupted_stays_in_bounds(const struct golden *g, void *arg)
{
	static const uint8_t evil[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
	static uint8_t again[1u << 16];
	static char first[TEXT_SIZE];
	struct bench *b = arg;
	for (size_t at = 0; at < g->len; at++) {
		for (unsigned int k = 0; k < sizeof(evil); k++) {
			uint8_t body[GOLDEN_MAX], *copy, *copy2;
			size_t left;
			memcpy(body, g->body, g->len);
			body[at] = evil[k];
			bool good = decode_exact(b, g->type, g->version, body, g->len, &copy, &left);
			if (good) {
				struct writer w = writer_of(again, sizeof(again));
				g->type->encode(b->message, &w, g->version);
				cr_assert(!w.full);
				size_t len = print(b, g->type, g->version);
				memcpy(first, b->text, len + 1);
				cr_assert(decode_exact(b, g->type, g->version, again, writer_len(&w), &copy2, &left));
				cr_assert_eq(left, 0);
				print(b, g->type, g->version);
				cr_assert(strcmp(first, b->text) == 0, "%s\n%s", first, b->text);
				free(copy2);
			}
			free(copy);
		}
	}
}

Test(golden, corrupted_bytes_fail_or_survive_a_round_trip)
{
	struct bench *b = bench_new();
	cr_assert_gt(golden_each(GOLDEN_MESSAGES, corrupted_stays_in_bounds, b), 600);
	bench_free(b);
}
