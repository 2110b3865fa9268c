/*
 * group.h - the private header of the group engine: shards, groups, members, and the functions that its files share.
 *
 * Ownership: shard -> groups -> members. Groups are allocated one by one, members lie in slabs that live as long as the shard, so that a
 * stale pointer to a member (the memo of a connection) is still readable memory and its tag tells that it is stale.
 *
 * Look-ups go through tables of the shard, not of the group, so that a small group costs no table: groups by id; members by (group, id);
 * static members by (group, instance id); ids handed out but not yet used by (group, id); protocol names by (group, name).
 *
 * Invariants:
 *  1. group->waiting is the number of members with a parked join, group->unsynced that of members with `unsynced` set.
 *  2. A parked join exists only in PreparingRebalance, a parked sync only in CompletingRebalance.
 *  3. The join operation waits exactly in PreparingRebalance; the sync operation only in CompletingRebalance and Stable.
 *  4. A group with members has a protocol that all members offer; the counts in the protocol table equal the offers of its members.
 *  5. The session operation of a member waits, except while it lapsed with a request parked, which then keeps the member alive.
 *  6. Durable fields (generation, protocol, leader, members' subscriptions and assignments) of an Empty or Stable group equal its last record,
 *     once that is durable, unless the group is `unsaved`.
 */
#ifndef MUSTER_GROUP_H
#define MUSTER_GROUP_H

#include <sys/queue.h>

#include "muster/check.h"

#include "coordinator/group/hash.h"
#include "coordinator/group/journal.h"
#include "coordinator/group/record.h"
#include "coordinator/group/removal.h"
#include "coordinator/group/table.h"
#include "coordinator/offsets.h"
#include "coordinator/purgatory.h"
#include "coordinator/shard.h"
#include "coordinator/wire/errors.h"
#include "coordinator/write.h"

/* A member that has not had its first answer cannot heartbeat; it may stay parked this long. */
#define MEMBER_NEW_TIMEOUT_MS 300000
/* Protocols in one JoinGroup; clients send a handful. */
#define MEMBER_OFFERS_MAX 256

enum group_state {
	GROUP_EMPTY,
	GROUP_PREPARING, /* PreparingRebalance: members are joining */
	GROUP_COMPLETING, /* CompletingRebalance: the leader's assignment is awaited */
	GROUP_STABLE,
	GROUP_DEAD, /* the shard does not serve it any more */
	GROUP_STATES
};

/* A protocol name that members of a group offer. */
struct protocol {
	struct table_node node; /* shard->protocols */
	struct group *group;
	uint32_t members; /* that offer it */
	uint32_t votes;	  /* scratch of protocol_select */
	struct bytes name; /* behind the struct */
};

struct offer {
	struct protocol *protocol;
	struct bytes metadata;
};

/* What a member offers, in its order of preference; one allocation. */
struct offers {
	uint32_t len;
	struct offer list[];
};

struct member {
	/* what a heartbeat touches */
	uint64_t tag; /* never used again by another member; 0: free */
	struct group *group;
	struct bytes id;
	struct purgatory_op session;
	int32_t session_timeout_ms;
	int32_t rebalance_timeout_ms;
	struct bytes instance_id; /* null: dynamic */
	/* the rest */
	uint32_t index; /* in group->members */
	bool is_new;	/* no join phase with it has completed yet */
	bool unnamed;	/* new, and its id is not known to the client */
	bool unsynced;	/* has not sent SyncGroup in this generation */
	bool seen;	/* scratch of replay */
	struct request *join, *sync; /* parked, or NULL */
	struct offers *offers;
	struct bytes assignment; /* malloc */
	struct bytes client_id, host;
	void *text; /* holds id, instance_id, client_id, host */
	struct table_node by_id, by_instance;
};

/* Topics that a group of consumers wanted when its join phase last ended (subscription.c). */
struct subscription {
	struct bytes *names; /* malloc, the text behind them; sorted, none twice */
	uint32_t len;
	bool known; /* false: it has had no join phase, or a member's metadata could not be read */
};

