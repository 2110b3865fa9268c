/*
 * fake_shard.c - see fake_shard.h.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "coordinator/wire/errors.h"
#include "fake_shard.h"

struct fake fake;

struct shard {
	unsigned int number;
};

struct shard *shard_new(unsigned int number, struct log *log, const struct group_settings *settings, struct stats *stats,
			const uint64_t random[2], struct now now)
{
	struct shard *shard = calloc(1, sizeof(*shard));
	shard->number = number;
	return shard;
}

void shard_free(struct shard *shard)
{
	free(shard);
}

uint64_t shard_tick(struct shard *shard, unsigned int budget, struct now now)
{
	fake.ticks++;
	return TIME_NEVER;
}

void shard_hold(struct shard *shard, uint64_t until)
{
}

uint64_t shard_stalled(struct shard *shard, uint64_t lost_us, struct now now)
{
	return now.us;
}

static void fake_drop(struct request *rq, struct now now)
{
	fake.dropped++;
	struct request **slot = rq->holder;
	cr_assert_eq(*slot, rq, "a request dropped that is not parked");
	*slot = NULL;
}

static void fake_park(struct request *rq, enum request_wait wait)
{
	cr_assert(fake.parked_len < FAKE_PARKED);
	struct request **slot = &fake.parked[fake.parked_len++];
	*slot = rq;
	request_park(rq, wait, wait == REQUEST_WAIT_GROUP ? fake_drop : NULL, slot);
}

void fake_answer(unsigned int i, int16_t error, struct now now)
{
	struct request *rq = fake.parked[i];
	cr_assert_not_null(rq);
	fake.parked[i] = NULL;
	if (rq->api_key == api_key_join_group) {
		struct join_group_response out;
		join_group_response_init(&out);
		out.error_code = error;
		out.generation_id = 7;
		out.protocol_name = BYTES_LITERAL("range");
		request_answer(rq, &out, now);
	} else if (rq->api_key == api_key_sync_group) {
		struct sync_group_response out;
		sync_group_response_init(&out);
		out.error_code = error;
		request_answer(rq, &out, now);
	} else {
		struct offset_commit_response_partition partition = {0, error};
		struct offset_commit_response_topic topic = {BYTES_LITERAL("alpha"), UUID_ZERO, &partition, 1};
		struct offset_commit_response out;
		offset_commit_response_init(&out);
		out.topics = &topic;
		out.topics_len = 1;
		request_answer(rq, &out, now);
	}
}

void shard_join_group(struct shard *shard, struct request *rq, const struct join_group_request *in, struct now now)
{
	fake_park(rq, REQUEST_WAIT_GROUP);
}

void shard_sync_group(struct shard *shard, struct request *rq, const struct sync_group_request *in, struct now now)
{
	fake_park(rq, REQUEST_WAIT_GROUP);
}

int shard_heartbeat_known(const struct member_memo *memo, const struct heartbeat_request *in, struct now now)
{
	return SHARD_MEMBER_UNKNOWN;
}

bool shard_heartbeat_memo(struct request *rq, const struct heartbeat_request *in, struct now now)
{
	return false; /* the fake keeps no memos */
}

void shard_heartbeat(struct shard *shard, struct request *rq, const struct heartbeat_request *in, struct now now)
{
	fake.heartbeats++;
	struct heartbeat_response out;
	heartbeat_response_init(&out);
	out.error_code = (int16_t)in->generation_id; /* tells answers apart */
	request_answer(rq, &out, now);
}

void shard_leave_group(struct shard *shard, struct request *rq, const struct leave_group_request *in, struct now now)
{
	fake.leaves++;
	struct leave_group_response out;
	leave_group_response_init(&out);
	request_answer(rq, &out, now);
}

void shard_offset_commit(struct shard *shard, struct request *rq, const struct offset_commit_request *in,
			 const struct offset_commit_response *screened, struct now now)
{
	fake.commit_left = 0;
	cr_assert_eq(in->topics_len, screened->topics_len);
	for (int32_t t = 0; t < in->topics_len; t++) {
		cr_assert_eq(in->topics[t].partitions_len, screened->topics[t].partitions_len);
		for (int32_t p = 0; p < in->topics[t].partitions_len; p++) {
			if (screened->topics[t].partitions[p].error_code != 0)
				continue;
			fake.commit_left++;
			fake.commit_offset = in->topics[t].partitions[p].committed_offset;
			snprintf(fake.commit_topic, sizeof(fake.commit_topic), "%.*s", in->topics[t].name.len,
				 (const char *)in->topics[t].name.p);
		}
	}
	fake_park(rq, REQUEST_WAIT_DURABLE);
}

