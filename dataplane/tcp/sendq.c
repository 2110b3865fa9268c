/*
 * sendq.c - a byte queue in pool blocks; invariants in sendq.h.
 */
#include <string.h>

#include "dataplane/tcp/sendq.h"
#include "muster/check.h"

#define SENDQ_MAX_BYTES (1u << 30) /* half of the sequence space away from any doubt */

static uint32_t block_len(const struct pool_block *b)
{
	return (uint32_t)(b->end - b->first);
}

bool sendq_append(struct sendq *q, struct pool *pool, const void *p, size_t len)
{
	if (len == 0)
		return true;
	if (len > SENDQ_MAX_BYTES - q->len)
		return false;
	size_t room = q->tail == NULL ? 0 : (size_t)POOL_DATA_BYTES - q->tail->end;
	if (len > room && !pool_reserve(pool, (uint32_t)((len - room + POOL_DATA_BYTES - 1) / POOL_DATA_BYTES)))
		return false;
	const uint8_t *src = p;
	q->len += (uint32_t)len;
	while (len > 0) {
		if (room == 0) {
			struct pool_block *b = pool_get(pool);
			CHECK(b != NULL);
			if (q->tail == NULL)
				q->head = b;
			else
				q->tail->next = b;
			q->tail = b;
			room = POOL_DATA_BYTES;
		}
		size_t n = len < room ? len : room;
		memcpy(q->tail->data + q->tail->end, src, n);
		q->tail->end = (uint16_t)(q->tail->end + n);
		src += n;
		len -= n;
		room -= n;
	}
	return true;
}

void sendq_copy(struct sendq *q, uint32_t offset, uint32_t len, uint8_t *dst)
{
	CHECK(offset <= q->len && len <= q->len - offset);
	if (len == 0)
		return;
	if (q->cursor == NULL || offset < q->cursor_at) {
		q->cursor = q->head;
		q->cursor_at = 0;
	}
	for (;;) {
		uint32_t skip = offset - q->cursor_at, have = block_len(q->cursor);
		if (skip < have) {
			uint32_t n = len < have - skip ? len : have - skip;
			memcpy(dst, q->cursor->data + q->cursor->first + skip, n);
			dst += n;
			offset += n;
			len -= n;
			if (len == 0)
				return;
		}
		q->cursor_at += have;
		q->cursor = q->cursor->next;
	}
}

void sendq_drop(struct sendq *q, struct pool *pool, uint32_t len)
{
	CHECK(len <= q->len);
	q->len -= len;
	q->cursor_at = q->cursor_at > len ? q->cursor_at - len : 0;
	while (len > 0) {
		struct pool_block *b = q->head;
		uint32_t have = block_len(b);
		if (len < have) {
			b->first = (uint16_t)(b->first + len);
			break;
		}
		len -= have;
		q->head = b->next;
		if (q->cursor == b)
			q->cursor = NULL;
		pool_put(pool, b);
	}
	if (q->head == NULL)
		q->tail = q->cursor = NULL;
	if (q->cursor == NULL)
		q->cursor_at = 0;
}

void sendq_clear(struct sendq *q, struct pool *pool)
{
	sendq_drop(q, pool, q->len);
}
