/*
 * test_errors.c - names of the error codes.
 */
#include <criterion/criterion.h>

#include "coordinator/wire/errors.h"

Test(errors, names_and_texts)
{
	cr_assert_eq(ERROR_REBALANCE_IN_PROGRESS, 27);
	cr_assert_str_eq(error_name(ERROR_REBALANCE_IN_PROGRESS), "REBALANCE_IN_PROGRESS");
	cr_assert_str_eq(error_name(-1), "UNKNOWN_SERVER_ERROR");
	cr_assert_str_eq(error_name(0), "NONE");
	cr_assert_str_eq(error_text(0), "");
	cr_assert_str_eq(error_text(25), "The group has no such member.");
}

Test(errors, unknown_codes)
{
	cr_assert_str_eq(error_name(9999), "unknown error code");
	cr_assert_str_eq(error_text(-2), "unknown error code");
}
