/*
 * shard.h - one partition of __consumer_offsets: its groups, offsets, purgatory, timers and its place in the log.
 *
 * Only the worker that owns it touches it. Requests come in as decoded structs (wire/messages.h) with the `struct request`
 * that will be answered; each function either answers at once or parks. Records that a request produces are appended to the log, applied by
 * the one replay function when durable, and only then is the request answered.
 */
#ifndef MUSTER_SHARD_H
#define MUSTER_SHARD_H

#include "muster/stats.h"
#include "muster/time.h"

#include "coordinator/group_rules.h"
#include "coordinator/image.h"
#include "coordinator/log/log.h"
#include "coordinator/request.h"
#include "coordinator/wire/messages.h"

/* Settings of the engine, named as in config.def (dots become underscores). Milliseconds unless said otherwise. */
struct group_settings {
	int32_t group_min_session_timeout_ms;
	int32_t group_max_session_timeout_ms;
	int32_t group_initial_rebalance_delay_ms;
	int32_t group_max_size;
	int32_t offset_metadata_max_bytes;
	int32_t journal_events; /* rebalance events kept per group */
	int32_t journal_removed_members; /* kept per shard */
	int32_t journal_removed_minutes; /* and shown for so long */
	int32_t offsets_retention_minutes;
	int64_t offsets_retention_check_interval_ms; /* 0: offsets never expire */
	int32_t offsets_commit_timeout_ms; /* until a write must be durable; 0: for ever */
	int32_t group_join_window_ms;	   /* 0: none */
	int32_t group_join_window_max_ms;
	int32_t group_max_pending_members; /* 0: no bound */
	const struct group_rules *rules; /* groups with settings of their own; NULL: none. Whoever has a group at hand reads group->settings. */
	int32_t group_record_max_bytes; /* a larger group is stored in parts; 0: 1,000,000 */
	int32_t group_slice;		/* units of work on large groups in one round of a shard (group/slice.c); 0: what is good for latency */
};

struct shard;

/*
 * Who calls what: answers go out through rq->ops, which must not call the shard again from inside. A shard outlives the sessions whose requests it
 * holds and whose memos point into it.
 */

/* `log`, `settings`, `stats` and *image outlive the shard. `random` keys hashes and seeds member ids. NULL: no memory. */
struct shard *shard_new(unsigned int number, struct log *log, const struct group_settings *settings, struct stats *stats,
			const uint64_t random[2], struct now now);
void shard_free(struct shard *shard);

/*
 * Fires due timers (at most `budget`) and completes what became durable. Returns the microsecond of the next wish, as service_ops.tick. While records are
 * on their way (shard_writes) it must be called, too, when more of the log has become durable or the log has failed.
 */
uint64_t shard_tick(struct shard *shard, unsigned int budget, struct now now);
bool shard_writes(const struct shard *shard);

/*
 * The worker stood still for `lost_us`, which now.us does not count (muster/time.h). Nobody is declared dead (session, handed-out id, join and sync
 * phase) until everybody has had the time to be heard. A peer whose segment was lost in the full queue of a host that did not read sends it again
 * with growing pauses: the next one begins no later than the standstill was long, RFC 6298's doubling being so, plus the second of a first SYN; and
 * no pause is longer than two minutes. Returns until when, microseconds.
 */
uint64_t shard_stalled(struct shard *shard, uint64_t lost_us, struct now now);
/* Nobody is declared dead before `until`: of a shard that is handed over after the worker stood still. */
void shard_hold(struct shard *shard, uint64_t until);

/* Requests of the group protocol. group-level validation (empty ids, session timeout range) happens inside. */
void shard_join_group(struct shard *shard, struct request *rq, const struct join_group_request *in, struct now now);
void shard_sync_group(struct shard *shard, struct request *rq, const struct sync_group_request *in, struct now now);
/*
 * A heartbeat without knowing the shard, through the connection's memo (it may be NULL): no hash, no table. Returns the error code to answer;
 * SHARD_MEMBER_UNKNOWN: the memo does not fit and nothing was done; ask the shard.
 */
#define SHARD_MEMBER_UNKNOWN (INT16_MIN - 1)
int shard_heartbeat_known(const struct member_memo *memo, const struct heartbeat_request *in, struct now now);
/* The same, answered. False: the memo does not fit. */
bool shard_heartbeat_memo(struct request *rq, const struct heartbeat_request *in, struct now now);
void shard_heartbeat(struct shard *shard, struct request *rq, const struct heartbeat_request *in, struct now now);
void shard_leave_group(struct shard *shard, struct request *rq, const struct leave_group_request *in, struct now now);

/*
 * Offsets. The api layer has resolved topic ids to names and checked partitions against the image: `screened` is a response in request order whose
 * partitions already carry 3 or 100 where they do not exist, 0 where the shard has to decide.
 * shard_offset_commit fills the rest in and answers `rq` with it when durable. It copies what it keeps. Topic names are taken from `screened`, or from
 * `in` where that has none.
 */
void shard_offset_commit(struct shard *shard, struct request *rq, const struct offset_commit_request *in,
			 const struct offset_commit_response *screened, struct now now);

/* One committed offset; `metadata` is valid until the shard changes. */
struct offset_value {
	int64_t offset;
	int32_t leader_epoch;
	struct bytes metadata;
};

/* False: nothing committed for this partition. Durable values only. */
bool shard_offset_get(struct shard *shard, struct bytes group_id, struct bytes topic, int32_t partition, struct offset_value *out);
/* Calls `visit` for each committed offset of the group, topic by topic. */
void shard_offset_each(struct shard *shard, struct bytes group_id,
		       void (*visit)(void *arg, struct bytes topic, int32_t partition, const struct offset_value *value), void *arg);
