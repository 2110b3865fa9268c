/*
 * consumer.c - a client that behaves: find the coordinator, join, (come back with the id that was handed out,) if it leads run the assignor, sync,
 * fetch offsets, then heartbeat and commit by interval, and react to error codes as real clients do (group-protocol 3.4). A failed join never sends
 * a sync. Static members come back without their member id.
 *
 * What it checks: no code that would kill a real client, unless somebody misbehaves or the log refuses; its own partitions are nobody else's.
 */
#include "sim.h"

#define REQUEST_TIMEOUT_US 20000000ull

static void consumer_connect(struct consumer *c);
static void consumer_join(struct consumer *c);

static uint64_t soon(struct consumer *c, uint32_t lo_ms, uint32_t hi_ms)
{
	return c->w->now.us + (uint64_t)rng_between(&c->rng, lo_ms * 1000, hi_ms * 1000);
}

static struct bytes instance_of(const struct consumer *c)
{
	return c->is_static ? bytes_str(c->instance) : BYTES_NULL;
}

/* ---- connection ---- */

static void consumer_disconnect(struct consumer *c, bool reset)
{
	struct conn *conn = c->conn;
	c->conn = NULL;
	c->open_len = 0;
	if (conn != NULL && reset)
		conn_rst(conn);
	else if (conn != NULL)
		conn_fin(conn);
}

static void consumer_back_off(struct consumer *c, uint32_t lo_ms, uint32_t hi_ms)
{
	c->state = BACKOFF;
	c->wake = soon(c, lo_ms, hi_ms);
}

/* The connection is of no use any more: find the coordinator again. */
static void consumer_rediscover(struct consumer *c)
{
	consumer_disconnect(c, rng_one_in(&c->rng, 2));
	consumer_back_off(c, 20, 400);
}

static void consumer_send(struct consumer *c, int16_t api, int16_t version, const void *request, uint64_t timeout_us)
{
	int32_t id = -1;
	if (c->conn != NULL && c->open_len < ARRAY_LEN(c->open))
		id = conn_request(c->conn, api, version, bytes_str(c->client_id), request);
	if (id < 0) {
		consumer_rediscover(c);
		return;
	}
	c->open[c->open_len].correlation_id = id;
	c->open[c->open_len].api = api;
	c->open[c->open_len].version = version;
	c->open[c->open_len].generation = c->generation;
	c->open[c->open_len++].until = c->w->now.us + timeout_us;
}

static bool consumer_waits(const struct consumer *c, int16_t api)
{
	for (unsigned int i = 0; i < c->open_len; i++)
		if (c->open[i].api == api)
			return true;
	return false;
}

static void consumer_connect(struct consumer *c)
{
	c->conn = conn_open(c->w, c->index, ++c->conns);
	c->open_len = 0;
	if (c->conn == NULL) {
		consumer_back_off(c, 100, 500);
		return;
	}
	if (rng_one_in(&c->rng, 2)) {
		struct api_versions_request in;
		api_versions_request_init(&in);
		in.client_software_name = BYTES_LITERAL("sim");
		in.client_software_version = BYTES_LITERAL("1.0");
		consumer_send(c, api_key_api_versions, (int16_t)rng_below(&c->rng, 5), &in, REQUEST_TIMEOUT_US);
	}
	struct find_coordinator_request in;
	struct bytes key = c->w->group_id[c->group];
	find_coordinator_request_init(&in);
	in.key = key;
	in.coordinator_keys = &key;
	in.coordinator_keys_len = 1;
	c->state = FINDING;
	c->wake = TIME_NEVER;
	consumer_send(c, api_key_find_coordinator, c->v_find, &in, REQUEST_TIMEOUT_US);
}

/* ---- subscription and assignment bytes ---- */

static void write_string(struct writer *w, const char *s)
{
	writer_u16(w, (uint16_t)strlen(s));
	writer_raw(w, s, strlen(s));
}

static void write_parts(struct writer *w, uint32_t parts)
{
	unsigned int topics = 0;
	for (unsigned int t = 0; t < TOPICS; t++)
		topics += (parts & topic_parts(t)) != 0;
	writer_u32(w, topics);
	for (unsigned int t = 0; t < TOPICS; t++) {
		uint32_t of = parts & topic_parts(t);
		if (of == 0)
			continue;
		write_string(w, topic_names[t]);
		writer_u32(w, (uint32_t)__builtin_popcount(of));
		for (; of != 0; of &= of - 1)
			writer_u32(w, (uint32_t)part_index((unsigned int)__builtin_ctz(of)));
	}
}