/* An id handed out with MEMBER_ID_REQUIRED that has not come back yet. */
struct pending {
	struct table_node node; /* shard->pendings */
	struct group *group;
	struct purgatory_op session;
	LIST_ENTRY(pending) link;
	int64_t since_ms; /* when it was handed out, since 1970 */
	struct bytes id; /* behind the struct */
};

struct group {
	struct table_node node; /* shard->groups */
	struct shard *shard;
	const struct group_settings *settings; /* its own, or the shard's */
	struct bytes id; /* behind the struct */
	enum group_state state;
	enum group_state previous_state;
	int32_t generation;
	int64_t state_ms; /* when it entered the state, since 1970; -1: unknown */
	struct bytes protocol_type; /* malloc; null: none */
	struct bytes protocol; /* malloc; null: none */
	struct member *leader;
	struct member **members;
	uint32_t members_len, members_cap;
	uint32_t waiting, unsynced;
	uint32_t pending_len;
	struct subscription subscription;
	LIST_HEAD(, pending) pending;
	STAILQ_HEAD(, released) released; /* oldest first */
	uint32_t released_len;
	struct purgatory_watch watch; /* of the two operations */
	struct purgatory_op join, sync;
	/* initial delay */
	uint64_t initial_delay_ms, initial_left_ms;
	bool new_member_added;
	/* join window, microseconds */
	uint64_t changed_us;	/* when a member came or went last, in this join phase; 0: none did */
	uint64_t window_end_us; /* no window lasts longer */
	uint64_t join_end_us;	/* nor the join phase; set while it waits in its window */
	/* writes */
	uint32_t writes;	/* group records on their way to the log */
	uint32_t refs;		/* writes that point here */
	bool unsaved;		/* the log refused the last record; the next one will tell */
	bool removed;		/* no longer in the shard's table */
	bool assignment_written; /* the leader's assignment of this generation is on its way */
	struct journal journal;
};

struct slab;

struct shard {
	unsigned int number;
	bool loading; /* the worker's; everything else is the loader's meanwhile */
	struct stats *stats_after; /* the worker's counters while it is loading */
	struct log *log;
	const struct group_settings *settings;
	struct stats *stats;
	struct hash_key key;
	uint64_t random_counter;
	struct purgatory purgatory;
	struct table groups, members, instances, pendings, protocols;
	struct group *last_found; /* in `groups`; the next request or record is often of the same one */
	struct offsets offsets;
	struct write_queue writes;
	struct shard_barrier *barriers;
	struct slab *slabs;
	struct member *free_members;
	uint64_t next_tag;
	void *scratch;
	size_t scratch_cap;
	void (*line)(void *arg, const char *line);
	void *line_arg;
	struct removals removals;
	int64_t made_ms; /* since 1970; what happened before is not known */
	struct purgatory_op expiry; /* the next slice of the walk for expired offsets */
	uint32_t expiry_bucket;	    /* where it goes on */
	struct {
		struct purgatory_op op; /* the next slice of the walk for their offsets */
		uint64_t after; /* the walk begins when everything appended up to here has arrived */
		uint32_t bucket;
		struct bytes *topics; /* allocated each; sorted */
		size_t len;
	} gone; /* deleted topics */
};

/* Until when what is written now must be durable, microseconds. */
uint64_t shard_write_deadline(const struct shard *shard, struct now now);
/* A block that is good until the next call; NULL: no memory. */
void *shard_scratch(struct shard *shard, size_t size);
/* Copies into a fresh allocation; a null or empty slice needs none. False: no memory. */
bool bytes_dup(struct bytes *out, struct bytes b);
void bytes_free(struct bytes *b);

static inline uint64_t deadline_after(struct now now, int64_t ms)
{
	return now.us + (ms > 0 ? (uint64_t)ms * US_PER_MS : 0);
}

