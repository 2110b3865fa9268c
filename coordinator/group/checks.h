/*
 * checks.h - what a request of the group protocol must pass, in order: the first check that fails decides the answer. The order is part of the
 * protocol: clients do different things for different codes (a member that is gone must hear UNKNOWN_MEMBER_ID, not that its generation is old).
 *
 * Each API's table stands in its own file, join.c and so on; references are sections of our protocol page's numbering, KIPs and issues of Kafka.
 * A heartbeat runs the first part of its table only where its connection's memo does not know the member; the rest is inline (heartbeat.c). A test walks all
 * tables: every check alone, and every pair, of which the earlier wins.
 */
#ifndef MUSTER_GROUP_CHECKS_H
#define MUSTER_GROUP_CHECKS_H

#include "coordinator/group/group.h"

/* Passed, and nothing behind it is asked. */
#define CHECKS_ENOUGH INT16_MAX

struct check_call {
	struct shard *shard;
	const struct request *rq;
	const void *in; /* the API's request */
	struct bytes group_id, member_id, instance_id;
	int32_t generation;
	struct now now;
	/* found on the way */
	struct group *group;
	struct member *member;
};

struct check {
	const char *name;
	const char *reference;
	int16_t (*run)(struct check_call *c); /* 0, CHECKS_ENOUGH, or the error */
};

struct checks {
	const char *api;
	const struct check *list;
	unsigned int len;
};

extern const struct checks join_checks, sync_checks, heartbeat_checks, commit_checks, leave_checks, leave_member_checks;

/* Runs the first `len` of them. 0, or the error. */
static inline int16_t checks_run(const struct checks *checks, unsigned int len, struct check_call *c)
{
	for (unsigned int i = 0; i < len; i++) {
		int16_t error = checks->list[i].run(c);
		if (error != 0)
			return error == CHECKS_ENOUGH ? 0 : error;
	}
	return 0;
}

/* ---- checks that several tables have ---- */

int16_t check_group_id(struct check_call *c);	 /* 24: none is given */
int16_t check_loaded(struct check_call *c);	 /* 14 */
int16_t check_group_known(struct check_call *c); /* 25 */
int16_t check_served(struct check_call *c);	 /* 15: the shard has stopped */
int16_t check_member(struct check_call *c);	 /* 25 or 82 */
int16_t check_generation(struct check_call *c);	 /* 22 */

#endif
