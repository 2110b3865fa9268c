/*
 * join.c - JoinGroup: who may join, as whom, and whether that means a rebalance (group-protocol 1.4).
 *
 * The order of the checks is join_checks; then the state decides. A handler either answers or parks the request with its member; parked joins are answered when the join phase completes (rebalance.c).
 */
#include <stdio.h>

#include "coordinator/group/checks.h"

/* ---- answers ---- */

void join_answer_error(struct request *rq, int16_t error, struct bytes member_id, struct now now)
{
	struct join_group_response r;
	join_group_response_init(&r);
	r.error_code = error;
	r.generation_id = -1;
	r.protocol_name = rq->version >= 7 ? BYTES_NULL : BYTES_EMPTY;
	r.member_id = bytes_is_null(member_id) ? BYTES_EMPTY : member_id;
	request_answer(rq, &r, now);
}

void join_list_put(struct join_group_response_member *out, const struct member *m)
{
	*out = (struct join_group_response_member){.member_id = m->id, .group_instance_id = m->instance_id, .metadata = member_metadata(m)};
}

static const struct join_group_response_member *join_list(const struct group *group)
{
	const struct join_group_response_member *made = slice_list(group);
	if (made != NULL)
		return made;
	struct join_group_response_member *list = shard_scratch(group->shard, group->members_len * sizeof(*list));
	for (uint32_t i = 0; list != NULL && i < group->members_len; i++)
		join_list_put(&list[i], group->members[i]);
	return list;
}

void join_answer_as(struct member *m, struct request *rq, struct bytes leader, bool skip_assignment, struct now now)
{
	const struct group *group = m->group;
	struct join_group_response r;
	join_group_response_init(&r);
	r.generation_id = group->generation;
	r.protocol_type = group->protocol_type;
	r.protocol_name = bytes_is_null(group->protocol) ? BYTES_EMPTY : group->protocol;
	r.leader = leader;
	r.skip_assignment = skip_assignment;
	r.member_id = m->id;
	if (bytes_equal(leader, m->id)) {
		r.members = (struct join_group_response_member *)(uintptr_t)join_list(group);
		r.members_len = r.members != NULL ? (int32_t)group->members_len : 0;
	}
	request_answer(rq, &r, now);
}

void join_answer(struct member *m, struct request *rq, struct now now)
{
	struct bytes leader = m->group->leader != NULL ? m->group->leader->id : BYTES_EMPTY;
	join_answer_as(m, rq, leader, false, now);
}

/* ---- checks ---- */

bool join_offers_fit(const struct join_group_request *in)
{
	if (in->protocols_len > MEMBER_OFFERS_MAX || in->protocol_type.len > RECORD_STRING_MAX)
		return false;
	for (int32_t i = 0; i < in->protocols_len; i++)
		if (in->protocols[i].name.len > RECORD_STRING_MAX)
			return false;
	return in->group_instance_id.len <= RECORD_STRING_MAX - 37;
}

/* Version 0 has no rebalance timeout. */
int32_t join_rebalance_timeout(const struct request *rq, const struct join_group_request *in)
{
	return rq->version == 0 ? in->session_timeout_ms : in->rebalance_timeout_ms;
}

/* While members are joining, those that wait count: a limit that was lowered must not throw out who is in already. */
static bool join_has_room(struct group *group, const struct member *m)
{
	uint32_t max = group->settings->group_max_size > 0 ? (uint32_t)group->settings->group_max_size : 1;
	switch (group->state) {
	case GROUP_PREPARING:
		return (m != NULL && m->join != NULL) || group->waiting < max;
	case GROUP_COMPLETING:
	case GROUP_STABLE:
		return m != NULL || group->members_len < max;
	default:
		return true;
	}
}

/*
 * Ids that were handed out are no members and do not count for group.max.size, as in Kafka; there the surplus is refused when it comes back
 * (KAFKA-9844), and nothing bounds how many ids one group may hand out. Here group.max.pending.members does. The answer is one that every client
 * tries again after: unlike a full group this passes, at the latest with the session timeouts of the ids.
 */
