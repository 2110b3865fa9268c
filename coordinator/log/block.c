/*
 * block.c - sealing and opening blocks; see block.h.
 */
#include "muster/check.h"

#include "coordinator/log/block.h"
#include "coordinator/log/crc32c.h"

enum { AT_CRC = 4, AT_SALT = 8 };

void block_seal(uint8_t *p, const struct block *block)
{
	size_t used = BLOCK_HEAD + (size_t)block->length;
	struct writer w = writer_of(p, used);
	writer_u32(&w, BLOCK_MAGIC);
	writer_u32(&w, 0);
	writer_u64(&w, block->salt);
	writer_u64(&w, block->sequence);
	writer_u64(&w, block->safe);
	writer_u16(&w, (uint16_t)block->type);
	writer_u16(&w, 0);
	writer_u32(&w, block->length);
	memset(p + writer_len(&w), 0, BLOCK_HEAD - writer_len(&w));
	memset(p + used, 0, block_bytes(block->length) - used);
	struct writer crc = writer_of(p + AT_CRC, 4);
	writer_u32(&crc, crc32c(p + AT_SALT, used - AT_SALT));
}

bool block_open(struct block *block, const uint8_t *p, size_t len)
{
	struct reader r = reader_of(p, len);
	if (len < FORMAT_ALIGN || reader_u32(&r) != BLOCK_MAGIC)
		return false;
	uint32_t crc = reader_u32(&r);
	struct block b = {.salt = reader_u64(&r)};
	b.sequence = reader_u64(&r);
	b.safe = reader_u64(&r);
	uint16_t type = reader_u16(&r);
	reader_u16(&r);
	b.length = reader_u32(&r);
	if (b.length > INT32_MAX - BLOCK_HEAD || block_bytes(b.length) > len || type < BLOCK_FIRST || type > BLOCK_LOST ||
	    crc != crc32c(p + AT_SALT, BLOCK_HEAD - AT_SALT + (size_t)b.length))
		return false;
	b.type = (enum block_type)type;
	*block = b;
	return true;
}

void block_id_write(uint8_t *payload, size_t cap, const struct block_id *id)
{
	struct writer w = writer_of(payload, cap);
	writer_u32(&w, FORMAT_VERSION);
	writer_raw(&w, id->log, sizeof(id->log));
	writer_u32(&w, id->shards);
	writer_u64(&w, id->start);
	writer_u32(&w, id->worker);
	writer_u64(&w, id->number);
	writer_u64(&w, id->bytes);
	CHECK(!w.full && writer_len(&w) == BLOCK_ID_BYTES);
}

bool block_id_read(struct block_id *id, struct bytes payload)
{
	struct reader r = reader_of(payload.p, (size_t)payload.len);
	struct block_id v;
	uint32_t version = reader_u32(&r);
	const uint8_t *log = reader_take(&r, sizeof(v.log));
	v.shards = reader_u32(&r);
	v.start = reader_u64(&r);
	v.worker = reader_u32(&r);
	v.number = reader_u64(&r);
	v.bytes = reader_u64(&r);
	if (r.bad || version != FORMAT_VERSION)
		return false;
	memcpy(v.log, log, sizeof(v.log));
	*id = v;
	return true;
}

int block_place_order(const struct block_place *a, const struct block_place *b)
{
	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	if (a->worker != b->worker)
		return a->worker < b->worker ? -1 : 1;
	return a->number < b->number ? -1 : a->number > b->number;
}

static void place_write(struct writer *w, const struct block_place *place)
{
	writer_u64(w, place->start);
	writer_u32(w, place->worker);
	writer_u64(w, place->number);
}

static struct block_place place_read(struct reader *r)
{
	struct block_place place = {.start = reader_u64(r)};
	place.worker = reader_u32(r);
	place.number = reader_u64(r);
	return place;
}

void block_cover_write(uint8_t *p, size_t cap, const struct block_cover *cover)
{
	struct writer w = writer_of(p, cap);
	place_write(&w, &cover->first);
	place_write(&w, &cover->last);
	CHECK(!w.full && writer_len(&w) == BLOCK_COVER_BYTES);
}

bool block_cover_read(struct block_cover *cover, struct bytes payload)
{
	struct reader r = reader_of(payload.p, (size_t)payload.len);
	reader_take(&r, BLOCK_ID_BYTES);
	struct block_cover c = {.first = place_read(&r)};
	c.last = place_read(&r);
	if (r.bad || block_place_order(&c.first, &c.last) > 0)
		return false;
	*cover = c;
	return true;
}