void fake_offset(const char *group, const char *topic, int32_t partition, int64_t offset, const char *metadata)
{
	fake.offsets[fake.offsets_len].group = bytes_str(group);
	fake.offsets[fake.offsets_len].topic = bytes_str(topic);
	fake.offsets[fake.offsets_len].partition = partition;
	fake.offsets[fake.offsets_len++].value = (struct offset_value){offset, 3, bytes_str(metadata)};
}

bool shard_offset_get(struct shard *shard, struct bytes group_id, struct bytes topic, int32_t partition, struct offset_value *out)
{
	for (unsigned int i = 0; i < fake.offsets_len; i++) {
		if (bytes_equal(fake.offsets[i].group, group_id) && bytes_equal(fake.offsets[i].topic, topic) &&
		    fake.offsets[i].partition == partition) {
			*out = fake.offsets[i].value;
			return true;
		}
	}
	return false;
}

void shard_offset_each(struct shard *shard, struct bytes group_id,
		       void (*visit)(void *arg, struct bytes topic, int32_t partition, const struct offset_value *value), void *arg)
{
	for (unsigned int i = 0; i < fake.offsets_len; i++)
		if (bytes_equal(fake.offsets[i].group, group_id))
			visit(arg, fake.offsets[i].topic, fake.offsets[i].partition, &fake.offsets[i].value);
}

void shard_barrier(struct shard *shard, struct shard_barrier *barrier, struct now now)
{
	if (fake.durable) {
		barrier->then(barrier, 0, now);
		return;
	}
	barrier->next = fake.barriers;
	fake.barriers = barrier;
}

void shard_barrier_at(struct shard *shard, struct shard_barrier *barrier, uint64_t position, struct now now)
{
	shard_barrier(shard, barrier, now);
}

uint64_t shard_appended(const struct shard *shard)
{
	return 0;
}

void shard_barrier_cancel(struct shard *shard, struct shard_barrier *barrier)
{
	struct shard_barrier **at = &fake.barriers;
	while (*at != NULL && *at != barrier)
		at = &(*at)->next;
	cr_assert_not_null(*at, "a barrier cancelled that does not wait");
	*at = barrier->next;
	fake.cancelled++;
}

void fake_pass(struct now now)
{
	while (fake.barriers != NULL) {
		struct shard_barrier *barrier = fake.barriers;
		fake.barriers = barrier->next;
		barrier->then(barrier, 0, now);
	}
}

unsigned int shard_number(const struct shard *shard)
{
	return shard->number;
}

void shard_stop(struct shard *shard, struct now now)
{
	for (unsigned int i = 0; i < fake.parked_len; i++)
		if (fake.parked[i] != NULL && fake.parked[i]->wait == REQUEST_WAIT_GROUP)
			fake_answer(i, ERROR_NOT_COORDINATOR, now);
}

void shard_set_journal(struct shard *shard, void (*line)(void *arg, const char *line), void *arg)
{
}

bool shard_replay(struct shard *shard, const struct log_entry *entry, struct now now)
{
	return true;
}

bool shard_writes(const struct shard *shard)
{
	return false;
}

void shard_load_begin(struct shard *shard, struct stats *own)
{
}

void shard_load_end(struct shard *shard)
{
}

bool shard_is_loading(const struct shard *shard)
{
	return false;
}

void shard_loaded(struct shard *shard, struct now now)
{
}

bool shard_topics_changed(struct shard *shard, const struct bytes *gone, size_t gone_len, const struct bytes *made, size_t made_len, struct now now)
{
	return true;
}

/* ---- administration is tested over the real engine (test_api_admin.c): here there is no group ---- */

int16_t shard_group_get(struct shard *shard, struct bytes group_id, struct shard_group *out)
{
	return ERROR_GROUP_ID_NOT_FOUND;
}

void shard_group_each(struct shard *shard, void (*visit)(void *arg, const struct shard_group *group), void *arg)
{
}

void shard_member_each(struct shard *shard, struct bytes group_id, void (*visit)(void *arg, const struct shard_member *member), void *arg)
{
}

int16_t shard_delete_group(struct shard *shard, struct bytes group_id, struct now now)
{
	return ERROR_GROUP_ID_NOT_FOUND;
}

int16_t shard_offset_delete(struct shard *shard, const struct offset_delete_request *in, int16_t *codes, struct now now)
{
	return ERROR_GROUP_ID_NOT_FOUND;
}

enum log_verdict shard_judge(struct shard *shard, const struct log_entry *entry)
{
	return LOG_LIVE;
}

int64_t shard_applied(const struct shard *shard)
{
	return 0;
}