static bool join_ids_are_out(const struct group *group)
{
	int32_t max = group->settings->group_max_pending_members;
	return max > 0 && group->pending_len >= (uint32_t)max;
}

static void join_no_room(struct group *group, struct member *m, struct request *rq, const struct join_group_request *in, struct now now)
{
	struct pending *p = pending_find(group, in->member_id);
	if (m != NULL) {
		removal_note(m, REMOVAL_GROUP_FULL, BYTES_NULL, now);
		member_remove(m, ERROR_UNKNOWN_MEMBER_ID, now);
	}
	if (p != NULL) {
		removal_note_id(group, p->id, REMOVAL_GROUP_FULL, now);
		pending_remove(p);
	}
	join_answer_error(rq, ERROR_GROUP_MAX_SIZE_REACHED, BYTES_EMPTY, now);
	if (m != NULL || p != NULL)
		rebalance_try_complete(group, now);
}

/* ---- a new member ---- */

struct bytes join_host(const struct request *rq, char *buf)
{
	uint32_t a = rq->peer_addr;
	int n = snprintf(buf, JOIN_HOST_LEN, "/%u.%u.%u.%u", a >> 24, a >> 16 & 255, a >> 8 & 255, a & 255);
	return bytes_of(buf, (size_t)n);
}

static struct bytes join_client(const struct request *rq)
{
	return bytes_is_null(rq->client_id) ? BYTES_EMPTY : rq->client_id;
}

static void join_add(struct group *group, struct bytes id, bool unnamed, struct request *rq, const struct join_group_request *in, struct now now)
{
	char host[JOIN_HOST_LEN];
	struct member_text text = {id, in->group_instance_id, join_client(rq), join_host(rq, host)};
	struct offers *offers = offers_new(group, in->protocols, in->protocols_len);
	bool typed = offers != NULL && (group->members_len > 0 || group_set_protocol_type(group, in->protocol_type));
	if (offers != NULL && !typed)
		offers_free(offers);
	struct member *m = typed ? member_add(group, &text, offers) : NULL;
	if (m == NULL) {
		join_answer_error(rq, ERROR_COORDINATOR_NOT_AVAILABLE, BYTES_EMPTY, now);
		return;
	}
	m->is_new = true;
	m->unnamed = unnamed;
	member_set_timeouts(m, in->session_timeout_ms, join_rebalance_timeout(rq, in));
	if (group->state == GROUP_PREPARING && group->previous_state == GROUP_EMPTY)
		group->new_member_added = true;
	member_start_new_timer(m, now);
	journal_member(group, "member-joined", m, in->reason);
	member_park_join(m, rq, now);
	rebalance_changed(group, now);
	if (group->state == GROUP_PREPARING)
		rebalance_try_complete(group, now);
	else
		rebalance_prepare(group, JOURNAL_MEMBER_JOINED, m, now);
}

static void join_new(struct group *group, struct request *rq, const struct join_group_request *in, struct now now)
{
	bool is_static = !bytes_is_null(in->group_instance_id);
	struct member *owner = is_static ? member_find_instance(group, in->group_instance_id) : NULL;
	bool ask_back = !is_static && rq->version >= 4;
	if (rq->eof && !ask_back) { /* whoever closed its end will not wait for the generation */
		join_answer_error(rq, ERROR_REBALANCE_IN_PROGRESS, BYTES_EMPTY, now);
		return;
	}
	if (ask_back && join_ids_are_out(group)) {
		group->shard->stats->group_ids_refused++;
		join_answer_error(rq, ERROR_COORDINATOR_NOT_AVAILABLE, BYTES_EMPTY, now);
		return;
	}
	if (owner != NULL) {
		join_static(group, owner, rq, in, now);
		return;
	}
	struct bytes id = member_make_id(group->shard, is_static ? in->group_instance_id : rq->client_id);
	if (bytes_is_null(id) || (ask_back && pending_add(group, id, in->session_timeout_ms, now) == NULL)) {
		join_answer_error(rq, ERROR_COORDINATOR_NOT_AVAILABLE, BYTES_EMPTY, now);
		return;
	}
	if (ask_back)
		join_answer_error(rq, ERROR_MEMBER_ID_REQUIRED, id, now);
	else
		join_add(group, id, true, rq, in, now);
}

