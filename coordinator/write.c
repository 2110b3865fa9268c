/*
 * write.c - building, submitting and completing writes; see write.h.
 */
#include "coordinator/group/group.h"

struct write *write_new(unsigned int records, size_t bytes, size_t extra)
{
	size_t head = sizeof(struct write) + records * sizeof(struct log_entry);
	size_t total = head + 16 + extra + bytes;
	struct write *w = malloc(total);
	if (w == NULL)
		return NULL;
	memset(w, 0, head);
	uint8_t *behind = (uint8_t *)w + ((head + 15) & ~(size_t)15);
	w->arena = arena_of(behind, extra);
	w->bytes = writer_of(behind + extra, bytes);
	w->cap = records;
	w->previous_leader = BYTES_NULL;
	return w;
}

void write_key(struct write *w)
{
	CHECK(w->len < w->cap);
	w->entries[w->len].key.p = w->bytes.p;
}

void write_value(struct write *w)
{
	struct log_entry *e = &w->entries[w->len];
	e->key.len = (int32_t)(w->bytes.p - e->key.p);
	e->value.p = w->bytes.p;
}

void write_end(struct write *w, bool tombstone)
{
	struct log_entry *e = &w->entries[w->len++];
	CHECK(!w->bytes.full);
	e->value.len = tombstone ? -1 : (int32_t)(w->bytes.p - e->value.p);
}

void write_free(struct write *w)
{
	if (w->group != NULL)
		group_put(w->group);
	free(w);
}

int16_t write_client_error(int16_t error)
{
	switch (error) {
	case 0:
		return 0;
	case ERROR_UNKNOWN_TOPIC_OR_PARTITION:
	case ERROR_REQUEST_TIMED_OUT:
	case 19: /* too few replicas, before and after the append */
	case 20:
		return ERROR_COORDINATOR_NOT_AVAILABLE;
	case ERROR_NOT_LEADER_OR_FOLLOWER:
	case 56: /* storage error */
		return ERROR_NOT_COORDINATOR;
	case 4: /* the record does not fit */
	case ERROR_MESSAGE_TOO_LARGE:
	case 18:
		return ERROR_UNKNOWN_SERVER_ERROR;
	default:
		return error;
	}
}

#define WRITE_TELL_US US_PER_S

/* A record that no batch of the log can hold: who stores such things should hear of it, but not each time. */
static void write_tell_too_large(struct shard *shard, const struct write *w, struct now now)
{
	struct journal_line line;
	struct record_key key;
	size_t size = 0;
	shard->stats->log_too_large++;
	if (shard->line == NULL || !record_key_decode(&key, w->entries[0].key))
		return;
	if (shard->too_large_us != 0 && now.us < shard->too_large_us + WRITE_TELL_US) {
		shard->too_large_unsaid++;
		return;
	}
	for (unsigned int i = 0; i < w->len; i++)
		size += (size_t)w->entries[i].key.len + (size_t)(w->entries[i].value.len > 0 ? w->entries[i].value.len : 0);
	journal_line_of(&line, key.group, "record-too-large");
	if (!bytes_is_null(key.member))
		journal_put(&line, "member", key.member);
	journal_put_number(&line, "bytes", (int64_t)size);
	journal_put_number(&line, "limit", (int64_t)shard->log->largest);
	if (shard->too_large_unsaid > 0)
		journal_put_number(&line, "unsaid_before", (int64_t)shard->too_large_unsaid);
	shard->line(shard->line_arg, line.text);
	shard->too_large_us = now.us;
	shard->too_large_unsaid = 0;
}

int16_t write_submit(struct shard *shard, struct write *w, struct now now)
{
	CHECK(w->len == w->cap && w->len > 0);
	int16_t error = 0;
	w->position = log_append(shard->log, shard->number, w->entries, w->len, &error, now);
	if (w->position == 0) {
		if (error == ERROR_MESSAGE_TOO_LARGE)
			write_tell_too_large(shard, w, now);
		write_free(w);
		return error != 0 ? write_client_error(error) : (int16_t)ERROR_UNKNOWN_SERVER_ERROR;
	}
	CHECK(w->position > shard->writes.appended);
	shard->writes.appended = w->position;
	shard->stats->log_records += w->len;
	shard->stats->log_bytes += writer_len(&w->bytes);
	if (w->group != NULL) {
		w->group->writes++;
		w->group->unsaved = false;
		if (w->group->parts != NULL) {
			w->commit = ++w->group->parts->submitted;
			w->group->parts->at = w->parts;
		}
	}
	w->next = NULL;
	w->deadline_us = shard_write_deadline(shard, now);
	if (shard->writes.patient == NULL)
		shard->writes.patient = w;
	if (shard->writes.last != NULL)
		shard->writes.last->next = w;
	else
		shard->writes.first = w;
	shard->writes.last = w;
	return 0;
}

