/*
 * record_text.c - records as text; see record_text.h. The formats stand in group/record.h.
 */
#include "coordinator/group/record.h"
#include "coordinator/tool/record_text.h"

enum key_names { PARTITION, GROUP, MEMBER, REGEX, PART };

static const struct {
	int16_t type;
	const char *name;
	enum key_names names;
} types[] = {
#define TYPE(number, name, names) {number, name, names},
#include "coordinator/tool/record_types.def"
#undef TYPE
};

static const char *const second_names[] = {[PARTITION] = "topic", [GROUP] = NULL, [MEMBER] = "member", [REGEX] = "regex",
					   [PART] = "member"};

static struct bytes read_string(struct reader *r)
{
	int16_t len = (int16_t)reader_u16(r);
	const uint8_t *p = len < 0 ? NULL : reader_take(r, (size_t)len);
	if (p == NULL)
		r->bad = true;
	return p == NULL ? BYTES_NULL : bytes_of(p, (size_t)len);
}

bool record_name_read(struct record_name *name, struct bytes key)
{
	if (bytes_is_null(key))
		return false;
	struct reader r = reader_of(key.p, (size_t)key.len);
	struct record_name n = {.type = (int16_t)reader_u16(&r), .group = BYTES_NULL, .second = BYTES_NULL, .partition = -1, .slot = -1};
	for (size_t i = 0; i < ARRAY_LEN(types) && !r.bad; i++) {
		if (types[i].type != n.type)
			continue;
		n.name = types[i].name;
		n.group = read_string(&r);
		n.second_name = second_names[types[i].names];
		if (types[i].names == PART)
			n.slot = reader_u8(&r);
		if (n.second_name != NULL)
			n.second = read_string(&r);
		if (types[i].names == PARTITION)
			n.partition = (int32_t)reader_u32(&r);
		break;
	}
	if (r.bad)
		return false;
	*name = n;
	return true;
}

bool record_value_good(const struct record_name *name, struct bytes value)
{
	struct record_offset offset;
	struct record_group group;
	struct record_part part;
	if (bytes_is_null(value))
		return true;
	switch (name->type) {
	case 0:
	case 1:
		return record_offset_decode(&offset, value);
	case 2:
		return record_group_decode(&group, value);
	case RECORD_TYPE_PART:
		return record_part_decode(&part, value);
	default:
		return true;
	}
}

/* ---- what clients put into a group: the consumer protocol ---- */

/* The topics of a subscription; whether `t` is given or not, false means that it is none. */
static bool subscription_topics(struct text *t, struct bytes bytes)
{
	struct reader r = reader_of(bytes.p, bytes.len > 0 ? (size_t)bytes.len : 0);
	int16_t version = (int16_t)reader_u16(&r);
	int32_t count = (int32_t)reader_u32(&r);
	for (; count > 0 && !r.bad; count--) {
		struct bytes topic = read_string(&r);
		if (t != NULL && !r.bad)
			text_list_string(t, topic);
	}
	return !r.bad && version >= 0 && count == 0;
}

/* The same for the partitions of an assignment. */
static bool assignment_partitions(struct text *t, struct bytes bytes)
{
	struct reader r = reader_of(bytes.p, bytes.len > 0 ? (size_t)bytes.len : 0);
	int16_t version = (int16_t)reader_u16(&r);
	int32_t count = (int32_t)reader_u32(&r);
	for (; count > 0 && !r.bad; count--) {
		struct bytes topic = read_string(&r);
		int32_t partitions = (int32_t)reader_u32(&r);
		for (; partitions > 0 && !r.bad; partitions--) {
			int32_t partition = (int32_t)reader_u32(&r);
			if (t != NULL && !r.bad)
				text_list_partition(t, topic, partition);
		}
	}
	return !r.bad && version >= 0 && count == 0;
}

static void consumer_fields(struct text *t, const struct record_member *m)
{
	if (subscription_topics(NULL, m->subscription)) {
		text_list(t, "topics");
		subscription_topics(t, m->subscription);
		text_list_end(t);
	}
	if (assignment_partitions(NULL, m->assignment)) {
		text_list(t, "assigned");
		assignment_partitions(t, m->assignment);
		text_list_end(t);
	}
}

/* ---- values ---- */

static int16_t value_version(struct bytes value)
{
	struct reader r = reader_of(value.p, (size_t)value.len);
	return (int16_t)reader_u16(&r);
}

static void offset_fields(struct text *t, const struct record_offset *v)
{
	text_number(t, "offset", v->offset);
	text_number(t, "leader_epoch", v->leader_epoch);
	text_string(t, "metadata", v->metadata);
	text_time(t, "committed", v->commit_ms);
	if (v->expire_ms != RECORD_NO_EXPIRY)
		text_time(t, "expires", v->expire_ms);
}

