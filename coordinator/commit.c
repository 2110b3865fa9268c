/*
 * commit.c - OffsetCommit: who may commit, what of it is stored, and the answer when it is durable (group-protocol 1.11).
 *
 * All valid partitions of a request are one atomic batch. Who commits is alive: its session starts anew.
 */
#include "coordinator/group/checks.h"

/* One request, while it is looked at. */
struct commit {
	struct shard *shard;
	const struct request *rq;
	const struct offset_commit_request *in;
	const struct offset_commit_response *screened;
	int16_t error; /* of every partition that passed the screening */
};

/* Length as Java counts it, in UTF-16 units. */
static int64_t commit_utf16_len(struct bytes b)
{
	int64_t n = 0;
	for (int32_t i = 0; i < b.len; i++)
		n += ((b.p[i] & 0xc0) != 0x80) + (b.p[i] >= 0xf0);
	return n;
}

/* ---- checks of who commits, for the partitions that passed the screening ---- */

/* Other than members, simple groups may have the empty id. */
static int16_t commit_group_id(struct check_call *c)
{
	return bytes_is_null(c->group_id) || c->group_id.len > RECORD_STRING_MAX ? ERROR_INVALID_GROUP_ID : 0;
}

static int16_t commit_known(struct check_call *c)
{
	c->group = group_find(c->shard, c->group_id);
	if (c->group != NULL)
		return 0;
	if (c->shard->stopped)
		return ERROR_COORDINATOR_NOT_AVAILABLE;
	return c->generation < 0 ? CHECKS_ENOUGH : c->rq->version >= 9 ? ERROR_GROUP_ID_NOT_FOUND : ERROR_ILLEGAL_GENERATION;
}

static int16_t commit_simple(struct check_call *c)
{
	return c->generation < 0 && c->group->state == GROUP_EMPTY ? CHECKS_ENOUGH : 0;
}

static int16_t commit_named(struct check_call *c)
{
	bool nobody = c->generation < 0 && bytes_is_empty(c->member_id) && bytes_is_null(c->instance_id);
	return nobody ? ERROR_UNKNOWN_MEMBER_ID : 0;
}

static int16_t commit_assigned(struct check_call *c)
{
	return c->group->state == GROUP_COMPLETING ? ERROR_REBALANCE_IN_PROGRESS : 0;
}

static const struct check commit_order[] = {
	{"group id is not null", "1.1", commit_group_id},
	{"shard is loaded", "1.1", check_loaded},
	{"group is known, or is made", "1.11 rows 2 to 4", commit_known},
	{"shard is served here", "1.11 row 5", check_served},
	{"without a generation to an empty group", "1.11 row 6, KAFKA-14201", commit_simple},
	{"member is named", "1.11 row 9", commit_named},
	{"member is known and not fenced", "1.11 row 7, KIP-345", check_member},
	{"generation is the group's", "1.11 row 8", check_generation},
	{"assignment is there", "1.11 row 10", commit_assigned},
};
const struct checks commit_checks = {"OffsetCommit", commit_order, ARRAY_LEN(commit_order)};

static int16_t commit_verdict(const struct commit *c, int32_t topic, int32_t partition)
{
	int16_t screened = c->screened->topics[topic].partitions[partition].error_code;
	if (screened != 0 || c->error != 0)
		return screened != 0 ? screened : c->error;
	struct bytes metadata = c->in->topics[topic].partitions[partition].committed_metadata;
	if (metadata.len > RECORD_STRING_MAX || commit_utf16_len(metadata) > c->shard->settings->offset_metadata_max_bytes)
		return ERROR_OFFSET_METADATA_TOO_LARGE;
	return 0;
}

static struct bytes commit_topic(const struct commit *c, int32_t topic)
{
	struct bytes name = c->screened->topics[topic].name;
	return bytes_is_empty(name) ? c->in->topics[topic].name : name;
}

/* ---- the answer ---- */

static size_t commit_answer_size(const struct commit *c)
{
	size_t size = 16 + (size_t)c->screened->topics_len * sizeof(struct offset_commit_response_topic);
	for (int32_t t = 0; t < c->screened->topics_len; t++) {
		const struct offset_commit_response_topic *topic = &c->screened->topics[t];
		size += 32 + (size_t)topic->partitions_len * sizeof(*topic->partitions) + (topic->name.len > 0 ? (size_t)topic->name.len : 0);
	}
	return size;
}

/* A copy of the screened response with the final codes. The arena has commit_answer_size. */
static void commit_answer_fill(const struct commit *c, struct offset_commit_response *r, struct arena *arena)
{
	int32_t n = c->screened->topics_len;
	struct offset_commit_response_topic *topics = arena_alloc(arena, (size_t)n, sizeof(*topics));
	CHECK(topics != NULL);
	for (int32_t t = 0; t < n; t++) {
		const struct offset_commit_response_topic *from = &c->screened->topics[t];
		struct offset_commit_response_partition *parts = arena_alloc(arena, (size_t)from->partitions_len, sizeof(*parts));
		size_t name_len = from->name.len > 0 ? (size_t)from->name.len : 0;
		uint8_t *name = arena_alloc(arena, name_len, 1);
		CHECK(parts != NULL && name != NULL);
		if (name_len > 0)
			memcpy(name, from->name.p, name_len);
		topics[t] = *from;
		topics[t].name = from->name.len < 0 ? BYTES_NULL : bytes_of(name, name_len);
		topics[t].partitions = parts;
		for (int32_t p = 0; p < from->partitions_len; p++) {
			parts[p] = from->partitions[p];
			parts[p].error_code = commit_verdict(c, t, p);
		}
	}
	*r = *c->screened;
	r->topics = topics;
}

