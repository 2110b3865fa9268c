/*
 * micro_slice.c - how long a large group holds up its neighbours: the worst piece of work in one go while it forms, gets its assignment and begins to
 * rebalance. No network, no disk; requests are decoded and answers encoded as on the wire, and copied once more as into a connection's buffer.
 *
 * What is measured is the processor time of this thread for one call into the engine: a request of the group, or a round of the shard. A heartbeat of
 * another group waits no longer than that. Each run forms a new group; printed is the worst piece of the best run, because whatever else runs
 * on the machine only adds to it, and the worst of all runs.
 *
 * With the program's allocator: the C library's gives blocks of this size back to the kernel and takes page faults again in the next run.
 *
 *     micro_slice [--quick] [--members N] [--runs N] [--bytes N]    N bytes of subscription and as many of assignment per member
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "muster/check.h"

#include "coordinator/shard.h"
#include "coordinator/wire/api.h"
#include "coordinator/wire/arena.h"

#define WIRE ((size_t)128 << 20)
#define RUNS_MAX 100
#define TOUCHED ((size_t)4 << 20) /* of each buffer, before anything is measured: a worker has touched what it keeps, too */

enum phase { JOIN, FORM, LEADER_SYNC, SYNC, STORE, DESCRIBE, REPLACE, REPLACED, REBALANCE, ABORT, PHASES };
static const char *const phase_names[PHASES] = {
	[JOIN] = "a_join_request", [FORM] = "a_round_of_the_join_phase", [LEADER_SYNC] = "the_leaders_sync_request", [SYNC] = "a_sync_request",
	[STORE] = "a_round_of_the_sync_phase", [DESCRIBE] = "a_describe_request", [REPLACE] = "a_static_replacement_request",
	[REPLACED] = "a_round_after_that", [REBALANCE] = "a_leave_request", [ABORT] = "a_round_after_it",
};

struct bench;

struct client {
	struct request rq;
	struct bench *b;
	char id[64];
	int32_t generation;
	int16_t error;
	bool answered, leads;
	bool fixed; /* a static member */
};

struct bench {
	struct log *log;
	struct stats stats;
	struct group_settings settings;
	struct shard *shard;
	struct client *clients;
	char group[24];
	unsigned int members, bytes;
	uint8_t *text, *wire, *copy, *block;
	struct now now;
	double worst[PHASES], took[PHASES];
	double piece, sum; /* us: of the rebalance that is measured: the longest, and all */
};

