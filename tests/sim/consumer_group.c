/*
 * consumer_group.c - a consumer as a member: joins, runs the assignor if it leads, syncs, heartbeats, leaves, and reacts to error codes as real clients do
 * (group-protocol 3.4).
 */
#include "consumer.h"

/* ---- join and sync ---- */

void consumer_forget(struct consumer *c)
{
	c->member[0] = '\0';
	c->generation = -1;
	c->owned = 0;
	c->owned_marked = false;
}

void consumer_join(struct consumer *c)
{
	static uint8_t metadata[ASSIGNORS][512];
	struct join_group_request in;
	struct join_group_request_protocol protocols[ASSIGNORS];
	join_group_request_init(&in);
	in.group_id = c->w->group_id[c->group];
	in.session_timeout_ms = c->session_ms;
	in.rebalance_timeout_ms = c->rebalance_ms;
	in.member_id = bytes_str(c->member);
	in.group_instance_id = consumer_instance(c);
	in.protocol_type = BYTES_LITERAL("consumer");
	for (unsigned int i = 0; i < c->assignors_len; i++) {
		size_t n = subscription_write(c, c->assignors[i], metadata[i], sizeof(metadata[i]));
		protocols[i] = (struct join_group_request_protocol){bytes_str(assignor_name(c->assignors[i])), bytes_of(metadata[i], n)};
	}
	in.protocols = protocols;
	in.protocols_len = (int32_t)c->assignors_len;
	c->state = JOINING;
	c->wake = TIME_NEVER;
	int64_t patience = c->v_join == 0 ? c->session_ms : c->rebalance_ms;
	consumer_send(c, api_key_join_group, c->v_join, &in, (uint64_t)(patience + 5000) * US_PER_MS);
}

static enum assignor assignor_named(const char *name)
{
	for (enum assignor a = 0; a < ASSIGNORS; a++)
		if (strcmp(assignor_name(a), name) == 0)
			return a;
	return ASSIGNORS;
}

static void consumer_compute(struct consumer *c, const struct join_group_response *r)
{
	static struct assign_member members[64];
	unsigned int n = 0;
	memset(members, 0, sizeof(members));
	for (int32_t i = 0; i < r->members_len && n < ARRAY_LEN(members); i++) {
		text_of(members[n].id, r->members[i].member_id);
		subscription_read(&members[n++], r->members[i].metadata);
	}
	enum assignor a = assignor_named(c->protocol);
	if (a != ASSIGNORS && n > 0)
		assign(a, members, n);
	c->computed_len = n;
	for (unsigned int i = 0; i < n; i++) {
		memcpy(c->computed[i].id, members[i].id, TEXT);
		c->computed[i].parts = members[i].got;
	}
}

/* The user data of an assignment marks generation and leader, so that a stale one is recognised. */
void consumer_sync(struct consumer *c)
{
	static uint8_t buffer[1 << 16];
	static struct sync_group_request_assignment list[64];
	struct writer w = writer_of(buffer, sizeof(buffer));
	struct sync_group_request in;
	sync_group_request_init(&in);
	in.group_id = c->w->group_id[c->group];
	in.generation_id = c->generation;
	in.member_id = bytes_str(c->member);
	in.group_instance_id = consumer_instance(c);
	in.protocol_type = BYTES_LITERAL("consumer");
	in.protocol_name = bytes_str(c->protocol);
	in.assignments = list;
	for (unsigned int i = 0; c->leads && !c->skip && i < c->computed_len; i++) {
		const uint8_t *start = w.p;
		writer_u16(&w, 0);
		subscription_write_parts(&w, c->computed[i].parts);
		writer_u32(&w, 16);
		writer_u64(&w, (uint64_t)c->generation);
		writer_u64(&w, rng_next(&c->rng));
		list[i] = (struct sync_group_request_assignment){bytes_str(c->computed[i].id), bytes_of(start, (size_t)(w.p - start))};
		in.assignments_len++;
	}
	CHECK(!w.full);
	c->state = SYNCING;
	c->wake = TIME_NEVER;
	uint64_t patience = c->impatient ? rng_between(&c->rng, 20, 2000) : (uint32_t)c->rebalance_ms + 5000;
	consumer_send(c, api_key_sync_group, c->v_sync, &in, patience * US_PER_MS);
}

/* ---- reactions ---- */

/* A code that would make a real client give up. It starts anew, but in a clean world it must not happen. */
static void consumer_fatal(struct consumer *c, int16_t api, int16_t code)
{
	struct world *w = c->w;
	bool log_refused = w->disk.fail_code != 0 && code == -1;
	bool fenced = code == 82 && c->is_static; /* by its own older request, on a connection that it gave up */
	bool full = code == 81 && w->plan.settings.group_max_size < CONSUMERS;
	REQUIRE(w, "client-killed", !w->plan.clean || log_refused || full || fenced || w->stopping, "consumer %d: api %d answered %d", c->index, api, code);
	consumer_disconnect(c, false);
	consumer_forget(c);
	c->state = FATAL;
	c->wake = consumer_soon(c, 3000, 15000);
}

void consumer_error(struct consumer *c, int16_t api, int16_t code)
{
	switch (code) {
	case 14:
	case 15:
	case 16:
		consumer_rediscover(c);
		break;
	case 22:
		c->generation = -1;
		consumer_join(c);
		break;
	case 25:
		consumer_forget(c);
		consumer_back_off(c, 0, 200);
		break;
	case 27:
		consumer_back_off(c, 0, rng_one_in(&c->rng, 4) ? 1500 : 30);
		break;
	default:
		consumer_fatal(c, api, code);
	}
}

