/*
 * micro_session.c - what the coordinator costs for a heartbeat without any network: a frame goes in through the service's seam, the answer comes
 * out of it. Session, codec, memo, group, timer, counters; one member per connection, as in the steady state. Then the same heartbeats at a worker that
 * does not own their groups: there and back by mailboxes, the work of both workers counted, on one core, so without what lines moved between cores cost.
 *
 * usage: micro_session [OPERATIONS [MEMBERS [owned|general]]]
 *
 *   owned     without the second part
 *   general   the same, with a tagged field in the header of each heartbeat, so that none goes the short way (coordinator/steady.c)
 *
 * bench/instructions counts the instructions of heartbeat_once.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/heartbeat.h"
#include "coordinator/node.h"
#include "muster/check.h"

#define MAIL_MAX 2048u
#ifdef __OPTIMIZE__
#define BUILT_HOW ", optimized"
#else
#define BUILT_HOW ""
#endif

/* Two workers in one thread, and the mail between them. */
struct pair {
	struct node *nodes[2]; /* the second is NULL while there is only one */
	struct box {
		struct mailbox mailbox; /* first */
		struct pair *pair;
		struct mail mail[MAIL_MAX]; /* to this worker */
		unsigned int first, len;
	} boxes[2];
};

/* What was sent last, over whichever connection. */
struct answer {
	size_t len;
	uint8_t bytes[HEARTBEAT_FRAME_MAX];
};

/* The far end of one connection. */
struct client {
	struct channel channel;
	void *session;
	struct answer *answer;
	struct heartbeat_member hb;
};

static void client_send(struct channel *ch, const void *p, size_t len)
{
	struct answer *answer = CONTAINER_OF(ch, struct client, channel)->answer;
	CHECK(answer->len + len <= sizeof(answer->bytes));
	memcpy(answer->bytes + answer->len, p, len);
	answer->len += len;
}

static void client_ignore(struct channel *ch)
{
}

static const struct channel_ops client_ops = {client_send, client_ignore, client_ignore, client_ignore};

static bool box_send(struct mailbox *mailbox, unsigned int to, const struct mail *mail)
{
	struct box *box = &((struct box *)mailbox)->pair->boxes[to];
	CHECK(box->len < MAIL_MAX);
	box->mail[(box->first + box->len++) % MAIL_MAX] = *mail;
	return true;
}

static const struct mailbox_ops box_ops = {box_send};

static void deliver(struct pair *pair, unsigned int to, struct now now)
{
	struct box *box = &pair->boxes[to];
	while (box->len > 0) {
		struct mail mail = box->mail[box->first];
		box->first = (box->first + 1) % MAIL_MAX;
		box->len--;
		node_service_ops.mail(pair->nodes[to], 1 - to, &mail, now);
	}
}

static void pair_turn(struct pair *pair, struct now now)
{
	for (unsigned int w = 2; w-- > 0 && pair->nodes[1] != NULL;)
		deliver(pair, w, now);
}

static void pair_tick(struct pair *pair, struct now now)
{
	for (unsigned int w = 0; w < 2 && pair->nodes[w] != NULL; w++)
		node_service_ops.tick(pair->nodes[w], now);
	pair_turn(pair, now);
}

/* Puts a field that nobody knows, of tag 0 and no bytes, into the header of the member's heartbeat. */
static void add_tagged_field(struct heartbeat_member *hb)
{
	unsigned int at = 4 + 10 + (unsigned int)strlen(hb->client_id);
	CHECK(hb->request[at] == 0 && hb->request_len + 2 <= sizeof(hb->request));
	memmove(hb->request + at + 2, hb->request + at, hb->request_len - at);
	memcpy(hb->request + at, "\1\0\0", 3);
	hb->request_len += 2;
	hb->request[3] = (uint8_t)(hb->request_len - 4);
}

/* One heartbeat, in and out. */
void heartbeat_once(struct client *cl, struct now now);
__attribute__((noinline)) void heartbeat_once(struct client *cl, struct now now)
{
	node_service_ops.frame(cl->session, cl->hb.request + 4, cl->hb.request_len - 4, now);
}

static void request(struct client *cl, const struct writer *w, struct now now)
{
	cl->answer->len = 0;
	node_service_ops.frame(cl->session, w->start + 4, writer_len(w) - 4, now);
}

/* Lets time pass until the answer is there, in steps short enough that no session ends while thousands join. */
static void wait_for_answer(struct pair *pair, const struct client *cl, struct now *now)
{
	for (int i = 0; i < 1000 && cl->answer->len == 0; i++) {
		now->us += 200;
		pair_turn(pair, *now);
		pair_tick(pair, *now);
	}
	CHECK(cl->answer->len > 4);
}

/* A group of one: id, join, sync. */
static void settle(struct pair *pair, struct client *cl, struct now *now)
{
	uint8_t out[1024];
	bool leader = false;
	int error = HEARTBEAT_ID_REQUIRED;
	while (error == HEARTBEAT_ID_REQUIRED) {
		struct writer w = writer_of(out, sizeof(out));
		heartbeat_join(&cl->hb, &w);
		request(cl, &w, *now);
		wait_for_answer(pair, cl, now);
		error = heartbeat_join_answer(&cl->hb, cl->answer->bytes + 4, cl->answer->len - 4, &leader);
	}
	CHECK(error == HEARTBEAT_OK && leader);
	struct writer w = writer_of(out, sizeof(out));
	heartbeat_sync(&cl->hb, &w, bytes_of(cl->answer->bytes + 4, cl->answer->len - 4));
	request(cl, &w, *now);
	wait_for_answer(pair, cl, now);
	CHECK(heartbeat_sync_answer(&cl->hb, cl->answer->bytes + 4, cl->answer->len - 4) == HEARTBEAT_OK);
	heartbeat_prepare(&cl->hb);
}

