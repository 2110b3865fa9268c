/*
 * admin.h - what an administrator can ask a shard and have done, as typed values: a front-end (lines of JSON on a socket, a test) fills a request,
 * hands it to the shard that owns the group, gets items while it runs, and one answer at its end.
 *
 *   op             group, and                  items                              effect
 *   why            member or instance id, or   group, member, waiting, rebalance, -
 *                  none: all of the group      removed
 *   waiting        -                           waiting                            -
 *   release        instance id                 -                                  the static member is removed now; its client is fenced (82), also when it
 *                                                                                 comes again under its old id; the group rebalances
 *   reset-offsets  offsets                     offset                             all members are fenced (22) and the group rebalances, then the offsets
 *                                                                                 are set: no commit of the old generation can follow them
 *
 * Both changes are answered when they are durable. When the log takes none, the answer is an error; what may be half done is said in its text.
 *
 * An item is a kind and a list of named values, so that a front-end needs to know none of them; admin_item_text gives one line for people.
 */
#ifndef MUSTER_ADMIN_H
#define MUSTER_ADMIN_H

#include "coordinator/shard.h"

#define ADMIN_OPS(OP)                                                                   \
	OP(WHY, "why", "explains a group's rebalances and the members that are gone")   \
	OP(WAITING, "waiting", "lists whom a group waits for, and since when")          \
	OP(RELEASE, "release", "removes the static member of an instance id now and fences its client") \
	OP(RESET_OFFSETS, "reset-offsets", "sets offsets of a group, also of one with members, which then start from them")

enum admin_op {
#define OP(name, text, help) ADMIN_##name,
	ADMIN_OPS(OP)
#undef OP
	ADMIN_OP_COUNT
};

enum admin_type {
	ADMIN_TEXT,
	ADMIN_NUMBER,
	ADMIN_TIME, /* number: milliseconds since 1970 */
};

struct admin_field {
	const char *name; /* letters, digits and _ */
	enum admin_type type;
	struct bytes text;
	int64_t number;
};

#define ADMIN_FIELDS 24
#define ADMIN_ITEM_TEXT 2048 /* room for any line; longer ones are cut */

/* Valid during the call that gets it. */
struct admin_item {
	const char *kind;
	unsigned int len;
	struct admin_field fields[ADMIN_FIELDS];
};

struct admin_offset {
	struct bytes topic;
	int32_t partition;
	int64_t offset;
	int32_t leader_epoch;  /* -1: none */
	struct bytes metadata; /* null: none */
};

/* Owned by whoever asks, until done; slices must be valid during shard_admin only. */
struct admin {
	enum admin_op op;
	struct bytes group_id;	  /* null: why of a member id whose group is not known */
	struct bytes member_id;	  /* null: none */
	struct bytes instance_id; /* null: none */
	const struct admin_offset *offsets; /* reset-offsets: topics and partitions exist, the asker has looked */
	unsigned int offsets_len;
	void (*item)(struct admin *a, const struct admin_item *item); /* must not call the shard */
	void (*done)(struct admin *a, struct now now);		      /* once; may be called inside of shard_admin */
	void *arg;		  /* the asker's */
	int16_t error;		  /* when done: 0, or Kafka's number */
	char text[160];		  /* when done: one line, what is wrong or what was done */
	struct shard_barrier barrier; /* the shard's, until done */
};

void shard_admin(struct shard *shard, struct admin *a, struct now now);
/* Nobody waits for the answer any more: `done` is not called. What was asked for happens all the same. */
void shard_admin_cancel(struct shard *shard, struct admin *a);

/* "why" and so on; NULL: there is no such op. */
const char *admin_op_name(enum admin_op op);
const char *admin_op_help(enum admin_op op);
/* False: no op has this name. */
bool admin_op_of(struct bytes name, enum admin_op *out);

/* A line of blank-separated name=value, the kind first, values escaped as in the journal; always terminated. Returns its length. */
size_t admin_item_text(const struct admin_item *item, char *out, size_t len);

/* ---- for those who make items ---- */

struct admin_item admin_item_of(const char *kind);
/* A null text and a negative time are left out. */
void admin_put(struct admin_item *item, const char *name, struct bytes text);
void admin_put_number(struct admin_item *item, const char *name, int64_t number);
void admin_put_time(struct admin_item *item, const char *name, int64_t ms);
/* Ends the request when everything appended so far is durable; `text` is what is said then. */
void admin_finish_durable(struct admin *a, struct shard *shard, const char *text, struct now now);
/* Ends the request. */
PRINTF_LIKE(4, 5) void admin_finish(struct admin *a, int16_t error, struct now now, const char *format, ...);

#endif