static size_t write_subscription(const struct consumer *c, enum assignor a, uint8_t *out, size_t cap)
{
	struct writer w = writer_of(out, cap);
	writer_u16(&w, 1);
	writer_u32(&w, (uint32_t)__builtin_popcount(c->topics));
	for (unsigned int t = 0; t < TOPICS; t++)
		if (c->topics >> t & 1)
			write_string(&w, topic_names[t]);
	writer_u32(&w, UINT32_MAX); /* user data: null */
	write_parts(&w, a == STICKY || a == COOPERATIVE ? c->owned : 0);
	CHECK(!w.full);
	return writer_len(&w);
}

static int topic_of(struct bytes name)
{
	for (int t = 0; t < TOPICS; t++)
		if (bytes_equal(name, bytes_str(topic_names[t])))
			return t;
	return -1;
}

static struct bytes read_bytes(struct reader *r, int32_t len)
{
	const uint8_t *p = len < 0 ? NULL : reader_take(r, (size_t)len);
	return p == NULL ? BYTES_EMPTY : bytes_of(p, (size_t)len);
}

static uint32_t read_parts(struct reader *r)
{
	uint32_t parts = 0, topics = reader_u32(r);
	for (uint32_t i = 0; i < topics && !r->bad; i++) {
		int t = topic_of(read_bytes(r, (int16_t)reader_u16(r)));
		uint32_t n = reader_u32(r);
		for (uint32_t k = 0; k < n && !r->bad; k++) {
			uint32_t index = reader_u32(r);
			if (t >= 0 && index < (uint32_t)topic_sizes[t])
				parts |= 1u << index << __builtin_ctz(topic_parts((unsigned int)t));
		}
	}
	return r->bad ? 0 : parts;
}

static void read_subscription(struct assign_member *m, struct bytes b)
{
	struct reader r = reader_of(b.p, (size_t)(b.len > 0 ? b.len : 0));
	int16_t version = (int16_t)reader_u16(&r);
	uint32_t n = reader_u32(&r);
	for (uint32_t i = 0; i < n && !r.bad; i++) {
		int t = topic_of(read_bytes(&r, (int16_t)reader_u16(&r)));
		if (t >= 0)
			m->topics |= 1u << t;
	}
	read_bytes(&r, (int32_t)reader_u32(&r));
	if (version >= 1 && !r.bad)
		m->owned = read_parts(&r);
	if (r.bad)
		m->topics = m->owned = 0;
}

/* ---- join ---- */

static void consumer_forget(struct consumer *c)
{
	c->member[0] = '\0';
	c->generation = -1;
	c->owned = 0;
	c->owned_marked = false;
}

