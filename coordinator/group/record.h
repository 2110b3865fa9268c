/*
 * record.h - the records of __consumer_offsets as Kafka writes them, and one type of our own: keys and values to bytes and back.
 *
 * Key: i16 record type, then strings with i16 length and i32 numbers. Value: i16 version, then
 *   offset (types 0 and 1)   offset i64 | v3+ leader epoch i32 | metadata string | commit time i64 | v1 only: expire time i64
 *   group (type 2)           protocol type string | generation i32 | protocol string? | leader string? | v2+ state time i64 | members:
 *                            i32 count, each: id string | v3+ instance id string? | client id string | client host string |
 *                            v1+ rebalance timeout i32 | session timeout i32 | subscription bytes | assignment bytes
 * ("?": may be null, length -1.) Version 4 of both has the flexible encoding: varint lengths plus one, tagged fields at the end of each structure.
 * Written are offset v3 (v1 where there is an expire time) and group v3; read are all versions up to 4. A null value is a tombstone.
 *
 * A group whose v3 value would be longer than a setting (group.record.max.bytes, 1,000,000: what a batch of the offsets topic takes by default) is
 * stored in parts instead, so that there is no largest group:
 *
 *   header   key of type 2; value v4 without members and with tagged field RECORD_TAG_PARTS: slot u8 | edition i64 | members u32.
 *            A reader that does not know the tag sees a group without members.
 *   part     one per member. Key: type RECORD_TYPE_PART, which Kafka skips with a warning | group string | slot u8 | member id string.
 *            Value: version i16 0 | edition i64 | generation i32 | instance id string? | client id string | client host string |
 *            rebalance timeout i32 | session timeout i32 | subscription bytes | assignment bytes | tagged fields; flexible encoding.
 *
 * The parts go out before their header, in as many batches as needed, and the header is the commit: a group consists of the parts of its header's slot and
 * edition, and only when all of them are there. Every write of the whole group has a higher edition and the slot that the last committed write did
 * not have, so an unfinished one can neither be seen nor, by compaction, take the place of a committed one. A write of the same edition changes
 * single members of a committed one, in one batch with its header.
 *
 * Decoded structs are slices of the bytes given. Decoding never trusts them: false means malformed or of an unknown version.
 */
#ifndef MUSTER_GROUP_RECORD_H
#define MUSTER_GROUP_RECORD_H

#include "muster/bytes.h"

/* Longest string that a record can hold, bytes. */
#define RECORD_STRING_MAX INT16_MAX

#define RECORD_TYPE_PART 0x4d01
#define RECORD_TAG_PARTS 0x4d01

enum record_kind {
	RECORD_OFFSET,
	RECORD_GROUP,
	RECORD_PART,
	RECORD_OTHER, /* a type of record that we do not speak yet */
};

struct record_key {
	enum record_kind kind;
	struct bytes group;
	struct bytes topic; /* RECORD_OFFSET only */
	int32_t partition;
	struct bytes member; /* RECORD_PART only */
	uint8_t slot;
};

#define RECORD_NO_EXPIRY (-1)

struct record_offset {
	int64_t offset;
	int32_t leader_epoch; /* -1: none */
	struct bytes metadata;
	int64_t commit_ms; /* since 1970 */
	int64_t expire_ms; /* RECORD_NO_EXPIRY: by the server's retention */
};

struct record_member {
	struct bytes id;
	struct bytes instance_id; /* null: dynamic */
	struct bytes client_id;
	struct bytes host;
	int32_t rebalance_timeout_ms;
	int32_t session_timeout_ms;
	struct bytes subscription;
	struct bytes assignment;
};

/* Where a group's members stand when they are not in its own record. */
struct record_parts {
	int64_t edition; /* 0: not in parts */
	uint32_t members;
	uint8_t slot;
};

struct record_part {
	int64_t edition;
	int32_t generation;
	struct record_member member; /* its id is in the key */
};

struct record_group {
	struct bytes protocol_type; /* empty: none */
	int32_t generation;
	struct bytes protocol; /* null: none */
	struct bytes leader;   /* null: none */
	int64_t state_ms;      /* when the group entered its state; -1: unknown */
	int32_t members_len;
	struct record_parts parts; /* members_len is 0 then */
	/* decoded only: where the next member stands */
	struct reader rest;
	int16_t version;
};

bool record_key_decode(struct record_key *key, struct bytes b);
bool record_offset_decode(struct record_offset *value, struct bytes b);
/* Checks every member, so record_group_next cannot fail later. */
bool record_group_decode(struct record_group *value, struct bytes b);
/* The next member; false behind the last one. */
bool record_group_next(struct record_group *value, struct record_member *member);

bool record_part_decode(struct record_part *value, struct bytes b);

/* Encoders. Strings must not be longer than RECORD_STRING_MAX. */
void record_offset_key(struct writer *w, struct bytes group, struct bytes topic, int32_t partition);
void record_offset_value(struct writer *w, const struct record_offset *value);
void record_group_key(struct writer *w, struct bytes group);
/* The value up to its members; then members_len times record_group_member. A group in parts: the whole header. */
void record_group_value(struct writer *w, const struct record_group *value);
void record_group_member(struct writer *w, const struct record_member *member);
void record_part_key(struct writer *w, struct bytes group, uint8_t slot, struct bytes member_id);
void record_part_value(struct writer *w, const struct record_part *value);

#endif
