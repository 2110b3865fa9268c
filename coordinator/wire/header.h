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

/* Unknown apis and versions are answered with the plain header. */
void response_header_encode(struct writer *w, int16_t api_key, int16_t version, int32_t correlation_id);

/* The client's side of it: the api and the version are those of the request. False: malformed. */
bool response_header_decode(int32_t *correlation_id, struct reader *r, int16_t api_key, int16_t version);

#endif
