/*
 * batch.h - Kafka's record batch, format v2: the records of one request to bytes and back.
 *
 *    @  size                                        a record, after its length as a varint
 *    0    8   base offset                             attributes i8, 0
 *    8    4   length of what follows                  timestamp delta varint
 *   12    4   leader epoch (not under the CRC)        offset delta varint
 *   16    1   magic 2                                 key length varint, -1: null; key
 *   17    4   CRC-32C from byte 21 to the end         value length varint, -1: tombstone; value
 *   21    2   attributes                              number of headers varint, 0
 *   23    4   last offset delta
 *   27    8   base timestamp, ms since 1970         varint: zig-zag, then base 128, low groups first
 *   35    8   largest timestamp
 *   43    8   producer id, -1                       attributes: bits 0-2 compression, 4 transactional, 5 control
 *   51    2   producer epoch, -1
 *   53    4   base sequence, -1
 *   57    4   number of records
 *   61        records
 *
 * Reading trusts nothing: every length is checked against the bytes that are there.
 */
#ifndef MUSTER_LOG_BATCH_H
#define MUSTER_LOG_BATCH_H

#include "muster/bytes.h"

#include "coordinator/log/log.h"

#define BATCH_HEAD 61u

enum {
	BATCH_COMPRESSION = 0x07,
	BATCH_TRANSACTIONAL = 0x10,
	BATCH_CONTROL = 0x20,
};

/* Bytes of a batch of these entries; SIZE_MAX when it would not fit into Kafka's length field. */
size_t batch_size(const struct log_entry *entries, unsigned int n);

/* Writes exactly batch_size bytes. */
void batch_write(uint8_t *p, size_t size, const struct log_entry *entries, unsigned int n, int64_t base_offset, int32_t leader_epoch,
		 int64_t timestamp_ms);

/* After records were taken out: makes length, number of records and CRC right; the rest of the head stays. */
void batch_reseal(uint8_t *p, size_t size, uint32_t records);

struct batch {
	int64_t base_offset, last_offset;
	int32_t leader_epoch;
	uint16_t attributes;
	int64_t timestamp_ms; /* of the first record */
	int64_t producer_id;
	uint32_t records; /* that batch_next has still to give */
	struct reader rest;
};

/* Where a batch stands, without looking further. False: too short or out of range. */
struct batch_span {
	int64_t base_offset, last_offset;
};
bool batch_peek(struct batch_span *span, struct bytes bytes);

struct batch_record {
	int64_t offset;
	int64_t timestamp_ms;
	struct log_entry entry;
};

/* Bytes of a batch that was once opened. */
size_t batch_bytes(const uint8_t *p);
/* `bytes` is exactly one batch. False: malformed, another magic, or its CRC does not fit. */
bool batch_open(struct batch *batch, struct bytes bytes);
/* The same of bytes that were opened before and have been in our memory since: the CRC is not asked again. */
bool batch_reopen(struct batch *batch, struct bytes bytes);
/* The next record, slices of the batch. False: no more, or batch->rest.bad when the records are malformed. Never call it on a compressed batch. */
bool batch_next(struct batch *batch, struct batch_record *record);

#endif