static void member_fields(struct text *t, const struct record_member *m, bool consumer)
{
	text_string(t, "id", m->id);
	text_string(t, "instance", m->instance_id);
	text_string(t, "client", m->client_id);
	text_string(t, "host", m->host);
	text_number(t, "rebalance_timeout_ms", m->rebalance_timeout_ms);
	text_number(t, "session_timeout_ms", m->session_timeout_ms);
	text_number(t, "subscription_bytes", m->subscription.len);
	text_number(t, "assignment_bytes", m->assignment.len);
	if (consumer)
		consumer_fields(t, m);
}

static void group_fields(struct text *t, struct record_group *v)
{
	struct record_member m;
	text_string(t, "protocol_type", v->protocol_type);
	text_number(t, "generation", v->generation);
	text_string(t, "protocol", v->protocol);
	text_string(t, "leader", v->leader);
	text_time(t, "state_since", v->state_ms);
	if (!t->json)
		text_number(t, "members", v->members_len);
	if (v->parts.edition != 0) {
		text_number(t, "parts", v->parts.members);
		text_number(t, "edition", v->parts.edition);
		text_number(t, "slot", v->parts.slot);
	}
	text_array(t, "members");
	while (record_group_next(v, &m)) {
		text_item(t, "member");
		member_fields(t, &m, bytes_equal(v->protocol_type, BYTES_LITERAL("consumer")));
		text_item_end(t);
	}
	text_array_end(t);
}

static void part_fields(struct text *t, const struct record_name *n, struct record_part *v)
{
	text_number(t, "edition", v->edition);
	text_number(t, "generation", v->generation);
	v->member.id = n->second;
	member_fields(t, &v->member, true);
}

static void value_fields(struct text *t, const struct record_name *n, struct bytes value)
{
	struct record_offset offset;
	struct record_group group;
	struct record_part part;
	if ((n->type == 0 || n->type == 1) && record_offset_decode(&offset, value))
		offset_fields(t, &offset);
	else if (n->type == 2 && record_group_decode(&group, value))
		group_fields(t, &group);
	else if (n->type == RECORD_TYPE_PART && record_part_decode(&part, value))
		part_fields(t, n, &part);
	else
		text_number(t, "value_bytes", value.len);
}

/* ---- lines ---- */

static void place_fields(struct text *t, uint32_t shard, const struct batch *batch, const struct batch_record *record)
{
	text_number(t, "shard", shard);
	text_number(t, t->json ? "offset" : "at", record->offset);
	text_time(t, t->json ? "timestamp" : "time", record->timestamp_ms);
	text_number(t, t->json ? "leader_epoch" : "epoch", batch->leader_epoch);
	if ((batch->attributes & BATCH_TRANSACTIONAL) != 0)
		text_number(t, "producer_id", batch->producer_id);
}

static void key_fields(struct text *t, const struct record_name *n, struct bytes key)
{
	if (n->name == NULL) {
		text_number(t, "key_bytes", key.len);
		return;
	}
	text_string(t, "group", n->group);
	if (n->second_name != NULL)
		text_string(t, n->second_name, n->second);
	if (n->second_name != NULL && strcmp(n->second_name, "topic") == 0)
		text_number(t, "partition", n->partition);
	if (n->slot >= 0)
		text_number(t, "slot", n->slot);
}

void record_text(struct text *t, uint32_t shard, const struct batch *batch, const struct batch_record *record)
{
	struct record_name n;
	struct bytes key = record->entry.key, value = record->entry.value;
	text_begin(t);
	place_fields(t, shard, batch, record);
	if (!record_name_read(&n, key)) {
		text_word(t, "type", "UNREADABLE");
		text_number(t, "key_bytes", key.len);
		text_number(t, "value_bytes", value.len);
		text_end(t);
		return;
	}
	text_word(t, "type", n.name != NULL ? n.name : "Unknown");
	if (n.name == NULL)
		text_number(t, "type_number", n.type);
	text_object(t, "key");
	key_fields(t, &n, key);
	text_object_end(t);
	if (bytes_is_null(value)) {
		t->json ? text_null(t, "value") : text_word(t, "value", "TOMBSTONE");
		text_end(t);
		return;
	}
	text_number(t, "version", value_version(value));
	if (!record_value_good(&n, value))
		text_word(t, "error", "UNREADABLE");
	text_object(t, "value");
	value_fields(t, &n, value);
	text_object_end(t);
	text_end(t);
}

void record_text_control(struct text *t, uint32_t shard, const struct batch *batch, const struct batch_record *record)
{
	struct bytes key = record->entry.key;
	struct reader r = reader_of(key.p, key.len > 0 ? (size_t)key.len : 0);
	reader_u16(&r);
	uint16_t kind = reader_u16(&r);
	text_begin(t);
	place_fields(t, shard, batch, record);
	text_word(t, "type", r.bad ? "UNREADABLE" : kind == 0 ? "TransactionAbort" : kind == 1 ? "TransactionCommit" : "Control");
	text_end(t);
}
