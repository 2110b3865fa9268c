/*
 * api_versions.c - ApiVersions: which APIs and versions we serve. KIP-35, KIP-511.
 *
 * A version that we do not know is answered in the form of version 0 with error 35 and one entry, our range of ApiVersions itself; the client
 * then asks again on the same connection.
 */
#include "coordinator/api/api.h"

static bool letter_or_digit(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* Kafka's rule for the client's software name and version: letters, digits, '-' and '.', the first and the last a letter or digit. */
static bool software_name_ok(struct bytes s)
{
	if (s.len < 1 || !letter_or_digit(s.p[0]) || !letter_or_digit(s.p[s.len - 1]))
		return false;
	for (int32_t i = 0; i < s.len; i++)
		if (!letter_or_digit(s.p[i]) && s.p[i] != '-' && s.p[i] != '.')
			return false;
	return true;
}

static struct api_versions_response_api_version entry_of(const struct api_range *range)
{
	return (struct api_versions_response_api_version){range->key, range->lowest, range->highest};
}

bool api_api_versions(const struct api_call *call)
{
	const struct api_versions_request *in = call->in;
	struct api_versions_response_api_version list[API_COUNT];
	struct api_versions_response out;
	api_versions_response_init(&out);
	if (in == NULL) {
		list[0] = entry_of(&api_ranges[api_index_api_versions]);
		out.error_code = ERROR_UNSUPPORTED_VERSION;
		out.api_keys_len = 1;
	} else if (call->rq->version >= 3 &&
		   (!software_name_ok(in->client_software_name) || !software_name_ok(in->client_software_version))) {
		out.error_code = ERROR_INVALID_REQUEST;
	} else {
		for (unsigned int i = 0; i < API_COUNT; i++)
			list[i] = entry_of(&api_ranges[i]);
		out.api_keys_len = API_COUNT;
	}
	out.api_keys = list;
	request_answer(call->rq, &out, call->now);
	return true;
}
