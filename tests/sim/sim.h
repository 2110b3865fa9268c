/*
 * sim.h - a world in one process: the production coordinator (node, sessions, shards, groups) under a simulated clock, network and log, with
 * clients that behave and clients that do not, everything derived from one seed.
 *
 * A run is a plan: a list of actions, each with its time and its own random number, made from the seed (plan.c). Everything between two actions
 * follows from them: the consumers are state machines with random numbers of their own. So an action can be left out and the others stay what they
 * are, which is how a failing run is shrunk (run.c).
 *
 *   plan.c      seed -> settings, consumers, actions           world.c     clock, steps, restart of the server, end of a run
 *   net.c       connections: delay, loss, half-open, FIN, RST   disk.c      the log: delay, refusal, failure, loss of what is not durable
 *   consumer*.c the real consumer's life, subscription.c        assignor.c  range, roundrobin, sticky, cooperative-sticky
 *   stored.c    in some worlds the real log and a simulated disk behind it
 *   rogue.c     stale ids, doubles, garbage                     expect.c    what a request must be answered, from the rules
 *   ambush.c    what comes between two slices of one work
 *
 *   Checked of what passes the seam                             Checked of the state
 *   watch.c     once, in order, in time, as expected            audit.c     counts, timers, parked requests; nothing is left at the end
 *   epoch.c     one leader, protocol, assignment a generation   shadows.c   removals, phases, generations, sessions from step to step
 *   watch_offsets.c  offsets: durable, whole, not older         replicas.c  live == replayed
 *
 * Invariants are checked where they can be seen first; the first violation ends the process with status SIM_VIOLATION after one line that starts
 * with its name.
 */
#ifndef TEST_SIM_H
#define TEST_SIM_H

#include "coordinator/group/group.h"
#include "coordinator/node.h"
#include "coordinator/session.h"
#include "coordinator/wire/header.h"

#define SIM_VIOLATION 3
#define CONSUMERS 12
#define GROUPS 4
#define SHARDS 3
#define TOPICS 3
#define PARTS 16 /* of all topics together */
#define CONNS 160
#define TEXT 72
#define ACTIONS 400
#define STORED_SEEDS 1000000 /* from here on the log of all worlds that are not clean is the real one (stored.h) */
#define TICK_SLACK_US 3000 /* a timer is late when it fires later than this behind its millisecond */

/* ---- random numbers: splitmix64 ---- */

struct rng {
	uint64_t s;
};

