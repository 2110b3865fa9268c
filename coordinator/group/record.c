/*
 * record.c - encoding and decoding of the records of __consumer_offsets; the formats stand in record.h.
 */
#include "muster/check.h"

#include "coordinator/group/record.h"

enum {
	TYPE_OFFSET_OLD = 0,
	TYPE_OFFSET = 1,
	TYPE_GROUP = 2,
	OFFSET_PLAIN = 3,	/* value version without expire time */
	OFFSET_WITH_EXPIRY = 1, /* the only value version with one */
	GROUP_VALUE = 3,
	FLEXIBLE = 4,
	PARTS_BYTES = 1 + 8 + 4, /* of the tagged field of a header */
};

/* ---- reading ---- */

static struct bytes record_slice(struct reader *r, int64_t len)
{
	if (len < 0)
		return BYTES_NULL;
	const uint8_t *p = reader_take(r, (size_t)len);
	return p == NULL ? BYTES_NULL : bytes_of(p, (size_t)len);
}

static struct bytes record_read_nullable(struct reader *r, bool flexible)
{
	int64_t len = flexible ? (int64_t)reader_uvarint(r) - 1 : (int16_t)reader_u16(r);
	if (r->bad || len < -1 || len > RECORD_STRING_MAX) {
		r->bad = true;
		return BYTES_NULL;
	}
	return record_slice(r, len);
}

static struct bytes record_read_string(struct reader *r, bool flexible)
{
	struct bytes b = record_read_nullable(r, flexible);
	if (bytes_is_null(b))
		r->bad = true;
	return b;
}

static struct bytes record_read_bytes(struct reader *r, bool flexible)
{
	int64_t len = flexible ? (int64_t)reader_uvarint(r) - 1 : (int32_t)reader_u32(r);
	if (r->bad || len < 0 || len > INT32_MAX) {
		r->bad = true;
		return BYTES_NULL;
	}
	return record_slice(r, len);
}

static void record_skip_tags(struct reader *r, bool flexible)
{
	uint32_t n = flexible ? reader_uvarint(r) : 0;
	while (n-- > 0 && !r->bad) {
		reader_uvarint(r);
		reader_take(r, reader_uvarint(r));
	}
}

bool record_key_decode(struct record_key *key, struct bytes b)
{
	if (bytes_is_null(b))
		return false;
	struct reader r = reader_of(b.p, (size_t)b.len);
	int16_t type = (int16_t)reader_u16(&r);
	struct record_key k = {.kind = RECORD_OTHER, .group = BYTES_NULL, .topic = BYTES_NULL, .member = BYTES_NULL};

	if (type == TYPE_OFFSET_OLD || type == TYPE_OFFSET) {
		k.kind = RECORD_OFFSET;
		k.group = record_read_string(&r, false);
		k.topic = record_read_string(&r, false);
		k.partition = (int32_t)reader_u32(&r);
	} else if (type == TYPE_GROUP) {
		k.kind = RECORD_GROUP;
		k.group = record_read_string(&r, false);
	} else if (type == RECORD_TYPE_PART) {
		k.kind = RECORD_PART;
		k.group = record_read_string(&r, false);
		k.slot = reader_u8(&r);
		k.member = record_read_string(&r, false);
		r.bad |= k.slot > 1;
	}
	if (r.bad)
		return false;
	*key = k;
	return true;
}

bool record_offset_decode(struct record_offset *value, struct bytes b)
{
	if (bytes_is_null(b))
		return false;
	struct reader r = reader_of(b.p, (size_t)b.len);
	int16_t version = (int16_t)reader_u16(&r);
	if (r.bad || version < 0 || version > FLEXIBLE)
		return false;
	bool flexible = version >= FLEXIBLE;
	struct record_offset v = {.leader_epoch = -1, .expire_ms = RECORD_NO_EXPIRY};

	v.offset = (int64_t)reader_u64(&r);
	if (version >= OFFSET_PLAIN)
		v.leader_epoch = (int32_t)reader_u32(&r);
	v.metadata = record_read_string(&r, flexible);
	v.commit_ms = (int64_t)reader_u64(&r);
	if (version == OFFSET_WITH_EXPIRY)
		v.expire_ms = (int64_t)reader_u64(&r);
	record_skip_tags(&r, flexible);
	if (r.bad)
		return false;
	*value = v;
	return true;
}

