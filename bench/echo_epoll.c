/*
 * echo_epoll.c - the floor: the same answers from an ordinary server on the kernel's sockets, one thread, epoll. Until it is killed.
 *
 * usage: echo_epoll ADDRESS PORT
 */
#define _GNU_SOURCE /* accept4 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/heartbeat.h"

#define EVENTS 256
#define REQUEST_MAX 1024u /* bytes of requests taken at once; a longer request ends its connection */

struct connection {
	int fd;
	size_t have;
	uint8_t in[REQUEST_MAX];
};

static int listen_on(const char *addr, int port)
{
	struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	if (fd < 0 || inet_pton(AF_INET, addr, &sin.sin_addr) != 1 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) != 0 ||
	    bind(fd, (struct sockaddr *)&sin, sizeof(sin)) != 0 || listen(fd, 4096) != 0)
		return -1;
	return fd;
}

static void accept_all(int epoll, int listener)
{
	int fd, one = 1;
	while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
		struct connection *c = malloc(sizeof(*c));
		if (c == NULL) {
			close(fd);
			return;
		}
		c->fd = fd;
		c->have = 0;
		struct epoll_event ev = {.events = EPOLLIN, .data.ptr = c};
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &ev);
	}
}

/* Answers every whole request; false: the connection is over. */
static bool serve(struct connection *c)
{
	uint8_t out[REQUEST_MAX / 12 * HEARTBEAT_ANSWER];
	size_t used = 0, at = 0;
	ssize_t n = recv(c->fd, c->in + c->have, sizeof(c->in) - c->have, 0);
	if (n <= 0)
		return n < 0 && errno == EAGAIN;
	c->have += (size_t)n;
	for (;;) {
		struct reader r = reader_of(c->in + at, c->have - at);
		uint32_t len = reader_u32(&r);
		if (!r.bad && (len < 8 || len > sizeof(c->in) - 4))
			return false;
		if (reader_take(&r, len) == NULL)
			break;
		heartbeat_accept(out + used, c->in + at + 4);
		used += HEARTBEAT_ANSWER;
		at += 4 + len;
	}
	c->have -= at;
	memmove(c->in, c->in + at, c->have);
	return used == 0 || send(c->fd, out, used, MSG_NOSIGNAL) == (ssize_t)used;
}

int main(int argc, char **argv)
{
	struct epoll_event events[EVENTS];
	int listener = argc == 3 ? listen_on(argv[1], atoi(argv[2])) : -1, epoll = epoll_create1(0);
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = NULL};
	if (listener < 0 || epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &ev) != 0) {
		fprintf(stderr, "usage: echo_epoll ADDRESS PORT\n");
		return EXIT_FAILURE;
	}
	signal(SIGUSR1, SIG_IGN); /* the client asks each server for its counters so; there are none here */
	printf("ready\n");
	fflush(stdout);
	for (;;) {
		int n = epoll_wait(epoll, events, EVENTS, -1);
		for (int i = 0; i < n; i++) {
			struct connection *c = events[i].data.ptr;
			if (c == NULL) {
				accept_all(epoll, listener);
			} else if (!serve(c)) {
				close(c->fd);
				free(c);
			}
		}
	}
}
