/*
 * batch.c - Kafka's record batch; the format stands in batch.h.
 */
#include "muster/check.h"

#include "coordinator/log/batch.h"
#include "coordinator/log/crc32c.h"

enum { AT_LENGTH = 8, AT_EPOCH = 12, AT_CRC = 17, AT_ATTRIBUTES = 21, AT_LAST_DELTA = 23, AT_COUNT = 57, MAGIC = 2, VARINT_MAX = 10 };

static uint64_t zigzag(int64_t v)
{
	return (uint64_t)v << 1 ^ (uint64_t)(v >> 63);
}

/* ---- writing ---- */

static size_t varint_size(int64_t v)
{
	size_t n = 1;
	for (uint64_t u = zigzag(v); u >= 0x80; u >>= 7)
		n++;
	return n;
}

static void varint_write(struct writer *w, int64_t v)
{
	uint64_t u = zigzag(v);
	for (; u >= 0x80; u >>= 7)
		writer_u8(w, (uint8_t)(u | 0x80));
	writer_u8(w, (uint8_t)u);
}

static size_t bytes_size(struct bytes b)
{
	return varint_size(b.len < 0 ? -1 : b.len) + (b.len > 0 ? (size_t)b.len : 0);
}

/* Without the record's own length. */
static size_t record_size(const struct log_entry *e, unsigned int delta)
{
	return 1 + 1 + varint_size(delta) + bytes_size(e->key) + bytes_size(e->value) + 1;
}

size_t batch_size(const struct log_entry *entries, unsigned int n)
{
	size_t size = BATCH_HEAD;
	for (unsigned int i = 0; i < n; i++) {
		size_t record = record_size(&entries[i], i);
		if (record > INT32_MAX)
			return SIZE_MAX;
		size += varint_size((int64_t)record) + record;
	}
	return size <= INT32_MAX && n <= INT32_MAX ? size : SIZE_MAX;
}

static void bytes_write(struct writer *w, struct bytes b)
{
	varint_write(w, b.len < 0 ? -1 : b.len);
	if (b.len > 0)
		writer_raw(w, b.p, (size_t)b.len);
}

static void record_write(struct writer *w, const struct log_entry *e, unsigned int delta)
{
	varint_write(w, (int64_t)record_size(e, delta));
	writer_u8(w, 0);
	varint_write(w, 0);
	varint_write(w, delta);
	bytes_write(w, e->key);
	bytes_write(w, e->value);
	varint_write(w, 0);
}

void batch_write(uint8_t *p, size_t size, const struct log_entry *entries, unsigned int n, int64_t base_offset, int32_t leader_epoch,
		 int64_t timestamp_ms)
{
	struct writer w = writer_of(p, size);
	writer_u64(&w, (uint64_t)base_offset);
	writer_u32(&w, (uint32_t)(size - AT_EPOCH));
	writer_u32(&w, (uint32_t)leader_epoch);
	writer_u8(&w, MAGIC);
	writer_u32(&w, 0); /* the CRC comes last */
	writer_u16(&w, 0);
	writer_u32(&w, n - 1);
	writer_u64(&w, (uint64_t)timestamp_ms);
	writer_u64(&w, (uint64_t)timestamp_ms);
	writer_u64(&w, UINT64_MAX);
	writer_u16(&w, UINT16_MAX);
	writer_u32(&w, UINT32_MAX);
	writer_u32(&w, n);
	for (unsigned int i = 0; i < n; i++)
		record_write(&w, &entries[i], i);
	CHECK(!w.full && writer_len(&w) == size);
	batch_reseal(p, size, n);
}

static void put_u32(uint8_t *p, uint32_t v)
{
	struct writer w = writer_of(p, 4);
	writer_u32(&w, v);
}

void batch_reseal(uint8_t *p, size_t size, uint32_t records)
{
	CHECK(size >= BATCH_HEAD && size <= INT32_MAX);
	put_u32(p + AT_LENGTH, (uint32_t)(size - AT_EPOCH));
	put_u32(p + AT_COUNT, records);
	put_u32(p + AT_CRC, crc32c(p + AT_ATTRIBUTES, size - AT_ATTRIBUTES));
}

/* ---- reading ---- */