/* ---- state.c ---- */
const char *group_state_name(enum group_state state);
bool group_transition_legal(enum group_state from, enum group_state to);
void group_transition(struct group *group, enum group_state to, struct now now);
/* The state that a record says, of a group at rest: Empty or Stable. */
void group_restore(struct group *group, enum group_state state, int64_t state_ms);

/* ---- group.c ---- */
struct group *group_find(struct shard *shard, struct bytes id);
struct group *group_new(struct shard *shard, struct bytes id); /* NULL: no memory */
void group_free(struct group *group);
/* Takes it out of the shard; freed when no write points to it any more. */
void group_remove(struct group *group, struct now now);
void group_put(struct group *group); /* drops one reference */
bool group_set_protocol_type(struct group *group, struct bytes type);
bool group_set_protocol(struct group *group, struct bytes name); /* null: none */
/* Largest rebalance timeout of all members, ms, at least 0. */
int64_t group_rebalance_timeout(const struct group *group);
/* Everything that a request of a member must pass: 0, or 25 or 82. *out is the member. */
int16_t group_validate(struct group *group, struct bytes member_id, struct bytes instance_id, struct member **out);
/* Appends the group as it is, with `assignments` (by member index) or the stored ones (NULL). Consumes `extra` bytes for the write's arena. */
struct write *group_write_new(struct group *group, const struct bytes *assignments, size_t extra, struct now now);
/* An Empty group tells the log so; nobody waits, a failure is only counted. */
void group_write_empty(struct group *group, struct now now);

/* ---- member.c ---- */
struct member_text {
	struct bytes id, instance_id, client_id, host;
};
/* A generated id, valid until the next use of the shard's scratch block; null: no memory. */
struct bytes member_make_id(struct shard *shard, struct bytes prefix);
struct member *member_find(struct group *group, struct bytes id);
struct member *member_find_instance(struct group *group, struct bytes instance_id);
/* Adds to the group, consumes `offers`, even on failure (NULL: no memory). The first member gives the leader. */
struct member *member_add(struct group *group, const struct member_text *text, struct offers *offers);
/* Takes it out; a parked join is answered with `join_error` and no member id, a parked sync with 25. */
void member_remove(struct member *m, int16_t join_error, struct now now);
/* New identity of the same member: the tag changes, so memos of the old one are stale. False: no memory. */
bool member_rename(struct member *m, struct bytes id);
/* Where its requests come from now; without memory the old data stay. */
void member_set_origin(struct member *m, struct bytes client_id, struct bytes host);
/* It gave a sign of life: the session starts anew. */
void member_touch(struct member *m, struct now now);
/* Consumes `offers`. */
void member_set_offers(struct member *m, struct offers *offers);
void member_park_join(struct member *m, struct request *rq, struct now now);
void member_park_sync(struct member *m, struct request *rq, struct now now);
struct request *member_unpark_join(struct member *m);
struct request *member_unpark_sync(struct member *m);
struct bytes member_metadata(const struct member *m); /* of the selected protocol */
void member_start_new_timer(struct member *m, struct now now);
void members_free_slabs(struct shard *shard);

/* ---- released.c ---- */
/* Remembers a static member that is about to be removed by an administrator. False: no memory. */
bool released_add(struct group *group, const struct member *m);
bool released_has(const struct group *group, struct bytes member_id, struct bytes instance_id);
void released_forget(struct group *group);

/* ---- pending.c ---- */
struct pending *pending_find(struct group *group, struct bytes id);
struct pending *pending_add(struct group *group, struct bytes id, int32_t session_timeout_ms, struct now now);
void pending_remove(struct pending *p);

