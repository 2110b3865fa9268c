/*
 * fuzz_log.c - a segment of the log as any bytes: read block by block, batch by batch, record by record, into a shard.
 *
 * The first byte of the input says what is made right before: bit 0 the CRCs of the blocks, bit 1 those of the batches, so that the fuzzer gets
 * behind them. Checked: nothing is read outside the input, reading ends, a block is never taken twice, the shard takes any record.
 */
#include <stdlib.h>

#include "muster/check.h"

#include "coordinator/log/batch.h"
#include "coordinator/log/crc32c.h"
#include "coordinator/log/segment.h"
#include "coordinator/shard.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put_u32(uint8_t *p, uint32_t v)
{
	v = __builtin_bswap32(v);
	memcpy(p, &v, 4);
}

static uint32_t get_u32(const uint8_t *p)
{
	uint32_t v;
	memcpy(&v, p, 4);
	return __builtin_bswap32(v);
}

static void mend_batches(uint8_t *p, size_t len)
{
	while (len >= ENTRY_HEAD) {
		size_t n = get_u32(p + 4);
		if (n > len - ENTRY_HEAD)
			return;
		if (n >= BATCH_HEAD)
			put_u32(p + ENTRY_HEAD + 17, crc32c(p + ENTRY_HEAD + 21, n - 21));
		p += ENTRY_HEAD + n;
		len -= ENTRY_HEAD + n;
	}
}

static void mend(uint8_t *p, size_t len, bool batches)
{
	for (size_t at = 0; at + FORMAT_ALIGN <= len; at += FORMAT_ALIGN) {
		uint8_t *b = p + at;
		size_t n = get_u32(b + 36);
		if (get_u32(b) != BLOCK_MAGIC || n > len - at || block_bytes(n) > len - at)
			continue;
		if (batches)
			mend_batches(b + BLOCK_HEAD, n);
		put_u32(b + 4, crc32c(b + 8, BLOCK_HEAD - 8 + n));
	}
}

static void read_payload(struct shard *shard, struct bytes payload)
{
	struct reader rest = reader_of(payload.p, (size_t)payload.len);
	struct bytes bytes;
	uint32_t number;
	while (segment_batch(&rest, &number, &bytes)) {
		struct batch b;
		struct batch_record record;
		if (!batch_open(&b, bytes) || (b.attributes & BATCH_COMPRESSION) != 0)
			continue;
		while (batch_next(&b, &record)) {
			CHECK(record.offset >= b.base_offset && record.offset <= b.last_offset);
			shard_replay(shard, &record.entry, (struct now){1, 1});
		}
	}
}

static void read_segment(struct shard *shard, const uint8_t *p, size_t len)
{
	struct segment_reader r;
	struct bytes payload;
	size_t at = 0;
	if (!segment_open(&r, p, len))
		return;
	do {
		while (segment_next(&r, &payload)) {
			CHECK(payload.p >= p && payload.p + payload.len <= p + len && r.at > at);
			at = r.at;
			read_payload(shard, payload);
		}
		CHECK(r.end != SEGMENT_GOING);
	} while (r.end != SEGMENT_SEALED && segment_skip(&r) > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct group_settings settings = {6000, 1800000, 0, INT32_MAX, 4096, 4};
	if (size < 1)
		return 0;
	uint8_t *copy = malloc(size);
	struct stats *stats = aligned_alloc(MUSTER_CACHE_LINE, sizeof(*stats));
	struct log *log = log_memory_new();
	CHECK(copy != NULL && stats != NULL && log != NULL);
	memset(stats, 0, sizeof(*stats));
	memcpy(copy, data + 1, size - 1);
	if (data[0] & 1)
		mend(copy, size - 1, (data[0] & 2) != 0);
	const uint64_t random[2] = {1, 2};
	struct shard *shard = shard_new(0, log, &settings, stats, random, (struct now){1, 1});
	CHECK(shard != NULL);
	read_segment(shard, copy, size - 1);
	shard_loaded(shard, (struct now){1, 1});
	shard_free(shard);
	log_free(log);
	free(stats);
	free(copy);
	return 0;
}