static void commit_answer(const struct commit *c, struct request *rq, struct now now)
{
	struct offset_commit_response r;
	size_t size = commit_answer_size(c);
	void *block = malloc(size);
	if (block == NULL) {
		rq->ops->refuse(rq, now);
		return;
	}
	struct arena arena = arena_of(block, size);
	commit_answer_fill(c, &r, &arena);
	request_answer(rq, &r, now);
	free(block);
}

static void commit_written(struct shard *shard, struct write *w, struct now now)
{
	shard->stats->offset_commits += w->len;
	if (w->rq != NULL)
		request_answer(w->rq, &w->response, now);
}

/* The log broke or is late: the partitions that would have been acknowledged get the error; the others have theirs. */
static void commit_failed(struct shard *shard, struct write *w, int16_t error, struct now now)
{
	struct commit c = {shard, w->rq, NULL, &w->response, error};
	if (w->rq != NULL)
		commit_answer(&c, w->rq, now);
}

/* ---- the records ---- */

static struct record_offset commit_value(const struct commit *c, const struct offset_commit_request_partition *p, struct now now)
{
	int64_t retention = c->rq->version >= 2 && c->rq->version <= 4 ? c->in->retention_time_ms : -1;
	struct record_offset v = {
		.offset = p->committed_offset,
		.leader_epoch = p->committed_leader_epoch,
		.metadata = bytes_is_null(p->committed_metadata) ? BYTES_EMPTY : p->committed_metadata,
		.commit_ms = c->rq->version == 1 && p->commit_timestamp != -1 ? p->commit_timestamp : now.wall_ms,
		.expire_ms = RECORD_NO_EXPIRY,
	};
	if (retention >= 0)
		v.expire_ms = retention > INT64_MAX - now.wall_ms ? INT64_MAX : now.wall_ms + retention;
	return v;
}

/* Calls `put` for every partition that is valid. */
static void commit_each(const struct commit *c, void (*put)(void *arg, struct bytes topic, int32_t partition, const struct record_offset *v),
			void *arg, struct now now)
{
	for (int32_t t = 0; t < c->in->topics_len; t++) {
		for (int32_t i = 0; i < c->in->topics[t].partitions_len; i++) {
			const struct offset_commit_request_partition *p = &c->in->topics[t].partitions[i];
			if (commit_verdict(c, t, i) != 0)
				continue;
			struct record_offset v = commit_value(c, p, now);
			put(arg, commit_topic(c, t), p->partition_index, &v);
		}
	}
}

struct commit_size {
	struct bytes group_id;
	struct writer bytes;
	unsigned int records;
};

static void commit_measure(void *arg, struct bytes topic, int32_t partition, const struct record_offset *v)
{
	struct commit_size *size = arg;
	size->records++;
	record_offset_key(&size->bytes, size->group_id, topic, partition);
	record_offset_value(&size->bytes, v);
}

struct commit_out {
	struct bytes group_id;
	struct write *w;
};

static void commit_put(void *arg, struct bytes topic, int32_t partition, const struct record_offset *v)
{
	const struct commit_out *out = arg;
	write_key(out->w);
	record_offset_key(&out->w->bytes, out->group_id, topic, partition);
	write_value(out->w);
	record_offset_value(&out->w->bytes, v);
	write_end(out->w, false);
}

/* Returns 0 when the request is parked, else the error of the partitions that were valid. */
static int16_t commit_write(struct commit *c, struct request *rq, const struct commit_size *size, struct now now)
{
	struct write *w = write_new(size->records, size->bytes.need, commit_answer_size(c));
	if (w == NULL)
		return ERROR_COORDINATOR_NOT_AVAILABLE;
	struct commit_out out = {size->group_id, w};
	commit_each(c, commit_put, &out, now);
	commit_answer_fill(c, &w->response, &w->arena);
	w->done = commit_written;
	w->failed = w->late = commit_failed;
	int16_t error = write_submit(c->shard, w, now);
	if (error == 0)
		write_park(w, rq);
	return error;
}

static int64_t commit_survivors(const struct offset_commit_response *screened)
{
	int64_t n = 0;
	for (int32_t t = 0; t < screened->topics_len; t++)
		for (int32_t p = 0; p < screened->topics[t].partitions_len; p++)
			n += screened->topics[t].partitions[p].error_code == 0;
	return n;
}

void shard_offset_commit(struct shard *shard, struct request *rq, const struct offset_commit_request *in,
			 const struct offset_commit_response *screened, struct now now)
{
	struct commit c = {shard, rq, in, screened, 0};
	struct commit_size size = {in->group_id, writer_of(NULL, 0), 0};
	struct check_call call = {shard, rq, in, in->group_id, in->member_id, in->group_instance_id, in->generation_id_or_member_epoch, now};

	CHECK(in->topics_len == screened->topics_len);
	for (int32_t t = 0; t < in->topics_len; t++)
		CHECK(in->topics[t].partitions_len == screened->topics[t].partitions_len);
	if (commit_survivors(screened) == 0) { /* nothing to ask the group about: even a fenced member is told no more than that */
		commit_answer(&c, rq, now);
		return;
	}
	c.error = checks_run(&commit_checks, commit_checks.len, &call);
	if (c.error == 0) {
		if (call.member != NULL)
			member_touch(call.member, now);
		commit_each(&c, commit_measure, &size, now);
		if (size.records > 0)
			c.error = commit_write(&c, rq, &size, now);
		if (size.records > 0 && c.error == 0)
			return;
	}
	commit_answer(&c, rq, now);
}
