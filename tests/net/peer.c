/*
 * peer.c - the other end for the network tests: an echo server, or a client that checks the echo, on our own dataplane.
 *
 *   peer serve device=net_tap0,iface=t0 addr=10.77.0.2 port=7000 [key=value]...
 *   peer call  device=net_memif,... addr=10.78.0.1 to=10.78.0.2 port=7000 conns=4 bytes=1000000 [key=value]...
 *
 * Prints "ready: ..." once it can be reached, and every counter that is not zero at its end. Exit status 0: stopped as
 * asked, or every byte came back right; 1: not so; 2: the dataplane did not start.
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "bench/echo_service.h"
#include "muster/check.h"
#include "muster/dataplane.h"

#define FRAME_MAX 9000u
#define OUTSTANDING 8u
#define WORKERS_MAX 16u

static struct dataplane *running; /* for the signal handler only */

static void on_signal(int sig)
{
	dataplane_stop(running);
}

/* ---- the client's service ---- */

struct caller {
	struct dataplane *dp;
	uint64_t bytes; /* of payload, each way and connection */
	unsigned int open, done, failed;
};

struct call {
	struct caller *caller;
	struct channel *channel;
	uint64_t sent, received; /* payload bytes */
	uint64_t send_random, receive_random;
};

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* The next frame of the endless sequence that `random` stands in; the same for sender and checker. */
static size_t make_frame(uint64_t *random, uint8_t *out)
{
	size_t len = next_random(random) % FRAME_MAX + 1;
	if (next_random(random) % 2 == 0)
		len = len % 100 + 1;
	for (size_t i = 0; i < len; i += 8) {
		uint64_t v = next_random(random);
		memcpy(out + i, &v, len - i < 8 ? len - i : 8);
	}
	return len;
}

static void send_next(struct call *call)
{
	uint8_t frame[4 + FRAME_MAX + 8];
	if (call->sent >= call->caller->bytes)
		return;
	size_t len = make_frame(&call->send_random, frame + 4);
	uint32_t be = htonl((uint32_t)len);
	memcpy(frame, &be, 4);
	channel_send(call->channel, frame, 4 + len);
	call->sent += len;
}

static void *call_opened(void *service, struct channel *ch, const struct channel_peer *peer, struct now now)
{
	struct caller *caller = service;
	struct call *call = calloc(1, sizeof(*call));
	CHECK(call != NULL);
	*call = (struct call){.caller = caller, .channel = ch, .send_random = peer->local_port * 0x9e3779b97f4a7c15ull + 1};
	call->receive_random = call->send_random;
	for (unsigned int i = 0; i < OUTSTANDING; i++)
		send_next(call);
	return call;
}

static enum service_verdict call_frame(void *session, const uint8_t *p, size_t len, struct now now)
{
	struct call *call = session;
	uint8_t want[FRAME_MAX + 8];
	if (make_frame(&call->receive_random, want) != len || memcmp(p, want, len) != 0) {
		fprintf(stderr, "peer: wrong bytes after %" PRIu64 " right ones\n", call->received);
		return SERVICE_ABORT;
	}
	call->received += len;
	send_next(call);
	if (call->received >= call->caller->bytes)
		channel_close(call->channel);
	return SERVICE_NEXT;
}

static void call_eof(void *session, struct now now)
{
	channel_close(((struct call *)session)->channel);
}

static void call_drained(void *session, struct now now)
{
}

static void finish_one(struct caller *caller, bool ok)
{
	caller->done += ok;
	caller->failed += !ok;
	if (caller->done + caller->failed == caller->open)
		dataplane_stop(caller->dp);
}

static void call_closed(void *session, struct now now)
{
	struct call *call = session;
	finish_one(call->caller, call->received >= call->caller->bytes);
	free(call);
}

static void call_connect_failed(void *service, struct now now)
{
	finish_one(service, false);
}

static uint64_t call_tick(void *service, struct now now)
{
	return TIME_NEVER;
}

static bool call_stop(void *service, struct now now)
{
	return true;
}

static const struct service_ops call_ops = {
	.opened = call_opened,
	.frame = call_frame,
	.eof = call_eof,
	.drained = call_drained,
	.closed = call_closed,
	.tick = call_tick,
	.connect_failed = call_connect_failed,
	.stop = call_stop,
};

/* ---- the program ---- */

struct options {
	struct dataplane_config cfg;
	uint32_t to;
	unsigned int conns;
	uint64_t bytes;
};

static uint32_t parse_addr(const char *text)
{
	struct in_addr a;
	return inet_aton(text, &a) != 0 ? ntohl(a.s_addr) : 0;
}

