/*
 * admin.h - what an administrator can ask a shard and have done, as typed values: a front-end (lines of JSON on a socket, a test) fills a request,
 * hands it to the shard that owns the group, gets items while it runs, and one answer at its end.
 *
 *   op       group, and                  items                                     effect
 *   why      member or instance id, or   group, member, waiting, rebalance,        -
 *            none: all of the group      removed
 *   waiting  -                           waiting                                   -
 *
 * An item is a kind and a list of named values, so that a front-end needs to know none of them; admin_item_text gives one line for people.
 */
#ifndef MUSTER_ADMIN_H
#define MUSTER_ADMIN_H

#include "muster/bytes.h"
#include "muster/time.h"

#define ADMIN_OPS(OP)                                                                   \
	OP(WHY, "why", "explains a group's rebalances and the members that are gone")   \
	OP(WAITING, "waiting", "lists whom a group waits for, and since when")

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

/* Owned by whoever asks; slices must be valid during shard_admin only. */
struct admin {
	enum admin_op op;
	struct bytes group_id;	  /* null: why of a member id whose group is not known */
	struct bytes member_id;	  /* null: none */
	struct bytes instance_id; /* null: none */
	void (*item)(struct admin *a, const struct admin_item *item); /* must not call the shard */
	void (*done)(struct admin *a, struct now now);		      /* once; may be called inside of shard_admin */
	void *arg;		  /* the asker's */
	int16_t error;		  /* when done: 0, or Kafka's number */
	char text[160];		  /* when done: one line, what is wrong or what was done */
};

struct shard;

void shard_admin(struct shard *shard, struct admin *a, struct now now);

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
/* Ends the request. */
PRINTF_LIKE(4, 5) void admin_finish(struct admin *a, int16_t error, struct now now, const char *format, ...);

#endif