/* An id that was handed out comes back. */
static void join_pending(struct group *group, struct pending *p, struct request *rq, const struct join_group_request *in, struct now now)
{
	if (!bytes_is_null(in->group_instance_id)) { /* ids are handed out to dynamic members only */
		join_answer_error(rq, ERROR_UNKNOWN_SERVER_ERROR, BYTES_EMPTY, now);
		return;
	}
	if (rq->eof) {
		join_answer_error(rq, ERROR_REBALANCE_IN_PROGRESS, in->member_id, now);
		return;
	}
	pending_remove(p);
	join_add(group, in->member_id, false, rq, in, now);
}

/* ---- a known member ---- */

static void join_again(struct member *m, struct request *rq, const struct join_group_request *in, enum journal_cause cause, struct now now)
{
	struct group *group = m->group;
	if (rq->eof) {
		join_answer_error(rq, ERROR_REBALANCE_IN_PROGRESS, in->member_id, now);
		return;
	}
	if (!offers_equal(m->offers, in->protocols, in->protocols_len)) {
		struct offers *offers = offers_new(group, in->protocols, in->protocols_len);
		if (offers == NULL) {
			join_answer_error(rq, ERROR_COORDINATOR_NOT_AVAILABLE, in->member_id, now);
			return;
		}
		member_set_offers(m, offers);
	}
	char host[JOIN_HOST_LEN];
	member_set_origin(m, join_client(rq), join_host(rq, host));
	member_set_timeouts(m, in->session_timeout_ms, join_rebalance_timeout(rq, in));
	if (group->state == GROUP_PREPARING) {
		member_park_join(m, rq, now);
		rebalance_try_complete(group, now);
		return;
	}
	journal_open(group, cause, m, now);
	member_park_join(m, rq, now);
	rebalance_prepare(group, cause, m, now);
}

static void join_known(struct member *m, struct request *rq, const struct join_group_request *in, struct now now)
{
	struct group *group = m->group;
	slice_hurry(m, now);
	bool same = offers_equal(m->offers, in->protocols, in->protocols_len);
	switch (group->state) {
	case GROUP_PREPARING:
		join_again(m, rq, in, JOURNAL_MEMBER_REJOINED, now);
		return;
	case GROUP_COMPLETING: /* same: its earlier answer was lost */
		if (same)
			join_answer(m, rq, now);
		else
			join_again(m, rq, in, JOURNAL_MEMBER_REJOINED, now);
		return;
	case GROUP_STABLE:
		if (group->leader == m)
			join_again(m, rq, in, JOURNAL_LEADER_REJOINED, now);
		else if (!same)
			join_again(m, rq, in, JOURNAL_MEMBER_REJOINED, now);
		else
			join_answer(m, rq, now);
		return;
	default:
		join_answer_error(rq, ERROR_UNKNOWN_MEMBER_ID, in->member_id, now);
	}
}

/* ---- checks ---- */

static int16_t join_group_id(struct check_call *c)
{
	return bytes_is_empty(c->group_id) || c->group_id.len > RECORD_STRING_MAX ? ERROR_INVALID_GROUP_ID : 0;
}

static int16_t join_session(struct check_call *c)
{
	const struct group_settings *s = group_settings_find(c->shard->settings, c->group_id, NULL);
	const struct join_group_request *in = c->in;
	bool fits = in->session_timeout_ms >= s->group_min_session_timeout_ms && in->session_timeout_ms <= s->group_max_session_timeout_ms;
	return fits ? 0 : ERROR_INVALID_SESSION_TIMEOUT;
}