static double cpu_us(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static void note(struct bench *b, enum phase phase, double start)
{
	double us = cpu_us() - start;
	b->took[phase] += us;
	b->sum += us;
	if (us > b->piece)
		b->piece = us;
	if (us > b->worst[phase])
		b->worst[phase] = us;
}

static void answer(struct request *rq, const void *response, struct now now)
{
	struct client *c = CONTAINER_OF(rq, struct client, rq);
	struct writer w = writer_of(c->b->wire, WIRE);
	message_response(rq->api_key)->encode(response, &w, rq->version);
	CHECK(!w.full && !c->answered);
	memcpy(c->b->copy, c->b->wire, writer_len(&w));
	c->answered = true;
	if (rq->api_key == api_key_join_group) {
		const struct join_group_response *r = response;
		size_t n = (size_t)r->member_id.len < sizeof(c->id) ? (size_t)r->member_id.len : sizeof(c->id) - 1;
		memcpy(c->id, r->member_id.p, n);
		c->id[n] = '\0';
		c->error = r->error_code;
		c->generation = r->generation_id;
		c->leads = r->error_code == 0 && bytes_equal(r->leader, r->member_id);
	} else if (rq->api_key == api_key_sync_group) {
		c->error = ((const struct sync_group_response *)response)->error_code;
	}
}

static void refuse(struct request *rq, struct now now)
{
	abort();
}

static const struct request_ops ops = {answer, refuse};

static void prepare(struct bench *b, struct client *c, int16_t api, int16_t version)
{
	c->b = b;
	c->answered = false;
	c->error = -2;
	c->rq = (struct request){.ops = &ops, .client_id = BYTES_LITERAL("consumer-orders-1"), .peer_addr = 0x0a010203, .api_key = api, .version = version};
}

/* What arrives, from bytes; the way to them is not measured. */
static void *arrive(struct bench *b, struct client *c, const void *in, double *start)
{
	const struct message_type *type = message_request(c->rq.api_key);
	struct writer w = writer_of(b->copy, WIRE);
	struct arena arena = arena_of(b->block, WIRE);
	type->encode(in, &w, c->rq.version);
	*start = cpu_us();
	void *out = arena_alloc(&arena, 1, type->size);
	struct reader r = reader_of(b->copy, writer_len(&w));
	CHECK(!w.full && out != NULL && type->decode(out, &r, c->rq.version, &arena));
	return out;
}

static void join(struct bench *b, struct client *c, enum phase phase)
{
	struct join_group_request_protocol protocol = {BYTES_LITERAL("range"), bytes_of(b->text, b->bytes)};
	struct join_group_request in;
	double start;
	join_group_request_init(&in);
	in.group_id = bytes_str(b->group);
	in.member_id = bytes_str(c->id);
	in.group_instance_id = c->fixed ? BYTES_LITERAL("instance") : BYTES_NULL;
	in.session_timeout_ms = 1800000;
	in.rebalance_timeout_ms = 300000;
	in.protocol_type = BYTES_LITERAL("consumer");
	in.protocols = &protocol;
	in.protocols_len = 1;
	prepare(b, c, api_key_join_group, 9);
	const void *arrived = arrive(b, c, &in, &start);
	shard_join_group(b->shard, &c->rq, arrived, b->now);
	note(b, phase, start);
}

static void sync(struct bench *b, struct client *c, struct sync_group_request_assignment *list)
{
	struct sync_group_request in;
	double start;
	sync_group_request_init(&in);
	in.group_id = bytes_str(b->group);
	in.member_id = bytes_str(c->id);
	in.group_instance_id = c->fixed ? BYTES_LITERAL("instance") : BYTES_NULL;
	in.generation_id = c->generation;
	in.protocol_type = BYTES_LITERAL("consumer");
	in.protocol_name = BYTES_LITERAL("range");
	in.assignments = list;
	in.assignments_len = c->leads ? (int32_t)b->members : 0;
	prepare(b, c, api_key_sync_group, 5);
	const void *arrived = arrive(b, c, &in, &start);
	shard_sync_group(b->shard, &c->rq, arrived, b->now);
	note(b, c->leads ? LEADER_SYNC : SYNC, start);
}

static void leave(struct bench *b, struct client *c)
{
	struct leave_group_request in;
	leave_group_request_init(&in);
	in.group_id = bytes_str(b->group);
	in.member_id = bytes_str(c->id);
	prepare(b, c, api_key_leave_group, 2);
	double start = cpu_us();
	shard_leave_group(b->shard, &c->rq, &in, b->now);
	note(b, REBALANCE, start);
}

struct described {
	struct describe_groups_response_member *list;
	int32_t len;
};

static void describe_member(void *arg, const struct shard_member *m)
{
	struct described *d = arg;
	d->list[d->len++] = (struct describe_groups_response_member){m->id, m->instance_id, m->client_id, m->host, m->metadata, m->assignment};
}

/* What DescribeGroups does for one group, its answer encoded and copied. */
static void describe(struct bench *b)
{
	double start = cpu_us();
	struct shard_group group;
	struct describe_groups_response_group out;
	struct describe_groups_response response;
	struct arena arena = arena_of(b->block, WIRE);
	describe_groups_response_init(&response);
	describe_groups_response_group_init(&out);
	CHECK(shard_group_get(b->shard, bytes_str(b->group), &group) == 0);
	struct described d = {arena_alloc(&arena, group.members, sizeof(*d.list)), 0};
	shard_member_each(b->shard, bytes_str(b->group), describe_member, &d);
	out.members = d.list;
	out.members_len = d.len;
	response.groups = &out;
	response.groups_len = 1;
	struct writer w = writer_of(b->wire, WIRE);
	message_response(api_key_describe_groups)->encode(&response, &w, 5);
	CHECK(!w.full && d.len == (int32_t)b->members);
	memcpy(b->copy, b->wire, writer_len(&w));
	note(b, DESCRIBE, start);
}

static void round_of(struct bench *b, enum phase phase, uint64_t us)
{
	b->now.us += us;
	b->now.wall_ms += (int64_t)(us / 1000);
	log_poll(b->log, b->now);
	double start = cpu_us();
	shard_tick(b->shard, 256, b->now);
	note(b, phase, start);
}

static void settle(struct bench *b, enum phase phase, int16_t error)
{
	for (unsigned int i = 0; i < b->members; i++) {
		while (!b->clients[i].answered)
			round_of(b, phase, 20);
		CHECK(b->clients[i].error == error);
	}
}

/* The static member's client starts anew. */
static void replace(struct bench *b, struct client *c)
{
	c->id[0] = '\0';
	join(b, c, REPLACE);
	while (!c->answered)
		round_of(b, REPLACED, 20);
	CHECK(c->error == 0);
}

/*
 * Forms a group, hands in its assignment, describes it, replaces its static member, has everybody join once more and one of them leave before the answers to the syncs. `sum` and `piece` are
 * of the first rebalance, from the joins with ids to the last answer of a sync.
 */
static void run(struct bench *b, unsigned int number)
{
	struct sync_group_request_assignment *list = calloc(b->members, sizeof(*list));
	snprintf(b->group, sizeof(b->group), "group-%u", number);
	for (unsigned int k = 0; k < 2; k++) {
		b->piece = b->sum = 0;
		for (unsigned int i = 0; i < b->members; i++) {
			struct client *c = &b->clients[i];
			c->fixed = i == 1;
			if (k == 0)
				c->id[0] = '\0';
			if (k == 0 && c->fixed)
				continue;
			join(b, c, JOIN);
			CHECK(k == 1 || c->error == 79);
		}
	}
	round_of(b, FORM, 1000);
	settle(b, FORM, 0);
	for (unsigned int i = 0; i < b->members; i++)
		list[i] = (struct sync_group_request_assignment){bytes_str(b->clients[i].id), bytes_of(b->text, b->bytes)};
	for (unsigned int i = 0; i < b->members; i++)
		if (!b->clients[i].leads)
			sync(b, &b->clients[i], NULL);
	for (unsigned int i = 0; i < b->members; i++)
		if (b->clients[i].leads)
			sync(b, &b->clients[i], list);
	settle(b, STORE, 0);
	double piece = b->piece, sum = b->sum;
	describe(b);
	replace(b, &b->clients[1]);
	for (unsigned int i = 0; i < b->members; i++)
		join(b, &b->clients[i], JOIN);
	settle(b, FORM, 0);
	for (unsigned int i = 0; i < b->members; i++)
		if (!b->clients[i].leads)
			sync(b, &b->clients[i], NULL);
		else
			b->clients[i].error = 27;
	struct client gone = {.b = b};
	for (unsigned int i = 0; i < b->members; i++)
		if (b->clients[i].leads)
			memcpy(gone.id, b->clients[i].id, sizeof(gone.id));
	leave(b, &gone);
	settle(b, ABORT, 27);
	b->piece = piece;
	b->sum = sum;
	free(list);
}

static void measure(struct bench *b, unsigned int runs)
{
	double best[PHASES], all[PHASES] = {0}, took[PHASES], sum = 0, piece = 0;
	for (unsigned int k = 0; k < runs; k++) {
		memset(b->worst, 0, sizeof(b->worst));
		memset(b->took, 0, sizeof(b->took));
		run(b, k);
		sum = k == 0 || b->sum < sum ? b->sum : sum;
		piece = k == 0 || b->piece < piece ? b->piece : piece;
		for (unsigned int p = 0; p < PHASES; p++) {
			best[p] = k == 0 || b->worst[p] < best[p] ? b->worst[p] : best[p];
			took[p] = k == 0 || b->took[p] < took[p] ? b->took[p] : took[p];
			all[p] = b->worst[p] > all[p] ? b->worst[p] : all[p];
		}
	}
	printf("members %u, %u bytes of subscription and of assignment each, %u runs\n", b->members, b->bytes, runs);
	for (unsigned int p = 0; p < PHASES; p++)
		printf("%s worst_us %.0f (of all runs %.0f) sum_us %.0f\n", phase_names[p], best[p], all[p], took[p]);
	double worst = 0;
	for (unsigned int p = 0; p < PHASES; p++)
		worst = best[p] > worst ? best[p] : worst;
	printf("worst_pause %.0f us\n", worst);
	printf("rebalance_total %.2f ms, its longest piece %.0f us\n", sum / 1e3, piece);
	printf("{\"bench\": \"rebalance\", \"members\": %u, \"bytes\": %u, \"total_us\": %.0f, \"longest_us\": %.0f, \"worst_pause_us\": %.0f}\n",
	       b->members, b->bytes, sum, piece, worst);
}

int main(int argc, char **argv)
{
	struct bench b = {.members = 10000, .bytes = 100};
	uint64_t random[2] = {0x1234, 0x5678};
	unsigned int runs = 5;
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--quick") == 0) {
			b.members = 500;
			runs = 2;
		} else if (strcmp(argv[i], "--members") == 0 && i + 1 < argc) {
			b.members = (unsigned int)atoi(argv[++i]);
		} else if (strcmp(argv[i], "--runs") == 0 && i + 1 < argc) {
			runs = (unsigned int)atoi(argv[++i]);
		} else if (strcmp(argv[i], "--bytes") == 0 && i + 1 < argc) {
			b.bytes = (unsigned int)atoi(argv[++i]);
		} else {
			fprintf(stderr, "usage: micro_slice [--quick] [--members N] [--runs N] [--bytes N]\n");
			return 2;
		}
	}
	if (b.members < 2 || runs < 1 || runs > RUNS_MAX || b.bytes > 4096) {
		fprintf(stderr, "micro_slice: at least 2 members, 1 to %d runs, at most 4096 bytes\n", RUNS_MAX);
		return 2;
	}
	b.settings = (struct group_settings){.group_min_session_timeout_ms = 6000, .group_max_session_timeout_ms = 1800000, .group_max_size = INT32_MAX,
					     .offset_metadata_max_bytes = 4096, .journal_events = 16};
	b.now = (struct now){1000000, 1700000000000};
	b.log = log_memory_new();
	b.shard = shard_new(0, b.log, &b.settings, &b.stats, random, b.now);
	b.clients = calloc(b.members, sizeof(*b.clients));
	b.text = calloc(1, b.bytes + 1);
	b.wire = malloc(WIRE);
	b.copy = malloc(WIRE);
	b.block = malloc(WIRE);
	CHECK(b.log != NULL && b.shard != NULL && b.clients != NULL && b.text != NULL && b.wire != NULL && b.copy != NULL && b.block != NULL);
	memset(b.wire, 0, TOUCHED);
	memset(b.copy, 0, TOUCHED);
	memset(b.block, 0, TOUCHED);
	measure(&b, runs);
	shard_free(b.shard);
	log_free(b.log);
	free(b.clients);
	free(b.text);
	free(b.wire);
	free(b.copy);
	free(b.block);
	return 0;
}