static inline uint64_t rng_next(struct rng *r)
{
	uint64_t z = r->s += 0x9e3779b97f4a7c15ull;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

static inline uint32_t rng_below(struct rng *r, uint32_t n)
{
	return (uint32_t)((rng_next(r) >> 32) * n >> 32);
}

static inline uint32_t rng_between(struct rng *r, uint32_t lo, uint32_t hi)
{
	return lo + rng_below(r, hi - lo + 1);
}

static inline bool rng_one_in(struct rng *r, uint32_t n)
{
	return rng_below(r, n) == 0;
}

static inline struct rng rng_of(uint64_t a, uint64_t b)
{
	struct rng r = {a * 0xd1342543de82ef95ull + b};
	rng_next(&r);
	return r;
}

/* ---- the plan ---- */

#define ACTION_KINDS(ACTION)                                                \
	ACTION(START, "consumer starts")                                    \
	ACTION(STOP, "consumer closes cleanly")                             \
	ACTION(KILL, "consumer is killed: FIN")                             \
	ACTION(RESET, "consumer is killed: RST")                            \
	ACTION(VANISH, "consumer's host is gone without a word")            \
	ACTION(PAUSE, "consumer is silent for a while")                     \
	ACTION(LOSE, "consumer's connection is lost")                       \
	ACTION(RESUBSCRIBE, "consumer changes its subscription")            \
	ACTION(REJOIN, "consumer joins again without need")                 \
	ACTION(ROGUE_JOIN, "rogue JoinGroup")                               \
	ACTION(ROGUE_SYNC, "rogue SyncGroup")                               \
	ACTION(ROGUE_HEARTBEAT, "rogue Heartbeat")                          \
	ACTION(ROGUE_LEAVE, "rogue LeaveGroup")                             \
	ACTION(ROGUE_COMMIT, "rogue OffsetCommit")                          \
	ACTION(ROGUE_FETCH, "rogue OffsetFetch")                            \
	ACTION(ROGUE_OTHER, "rogue request of another api")                 \
	ACTION(ROGUE_CLOSE, "rogue connection ends")                        \
	ACTION(ADMIN, "an admin tool describes, lists or deletes")           \
	ACTION(GARBAGE, "bytes that are no request, or almost one")         \
	ACTION(LOG_SLOW, "the log is slow for a while")                     \
	ACTION(LOG_FAIL, "the log refuses for a while")                     \
	ACTION(LOG_BREAK, "the log hangs, then fails for good; restart")    \
	ACTION(TOPIC, "a topic goes, or comes back")                        \
	ACTION(NET_SLOW, "the network is slow for a while")                 \
	ACTION(STALL, "the worker does not run for a while")                \
	ACTION(RESTART, "the server crashes and recovers from the log")

enum action_kind {
#define ACTION(name, text) ACT_##name,
	ACTION_KINDS(ACTION)
#undef ACTION
	ACTION_COUNT
};

struct action {
	uint64_t at; /* us */
	enum action_kind kind;
	uint32_t who; /* consumer or group */
	uint64_t random;
};

enum end_kind { END_SILENCE, END_STOP };

struct plan {
	uint64_t seed;
	struct group_settings settings;
	bool clean; /* nobody misbehaves and nothing breaks: stronger checks */
	bool stored; /* the log is the real one, on a simulated disk */
	enum end_kind end;
	unsigned int len;
	struct action actions[ACTIONS];
};

void plan_make(struct plan *plan, uint64_t seed);
void plan_print(const struct plan *plan, const bool *keep);
const char *action_text(enum action_kind kind);

/* ---- connections ---- */

enum wire_kind { WIRE_SYN, WIRE_DATA, WIRE_FIN, WIRE_RST };

struct wire_item {
	uint64_t at;
	enum wire_kind kind;
	uint8_t *p;
	size_t len;
};

/* First in, first out; `at` never falls. */
struct line {
	struct wire_item *items;
	unsigned int first, last, cap;
	uint64_t last_at;
};

#define EXPECT_ANY INT32_MIN
#define EXPECT_PARK (INT32_MIN + 1) /* not answered within the call that delivers it, unless the group is formed by it */

struct expect {
	int32_t code;
	int32_t generation_least; /* a success must be of this generation or a later one */
	int32_t generation_exact; /* -1: any */
	bool immediate;	   /* answered within the call that delivers it */
	bool log_may_fail; /* 0, or what a refusing log is mapped to */
	bool durable;	   /* a success needs what was appended for it to be durable */
	int32_t ends;	   /* parked, and must end with this; 0: not decided */
};

/* A request that was delivered to the service and is not answered yet. */
struct asked {
	int32_t correlation_id;
	int16_t api, version;
	bool garbage;
	uint64_t at, bound;
	uint64_t step;
	int group; /* -1: none of ours */
	char member[TEXT], instance[TEXT];
	bool has_instance;
	int32_t generation;
	struct expect expect;
	uint64_t before, position; /* end of the log when it was delivered, and when that call returned */
	int64_t offsets[PARTS];	/* OffsetCommit: what is committed; -1: not */
	uint32_t gone;		/* bit per topic: did not exist when the request came */
	bool loading;		/* its group's shard was, then */
	uint64_t least[PARTS];	/* OffsetFetch: log positions that must be visible */
};

#define ASKED 128

struct conn {
	struct channel ch;
	struct world *w;
	int owner; /* consumer; -1: rogue */
	bool garbage;
	unsigned int number;
	struct rng rng;
	struct line up, down, rx;
	bool client_open;
	int32_t correlation_id; /* of the client's last request */
	void *session;
	bool held, fin_in, eof, drained, want_close, want_abort, server_closed, aborted;
	uint64_t server_at; /* when the worker's loop looks at it */
	uint64_t dead_at;   /* when keepalive finds out that the client is gone */
	uint32_t addr;
	struct asked asked[ASKED];
	unsigned int asked_first, asked_len;
	struct asked *in_call; /* being delivered and not answered yet */
	struct candidate *new_candidate;
	bool must_abort;
	uint64_t answered_in; /* step of its last answer */
	struct { int32_t correlation_id; int16_t api, version; } sent[ASKED]; /* the client's view */
	unsigned int sent_first, sent_len;
};

struct conn *conn_open(struct world *w, int owner, uint64_t salt);
/* Returns the correlation id; -1: no room, nothing sent. */
int32_t conn_request(struct conn *c, int16_t api, int16_t version, struct bytes client_id, const void *request);
void conn_bytes(struct conn *c, const void *p, size_t len); /* raw frame */
void conn_fin(struct conn *c);	  /* client closes */
void conn_rst(struct conn *c);	  /* client resets */
void conn_vanish(struct conn *c); /* the client is gone, nobody is told */
void conn_half_open(struct conn *c); /* the server loses it, the client is not told */
/* The worker stood still: what arrived meanwhile was received at the end, or got lost and is sent again within `lost_us`. */
void conn_stalled(struct conn *c, uint64_t lost_us);
uint64_t conn_due(const struct conn *c);
void conn_step(struct conn *c);
void conn_server_lost(struct conn *c); /* crash of the server */
void conn_free(struct conn *c);
bool conn_finished(const struct conn *c);

/* ---- the log ---- */

struct disk_entry {
	struct log_entry e;
	unsigned int shard;
};

struct disk_batch {
	uint64_t position, at;
};

struct ledger {
	struct log log;
	struct world *w;
	struct rng rng;
	struct disk_entry *entries;
	uint64_t len, cap, durable;
	struct disk_batch *batches;
	unsigned int batch_first, batch_len, batch_cap;
	uint64_t slow_until, fail_until;
	uint32_t slow_ms;
	int16_t fail_code;
	bool held;	/* nothing becomes durable */
	int16_t broken; /* 0, or the error after which nothing becomes durable any more */
	uint64_t last_at;
	struct stored *stored; /* NULL: there is nothing behind the model */
};

void disk_init(struct ledger *d, struct world *w);
void disk_fini(struct ledger *d);
void disk_crash(struct ledger *d, struct rng *r);
void disk_break(struct ledger *d);
void disk_survey(struct ledger *d, uint64_t end);
bool disk_refuses(const struct ledger *d);
/* The same, or it may at any time: a real log refuses what a slow disk does not keep up with. */
bool disk_may_refuse(const struct ledger *d);
/* Which records a log whose groups were compacted would still hold, malloc: the last one of each key, tombstones of parts only if asked for. */
bool *disk_compacted(const struct ledger *d, bool tombstones);
bool *disk_newest(const struct ledger *d, uint64_t end);
bool *disk_left(const struct ledger *d);

/* ---- consumers ---- */

enum consumer_state { OFF, CONNECTING, FINDING, JOINING, COMPUTING, SYNCING, FETCHING, STABLE, BACKOFF, FATAL };
enum assignor { RANGE, ROUNDROBIN, STICKY, COOPERATIVE, ASSIGNORS };

struct consumer {
	struct world *w;
	int index, group;
	bool used;
	char client_id[24], instance[24];
	bool is_static, impatient, leaves, commits_before_join, beats_while_joining;
	int32_t session_ms, rebalance_ms, beat_ms, commit_ms;
	int16_t v_join, v_sync, v_beat, v_leave, v_commit, v_fetch, v_find;
	enum assignor assignors[ASSIGNORS];
	unsigned int assignors_len;
	uint32_t topics; /* bit per topic */
	/* life */
	struct rng rng;
	uint64_t conns;
	enum consumer_state state;
	struct conn *conn;
	char member[TEXT];
	int32_t generation;
	char protocol[32];
	bool leads, skip;
	uint32_t owned;	   /* partitions */
	bool owned_marked; /* the assignment carries our leader's mark */
	uint64_t mark;
	uint64_t life; /* of its group: generations begin anew when it was deleted, or when a crash lost some */
	uint64_t wake, beat_at, commit_at, paused_until;
	struct { int32_t correlation_id; int16_t api, version; uint64_t until; int32_t generation; } open[4];
	unsigned int open_len;
	struct {
		char id[TEXT];
		uint32_t parts;
	} computed[64];
	unsigned int computed_len;
};

void consumer_act(struct consumer *c, const struct action *a);
void consumer_wake(struct consumer *c);
void consumer_answer(struct consumer *c, struct conn *conn, int32_t correlation_id, int16_t api, int16_t version, struct bytes body);
void consumer_lost(struct consumer *c, struct conn *conn);
uint64_t consumer_due(const struct consumer *c);

struct assign_member {
	char id[TEXT];
	uint32_t topics, owned, got;
};
const char *assignor_name(enum assignor a);
void assign(enum assignor a, struct assign_member *members, unsigned int n);
uint32_t topic_parts(unsigned int topic); /* bit per partition */
unsigned int part_topic(unsigned int part);
int32_t part_index(unsigned int part);
extern const char *const topic_names[TOPICS];
extern const int32_t topic_sizes[TOPICS];

/* ---- misbehaving clients ---- */

void rogue_act(struct world *w, const struct action *a);

/* ---- checks ---- */

struct candidate {
	uint64_t position; /* of its record */
	unsigned int len;
	struct {
		char id[TEXT];
		struct bytes bytes; /* malloc */
	} list[64];
};

/* What is known of one generation. */
struct epoch {
	int32_t generation; /* 0: unused */
	char leader[TEXT], protocol[32];
	struct candidate *candidates[4];
	unsigned int candidates_len;
	uint32_t mask; /* candidates that agree with all answers so far */
};

#define EPOCHS 256

struct shadow {
	uint64_t tag;
	char id[TEXT], instance[TEXT];
	bool is_static, is_new, unnamed, parked_join, parked_sync, unsynced;
	bool had_joined; /* while its group has been closing the join phase */
	int32_t session_ms;
	uint64_t since, life_until; /* not to be expired before */
	bool seen, noted;
};

struct shadows {
	struct group *group;
	enum group_state state;
	int32_t generation, generation_before;
	uint32_t pending_before;
	int64_t timeout_before; /* smallest rebalance timeout of its members after the last step */
	uint64_t preparing_since, preparing_until, completing_since;
	uint64_t preparing_before; /* preparing_until after the last step: one step can end a phase and begin the next */
	int64_t timeout_at_completing;
	bool initial;
	bool answering; /* joins, after the last step: sessions begin with the answer */
	bool removing;	/* after the last step: its phase is over for whoever did not join or sync */
	unsigned int len;
	struct shadow list[128];
};

/* What this step is about, for the audit of removals. */
struct step {
	int group;
	int16_t api;
	int code;	 /* of the answer to the request that was delivered; EXPECT_ANY: none yet */
	bool all_left;	 /* LeaveGroup: everybody named in `named` */
	bool closes;	 /* a connection ended */
	char named[32][TEXT];
	unsigned int named_len;
};

/* What follows from an action some time after it. */
enum later_kind { LATER_BREAK, LATER_REPAIR, LATER_TOPIC, LATER_KINDS };

struct world {
	struct plan plan;
	const bool *keep;
	unsigned int next_action;
	struct now now;
	struct stats stats;
	struct image *image;	  /* as it is now */
	struct image *all_topics; /* what clients know, and names for ids */
	uint32_t topics_gone;	  /* bit per topic */
	uint64_t topic_gone_at[TOPICS]; /* worker time; 0: not, or its offsets may stay */
	struct node *node;
	struct stats *loading; /* counters of shards that are loading */
	uint64_t ready_at[SHARDS];
	struct ledger disk;
	struct conn *conns[CONNS];
	unsigned int conns_len, conns_made;
	struct consumer consumers[CONSUMERS];
	struct conn *rogues[4];
	struct rng rogue_rng;
	char stale[16][TEXT];
	unsigned int stale_next;
	char group_ids[GROUPS][24];
	struct bytes group_id[GROUPS];
	char probes[SHARDS][16];
	int64_t largest_timeout_ms[GROUPS + 1]; /* rebalance timeout ever asked for; the last: of any other group */
	uint64_t tick_at;
	uint32_t idle_rounds;
	bool stalled; /* the worker stands still */
	uint64_t stall_began, stalled_until; /* the last time it did */
	uint64_t lost_us;    /* what worker time is behind `now` */
	uint64_t held_until; /* worker time before which nobody may be declared gone */
	struct {
		uint64_t at; /* TIME_NEVER: unused */
		unsigned int who;
	} later[LATER_KINDS];
	uint64_t net_slow_until;
	uint32_t net_slow_ms;
	bool rush; /* the network takes no time */
	bool draining, stopping;
	uint64_t steps;	 /* with the service's ticks */
	uint64_t events; /* without */
	uint64_t requests, answers, restarts;
	uint64_t hash;
	struct step step;
	struct epoch epochs[GROUPS][EPOCHS];
	struct shadows shadows[GROUPS];
	struct shard *replicas[SHARDS];
	struct stats replica_stats;
	uint64_t replayed;
	uint64_t compared[SHARDS]; /* `replayed` when its offsets were compared last */
	uint64_t in_members; /* parked requests that members point to; scratch of audit.c */
	int64_t next_offset;
	int8_t *offset_epoch;	   /* leader epoch that went with it */
	uint64_t *offset_position; /* log position of the commit with this offset value */
	size_t offset_cap;
	int64_t acked[GROUPS][PARTS]; /* offset last answered as stored */
	uint64_t appended[GROUPS][PARTS];   /* log position of the last record of this partition */
	uint64_t tombstones[GROUPS][PARTS]; /* log position of the last one; 0: none */
	unsigned int group_tombstones[GROUPS]; /* appended */
	unsigned int group_removals[GROUPS];   /* seen; not more */
	uint64_t stable_assignments;
	bool trace;
	uint64_t cut_op; /* the power is cut in this operation of the disk; 0: in none */
	uint64_t cleaned; /* runs of the log's cleaner */
	uint64_t operations; /* of the disk, since the last start that a crash came before */
	_Alignas(16) uint8_t arena_block[1 << 18];
	struct arena arena;
};

void world_run(struct world *w, uint64_t seed, const bool *keep, bool trace);
/* The worker's time (muster/time.h): all that the service is told. Clients and network live by w->now. */
static inline struct now served(const struct world *w)
{
	return (struct now){(w->stalled ? w->stall_began : w->now.us) - w->lost_us, w->now.wall_ms};
}

struct image *world_image(uint32_t topics_gone);
struct node *world_node(struct world *w);
void world_set_clock(struct world *w, uint64_t us);
/* ambush.c: after a round of the worker that left work undone, something may happen before the next */
#define AMBUSH_US 50 /* from the ambush to the next round */
bool world_ambush(struct world *w);
/* trouble.c */
void world_act(struct world *w, const struct action *a);
void world_later(struct world *w, enum later_kind kind);
void world_resume(struct world *w);
bool world_loading(struct world *w);
struct shard *world_shard(struct world *w, int group);
struct shard *world_shard_number(struct world *w, unsigned int number);
int world_group(const struct world *w, struct bytes id);
void fail(struct world *w, const char *name, const char *format, ...) PRINTF_LIKE(3, 4) __attribute__((noreturn));
void trace(struct world *w, const char *format, ...) PRINTF_LIKE(2, 3);
void text_of(char out[TEXT], struct bytes b);

struct expect expect_request(struct world *w, const struct conn *c, const struct asked *a, const void *in);

int part_of(struct bytes topic, int32_t index);
void watch_delivered(struct conn *c, const uint8_t *p, size_t len);
void watch_returned(struct conn *c, enum service_verdict verdict);
void watch_answer(struct conn *c, const uint8_t *p, size_t len);
void watch_closed(struct conn *c);
void watch_bounds(struct world *w);
void watch_stalled(struct world *w, uint64_t held_us);
void watch_restart(struct world *w);
void watch_group_gone(struct world *w, int group);
void watch_fini(struct world *w);

void audit_step(struct world *w);
void audit_ours(struct world *w, int number);
void audit_deep(struct world *w);
void audit_restart(struct world *w);
void audit_replay_again(struct world *w, const bool *keep);
void audit_recovered(struct world *w, int group);
void audit_topics(struct world *w);
void audit_end(struct world *w);
void audit_fini(struct world *w);
int32_t commit_epoch(struct world *w, int64_t offset, int16_t version);
struct bytes commit_metadata(int64_t offset);
void audit_life(struct world *w, int group, const char *member);

#define REQUIRE(w, name, cond, ...)                         \
	do {                                                \
		if (unlikely(!(cond)))                      \
			fail((w), (name), __VA_ARGS__);     \
	} while (0)

#endif
