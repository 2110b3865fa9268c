/*
 * steady.h - the wire form of a steady heartbeat, frame and answer: what nearly all requests are, read and written without the general codec.
 *
 *   version 3  header v1, strings with an i16 length, group instance id nullable
 *   version 4  header v2, compact strings
 *
 * steady_read takes a frame only in the plain form that clients send: no tagged fields, lengths of one byte where they are compact, nothing behind the body.
 * Of a frame that it takes it says what the general codec says; any other frame is no error, only not its business.
 */
#ifndef MUSTER_WIRE_STEADY_H
#define MUSTER_WIRE_STEADY_H

#include "coordinator/wire/messages.h"

#define STEADY_FLEXIBLE 4
#define STEADY_HEAD(version) ((uint32_t)api_key_heartbeat << 16 | (version))
#define STEADY_FIXED 6u /* correlation id, length of the client id */
#define STEADY_ANSWER_MAX 16u

struct steady {
	struct heartbeat_request body; /* slices of the frame */
	uint8_t correlation_id[4];     /* as it stands in the frame */
	bool flexible;
};

/* A string that is not null. False: cut, or its length is one that the general codec refuses or reads in more than one byte. */
static ALWAYS_INLINE bool steady_string(struct bytes *out, struct reader *r, bool flexible)
{
	if (!reader_has(r, flexible ? 1 : 2))
		return false;
	uint32_t n = flexible ? (uint32_t)reader_u8(r) - 1 : reader_u16(r);
	if (unlikely(n > (flexible ? 0x7eu : (uint32_t)INT16_MAX)))
		return false;
	out->p = reader_take(r, n);
	out->len = (int32_t)n;
	return out->p != NULL;
}

static ALWAYS_INLINE bool steady_nullable(struct bytes *out, struct reader *r, bool flexible)
{
	struct reader ahead = *r;
	bool null = flexible ? reader_u8(&ahead) == 0 : reader_u16(&ahead) == UINT16_MAX;
	if (unlikely(!null))
		return steady_string(out, r, flexible);
	*out = BYTES_NULL;
	*r = ahead;
	return !ahead.bad;
}

/* What stands behind api and version. Leaves at the first thing that it does not like. */
static ALWAYS_INLINE bool steady_rest(struct steady *out, struct reader *r, bool flexible)
{
	const uint8_t *fixed = reader_take(r, STEADY_FIXED);
	if (fixed == NULL)
		return false;
	memcpy(out->correlation_id, fixed, sizeof(out->correlation_id));
	int16_t client = (int16_t)(fixed[4] << 8 | fixed[5]);
	const uint8_t *after = reader_take(r, (client > 0 ? (size_t)client : 0) + flexible);
	if (after == NULL || (flexible && r->p[-1] != 0))
		return false;
	if (!steady_string(&out->body.group_id, r, flexible) || !reader_has(r, sizeof(uint32_t)))
		return false;
	out->body.generation_id = (int32_t)reader_u32(r);
	if (!steady_string(&out->body.member_id, r, flexible) || !steady_nullable(&out->body.group_instance_id, r, flexible))
		return false;
	out->flexible = flexible;
	return reader_left(r) == flexible && (!flexible || *r->p == 0);
}

/* True: it is one. What *out then says is valid as long as the frame. */
static ALWAYS_INLINE bool steady_read(struct steady *out, const uint8_t *p, size_t len)
{
	struct reader r = reader_of(p, len);
	uint32_t head = reader_u32(&r);
	if (head == STEADY_HEAD(STEADY_FLEXIBLE))
		return steady_rest(out, &r, true);
	return head == STEADY_HEAD(STEADY_FLEXIBLE - 1) && steady_rest(out, &r, false);
}

/*
 * Writes the answer with its length in front: length u32, correlation id, [tags], throttle time 0 u32, error i16, [tags]. Returns its length; what
 * stands behind is of no meaning.
 */
static ALWAYS_INLINE size_t steady_answer(uint8_t out[STEADY_ANSWER_MAX], const struct steady *in, int16_t error)
{
	uint16_t code = __builtin_bswap16((uint16_t)error);
	memset(out, 0, STEADY_ANSWER_MAX);
	memcpy(out + 4, in->correlation_id, sizeof(in->correlation_id));
	if (in->flexible) {
		out[3] = 16 - 4;
		memcpy(out + 13, &code, sizeof(code));
		return 16;
	}
	out[3] = 14 - 4;
	memcpy(out + 12, &code, sizeof(code));
	return 14;
}

#endif