/* ---- protocol.c ---- */
/* The offers of a request, their names counted for the group only by offers_count. NULL: no memory. */
struct offers *offers_new(struct group *group, const struct join_group_request_protocol *list, int32_t len);
struct offers *offers_one(struct group *group, struct bytes name, struct bytes metadata);
void offers_free(struct offers *offers);
/* offers_free in two steps, with a way back: their names stay allocated in between. */
void offers_uncount(struct offers *offers);
void offers_recount(struct offers *offers);
void offers_release(struct offers *offers);
bool offers_equal(const struct offers *offers, const struct join_group_request_protocol *list, int32_t len);
/* May a member with these offers join? */
bool protocols_accept(struct group *group, struct bytes type, const struct join_group_request_protocol *list, int32_t len);
/* The winner of the vote; null only when nothing is offered by all. */
struct bytes protocols_select(struct group *group);

/* ---- rebalance.c ---- */
/* The generation after this one. They only grow; a stored one may be anything. */
int32_t rebalance_next(int32_t generation);
void rebalance_prepare(struct group *group, enum journal_cause cause, const struct member *who, struct now now);
/* Something changed: is the join phase complete? */
void rebalance_try_complete(struct group *group, struct now now);
/* A member came or went while the group is joining. */
void rebalance_changed(struct group *group, struct now now);
/* A member or a handed-out id expired: as above, but also within the initial delay. */
void rebalance_after_expiry(struct group *group, struct now now);
/* After members were removed for `cause`, in any state. The cause's event must be open already (journal_open) if it names a member. */
void rebalance_after_removal(struct group *group, enum journal_cause cause, struct now now);
/* Answers every parked sync with an error and forgets all assignments. */
void rebalance_abort_syncs(struct group *group, int16_t error, struct now now);

/* ---- join.c, static.c ---- */
void join_answer_error(struct request *rq, int16_t error, struct bytes member_id, struct now now);
/* Success: what the group knows, with the members' list for the leader. */
void join_answer(struct member *m, struct request *rq, struct now now);
void join_answer_as(struct member *m, struct request *rq, struct bytes leader, bool skip_assignment, struct now now);
/* The text of a peer's address as Kafka has it, "/10.1.2.3", in a buffer of JOIN_HOST_LEN. */
#define JOIN_HOST_LEN 20
struct bytes join_host(const struct request *rq, char *buf);
bool join_offers_fit(const struct join_group_request *in);
int32_t join_rebalance_timeout(const struct request *rq, const struct join_group_request *in);
void join_static(struct group *group, struct member *m, struct request *rq, const struct join_group_request *in, struct now now);

/* ---- subscription.c ---- */
/* Reads the members' subscriptions anew: a join phase has ended, or the group was loaded. Without memory nothing is known. */
void group_subscribe(struct group *group);
/* Whether it is known that the group wants the topic, or not known that it does not. */
bool group_is_subscribed(const struct group *group, struct bytes topic);
void subscription_clear(struct subscription *s);
/* Into the order in which names_have wants them. */
void names_sort(struct bytes *names, size_t n);
/* Whether `name` is one of the sorted names. */
bool names_have(const struct bytes *names, size_t n, struct bytes name);

/* ---- delete.c ---- */
/* Whether records of the group are on their way to the log. */
bool writes_of_group(const struct shard *shard, struct bytes group_id);
struct tombstones {
	struct bytes group_id;
	struct writer size; /* of the keys */
	unsigned int records;
	struct write *w; /* NULL: measuring */
};
struct tombstones tombstones_of(struct bytes group_id);
void tombstone_offset(struct tombstones *t, struct bytes topic, int32_t partition);
void tombstone_group(struct tombstones *t);
/* Calls `put` twice, to measure and to write, and appends. Returns 0, also when there was nothing to write, or the error code for the client. */
int16_t tombstones_write(struct tombstones *t, struct shard *shard, void (*put)(struct tombstones *t, void *arg), void *arg, struct now now);

/* ---- expiry.c ---- */
/* Starts the wait for the next walk, unless it runs already or there is no group. */
void expiry_arm(struct shard *shard, struct now now);

/* ---- topics_gone.c ---- */
void topics_gone_fini(struct shard *shard);

/* ---- sync.c ---- */
void sync_answer_error(struct request *rq, int16_t error, struct now now);
void sync_answer(struct member *m, struct request *rq, struct now now);

#endif