static bool record_read_member_rest(struct record_member *m, struct reader *r, int16_t version)
{
	bool flexible = version >= FLEXIBLE;
	m->instance_id = version >= 3 ? record_read_nullable(r, flexible) : BYTES_NULL;
	m->client_id = record_read_string(r, flexible);
	m->host = record_read_string(r, flexible);
	m->rebalance_timeout_ms = version >= 1 ? (int32_t)reader_u32(r) : 0;
	m->session_timeout_ms = (int32_t)reader_u32(r);
	if (version == 0)
		m->rebalance_timeout_ms = m->session_timeout_ms;
	m->subscription = record_read_bytes(r, flexible);
	m->assignment = record_read_bytes(r, flexible);
	record_skip_tags(r, flexible);
	return !r->bad;
}

static bool record_read_member(struct record_member *m, struct reader *r, int16_t version)
{
	m->id = record_read_string(r, version >= FLEXIBLE);
	return record_read_member_rest(m, r, version);
}

/* The tagged fields behind a group; ours among them. */
static void record_read_group_tags(struct record_group *v, struct reader *r)
{
	uint32_t n = reader_uvarint(r);
	while (n-- > 0 && !r->bad) {
		uint32_t tag = reader_uvarint(r), len = reader_uvarint(r);
		const uint8_t *p = reader_take(r, len);
		if (p == NULL || tag != RECORD_TAG_PARTS)
			continue;
		struct reader field = reader_of(p, len);
		v->parts.slot = reader_u8(&field);
		v->parts.edition = (int64_t)reader_u64(&field);
		v->parts.members = reader_u32(&field);
		r->bad |= field.bad || v->parts.slot > 1 || v->parts.edition <= 0 || v->parts.members == 0 || v->members_len > 0;
	}
}

bool record_group_decode(struct record_group *value, struct bytes b)
{
	if (bytes_is_null(b))
		return false;
	struct reader r = reader_of(b.p, (size_t)b.len);
	struct record_group v = {.state_ms = -1};
	v.version = (int16_t)reader_u16(&r);
	if (r.bad || v.version < 0 || v.version > FLEXIBLE)
		return false;
	bool flexible = v.version >= FLEXIBLE;

	v.protocol_type = record_read_string(&r, flexible);
	v.generation = (int32_t)reader_u32(&r);
	v.protocol = record_read_nullable(&r, flexible);
	v.leader = record_read_nullable(&r, flexible);
	if (v.version >= 2)
		v.state_ms = (int64_t)reader_u64(&r);
	v.members_len = flexible ? (int32_t)reader_uvarint(&r) - 1 : (int32_t)reader_u32(&r);
	if (r.bad || v.members_len < 0)
		return false;
	v.rest = r;
	struct record_member m;
	for (int32_t i = 0; i < v.members_len; i++)
		if (!record_read_member(&m, &r, v.version))
			return false;
	if (flexible)
		record_read_group_tags(&v, &r);
	if (r.bad)
		return false;
	*value = v;
	return true;
}

bool record_part_decode(struct record_part *value, struct bytes b)
{
	if (bytes_is_null(b))
		return false;
	struct reader r = reader_of(b.p, (size_t)b.len);
	struct record_part v = {.member.id = BYTES_NULL};
	if (reader_u16(&r) != 0)
		return false;
	v.edition = (int64_t)reader_u64(&r);
	v.generation = (int32_t)reader_u32(&r);
	if (!record_read_member_rest(&v.member, &r, FLEXIBLE) || v.edition <= 0)
		return false;
	*value = v;
	return true;
}

bool record_group_next(struct record_group *value, struct record_member *member)
{
	if (value->members_len == 0)
		return false;
	value->members_len--;
	bool whole = record_read_member(member, &value->rest, value->version);
	CHECK(whole);
	return true;
}

/* ---- writing ---- */

static void record_write_string(struct writer *w, struct bytes b)
{
	CHECK(b.len <= RECORD_STRING_MAX);
	writer_u16(w, (uint16_t)(b.len < 0 ? -1 : b.len));
	if (b.len > 0)
		writer_raw(w, b.p, (size_t)b.len);
}

static void record_write_compact(struct writer *w, struct bytes b)
{
	writer_uvarint(w, b.len < 0 ? 0 : (uint32_t)b.len + 1);
	if (b.len > 0)
		writer_raw(w, b.p, (size_t)b.len);
}

