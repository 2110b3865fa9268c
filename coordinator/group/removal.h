/*
 * removal.h - members that are no more, and why: what explains an UNKNOWN_MEMBER_ID (25) or a FENCED_INSTANCE_ID (82) that a client reports.
 *
 * A ring per shard, oldest first out: at most settings.journal_removed_members entries, and none older than settings.journal_removed_minutes is
 * shown. It is memory only: after a restart it begins anew, and says since when it knows.
 *
 * Strings come from clients; each is cut after REMOVAL_TEXT_MAX bytes, so an entry has a bound.
 */
#ifndef MUSTER_GROUP_REMOVAL_H
#define MUSTER_GROUP_REMOVAL_H

#include "muster/bytes.h"
#include "muster/time.h"

#define REMOVAL_TEXT_MAX 255

/* REASON(name, event in lines, what its client is answered from then on, explanation). */
#define REMOVAL_REASONS(REASON)                                                                                                      \
	REASON(LEFT, "member-left", 25, "it left")                                                                                   \
	REASON(EXPIRED, "member-expired", 25, "no heartbeat or commit within its session timeout")                                   \
	REASON(NEVER_JOINED, "new-member-expired", 25, "no join phase with it was completed within five minutes")                    \
	REASON(LATE, "member-late", 25, "it did not rejoin within the rebalance timeout")                                            \
	REASON(DID_NOT_SYNC, "member-did-not-sync", 25, "it did not fetch its assignment within the rebalance timeout")              \
	REASON(GROUP_FULL, "member-refused-group-full", 81, "it rejoined while the group was larger than group.max.size")            \
	REASON(CONNECTION_CLOSED, "member-connection-closed", 25, "its connection closed before it was told its id")                 \
	REASON(REPLACED, "member-replaced", 82, "a client with the same instance id took its place")                                 \
	REASON(RELEASED, "member-released", 82, "an administrator released its instance id")                                         \
	REASON(ID_EXPIRED, "id-expired", 25, "its id was handed out and not used within the session timeout")                        \
	REASON(ID_LEFT, "id-left", 25, "its id was handed out and left before it was used")                                         \
	REASON(GROUP_REMOVED, "group-removed", 25, "its group was removed")

enum removal_reason {
#define REASON(name, event, code, text) REMOVAL_##name,
	REMOVAL_REASONS(REASON)
#undef REASON
};

/* One member that is gone. Strings are owned by the entry. */
struct removal {
	enum removal_reason reason;
	int32_t generation; /* of the group then */
	int64_t at_ms;	    /* since 1970 */
	int64_t seen_ms;    /* its last sign of life, since 1970; -1: none is known */
	struct bytes group_id, member_id;
	struct bytes instance_id; /* null: dynamic */
	struct bytes client_id, host;
	struct bytes detail; /* LEFT: the client's reason; REPLACED: the id of the successor; may be empty */
};

struct removals {
	struct removal **ring;
	uint32_t cap, len, first;
	int64_t since_ms; /* it is complete since then, as far as the minutes reach; 0: nothing was ever pushed out */
};

struct shard;
struct group;
struct member;

const char *removal_event(enum removal_reason reason);
const char *removal_text(enum removal_reason reason);
int16_t removal_code(enum removal_reason reason);

/* The member is about to be removed or renamed: remembers it and tells the listener. `detail` may be null. Without memory it is only told. */
void removal_note(const struct member *m, enum removal_reason reason, struct bytes detail, struct now now);
/* A static member goes on under another id: the same of the one it had. */
void removal_note_as(const struct member *m, struct bytes id, enum removal_reason reason, struct bytes detail, struct now now);
/* The same of an id that was handed out; it has no line of its own. */
void removal_note_id(const struct group *group, struct bytes id, enum removal_reason reason, struct now now);

/* Entries of a group, or of all groups (`group_id` null), oldest first, that are not too old. */
void removals_each(const struct shard *shard, struct bytes group_id, void (*visit)(void *arg, const struct removal *r), void *arg, struct now now);
void removals_fini(struct removals *removals);

/* When the member gave its last sign of life, milliseconds since 1970; one with a parked request lives now. -1: unknown. */
int64_t member_seen_ms(const struct member *m, struct now now);

#endif
