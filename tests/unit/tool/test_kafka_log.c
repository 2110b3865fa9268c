/*
 * test_kafka_log.c - names of partitions, and which end of a transaction belongs to which batch.
 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "coordinator/tool/kafka_log.h"
#include "coordinator/tool/transactions.h"

Test(kafka_log, partition_of_a_path)
{
	static const struct {
		const char *path;
		int64_t number;
	} cases[] = {{"__consumer_offsets-7", 7},     {"/a/b/__consumer_offsets-0", 0},	   {"x/__consumer_offsets-49///", 49}, {"__consumer_offsets-", -1},
		     {"__consumer_offsets-1x", -1},   {"__consumer_offsets", -1},	   {"__consumer_offsets--1", -1},      {"", -1},
		     {"/", -1},			      {"demo-7", -1},			   {"a__consumer_offsets-7", -1},      {"__consumer_offsets-9999999999", -1},
		     {"__consumer_offsets-7/x", -1}};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		cr_assert_eq(kafka_partition_of(cases[i].path), cases[i].number, "%s", cases[i].path);
}

Test(transactions, the_next_end_of_the_same_producer_decides)
{
	struct transaction_end ends[] = {{1, 10, true}, {2, 5, false}, {1, 30, false}, {1, 20, true}};
	struct transactions t = {ends, ARRAY_LEN(ends), ARRAY_LEN(ends)};
	static const struct {
		int64_t producer, offset;
		enum outcome outcome;
	} cases[] = {{1, 0, OUTCOME_COMMITTED}, {1, 9, OUTCOME_COMMITTED}, {1, 11, OUTCOME_COMMITTED}, {1, 21, OUTCOME_ABORTED}, {1, 31, OUTCOME_PENDING},
		     {2, 4, OUTCOME_ABORTED},	{2, 6, OUTCOME_PENDING},   {3, 0, OUTCOME_PENDING},    {0, 0, OUTCOME_PENDING}};
	transactions_sort(&t);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		cr_assert_eq(transactions_outcome(&t, cases[i].producer, cases[i].offset), cases[i].outcome, "case %zu", i);
}
