/*
 * micro_engine.c - what the group engine costs by itself: no network, no codec, no disk. Prints one "name value unit" line per figure, and ratios.
 *
 * One shard gets MEMBERS members in groups of GROUP, formed through real JoinGroup and SyncGroup requests. Then heartbeats: of one member over
 * and over (everything in cache), of all members in random order with the connection's memo, and the same without memo (table look-ups).
 *
 *     micro_engine [--quick] [--members N] [--group N]
 */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "muster/check.h"

#include "coordinator/shard.h"

struct client {
	struct request rq;
	struct member_memo memo;
	char id[64];
	char group[24];
	int32_t generation;
	int16_t error;
	bool answered;
};

static double seconds(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void take_id(struct client *c, struct bytes id)
{
	size_t n = id.len < (int32_t)sizeof(c->id) ? (size_t)id.len : sizeof(c->id) - 1;
	memcpy(c->id, id.p, n);
	c->id[n] = '\0';
}

static void answer(struct request *rq, const void *response, struct now now)
{
	struct client *c = CONTAINER_OF(rq, struct client, rq);
	c->answered = true;
	if (rq->api_key == 12) {
		c->error = ((const struct heartbeat_response *)response)->error_code;
	} else if (rq->api_key == 14) {
		c->error = ((const struct sync_group_response *)response)->error_code;
	} else {
		const struct join_group_response *r = response;
		c->error = r->error_code;
		c->generation = r->generation_id;
		take_id(c, r->member_id);
	}
}

static void refuse(struct request *rq, struct now now)
{
	abort();
}

static const struct request_ops ops = {answer, refuse};

static void prepare(struct client *c, int16_t api, int16_t version)
{
	c->answered = false;
	c->error = -2;
	c->rq = (struct request){.ops = &ops, .memo = &c->memo, .client_id = BYTES_LITERAL("consumer-orders-1"), .peer_addr = 0x0a010203,
				 .api_key = api, .version = version};
}

struct bench {
	struct log *log;
	struct stats stats;
	struct group_settings settings;
	struct shard *shard;
	struct client *clients;
	unsigned int members, group;
	struct now now;
};

static uint8_t subscription[100], assignment[100];

static void join(struct bench *b, struct client *c)
{
	struct join_group_request_protocol protocol = {BYTES_LITERAL("range"), bytes_of(subscription, sizeof(subscription))};
	struct join_group_request in;
	join_group_request_init(&in);
	in.group_id = bytes_str(c->group);
	in.member_id = bytes_str(c->id);
	in.session_timeout_ms = 1800000;
	in.rebalance_timeout_ms = 300000;
	in.protocol_type = BYTES_LITERAL("consumer");
	in.protocols = &protocol;
	in.protocols_len = 1;
	prepare(c, 11, 9);
	shard_join_group(b->shard, &c->rq, &in, b->now);
}

static void tick(struct bench *b, uint64_t us)
{
	b->now.us += us;
	b->now.wall_ms += (int64_t)(us / 1000);
	log_poll(b->log, b->now);
	shard_tick(b->shard, 1000000, b->now);
}

/* Rounds without time passing until all are answered: large groups are served in slices. */
static void settle(struct bench *b, const struct client *first, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		while (!first[i].answered)
			tick(b, 0);
}

static void sync(struct bench *b, struct client *first, struct client *c, unsigned int n, struct sync_group_request_assignment *list)
{
	struct sync_group_request in;
	sync_group_request_init(&in);
	for (unsigned int i = 0; c == first && i < n; i++)
		list[i] = (struct sync_group_request_assignment){bytes_str(first[i].id), bytes_of(assignment, sizeof(assignment))};
	in.group_id = bytes_str(c->group);
	in.member_id = bytes_str(c->id);
	in.generation_id = c->generation;
	in.protocol_type = BYTES_LITERAL("consumer");
	in.protocol_name = BYTES_LITERAL("range");
	in.assignments = list;
	in.assignments_len = c == first ? (int32_t)n : 0;
	prepare(c, 14, 5);
	shard_sync_group(b->shard, &c->rq, &in, b->now);
}

/* Every client ends up in a Stable group. */
static void form(struct bench *b)
{
	struct sync_group_request_assignment *list = calloc(b->group, sizeof(*list));
	for (unsigned int at = 0; at < b->members; at += b->group) {
		struct client *first = &b->clients[at];
		unsigned int n = b->members - at < b->group ? b->members - at : b->group;
		for (unsigned int i = 0; i < n; i++) {
			snprintf(first[i].group, sizeof(first[i].group), "group-%u", at / b->group);
			join(b, &first[i]);
			CHECK(first[i].error == 79);
			join(b, &first[i]);
		}
		tick(b, 1000);
		settle(b, first, n);
		for (unsigned int i = n; i-- > 0;) {
			CHECK(first[i].answered && first[i].error == 0);
			sync(b, first, &first[i], n, list);
		}
		settle(b, first, n);
		for (unsigned int i = 0; i < n; i++)
			CHECK(first[i].answered && first[i].error == 0);
	}
	free(list);
}

static void heartbeat(struct bench *b, struct client *c)
{
	struct heartbeat_request in = {bytes_str(c->group), c->generation, bytes_str(c->id), BYTES_NULL};
	shard_heartbeat(b->shard, &c->rq, &in, b->now);
}

/* Nanoseconds per heartbeat over `order`; a step of 0 stays with the first one. */
static double beat(struct bench *b, const uint32_t *order, unsigned int step, bool memo, unsigned int rounds)
{
	for (unsigned int i = 0; i < b->members; i++)
		prepare(&b->clients[i], 12, 4);
	double start = seconds();
	uint64_t n = 0;
	for (unsigned int k = 0; k < rounds; k++) {
		for (unsigned int i = 0; i < b->members; i++, n++) {
			struct client *c = &b->clients[order[i * step]];
			if (!memo)
				c->memo.member = NULL;
			heartbeat(b, c);
		}
	}
	double took = seconds() - start;
	CHECK(b->clients[order[0]].error == 0);
	return took * 1e9 / (double)n;
}

static void shuffle(uint32_t *order, unsigned int n)
{
	uint64_t seed = 88172645463325252ull;
	for (unsigned int i = 0; i < n; i++)
		order[i] = i;
	for (unsigned int i = n; i > 1; i--) {
		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		unsigned int j = (unsigned int)(seed >> 33) % i;
		uint32_t t = order[i - 1];
		order[i - 1] = order[j];
		order[j] = t;
	}
}

static void run(struct bench *b, unsigned int rounds)
{
	uint32_t *order = calloc(b->members, sizeof(*order));
	shuffle(order, b->members);
	struct mallinfo2 before = mallinfo2();
	double start = seconds();
	form(b);
	double took = seconds() - start;
	struct mallinfo2 after = mallinfo2();
	double bytes = (double)(after.uordblks + after.hblkhd - before.uordblks - before.hblkhd) / b->members;

	double hot = beat(b, order, 0, true, rounds);
	beat(b, order, 1, true, 1); /* fills the memos */
	double memo = beat(b, order, 1, true, rounds);
	double table = beat(b, order, 1, false, rounds);
	CHECK(b->stats.group_members_now == b->members);

	printf("members %u in groups of %u\n", b->members, b->group);
	printf("joins %.0f per second (id round, join, sync, their records)\n", b->members / took);
	printf("heartbeat_one_member %.1f ns\n", hot);
	printf("heartbeat_random_memo %.1f ns\n", memo);
	printf("heartbeat_random_table %.1f ns\n", table);
	printf("heartbeats_with_memo %.0f per second\n", 1e9 / memo);
	printf("heartbeats_without_memo %.0f per second\n", 1e9 / table);
	printf("ratio_memo_to_table %.2f\n", table / memo);
	printf("bytes_per_idle_member %.0f (of which %zu subscription and assignment)\n", bytes, sizeof(subscription) + sizeof(assignment));
	free(order);
}

int main(int argc, char **argv)
{
	static struct bench b = {.members = 100000, .group = 100};
	unsigned int rounds = 20;
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--quick") == 0) {
			b.members = 2000;
			rounds = 5;
		} else if (strcmp(argv[i], "--members") == 0 && i + 1 < argc) {
			b.members = (unsigned int)atoi(argv[++i]);
		} else if (strcmp(argv[i], "--group") == 0 && i + 1 < argc) {
			b.group = (unsigned int)atoi(argv[++i]);
		} else {
			fprintf(stderr, "usage: micro_engine [--quick] [--members N] [--group N]\n");
			return 2;
		}
	}
	if (b.members < 1 || b.group < 1) {
		fprintf(stderr, "micro_engine: members and group must be at least 1\n");
		return 2;
	}
	uint64_t random[2] = {0x1234, 0x5678};
	b.settings = (struct group_settings){6000, 1800000, 0, INT32_MAX, 4096, 16};
	b.now = (struct now){1000000, 1700000000000};
	b.log = log_memory_new();
	b.shard = shard_new(0, b.log, &b.settings, &b.stats, random, b.now);
	b.clients = calloc(b.members, sizeof(*b.clients));
	CHECK(b.log != NULL && b.shard != NULL && b.clients != NULL);
	run(&b, rounds);
	shard_free(b.shard);
	log_free(b.log);
	free(b.clients);
	return 0;
}