void consumer_joined(struct consumer *c, const struct join_group_response *r, int16_t version)
{
	if (c->state != JOINING)
		return;
	if (r->error_code == 79) {
		text_of(c->member, r->member_id);
		REQUIRE(c->w, "empty-member-id", c->member[0] != '\0', "79 without an id");
		consumer_join(c);
		return;
	}
	if (r->error_code != 0) {
		REQUIRE(c->w, "client-killed", r->error_code != 22, "JoinGroup answered 22");
		consumer_error(c, api_key_join_group, r->error_code);
		return;
	}
	char leader[TEXT], protocol[TEXT];
	text_of(c->member, r->member_id);
	text_of(leader, r->leader);
	text_of(protocol, r->protocol_name);
	snprintf(c->protocol, sizeof(c->protocol), "%.31s", protocol);
	REQUIRE(c->w, "foreign-protocol", assignor_named(c->protocol) != ASSIGNORS || !c->w->plan.clean, "%s", c->protocol);
	REQUIRE(c->w, "protocol-type", version < 7 || bytes_equal(r->protocol_type, BYTES_LITERAL("consumer")), "join answered another type");
	c->generation = r->generation_id;
	c->leads = strcmp(leader, c->member) == 0;
	c->skip = r->skip_assignment;
	c->computed_len = 0;
	if (c->leads && !c->skip)
		consumer_compute(c, r);
	c->state = COMPUTING;
	c->wake = c->leads && rng_one_in(&c->rng, 12) ? consumer_soon(c, 100, (uint32_t)c->rebalance_ms * 3 / 2) : consumer_soon(c, 0, 20);
}

static void check_disjoint(struct consumer *c)
{
	for (int i = 0; i < CONSUMERS; i++) {
		const struct consumer *o = &c->w->consumers[i];
		if (o == c || o->group != c->group || !o->owned_marked || o->generation != c->generation || o->mark != c->mark || o->life != c->life ||
		    (o->state != STABLE && o->state != FETCHING))
			continue;
		REQUIRE(c->w, "partition-twice", (o->owned & c->owned) == 0, "generation %d: consumers %d and %d both own %x", c->generation, i, c->index,
			o->owned & c->owned);
	}
}

void consumer_synced(struct consumer *c, const struct sync_group_response *r)
{
	if (c->state != SYNCING)
		return;
	if (r->error_code != 0) {
		consumer_error(c, api_key_sync_group, r->error_code);
		return;
	}
	struct reader in = reader_of(r->assignment.p, (size_t)(r->assignment.len > 0 ? r->assignment.len : 0));
	reader_u16(&in);
	uint32_t before = c->owned, parts = subscription_read_parts(&in);
	bool marked = reader_u32(&in) == 16;
	uint64_t generation = reader_u64(&in);
	c->owned = in.bad ? 0 : parts;
	c->owned_marked = marked && !in.bad;
	c->mark = generation;
	c->life = c->w->restarts << 32 | c->w->group_removals[c->group];
	/* a restarted static leader keeps what an earlier generation gave it; everybody else gets this generation's */
	REQUIRE(c->w, "stale-assignment", !c->owned_marked || (int64_t)generation == c->generation, "consumer %d: generation %d, assignment of %lld", c->index,
		c->generation, (long long)generation);
	check_disjoint(c);
	c->w->stable_assignments++;
	c->state = STABLE;
	c->beat_at = consumer_soon(c, 10, (uint32_t)c->beat_ms);
	c->commit_at = consumer_soon(c, 500, (uint32_t)c->commit_ms);
	c->wake = TIME_NEVER;
	if (strcmp(c->protocol, assignor_name(COOPERATIVE)) == 0 && (before & ~c->owned) != 0) {
		consumer_join(c); /* gave something up: tell, so that it can be handed on */
		return;
	}
	if (c->owned != 0)
		consumer_fetch(c);
}

/* ---- heartbeat and leave ---- */

void consumer_beat(struct consumer *c)
{
	struct heartbeat_request in;
	c->beat_at = c->w->now.us + (uint64_t)c->beat_ms * US_PER_MS;
	if (consumer_waits(c, api_key_heartbeat))
		return;
	heartbeat_request_init(&in);
	in.group_id = c->w->group_id[c->group];
	in.generation_id = c->generation;
	in.member_id = bytes_str(c->member);
	in.group_instance_id = consumer_instance(c);
	consumer_send(c, api_key_heartbeat, c->v_beat, &in, (uint64_t)c->session_ms * US_PER_MS);
}

void consumer_beaten(struct consumer *c, int16_t code, int32_t generation)
{
	if (code == 0 || c->state != STABLE || generation != c->generation)
		return;
	if (code == 27 && c->commits_before_join) {
		consumer_commit(c);
		consumer_back_off(c, 0, 50);
		return;
	}
	consumer_error(c, api_key_heartbeat, code);
}

void consumer_leave(struct consumer *c)
{
	struct leave_group_request in;
	struct leave_group_request_member one = {bytes_str(c->member), BYTES_NULL, BYTES_LITERAL("closing")};
	if (c->conn == NULL || c->is_static || !c->leaves || c->member[0] == '\0')
		return;
	leave_group_request_init(&in);
	in.group_id = c->w->group_id[c->group];
	in.member_id = one.member_id;
	in.members = &one;
	in.members_len = 1;
	conn_request(c->conn, api_key_leave_group, c->v_leave, bytes_str(c->client_id), &in);
}
