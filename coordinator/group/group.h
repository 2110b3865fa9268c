/*
 * group.h - the private header of the group engine: shards, groups, members, and the functions that its files share.
 *
 * Ownership: shard -> groups -> members. Groups are allocated one by one, members lie in slabs that live as long as the shard, so that a
 * stale pointer to a member (the memo of a connection) is still readable memory and its tag tells that it is stale.
 *
 * Look-ups go through tables of the shard, not of the group, so that a small group costs no table: groups by id; members by (group, id);
 * static members by (group, instance id); ids handed out but not yet used by (group, id); protocol names by (group, name).
 *
 * Whatever takes a look at every member of a group is done in slices (slice.c), so that a large group does not hold up the others of its shard: between
 * two slices the state is what invariants 2 and 3 say, and requests of any member may arrive. Such a request is served as if the walk were through:
 * what its member has parked and not been told yet is answered first (slice_hurry).
 *
 * Invariants:
 *  1. group->waiting is the number of members with a parked join, group->syncing that of members with a parked sync, group->unsynced that of
 *     members that are unsynced.
 *  2. A parked join exists only in PreparingRebalance, and in CompletingRebalance while `answering`: its generation is formed, only the answer is not
 *     out. A parked sync exists only in CompletingRebalance; in Stable while the assignments go out; in PreparingRebalance while
 *     it waits to be answered with abort_error.
 *  3. The join operation waits exactly in PreparingRebalance unless `closing`; the sync operation only in CompletingRebalance and Stable.
 *  4. A group with members has a protocol that all members offer; the counts in the protocol table equal the offers of its members.
 *  5. The session operation of a member waits, except while it lapsed with a request parked, which then keeps the member alive.
 *  6. Durable fields (generation, protocol, leader, members' subscriptions and assignments) of an Empty or Stable group equal its last record,
 *     once that is durable, unless the group is `unsaved`.
 *  7. `closing` is set only in PreparingRebalance; `answering`, and a draft, only in CompletingRebalance; `expelling` in CompletingRebalance and Stable.
 *  8. A new rebalance ends all of them. Joins that were not answered yet stay parked: they count for the new join phase.
 *  9. While any work of slice.c is due, the group is in the shard's queue for it, unless a slice of it is running.
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
#include "coordinator/newest.h"
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
	uint32_t firsts;  /* of those, that name it first */
	uint32_t votes;	  /* scratch of protocols_select */
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
	uint32_t index;	   /* in group->members */
	bool is_new;	   /* no join phase with it has completed yet */
	bool unnamed;	   /* new, and its id is not known to the client */
	uint8_t slots;	   /* bit s: the log holds a part of it in slot s (record.h) */
	uint32_t synced;   /* group->sync_number when it last sent SyncGroup */
	uint32_t assigned; /* group->assigned when `assignment` was made: of any other it is void */
	uint32_t seen;	   /* the last merge that named it (replay.c) */
	uint32_t dropped;  /* group->closings when its join was dropped at the end of the phase: it is in the next generation all the same */
	struct request *join, *sync; /* parked, or NULL */
	struct offers *offers;
	struct bytes assignment; /* malloc; read it with member_assignment */
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
	int64_t record;	  /* log offset of its newest record that was applied; -1: none */
	struct bytes protocol_type; /* malloc; null: none */
	struct bytes protocol; /* malloc; null: none */
	struct member *leader;
	struct member **members;
	uint32_t members_len, members_cap;
	uint32_t waiting, syncing, unsynced;
	uint32_t sync_number; /* counts the phases in which members have to sync */
	bool sync_open;	      /* it is one */
	uint32_t assigned;    /* counts assignments, and those that became void */
	int32_t timeout_max;  /* largest rebalance timeout of its members, ms, while timeout_members > 0 */
	uint32_t timeout_members; /* that have it; 0: to be looked for */
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
	/* work in slices (slice.c) */
	TAILQ_ENTRY(group) queue;
	bool queued, running;
	bool closing;	/* the join phase is over, who did not join has to go */
	bool answering; /* the generation is formed, joins are being answered */
	bool expelling; /* the sync phase is over, who did not sync has to go */
	uint8_t walk;	/* enum slice_walk */
	int16_t abort_error;
	uint32_t walk_at; /* members below this index are still to be visited */
	uint32_t expelled;
	uint32_t closings; /* ends of join phases so far */
	struct slice_scratch *scratch;
	struct draft *draft; /* the assignment on its way to the log */
	struct group_parts *parts; /* NULL: the log never held parts of it */
	/* writes */
	uint32_t writes;	/* group records on their way to the log */
	uint32_t refs;		/* writes that point here */
	bool unsaved;		/* the log refused the last record; the next one will tell */
	bool removed;		/* no longer in the shard's table */
	bool assignment_written; /* the leader's assignment of this generation is on its way */
	struct journal journal;
};

