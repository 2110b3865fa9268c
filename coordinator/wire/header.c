/*
 * header.c - request and response headers; the layouts stand in header.h.
 */
#include "coordinator/wire/header.h"

#include "muster/check.h"

#include "coordinator/wire/api.h"
#include "coordinator/wire/messages.h"

/* Skips a section of tagged fields: we know none of the headers'. */
static void header_skip_tagged(struct reader *r)
{
	for (uint32_t n = reader_uvarint(r); n > 0 && !r->bad; n--) {
		reader_uvarint(r);
		reader_take(r, reader_uvarint(r));
	}
}

/* Kafka takes any negative length for null. */
static struct bytes header_client_id(struct reader *r)
{
	int16_t len = (int16_t)reader_u16(r);
	if (len < 0)
		return BYTES_NULL;
	const uint8_t *p = reader_take(r, (size_t)len);
	return p == NULL ? BYTES_NULL : bytes_of(p, (size_t)len);
}

bool request_header_decode(struct request_header *h, struct reader *r)
{
	h->api_key = (int16_t)reader_u16(r);
	h->version = (int16_t)reader_u16(r);
	h->correlation_id = (int32_t)reader_u32(r);
	h->client_id = BYTES_NULL;
	h->served = false;
	if (r->bad)
		return false;
	h->client_id = header_client_id(r);
	const struct message_type *type = message_request(h->api_key);
	if (type == NULL || h->version < type->lowest || h->version > type->highest)
		return true;
	h->served = true;
	if (h->version >= type->flexible)
		header_skip_tagged(r);
	return !r->bad;
}

void request_header_encode(struct writer *w, const struct request_header *h)
{
	const struct message_type *type = message_request(h->api_key);
	CHECK(type != NULL && h->client_id.len <= INT16_MAX);
	writer_u16(w, (uint16_t)h->api_key);
	writer_u16(w, (uint16_t)h->version);
	writer_u32(w, (uint32_t)h->correlation_id);
	writer_u16(w, (uint16_t)(h->client_id.len < 0 ? -1 : h->client_id.len));
	if (h->client_id.len > 0)
		writer_raw(w, h->client_id.p, (size_t)h->client_id.len);
	if (h->version >= type->flexible)
		writer_uvarint(w, 0);
}

static bool response_header_is_flexible(int16_t api_key, int16_t version)
{
	const struct message_type *type = message_response(api_key);
	return type != NULL && api_key != api_key_api_versions && version >= type->flexible && version <= type->highest;
}

void response_header_encode(struct writer *w, int16_t api_key, int16_t version, int32_t correlation_id)
{
	writer_u32(w, (uint32_t)correlation_id);
	if (response_header_is_flexible(api_key, version))
		writer_uvarint(w, 0);
}

bool response_header_decode(int32_t *correlation_id, struct reader *r, int16_t api_key, int16_t version)
{
	int32_t id = (int32_t)reader_u32(r);
	if (response_header_is_flexible(api_key, version))
		header_skip_tagged(r);
	if (!r->bad)
		*correlation_id = id;
	return !r->bad;
}
