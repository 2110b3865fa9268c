/*
 * rig.h - a shard on a bench: requests that record their answers, a clock that the test turns, a log that keeps every byte.
 *
 * After every step the rig checks the invariants of group.h, and that a second shard, made from nothing but the log's durable bytes, equals
 * the live one (groups at rest and all offsets).
 *
 * Strings are C strings. Lists are written "name=value,name=value".
 */
#ifndef MUSTER_TEST_RIG_H
#define MUSTER_TEST_RIG_H

#include "coordinator/group/group.h"

#define RIG_TEXT 128
#define RIG_LIST 32

struct rig_member {
	char id[RIG_TEXT], instance[RIG_TEXT], metadata[RIG_TEXT];
};

struct call {
	struct request rq;
	struct member_memo memo;
	struct rig *rig;
	struct call *next;
	bool answered, dropped;
	/* of the answer */
	int error;
	int generation;
	char id[RIG_TEXT], leader[RIG_TEXT], protocol[RIG_TEXT], type[RIG_TEXT], assignment[RIG_TEXT];
	bool protocol_null, type_null, skip;
	int len; /* members, or partitions of a commit */
	struct rig_member list[RIG_LIST];
	int codes[RIG_LIST];
	uint64_t answered_us;
};

struct rig_log {
	struct log log;
	struct log_entry *entries;
	unsigned int len, cap, durable;
	uint64_t released;
	bool hold;
	int error;
	int broken;
};

struct rig {
	struct group_settings settings;
	struct stats stats;
	struct now now;
	struct shard *shard;
	struct rig_log *log;
	struct call *calls;
	const char *client; /* client id of the next requests */
	uint32_t peer;
	bool eof;	     /* the next requests come from half-closed connections */
	bool unchecked;	     /* no replay comparison (long random runs check now and then) */
	struct call *parked; /* scratch */
};

struct rig *rig_new(void);
void rig_free(struct rig *r);

/* Lets time pass, waking the shard when it asked for it. */
void rig_pass(struct rig *r, int64_t ms);
/* Lets the log work and the shard tick, without time passing. */
void rig_settle(struct rig *r);
/* Appended records stay on their way until released. */
void rig_log_hold(struct rig *r, bool hold);
/* The next appends fail with this error; 0: they work again. */
void rig_log_fail(struct rig *r, int error);
/* Nothing becomes durable any more, appends fail. */
void rig_log_break(struct rig *r, int error);
unsigned int rig_log_records(const struct rig *r);
struct log_entry rig_log_entry(const struct rig *r, unsigned int i);
void rig_check(struct rig *r);

/* Protocols are "name=metadata,..."; metadata "@t+u" are a subscription to topics t and u. */
struct call *rig_join(struct rig *r, int version, const char *id, const char *instance, int session_ms, int rebalance_ms, const char *protocols);
/* protocol type other than "consumer"; group other than "g" */
struct call *rig_join_to(struct rig *r, const char *group, int version, const char *id, const char *instance, int session_ms, int rebalance_ms,
			 const char *type, const char *protocols);
/* The metadata of a consumer that wants the topics "t+u", in `buf`. */
struct bytes rig_subscription(char *buf, size_t size, const char *topics);
struct call *rig_sync(struct rig *r, int version, const char *id, const char *instance, int generation, const char *assignments);
struct call *rig_sync_as(struct rig *r, const char *group, int version, const char *id, const char *instance, int generation, const char *type,
			 const char *protocol, const char *assignments);
struct call *rig_heartbeat(struct rig *r, const char *id, const char *instance, int generation);
struct call *rig_heartbeat_to(struct rig *r, const char *group, const char *id, const char *instance, int generation);
/* Version 0 to 2: a single id. */
struct call *rig_leave(struct rig *r, int version, const char *id);
/* Version 3 and later: "id|instance,id|instance"; no instance: "id". */
struct call *rig_leave_many(struct rig *r, const char *group, const char *members);
/* "topic:partition=offset/metadata,..."; a leading '!' marks a partition that the screening refused with 3. */
struct call *rig_commit(struct rig *r, int version, const char *id, const char *instance, int generation, const char *list);
struct call *rig_commit_full(struct rig *r, const char *group, int version, const char *id, const char *instance, int generation,
			     const char *list, int64_t timestamp, int64_t retention);
/* The connection of a parked request closes. */
void rig_drop(struct call *c);

/* MEMBER_ID_REQUIRED round and the parked join behind it. */
struct call *rig_join_twice(struct rig *r, int session_ms, int rebalance_ms, const char *protocols);
/* n dynamic members (session 10 s, rebalance 60 s, protocol "range"), Stable; calls[0] is the leader's join. */
void rig_stable(struct rig *r, struct call **joins, int n);
/* All of these members sync generation `generation`, the first of them leads; each gets its index as text. */
void rig_sync_all(struct rig *r, struct call **joins, int n, int generation);

/* The shard goes, another one is made from the log. */
void rig_reload(struct rig *r);

const char *rig_state(struct rig *r);
struct group *rig_group(struct rig *r);
/* Offset of group "g", or -999. */
int64_t rig_offset(struct rig *r, const char *topic, int partition);

#endif
