/*
 * journal.h - what happened to a group: its last rebalances, each with cause, culprit, duration and who was waited for.
 *
 * A rebalance is open from its cause until its generation is formed; then it moves into the group's ring, which keeps the last
 * settings.journal_events. Besides, every event is told at once as a line of text to whoever listens (shard_set_journal).
 *
 * A line is blank-separated name=value pairs and starts with group, generation and event. Ids come from clients: bytes outside printable ASCII,
 * blanks, '=' and '"' are shown as \xNN, and what does not fit a line is cut.
 */
#ifndef MUSTER_GROUP_JOURNAL_H
#define MUSTER_GROUP_JOURNAL_H

#include "muster/bytes.h"
#include "muster/time.h"

/* Why a rebalance began: CAUSE(name, text in lines, whether a member came or went). */
#define JOURNAL_CAUSES(CAUSE)                                                   \
	CAUSE(MEMBER_JOINED, "member-joined", true)                             \
	CAUSE(MEMBER_LEFT, "member-left", true)                                 \
	CAUSE(MEMBER_EXPIRED, "member-expired", true)                           \
	CAUSE(MEMBER_DROPPED, "member-connection-closed", true)                 \
	CAUSE(MEMBER_REJOINED, "member-rejoined-with-new-subscription", false)  \
	CAUSE(LEADER_REJOINED, "leader-rejoined", false)                        \
	CAUSE(STATIC_REPLACED, "static-member-replaced", false)                 \
	CAUSE(SYNC_TIMEOUT, "sync-timeout", true)                               \
	CAUSE(WRITE_FAILED, "assignment-not-stored", false)                     \
	CAUSE(OVER_SIZE, "group-larger-than-allowed", false)                    \
	CAUSE(MEMBER_RELEASED, "static-member-released", true)                  \
	CAUSE(OFFSETS_RESET, "offsets-reset", false)

enum journal_cause {
#define CAUSE(name, text, change) JOURNAL_##name,
	JOURNAL_CAUSES(CAUSE)
#undef CAUSE
};

const char *journal_cause_text(enum journal_cause cause);
bool journal_cause_is_change(enum journal_cause cause);

/* One rebalance. Strings are owned by the event. */
struct journal_event {
	enum journal_cause cause;
	struct bytes member_id; /* who caused it */
	struct bytes instance_id; /* null: dynamic */
	struct bytes client_id;
	struct bytes host;
	int64_t start_ms;     /* since 1970 */
	uint64_t start_us;    /* monotonic */
	uint64_t duration_us; /* until the generation was formed */
	int32_t generation;   /* the new one */
	uint32_t members;     /* in it */
	uint32_t late;	      /* members removed because they did not join in time */
	struct bytes leader;
	struct bytes protocol; /* null when the group is empty now */
	struct bytes waited_for; /* ids of the late ones (some of them), or of the last one to join */
	void *text[2];		 /* allocations behind the slices */
	bool told;		 /* the listener knows that it began */
};

struct group;
struct member;

struct journal {
	struct journal_event **ring; /* grows up to the setting */
	uint32_t cap, len, first;
	struct journal_event *open;
	/* while open */
	uint64_t last_tag; /* member that joined last, and which is waited_for when nobody was late */
	struct bytes late_ids; /* of `late` members, blank-separated, cut after JOURNAL_LATE_BYTES */
	uint32_t late;
};

#define JOURNAL_LATE_BYTES 256

/* Begins a rebalance; only the first cause counts. `who` may be NULL. */
void journal_open(struct group *group, enum journal_cause cause, const struct member *who, struct now now);
/* The rebalance has begun, whoever caused it has gone by now: tells the listener, once. */
void journal_started(struct group *group);
/* A member was not there in time. */
void journal_late(struct group *group, const struct member *who);
/* The join phase goes on: who was late may still come. */
void journal_forget_late(struct group *group);
/* The generation is formed (or the group is empty now). */
void journal_close(struct group *group, struct now now);
void journal_fini(struct journal *journal);

/* Events oldest first. */
void journal_each(const struct journal *journal, void (*visit)(void *arg, const struct journal_event *event), void *arg);

/* The line of a finished event; always terminated. Returns its length. */
size_t journal_format(struct bytes group_id, const struct journal_event *event, char *out, size_t len);

/* ---- lines as it happens ---- */

struct journal_line {
	char text[1024];
	size_t len;
};

/* Begins a line of `event`; false when nobody listens. */
bool journal_line(struct journal_line *line, const struct group *group, const char *event);
/* The same of a group that may not exist; whoever asks knows that somebody listens. */
void journal_line_of(struct journal_line *line, struct bytes group_id, const char *event);
void journal_put(struct journal_line *line, const char *name, struct bytes value);
void journal_put_number(struct journal_line *line, const char *name, int64_t value);
/* member=, instance=, client=, host= */
void journal_put_member_as(struct journal_line *line, const struct member *who, struct bytes id);
void journal_put_member(struct journal_line *line, const struct member *who);
void journal_tell(const struct group *group, struct journal_line *line);
/* A whole line about a member. `reason` may be null. */
void journal_member(const struct group *group, const char *event, const struct member *who, struct bytes reason);

#endif