/* A generation that nobody can store ends with its SyncGroup, and the members would begin the next one for ever. */
static int16_t join_log_works(struct check_call *c)
{
	return write_client_error(log_failed(c->shard->log));
}

static int16_t join_storable(struct check_call *c)
{
	return join_offers_fit(c->in) ? 0 : ERROR_INVALID_REQUEST;
}

static int16_t join_known_or_made(struct check_call *c)
{
	c->group = group_find(c->shard, c->group_id);
	if (c->group != NULL)
		return 0;
	if (!bytes_is_empty(c->member_id))
		return ERROR_UNKNOWN_MEMBER_ID;
	if (c->shard->stopped)
		return ERROR_COORDINATOR_NOT_AVAILABLE;
	c->group = group_new(c->shard, c->group_id);
	if (c->group == NULL)
		return ERROR_COORDINATOR_NOT_AVAILABLE;
	c->group->state_ms = c->now.wall_ms;
	group_write_empty(c->group, c->now);
	return 0;
}

static int16_t join_room(struct check_call *c)
{
	if (!bytes_is_empty(c->member_id))
		c->member = member_find(c->group, c->member_id);
	else if (!bytes_is_null(c->instance_id))
		c->member = member_find_instance(c->group, c->instance_id);
	return join_has_room(c->group, c->member) ? 0 : ERROR_GROUP_MAX_SIZE_REACHED;
}

static int16_t join_protocols(struct check_call *c)
{
	const struct join_group_request *in = c->in;
	return protocols_accept(c->group, in->protocol_type, in->protocols, in->protocols_len) ? 0 : ERROR_INCONSISTENT_GROUP_PROTOCOL;
}

/* Of those who come with an id. */
static int16_t join_identity(struct check_call *c)
{
	bool stranger = bytes_is_empty(c->member_id) || pending_find(c->group, c->member_id) != NULL;
	return stranger ? CHECKS_ENOUGH : check_member(c);
}

static const struct check join_order[] = {
	{"group id is given", "1.1", join_group_id},
	{"session timeout is allowed", "1.4.1 row 3", join_session},
	{"shard is loaded", "1.1", check_loaded},
	{"log works", "as of a broker whose log directory went offline", join_log_works},
	{"names and protocols can be stored", "ours: no record could hold them", join_storable},
	{"group is known, or is made", "1.4.1 rows 7 and 8", join_known_or_made},
	{"shard is served here", "1.4.3 row 1", check_served},
	{"group has room", "1.4.2, KIP-389, KAFKA-9844", join_room},
	{"protocols fit the group's", "1.4.3 row 2", join_protocols},
	{"member is known and not fenced", "1.4.4 rows 4 to 6, KIP-345", join_identity},
};
const struct checks join_checks = {"JoinGroup", join_order, ARRAY_LEN(join_order)};

/* ---- entry ---- */

void shard_join_group(struct shard *shard, struct request *rq, const struct join_group_request *in, struct now now)
{
	struct check_call call = {shard, rq, in, in->group_id, in->member_id, in->group_instance_id, -1, now};
	int16_t error = checks_run(&join_checks, join_checks.len, &call);
	bool named = !bytes_is_empty(in->member_id);
	if (!shard->loading)
		shard->stats->group_joins++;
	if (error == ERROR_GROUP_MAX_SIZE_REACHED) {
		join_no_room(call.group, named ? call.member : NULL, rq, in, now);
	} else if (error != 0) {
		join_answer_error(rq, error, in->member_id, now);
	} else if (!named) {
		join_new(call.group, rq, in, now);
	} else {
		struct pending *p = pending_find(call.group, in->member_id);
		if (p != NULL)
			join_pending(call.group, p, rq, in, now);
		else
			join_known(call.member, rq, in, now);
	}
}
