/*
 * clients.c - see clients.h.
 *
 * Invariants:
 *  1. Nothing is read of a client whose request is being worked on, or that has not taken all its lines.
 *  2. `in` holds what was read and not yet given away: at most one request that is not whole, of at most REQUEST_MAX bytes, and what came behind it.
 */
#define _GNU_SOURCE /* accept4 */
#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "coordinator/house/clients.h"

#define READ_BYTES 16384u
#define BACKLOG 64
#define OUT_LOW (16u << 10)

struct block {
	char *p;
	size_t len, cap, at; /* `at`: of `len`, gone already */
};

struct client {
	int fd; /* -1: free */
	bool busy, ending, broken;
	struct block in, out;
	uint64_t since_us; /* of what it keeps us waiting for */
	bool slow;	   /* there is such a thing */
};

struct clients {
	int fd;
	char path[CONFIG_TEXT_MAX + 1];
	struct client list[CLIENTS_MAX];
	void (*line)(void *arg, struct client *client, const char *line, size_t len);
	void (*gone)(void *arg, struct client *client);
	void *arg;
};

/* ---- the file ---- */

static bool address_of(const char *path, struct sockaddr_un *out)
{
	*out = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof(out->sun_path))
		return false;
	memcpy(out->sun_path, path, strlen(path) + 1);
	return true;
}

/* A socket that is left over from a server that was killed goes; anything else stays. */
static bool make_way(const struct sockaddr_un *address, char *err, size_t err_len)
{
	struct stat st;
	if (lstat(address->sun_path, &st) != 0)
		return true;
	if (!S_ISSOCK(st.st_mode)) {
		snprintf(err, err_len, "admin.socket: %s is there and is no socket; name another file", address->sun_path);
		return false;
	}
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool taken = fd >= 0 && connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0;
	if (fd >= 0)
		close(fd);
	if (taken) {
		snprintf(err, err_len, "admin.socket: another server listens on %s; name another file, or stop that one", address->sun_path);
		return false;
	}
	unlink(address->sun_path);
	return true;
}

static bool give_to_group(const char *path, const char *name, char *err, size_t err_len)
{
	if (*name == '\0')
		return true;
	const struct group *group = getgrnam(name);
	if (group == NULL) {
		snprintf(err, err_len, "admin.socket.group: %s: there is no such group", name);
		return false;
	}
	if (chown(path, (uid_t)-1, group->gr_gid) == 0)
		return true;
	snprintf(err, err_len, "admin.socket.group: %s cannot be given to the group %s: %s", path, name, strerror(errno));
	return false;
}

/* Born with no permissions for others, so that at no time somebody connects who may not. */
static bool open_socket(struct clients *all, const struct config *cfg, char *err, size_t err_len)
{
	static const mode_t modes[] = {0600, 0660, 0666};
	struct sockaddr_un address;
	if (!address_of(cfg->admin_socket, &address)) {
		snprintf(err, err_len, "admin.socket: %s is too long for a socket; allowed: %zu bytes", cfg->admin_socket, sizeof(address.sun_path) - 1);
		return false;
	}
	if (!make_way(&address, err, err_len))
		return false;
	all->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	mode_t mask = umask(0177);
	bool bound = all->fd >= 0 && bind(all->fd, (const struct sockaddr *)&address, sizeof(address)) == 0;
	umask(mask);
	if (bound)
		memcpy(all->path, cfg->admin_socket, strlen(cfg->admin_socket) + 1);
	if (bound && !give_to_group(all->path, cfg->admin_socket_group, err, err_len))
		return false;
	if (bound && chmod(all->path, modes[cfg->admin_socket_access]) == 0 && listen(all->fd, BACKLOG) == 0)
		return true;
	snprintf(err, err_len, "admin.socket: %s cannot be made: %s; is its folder there, and may we write into it?", cfg->admin_socket, strerror(errno));
	return false;
}

struct clients *clients_new(const struct config *cfg, void (*line)(void *arg, struct client *client, const char *line, size_t len),
			    void (*gone)(void *arg, struct client *client), void *arg, char *err, size_t err_len)
{
	struct clients *all = calloc(1, sizeof(*all));
	if (all == NULL) {
		snprintf(err, err_len, "no memory for the admin socket");
		return NULL;
	}
	all->fd = -1;
	all->line = line;
	all->gone = gone;
	all->arg = arg;
	for (unsigned int i = 0; i < CLIENTS_MAX; i++)
		all->list[i].fd = -1;
	if (open_socket(all, cfg, err, err_len))
		return all;
	clients_free(all);
	return NULL;
}

/* ---- one client ---- */

static void client_close(struct clients *all, struct client *c)
{
	all->gone(all->arg, c);
	close(c->fd);
	free(c->in.p);
	free(c->out.p);
	*c = (struct client){.fd = -1};
}

static bool block_room(struct block *b, size_t n)
{
	if (b->at > 0) {
		memmove(b->p, b->p + b->at, b->len - b->at);
		b->len -= b->at;
		b->at = 0;
	}
	if (b->cap - b->len >= n)
		return true;
	size_t cap = b->cap * 2 > b->len + n ? b->cap * 2 : b->len + n;
	char *p = realloc(b->p, cap);
	if (p == NULL)
		return false;
	b->p = p;
	b->cap = cap;
	return true;
}

/* A client at rest keeps no memory. */
static void block_rest(struct block *b)
{
	if (b->at < b->len)
		return;
	free(b->p);
	*b = (struct block){.p = NULL};
}

void client_line(struct client *c, const char *line, size_t len)
{
	if (!block_room(&c->out, len + 1)) {
		c->broken = true;
		return;
	}
	memcpy(c->out.p + c->out.len, line, len);
	c->out.p[c->out.len + len] = '\n';
	c->out.len += len + 1;
}