static bool parse_option(struct options *o, char *arg)
{
	struct dataplane_config *cfg = &o->cfg;
	char *value = strchr(arg, '=');
	if (value == NULL)
		return false;
	*value++ = '\0';
	uint64_t n = strtoull(value, NULL, 10);
	if (strcmp(arg, "device") == 0)
		cfg->device = value;
	else if (strcmp(arg, "eal") == 0)
		cfg->eal_extra = value;
	else if (strcmp(arg, "addr") == 0)
		cfg->addr = parse_addr(value);
	else if (strcmp(arg, "to") == 0)
		o->to = parse_addr(value);
	else if (strcmp(arg, "port") == 0)
		cfg->port = (uint16_t)n;
	else if (strcmp(arg, "workers") == 0 && n > 0 && n <= WORKERS_MAX)
		cfg->workers = (unsigned int)n;
	else if (strcmp(arg, "queues") == 0)
		cfg->queues = (unsigned int)n;
	else if (strcmp(arg, "mtu") == 0)
		cfg->mtu = (unsigned int)n;
	else if (strcmp(arg, "idle") == 0)
		cfg->idle = strcmp(value, "spin") == 0 ? IDLE_SPIN : IDLE_ADAPTIVE;
	else if (strcmp(arg, "huge") == 0)
		cfg->huge_pages = n != 0;
	else if (strcmp(arg, "loss") == 0)
		cfg->inject_loss_ppm = (unsigned int)n;
	else if (strcmp(arg, "duplicate") == 0)
		cfg->inject_duplicate_ppm = (unsigned int)n;
	else if (strcmp(arg, "reorder") == 0)
		cfg->inject_reorder_ppm = (unsigned int)n;
	else if (strcmp(arg, "corrupt") == 0)
		cfg->inject_corrupt_ppm = (unsigned int)n;
	else if (strcmp(arg, "seed") == 0)
		cfg->inject_seed = n;
	else if (strcmp(arg, "conns") == 0)
		o->conns = (unsigned int)n;
	else if (strcmp(arg, "bytes") == 0)
		o->bytes = n;
	else
		return false;
	return true;
}

static struct now clock_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (struct now){(uint64_t)t.tv_sec * US_PER_S + (uint64_t)t.tv_nsec / 1000, 0};
}

/* Of all workers together; and what each of them received. */
static void print_counters(struct dataplane *dp, unsigned int workers)
{
	struct rusage use;
	for (size_t i = 0; i < ARRAY_LEN(stats_rows); i++) {
		uint64_t sum = 0;
		for (unsigned int w = 0; w < workers; w++)
			sum += stats_value(dataplane_stats(dp, w), &stats_rows[i]);
		if (sum != 0)
			printf("%s %" PRIu64 "\n", stats_rows[i].name, sum);
	}
	for (unsigned int w = 0; w < workers; w++)
		printf("worker%u_accepted %" PRIu64 "\nworker%u_rx_frames %" PRIu64 "\n", w, dataplane_stats(dp, w)->tcp_accepted, w,
		       dataplane_stats(dp, w)->port_rx_frames);
	getrusage(RUSAGE_SELF, &use);
	printf("cpu_us %ld\n", (use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1000000L + use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

static int run(struct options *o, bool serve)
{
	char line[512];
	struct echo_service echo[WORKERS_MAX] = {0};
	struct dataplane *dp = dataplane_start(&o->cfg, line, sizeof(line));
	if (dp == NULL) {
		fprintf(stderr, "peer: %s\n", line);
		return 2;
	}
	struct caller caller = {.dp = dp, .bytes = o->bytes, .open = o->conns};
	running = dp;
	signal(SIGTERM, on_signal);
	signal(SIGINT, on_signal);
	for (unsigned int w = 0; w < o->cfg.workers; w++)
		dataplane_set_service(dp, w, serve ? &echo_service_ops : &call_ops, serve ? (void *)&echo[w] : &caller);
	for (unsigned int i = 0; !serve && i < o->conns; i++)
		if (!dataplane_connect(dp, 0, o->to, o->cfg.port, clock_now()))
			finish_one(&caller, false);
	dataplane_describe(dp, line, sizeof(line));
	printf("ready: %s\n", line);
	fflush(stdout);
	dataplane_run(dp, 2 * US_PER_S);
	print_counters(dp, o->cfg.workers);
	if (!serve)
		printf("done %u\nfailed %u\n", caller.done, caller.failed);
	dataplane_free(dp);
	return serve || (caller.failed == 0 && caller.done == o->conns) ? 0 : 1;
}

int main(int argc, char **argv)
{
	struct options o = {
		.cfg = {
			.device = "", .eal_extra = "", .file_prefix = "", .mac = "", .prefix_len = 24, .mtu = 1500, .workers = 1, .cpu = -1,
			.idle = IDLE_ADAPTIVE, .huge_pages = false, .rx_descriptors = 512, .tx_descriptors = 512, .max_connections = 4096,
			.max_frame_bytes = 32 << 20, .receive_buffer_bytes = 256 << 10, .send_buffer_bytes = 256 << 10,
			.buffer_memory_bytes = 128 << 20, .idle_timeout_us = 0, .rto_min_us = 50 * US_PER_MS, .rto_max_us = 10 * US_PER_S,
			.delayed_ack_us = 20 * US_PER_MS, .time_wait_us = US_PER_S, .inject_seed = 1,
		},
		.conns = 1,
		.bytes = 1000000,
	};
	bool serve = argc > 1 && strcmp(argv[1], "serve") == 0, ok = serve || (argc > 1 && strcmp(argv[1], "call") == 0);
	for (int i = 2; ok && i < argc; i++)
		ok = parse_option(&o, argv[i]);
	if (!ok || o.cfg.device[0] == '\0' || o.cfg.addr == 0) {
		fprintf(stderr, "usage: peer serve|call device=DEVICE addr=ADDRESS port=PORT [key=value]...\n");
		return 2;
	}
	return run(&o, serve);
}