static int64_t varint_read(struct reader *r)
{
	uint64_t u = 0;
	if (likely(!r->bad && r->p < r->end && *r->p < 0x80)) { /* one byte, as nearly all are */
		u = *r->p++;
		return (int64_t)(u >> 1) ^ -(int64_t)(u & 1);
	}
	for (unsigned int i = 0; i < VARINT_MAX; i++) {
		uint8_t b = reader_u8(r);
		if (i == VARINT_MAX - 1 && b > 1)
			break;
		u |= (uint64_t)(b & 0x7f) << (7 * i);
		if (b < 0x80)
			return r->bad ? 0 : (int64_t)(u >> 1) ^ -(int64_t)(u & 1);
	}
	r->bad = true;
	return 0;
}

static struct bytes bytes_read(struct reader *r)
{
	int64_t len = varint_read(r);
	if (len == -1)
		return BYTES_NULL;
	if (len < 0 || len > INT32_MAX) {
		r->bad = true;
		return BYTES_NULL;
	}
	const uint8_t *p = reader_take(r, (size_t)len);
	return p == NULL ? BYTES_NULL : bytes_of(p, (size_t)len);
}

bool batch_peek(struct batch_span *span, struct bytes bytes)
{
	if (bytes.len < (int32_t)BATCH_HEAD)
		return false;
	struct reader r = reader_of(bytes.p, BATCH_HEAD);
	int64_t base = (int64_t)reader_u64(&r);
	reader_take(&r, AT_LAST_DELTA - 8);
	int32_t delta = (int32_t)reader_u32(&r);
	if (base < 0 || base > INT64_MAX - INT32_MAX || delta < 0)
		return false;
	*span = (struct batch_span){base, base + delta};
	return true;
}

size_t batch_bytes(const uint8_t *p)
{
	struct reader r = reader_of(p + AT_LENGTH, AT_EPOCH - AT_LENGTH);
	return (size_t)reader_u32(&r) + AT_EPOCH;
}

bool batch_open(struct batch *batch, struct bytes bytes)
{
	if (bytes.len < (int32_t)BATCH_HEAD)
		return false;
	struct reader r = reader_of(bytes.p + AT_CRC, 4);
	return reader_u32(&r) == crc32c(bytes.p + AT_ATTRIBUTES, (size_t)bytes.len - AT_ATTRIBUTES) && batch_reopen(batch, bytes);
}

bool batch_reopen(struct batch *batch, struct bytes bytes)
{
	if (bytes.len < (int32_t)BATCH_HEAD)
		return false;
	struct reader r = reader_of(bytes.p, (size_t)bytes.len);
	struct batch b = {.base_offset = (int64_t)reader_u64(&r)};
	uint32_t length = reader_u32(&r);
	b.leader_epoch = (int32_t)reader_u32(&r);
	uint8_t magic = reader_u8(&r);
	reader_u32(&r);
	if (length != (uint32_t)bytes.len - AT_EPOCH || magic != MAGIC)
		return false;
	b.attributes = reader_u16(&r);
	int32_t last = (int32_t)reader_u32(&r);
	b.timestamp_ms = (int64_t)reader_u64(&r);
	reader_u64(&r);
	b.producer_id = (int64_t)reader_u64(&r);
	reader_u16(&r);
	reader_u32(&r);
	b.records = reader_u32(&r);
	if (last < 0 || b.base_offset < 0 || b.base_offset > INT64_MAX - INT32_MAX || b.records > (uint64_t)last + 1)
		return false;
	b.last_offset = b.base_offset + last;
	b.rest = r;
	*batch = b;
	return true;
}

static bool record_read(struct batch *b, struct reader *r, struct batch_record *record)
{
	reader_u8(r);
	record->timestamp_ms = (int64_t)((uint64_t)b->timestamp_ms + (uint64_t)varint_read(r));
	int64_t delta = varint_read(r);
	if (delta < 0 || delta > b->last_offset - b->base_offset)
		r->bad = true;
	record->offset = b->base_offset + delta;
	record->entry.key = bytes_read(r);
	record->entry.value = bytes_read(r);
	for (int64_t headers = varint_read(r); headers > 0 && !r->bad; headers--) {
		bytes_read(r);
		bytes_read(r);
	}
	return !r->bad;
}

bool batch_next(struct batch *b, struct batch_record *record)
{
	CHECK((b->attributes & BATCH_COMPRESSION) == 0);
	if (b->records == 0 || b->rest.bad)
		return false;
	b->records--;
	int64_t len = varint_read(&b->rest);
	const uint8_t *p = len < 0 ? NULL : reader_take(&b->rest, (size_t)len);
	struct reader r = reader_of(p, p == NULL ? 0 : (size_t)len);
	if (p == NULL || !record_read(b, &r, record)) {
		b->rest.bad = true;
		return false;
	}
	return true;
}
