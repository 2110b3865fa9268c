/*
 * micro_engine.c - what the group engine costs by itself: no network, no codec, no disk. Prints lines for people and one line of JSON.
 *
 * One shard gets MEMBERS members in groups of GROUP, formed through real JoinGroup and SyncGroup requests. Then heartbeats: of one member over
 * and over (everything in cache), of all members in random order with the connection's memo, and the same without memo (table look-ups). Then each
 * group commits PARTITIONS offsets. A second shard with a tenth of the members, each in a group of its own, tells what is the group's of the bytes.
 *
 * Timer accuracy: the members' clients heartbeat every third of their session timeout, in random order, while those of one member in each SILENT_EVERY
 * groups fall silent; how late each of these is removed is measured by a clock that is this thread's processor time, times SPEED. So a second of it has
 * 1/SPEED of the rounds that a real one has, and everything is SPEED times as late as in a server whose sessions are SPEED times as short: that server's
 * lateness is printed. The timers' step of 1 ms comes on top.
 *
 * Bytes are what mallinfo2 says is in use, before and after: with the allocator's headers, with free room in tables and slabs; the log keeps nothing
 * here, and sessions and connections are not in it. The random order also misses the cache for the benchmark's own request and ids.
 *
 *     micro_engine [--quick] [--members N] [--group N]
 */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "muster/check.h"

#include "coordinator/shard.h"

#define PARTITIONS 10
#define HEARTBEATS 2000000u /* per measurement, about */
#define SESSION_MS 600000
#define SILENT_EVERY 50u
#define SPEED 60u
#define SPEED_QUICK 3000u
#define BURST 32u

