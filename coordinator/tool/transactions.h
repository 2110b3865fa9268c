/*
 * transactions.h - which transactional batches of a Kafka partition count: those whose producer's next control batch says commit.
 */
#ifndef MUSTER_TOOL_TRANSACTIONS_H
#define MUSTER_TOOL_TRANSACTIONS_H

#include "coordinator/log/batch.h"

enum outcome {
	OUTCOME_PENDING, /* nothing ends the transaction yet */
	OUTCOME_COMMITTED,
	OUTCOME_ABORTED,
};

struct transaction_end {
	int64_t producer_id;
	int64_t offset;
	bool commit;
};

/* All zero is empty; the owner frees `ends`. */
struct transactions {
	struct transaction_end *ends;
	size_t len, cap;
};

/* Takes a control batch. False: no memory. A control batch that ends nothing is left out. */
bool transactions_add(struct transactions *t, struct batch *batch);
/* After the last transactions_add. */
void transactions_sort(struct transactions *t);
enum outcome transactions_outcome(const struct transactions *t, int64_t producer_id, int64_t offset);

#endif