static struct bytes record_not_null(struct bytes b)
{
	return bytes_is_null(b) ? BYTES_EMPTY : b;
}

static void record_write_bytes(struct writer *w, struct bytes b)
{
	uint32_t len = b.len < 0 ? 0 : (uint32_t)b.len;
	writer_u32(w, len);
	writer_raw(w, b.p, len);
}

void record_offset_key(struct writer *w, struct bytes group, struct bytes topic, int32_t partition)
{
	writer_u16(w, TYPE_OFFSET);
	record_write_string(w, group);
	record_write_string(w, topic);
	writer_u32(w, (uint32_t)partition);
}

void record_offset_value(struct writer *w, const struct record_offset *value)
{
	bool plain = value->expire_ms == RECORD_NO_EXPIRY;
	writer_u16(w, plain ? OFFSET_PLAIN : OFFSET_WITH_EXPIRY);
	writer_u64(w, (uint64_t)value->offset);
	if (plain)
		writer_u32(w, (uint32_t)value->leader_epoch);
	record_write_string(w, value->metadata);
	writer_u64(w, (uint64_t)value->commit_ms);
	if (!plain)
		writer_u64(w, (uint64_t)value->expire_ms);
}

void record_group_key(struct writer *w, struct bytes group)
{
	writer_u16(w, TYPE_GROUP);
	record_write_string(w, group);
}

static void record_group_header(struct writer *w, const struct record_group *value)
{
	CHECK(value->members_len == 0 && value->parts.members > 0 && value->parts.slot <= 1);
	writer_u16(w, FLEXIBLE);
	record_write_compact(w, record_not_null(value->protocol_type));
	writer_u32(w, (uint32_t)value->generation);
	record_write_compact(w, value->protocol);
	record_write_compact(w, value->leader);
	writer_u64(w, (uint64_t)value->state_ms);
	writer_uvarint(w, 1); /* no members */
	writer_uvarint(w, 1); /* tagged fields */
	writer_uvarint(w, RECORD_TAG_PARTS);
	writer_uvarint(w, PARTS_BYTES);
	writer_u8(w, value->parts.slot);
	writer_u64(w, (uint64_t)value->parts.edition);
	writer_u32(w, value->parts.members);
}

void record_group_value(struct writer *w, const struct record_group *value)
{
	if (value->parts.edition != 0) {
		record_group_header(w, value);
		return;
	}
	writer_u16(w, GROUP_VALUE);
	record_write_string(w, record_not_null(value->protocol_type));
	writer_u32(w, (uint32_t)value->generation);
	record_write_string(w, value->protocol);
	record_write_string(w, value->leader);
	writer_u64(w, (uint64_t)value->state_ms);
	writer_u32(w, (uint32_t)value->members_len);
}

void record_group_member(struct writer *w, const struct record_member *member)
{
	record_write_string(w, member->id);
	record_write_string(w, member->instance_id);
	record_write_string(w, member->client_id);
	record_write_string(w, member->host);
	writer_u32(w, (uint32_t)member->rebalance_timeout_ms);
	writer_u32(w, (uint32_t)member->session_timeout_ms);
	record_write_bytes(w, member->subscription);
	record_write_bytes(w, member->assignment);
}

void record_part_key(struct writer *w, struct bytes group, uint8_t slot, struct bytes member_id)
{
	writer_u16(w, RECORD_TYPE_PART);
	record_write_string(w, group);
	writer_u8(w, slot);
	record_write_string(w, member_id);
}

void record_part_value(struct writer *w, const struct record_part *value)
{
	const struct record_member *m = &value->member;
	writer_u16(w, 0);
	writer_u64(w, (uint64_t)value->edition);
	writer_u32(w, (uint32_t)value->generation);
	record_write_compact(w, m->instance_id);
	record_write_compact(w, record_not_null(m->client_id));
	record_write_compact(w, record_not_null(m->host));
	writer_u32(w, (uint32_t)m->rebalance_timeout_ms);
	writer_u32(w, (uint32_t)m->session_timeout_ms);
	record_write_compact(w, record_not_null(m->subscription));
	record_write_compact(w, record_not_null(m->assignment));
	writer_uvarint(w, 0);
}