static void consumer_join(struct consumer *c)
{
	static uint8_t metadata[ASSIGNORS][512];
	struct join_group_request in;
	struct join_group_request_protocol protocols[ASSIGNORS];
	join_group_request_init(&in);
	in.group_id = c->w->group_id[c->group];
	in.session_timeout_ms = c->session_ms;
	in.rebalance_timeout_ms = c->rebalance_ms;
	in.member_id = bytes_str(c->member);
	in.group_instance_id = instance_of(c);
	in.protocol_type = BYTES_LITERAL("consumer");
	for (unsigned int i = 0; i < c->assignors_len; i++) {
		size_t n = write_subscription(c, c->assignors[i], metadata[i], sizeof(metadata[i]));
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
		read_subscription(&members[n++], r->members[i].metadata);
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
static void consumer_sync(struct consumer *c)
{
	static uint8_t buffer[1 << 16];
	static struct sync_group_request_assignment list[64];
	struct writer w = writer_of(buffer, sizeof(buffer));
	struct sync_group_request in;
	sync_group_request_init(&in);
	in.group_id = c->w->group_id[c->group];
	in.generation_id = c->generation;
	in.member_id = bytes_str(c->member);
	in.group_instance_id = instance_of(c);
	in.protocol_type = BYTES_LITERAL("consumer");
	in.protocol_name = bytes_str(c->protocol);
	in.assignments = list;
	for (unsigned int i = 0; c->leads && !c->skip && i < c->computed_len; i++) {
		const uint8_t *start = w.p;
		writer_u16(&w, 0);
		write_parts(&w, c->computed[i].parts);
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
	c->wake = soon(c, 3000, 15000);
}

static void consumer_error(struct consumer *c, int16_t api, int16_t code)
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

static void on_join(struct consumer *c, const struct join_group_response *r, int16_t version)
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
	c->wake = c->leads && rng_one_in(&c->rng, 12) ? soon(c, 100, (uint32_t)c->rebalance_ms * 3 / 2) : soon(c, 0, 20);
}

static void check_disjoint(struct consumer *c)
{
	for (int i = 0; i < CONSUMERS; i++) {
		const struct consumer *o = &c->w->consumers[i];
		if (o == c || o->group != c->group || !o->owned_marked || o->generation != c->generation || o->mark != c->mark ||
		    (o->state != STABLE && o->state != FETCHING))
			continue;
		REQUIRE(c->w, "partition-twice", (o->owned & c->owned) == 0, "generation %d: consumers %d and %d both own %x", c->generation, i, c->index,
			o->owned & c->owned);
	}
}

static void consumer_fetch(struct consumer *c)
{
	static int32_t indexes[PARTS];
	struct offset_fetch_request in;
	struct offset_fetch_request_topic old[TOPICS];
	struct offset_fetch_request_topics topics[TOPICS];
	struct offset_fetch_request_group group;
	unsigned int n = 0;
	for (unsigned int t = 0; t < TOPICS; t++) {
		uint32_t parts = c->owned & topic_parts(t);
		unsigned int first = (unsigned int)__builtin_ctz(topic_parts(t)), len = 0;
		if (parts == 0)
			continue;
		for (; parts != 0; parts &= parts - 1)
			indexes[first + len++] = part_index((unsigned int)__builtin_ctz(parts));
		const struct image_topic *topic = image_topic(c->w->image, bytes_str(topic_names[t]));
		old[n] = (struct offset_fetch_request_topic){topic->name, indexes + first, (int32_t)len};
		topics[n++] = (struct offset_fetch_request_topics){topic->name, topic->id, indexes + first, (int32_t)len};
	}
	offset_fetch_request_init(&in);
	offset_fetch_request_group_init(&group);
	in.group_id = group.group_id = c->w->group_id[c->group];
	in.topics = old;
	group.topics = topics;
	in.topics_len = group.topics_len = (int32_t)n;
	in.groups = &group;
	in.groups_len = 1;
	consumer_send(c, api_key_offset_fetch, c->v_fetch, &in, REQUEST_TIMEOUT_US);
}

static void on_sync(struct consumer *c, const struct sync_group_response *r)
{
	if (c->state != SYNCING)
		return;
	if (r->error_code != 0) {
		consumer_error(c, api_key_sync_group, r->error_code);
		return;
	}
	struct reader in = reader_of(r->assignment.p, (size_t)(r->assignment.len > 0 ? r->assignment.len : 0));
	reader_u16(&in);
	uint32_t before = c->owned, parts = read_parts(&in);
	bool marked = reader_u32(&in) == 16;
	uint64_t generation = reader_u64(&in);
	c->owned = in.bad ? 0 : parts;
	c->owned_marked = marked && !in.bad;
	c->mark = generation;
	/* a restarted static leader keeps what an earlier generation gave it; everybody else gets this generation's */
	REQUIRE(c->w, "stale-assignment", !c->owned_marked || (int64_t)generation == c->generation, "consumer %d: generation %d, assignment of %lld", c->index,
		c->generation, (long long)generation);
	check_disjoint(c);
	c->w->stable_assignments++;
	c->state = STABLE;
	c->beat_at = soon(c, 10, (uint32_t)c->beat_ms);
	c->commit_at = soon(c, 500, (uint32_t)c->commit_ms);
	c->wake = TIME_NEVER;
	if (strcmp(c->protocol, assignor_name(COOPERATIVE)) == 0 && (before & ~c->owned) != 0) {
		consumer_join(c); /* gave something up: tell, so that it can be handed on */
		return;
	}
	if (c->owned != 0)
		consumer_fetch(c);
}

static void consumer_commit(struct consumer *c)
{
	struct world *w = c->w;
	struct offset_commit_request in;
	static struct offset_commit_request_topic topics[TOPICS];
	static struct offset_commit_request_partition parts[PARTS];
	unsigned int n = 0;
	c->commit_at = w->now.us + (uint64_t)c->commit_ms * US_PER_MS;
	if (c->owned == 0 || consumer_waits(c, api_key_offset_commit) || (uint64_t)w->next_offset + PARTS >= w->offset_cap)
		return;
	for (unsigned int t = 0; t < TOPICS; t++) {
		const struct image_topic *topic = image_topic(w->image, bytes_str(topic_names[t]));
		unsigned int first = (unsigned int)__builtin_ctz(topic_parts(t)), len = 0;
		for (uint32_t of = c->owned & topic_parts(t); of != 0; of &= of - 1) {
			struct offset_commit_request_partition *p = &parts[first + len++];
			offset_commit_request_partition_init(p);
			p->partition_index = part_index((unsigned int)__builtin_ctz(of));
			p->committed_offset = w->next_offset++;
			p->committed_leader_epoch = commit_epoch(w, p->committed_offset, c->v_commit);
			p->committed_metadata = commit_metadata(p->committed_offset);
		}
		if (len > 0)
			topics[n++] = (struct offset_commit_request_topic){topic->name, topic->id, &parts[first], (int32_t)len};
	}
	offset_commit_request_init(&in);
	in.group_id = w->group_id[c->group];
	in.generation_id_or_member_epoch = c->generation;
	in.member_id = bytes_str(c->member);
	in.group_instance_id = instance_of(c);
	in.topics = topics;
	in.topics_len = (int32_t)n;
	consumer_send(c, api_key_offset_commit, c->v_commit, &in, REQUEST_TIMEOUT_US);
}

static void on_commit(struct consumer *c, const struct offset_commit_response *r, int32_t generation)
{
	int16_t code = 0;
	for (int32_t t = 0; t < r->topics_len; t++)
		for (int32_t p = 0; p < r->topics[t].partitions_len; p++)
			code = r->topics[t].partitions[p].error_code != 0 ? r->topics[t].partitions[p].error_code : code;
	if (code == 0 || c->state != STABLE || generation != c->generation || c->v_commit == 0)
		return;
	if (code == -1 || code == 69)
		return;
	consumer_error(c, api_key_offset_commit, code);
}

static void consumer_beat(struct consumer *c)
{
	struct heartbeat_request in;
	c->beat_at = c->w->now.us + (uint64_t)c->beat_ms * US_PER_MS;
	if (consumer_waits(c, api_key_heartbeat))
		return;
	heartbeat_request_init(&in);
	in.group_id = c->w->group_id[c->group];
	in.generation_id = c->generation;
	in.member_id = bytes_str(c->member);
	in.group_instance_id = instance_of(c);
	consumer_send(c, api_key_heartbeat, c->v_beat, &in, (uint64_t)c->session_ms * US_PER_MS);
}

static void on_heartbeat(struct consumer *c, int16_t code, int32_t generation)
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

void consumer_answer(struct consumer *c, struct conn *conn, int32_t correlation_id, int16_t api, int16_t version, struct bytes body)
{
	static _Alignas(16) uint8_t block[1 << 18];
	struct arena arena = arena_of(block, sizeof(block));
	struct reader r = reader_of(body.p, (size_t)body.len);
	if (conn != c->conn)
		return;
	unsigned int i = 0;
	while (i < c->open_len && c->open[i].correlation_id != correlation_id)
		i++;
	REQUIRE(c->w, "answer-unasked", i < c->open_len, "consumer %d", c->index);
	int32_t generation = c->open[i].generation;
	memmove(&c->open[i], &c->open[i + 1], (--c->open_len - i) * sizeof(c->open[0]));
	const struct message_type *type = message_response(api);
	void *out = arena_alloc(&arena, 1, type->size);
	CHECK(type->decode(out, &r, version, &arena));
	switch (api) {
	case api_key_find_coordinator:
		if (c->state == FINDING)
			consumer_join(c);
		break;
	case api_key_join_group:
		on_join(c, out, version);
		break;
	case api_key_sync_group:
		on_sync(c, out);
		break;
	case api_key_heartbeat:
		on_heartbeat(c, ((const struct heartbeat_response *)out)->error_code, generation);
		break;
	case api_key_offset_commit:
		on_commit(c, out, generation);
		break;
	default:
		break;
	}
}

void consumer_lost(struct consumer *c, struct conn *conn)
{
	if (conn != c->conn)
		return;
	c->conn = NULL;
	c->open_len = 0;
	if (c->state != OFF && c->state != FATAL)
		consumer_back_off(c, 10, 300);
}

/* ---- time ---- */

uint64_t consumer_due(const struct consumer *c)
{
	if (c->state == OFF)
		return TIME_NEVER;
	uint64_t due = c->wake;
	if (c->state == STABLE || (c->state == JOINING && c->beats_while_joining))
		due = c->beat_at < due ? c->beat_at : due;
	if (c->state == STABLE)
		due = c->commit_at < due ? c->commit_at : due;
	for (unsigned int i = 0; i < c->open_len; i++)
		due = c->open[i].until < due ? c->open[i].until : due;
	return due < c->paused_until ? c->paused_until : due;
}

void consumer_wake(struct consumer *c)
{
	uint64_t now = c->w->now.us;
	for (unsigned int i = 0; i < c->open_len; i++) {
		if (c->open[i].until <= now) { /* too long: a new connection */
			if (c->is_static && c->impatient) { /* or a new process on a new host */
				conn_vanish(c->conn);
				c->conn = NULL;
				consumer_forget(c);
			}
			consumer_rediscover(c);
			return;
		}
	}
	if (c->wake <= now) {
		c->wake = TIME_NEVER;
		if (c->state == BACKOFF || c->state == FATAL) {
			if (c->conn == NULL)
				consumer_connect(c);
			else
				consumer_join(c);
		} else if (c->state == COMPUTING) {
			consumer_sync(c);
		}
		return;
	}
	if (c->beat_at <= now) {
		consumer_beat(c);
		return;
	}
	if (c->commit_at <= now)
		consumer_commit(c);
}

/* ---- actions of the plan ---- */

static void consumer_leave(struct consumer *c)
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

static void consumer_off(struct consumer *c)
{
	consumer_forget(c);
	c->conn = NULL;
	c->open_len = 0;
	c->state = OFF;
	c->wake = TIME_NEVER;
}

static void consumer_lose(struct consumer *c, const struct action *a)
{
	if (c->conn == NULL)
		return;
	struct conn *conn = c->conn;
	switch (a->random % 4) {
	case 0: /* both ends know */
		c->conn = NULL;
		c->open_len = 0;
		conn_rst(conn);
		consumer_back_off(c, 10, 500);
		break;
	case 1:
		c->conn = NULL;
		c->open_len = 0;
		conn_fin(conn);
		consumer_back_off(c, 10, 500);
		break;
	case 2: /* only the client knows */
		c->conn = NULL;
		c->open_len = 0;
		conn_vanish(conn);
		consumer_back_off(c, 10, 500);
		break;
	default: /* only the server knows */
		conn_half_open(conn);
	}
}

void consumer_act(struct consumer *c, const struct action *a)
{
	switch (a->kind) {
	case ACT_START:
		if (c->state != OFF)
			break;
		c->rng = rng_of(a->random, (uint64_t)c->index);
		c->paused_until = 0;
		consumer_forget(c);
		consumer_connect(c);
		break;
	case ACT_STOP:
		consumer_leave(c);
		if (c->conn != NULL)
			conn_fin(c->conn);
		consumer_off(c);
		break;
	case ACT_KILL:
		if (c->conn != NULL)
			conn_fin(c->conn);
		consumer_off(c);
		break;
	case ACT_RESET:
		if (c->conn != NULL)
			conn_rst(c->conn);
		consumer_off(c);
		break;
	case ACT_VANISH:
		if (c->conn != NULL)
			conn_vanish(c->conn);
		consumer_off(c);
		break;
	case ACT_PAUSE:
		c->paused_until = c->w->now.us + (1 + a->random % 20) * 1000000;
		break;
	case ACT_LOSE:
		consumer_lose(c, a);
		break;
	case ACT_RESUBSCRIBE:
		c->topics = 1 + (uint32_t)(a->random % 7);
		if (c->state == STABLE)
			consumer_join(c);
		break;
	case ACT_REJOIN:
		if (c->state == STABLE)
			consumer_join(c);
		break;
	default:
		break;
	}
}