static void write_dropped(struct request *rq, struct now now)
{
	struct write *w = rq->holder;
	w->rq = NULL;
}

void write_park(struct write *w, struct request *rq)
{
	w->rq = rq;
	request_park(rq, REQUEST_WAIT_DURABLE, write_dropped, w);
}

/* False: not through yet. */
static bool write_replay(struct shard *shard, struct write *w, unsigned int *units, struct now now)
{
	if (!w->begun && w->group != NULL)
		w->group->writes--;
	w->begun = true;
	for (; w->next_entry < w->len; w->next_entry++)
		if ((w->sliced && *units == 0) || !replay_some(shard, &w->entries[w->next_entry], units, now))
			return false;
	return true;
}

/* The first write leaves the queue. */
static struct write *write_take(struct shard *shard)
{
	struct write *w = shard->writes.first;
	shard->writes.first = w->next;
	if (w->next == NULL)
		shard->writes.last = NULL;
	if (shard->writes.patient == w)
		shard->writes.patient = w->next;
	if (w->group != NULL && !w->begun)
		w->group->writes--;
	return w;
}

uint64_t writes_deadline(const struct shard *shard)
{
	return shard->writes.patient == NULL ? TIME_NEVER : shard->writes.patient->deadline_us;
}

void writes_overdue(struct shard *shard, struct now now)
{
	while (writes_deadline(shard) <= now.us) {
		struct write *w = shard->writes.patient;
		shard->writes.patient = w->next;
		shard->stats->log_writes_late++;
		if (w->late != NULL)
			w->late(shard, w, write_client_error(ERROR_REQUEST_TIMED_OUT), now);
		w->rq = w->late != NULL ? NULL : w->rq;
	}
}

unsigned int writes_complete(struct shard *shard, unsigned int *units, struct now now)
{
	unsigned int n = 0;
	if (shard->writes.first == NULL)
		return 0;
	uint64_t durable = log_durable(shard->log);
	while (shard->writes.first != NULL && shard->writes.first->position <= durable) {
		if (!write_replay(shard, shard->writes.first, units, now))
			return n;
		struct write *w = write_take(shard);
		if (w->group != NULL)
			parts_durable(w->group, w->commit);
		if (w->done != NULL)
			w->done(shard, w, now);
		if (w->group != NULL)
			slice_start(w->group, now);
		write_free(w);
		n++;
	}
	return n;
}

static void write_fail(struct shard *shard, struct write *w, int16_t error, struct now now)
{
	if (w->group != NULL)
		w->group->unsaved = true;
	if (w->failed != NULL)
		w->failed(shard, w, error, now);
	else if (w->rq != NULL)
		w->rq->ops->refuse(w->rq, now);
	write_free(w);
}

int16_t writes_fail(struct shard *shard, struct now now)
{
	int16_t error = shard->writes.first == NULL ? 0 : write_client_error(log_failed(shard->log));
	if (error == 0)
		return 0;
	unsigned int units = UINT32_MAX;
	if (shard->writes.first->begun) /* durable, and half of it is replayed already */
		writes_complete(shard, &units, now);
	shard->writes.appended = log_durable(shard->log);
	while (shard->writes.first != NULL)
		write_fail(shard, write_take(shard), error, now);
	return error;
}

bool writes_due(const struct shard *shard)
{
	return shard->writes.first != NULL && shard->writes.first->position <= log_durable(shard->log);
}

void writes_free(struct shard *shard)
{
	while (shard->writes.first != NULL) {
		struct write *w = shard->writes.first;
		shard->writes.first = w->next;
		write_free(w);
	}
	shard->writes.last = shard->writes.patient = NULL;
}
