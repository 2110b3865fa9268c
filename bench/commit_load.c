/*
 * commit_load.c - connections that commit one offset each, wait for the answer, and commit the next: how many durable commits a server takes, and how long
 * one waits. For any server that speaks Kafka.
 *
 *   commit_load HOST PORT CONNECTIONS SECONDS
 *
 * Each connection is a simple group of its own and commits partition 0 of the topic "demo". Every answer is checked. Prints one line.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "muster/bytes.h"
#include "muster/check.h"

#define FRAME 200
#define SAMPLES 4000000u
#define EVENTS 256

struct conn {
	int fd;
	uint8_t frame[FRAME];
	size_t len;
	uint8_t *correlation, *offset;
	uint32_t sent;
	uint64_t sent_ns;
	uint8_t answer[FRAME];
	size_t got;
};

struct load {
	struct conn *conns;
	unsigned int n;
	int epoll;
	uint32_t *us; /* samples */
	unsigned int samples;
	uint64_t commits;
};

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void put_string(struct writer *w, const char *s)
{
	writer_u16(w, (uint16_t)strlen(s));
	writer_raw(w, s, strlen(s));
}

/* OffsetCommit 2: api, version, correlation, client id; group, generation, member, retention, topics. */
static void make_frame(struct conn *c, unsigned int number)
{
	char group[32];
	struct writer w = writer_of(c->frame, sizeof(c->frame));
	snprintf(group, sizeof(group), "load-%u", number);
	writer_u32(&w, 0);
	writer_u16(&w, 8);
	writer_u16(&w, 2);
	c->correlation = w.p;
	writer_u32(&w, 0);
	put_string(&w, "commit_load");
	put_string(&w, group);
	writer_u32(&w, UINT32_MAX);
	put_string(&w, "");
	writer_u64(&w, UINT64_MAX);
	writer_u32(&w, 1);
	put_string(&w, "demo");
	writer_u32(&w, 1);
	writer_u32(&w, 0);
	c->offset = w.p;
	writer_u64(&w, 0);
	put_string(&w, "");
	CHECK(!w.full);
	c->len = writer_len(&w);
	struct writer head = writer_of(c->frame, 4);
	writer_u32(&head, (uint32_t)c->len - 4);
}

static void commit(struct conn *c)
{
	struct writer w = writer_of(c->correlation, 4);
	writer_u32(&w, ++c->sent);
	w = writer_of(c->offset, 8);
	writer_u64(&w, c->sent);
	c->sent_ns = now_ns();
	if (write(c->fd, c->frame, c->len) != (ssize_t)c->len) {
		perror("commit_load: write");
		exit(1);
	}
}

/* The whole answer is there: length, correlation, 1 topic, its name, 1 partition, its number, its error. */
static void check(const struct conn *c)
{
	struct reader r = reader_of(c->answer, c->got);
	uint32_t len = reader_u32(&r), correlation = reader_u32(&r);
	reader_u32(&r);
	reader_take(&r, reader_u16(&r));
	reader_u32(&r);
	reader_u32(&r);
	uint16_t error = reader_u16(&r);
	if (r.bad || reader_left(&r) != 0 || len + 4 != c->got || correlation != c->sent || error != 0) {
		fprintf(stderr, "commit_load: wrong answer: error %d\n", (int16_t)error);
		exit(1);
	}
}

static void readable(struct load *l, struct conn *c)
{
	ssize_t n = read(c->fd, c->answer + c->got, sizeof(c->answer) - c->got);
	if (n <= 0) {
		fprintf(stderr, "commit_load: the connection ended\n");
		exit(1);
	}
	c->got += (size_t)n;
	struct reader r = reader_of(c->answer, c->got);
	if (c->got < 4 || reader_u32(&r) + 4 > c->got)
		return;
	check(c);
	c->got = 0;
	l->commits++;
	if (l->samples < SAMPLES)
		l->us[l->samples++] = (uint32_t)((now_ns() - c->sent_ns) / 1000);
	commit(c);
}

static void open_all(struct load *l, const char *host, const char *port)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)strtoul(port, NULL, 10))};
	CHECK(inet_pton(AF_INET, host, &to.sin_addr) == 1);
	for (unsigned int i = 0; i < l->n; i++) {
		struct conn *c = &l->conns[i];
		int one = 1;
		c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&to, sizeof(to)) != 0) {
			perror("commit_load: connect");
			exit(1);
		}
		setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		make_frame(c, i);
		struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};
		CHECK(epoll_ctl(l->epoll, EPOLL_CTL_ADD, c->fd, &e) == 0);
	}
}

static int order(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
	struct load l = {.epoll = epoll_create1(EPOLL_CLOEXEC), .us = malloc(SAMPLES * sizeof(uint32_t))};
	if (argc != 5) {
		fprintf(stderr, "usage: commit_load HOST PORT CONNECTIONS SECONDS\n");
		return 2;
	}
	l.n = (unsigned int)strtoul(argv[3], NULL, 10);
	l.conns = calloc(l.n, sizeof(*l.conns));
	CHECK(l.n > 0 && l.conns != NULL && l.us != NULL && l.epoll >= 0);
	open_all(&l, argv[1], argv[2]);
	for (unsigned int i = 0; i < l.n; i++)
		commit(&l.conns[i]);
	uint64_t start = now_ns(), end = start + strtoull(argv[4], NULL, 10) * 1000000000;
	while (now_ns() < end) {
		struct epoll_event events[EVENTS];
		int n = epoll_wait(l.epoll, events, EVENTS, 100);
		for (int i = 0; i < n; i++)
			readable(&l, events[i].data.ptr);
	}
	double seconds = (double)(now_ns() - start) / 1e9;
	if (l.samples == 0) {
		fprintf(stderr, "commit_load: no commit went through\n");
		return 1;
	}
	qsort(l.us, l.samples, sizeof(*l.us), order);
	printf("%.0f commits/s, p50 %u us, p99 %u us\n", (double)l.commits / seconds, l.us[l.samples / 2], l.us[l.samples * 99ull / 100]);
	return 0;
}
