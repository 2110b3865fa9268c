/*
 * test_batch.c - Kafka's record batch: golden bytes, every cut and every flipped bit refused, extremes of sizes.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "coordinator/log/batch.h"
#include "coordinator/log/crc32c.h"

/* Kafka 4.3.1's DumpLogSegments --offsets-decoder reads these bytes as offset 5: group g, topic t, partition 7, committed 42, metadata m; offset 6: the
 * tombstone of group g; leader epoch 3, crc 1674344018, isvalid. */
static const char golden[] =
	"000000000000000500000069000000030263cc76520000000000010000018bcfe568000000018bcfe56800ffffffffffffffffffffffffffff0000000256000000180001"
	"00016700017400000007320003000000000000002affffffff00016d0000018bcfe5680000160000020a00020001670100";

static const uint8_t key[] = {0, 1, 0, 1, 'g', 0, 1, 't', 0, 0, 0, 7};
static const uint8_t value[] = {0, 3, 0, 0, 0, 0, 0, 0, 0, 42, 0xff, 0xff, 0xff, 0xff, 0, 1, 'm', 0, 0, 1, 0x8b, 0xcf, 0xe5, 0x68, 0};
static const uint8_t group_key[] = {0, 2, 0, 1, 'g'};

static struct log_entry entries[2] = {{{key, sizeof(key)}, {value, sizeof(value)}}, {{group_key, sizeof(group_key)}, {NULL, -1}}};

Test(batch, golden_bytes)
{
	uint8_t bytes[256];
	char hex[513] = "";
	size_t size = batch_size(entries, 2);
	cr_assert_eq(size, 117);
	batch_write(bytes, size, entries, 2, 5, 3, 1700000000000);
	for (size_t i = 0; i < size; i++)
		snprintf(hex + 2 * i, 3, "%02x", bytes[i]);
	cr_assert_str_eq(hex, golden);
}

Test(batch, reads_what_it_wrote)
{
	uint8_t bytes[256];
	struct batch b;
	struct batch_record r;
	batch_write(bytes, 117, entries, 2, 5, 3, 1700000000000);
	cr_assert(batch_open(&b, bytes_of(bytes, 117)));
	cr_assert_eq(b.base_offset, 5);
	cr_assert_eq(b.last_offset, 6);
	cr_assert_eq(b.leader_epoch, 3);
	cr_assert_eq(b.producer_id, -1);
	cr_assert(batch_next(&b, &r));
	cr_assert_eq(r.offset, 5);
	cr_assert_eq(r.timestamp_ms, 1700000000000);
	cr_assert(bytes_equal(r.entry.key, entries[0].key) && bytes_equal(r.entry.value, entries[0].value));
	cr_assert(batch_next(&b, &r));
	cr_assert_eq(r.offset, 6);
	cr_assert(bytes_equal(r.entry.key, entries[1].key) && bytes_is_null(r.entry.value));
	cr_assert(!batch_next(&b, &r));
	cr_assert(!b.rest.bad);
}

/* A length that is right for the shorter bytes, too. */
Test(batch, refuses_every_cut)
{
	uint8_t bytes[256];
	struct batch b;
	batch_write(bytes, 117, entries, 2, 5, 3, 1700000000000);
	for (size_t len = 0; len < 117; len++) {
		uint8_t *copy = malloc(len + 1);
		memcpy(copy, bytes, len);
		cr_assert(!batch_open(&b, bytes_of(copy, len)), "%zu bytes", len);
		if (len >= 12) {
			copy[11] = (uint8_t)(len - 12);
			cr_assert(!batch_open(&b, bytes_of(copy, len)), "%zu bytes", len);
		}
		free(copy);
	}
}

/* All but the base offset and the leader epoch, which the CRC does not cover. */
Test(batch, refuses_every_flipped_bit)
{
	uint8_t bytes[256];
	struct batch b;
	batch_write(bytes, 117, entries, 2, 5, 3, 1700000000000);
	for (size_t bit = 0; bit < 117 * 8; bit++) {
		if (bit / 8 < 8 || (bit / 8 >= 12 && bit / 8 < 16))
			continue;
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		cr_assert(!batch_open(&b, bytes_of(bytes, 117)), "bit %zu", bit);
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	cr_assert(batch_open(&b, bytes_of(bytes, 117)));
}

/* Records that lie, under a CRC that is right: an error, never a read behind the end. */
Test(batch, malformed_records)
{
	unsigned int bad = 0;
	struct batch b;
	struct batch_record r;
	for (size_t at = 61; at < 117; at++) {
		for (unsigned int v = 0; v < 256; v += 3) {
			uint8_t *bytes = malloc(117);
			batch_write(bytes, 117, entries, 2, 5, 3, 1700000000000);
			bytes[at] = (uint8_t)v;
			uint32_t crc = __builtin_bswap32(crc32c(bytes + 21, 96));
			memcpy(bytes + 17, &crc, 4);
			cr_assert(batch_open(&b, bytes_of(bytes, 117)));
			while (batch_next(&b, &r))
				cr_assert(r.offset == 5 || r.offset == 6);
			bad += b.rest.bad;
			free(bytes);
		}
	}
	cr_assert_gt(bad, 500);
}

/* Lengths around the steps of the varint. */
Test(batch, sizes)
{
	static const uint32_t lengths[] = {0, 1, 55, 56, 57, 63, 64, 65, 127, 128, 8180, 8191, 8192, 8193, 16384, 1048576, 1048577, 3000000};
	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		uint8_t *v = calloc(1, lengths[i] + 1);
		struct log_entry e = {BYTES_LITERAL("k"), bytes_of(v, lengths[i])};
		size_t size = batch_size(&e, 1);
		uint8_t *bytes = malloc(size);
		struct batch b;
		struct batch_record r;
		batch_write(bytes, size, &e, 1, INT64_MAX / 2, 0, -1);
		cr_assert(batch_open(&b, bytes_of(bytes, size)) && batch_next(&b, &r));
		cr_assert_eq(r.entry.value.len, (int32_t)lengths[i]);
		cr_assert_eq(r.offset, INT64_MAX / 2);
		cr_assert(!batch_next(&b, &r) && !b.rest.bad);
		free(bytes);
		free(v);
	}
}

Test(batch, longer_than_kafka_can_say)
{
	struct log_entry e[3];
	for (int i = 0; i < 3; i++)
		e[i] = (struct log_entry){BYTES_LITERAL("k"), {NULL, INT32_MAX / 2}};
	cr_assert_eq(batch_size(e, 3), SIZE_MAX);
	e[0].value.len = INT32_MAX;
	cr_assert_eq(batch_size(e, 1), SIZE_MAX);
}