/* What is known of the parts of a group in the log (parts.c). */
struct group_parts {
	struct record_parts at; /* of its last header; edition 0: the last record is a whole one */
	int64_t last_edition;
	uint64_t submitted, durable; /* records of the group: how many were appended since it has parts, and the last durable one */
	STAILQ_HEAD(, debris) debris; /* keys that the log holds for nothing, oldest first */
	bool clear;    /* it is stored whole, and its members may still have parts */
	bool hold;     /* the log refused tombstones: not again before the next record */
	uint32_t clear_at; /* members below this index */
};

/* A merge of a record into its group, which may take several slices (replay.c). */
struct merge {
	struct group *group; /* NULL: none is under way */
	struct record_group rec;
	struct assembly *parts; /* NULL: the members stand in `rec` */
	struct part *next;
	uint32_t mark, seen;
	uint32_t assigned;
	bool same_edition;
};

TAILQ_HEAD(group_queue, group);

struct slab;

struct shard {
	unsigned int number;
	bool loading; /* the worker's; everything else but `stopped` is the loader's meanwhile */
	bool stopped; /* makes no new groups */
	struct stats *stats_after; /* the worker's counters while it is loading */
	struct log *log;
	const struct group_settings *settings;
	struct stats *stats;
	struct hash_key key;
	uint64_t random_counter;
	struct purgatory purgatory;
	struct table groups, members, instances, pendings, protocols;
	struct group *last_found; /* in `groups`; the next request or record is often of the same one */
	struct table assemblies, parts; /* parts of groups that wait for their header */
	struct merge merge;
	uint32_t merges;
	struct group_queue queue; /* groups with work in slices */
	unsigned int slice_left;  /* units of it that this round may still do */
	uint64_t too_large_us; /* when it was last said that something is too large to be stored */
	uint64_t too_large_unsaid;
	struct offsets offsets;
	struct newest newest;
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

/* Has not sent SyncGroup in this generation. */
static inline bool member_unsynced(const struct member *m)
{
	return m->group->sync_open && m->synced != m->group->sync_number;
}

static inline struct bytes member_assignment(const struct member *m)
{
	return m->assigned == m->group->assigned ? m->assignment : BYTES_EMPTY;
}

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
int64_t group_rebalance_timeout(struct group *group);
/* Everything that a request of a member must pass: 0, or 25 or 82. *out is the member. */
int16_t group_validate(struct group *group, struct bytes member_id, struct bytes instance_id, struct member **out);
/*
 * The record of the group as it is, with `assignments` (by member index) or the stored ones (NULL), to be submitted; parts of it are appended
 * already. `extra` bytes are for the write's arena. NULL: *error is for the client.
 */
struct write *group_write_new(struct group *group, const struct bytes *assignments, size_t extra, int16_t *error, struct now now);
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
void member_touch_rarely(struct member *m, struct now now); /* any member */
static inline void member_touch(struct member *m, struct now now)
{
	if (unlikely(m->is_new || !purgatory_waiting(&m->session)))
		member_touch_rarely(m, now);
	else
		purgatory_postpone(&m->group->shard->purgatory, &m->session, deadline_after(now, m->session_timeout_ms));
}
void member_set_timeouts(struct member *m, int32_t session_ms, int32_t rebalance_ms);
/* It sent SyncGroup. */
void member_set_synced(struct member *m);
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
/* The same; parked syncs get `error` instead of REBALANCE_IN_PROGRESS. */
void rebalance_prepare_after(struct group *group, enum journal_cause cause, const struct member *who, int16_t error, struct now now);
/* Something changed: is the join phase complete? */
void rebalance_try_complete(struct group *group, struct now now);
/* A member came or went while the group is joining. */
void rebalance_changed(struct group *group, struct now now);
/* A member or a handed-out id expired: as above, but also within the initial delay. */
void rebalance_after_expiry(struct group *group, struct now now);
/* After members were removed for `cause`, in any state. The cause's event must be open already (journal_open) if it names a member. */
void rebalance_after_removal(struct group *group, enum journal_cause cause, struct now now);
/* For slice.c: the join phase is closed and whoever did not join is gone; the sync phase is over and whoever did not sync is gone. */
void rebalance_form(struct group *group, struct now now);
void rebalance_expelled(struct group *group, struct now now);

/* ---- slice.c ---- */
enum slice_walk {
	SLICE_NOTHING,
	SLICE_EXPEL,   /* who did not sync goes */
	SLICE_CLOSE,   /* who did not join goes, static members stay */
	SLICE_ABORT,   /* parked syncs are answered with abort_error */
	SLICE_ANSWER,  /* parked joins are answered, the leader's last */
	SLICE_WRITE,   /* the draft goes to the log */
	SLICE_RELEASE, /* parked syncs are answered with the assignments */
	SLICE_SWEEP,   /* tombstones for parts that nobody needs */
};
/* Work became due: does what this round still allows, and queues the group for the rest. */
void slice_start(struct group *group, struct now now);
/* A request of this member arrived: answers first what it has parked and what is decided already. */
void slice_hurry(struct member *m, struct now now);
/* A rebalance begins or the group ends: nothing of it is due any more. slice_leave: nor will be. */
void slice_forget(struct group *group);
void slice_leave(struct group *group);
/* The members' list for the leader when the walk has made it, or NULL. */
const struct join_group_response_member *slice_list(const struct group *group);
/* Once in a round; shard_tick has set slice_left. */
void slices_run(struct shard *shard, struct now now);
/* Units of work that one round may do in a shard; a unit is about a microsecond. */
unsigned int slice_units(const struct shard *shard);

/* ---- draft.c ---- */
/* A group's record in the making: measured, then encoded, in slices. */
struct draft *draft_new(struct group *group, struct now now);
/* Copies the leader's assignments. False: no memory. */
bool draft_assign(struct draft *d, const struct sync_group_request *in);
/* Goes on for *units. True: ready for draft_finish, or *error is set and it can only be freed. */
bool draft_step(struct draft *d, unsigned int *units, int16_t *error, struct now now);
/* The write that completes it, to be submitted. NULL: no memory. */
struct write *draft_finish(struct draft *d, size_t extra, struct now now);
void draft_free(struct draft *d); /* NULL is ignored */
/* The record of a group in parts after one member changed and lost its old id; NULL: it must be written whole, or no memory. */
struct write *draft_one(struct member *m, struct bytes old_id, uint8_t old_slots, size_t extra, struct now now);
/* Encodes the group as one record of Kafka's. */
void group_encode(struct writer *w, const struct group *group, const struct bytes *assignments, int64_t state_ms);

/* ---- parts.c ---- */
/* A part that waits for its header. */
struct part {
	struct table_node node; /* shard->parts */
	struct assembly *owner;
	TAILQ_ENTRY(part) link;
	int64_t edition;
	struct bytes member, value; /* behind the struct */
	uint8_t slot;
};
/* The parts of one group id that no header has taken yet, and a header that waits for parts. */
struct assembly {
	struct table_node node; /* shard->assemblies */
	TAILQ_HEAD(, part) parts;
	int64_t edition; /* of the part that came last */
	uint32_t count;	 /* how many came with it in a row */
	struct bytes header; /* value; malloc; null: none */
	struct bytes group;  /* behind the struct */
};
struct assembly *assembly_find(struct shard *shard, struct bytes group_id);
/* NULL: no memory. */
struct assembly *assembly_get(struct shard *shard, struct bytes group_id);
/* False: no memory. */
bool assembly_put(struct shard *shard, const struct record_key *key, int64_t edition, struct bytes value);
void assembly_remove(struct shard *shard, const struct record_key *key);
bool assembly_complete(const struct assembly *a, const struct record_parts *parts);
void part_free(struct shard *shard, struct part *p);
/* The group was stored and does not consist of what is left here of older editions (0: of any): those are debris. */
void assembly_leave(struct shard *shard, struct assembly *a, struct group *group, int64_t edition);
void assembly_free(struct shard *shard, struct assembly *a);
/* Everything was replayed: whatever still waits was never finished. */
void assemblies_loaded(struct shard *shard);
void assemblies_free(struct shard *shard);
/* group->parts; NULL: no memory. */
struct group_parts *parts_get(struct group *group);
/* The log holds parts of this id that the next record of the group makes useless. */
void parts_forget(struct group *group, struct bytes id, uint8_t slots);
/* A record of the group became durable. */
void parts_durable(struct group *group, uint64_t commit);
bool parts_to_sweep(const struct group *group);
void parts_sweep(struct group *group, unsigned int *units, struct now now);
void parts_free(struct group *group);
struct tombstones;
/* With the group's own tombstone: those of whatever else the log holds of it. */
void parts_tombstones(struct tombstones *t, const struct group *group);

/* ---- replay.c ---- */
/* As shard_replay, but does no more than *units: false when the same entry has to be given again. */
bool replay_some(struct shard *shard, const struct log_entry *entry, unsigned int *units, struct now now);

/* ---- join.c, static.c ---- */
void join_answer_error(struct request *rq, int16_t error, struct bytes member_id, struct now now);
/* Success: what the group knows, with the members' list for the leader. */
void join_answer(struct member *m, struct request *rq, struct now now);
void join_list_put(struct join_group_response_member *out, const struct member *m);
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
/* The same in steps: begun, each member once, and then kept (consumes `s`). What is read points to what the members own. NULL: no memory. */
struct subscribed *subscribed_new(const struct group *group);
void subscribed_member(struct subscribed *s, const struct member *m);
void group_subscribed(struct group *group, struct subscribed *s);
void subscribed_free(struct subscribed *s);
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
void tombstone_part(struct tombstones *t, uint8_t slot, struct bytes member);
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
/* For slice.c: the draft is finished, or `error` is why not. */
void sync_drafted(struct group *group, int16_t error, struct now now);

#endif
