/*
 * header.c - request and response headers; the layouts stand in header.h.
 */
#include "coordinator/wire/header.h"

#include "muster/check.h"

/* Skips a section of tagged fields: we know none of the headers'. */
static ALWAYS_INLINE void header_skip_tagged(struct reader *r)
{
	for (uint32_t n = reader_uvarint(r); n > 0 && !r->bad; n--) {
		reader_uvarint(r);
		reader_take(r, reader_uvarint(r));
	}
}

/* Kafka takes any negative length for null. */
static ALWAYS_INLINE struct bytes header_client_id(struct reader *r)
{
	int16_t len = (int16_t)reader_u16(r);
	if (len < 0)
		return BYTES_NULL;
	const uint8_t *p = reader_take(r, (size_t)len);
	return p == NULL ? BYTES_NULL : bytes_of(p, (size_t)len);
}

/* What stands in front of the client id. */
#define HEADER_FIXED 8u

static ALWAYS_INLINE bool header_read(struct request_header *h, struct reader *r)
{
	h->client_id = BYTES_NULL;
	h->served = false;
	const uint8_t *p = reader_take(r, HEADER_FIXED);
	if (p == NULL)
		return false;
	struct reader fixed = reader_of(p, HEADER_FIXED);
	h->api_key = (int16_t)reader_u16(&fixed);
	h->version = (int16_t)reader_u16(&fixed);
	h->correlation_id = (int32_t)reader_u32(&fixed);
	const struct message_type *type = message_request(h->api_key);
	h->client_id = header_client_id(r);
	if (type == NULL || h->version < type->lowest || h->version > type->highest)
		return true;
	h->served = true;
	if (h->version >= type->flexible)
		header_skip_tagged(r);
	return !r->bad;
}

/* The reader is copied, so that it lies in registers. */
bool request_header_decode(struct request_header *h, struct reader *r)
{
	struct reader local = *r;
	bool good = header_read(h, &local);
	*r = local;
	return good;
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

void response_header_encode(struct writer *w, int16_t api_key, int16_t version, int32_t correlation_id)
{
	response_header_put(w, message_response(api_key), version, correlation_id);
}

bool response_header_decode(int32_t *correlation_id, struct reader *r, int16_t api_key, int16_t version)
{
	int32_t id = (int32_t)reader_u32(r);
	if (response_header_is_flexible(message_response(api_key), version))
		header_skip_tagged(r);
	if (!r->bad)
		*correlation_id = id;
	return !r->bad;
}
