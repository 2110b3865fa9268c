/*
 * transactions.c - see transactions.h. The key of a control record: version i16, type i16; type 0 is abort, 1 is commit.
 */
#include <stdlib.h>

#include "coordinator/tool/transactions.h"

enum { CONTROL_ABORT, CONTROL_COMMIT };

bool transactions_add(struct transactions *t, struct batch *batch)
{
	struct batch_record record;
	if (!batch_next(batch, &record))
		return true;
	struct reader r = reader_of(record.entry.key.p, record.entry.key.len > 0 ? (size_t)record.entry.key.len : 0);
	reader_u16(&r);
	uint16_t type = reader_u16(&r);
	if (r.bad || type > CONTROL_COMMIT)
		return true;
	if (t->len == t->cap) {
		size_t cap = t->cap == 0 ? 64 : t->cap * 2;
		struct transaction_end *grown = realloc(t->ends, cap * sizeof(*grown));
		if (grown == NULL)
			return false;
		t->ends = grown;
		t->cap = cap;
	}
	t->ends[t->len++] = (struct transaction_end){batch->producer_id, batch->base_offset, type == CONTROL_COMMIT};
	return true;
}

static int end_order(const void *x, const void *y)
{
	const struct transaction_end *a = x, *b = y;
	if (a->producer_id != b->producer_id)
		return a->producer_id < b->producer_id ? -1 : 1;
	return a->offset < b->offset ? -1 : a->offset > b->offset;
}

void transactions_sort(struct transactions *t)
{
	if (t->len > 0)
		qsort(t->ends, t->len, sizeof(*t->ends), end_order);
}

enum outcome transactions_outcome(const struct transactions *t, int64_t producer_id, int64_t offset)
{
	struct transaction_end wanted = {.producer_id = producer_id, .offset = offset};
	size_t low = 0, high = t->len;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (end_order(&t->ends[middle], &wanted) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == t->len || t->ends[low].producer_id != producer_id)
		return OUTCOME_PENDING;
	return t->ends[low].commit ? OUTCOME_COMMITTED : OUTCOME_ABORTED;
}