/*
 * Runs `then` once: with 0 when everything appended to this shard so far is durable and applied (at once if it is), so that reads see earlier
 * writes; or, when the log broke before that or offsets.commit.timeout.ms is over, with the error for the client. The callback object belongs to the caller and must stay until it ran
 * or was cancelled. `then` must not call the shard.
 */
struct shard_barrier {
	struct shard_barrier *next;
	uint64_t position; /* log position waited for */
	uint64_t deadline_us; /* then it is over, with an error */
	void (*then)(struct shard_barrier *barrier, int16_t error, struct now now);
};
void shard_barrier(struct shard *shard, struct shard_barrier *barrier, struct now now);
/* The same for what was appended up to a position of the log, which all shards of a worker share. */
void shard_barrier_at(struct shard *shard, struct shard_barrier *barrier, uint64_t position, struct now now);
/* The position behind the last write of this shard; what a broken log lost does not count. */
uint64_t shard_appended(const struct shard *shard);
void shard_barrier_cancel(struct shard *shard, struct shard_barrier *barrier);

unsigned int shard_number(const struct shard *shard);

/*
 * Recovery: every record of the log in order through shard_replay, then shard_loaded once, which starts the members' sessions in full. The same
 * shard_replay applies what live requests have made durable. False: the record is unreadable and was skipped (counted).
 *
 * Another thread may do that while the worker serves: between shard_load_begin and shard_load_end, both called by the worker, the shard belongs
 * to that thread, except for the calls that answer requests. These look at nothing but the flag and answer as group-protocol 1.1 says for a partition
 * that is loading: heartbeats 0, SyncGroup 27, the others 14. `own` counts meanwhile and is added to the shard's own counters at the end.
 */
void shard_load_begin(struct shard *shard, struct stats *own);
void shard_load_end(struct shard *shard);
bool shard_is_loading(const struct shard *shard);
bool shard_replay(struct shard *shard, const struct log_entry *entry, struct now now);
void shard_loaded(struct shard *shard, struct now now);

/* For the log (struct log_owner): does the record still count, and how far has the shard come. */
enum log_verdict shard_judge(struct shard *shard, const struct log_entry *entry);
int64_t shard_applied(const struct shard *shard);

/*
 * Topics went and others came: offsets of those that are gone are removed in the next rounds. Names are copied. False: no memory, the offsets stay.
 */
bool shard_topics_changed(struct shard *shard, const struct bytes *gone, size_t gone_len, const struct bytes *made, size_t made_len, struct now now);

/* The shard is served elsewhere or not any more: parked joins and syncs are answered with 16, later requests with 15. */
void shard_stop(struct shard *shard, struct now now);

/* ---- rebalance journal (group/journal.h) ---- */

struct journal_event;
/* One readable line for each event as it happens; NULL: nobody listens. */
void shard_set_journal(struct shard *shard, void (*line)(void *arg, const char *line), void *arg);
/* The last rebalances of a group, oldest first; journal_format gives their text. Returns false when there is no such group. */
bool shard_journal_each(struct shard *shard, struct bytes group_id, void (*visit)(void *arg, const struct journal_event *event), void *arg);

/* ---- administration (group/describe.c, group/delete.c) ---- */

struct shard_group {
	struct bytes id;
	const char *state; /* Kafka's name */
	struct bytes protocol_type, protocol; /* may be null */
	struct bytes leader;		      /* may be null */
	int32_t generation;
	uint32_t members, pending;
	bool stable;
};
/* Every group, in no particular order; none while the shard is loading. `visit` must not call the shard. */
void shard_group_each(struct shard *shard, void (*visit)(void *arg, const struct shard_group *group), void *arg);
/*
 * The same bit by bit: the groups of bucket *bucket, which moves on. False: it was the last one. Groups that are made meanwhile may be left out, and one
 * that the growing table moves may come twice.
 */
bool shard_group_walk(struct shard *shard, uint32_t *bucket, void (*visit)(void *arg, const struct shard_group *group), void *arg);
/* One group: 0, or 69 when there is none, 14 while the shard is loading, 15 when it has stopped. Slices are valid until the shard changes. */
int16_t shard_group_get(struct shard *shard, struct bytes group_id, struct shard_group *out);

struct shard_member {
	struct bytes id, instance_id; /* instance_id null: dynamic */
	struct bytes client_id, host;
	struct bytes metadata; /* empty unless the group is Stable */
	struct bytes assignment;
};
/* The members of a group; none when there is no such group. `visit` must not call the shard. */
void shard_member_each(struct shard *shard, struct bytes group_id, void (*visit)(void *arg, const struct shard_member *member), void *arg);

/*
 * The key and the value of the group as one record of Kafka's own format (GroupMetadata version 3), whatever form the log holds it in (group/record.h),
 * for tools that know only that. Writers without room count what is needed. False: there is no such group.
 */
bool shard_group_export(struct shard *shard, struct bytes group_id, struct writer *key, struct writer *value);

/*
 * Appends the tombstones of an Empty group and its offsets. 0, or 24 (null id), 14 (loading), 69 (unknown), 68 (has members), or what the log said.
 * Whoever answers waits until the shard is durable up to here.
 */
int16_t shard_delete_group(struct shard *shard, struct bytes group_id, struct now now);
/*
 * Appends the tombstones of offsets. `codes` has one entry per partition in request order; those that are not 0 are left alone, the others become 0 or 86.
 * The result is 0, or the error of the whole request: 24 (empty id), 14, 69, 68, or what the log said. Waiting as above.
 */
int16_t shard_offset_delete(struct shard *shard, const struct offset_delete_request *in, int16_t *codes, struct now now);

#endif
