/*
 * heartbeat.c - layouts in these versions; the heartbeat's is a flexible one, the other two are not.
 *
 *   answer to a heartbeat:  correlation i32, tags 0, throttle i32, error i16, tags 0
 *   answer to a sync:       correlation i32, throttle i32, error i16, assignment bytes
 *   answer to a join:       correlation i32, throttle i32, error i16, generation i32, protocol, leader, member id (strings),
 *                           members [id string, instance string or null, metadata bytes]
 */
#include "bench/heartbeat.h"
#include "muster/check.h"

enum { JOIN = 11, HEARTBEAT = 12, SYNC = 14 };

static void put_string(struct writer *w, const void *p, size_t len)
{
	writer_u16(w, (uint16_t)len);
	writer_raw(w, p, len);
}

static void put_compact(struct writer *w, const void *p, size_t len)
{
	writer_uvarint(w, (uint32_t)len + 1);
	writer_raw(w, p, len);
}

static struct bytes take_string(struct reader *r)
{
	int16_t len = (int16_t)reader_u16(r);
	if (len < 0)
		return BYTES_NULL;
	const uint8_t *p = reader_take(r, (size_t)len);
	return p == NULL ? BYTES_NULL : bytes_of(p, (size_t)len);
}

/* Length field, filled in by end_frame, and the header. */
static void begin_frame(struct heartbeat_member *m, struct writer *w, int16_t key, int16_t version)
{
	writer_u32(w, 0);
	writer_u16(w, (uint16_t)key);
	writer_u16(w, (uint16_t)version);
	writer_u32(w, (uint32_t)++m->correlation);
	put_string(w, m->client_id, strlen(m->client_id));
}

static void end_frame(struct writer *w)
{
	CHECK(!w->full);
	uint32_t len = __builtin_bswap32((uint32_t)writer_len(w) - 4);
	memcpy(w->start, &len, 4);
}

void heartbeat_join(struct heartbeat_member *m, struct writer *w)
{
	static const uint8_t subscription[] = "\0\0\0\0\0\1\0\6orders\xff\xff\xff\xff";
	begin_frame(m, w, JOIN, 5);
	put_string(w, m->group, strlen(m->group));
	writer_u32(w, 45000); /* session timeout, ms */
	writer_u32(w, 60000); /* rebalance timeout, ms */
	put_string(w, m->id, m->id_len);
	writer_u16(w, 0xffff); /* not static */
	put_string(w, "consumer", 8);
	writer_u32(w, 1);
	put_string(w, "range", 5);
	writer_u32(w, sizeof(subscription) - 1);
	writer_raw(w, subscription, sizeof(subscription) - 1);
	end_frame(w);
}

int heartbeat_join_answer(struct heartbeat_member *m, const uint8_t *p, size_t len, bool *leader)
{
	struct reader r = reader_of(p, len);
	int32_t correlation = (int32_t)reader_u32(&r);
	reader_u32(&r);
	int error = (int16_t)reader_u16(&r);
	int32_t generation = (int32_t)reader_u32(&r);
	take_string(&r);
	struct bytes lead = take_string(&r), id = take_string(&r);
	if (r.bad || correlation != m->correlation || id.len > (int32_t)sizeof(m->id) || id.len < 0)
		return HEARTBEAT_MALFORMED;
	if (error != HEARTBEAT_OK && error != HEARTBEAT_ID_REQUIRED)
		return error;
	memcpy(m->id, id.p, (size_t)id.len);
	m->id_len = (unsigned int)id.len;
	m->generation = generation;
	*leader = error == HEARTBEAT_OK && bytes_equal(lead, id);
	return error;
}

/* The leader's assignments: one for each member that its JoinGroup answer lists. */
static void put_assignments(struct writer *w, struct bytes join)
{
	static const uint8_t assignment[] = "\0\0\0\0\0\1\0\6orders\0\0\0\1\0\0\0\0\xff\xff\xff\xff";
	struct reader r = reader_of(join.p, (size_t)join.len);
	reader_take(&r, 14);
	for (int i = 0; i < 3; i++)
		take_string(&r);
	uint32_t n = reader_u32(&r);
	CHECK(!r.bad && n <= HEARTBEAT_GROUP_MAX);
	writer_u32(w, n);
	while (n-- > 0) {
		struct bytes id = take_string(&r);
		take_string(&r);
		reader_take(&r, reader_u32(&r));
		CHECK(!r.bad && id.len >= 0);
		put_string(w, id.p, (size_t)id.len);
		writer_u32(w, sizeof(assignment) - 1);
		writer_raw(w, assignment, sizeof(assignment) - 1);
	}
}

void heartbeat_sync(struct heartbeat_member *m, struct writer *w, struct bytes join)
{
	begin_frame(m, w, SYNC, 3);
	put_string(w, m->group, strlen(m->group));
	writer_u32(w, (uint32_t)m->generation);
	put_string(w, m->id, m->id_len);
	writer_u16(w, 0xffff);
	if (join.len > 0)
		put_assignments(w, join);
	else
		writer_u32(w, 0);
	end_frame(w);
}

int heartbeat_sync_answer(struct heartbeat_member *m, const uint8_t *p, size_t len)
{
	struct reader r = reader_of(p, len);
	int32_t correlation = (int32_t)reader_u32(&r);
	reader_u32(&r);
	int error = (int16_t)reader_u16(&r);
	uint32_t assignment = reader_u32(&r);
	if (r.bad || correlation != m->correlation || (error == HEARTBEAT_OK && (assignment == 0 || assignment != reader_left(&r))))
		return HEARTBEAT_MALFORMED;
	return error;
}

void heartbeat_prepare(struct heartbeat_member *m)
{
	struct writer w = writer_of(m->request, sizeof(m->request));
	begin_frame(m, &w, HEARTBEAT, 4);
	writer_u8(&w, 0); /* header tags */
	put_compact(&w, m->group, strlen(m->group));
	writer_u32(&w, (uint32_t)m->generation);
	put_compact(&w, m->id, m->id_len);
	writer_u8(&w, 0); /* not static */
	writer_u8(&w, 0); /* tags */
	end_frame(&w);
	m->request_len = (unsigned int)writer_len(&w);
}
