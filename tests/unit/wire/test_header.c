/*
 * test_header.c - request and response headers, of served APIs and of others.
 */
#include <criterion/criterion.h>

#include "coordinator/wire/api.h"
#include "coordinator/wire/header.h"

static struct request_header header;
static size_t left;

static bool decode(const char *bytes, size_t len)
{
	uint8_t *exact = malloc(len > 0 ? len : 1);
	memcpy(exact, bytes, len);
	struct reader r = reader_of(exact, len);
	memset(&header, 0xa5, sizeof(header));
	bool good = request_header_decode(&header, &r);
	left = reader_left(&r);
	static uint8_t client_id[64];
	if (header.client_id.len > 0 && header.client_id.len <= 64)
		header.client_id.p = memcpy(client_id, header.client_id.p, (size_t)header.client_id.len);
	free(exact);
	return good;
}

#define DECODE(literal) decode(literal, sizeof(literal) - 1)

Test(header, version_1_ends_behind_the_client_id)
{
	cr_assert(DECODE("\0\14\0\3\0\0\1\2\0\3abcbody"));
	cr_assert_eq(header.api_key, api_key_heartbeat);
	cr_assert_eq(header.version, 3);
	cr_assert_eq(header.correlation_id, 258);
	cr_assert(bytes_equal(header.client_id, BYTES_LITERAL("abc")));
	cr_assert(header.served);
	cr_assert_eq(left, 4);
}

Test(header, version_2_has_a_short_client_id_length_too_and_then_tagged_fields)
{
	cr_assert(DECODE("\0\14\0\4\0\0\1\2\0\3abc\0body"));
	cr_assert(bytes_equal(header.client_id, BYTES_LITERAL("abc")));
	cr_assert_eq(left, 4);
	cr_assert(DECODE("\0\14\0\4\0\0\1\2\xff\xff\2\0\1x\1\0body"));
	cr_assert(bytes_is_null(header.client_id));
	cr_assert_eq(left, 4);
	cr_assert(DECODE("\0\22\0\3\0\0\0\1\0\0\0body"), "ApiVersions 3 is flexible in the request");
	cr_assert_eq(header.client_id.len, 0);
	cr_assert_eq(left, 4);
}

Test(header, unknown_apis_and_versions_still_give_key_version_and_correlation)
{
	cr_assert(DECODE("\0\22\0\5\0\0\0\7\0\3abc\0"), "ApiVersions 5, as the newest clients ask first");
	cr_assert(!header.served);
	cr_assert_eq(header.api_key, api_key_api_versions);
	cr_assert_eq(header.version, 5);
	cr_assert_eq(header.correlation_id, 7);
	cr_assert(bytes_equal(header.client_id, BYTES_LITERAL("abc")));
	cr_assert(DECODE("\x7f\xff\xff\xfe\xff\xff\xff\xff"), "nothing behind it");
	cr_assert(!header.served);
	cr_assert_eq(header.api_key, 32767);
	cr_assert_eq(header.version, -2);
	cr_assert_eq(header.correlation_id, -1);
	cr_assert(bytes_is_null(header.client_id));
	cr_assert(DECODE("\0\22\xff\xff\0\0\0\7\x7f\xff"), "a client id that is not there");
	cr_assert(!header.served);
	cr_assert(bytes_is_null(header.client_id));
}

Test(header, malformed_headers_are_refused)
{
	static const char whole[] = "\0\14\0\4\0\0\1\2\0\3abc\1\0\1x";
	for (size_t len = 0; len < sizeof(whole) - 1; len++)
		cr_assert(!decode(whole, len), "cut to %zu", len);
	cr_assert(decode(whole, sizeof(whole) - 1));
	cr_assert(!DECODE("\0\14\0\4\0\0\1\2\0\0\1\0\5x"), "a tagged field beyond the end");
	cr_assert(!DECODE("\0\14\0\4\0\0\1\2\0\0\xff\xff\xff\xff\xff"), "a varint of more than 32 bits");
}

Test(header, requests_are_written_as_they_are_read)
{
	for (unsigned int i = 0; i < API_COUNT; i++) {
		for (int16_t version = api_ranges[i].lowest; version <= api_ranges[i].highest; version++) {
			uint8_t out[32];
			struct request_header in = {.api_key = api_ranges[i].key, .version = version, .correlation_id = 99 + version};
			in.client_id = version % 2 == 0 ? BYTES_NULL : BYTES_LITERAL("me");
			struct writer w = writer_of(out, sizeof(out));
			request_header_encode(&w, &in);
			struct reader r = reader_of(out, writer_len(&w));
			cr_assert(request_header_decode(&header, &r));
			cr_assert_eq(reader_left(&r), 0);
			cr_assert(header.served && header.api_key == in.api_key && header.version == version);
			cr_assert_eq(header.correlation_id, 99 + version);
			cr_assert(bytes_equal(header.client_id, in.client_id));
		}
	}
}

static size_t response_header_len(int16_t key, int16_t version)
{
	static const uint8_t expected[] = {0, 0, 1, 2, 0};
	uint8_t out[8];
	int32_t correlation_id = 0;
	struct writer w = writer_of(out, sizeof(out));
	response_header_encode(&w, key, version, 258);
	cr_assert(memcmp(out, expected, writer_len(&w)) == 0);
	struct reader r = reader_of(out, writer_len(&w));
	cr_assert(response_header_decode(&correlation_id, &r, key, version));
	cr_assert_eq(correlation_id, 258);
	cr_assert_eq(reader_left(&r), 0);
	r = reader_of(out, writer_len(&w) - 1);
	cr_assert(!response_header_decode(&correlation_id, &r, key, version));
	return writer_len(&w);
}

Test(header, responses_have_tagged_fields_from_the_flexible_version_on)
{
	cr_assert_eq(response_header_len(api_key_heartbeat, 3), 4);
	cr_assert_eq(response_header_len(api_key_heartbeat, 4), 5);
	cr_assert_eq(response_header_len(api_key_join_group, 5), 4);
	cr_assert_eq(response_header_len(api_key_join_group, 6), 5);
	cr_assert_eq(response_header_len(api_key_describe_cluster, 0), 5);
	for (int16_t version = 0; version <= 5; version++)
		cr_assert_eq(response_header_len(api_key_api_versions, version), 4);
	cr_assert_eq(response_header_len(api_key_heartbeat, 5), 4, "a version that we do not know");
	cr_assert_eq(response_header_len(999, 0), 4, "an api that we do not know");
}
