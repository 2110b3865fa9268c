/*
 * load_epoll.c - the load generator over the kernel's sockets: what a client on the same host, behind a TAP, can send.
 *
 * usage: load_epoll --server A.B.C.D --port P [--cpu N] and the options of load.h
 */
#define _GNU_SOURCE /* CPU sets */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "bench/load.h"
#include "muster/bytes.h"
#include "muster/time.h"

#define EVENTS 256
#define CHUNK 65536u	   /* bytes read at once */
#define OPENING_MAX 256u   /* connections being opened at the same time */
#define PENDING_MAX (1u << 20) /* longest answer */

struct connection {
	int fd;
	bool open;
	struct load_member *member;
	uint8_t *kept; /* the beginning of an answer whose rest has not come */
	size_t kept_len;
};

struct client {
	struct load *load;
	struct sockaddr_in server;
	int cpu, epoll;
	struct connection *connections;
	unsigned int begun, opening;
	uint64_t now_us;
	uint8_t chunk[CHUNK];
};

static uint64_t clock_us(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * US_PER_S + (uint64_t)ts.tv_nsec / 1000;
}

static bool option(void *arg, const char *name, const char *value)
{
	struct client *cl = arg;
	if (strcmp(name, "--server") == 0)
		return inet_pton(AF_INET, value, &cl->server.sin_addr) == 1;
	if (strcmp(name, "--port") == 0)
		cl->server.sin_port = htons((uint16_t)atoi(value));
	else if (strcmp(name, "--cpu") == 0)
		cl->cpu = atoi(value);
	else
		return false;
	return true;
}

static void send_bytes(void *connection, const uint8_t *p, size_t len)
{
	const struct connection *c = connection;
	while (len > 0) {
		ssize_t n = send(c->fd, p, len, MSG_NOSIGNAL);
		if (n < 0 && errno != EAGAIN)
			return; /* the next read reports it */
		if (n > 0) {
			p += n;
			len -= (size_t)n;
		}
	}
}

static void open_more(struct client *cl, unsigned int total)
{
	int one = 1;
	while (cl->begun < total && cl->opening < OPENING_MAX) {
		struct connection *c = &cl->connections[cl->begun];
		c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		if (c->fd < 0 || (connect(c->fd, (struct sockaddr *)&cl->server, sizeof(cl->server)) != 0 && errno != EINPROGRESS)) {
			load_lost(cl->load, "no connection could be opened");
			return;
		}
		struct epoll_event ev = {.events = EPOLLOUT, .data.ptr = c};
		setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		epoll_ctl(cl->epoll, EPOLL_CTL_ADD, c->fd, &ev);
		cl->begun++;
		cl->opening++;
	}
}

static void opened(struct client *cl, struct connection *c)
{
	int error = 0;
	socklen_t len = sizeof(error);
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = c};
	if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0 || error != 0) {
		load_lost(cl->load, "a connection was refused");
		return;
	}
	epoll_ctl(cl->epoll, EPOLL_CTL_MOD, c->fd, &ev);
	cl->opening--;
	c->open = true;
	c->member = load_opened(cl->load, c);
}

/* Hands whole answers on; returns how many bytes they were. */
static size_t answers(struct client *cl, struct connection *c, const uint8_t *p, size_t len)
{
	size_t at = 0;
	for (;;) {
		struct reader r = reader_of(p + at, len - at);
		uint32_t n = reader_u32(&r);
		if (!r.bad && n > PENDING_MAX) {
			load_lost(cl->load, "an answer is too long");
			return len;
		}
		const uint8_t *frame = reader_take(&r, n);
		if (frame == NULL)
			return at;
		at += 4 + n;
		load_answer(cl->load, c->member, frame, n, cl->now_us);
	}
}

static void keep(struct client *cl, struct connection *c, const uint8_t *p, size_t len)
{
	uint8_t *kept = realloc(c->kept, c->kept_len + len);
	if (kept == NULL) {
		load_lost(cl->load, "out of memory");
		return;
	}
	memcpy(kept + c->kept_len, p, len);
	c->kept = kept;
	c->kept_len += len;
}

static void receive(struct client *cl, struct connection *c)
{
	ssize_t n = recv(c->fd, cl->chunk, sizeof(cl->chunk), 0);
	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0) {
		load_lost(cl->load, "the server closed a connection");
		return;
	}
	if (likely(c->kept_len == 0)) {
		size_t used = answers(cl, c, cl->chunk, (size_t)n);
		if (used < (size_t)n)
			keep(cl, c, cl->chunk + used, (size_t)n - used);
		return;
	}
	keep(cl, c, cl->chunk, (size_t)n);
	size_t used = answers(cl, c, c->kept, c->kept_len);
	c->kept_len -= used;
	memmove(c->kept, c->kept + used, c->kept_len);
}

static void run(struct client *cl, unsigned int total)
{
	struct epoll_event events[EVENTS];
	while (!load_ended(cl->load)) {
		cl->now_us = clock_us();
		uint64_t next = load_tick(cl->load, cl->now_us);
		open_more(cl, total);
		int n = epoll_wait(cl->epoll, events, EVENTS, next > cl->now_us ? 1 : 0);
		cl->now_us = clock_us();
		for (int i = 0; i < n; i++) {
			struct connection *c = events[i].data.ptr;
			if (c->open)
				receive(cl, c);
			else
				opened(cl, c);
		}
	}
}

int main(int argc, char **argv)
{
	struct client *cl = calloc(1, sizeof(*cl));
	struct load_config cfg;
	cpu_set_t cpus;
	struct rlimit files;
	if (cl == NULL)
		return EXIT_FAILURE;
	cl->server.sin_family = AF_INET;
	cl->cpu = -1;
	if (!load_options(&cfg, argc, argv, option, cl))
		return 2;
	CPU_ZERO(&cpus);
	if (cl->cpu >= 0) {
		CPU_SET((unsigned int)cl->cpu, &cpus);
		sched_setaffinity(0, sizeof(cpus), &cpus);
	}
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	cl->epoll = epoll_create1(0);
	cl->connections = calloc(cfg.connections, sizeof(*cl->connections));
	cl->load = load_new(&cfg, send_bytes, clock_us());
	if (cl->epoll < 0 || cl->connections == NULL || cl->load == NULL)
		return EXIT_FAILURE;
	run(cl, cfg.connections);
	int status = load_report(cl->load);
	for (unsigned int i = 0; i < cl->begun; i++) {
		close(cl->connections[i].fd);
		free(cl->connections[i].kept);
	}
	free(cl->connections);
	load_free(cl->load);
	free(cl);
	return status;
}
