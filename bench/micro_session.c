/*
 * micro_session.c - what the coordinator costs for a heartbeat without any network: a frame goes in through the service's seam, the answer comes
 * out of it. Session, codec, memo, group, timer, counters; one member per connection, as in the steady state.
 *
 * usage: micro_session [OPERATIONS [MEMBERS]]
 *
 * Instructions: valgrind --tool=callgrind --toggle-collect=heartbeat_once micro_session N; callgrind_annotate lists them by function; divide by N.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "bench/heartbeat.h"
#include "coordinator/node.h"
#include "muster/check.h"

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
static void wait_for_answer(struct node *node, const struct client *cl, struct now *now)
{
	for (int i = 0; i < 1000 && cl->answer->len == 0; i++) {
		now->us += 200;
		node_service_ops.tick(node, *now);
	}
	CHECK(cl->answer->len > 4);
}

/* A group of one: id, join, sync. */
static void settle(struct node *node, struct client *cl, struct now *now)
{
	uint8_t out[1024];
	bool leader = false;
	int error = HEARTBEAT_ID_REQUIRED;
	while (error == HEARTBEAT_ID_REQUIRED) {
		struct writer w = writer_of(out, sizeof(out));
		heartbeat_join(&cl->hb, &w);
		request(cl, &w, *now);
		wait_for_answer(node, cl, now);
		error = heartbeat_join_answer(&cl->hb, cl->answer->bytes + 4, cl->answer->len - 4, &leader);
	}
	CHECK(error == HEARTBEAT_OK && leader);
	struct writer w = writer_of(out, sizeof(out));
	heartbeat_sync(&cl->hb, &w, bytes_of(cl->answer->bytes + 4, cl->answer->len - 4));
	request(cl, &w, *now);
	wait_for_answer(node, cl, now);
	CHECK(heartbeat_sync_answer(&cl->hb, cl->answer->bytes + 4, cl->answer->len - 4) == HEARTBEAT_OK);
	heartbeat_prepare(&cl->hb);
}

static struct client *clients_new(struct node *node, unsigned int n, struct answer *answer, struct now *now)
{
	struct client *clients = calloc(n, sizeof(*clients));
	CHECK(clients != NULL);
	for (unsigned int i = 0; i < n; i++) {
		struct client *cl = &clients[i];
		struct channel_peer peer = {0x0a000001 + i, 0x0a4d0002, 40000, 19092};
		cl->channel.ops = &client_ops;
		cl->answer = answer;
		snprintf(cl->hb.group, sizeof(cl->hb.group), "bench-%05u", i);
		snprintf(cl->hb.client_id, sizeof(cl->hb.client_id), "bench-%06u", i);
		cl->session = node_service_ops.opened(node, &cl->channel, &peer, *now);
		CHECK(cl->session != NULL);
		settle(node, cl, now);
	}
	return clients;
}

static double cpu_seconds(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static double run(struct node *node, struct client *clients, unsigned int members, uint64_t operations, struct now now)
{
	double start = cpu_seconds();
	for (uint64_t i = 0; i < operations; i++) {
		struct client *cl = &clients[i % members];
		heartbeat_next(&cl->hb);
		cl->answer->len = 0;
		heartbeat_once(cl, now);
		CHECK(heartbeat_answer(&cl->hb, cl->answer->bytes + 4, cl->answer->len - 4) == HEARTBEAT_OK);
		if (i % 32 == 0) {
			now.us += 10;
			node_service_ops.tick(node, now);
		}
	}
	return (cpu_seconds() - start) * 1e9 / (double)operations;
}

int main(int argc, char **argv)
{
	uint64_t operations = argc > 1 ? strtoull(argv[1], NULL, 10) : 3000000;
	unsigned int members = argc > 2 ? (unsigned int)atoi(argv[2]) : 64;
	struct group_settings groups = {.group_min_session_timeout_ms = 6000, .group_max_session_timeout_ms = 1800000, .group_max_size = INT32_MAX,
					.offset_metadata_max_bytes = 4096, .journal_events = 32};
	struct node_config cfg = {.node_id = 1000, .groups = &groups, .max_sessions = members, .random = {1, 2}};
	struct now now = {US_PER_S, 1700000000000};
	struct stats *stats = aligned_alloc(MUSTER_CACHE_LINE, sizeof(*stats));
	struct image *image = image_new(bytes_str("bench"));
	struct log *log = log_memory_new();
	struct answer *answer = calloc(1, sizeof(*answer));
	CHECK(members > 0 && answer != NULL && stats != NULL && image != NULL && log != NULL && image_add_node(image, 1000, bytes_str("10.77.0.2"), 19092));
	memset(stats, 0, sizeof(*stats));
	image_seal(image, 50);
	struct node *node = node_new(&cfg, image, log, stats, now);
	CHECK(node != NULL);
	struct client *clients = clients_new(node, members, answer, &now);
	double ns = run(node, clients, members, operations, now);
	printf("session, heartbeat in and out, %u members: %.1f ns, over %" PRIu64 " operations; %" PRIu64 " of them found their member by the memo\n",
	       members, ns, operations, stats->group_heartbeats_memo);
	for (unsigned int i = 0; i < members; i++)
		node_service_ops.closed(clients[i].session, now);
	node_free(node);
	log_free(log);
	image_free(image);
	free(answer);
	free(stats);
	free(clients);
	return EXIT_SUCCESS;
}
