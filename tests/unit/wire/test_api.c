/*
 * test_api.c - the served APIs and versions, as promised in the README, and the lookups of their messages.
 */
#include <stdio.h>

#include <criterion/criterion.h>

#include "coordinator/wire/api.h"
#include "coordinator/wire/messages.h"

Test(api, serves_what_is_promised)
{
	static const struct api_range promised[] = {
		{"Produce", 0, 0, 13},	     {"Fetch", 1, 0, 18},	  {"ListOffsets", 2, 0, 11},	 {"Metadata", 3, 0, 13},
		{"OffsetCommit", 8, 0, 10},  {"OffsetFetch", 9, 0, 10},	  {"FindCoordinator", 10, 0, 6}, {"JoinGroup", 11, 0, 9},
		{"Heartbeat", 12, 0, 4},     {"LeaveGroup", 13, 0, 5},	  {"SyncGroup", 14, 0, 5},	 {"DescribeGroups", 15, 0, 6},
		{"ListGroups", 16, 0, 5},    {"ApiVersions", 18, 0, 4},	  {"OffsetForLeaderEpoch", 23, 0, 4}, {"DescribeConfigs", 32, 0, 4},
		{"DeleteGroups", 42, 0, 2},  {"OffsetDelete", 47, 0, 0},  {"DescribeCluster", 60, 0, 2},
	};
	cr_assert_eq(API_COUNT, ARRAY_LEN(promised));
	for (unsigned int i = 0; i < API_COUNT; i++) {
		cr_assert_str_eq(api_ranges[i].name, promised[i].name);
		cr_assert(api_ranges[i].key == promised[i].key && api_ranges[i].lowest == promised[i].lowest &&
			  api_ranges[i].highest == promised[i].highest, "%s", promised[i].name);
	}
}

Test(api, finds_both_messages_of_every_api_and_no_others)
{
	unsigned int found = 0;
	for (int key = -100; key < 200; key++) {
		int i = api_index((int16_t)key);
		const struct message_type *request = message_request((int16_t)key), *response = message_response((int16_t)key);
		cr_assert_eq(i >= 0, request != NULL);
		cr_assert_eq(i >= 0, response != NULL);
		if (i < 0)
			continue;
		char name[64];
		cr_assert(api_ranges[i].key == key && request->api_key == key && response->api_key == key);
		snprintf(name, sizeof(name), "%sRequest", api_ranges[i].name);
		cr_assert_str_eq(request->name, name);
		snprintf(name, sizeof(name), "%sResponse", api_ranges[i].name);
		cr_assert_str_eq(response->name, name);
		cr_assert_eq(request->flexible, response->flexible);
		found++;
	}
	cr_assert_eq(found, API_COUNT);
	cr_assert_eq(message_types_len, 2 * API_COUNT);
}

Test(api, serves_versions_in_the_range_only)
{
	cr_assert(api_serves(api_key_heartbeat, 0));
	cr_assert(api_serves(api_key_heartbeat, 4));
	cr_assert(!api_serves(api_key_heartbeat, 5));
	cr_assert(!api_serves(api_key_heartbeat, -1));
	cr_assert(!api_serves(7, 0));
}