bool client_has_room(const struct client *c)
{
	return c->out.len - c->out.at < OUT_LOW;
}

void client_busy(struct client *c, bool busy)
{
	c->busy = busy;
}

void client_end(struct client *c)
{
	c->ending = true;
}

/* Gives the next whole line away. False: there is none. */
static bool take_line(struct clients *all, struct client *c)
{
	char *begin = c->in.p + c->in.at;
	char *end = c->in.len == c->in.at ? NULL : memchr(begin, '\n', c->in.len - c->in.at);
	if (end == NULL)
		return false;
	c->in.at = (size_t)(end + 1 - c->in.p);
	c->slow = false;
	all->line(all->arg, c, begin, (size_t)(end - begin));
	block_rest(&c->in);
	return true;
}

static void client_too_long(struct client *c)
{
	static const char text[] = "{\"done\":true,\"error\":42,\"text\":\"the request is longer than 1048576 bytes; send less at once\"}";
	client_line(c, text, sizeof(text) - 1);
	client_end(c);
}

static void client_read(struct client *c)
{
	if (!block_room(&c->in, READ_BYTES)) {
		c->broken = true;
		return;
	}
	ssize_t n = read(c->fd, c->in.p + c->in.len, READ_BYTES);
	if (n > 0)
		c->in.len += (size_t)n;
	else if (n == 0 || (errno != EAGAIN && errno != EINTR))
		c->broken = true;
}

static void client_write(struct client *c, struct now now)
{
	ssize_t n = send(c->fd, c->out.p + c->out.at, c->out.len - c->out.at, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n > 0) {
		c->out.at += (size_t)n;
		c->since_us = now.us;
	} else if (n < 0 && errno != EAGAIN && errno != EINTR) {
		c->broken = true;
	}
	if (c->out.at == c->out.len)
		block_rest(&c->out);
}

static bool has_output(const struct client *c)
{
	return c->out.len > c->out.at;
}

static bool may_read(const struct client *c)
{
	return !c->busy && !c->ending && !has_output(c);
}

static void client_serve(struct clients *all, struct client *c, short events, struct now now)
{
	if (has_output(c))
		client_write(c, now);
	while (may_read(c) && take_line(all, c))
		;
	if (events & (POLLIN | POLLHUP | POLLERR) && may_read(c))
		client_read(c);
	else if (events & (POLLHUP | POLLERR)) /* nobody is there any more */
		c->broken = true;
	while (may_read(c) && take_line(all, c))
		;
	if (may_read(c) && c->in.len - c->in.at > REQUEST_MAX)
		client_too_long(c);
	if (has_output(c))
		client_write(c, now);
}

/* What keeps us waiting: the rest of a request, or that it takes its lines. */
static bool too_slow(struct client *c, struct now now)
{
	bool slow = has_output(c) || (may_read(c) && c->in.len > c->in.at);
	if (slow && !c->slow)
		c->since_us = now.us;
	if (!slow && (c->slow || c->busy))
		c->since_us = now.us;
	c->slow = slow;
	return now.us - c->since_us > (slow ? CLIENT_SLOW_US : CLIENT_IDLE_US);
}

/* ---- all clients ---- */

static struct client *free_place(struct clients *all)
{
	struct client *oldest = NULL;
	for (unsigned int i = 0; i < CLIENTS_MAX; i++) {
		struct client *c = &all->list[i];
		if (c->fd < 0)
			return c;
		if (!c->busy && (oldest == NULL || c->since_us < oldest->since_us))
			oldest = c;
	}
	if (oldest != NULL)
		client_close(all, oldest);
	return oldest;
}

static void take_clients(struct clients *all, struct now now)
{
	for (unsigned int i = 0; i < CLIENTS_MAX; i++) {
		int fd = accept4(all->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0)
			return;
		struct client *c = free_place(all);
		if (c == NULL) {
			static const char text[] = "{\"done\":true,\"error\":-1,\"text\":\"too many clients are being served; try again\"}\n";
			send(fd, text, sizeof(text) - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
			close(fd);
			continue;
		}
		*c = (struct client){.fd = fd, .since_us = now.us};
	}
}

unsigned int clients_poll(struct clients *all, struct pollfd fds[])
{
	unsigned int n = 0;
	fds[n++] = (struct pollfd){.fd = all->fd, .events = POLLIN};
	for (unsigned int i = 0; i < CLIENTS_MAX; i++) {
		const struct client *c = &all->list[i];
		fds[n++] = (struct pollfd){.fd = c->fd, .events = (short)((may_read(c) ? POLLIN : 0) | (has_output(c) ? POLLOUT : 0))};
	}
	return n;
}

void clients_serve(struct clients *all, const struct pollfd fds[], unsigned int n, struct now now)
{
	for (unsigned int i = 0; i < CLIENTS_MAX; i++) {
		struct client *c = &all->list[i];
		if (c->fd < 0)
			continue;
		client_serve(all, c, fds[i + 1].fd == c->fd ? fds[i + 1].revents : 0, now);
		if (c->broken || (c->ending && !has_output(c)) || too_slow(c, now))
			client_close(all, c);
	}
	if (fds[0].revents & POLLIN)
		take_clients(all, now);
}

void clients_free(struct clients *all)
{
	if (all == NULL)
		return;
	for (unsigned int i = 0; i < CLIENTS_MAX; i++)
		if (all->list[i].fd >= 0)
			client_close(all, &all->list[i]);
	if (all->fd >= 0)
		close(all->fd);
	if (all->path[0] != '\0')
		unlink(all->path);
	free(all);
}