/* All connections are to the first worker; their groups are the last one's. */
static struct client *clients_new(struct pair *pair, const struct image *image, unsigned int n, struct answer *answer, struct now *now)
{
	unsigned int owner = pair->nodes[1] != NULL ? 1 : 0, name = 0;
	struct client *clients = calloc(n, sizeof(*clients));
	CHECK(clients != NULL);
	for (unsigned int i = 0; i < n; i++) {
		struct client *cl = &clients[i];
		struct channel_peer peer = {0x0a000001 + i, 0x0a4d0002, 40000, 19092};
		cl->channel.ops = &client_ops;
		cl->answer = answer;
		do
			snprintf(cl->hb.group, sizeof(cl->hb.group), "bench-%05u", name++ % 100000);
		while (image_shard_node(image, image_shard_of(image, bytes_str(cl->hb.group))) != owner);
		snprintf(cl->hb.client_id, sizeof(cl->hb.client_id), "bench-%06u", i);
		cl->session = node_service_ops.opened(pair->nodes[0], &cl->channel, &peer, *now);
		CHECK(cl->session != NULL);
		settle(pair, cl, now);
	}
	return clients;
}

static double cpu_seconds(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static double run(struct pair *pair, struct client *clients, unsigned int members, uint64_t operations, bool general, struct now now)
{
	for (unsigned int i = 0; general && i < members; i++)
		add_tagged_field(&clients[i].hb);
	double start = cpu_seconds();
	for (uint64_t i = 0; i < operations; i++) {
		struct client *cl = &clients[i % members];
		heartbeat_next(&cl->hb);
		cl->answer->len = 0;
		heartbeat_once(cl, now);
		pair_turn(pair, now);
		CHECK(heartbeat_answer(&cl->hb, cl->answer->bytes + 4, cl->answer->len - 4) == HEARTBEAT_OK);
		if (i % 32 == 0) {
			now.us += 10;
			pair_tick(pair, now);
		}
	}
	return (cpu_seconds() - start) * 1e9 / (double)operations;
}

/* With one worker or two; returns the nanoseconds of a heartbeat, and in *memo how many needed no lookup. */
static double measure(unsigned int workers, uint64_t operations, unsigned int members, bool general, uint64_t *memo)
{
	struct group_settings groups = {.group_min_session_timeout_ms = 6000, .group_max_session_timeout_ms = 1800000, .group_max_size = INT32_MAX,
					.offset_metadata_max_bytes = 4096, .journal_events = 32};
	struct now now = {US_PER_S, 1700000000000};
	struct stats *stats = aligned_alloc(MUSTER_CACHE_LINE, 2 * sizeof(*stats));
	struct image *image = image_new(bytes_str("bench"));
	struct log *log = log_memory_new();
	struct pair *pair = calloc(1, sizeof(*pair));
	struct answer *answer = calloc(1, sizeof(*answer));
	CHECK(members > 0 && answer != NULL && stats != NULL && image != NULL && log != NULL && pair != NULL);
	memset(stats, 0, 2 * sizeof(*stats));
	for (unsigned int w = 0; w < workers; w++)
		CHECK(image_add_node(image, 1000 + (int32_t)w, bytes_str("10.77.0.2"), 19092 + (int32_t)w));
	image_seal(image, 50);
	for (unsigned int w = 0; w < workers; w++) {
		struct node_config cfg = {.node_id = 1000 + (int32_t)w, .groups = &groups, .max_sessions = members, .random = {1, 2}};
		pair->boxes[w].mailbox = (struct mailbox){&box_ops, w, workers, MAIL_MAX};
		pair->boxes[w].pair = pair;
		cfg.mailbox = workers > 1 ? &pair->boxes[w].mailbox : NULL;
		pair->nodes[w] = node_new(&cfg, image, log, &stats[w], now);
		CHECK(pair->nodes[w] != NULL);
	}
	struct client *clients = clients_new(pair, image, members, answer, &now);
	double ns = run(pair, clients, members, operations, general, now);
	*memo = stats[0].group_heartbeats_memo;
	for (unsigned int i = 0; i < members; i++)
		node_service_ops.closed(clients[i].session, now);
	for (unsigned int w = 0; w < workers; w++)
		node_free(pair->nodes[w]);
	log_free(log);
	image_free(image);
	free(pair);
	free(answer);
	free(stats);
	free(clients);
	return ns;
}

int main(int argc, char **argv)
{
	uint64_t operations = argc > 1 ? strtoull(argv[1], NULL, 10) : 3000000, memo, none;
	unsigned int members = argc > 2 ? (unsigned int)atoi(argv[2]) : 64;
	const char *mode = argc > 3 ? argv[3] : "";
	double owned = measure(1, operations, members, strcmp(mode, "general") == 0, &memo);
	printf("session, heartbeat in and out, %u members: %.1f ns, over %" PRIu64 " operations; %" PRIu64 " of them found their member by the memo\n",
	       members, owned, operations, memo);
	printf("built by %s%s\n", __VERSION__, BUILT_HOW);
	if (mode[0] != '\0')
		return EXIT_SUCCESS;
	double forwarded = measure(2, operations, members, false, &none);
	printf("session, heartbeat at the wrong worker, there and back: %.1f ns, %.1f times as much\n", forwarded, forwarded / owned);
	return EXIT_SUCCESS;
}