struct client {
	struct request rq;
	struct member_memo memo;
	char id[64];
	char group[24];
	int32_t generation;
	int16_t error;
	bool answered;
	uint64_t beat_us; /* its last heartbeat in late() */
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
	} else if (rq->api_key == 8) {
		c->error = ((const struct offset_commit_response *)response)->topics[0].partitions[PARTITIONS - 1].error_code;
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
	in.session_timeout_ms = SESSION_MS;
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

/* The group's first member commits PARTITIONS partitions of one topic, without metadata. */
static void commit(struct bench *b, struct client *c)
{
	static struct offset_commit_request_partition asked[PARTITIONS];
	static struct offset_commit_response_partition screened[PARTITIONS];
	struct offset_commit_request_topic topic = {.name = BYTES_LITERAL("orders"), .partitions = asked, .partitions_len = PARTITIONS};
	struct offset_commit_response_topic out_topic = {.name = BYTES_LITERAL("orders"), .partitions = screened, .partitions_len = PARTITIONS};
	struct offset_commit_request in;
	struct offset_commit_response out;
	offset_commit_request_init(&in);
	offset_commit_response_init(&out);
	for (int32_t i = 0; i < PARTITIONS; i++) {
		asked[i] = (struct offset_commit_request_partition){
			.partition_index = i, .committed_offset = 1000, .committed_leader_epoch = -1, .committed_metadata = BYTES_EMPTY};
		screened[i] = (struct offset_commit_response_partition){i, 0};
	}
	in.group_id = bytes_str(c->group);
	in.member_id = bytes_str(c->id);
	in.generation_id_or_member_epoch = c->generation;
	in.topics = &topic;
	out.topics = &out_topic;
	in.topics_len = out.topics_len = 1;
	prepare(c, 8, 8);
	shard_offset_commit(b->shard, &c->rq, &in, &out, b->now);
	settle(b, c, 1);
	CHECK(c->error == 0);
}

static double bytes_in_use(void)
{
	struct mallinfo2 m = mallinfo2();
	return (double)(m.uordblks + m.hblkhd);
}

static void begin(struct bench *b, unsigned int members, unsigned int group)
{
	uint64_t random[2] = {0x1234, 0x5678};
	b->members = members;
	b->group = group;
	b->stats = (struct stats){0};
	b->settings = (struct group_settings){6000, 1800000, 0, INT32_MAX, 4096, 16};
	b->now = (struct now){1000000, 1700000000000};
	b->log = log_memory_new();
	b->shard = shard_new(0, b->log, &b->settings, &b->stats, random, b->now);
	b->clients = calloc(members, sizeof(*b->clients));
	CHECK(b->log != NULL && b->shard != NULL && b->clients != NULL);
}

static void end(struct bench *b)
{
	shard_free(b->shard);
	log_free(b->log);
	free(b->clients);
}

/* Bytes of a member together with its group, which has no other. */
static double bytes_alone(unsigned int members)
{
	static struct bench b;
	begin(&b, members, 1);
	double before = bytes_in_use();
	form(&b);
	double bytes = (bytes_in_use() - before) / members;
	end(&b);
	return bytes;
}

static double bytes_per_offset(struct bench *b)
{
	unsigned int groups = 0;
	double before = bytes_in_use();
	for (unsigned int at = 0; at < b->members; at += b->group, groups++)
		commit(b, &b->clients[at]);
	return (bytes_in_use() - before) / groups / PARTITIONS;
}

/* ---- timer accuracy ---- */

static bool silent(const struct bench *b, uint32_t i)
{
	return i % (b->group * SILENT_EVERY) == 0;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

/* A burst of the heartbeats that are due, as a poll round has it. Returns how many there have been since the beginning. */
static uint64_t late_burst(struct bench *b, const uint32_t *order, uint64_t n, uint64_t due)
{
	for (unsigned int k = 0; k < BURST && n < due; k++, n++) {
		struct client *c = &b->clients[order[n % b->members]];
		if (n >= b->members && silent(b, order[n % b->members]))
			continue;
		heartbeat(b, c);
		c->beat_us = b->now.us;
	}
	return n;
}

static double cpu_seconds(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* The latest removal of a silent member, in ms of processor time; the k-th removal is taken for that of the k-th deadline. */
static double late(struct bench *b, const uint32_t *order, unsigned int speed)
{
	const uint64_t session = (uint64_t)SESSION_MS * 1000, pass = session / 3, base = b->now.us;
	unsigned int wanted = (b->members + b->group * SILENT_EVERY - 1) / (b->group * SILENT_EVERY), len = 0;
	uint64_t *removed = calloc(wanted, sizeof(*removed)), *deadline = calloc(wanted, sizeof(*deadline)), n = 0, worst = 0;
	CHECK(removed != NULL && deadline != NULL);
	double start = cpu_seconds();
	for (uint64_t t = 0; t < pass + session + session / 20; t = (uint64_t)((cpu_seconds() - start) * speed * 1e6)) {
		b->now.us = base + t;
		n = late_burst(b, order, n, (uint64_t)((double)t / (double)pass * b->members));
		shard_tick(b->shard, 256, b->now);
		CHECK(b->stats.group_expired <= wanted);
		while (len < b->stats.group_expired)
			removed[len++] = b->now.us;
	}
	CHECK(len == wanted);
	for (uint32_t i = 0, k = 0; i < b->members; i++)
		if (silent(b, i))
			deadline[k++] = b->clients[i].beat_us + session;
	qsort(deadline, wanted, sizeof(*deadline), compare);
	for (unsigned int k = 0; k < wanted; k++) {
		CHECK(removed[k] >= deadline[k]);
		worst = removed[k] - deadline[k] > worst ? removed[k] - deadline[k] : worst;
	}
	free(removed);
	free(deadline);
	return (double)worst / 1e3 / speed;
}

static void run(struct bench *b, unsigned int speed)
{
	unsigned int rounds = b->members < HEARTBEATS / 2 ? HEARTBEATS / b->members : 2;
	uint32_t *order = calloc(b->members, sizeof(*order));
	CHECK(order != NULL);
	shuffle(order, b->members);
	double before = bytes_in_use(), start = seconds();
	form(b);
	double joins = b->members / (seconds() - start), shared = (bytes_in_use() - before) / b->members;

	double hot = beat(b, order, 0, true, rounds);
	beat(b, order, 1, true, 1); /* fills the memos */
	double memo = beat(b, order, 1, true, rounds);
	double table = beat(b, order, 1, false, rounds);
	CHECK(b->stats.group_members_now == b->members);
	double offset = bytes_per_offset(b);
	for (unsigned int i = 0; i < b->members; i++)
		prepare(&b->clients[i], 12, 4);
	double latest = late(b, order, speed);
	double alone = bytes_alone(b->members < 10 ? 1 : b->members / 10), of_group = (alone - shared) / (1 - 1.0 / b->group);

	printf("members %u in groups of %u\n", b->members, b->group);
	printf("joins %.0f per second (id round, join, sync, their records)\n", joins);
	printf("heartbeats_hot %.0f per second, %.1f ns\n", 1e9 / hot, hot);
	printf("heartbeats_random %.0f per second, %.1f ns, with the connection's memo\n", 1e9 / memo, memo);
	printf("heartbeats_random_table %.0f per second, %.1f ns, by look-ups in tables\n", 1e9 / table, table);
	printf("ratio_table_to_memo %.2f, ratio_random_to_hot %.1f\n", table / memo, memo / hot);
	printf("bytes_per_idle_member %.0f (of which %zu subscription and assignment), bytes_per_group %.0f, bytes_per_committed_offset %.0f\n",
	       alone - of_group, sizeof(subscription) + sizeof(assignment), of_group, offset);
	printf("session_expiry at most %.2f ms late, with sessions of %.1f s\n", latest, SESSION_MS / 1e3 / speed);
	printf("{\"bench\": \"engine\", \"members\": %u, \"group\": %u, \"joins_per_second\": %.0f, \"hot_per_second\": %.0f, "
	       "\"random_per_second\": %.0f, \"random_table_per_second\": %.0f, \"bytes_per_member\": %.0f, \"bytes_per_group\": %.0f, "
	       "\"bytes_per_offset\": %.0f, \"bytes_by\": \"mallinfo2\", \"expiry_late_ms\": %.2f, \"expiry_session_ms\": %u}\n",
	       b->members, b->group, joins, 1e9 / hot, 1e9 / memo, 1e9 / table, alone - of_group, of_group, offset, latest, SESSION_MS / speed);
	free(order);
}

int main(int argc, char **argv)
{
	static struct bench b;
	unsigned int members = 1000000, group = 10, speed = SPEED;
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--quick") == 0) {
			members = 2000;
			speed = SPEED_QUICK;
		} else if (strcmp(argv[i], "--members") == 0 && i + 1 < argc) {
			members = (unsigned int)atoi(argv[++i]);
		} else if (strcmp(argv[i], "--group") == 0 && i + 1 < argc) {
			group = (unsigned int)atoi(argv[++i]);
		} else {
			fprintf(stderr, "usage: micro_engine [--quick] [--members N] [--group N]\n");
			return 2;
		}
	}
	if (members < 1 || members > 100000000 || group < 2) {
		fprintf(stderr, "micro_engine: 1 to 100000000 members, groups of at least 2\n");
		return 2;
	}
	begin(&b, members, group);
	run(&b, speed);
	end(&b);
	return 0;
}
