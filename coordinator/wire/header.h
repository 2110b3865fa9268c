/*
 * header.h - the header in front of every request and response body.
 *
 * Request:  api key i16, version i16, correlation id i32, client id (nullable string, i16 length in every version),
 *           then tagged fields when the body's version is flexible (header v2, else v1).
 * Response: correlation id i32, then tagged fields when the version is flexible (header v1, else v0). ApiVersions
 *           never has them: a client that does not know yet what the server speaks must be able to read the answer.
 */
#ifndef MUSTER_WIRE_HEADER_H
#define MUSTER_WIRE_HEADER_H

#include "muster/bytes.h"

#include "coordinator/wire/api.h"
#include "coordinator/wire/messages.h"

struct request_header {
	int16_t api_key;
	int16_t version;
	int32_t correlation_id;
	struct bytes client_id; /* slice of the request; null when the client gave none */
	bool served;		/* api and version stand in api.def; if not, the reader stands at no particular place */
};

/*
 * Decodes a header and leaves the reader at the body. False: malformed, the connection is beyond help. Of an api or
 * a version that we do not serve, nothing behind the correlation id is certain: such a header is taken (true,
 * !served) whatever follows, with the client id if there is one.
 */
bool request_header_decode(struct request_header *h, struct reader *r);

/* The api must be one of api.def. Header v1 or v2 as the version asks. */
void request_header_encode(struct writer *w, const struct request_header *h);

/* Whether the response header has tagged fields; `type` is that of the response, NULL for an unknown api. */
static inline bool response_header_is_flexible(const struct message_type *type, int16_t version)
{
	return type != NULL && type->api_key != api_key_api_versions && version >= type->flexible && version <= type->highest;
}

/* Unknown apis and versions are answered with the plain header. */
static inline void response_header_put(struct writer *w, const struct message_type *type, int16_t version, int32_t correlation_id)
{
	writer_u32(w, (uint32_t)correlation_id);
	if (response_header_is_flexible(type, version))
		writer_uvarint(w, 0);
}

/* The same for who has only the key. */
void response_header_encode(struct writer *w, int16_t api_key, int16_t version, int32_t correlation_id);

/* The client's side of it: the api and the version are those of the request. False: malformed. */
bool response_header_decode(int32_t *correlation_id, struct reader *r, int16_t api_key, int16_t version);

#endif
